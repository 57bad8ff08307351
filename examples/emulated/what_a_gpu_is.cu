// The programs of lesson 3, docs/course/03_what_a_gpu_is.md, one for each argument:
//   scripts/emulate.sh examples/emulated/what_a_gpu_is.cu
//   threads|elements|shared|no_barrier|warp|limits|occupancy
#include <algorithm>
#include <cstring>
#include <vector>

#include "examples/emulated/emulated.h"

// [threads]
__global__ void who_am_i() {
  const unsigned warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
  if (lane == 0)
    printf("block %u of %u: threads %u to %u are warp %u\n", blockIdx.x, gridDim.x, threadIdx.x,
           threadIdx.x + warpSize - 1, warp);
}
// [/threads]

// [elements]
__global__ void squares(int* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = i * i;
}
// [/elements]

// [shared]
__global__ void reverse(const float* x, float* y, bool wait) {
  ROOFTILE_SHARED(line, float[8]);  // one for each block: all its threads see it
  const unsigned t = threadIdx.x;
  line[t] = x[t];
  if (wait) __syncthreads();  // until all eight have written
  y[t] = line[7 - t];
}
// [/shared]

// [warp]
__global__ void sum_of_a_warp() {
  int sum = static_cast<int>(threadIdx.x);  // 0 to 31
  for (int far = 16; far > 0; far /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, far);  // the sum of the lane that is `far` further
    if (threadIdx.x == 0) printf("with the lane %2d further: %d\n", far, sum);
  }
}
// [/warp]

// [limits]
__global__ void nothing() {}
__global__ void much_shared_memory() {
  ROOFTILE_DYNAMIC_SHARED(bytes);
  bytes[threadIdx.x] = std::byte{0};
}

void launch_too_much() {
  using namespace rooftile::emulated;
  const auto say = [](const char* what, const rooftile::Status& s) {
    std::printf("%s: %s\n", what, s ? "it runs" : s.message());
  };
  say("1024 threads", launch({.grid = 1, .block = 1024}, {}, "nothing", nothing));
  say("1025 threads", launch({.grid = 1, .block = 1025}, {}, "nothing", nothing));
  const Geometry much{.grid = 1, .block = 32, .dynamic_shared = 200 * 1024};
  say("200 KiB on sm_90", launch(much, {.architecture = 90}, "much_shared_memory", much_shared_memory));
  say("200 KiB on sm_80", launch(much, {.architecture = 80}, "much_shared_memory", much_shared_memory));
}
// [/limits]

// [occupancy]
/// An SM of sm_90 has room for 2048 threads, 32 blocks, 65536 registers and 228 KiB of shared memory. Each
/// block takes 1 KiB of it besides what it declares.
int blocks_at_once(int threads, int registers, int shared_bytes) {
  const int by_registers = 65536 / (registers * threads);
  const int by_shared = 228 * 1024 / (shared_bytes + 1024);
  return std::min({2048 / threads, 32, by_registers, by_shared});
}
void occupancy() {
  struct Kernel {
    int threads, registers, shared_bytes;
  };
  for (const Kernel k :
       {Kernel{256, 32, 2048}, {128, 64, 256}, {1024, 64, 256}, {32, 32, 0}, {256, 32, 100 * 1024}}) {
    const int blocks = blocks_at_once(k.threads, k.registers, k.shared_bytes),
              warps = blocks * k.threads / 32;
    std::printf("%4d threads, %2d registers, %6d bytes shared: %2d blocks, %2d of 64 warps\n", k.threads,
                k.registers, k.shared_bytes, blocks, warps);
  }
}
// [/occupancy]

int main(int count, char** words) {
  const auto asked = [&](const char* name) { return count == 2 && std::strcmp(words[1], name) == 0; };
  if (asked("threads")) return run("who_am_i", who_am_i, 2, 96, 0) ? 0 : 1;
  if (asked("elements")) {
    std::vector<int> y(16);  // kernels may touch ten; a mistake that touches more is told, and harms nobody
    allow(y.data(), 10 * sizeof y[0], "y");
    if (!run("squares", squares, 2, 8, 0, y.data(), 10)) return 1;
    for (int i = 0; i < 10; ++i) std::printf("%d%s", y[i], i < 9 ? " " : "\n");
    return 0;
  }
  if (asked("shared") || asked("no_barrier")) {
    const float x[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    float y[8];
    const bool right = run("reverse", reverse, 1, 8, 0, x, y, asked("shared"));
    for (int i = 0; i < 8; ++i) std::printf("%g%s", double(y[i]), i < 7 ? " " : "\n");
    return right ? 0 : 1;
  }
  if (asked("warp")) return run("sum_of_a_warp", sum_of_a_warp, 1, 32, 0) ? 0 : 1;
  if (asked("limits")) return launch_too_much(), 0;
  if (asked("occupancy")) return occupancy(), 0;
  std::fprintf(stderr, "what_a_gpu_is threads|elements|shared|no_barrier|warp|limits|occupancy\n");
  return 2;
}
