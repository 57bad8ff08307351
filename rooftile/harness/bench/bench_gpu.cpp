#include "rooftile/harness/bench/bench_gpu.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <stdexcept>

#include "rooftile/harness/bench/bench_plan.h"
#include "rooftile/harness/bench/gpu_row.h"
#include "rooftile/harness/bench/timing.h"
#include "rooftile/harness/check/runner.h"
#include "rooftile/harness/gpu_cases.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;

template <class List, class T>
bool wanted(const List& list, const T& item) {
  return list.empty() || std::find(list.begin(), list.end(), item) != list.end();
}

/// As few rows as the emulated device, some 10,000 times slower than a GPU, runs at once.
Case made_tiny(Case c) {
  constexpr std::int64_t kElements = 4096;
  std::int64_t rest = 1;
  for (std::size_t d = 1; d < c.shape.size(); ++d) rest *= c.shape[d];
  c.shape[0] = std::min(c.shape[0], std::max<std::int64_t>(1, kElements / rest));
  return c;
}

std::vector<Case> cases_of(const Spec& spec, const BenchOptions& options, bool tiny) {
  const BenchCases bench = spec.bench();
  std::vector<Case> cases;
  if (options.shapes.empty()) {
    for (Case c : bench.gpu)
      if (wanted(options.dtypes, c.dtype)) cases.push_back(tiny ? made_tiny(std::move(c)) : std::move(c));
    return cases;
  }
  const Case like = !bench.gpu.empty() ? bench.gpu[0] : !bench.memory.empty() ? bench.memory[0] : Case{};
  for (const Shape& shape : options.shapes) {
    for (const DType dtype : options.dtypes.empty() ? spec.dtypes : options.dtypes) {
      Case c = shaped(spec, like, shape, dtype);
      if (wanted(spec.dtypes, dtype)) cases.push_back(std::move(c));
    }
  }
  return cases;
}

bool is_named(const Case& c) { return wanted(kNamedGpuRows, c.shape) || c.shape == Shape{8192, 8192}; }

/// The rungs, plainest first, and on top what the library does.
void add_ladder(const Queue& queue, const Spec& spec, const Op& op, const Case& c, std::size_t unit,
                std::vector<GpuRow>& rows) {
  int rung = 0;
  for (std::size_t v = op.variants.size(); v-- > 0;)
    if (op.variants[v].role == Role::gpu_rung && has_variant(queue, op, v))
      rows.push_back({&spec, c, op.variants[v].name, "ladder", ++rung, false, unit});
  if (rung > 0) rows.push_back({&spec, c, "", "ladder", ++rung, false, unit});
}

/// Each size of a plot; the baselines run beside the first line.
void add_series(const BenchOptions& options, const Queue& queue, const Spec& spec, const Op& op, bool tiny,
                std::size_t& unit, std::vector<GpuRow>& rows) {
  const SeriesRange range = tiny ? SeriesRange{2048, 32768} : SeriesRange{65536, 1073741824};
  std::vector<std::string> lines;
  if (options.variants.empty()) lines.emplace_back();
  for (std::size_t v = 0; v < op.variants.size(); ++v) {
    const bool asked = options.variants.empty()
                           ? options.scope == Scope::full && op.variants[v].role != Role::oracle
                           : wanted(options.variants, std::string(op.variants[v].name));
    if (asked && has_variant(queue, op, v)) lines.emplace_back(op.variants[v].name);
  }
  std::vector<Case> cases;
  if (!options.shapes.empty())
    cases = cases_of(spec, options, tiny);
  else
    for (const DType dtype : series_dtypes(spec, options))
      for (Case& c : series_cases(spec, dtype, range)) cases.push_back(std::move(c));
  for (const Case& c : cases) {
    for (const std::string& line : lines)
      rows.push_back(
          {&spec, c, line, "sweep", 0, false, unit, series_name(line, ""), &line == &lines.front()});
    ++unit;
  }
}

std::vector<GpuRow> plan(const BenchOptions& options, const Queue& queue) {
  const bool tiny = queue.device() == Device::emulated;
  std::vector<GpuRow> rows;
  std::size_t unit = 0;
  for (const Spec& spec : all_specs()) {
    const Op* op = find_op(spec.function);
    if (!op || !wanted(options.functions, std::string(spec.function))) continue;
    if (options.series) {
      add_series(options, queue, spec, *op, tiny, unit, rows);
      continue;
    }
    const std::vector<Case> cases = cases_of(spec, options, tiny);
    bool climbed = options.scope != Scope::full || !options.variants.empty();
    for (const Case& c : cases) {
      if (options.variants.empty()) rows.push_back({&spec, c, "", "best", 0, is_named(c), unit});
      for (std::size_t v = 0; v < op->variants.size(); ++v)
        if (!options.variants.empty() && wanted(options.variants, std::string(op->variants[v].name)) &&
            has_variant(queue, *op, v))
          rows.push_back({&spec, c, op->variants[v].name, "full", 0, false, unit});
      // One ladder, of the dtype that rungs take.
      if (!climbed && c.dtype == (wanted(spec.dtypes, DType::f32) ? DType::f32 : spec.dtypes.front())) {
        add_ladder(queue, spec, *op, c, unit, rows);
        climbed = true;
      }
      ++unit;
    }
  }
  const auto parts = static_cast<std::size_t>(options.parts),
             part = static_cast<std::size_t>(options.part - 1);
  std::erase_if(rows, [&](const GpuRow& row) { return row.unit % parts != part; });
  return rows;
}

/// What tells a record's results apart. A row that the library chose the variant of is not that variant's.
std::string key_of(const json& result) {
  const std::string group = result.value("group", "");
  json key = {group, result.value("rung", 0), group == "full" ? result.value("variant", "") : ""};
  for (const char* field : {"op", "direction", "dtype", "shape", "layout", "parameters", "series"})
    key.push_back(result.value(field, json()));
  return key.dump();
}
std::string key_of(const GpuRow& row) {
  const Op* op = find_op(row.spec->function);
  json result = {
      {"op", op->name},
      {"direction", op->direction},
      {"variant", row.variant},
      {"dtype", name(row.c.dtype)},
      {"shape", row.c.shape},
      {"layout", row.c.offset ? fmt::format("offset {}", row.c.offset) : std::string("contiguous")},
      {"group", row.group}};
  if (!row.c.parameters.empty()) result["parameters"] = row.c.parameters;
  if (row.rung > 0) result["rung"] = row.rung;
  if (!row.series.empty()) result["series"] = row.series;
  return key_of(result);
}

/// A sentence where two records are not of one machine and build; else empty.
std::string difference(const json& a, const json& b) {
  for (const auto& [field, what] : {std::pair{"device", "machine"}, {"isa", "architecture"}}) {
    const json x = a.value("machine", json::object()).value(field, json());
    const json y = b.value("machine", json::object()).value(field, json());
    if (x != y) return fmt::format("another {}: {} and {}", what, x.dump(), y.dump());
  }
  if (a.value("build", json()) != b.value("build", json()))
    return fmt::format("another build: {} and {}", a.value("build", json()).dump(),
                       b.value("build", json()).dump());
  return {};
}

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// "NVIDIA H200" of "device 0, NVIDIA H200: 132 multiprocessors, 139 GiB".
std::string gpu_of(const Queue& queue) {
  const std::string device = queue.isa_reason();
  const std::size_t comma = device.find(", "), colon = device.rfind(": ");
  return comma < colon && colon != device.npos ? device.substr(comma + 2, colon - comma - 2) : device;
}

/// Who runs when: rows of a session, results, and what is said of it.
class GpuRun {
 public:
  GpuRun(const BenchOptions& options, const Queue& queue) : options_(options), queue_(queue) {
    record_ = {{"schema", 1},
               {"rooftile", ROOFTILE_VERSION},
               {"date", utc_now()},
               {"command", options.command},
               {"machine", {{"device", queue.isa_reason()}, {"gpu", gpu_of(queue)}, {"isa", queue.isa()}}},
               {"build", build_of(queue)},
               {"runs", json::array()},
               {"overheads", json::array()},
               {"results", json::array()},
               {"errors", json::array()},
               {"notes", json::array()}};
    if (options.resumed.is_null()) return;
    if (const std::string other = difference(options.resumed, record_); !other.empty())
      throw std::runtime_error("the record to go on with is of " + other);
    for (const char* field : {"runs", "overheads", "results", "notes"})
      if (options.resumed.contains(field)) record_[field] = options.resumed[field];
    for (const json& result : record_["results"]) done_.insert(key_of(result));
  }

  json all() {
    std::vector<GpuRow> rows = plan(options_, queue_);
    if (rows.empty() && options_.parts == 1) throw std::invalid_argument(kNoCase);
    std::erase_if(rows, [&](const GpuRow& row) { return done_.contains(key_of(row)); });
    if (rows.empty()) {
      note("nothing was left to measure");
      return record_;
    }
    const std::int64_t start = now_ns();
    const auto seconds = [&] { return static_cast<double>(now_ns() - start) * 1e-9; };
    say(0, rows.size(), "baselines");
    const std::unique_ptr<GpuBaselines> baselines = start_baselines(rows);
    GpuSession session(queue_);
    if (record_["overheads"].empty()) record_["overheads"] = measure_gpu_overheads(queue_);
    begin_run(session);
    for (std::size_t r = 0; r < rows.size() && !cancelled(); ++r) {
      const GpuRow& row = rows[r];
      if (options_.seconds > 0 && seconds() > options_.seconds && r > 0) {
        note(fmt::format("time was short: {} of {} rows were not measured, the first of them {}",
                         rows.size() - r, rows.size(), describe(row)));
        break;
      }
      say(r, rows.size(), describe(row));
      measure(session, row, baselines.get());
      if (options_.save) options_.save(record_);
    }
    return record_;
  }

 private:
  bool cancelled() const { return options_.cancel && *options_.cancel; }
  void say(std::size_t done, std::size_t total, const std::string& what) const {
    if (options_.progress)
      options_.progress({static_cast<std::int64_t>(done), static_cast<std::int64_t>(total), what});
  }
  void note(const std::string& sentence) {
    json& notes = record_["notes"];
    if (std::find(notes.begin(), notes.end(), json(sentence)) == notes.end()) notes.push_back(sentence);
  }

  std::unique_ptr<GpuBaselines> start_baselines(const std::vector<GpuRow>& rows) {
    if (!options_.baselines || cancelled()) return nullptr;
    std::string why;
    auto baselines = GpuBaselines::start(options_.baselines_folder, options_.baseline_names,
                                         options_.versions, queue_.device() == Device::emulated, why);
    if (!baselines && why.empty())
      why = "python3 has no PyTorch that sees a GPU; ROOFTILE_PYTHON names another";
    if (!baselines && !options_.baseline_names.empty()) throw std::runtime_error(why);
    if (!baselines) note("baselines: " + why);
    if (!baselines) return nullptr;
    std::vector<GpuBaselineCase> cases;
    for (const GpuRow& row : rows)
      if (row.wants_baselines()) cases.push_back({row.spec, row.c, row.named});
    say(0, rows.size(), "compiling the baselines' kernels");
    baselines->warm(cases, options_.baseline_seconds);
    return baselines;
  }

  void begin_run(GpuSession& session) {
    run_ = utc_now();
    if (options_.parts > 1) run_ += fmt::format(" {}/{}", options_.part, options_.parts);
    record_["runs"].push_back({{"id", run_}, {"command", options_.command}, {"copies", session.copies()}});
  }

  void measure(GpuSession& session, const GpuRow& row, GpuBaselines* baselines) {
    try {
      json result = session.measure(row, row.wants_baselines() ? baselines : nullptr);
      result["run"] = run_;
      record_["results"].push_back(std::move(result));
    } catch (const std::exception& e) {
      if (row.group == "best" || row.group == "full")
        record_["errors"].push_back(fmt::format("{}: {}", describe(row), e.what()));
      else
        note(fmt::format("{}: {}", describe(row), e.what()));
    }
    if (baselines)
      for (const std::string& sentence : baselines->take_notes()) note(sentence);
  }

  const BenchOptions& options_;
  const Queue& queue_;
  json record_;
  std::set<std::string> done_;
  std::string run_;
};

}  // namespace

json bench_gpu(const BenchOptions& options, const Queue& queue) {
  require(queue.status());
  return GpuRun(options, queue).all();
}

json merge_parts(const std::vector<json>& parts) {
  json merged;
  std::set<std::string> seen;
  std::size_t again = 0;
  for (const json& part : parts) {
    const json results = part.value("results", json::array());
    if (merged.is_null()) {
      merged = part;
      merged["results"] = json::array();
    } else {
      if (const std::string other = difference(merged, part); !other.empty())
        throw std::runtime_error("these records are of " + other);
      for (const char* field : {"runs", "errors", "notes"})
        for (const json& one : part.value(field, json::array()))
          if (json& all = merged[field]; std::find(all.begin(), all.end(), one) == all.end())
            all.push_back(one);
      if (merged.value("overheads", json::array()).empty())
        merged["overheads"] = part.value("overheads", json::array());
    }
    for (const json& result : results) {
      if (seen.insert(key_of(result)).second)
        merged["results"].push_back(result);
      else
        ++again;
    }
  }
  if (again > 0)
    merged["notes"].push_back(fmt::format("{} results stood in several parts; the first counts", again));
  return merged;
}

}  // namespace rooftile::harness
