#include "rooftile/harness/bench/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rooftile/harness/bench/bench_data.h"

namespace rooftile::harness {
namespace {

constexpr double kFullMemory = 2147483648.0;  // a share of any machine's caches that nobody can doubt
constexpr int kReportOps = 2;                 // whose ladder and sweep the report measures

template <class T>
bool has(const std::vector<T>& list, const T& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

/// What a row is like of which no case is named: the op's first in a cache, else in memory.
Case first_case(const BenchCases& bench) {
  return !bench.cache.empty() ? bench.cache[0] : !bench.memory.empty() ? bench.memory[0] : Case{};
}

/// Cases of the wished dtypes; where the list holds none of one, its first case with that dtype, if the op
/// takes it.
std::vector<Case> wished(const Spec& spec, const std::vector<Case>& cases, const BenchOptions& options) {
  if (options.dtypes.empty()) return cases;
  std::vector<Case> kept;
  for (const DType dtype : options.dtypes) {
    const std::size_t before = kept.size();
    for (const Case& c : cases)
      if (c.dtype == dtype) kept.push_back(c);
    if (kept.size() > before || cases.empty() || !has(spec.dtypes, dtype)) continue;
    kept.push_back(cases.front());
    kept.back().dtype = dtype;
  }
  return kept;
}

std::vector<const Variant*> rungs_upwards(const Op& op) {
  std::vector<const Variant*> rungs;
  for (const Variant& v : op.variants)
    if (v.role == Role::rung) rungs.insert(rungs.begin(), &v);
  return rungs;
}

class Plan {
 public:
  Plan(const BenchOptions& options, const PlanOptions& machine) : options_(options), machine_(machine) {
    threads_ = options.threads;
    if (threads_.empty()) threads_ = {1, machine.all_threads};
    for (const int t : threads_)
      if (t < 1 || t > 4096) throw std::invalid_argument(fmt::format("threads is {}, must be 1 to 4096", t));
    std::sort(threads_.begin(), threads_.end());
    threads_.erase(std::unique(threads_.begin(), threads_.end()), threads_.end());
  }

  std::vector<BenchRow> rows() && { return std::move(rows_); }

  bool fits_caches(const Spec& spec, const Case& c) const {
    return spec.bytes(c) < 4 * static_cast<double>(machine_.last_level_bytes);
  }
  Case in_memory(const Spec& spec, const Case& c) const {
    const double cache = static_cast<double>(machine_.last_level_bytes);
    const double least = options_.scope == Scope::report ? 4 * cache : 8 * cache;  // a report's time is short
    return scale_memory(spec, c, options_.scope == Scope::full ? std::max(least, kFullMemory) : least);
  }

  /// One row for each number of threads; of the chosen variant, or of those asked for. The baselines run
  /// beside the first.
  void best(const Spec& spec, const Case& c, CacheState cache, bool in_memory) {
    best(spec, c, cache, in_memory, threads_);
  }
  void best(const Spec& spec, const Case& c, CacheState cache, bool in_memory,
            const std::vector<int>& each_of) {
    for (const std::string& isa : machine_.isas)
      for (const int threads : each_of) {
        BenchRow row{&spec, c, "", isa, threads, cache, in_memory, "best", 0, true};
        if (isa != machine_.isas.front()) row.group = "full";
        if (options_.variants.empty()) rows_.push_back(row);
        for (const std::string& variant : options_.variants) {
          row.variant = variant;
          row.group = "full";
          rows_.push_back(row);
          row.baselines = false;
        }
      }
  }

  /// The rungs and what the library does, all on one thread, so that each step is one idea; and what the
  /// library does on all threads.
  void ladder(const Spec& spec, const Op& op, const Case& c, CacheState cache, bool in_memory) {
    int rung = 0;
    const auto add = [&](const char* variant, int threads) {
      rows_.push_back(
          {&spec, c, variant, machine_.isas.front(), threads, cache, in_memory, "ladder", ++rung, false});
    };
    for (const Variant* v : rungs_upwards(op)) add(v->name, 1);
    if (rung == 0) return;
    add("", 1);
    if (threads_.back() > 1) add("", threads_.back());
  }

  void sweep(const Spec& spec, int threads) {
    for (const Case& c : wished(spec, spec.bench().sweep, options_))
      rows_.push_back(
          {&spec, c, "", machine_.isas.front(), threads, CacheState::kWarm, false, "sweep", 0, false});
  }

  /// Each size of a plot, in whatever cache it fits; the baselines run beside the first line.
  void series(const Spec& spec, const Op* op, const Case& c) {
    for (const std::string& isa : machine_.isas)
      for (const int threads : threads_) {
        bool first = true;
        for (const std::string& variant : lines(op, threads)) {
          BenchRow row{&spec, c, variant, isa, threads, CacheState::kWarm, false, "sweep", 0, first};
          row.series = series_name(variant, machine_.isas.size() > 1 ? isa : "");
          rows_.push_back(row);
          first = false;
        }
      }
  }

  /// The variants of a plot: those asked for; else the library's choice, and of Scope::full each beside it.
  std::vector<std::string> lines(const Op* op, int threads) const {
    if (!options_.variants.empty()) return options_.variants;
    std::vector<std::string> all = {""};
    if (op && options_.scope == Scope::full)
      for (const Variant& v : op->variants)
        if (v.role != Role::oracle && v.role != Role::gpu_rung && (v.role != Role::rung || threads == 1))
          all.emplace_back(v.name);
    return all;
  }

  /// What the library would not choose by itself: on all instruction sets, rungs where no ladder shows them.
  /// Not in memory: there the plainest would take minutes for 2 GiB.
  void others(const Spec& spec, const Op& op, const Case& c, CacheState cache, bool in_memory,
              bool in_ladder) {
    for (const std::string& isa : machine_.isas)
      for (const Variant& v : op.variants) {
        const bool shown = in_memory || (in_ladder && isa == machine_.isas.front());
        if (v.role == Role::oracle || v.role == Role::gpu_rung || (v.role == Role::rung && shown)) continue;
        for (const int threads : threads_)
          if (v.role != Role::rung || threads == 1)
            rows_.push_back({&spec, c, v.name, isa, threads, cache, in_memory, "full", 0, false});
      }
  }

  const std::vector<int>& threads() const { return threads_; }

 private:
  const BenchOptions& options_;
  const PlanOptions& machine_;
  std::vector<int> threads_;
  std::vector<BenchRow> rows_;
};

void check_names(const BenchOptions& options, const std::vector<Spec>& specs) {
  for (const std::string& name : options.functions)
    if (std::none_of(specs.begin(), specs.end(), [&](const Spec& s) { return name == s.function; }))
      throw std::invalid_argument(fmt::format("no op \"{}\"; `rooftile list` names those there are", name));
  for (const std::string& name : options.variants) {
    bool known = false;
    for (const Spec& spec : specs) {
      const Op* op = find_op(spec.function);
      if (!op || (!options.functions.empty() && !has(options.functions, std::string(spec.function))))
        continue;
      for (const Variant& v : op->variants) known = known || name == v.name;
    }
    if (!known)
      throw std::invalid_argument(
          fmt::format("no variant \"{}\"; `rooftile list` names those there are", name));
  }
}

}  // namespace

Case scale_memory(const Spec& spec, Case c, double bytes) {
  if (c.shape.empty() || c.shape[0] < 1) return c;
  // Twice, since weights and the like do not grow with the rows.
  for (int pass = 0; pass < 2; ++pass) {
    const double factor = bytes / std::max(spec.bytes(c), 1.0);
    c.shape[0] =
        std::max<std::int64_t>(1, std::llround(std::ceil(static_cast<double>(c.shape[0]) * factor - 1e-6)));
  }
  return c;
}

Case shaped(const Spec& spec, const Case& like, const Shape& shape, DType dtype) {
  if (shape.size() < like.shape.size())
    throw std::invalid_argument(fmt::format("{} takes {}; {} has {} sizes", spec.function, spec.axes,
                                            dimensions(shape), shape.size()));
  Case c = like;
  c.shape = shape;
  c.dtype = dtype;
  return c;
}

std::vector<DType> series_dtypes(const Spec& spec, const BenchOptions& options) {
  std::vector<DType> dtypes;
  if (!options.dtypes.empty()) {
    for (const DType dtype : options.dtypes)
      if (has(spec.dtypes, dtype) && !has(dtypes, dtype)) dtypes.push_back(dtype);
    return dtypes;
  }
  if (options.scope == Scope::full) return spec.dtypes;
  for (const Case& c : spec.bench().cache)
    if (!has(dtypes, c.dtype)) dtypes.push_back(c.dtype);
  return dtypes.empty() ? spec.dtypes : dtypes;
}

std::vector<Case> series_cases(const Spec& spec, DType dtype, const SeriesRange& range) {
  const BenchCases bench = spec.bench();
  std::vector<Case> cases;
  const auto add = [&](Case c) {
    const double bytes = spec.bytes(c);
    const bool larger = cases.empty() || bytes > spec.bytes(cases.back());
    if (larger && bytes <= range.most * 1.01) cases.push_back(std::move(c));
  };
  for (Case c : bench.sweep) {
    c.dtype = dtype;
    if (spec.bytes(c) >= range.least / 1.01) add(std::move(c));
  }
  if (!bench.sweep.empty()) return cases;
  Case like = first_case(bench);
  for (const Case& c : bench.cache)
    if (c.dtype == dtype) {  // with the fill that suits it
      like = c;
      break;
    }
  like.dtype = dtype;
  if (like.shape.empty()) return cases;
  for (double bytes = range.least; bytes <= range.most; bytes *= 2) add(scale_memory(spec, like, bytes));
  return cases;
}

std::string series_name(const std::string& variant, const std::string& isa) {
  return "rooftile" + (variant.empty() ? "" : " " + variant) + (isa.empty() ? "" : ", " + isa);
}

std::string describe(const BenchRow& row) {
  return fmt::format("{} {}{} {} {}, {} {}, {}", row.spec->function, row.variant,
                     row.variant.empty() ? row.isa : " " + row.isa, name(row.c.dtype),
                     dimensions(row.c.shape), row.threads, row.threads == 1 ? "thread" : "threads",
                     row.in_memory                    ? "in memory"
                     : row.cache == CacheState::kWarm ? "warm"
                                                      : "cold");
}

std::vector<BenchRow> plan_rows(const BenchOptions& options, const PlanOptions& machine,
                                const std::vector<Spec>& specs) {
  check_names(options, specs);
  Plan plan(options, machine);
  std::vector<std::pair<const Spec*, BenchCases>> chosen;
  for (const Spec& spec : specs)
    if (options.functions.empty() || has(options.functions, std::string(spec.function)))
      if (spec.bench) chosen.emplace_back(&spec, spec.bench());

  if (options.series) {
    for (const auto& [spec, cases] : chosen)
      for (const DType dtype : series_dtypes(*spec, options)) {
        std::vector<Case> sizes;
        if (options.shapes.empty()) sizes = series_cases(*spec, dtype, machine.series);
        for (const Shape& shape : options.shapes)
          sizes.push_back(shaped(*spec, first_case(cases), shape, dtype));
        for (const Case& c : sizes) plan.series(*spec, find_op(spec->function), c);
      }
    return std::move(plan).rows();
  }

  if (!options.shapes.empty()) {
    for (const auto& [spec, cases] : chosen) {
      const Case like = first_case(cases);
      for (const Shape& shape : options.shapes) {
        for (const DType dtype : options.dtypes.empty() ? spec->dtypes : options.dtypes) {
          const Case c = shaped(*spec, like, shape, dtype);
          if (!has(spec->dtypes, dtype)) continue;
          if (plan.fits_caches(*spec, c)) {
            plan.best(*spec, c, CacheState::kWarm, false);
            if (options.scope != Scope::report) plan.best(*spec, c, CacheState::kCold, false);
          } else {
            plan.best(*spec, c, CacheState::kCold, true);
          }
        }
      }
    }
    return std::move(plan).rows();
  }

  if (options.scope == Scope::report) {
    // The course's first op, and a copy beside it in the sweep.
    const auto place = [](const auto* one) {
      const std::string_view function = one->first->function;
      return function == "softmax" ? 0 : function == "copy" ? 1 : 2;
    };
    const auto first_of = [&](const auto& fits) {
      std::vector<const std::pair<const Spec*, BenchCases>*> some;
      for (const auto& one : chosen)
        if (fits(one)) some.push_back(&one);
      std::stable_sort(some.begin(), some.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
      some.resize(std::min<std::size_t>(some.size(), kReportOps));
      return some;
    };
    const bool only_named = !options.variants.empty();
    const auto climbed = first_of([&](const auto& one) {
      const Op* op = find_op(one.first->function);
      return !only_named && op && !rungs_upwards(*op).empty() && !one.second.cache.empty();
    });
    const auto swept = first_of([&](const auto& one) { return !only_named && !one.second.sweep.empty(); });

    for (const auto* one : climbed)
      plan.ladder(*one->first, *find_op(one->first->function), one->second.cache[0], CacheState::kWarm,
                  false);
    // In a cache on one thread, which takes half a second per row; then the sweep; last in memory on all
    // threads, where a row of a machine with a large last-level cache takes ten times as long.
    for (const auto& [spec, cases] : chosen)
      if (const std::vector<Case> list = wished(*spec, cases.cache, options); !list.empty())
        plan.best(*spec, list[0], CacheState::kWarm, false, {plan.threads().front()});
    for (const auto* one : swept) plan.sweep(*one->first, plan.threads().front());
    for (const auto& [spec, cases] : chosen)
      if (const std::vector<Case> list = wished(*spec, cases.memory, options); !list.empty())
        plan.best(*spec, plan.in_memory(*spec, list[0]), CacheState::kCold, true, {plan.threads().back()});
    for (const auto* one : climbed)
      if (!one->second.memory.empty())
        plan.ladder(*one->first, *find_op(one->first->function),
                    plan.in_memory(*one->first, one->second.memory[0]), CacheState::kCold, true);
    if (plan.threads().size() > 1)
      for (const auto* one : swept) plan.sweep(*one->first, plan.threads().back());
    return std::move(plan).rows();
  }

  const bool full = options.scope == Scope::full;
  for (const auto& [spec, cases] : chosen) {
    const Op* op = find_op(spec->function);
    const auto each = [&](const Case& c, CacheState cache, bool memory, bool in_ladder) {
      plan.best(*spec, c, cache, memory);
      if (full && op && options.variants.empty()) plan.others(*spec, *op, c, cache, memory, in_ladder);
    };
    const std::vector<Case> in_cache = wished(*spec, cases.cache, options);
    const std::vector<Case> in_memory = wished(*spec, cases.memory, options);
    for (const Case& c : in_cache) {
      each(c, CacheState::kWarm, false, &c == &in_cache[0]);
      each(c, CacheState::kCold, false, false);
    }
    for (const Case& c : in_memory) each(plan.in_memory(*spec, c), CacheState::kCold, true, false);
    if (!full || !options.variants.empty()) continue;
    if (op && !in_cache.empty()) plan.ladder(*spec, *op, in_cache[0], CacheState::kWarm, false);
    if (op && !in_memory.empty())
      plan.ladder(*spec, *op,
                  scale_memory(*spec, in_memory[0], 8 * static_cast<double>(machine.last_level_bytes)),
                  CacheState::kCold, true);
    for (const int threads : plan.threads()) plan.sweep(*spec, threads);
  }
  return std::move(plan).rows();
}

}  // namespace rooftile::harness
