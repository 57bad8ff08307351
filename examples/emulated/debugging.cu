// The programs of lesson 18, docs/course/18_debugging.md: kernels with one defect each.
//   scripts/emulate.sh [--checked | --gdb] examples/emulated/debugging.cu NAME [SEED]
#include <cstdlib>
#include <cstring>
#include <vector>

#include "examples/emulated/emulated.h"

constexpr int kThreads = 256;

// [differences]
/// y[i] = x[i] - x[i - 1], where each thread reads its own element alone; the neighbour's comes from the
/// neighbour.
__global__ void differences(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[kThreads]);
  const unsigned t = threadIdx.x;
  line[t] = x[t];
  y[t] = t > 0 ? line[t] - line[t - 1] : line[t];
}
// [/differences]

// [mended]
__global__ void mended(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[kThreads]);
  const unsigned t = threadIdx.x;
  line[t] = x[t];
  __syncthreads();
  y[t] = t > 0 ? line[t] - line[t - 1] : line[t];
}
// [/mended]

// [past_the_end]
__global__ void doubled(const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= n) y[i] = 2 * x[i];
}
// [/past_the_end]

// [short_row]
/// The sum of the n elements that a block of 256 was given.
__global__ void short_row(const float* x, float* y, int n) {
  ROOFTILE_SHARED(part, float[kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  if (t < n) part[t] = x[t];
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) *y = part[0];
}
// [/short_row]

// [early_return]
__global__ void early_return(const float* x, float* y, int n) {
  ROOFTILE_SHARED(line, float[kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  if (t >= n) return;
  line[t] = x[t];
  __syncthreads();
  y[t] = line[n - 1 - t];
}
// [/early_return]

// [running_sum]
/// line[t] = x[0] + … + x[t], in eight steps.
__global__ void running_sum(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[kThreads]);
  const unsigned t = threadIdx.x;
  line[t] = x[t];
  for (unsigned far = 1; far < kThreads; far *= 2) {
    __syncthreads();
    if (t >= far) line[t] += line[t - far];
  }
  y[t] = line[t];
}
// [/running_sum]

// [running_sum_mended]
/// All read before any writes, and all write before any reads.
__global__ void running_sum_mended(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[kThreads]);
  const unsigned t = threadIdx.x;
  line[t] = x[t];
  for (unsigned far = 1; far < kThreads; far *= 2) {
    __syncthreads();
    const float before = t >= far ? line[t - far] : 0;
    __syncthreads();
    line[t] += before;
  }
  y[t] = line[t];
}
// [/running_sum_mended]

/// The first wrong element, if there is one.
void compare(const float* y, int n, float (*expected)(int)) {
  int wrong = 0, first = -1;
  for (int i = n - 1; i >= 0; --i)
    if (!(y[i] == expected(i))) ++wrong, first = i;
  if (wrong == 0)
    std::printf("all %d right\n", n);
  else
    std::printf("%d of %d wrong; the first: y[%d] is %.9g, should be %.9g\n", wrong, n, first,
                double(y[first]), double(expected(first)));
}

int main(int count, char** words) {
  const auto asked = [&](const char* name) { return count > 1 && std::strcmp(words[1], name) == 0; };
  const unsigned long long seed = count > 2 ? std::strtoull(words[2], nullptr, 10) : 0;
  std::vector<float> numbers(kThreads), results(kThreads);
  float *x = numbers.data(), *y = results.data();
  for (int i = 0; i < kThreads; ++i) x[i] = static_cast<float>(i * i);
  allow(x, kThreads * sizeof *x, "x");
  allow(y, kThreads * sizeof *y, "y");
  const auto difference = [](int i) { return i > 0 ? float(2 * i - 1) : 0.f; };
  const auto square_sum = [](int i) { return float(i * (i + 1) * (2 * i + 1) / 6); };

  if (asked("differences")) {
    run("differences", differences, 1, kThreads, seed, x, y);
    compare(y, kThreads, difference);
  } else if (asked("mended")) {
    run("mended", mended, 1, kThreads, seed, x, y);
    compare(y, kThreads, difference);
  } else if (asked("past_the_end")) {
    run("doubled", doubled, 2, kThreads, seed, x, y, kThreads);
    compare(y, kThreads, [](int i) { return float(2 * i * i); });
  } else if (asked("short_row")) {
    run("short_row", short_row, 1, kThreads, seed, x, y, 200);
    compare(y, 1, [](int) { return 199 * 200 * 399 / 6.f; });
  } else if (asked("early_return")) {
    run("early_return", early_return, 1, kThreads, seed, x, y, 200);
    compare(y, 200, [](int i) { return float((199 - i) * (199 - i)); });
  } else if (asked("running_sum")) {
    run("running_sum", running_sum, 1, kThreads, seed, x, y);
    compare(y, kThreads, square_sum);
  } else if (asked("running_sum_mended")) {
    run("running_sum_mended", running_sum_mended, 1, kThreads, seed, x, y);
    compare(y, kThreads, square_sum);
  } else {
    std::fprintf(
        stderr,
        "debugging NAME [SEED]: differences, mended, past_the_end, short_row, early_return, running_sum\n");
    return 2;
  }
}
