#include "rooftile/harness/bench/gpu_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

constexpr std::size_t kFlushBytes = std::size_t{256} << 20;  // five times an H200's second-level cache
// Ours and the baselines' alternate in blocks: what slows the machine for a second slows both.
constexpr int kBlocks = 4, kRounds = 10, kWarmUp = 2;
constexpr double kBlockUs = 100'000;  // so long a block may take; slower calls get fewer rounds

struct OpCall {
  const Queue& queue;
  const GpuRow& row;
  const Arguments& arguments;
  Workspace workspace;
  static Status run(void* self) {
    const OpCall& it = *static_cast<OpCall*>(self);
    const char* variant = it.row.variant.empty() ? nullptr : it.row.variant.c_str();
    return it.row.spec->call(it.queue, it.row.c, it.arguments, variant, it.workspace);
  }
};
struct EmptyCall {
  const Queue& queue;
  static Status run(void* self) {
    const Queue& queue = static_cast<EmptyCall*>(self)->queue;
    return functions_of(queue).launch_empty(queue.state().cuda, 1);
  }
};

/// Flops per clock of a multiprocessor, by the vendor's data sheets: of tensor cores where they take the
/// dtype, dense.
double flops_per_clock(int architecture, DType dtype) {
  const bool hopper = architecture >= 90, ampere_server = architecture == 80;
  switch (dtype) {
    case DType::f64:
      return hopper || ampere_server ? (hopper ? 256 : 128) : 4;  // tensor cores' too
    case DType::f32:
      return ampere_server ? 128 : 256;
    case DType::tf32:
      return hopper ? 2048 : ampere_server ? 1024 : 256;
    case DType::f16:
    case DType::bf16:
      return hopper ? 4096 : ampere_server ? 2048 : 512;
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::i8:
      return hopper ? 8192 : ampere_server ? 4096 : 1024;
    default:
      return 0;
  }
}
/// Microseconds that so many flops take at the highest clock; 0: not known.
double flops_us(const DeviceDescription& device, DType dtype, double flops) {
  const double per_clock = flops_per_clock(device.major * 10 + device.minor, dtype);
  const double mhz = device.most_clock_mhz > 0 ? device.most_clock_mhz : device.clock_khz * 1e-3;
  return per_clock > 0 && mhz > 0 ? flops / (per_clock * device.multiprocessors * mhz) : 0;
}

std::size_t up_to_boundary(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

double rounded(double v) { return std::strtod(fmt::format("{:.5g}", v).c_str(), nullptr); }

std::string describe(const GpuRow& row) {
  return fmt::format("{} {}{}{} {}{}", row.spec->function, row.variant, row.variant.empty() ? "" : " ",
                     name(row.c.dtype), dimensions(row.c.shape),
                     row.c.offset ? fmt::format(", offset {}", row.c.offset) : "");
}

GpuSession::GpuSession(const Queue& queue)
    : queue_(queue), tiny_(queue.device() == Device::emulated), flush_(queue, tiny_ ? 256 : kFlushBytes) {
  EmptyCall empty{queue_};
  const Timed timed{EmptyCall::run, &empty};
  const int rounds = tiny_ ? 3 : kBlocks * kRounds;
  std::vector<float> us(static_cast<std::size_t>(rounds));
  require(functions_of(queue_).time(queue_.state().cuda, &timed, 1, rounds, flush_.data(), flush_.bytes(),
                                    us.data(), nullptr));
  floor_us_ = Samples({us.begin(), us.end()}).median();
  DeviceDescription description;
  if (functions_of(queue_).describe(queue_.state().cuda, description)) {
    rated_gbs_ = description.rated_gbs();
    device_ = description;
  }
}
GpuSession::~GpuSession() = default;

void GpuSession::load(const GpuRow& row) {
  std::string what = describe({row.spec, row.c, "", "", 0, false, 0});
  for (const auto& [name, value] : row.c.parameters) what += fmt::format(" {}={}", name, value);
  if (what == loaded_) {
    if (operands_->host().changes_inputs()) {
      operands_->host().refill();
      operands_->upload();
    }
    return;
  }
  loaded_.clear();
  operands_.reset();  // first, so that both never exist together
  operands_ = std::make_unique<DeviceOperands>(queue_, *row.spec, row.c);
  loaded_ = what;
}

std::byte* GpuSession::copy_room(std::size_t bytes) {
  if (!copied_ || copied_->bytes() < bytes) {
    copied_.reset();
    copied_ = std::make_unique<DeviceBuffer>(queue_, bytes);
  }
  return copied_->data();
}

json GpuSession::copies() {
  json list = json::array();
  for (const std::size_t mib :
       tiny_ ? std::vector<std::size_t>{1} : std::vector<std::size_t>{16, 64, 256, 2048}) {
    const std::size_t bytes = mib << 20;
    const Samples samples =
        time_copy(queue_, copy_room(bytes), bytes, flush_, tiny_ ? 3 : kRounds, tiny_ ? 0 : kWarmUp);
    list.push_back({{"bytes", bytes},
                    {"n", samples.size()},
                    {"median_us", rounded(samples.median())},
                    {"p5_us", rounded(samples.p5())},
                    {"p95_us", rounded(samples.p95())}});
  }
  return list;
}

json GpuSession::measure(const GpuRow& row, GpuBaselines* baselines) {
  const Spec& spec = *row.spec;
  const Case& c = row.c;
  load(row);
  const Queue::State& state = queue_.state();
  const DeviceFunctions& device = functions_of(queue_);
  const double bytes = spec.bytes(c);
  const auto half = std::max<std::size_t>(static_cast<std::size_t>(bytes / 2), 1);
  std::byte* const room = copy_room(up_to_boundary(half) + half);
  DeviceCopy copy{queue_, room + up_to_boundary(half), room, half};
  OpCall call{queue_, row, operands_->arguments(), operands_->workspace()};

  const std::string chosen =
      call_once(queue_, spec, c, row.variant, operands_->arguments(), operands_->workspace());
  const std::uint64_t before = operands_->fetch();
  if (const std::string sentence = operands_->host().not_finite(); !sentence.empty())
    throw std::runtime_error(sentence);
  // An answer of another form than expected costs the baselines' figures, not ours.
  const auto ask = [&](const auto& what) {
    if (!baselines) return;
    try {
      what();
    } catch (const json::exception& e) {
      baselines->note(fmt::format("baselines of {}: {}", describe(row), e.what()));
    }
  };
  ask([&] {
    std::vector<std::vector<double>> ours;
    for (std::size_t i = 0; i < operands_->host().operands().size(); ++i)
      if (operands_->host().operands()[i].written()) ours.push_back(operands_->host().sample(i));
    baselines->prepare({&spec, c, row.named}, operands_->host(), ours, 2 * half);
  });

  const Timed timed[] = {{DeviceCopy::run, &copy}, {OpCall::run, &call}};
  DeviceSensors sensors;
  Samples copies, calls;
  const auto block = [&](int rounds, int warm_up) {
    std::vector<float> us(static_cast<std::size_t>(2 * (rounds + warm_up)));
    require(device.time(state.cuda, timed, 2, rounds + warm_up, flush_.data(), flush_.bytes(), us.data(),
                        &sensors));
    for (int round = warm_up; round < rounds + warm_up; ++round) {
      copies.add(us[static_cast<std::size_t>(2 * round)]);
      calls.add(us[static_cast<std::size_t>(2 * round + 1)]);
    }
  };
  block(1, 0);
  const double once = copies.median() + calls.median();
  copies.clear();
  calls.clear();
  sensors = {};
  const int rounds = tiny_ ? 2 : std::clamp(static_cast<int>(kBlockUs / std::max(once, 1.0)), 1, kRounds);
  const int blocks = tiny_ ? 2 : rounds == 1 ? 3 : kBlocks;
  const int warm_up = tiny_ || rounds < kRounds ? 0 : kWarmUp;
  for (int b = 0; b < blocks; ++b) {
    block(rounds, warm_up);
    ask([&] { baselines->time(tiny_ ? rounds : kRounds, tiny_ ? 0 : kWarmUp); });
  }
  json baseline_list = json::array();
  ask([&] { baseline_list = baselines->results(); });
  for (json& baseline : baseline_list)
    for (const char* figure : {"median_us", "p5_us", "p95_us", "copy_us", "of_copy"})
      baseline[figure] = rounded(baseline[figure].get<double>());

  if (!operands_->host().changes_inputs() && operands_->fetch() != before)
    throw std::runtime_error("its outputs changed while it was timed");
  if (rated_gbs_ > 0 && bytes / calls.p5() * 1e-3 > rated_gbs_)
    throw std::runtime_error(
        fmt::format("{:.4g} us is impossible: {:.4g} bytes would have moved at {:.4g} GB/s, the memory is "
                    "rated for {:.4g}",
                    calls.p5(), bytes, bytes / calls.p5() * 1e-3, rated_gbs_));

  const DType multiplied = spec.multiplies ? spec.multiplies(c) : c.dtype;
  const double flops = spec.flops(c), least_us = tiny_ ? 0 : flops_us(device_, multiplied, flops);
  if (calls.p5() < least_us)
    throw std::runtime_error(
        fmt::format("{:.4g} us is impossible: {:.4g} flops take {:.4g} us at this GPU's highest clock",
                    calls.p5(), flops, least_us));
  const bool compute_bound = least_us > copies.median();
  const double limit_us = compute_bound ? least_us : copies.median();

  const Op* op = find_op(spec.function);
  json result = {{"op", op->name},
                 {"direction", op->direction},
                 {"variant", chosen},
                 {"backend", tiny_ ? "emulated" : "cuda"},
                 {"isa", queue_.isa()},
                 {"dtype", name(c.dtype)},
                 {"shape", c.shape},
                 {"layout", c.offset ? fmt::format("offset {}", c.offset) : std::string("contiguous")},
                 {"threads", 1},
                 {"cache", "cold"},
                 {"group", row.group},
                 {"n", calls.size()},
                 {"median_us", rounded(calls.median())},
                 {"p5_us", rounded(calls.p5())},
                 {"p95_us", rounded(calls.p95())},
                 {"floor_us", rounded(floor_us_)},
                 {"bytes", bytes},
                 {"flops", flops},
                 {"workspace_bytes", operands_->workspace().bytes},
                 {"peak_bytes", operands_->host().bytes() + operands_->workspace().bytes},
                 {"copy_us", rounded(copies.median())},
                 {"copy_p5_us", rounded(copies.p5())},
                 {"copy_p95_us", rounded(copies.p95())},
                 {"limit_us", rounded(limit_us)},
                 {"limit", compute_bound ? "rated flops" : "copy"},
                 {"of_limit", rounded(limit_us / calls.median())},
                 {"clock_mhz", nullptr},
                 {"power_w", nullptr},
                 {"throttled", nullptr},
                 {"peers", std::move(baseline_list)}};
  if (sensors.readings > 0) {
    result["clock_mhz"] = sensors.clock_mhz;
    result["power_w"] = rounded(sensors.power_w);
    result["throttled"] = sensors.throttled;
  }
  if (!c.parameters.empty()) result["parameters"] = c.parameters;
  if (!row.series.empty()) result["series"] = row.series;
  if (row.rung > 0) {
    result["rung"] = row.rung;
    for (const Variant& v : op->variants)
      if (chosen == v.name) result["title"] = v.idea;
  }
  return result;
}

}  // namespace rooftile::harness
