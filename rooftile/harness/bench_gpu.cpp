#include "rooftile/harness/bench_gpu.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <optional>
#include <stdexcept>

#include "rooftile/core/queue_state.h"
#include "rooftile/harness/bench_data.h"
#include "rooftile/harness/runner.h"
#include "rooftile/harness/timing.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

constexpr std::size_t kFlushBytes = std::size_t{256} << 20;  // five times an H200's second-level cache
constexpr int kRounds = 40, kWarmUp = 5;

void require(const Status& status) {
  if (!status) throw std::runtime_error(status.message());
}

/// Memory on the queue's device.
class Buffer {
 public:
  Buffer(const Queue& queue, std::size_t bytes) : state_(queue.state()), bytes_(bytes) {
    require(device().allocate(state_.cuda, bytes, &memory_));
  }
  ~Buffer() { (void)device().release(state_.cuda, memory_).ok(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t bytes() const { return bytes_; }

 private:
  const DeviceFunctions& device() const { return *state_.backend->device; }
  const Queue::State& state_;
  void* memory_ = nullptr;
  std::size_t bytes_;
};

/// A case's operands on the device, `Case::offset` elements behind a boundary.
struct Operands {
  BenchData host;
  std::vector<std::unique_ptr<Buffer>> buffers;
  Arguments arguments;
  std::unique_ptr<Buffer> workspace;

  Operands(const Queue& queue, const Spec& spec, const Case& c) : host(spec, c) {
    const Queue::State& state = queue.state();
    for (const Placed& p : host.operands()) {
      const std::size_t behind = static_cast<std::size_t>(c.offset) * width_of(p.operand.dtype);
      buffers.push_back(std::make_unique<Buffer>(queue, p.bytes + behind));
      View view = p.view;
      view.data = buffers.back()->data() + behind;
      require(state.backend->device->copy(state.cuda, view.mutable_data(), p.view.data, p.bytes));
      arguments.add(p.operand.name, view);
    }
    std::size_t bytes = 0;
    if (spec.workspace) require(spec.workspace(queue, c, arguments, bytes));
    if (bytes) workspace = std::make_unique<Buffer>(queue, bytes);
  }
  Workspace space() const {
    return workspace ? Workspace{workspace->data(), workspace->bytes()} : Workspace{};
  }
  /// What the call wrote, in the host's memory.
  std::uint64_t fetch(const Queue& queue) {
    const Queue::State& state = queue.state();
    for (const Placed& p : host.operands())
      if (p.written())
        require(state.backend->device->copy(state.cuda, p.view.mutable_data(),
                                            arguments.out(p.operand.name).data, p.bytes));
    return host.hash();
  }
};

struct Copy {
  const Queue::State& state;
  void *to, *from;
  std::size_t bytes;
};
struct Call {
  const Queue& queue;
  const Spec& spec;
  const Case& c;
  const Arguments& arguments;
  const char* variant;
  Workspace workspace;
};

class Session {
 public:
  explicit Session(const Queue& queue) : queue_(queue), state_(queue.state()), flush_(queue, kFlushBytes) {}

  json row(const Spec& spec, const Case& c, const std::string& variant) {
    load(spec, c);
    const double bytes = spec.bytes(c);
    const auto half = static_cast<std::size_t>(bytes / 2);
    if (!copied_ || copied_->bytes() < 2 * half) {
      copied_.reset();
      copied_ = std::make_unique<Buffer>(queue_, 2 * half + 512);
    }
    const std::size_t second = (half + 255) / 256 * 256;
    Copy copy{state_, copied_->data() + second, copied_->data(), half};
    std::string chosen;
    queue_.set_observer({&chosen, [](void* context, const char*, const char* name, const char*) {
                           *static_cast<std::string*>(context) = name;
                         }});
    Call call{queue_,
              spec,
              c,
              operands_->arguments,
              variant.empty() ? nullptr : variant.c_str(),
              operands_->space()};
    require(run_call(&call));
    queue_.set_observer({});
    const std::uint64_t before = operands_->fetch(queue_);
    const Timed timed[] = {{run_copy, &copy}, {run_call, &call}};
    std::vector<float> us(2 * (kRounds + kWarmUp));
    require(state_.backend->device->time(state_.cuda, timed, 2, kRounds + kWarmUp, flush_.data(), kFlushBytes,
                                         us.data()));
    DeviceSensors sensors;
    const bool sensed = state_.backend->device->sense(state_.cuda, sensors).ok();
    if (!operands_->host.changes_inputs() && operands_->fetch(queue_) != before)
      throw std::runtime_error("its outputs changed while it was timed");
    if (const std::string sentence = operands_->host.not_finite(); !sentence.empty())
      throw std::runtime_error(sentence);
    Samples copies, calls;
    for (int round = kWarmUp; round < kRounds + kWarmUp; ++round) {
      copies.add(us[static_cast<std::size_t>(2 * round)]);
      calls.add(us[static_cast<std::size_t>(2 * round + 1)]);
    }
    const Op* op = find_op(spec.function);
    json shape = json::array();
    for (const std::int64_t size : c.shape) shape.push_back(size);
    json parameters = json::object();
    for (const auto& [name, value] : c.parameters) parameters[name] = value;
    json result = {{"op", op->name},
                   {"direction", op->direction},
                   {"variant", chosen},
                   {"backend", queue_.device() == Device::cuda ? "cuda" : "emulated"},
                   {"isa", queue_.isa()},
                   {"dtype", name(c.dtype)},
                   {"shape", shape},
                   {"parameters", parameters},
                   {"layout", c.offset ? fmt::format("offset {}", c.offset) : std::string("contiguous")},
                   {"threads", 1},
                   {"cache", "cold"},
                   {"group", "best"},
                   {"n", calls.size()},
                   {"median_us", calls.median()},
                   {"p5_us", calls.p5()},
                   {"p95_us", calls.p95()},
                   {"floor_us", 0},
                   {"bytes", bytes},
                   {"flops", spec.flops(c)},
                   {"workspace_bytes", operands_->workspace ? operands_->workspace->bytes() : 0},
                   {"copy_us", copies.median()},
                   {"limit_us", copies.median()},
                   {"limit", "copy"},
                   {"of_limit", copies.median() / calls.median()},
                   {"peers", json::array()}};
    if (sensed) {
      result["clock_mhz"] = sensors.clock_mhz;
      result["power_w"] = sensors.power_w;
      result["throttled"] = sensors.throttled;
    }
    return result;
  }

 private:
  static Status run_copy(void* context) {
    const Copy& it = *static_cast<Copy*>(context);
    return it.state.backend->device->copy_on_device(it.state.cuda, it.to, it.from, it.bytes);
  }
  static Status run_call(void* context) {
    const Call& it = *static_cast<Call*>(context);
    return it.spec.call(it.queue, it.c, it.arguments, it.variant, it.workspace);
  }
  void load(const Spec& spec, const Case& c) {
    std::string what =
        fmt::format("{} {} {} {}", spec.function, name(c.dtype), dimensions(c.shape), c.offset);
    for (const auto& [name, value] : c.parameters) what += fmt::format(" {}={}", name, value);
    if (what == loaded_) return;
    loaded_.clear();
    operands_.reset();
    operands_.emplace(queue_, spec, c);
    loaded_ = what;
  }

  Queue queue_;
  const Queue::State& state_;
  Buffer flush_;
  std::unique_ptr<Buffer> copied_;
  std::optional<Operands> operands_;
  std::string loaded_;
};

template <class List, class T>
bool wanted(const List& list, const T& item) {
  return list.empty() || std::find(list.begin(), list.end(), item) != list.end();
}

void as_rung(json& result, const Op& op, int rung) {
  result["group"] = "ladder";
  result["rung"] = rung;
  for (const Variant& v : op.variants)
    if (result["variant"] == v.name) result["title"] = v.idea;
}

}  // namespace

json bench_gpu(const BenchOptions& options, const Queue& queue) {
  require(queue.status());
  struct Row {
    const Spec* spec;
    Case c;
    std::string variant;
    int rung = 0;  // in a ladder, from 1
  };
  std::vector<Row> rows;
  for (const Spec& spec : all_specs()) {
    const Op* op = find_op(spec.function);
    if (!op || !wanted(options.functions, std::string(spec.function))) continue;
    std::vector<Case> cases = spec.bench().gpu;
    if (!options.shapes.empty() && !spec.bench().memory.empty()) {
      cases.clear();
      for (const Shape& shape : options.shapes)
        for (DType dtype : options.dtypes.empty() ? spec.dtypes : options.dtypes) {
          Case c = spec.bench().memory.front();
          c.shape = shape;
          c.dtype = dtype;
          cases.push_back(c);
        }
    }
    for (const Case& c : cases) {
      if (!wanted(options.dtypes, c.dtype)) continue;
      if (options.variants.empty()) rows.push_back({&spec, c, ""});
      for (std::size_t v = 0; v < op->variants.size(); ++v) {
        const Variant& variant = op->variants[v];
        const bool asked = !options.variants.empty() && wanted(options.variants, std::string(variant.name));
        if (asked && has_variant(queue, *op, v)) rows.push_back({&spec, c, variant.name});
      }
    }
    // The ladder, upwards, at the first case that rungs take: f32 where the op has it; on top the library.
    if (options.scope != Scope::full || !options.variants.empty()) continue;
    const auto plain = std::find_if(cases.begin(), cases.end(), [&](const Case& c) {
      return c.dtype == (wanted(spec.dtypes, DType::f32) ? DType::f32 : spec.dtypes.front()) &&
             wanted(options.dtypes, c.dtype);
    });
    if (plain == cases.end()) continue;
    int rung = 0;
    for (std::size_t v = op->variants.size(); v-- > 0;)
      if (op->variants[v].role == Role::gpu_rung && has_variant(queue, *op, v))
        rows.push_back({&spec, *plain, op->variants[v].name, ++rung});
    if (rung > 0) rows.push_back({&spec, *plain, "", ++rung});
  }
  json results = json::array(), errors = json::array(), notes = json::array();
  const std::int64_t start = now_ns();
  Session session(queue);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    if (options.cancel && *options.cancel) break;
    if (options.seconds > 0 && static_cast<double>(now_ns() - start) * 1e-9 > options.seconds) {
      notes.push_back(
          fmt::format("time was short: {} of {} rows were not measured", rows.size() - r, rows.size()));
      break;
    }
    const std::string what =
        fmt::format("{} {} {}", row.spec->function, name(row.c.dtype), dimensions(row.c.shape));
    if (options.progress)
      options.progress({static_cast<std::int64_t>(r), static_cast<std::int64_t>(rows.size()), what});
    try {
      results.push_back(session.row(*row.spec, row.c, row.variant));
      if (row.rung > 0) as_rung(results.back(), *find_op(row.spec->function), row.rung);
    } catch (const std::exception& e) {
      errors.push_back(fmt::format("{} {}: {}", what, row.variant, e.what()));
    }
  }
  return {{"schema", 1},
          {"rooftile", ROOFTILE_VERSION},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"command", options.command},
          {"machine", {{"device", queue.isa_reason()}, {"isa", queue.isa()}}},
          {"overheads", json::array()},
          {"results", std::move(results)},
          {"errors", std::move(errors)},
          {"notes", std::move(notes)}};
}

}  // namespace rooftile::harness
