// What a call costs the host beside the launch that it ends in, and which build that is.
#include <fmt/format.h>

#include <cstdio>
#include <functional>

#include "rooftile/harness/bench/baselines.h"
#include "rooftile/harness/bench/bench_gpu.h"
#include "rooftile/harness/bench/device_calls.h"
#include "rooftile/harness/bench/gpu_row.h"
#include "rooftile/harness/bench/timing.h"
#include "rooftile/harness/signature_spec.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

// The driver's queue holds some 1000 launches; a full one would make the host wait for the device.
constexpr int kSamples = 101, kCalls = 200;
constexpr int kColumns = 16;

/// FNV-1a, the file's bytes added to `hash`; unchanged where it cannot be read.
std::uint64_t hash_file(const std::string& path, std::uint64_t hash) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return hash;
  std::vector<unsigned char> piece(1 << 20);
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), file))
    for (std::size_t i = 0; i < got; ++i) hash = (hash ^ piece[i]) * 1099511628211u;
  std::fclose(file);
  return hash;
}

}  // namespace

std::string build_of(const Queue& queue) {
  const Backend& backend = *queue.state().backend;
  std::uint64_t hash = hash_file(library_folder() + "/librooftile.so", 14695981039346656037u);
  hash = hash_file(fmt::format("{}/rooftile-{}.so", backend.folder, backend.name), hash);
  return fmt::format("{:016x}", hash);
}

json measure_gpu_overheads(const Queue& queue) {
  const bool tiny = queue.device() == Device::emulated;
  const int samples = tiny ? 3 : kSamples, calls = tiny ? 5 : kCalls;
  const DeviceFunctions& device = *queue.state().backend->device;
  const CudaLaunch& launch = queue.state().cuda;
  const DeviceBuffer memory(queue, 4096);
  // On boundaries of their own, as an allocator would place them.
  const auto at = [&](int i) { return reinterpret_cast<float*>(memory.data() + 512 * i); };
  const View x = view(at(0), {1, kColumns}), y = view(at(1), {1, kColumns}), z = view(at(2), {1, kColumns});
  const View w = view(at(3), {kColumns}), b = view(at(4), {kColumns}), mean = view(at(5), {1}),
             rstd = view(at(6), {1});
  const std::vector<float> ones(1024, 1);
  require(device.copy(launch, memory.data(), ones.data(), 4096));

  struct Contender {
    const char* name;
    std::function<Status()> call;
    Samples us;
  };
  // Two and three operands, and a row function with all of its statistics: those that this build has.
  std::vector<Contender> all;
  const auto contend = [&](const char* name, std::vector<ConstView> views) {
    const Op* op = find_op(name);
    if (!op) return;
    all.push_back({name, [&queue, op, views] { return call_with_defaults(queue, *op, views); }, {}});
  };
  contend("add", {x, y, z});
  contend("softmax", {x, z});
  contend("layer_norm", {x, {}, w, b, z, {}, mean, rstd});
  Samples bare;
  const auto time = [&](Samples& us, const auto& run) {
    require(device.synchronize(launch));
    const std::int64_t start = now_ns();
    run();
    us.add((static_cast<double>(now_ns() - start) - clock_floor_ns()) * 1e-3 / calls);
  };
  for (int sample = -1; sample < samples; ++sample) {
    if (sample == 0) {  // what came before loaded the kernels
      bare.clear();
      for (Contender& it : all) it.us.clear();
    }
    time(bare, [&] { require(device.launch_empty(launch, calls)); });
    for (Contender& it : all)
      time(it.us, [&] {
        for (int i = 0; i < calls; ++i) require(it.call());
      });
  }
  require(device.synchronize(launch));
  json list = json::array();
  for (const Contender& it : all)
    list.push_back(
        {{"name", std::string("call ") + it.name},
         {"what", fmt::format("host time of {} of 1x{} f32 through the public function, less a bare "
                              "launch of an empty kernel",
                              it.name, kColumns)},
         {"threads", 1},
         {"isa", queue.isa()},
         {"ns", rounded((it.us.median() - bare.median()) * 1e3)},
         {"whole_ns", rounded(it.us.median() * 1e3)},
         {"bare_ns", rounded(bare.median() * 1e3)},
         {"n", it.us.size()}});
  return list;
}

}  // namespace rooftile::harness
