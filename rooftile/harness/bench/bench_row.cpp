#include "rooftile/harness/bench/bench_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "rooftile/harness/bench/timing.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

constexpr std::size_t kGap = (std::size_t{1} << 20) + 2048,
                      kGapFrom = std::size_t{4} << 20;  // as bench_data's
constexpr std::size_t kBytesWorthAThread =
    128 * 1024;  // as Roofs::copy(): moved, below it another costs more

// A ladder's last step, by which nothing changes but this.
constexpr const char* kAllThreads = "all threads";

/// Aligned memory for an op's workspace.
class Room {
 public:
  explicit Room(std::size_t bytes) : block_(bytes), bytes_(bytes) {
    if (bytes > 0 && block_.data() == nullptr)
      throw std::runtime_error(fmt::format("the system refused {} MiB for a workspace", bytes >> 20));
    if (bytes > 0) std::memset(block_.data(), 0xff, bytes);
  }
  Workspace workspace() const { return {block_.data(), bytes_}; }
  void flush() const { flush_range(block_.data(), bytes_); }

 private:
  MemoryBlock block_;
  std::size_t bytes_;
};

Status no_work(const void*, const void*) { return {}; }

/// Workers that sleep are awake after it.
void wake(const Queue& queue) {
  const CpuLaunch& launch = queue.state().launch;
  launch.parallel(
      launch.executor, launch.threads, [](void*, int) {}, nullptr);
}

std::string key_of(const BenchRow& row) {
  const Case& c = row.c;
  std::string key =
      fmt::format("{} {} {} {} {} {} {}", row.spec->function, dimensions(c.shape), static_cast<int>(c.dtype),
                  static_cast<int>(c.layout), static_cast<int>(c.fill), c.offset, c.in_place);
  for (const auto& [parameter, v] : c.parameters) key += fmt::format(" {}={}", parameter, v);
  return key;
}

/// A dot of f16 may be given in f64: it is the coarser one that says how far baselines may be apart.
DType coarser(DType output, DType input) {
  return is_floating(output) && is_floating(input) && bits(input) < bits(output) ? input : output;
}

double rounded(double v) {  // five digits: more is noise, and records are read by people, too
  return std::strtod(fmt::format("{:.5g}", v).c_str(), nullptr);
}

}  // namespace

struct WithoutKernels::Saved {
  Queue::State& state;
  const Backend* backend;
  Backend idle;
};
WithoutKernels::WithoutKernels(const Queue& queue)
    : saved_(new Saved{queue.state(), queue.state().backend, *queue.state().backend}) {
  for (PluginEntry& entry : saved_->idle.entries)
    if (entry.kernel) entry.kernel = no_work;
  saved_->state.backend = &saved_->idle;
}
WithoutKernels::~WithoutKernels() { saved_->state.backend = saved_->backend; }

BenchSession::BenchSession(Roofs& roofs, const Machine& machine, Baselines* baselines)
    : roofs_(roofs), machine_(machine), baselines_(baselines) {}

const Queue& BenchSession::queue(const std::string& isa, int threads) {
  const auto key = std::make_pair(isa, threads);
  auto found = queues_.find(key);
  if (found == queues_.end()) {
    CpuOptions options;
    options.threads = threads;
    options.isa = isa.empty() ? nullptr : isa.c_str();
    found = queues_.emplace(key, Queue::cpu(options)).first;
  }
  if (const Status status = found->second.status(); !status) throw std::runtime_error(status.message());
  return found->second;
}

void BenchSession::release_memory() {
  loaded_.clear();
  data_.reset();
  copied_ = MemoryBlock();
}

void BenchSession::load(const BenchRow& row) {
  const std::string key = key_of(row);
  if (key == loaded_) return;
  loaded_.clear();
  data_.reset();  // first, so that both never exist together
  data_ = std::make_unique<BenchData>(*row.spec, row.c);
  loaded_ = key;
}

Contender BenchSession::copy_contender(std::size_t bytes, int threads, bool fits, CacheState cache) {
  const std::size_t half = std::max<std::size_t>(bytes / 2, 1);
  const std::size_t to = (half + 63) / 64 * 64 + (half >= kGapFrom ? kGap : 0);
  if (copied_.bytes() < to + half) {
    copied_ = MemoryBlock();
    copied_ = MemoryBlock(to + half);
    if (copied_.data() == nullptr)
      throw std::runtime_error(fmt::format("the system refused {} MiB for the copy beside it", bytes >> 20));
    std::vector<char> pattern(65521);  // not zeros: on some machines they go to memory twice as fast
    for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<char>(i * 167 + i / 256);
    repeat(copied_.data(), copied_.bytes(), pattern);
  }
  const auto worth = static_cast<int>(std::clamp<std::size_t>(bytes / kBytesWorthAThread, 1, 4096));
  const int used = std::min(worth, threads);
  std::unique_ptr<ThreadPool>& pool = pools_[used];
  if (!pool) pool = std::make_unique<ThreadPool>(used);
  char* const src = copied_.data();
  char* const dst = src + to;
  const Roof& roof = roofs_.roof(Traffic::kCopy, std::min(bytes, roofs_.memory_footprint()), used, cache);
  MemoryKernel kernel = roof.kernel;
  ThreadPool* const team = pool.get();
  // The contest had other buffers: in cache, the finalists run again on these, whose places matter.
  if (fits && cache == CacheState::kWarm) {
    const int rounds =
        static_cast<int>(std::clamp<std::size_t>((std::size_t{4} << 20) / (half + 1), 1, 20000));
    double best = 0;
    for (int attempt = 0; attempt < 3; ++attempt)
      for (const MemoryKernel& rival : roof.finalists) {
        run_split(rival, *team, dst, src, half);
        const std::int64_t start = now_ns();
        for (int i = 0; i < rounds; ++i) run_split(rival, *team, dst, src, half);
        const double ns = static_cast<double>(now_ns() - start);
        if (best == 0 || ns < best) best = ns, kernel = rival;
      }
  }
  Contender copy;
  copy.name = kernel.name;
  copy.prepare = [=] {
    if (!fits) return;
    if (cache == CacheState::kWarm) return run_split(kernel, *team, dst, src, half);
    flush_range(src, half);
    flush_range(dst, half);
    team->run([](int) {});
  };
  copy.time = [=](int calls) {
    const std::int64_t start = now_ns();
    for (int i = 0; i < calls; ++i) run_split(kernel, *team, dst, src, half);
    return static_cast<double>(now_ns() - start) * 1e-9;
  };
  return copy;
}

/// The baselines whose values agree with the kernel's, which data_ holds.
std::vector<std::unique_ptr<BaselineCall>> BenchSession::baselines_of(const BenchRow& row) {
  std::vector<std::unique_ptr<BaselineCall>> agreeing;
  if (!baselines_ || !row.baselines) return agreeing;
  std::vector<std::vector<double>> ours;
  std::vector<const Placed*> outputs;
  for (std::size_t i = 0; i < data_->operands().size(); ++i) {
    if (!data_->operands()[i].written()) continue;
    ours.push_back(data_->sample(i));
    outputs.push_back(&data_->operands()[i]);
  }
  for (auto& baseline : baselines_->calls(*row.spec, row.c, *data_, row.threads)) {
    const std::vector<std::vector<double>> theirs = baseline->results();
    const std::string which = fmt::format("{} is left out of {}", baseline->name, describe(row));
    if (theirs.size() != ours.size() ||
        std::all_of(theirs.begin(), theirs.end(), [](auto& v) { return v.empty(); })) {
      baselines_->note(which + ": it gave no results");
      continue;
    }
    std::string why;
    for (std::size_t i = 0; i < ours.size() && why.empty(); ++i)
      if (why = disagreement(ours[i], theirs[i], coarser(outputs[i]->operand.dtype, row.c.dtype));
          !why.empty())
        why = fmt::format("{}: its {} {}", which, outputs[i]->operand.name, why);
    if (why.empty())
      agreeing.push_back(std::move(baseline));
    else
      baselines_->note(why);
  }
  return agreeing;
}

std::string impossible(Roofs& roofs, double bytes, double flops, double seconds, std::size_t footprint,
                       DType dtype, int threads) {
  if (bytes > 0 && roofs.too_fast(bytes, seconds, footprint, threads))
    return fmt::format(
        "{:.4g} us is impossible: {:.4g} bytes would have moved at {:.4g} GB/s, the best rate measured "
        "at that size is {:.4g}",
        seconds * 1e6, bytes, bytes / std::max(seconds, 1e-12) * 1e-9, roofs.best_rate(footprint, threads));
  if (flops > 0 && is_floating(dtype) && roofs.too_many_flops(flops, seconds, name(dtype), threads))
    return fmt::format(
        "{:.4g} us is impossible: {:.4g} flops would have run at {:.4g} GFLOP/s, the peak is {:.4g}",
        seconds * 1e6, flops, flops / std::max(seconds, 1e-12) * 1e-9,
        roofs.flops_limit(name(dtype), threads));
  return {};
}

/// The longer of two times: the copy's that took turns with the row (where next to nothing is written, faster
/// by what a read gains over a copy), and the arithmetic's at the peak. `least_bytes`: what must pass; less
/// than `bytes` where one pays for reading and writing.
BenchSession::Limit BenchSession::limit_of(const BenchRow& row, const BenchData& data, double bytes,
                                           double least_bytes, double flops, double copy_us) {
  const auto footprint = static_cast<std::size_t>(bytes);
  const std::size_t measured = std::min(footprint, roofs_.memory_footprint());  // beyond, it is all memory
  const bool cold = row.cache == CacheState::kCold;
  const CacheState state = cold && !row.in_memory ? CacheState::kCold : CacheState::kWarm;
  double gbs = copy_us > 0 ? bytes / copy_us * 1e-3 : 0, written = 0;
  for (const Placed& placed : data.operands())
    if (placed.written()) written += static_cast<double>(placed.bytes);
  if (written < bytes / 8) {
    const double copies = roofs_.roof(Traffic::kCopy, measured, row.threads, state).gbs;
    const double reads = roofs_.roof(Traffic::kRead, measured, row.threads, state).gbs;
    if (copies > 0) gbs *= std::max(1.0, reads / copies);
  }
  Limit limit{gbs > 0 ? least_bytes / gbs * 1e-3 : 0, "memory"};
  if (!cold) {
    for (const Cache& cache : machine_.caches) {
      if (cache.kind == "instruction") continue;
      const auto instances =
          static_cast<std::size_t>((row.threads + cache.shared_by - 1) / std::max(cache.shared_by, 1));
      if (footprint > cache.usable_bytes() * instances) continue;
      limit.name = "L" + std::to_string(cache.level);
      break;
    }
  }
  if (flops > 0 && is_floating(row.c.dtype)) {
    const double us = flops / roofs_.fma_peak(name(row.c.dtype), row.threads) * 1e-3;
    if (us > limit.us) limit = {us, "fma"};
  }
  return limit;
}

Outcome BenchSession::measure(const BenchRow& row, double seconds, int most_samples,
                              const std::atomic<bool>* cancel) {
  const Spec& spec = *row.spec;
  const auto failed = [&](const std::string& why) -> Outcome { return {{}, describe(row) + ": " + why, {}}; };
  try {
    const Op* op = find_op(spec.function);
    Queue run_on = queue(row.isa, row.threads);
    load(row);
    BenchData& data = *data_;
    const Arguments& arguments = data.arguments();
    std::size_t workspace_bytes = 0;
    if (spec.workspace)
      if (const Status s = spec.workspace(run_on, row.c, arguments, workspace_bytes); !s)
        return failed(s.message());
    const Room room(workspace_bytes);
    const char* variant = row.variant.empty() ? nullptr : row.variant.c_str();
    const auto call = [&] { return spec.call(run_on, row.c, arguments, variant, room.workspace()); };

    // Untimed, over two different poisons: equal outputs were written whole, and twice the same.
    std::string chosen = row.variant;
    run_on.set_observer({&chosen, [](void* name, const char*, const char* v, const char*) {
                           *static_cast<std::string*>(name) = v;
                         }});
    data.refill();
    data.poison(0x5a);
    const Status first = call();
    run_on.set_observer({});
    if (!first) {
      if (!row.variant.empty()) return {{}, {}, describe(row) + ": " + first.message()};
      return failed(first.message());
    }
    const std::uint64_t expected = data.hash();
    data.refill();
    data.poison(0xff);
    if (const Status s = call(); !s) return failed(s.message());
    if (data.hash() != expected)
      return failed("two runs gave different outputs, or an output was not written whole");
    if (const std::string why = data.not_finite(); !why.empty()) return failed(why);

    const double bytes = spec.bytes ? spec.bytes(row.c) : 0, flops = spec.flops ? spec.flops(row.c) : 0;
    const bool cold = row.cache == CacheState::kCold && !row.in_memory;
    const CacheState cache = cold ? CacheState::kCold : CacheState::kWarm;
    const bool fits =
        bytes < 2 * static_cast<double>(last_level_cache_bytes());  // else a warm-up would warm nothing

    std::vector<std::unique_ptr<BaselineCall>> baselines = baselines_of(row);
    std::vector<Contender> race_of;
    race_of.push_back(
        copy_contender(static_cast<std::size_t>(std::max(bytes, 2.0)), row.threads, fits || cold, cache));
    for (const auto& baseline : baselines) {
      Contender contender;
      contender.name = baseline->name;
      contender.optional = true;
      contender.prepare = [&baseline, fits, cold, cache] {
        if (fits || cold) baseline->prepare(cache);
      };
      contender.time = [&baseline](int calls) { return baseline->time(calls); };
      race_of.push_back(std::move(contender));
    }
    Contender kernel;
    kernel.name = chosen;
    kernel.prepare = [&] {
      if (cold) {
        data.flush();
        room.flush();
        wake(run_on);
      } else if (fits) {
        (void)call().ok();
      }
    };
    kernel.time = [&](int calls) {
      const std::int64_t start = now_ns();
      for (int i = 0; i < calls; ++i) (void)call().ok();
      return static_cast<double>(now_ns() - start) * 1e-9;
    };
    race_of.push_back(std::move(kernel));

    RaceOptions rules;
    rules.seconds = seconds;
    rules.most = most_samples;
    rules.repeat = !cold;
    rules.cancel = cancel;
    if (row.threads > 1) {
      // Spinning workers of one contender would hold the next one's cores: ours for 50 us, the copy's 50,
      // OpenMP's 600.
      const auto pause = std::chrono::microseconds(baselines.empty() ? 150 : 1200);
      rules.rest = [pause] { std::this_thread::sleep_for(pause); };
    }
    if (data.changes_inputs()) data.refill();
    race(race_of, rules);
    if (cancel && cancel->load()) return {{}, {}, {}, true};
    const Contender& copy = race_of.front();
    const Contender& ours = race_of.back();
    if (data.changes_inputs()) {  // the race ran over and over on the same data; what counts is one run again
      data.refill();
      if (const Status s = call(); !s) return failed(s.message());
    }
    if (data.hash() != expected) return failed("the outputs changed while it was timed");
    // In cache a copy reads what it overwrites, too, which counts for nothing; who updates in place is spared
    // that, and writes back while it reads on (an axpby in L2 passed the best rate by 12%). So there such
    // bytes count once.
    const double least_bytes =
        data.changes_inputs() && fits ? std::min(bytes, static_cast<double>(data.bytes())) : bytes;
    // The copy beside it is a rate measured, too; where it bounds the time there is nothing to ask the roofs
    // for.
    const bool like_copy = bytes > 0 && ours.us.p5() >= 0.9 * copy.us.min();
    const auto footprint =
        std::min(static_cast<std::size_t>(std::max(bytes, 1.0)), roofs_.memory_footprint());
    if (const std::string why = impossible(roofs_, like_copy ? 0 : least_bytes, flops, ours.us.p5() * 1e-6,
                                           footprint, row.c.dtype, row.threads);
        !why.empty())
      return failed(why);

    // The rest of a call: the harness's own way to the function, its checks, dispatch; and the clock.
    Samples floor;
    {
      const WithoutKernels without(run_on);
      for (int i = 0; i < 15; ++i) floor.add(ours.time(100) * 1e6 / 100);
    }
    const double copy_us = copy.us.median();
    const Limit limit = limit_of(row, data, bytes, least_bytes, flops, copy_us);
    json baseline_list = json::array();
    for (std::size_t i = 0; i < baselines.size(); ++i) {
      const Samples& us = race_of[i + 1].us;
      if (us.min() <= 0) {
        baselines_->note(fmt::format("{} is left out of {}: it failed while it was timed", baselines[i]->name,
                                     describe(row)));
        continue;
      }
      baseline_list.push_back({{"name", baselines[i]->name},
                               {"version", baselines[i]->version},
                               {"median_us", rounded(us.median())},
                               {"p5_us", rounded(us.p5())},
                               {"p95_us", rounded(us.p95())},
                               {"call_us", rounded(baselines[i]->call_us)}});
    }
    const double mhz = clock_mhz();
    json result = {{"op", op ? op->name : spec.function},
                   {"direction", op ? op->direction : "forward"},
                   {"variant", chosen},
                   {"backend", "cpu"},
                   {"isa", run_on.isa()},
                   {"dtype", name(row.c.dtype)},
                   {"shape", row.c.shape},
                   {"layout", row.c.layout == Layout::offset ? "offset" : "contiguous"},
                   {"threads", row.threads},
                   {"cache", row.cache == CacheState::kCold ? "cold" : "warm"},
                   {"n", ours.us.size()},
                   {"median_us", rounded(ours.us.median())},
                   {"p5_us", rounded(ours.us.p5())},
                   {"p95_us", rounded(ours.us.p95())},
                   {"floor_us", rounded(floor.median() + clock_floor_ns() * 1e-3 / ours.calls)},
                   {"bytes", bytes},
                   {"flops", flops},
                   {"workspace_bytes", workspace_bytes},
                   {"peak_bytes", data.bytes() + workspace_bytes},
                   {"copy_us", rounded(copy_us)},
                   {"copy_p5_us", rounded(copy.us.p5())},
                   {"copy_p95_us", rounded(copy.us.p95())},
                   {"copy_kernel", copy.name},
                   {"limit_us", rounded(limit.us)},
                   {"limit", limit.name},
                   {"of_limit", rounded(limit.us / std::max(ours.us.median(), 1e-6))},
                   {"clock_mhz", mhz > 0 ? json(rounded(mhz)) : json()},
                   {"power_w", nullptr},
                   {"throttled", nullptr},
                   {"group", row.group},
                   {"peers", baseline_list}};
    if (!row.c.parameters.empty()) result["parameters"] = row.c.parameters;
    if (row.rung > 0) result["rung"] = row.rung;
    if (!row.series.empty()) result["series"] = row.series;
    if (op)
      for (const Variant& v : op->variants)
        if (row.rung > 0 && chosen == v.name) result["title"] = row.threads > 1 ? kAllThreads : v.idea;
    return {std::move(result), {}, {}};
  } catch (const std::exception& error) {
    loaded_.clear();
    return failed(error.what());
  }
}

}  // namespace rooftile::harness
