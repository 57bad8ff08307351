#include "rooftile/harness/bench/gpu_baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace rooftile::harness {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Compiling and tuning one case's kernels took up to 40 s on 2 cores; who needs longer hangs.
constexpr int kPrepareSeconds = 240, kTimeSeconds = 120;
constexpr const char* kLacking = "no PyTorch that sees a GPU";

json case_json(const GpuBaselineCase& it, const BenchData* data) {
  return case_json(*it.spec, it.c, operands_json(*it.spec, it.spec->operands(it.c), data, it.c.offset),
                   {{"named", it.named}});
}

std::vector<double> numbers(const json& list) {
  std::vector<double> all;
  for (const json& v : list) all.push_back(v.is_number() ? v.get<double>() : std::nan(""));
  return all;
}

/// A dot of f16 may be given in f64: it is the coarser one that says how far baselines may be apart.
DType coarser(DType output, DType input) {
  return is_floating(output) && is_floating(input) && bits(input) < bits(output) ? input : output;
}

}  // namespace

std::unique_ptr<GpuBaselines> GpuBaselines::start(const std::string& folder, std::vector<std::string> only,
                                                  bool versions, bool on_cpu, std::string& why) {
  bool named = false;
  const fs::path place = baselines_place(folder, named);
  std::unique_ptr<GpuBaselines> baselines(new GpuBaselines);
  std::error_code error;
  if (fs::exists(place / "gpu_baselines.py", error))
    baselines->words_ = {(place / "gpu_baselines.py").string(), on_cpu ? "cpu" : "cuda"};
  if (versions && !baselines->words_.empty()) baselines->words_.emplace_back("--versions");
  if (baselines->words_.empty()) {
    if (named) why = fmt::format("{} holds no gpu_baselines.py", place.string());
    return nullptr;
  }
  baselines->python_ = PythonBaselines::start(baselines->words_, why, kLacking);
  if (!baselines->python_) return nullptr;
  std::vector<std::string> there;
  for (const json& baseline : baselines->python_->hello()["peers"])
    there.push_back(baseline.value("name", ""));
  check_baselines(only, there);
  for (const std::string& baseline : there)
    if (!only.empty() && is_wanted(baseline, only)) baselines->only_.push_back(baseline);
  return baselines;
}

void GpuBaselines::note(const std::string& sentence) {
  if (std::find(said_.begin(), said_.end(), sentence) != said_.end()) return;
  said_.push_back(sentence);
  notes_.push_back(sentence);
}

std::vector<std::string> GpuBaselines::take_notes() { return std::exchange(notes_, {}); }

json GpuBaselines::ask(json request, int seconds) {
  if (!python_ || !python_->alive()) {
    if (starts_left_-- <= 0) return {{"error", "the Python process ended too often"}};
    std::string why;
    python_ = PythonBaselines::start(words_, why, kLacking);
    if (!python_) return {{"error", why.empty() ? "the Python process cannot be started again" : why}};
  }
  return python_->ask(request, seconds);
}

void GpuBaselines::warm(const std::vector<GpuBaselineCase>& cases, double seconds) {
  if (cases.empty() || seconds <= 0) return;
  json list = json::array();
  for (const GpuBaselineCase& it : cases) list.push_back(case_json(it, nullptr));
  const json answer = ask({{"command", "warm"}, {"cases", list}, {"only", only_}, {"seconds", seconds}},
                          static_cast<int>(seconds) + 30);
  if (answer.contains("error"))
    note("baselines: " + answer["error"].get<std::string>());
  else if (const std::size_t warmed = answer.value("warmed", std::size_t{0}); warmed < cases.size())
    note(fmt::format("baselines: {} of {} cases were compiled ahead within {:.0f} s", warmed, cases.size(),
                     seconds));
}

void GpuBaselines::prepare(const GpuBaselineCase& it, const BenchData& data,
                           const std::vector<std::vector<double>>& ours, std::size_t copy_bytes) {
  calls_.clear();
  copy_.clear();
  sensed_ = json::object();
  json request = case_json(it, &data);
  request["command"] = "prepare";
  request["only"] = only_;
  request["sampled"] = BenchData::kSampled;
  request["copy_bytes"] = copy_bytes;
  const json answer = ask(std::move(request), kPrepareSeconds);
  const std::string what =
      fmt::format("{} {} {}", it.spec->function, name(it.c.dtype), dimensions(it.c.shape));
  if (answer.contains("error"))
    note(fmt::format("baselines are left out of {}: {}", what, answer["error"].dump()));
  for (const json& error : answer.value("errors", json::array()))
    note(fmt::format("{} ({})", error.get<std::string>(), what));
  std::vector<const Placed*> outputs;
  for (const Placed& p : data.operands())
    if (p.written()) outputs.push_back(&p);
  for (const json& one : answer.value("calls", json::array())) {
    Call call{one.value("name", ""), one.value("version", ""), one.value("way", ""), {}};
    const json results = one.value("results", json::array());
    std::string why;
    bool any = false;
    for (std::size_t i = 0; i < std::min(results.size(), outputs.size()) && why.empty(); ++i) {
      const std::vector<double> theirs = numbers(results[i]);
      any = any || !theirs.empty();
      const DType type = coarser(outputs[i]->operand.dtype, it.c.dtype);
      if (why = disagreement(ours[i], theirs, type); !why.empty())
        why = fmt::format("{} is left out of {}: its {} {}", call.name, what, outputs[i]->operand.name, why);
    }
    if (why.empty() && !any) why = fmt::format("{} is left out of {}: it gave no results", call.name, what);
    if (why.empty())
      calls_.push_back(std::move(call));
    else
      note(why);
  }
}

void GpuBaselines::time(int rounds, int warm_up) {
  if (calls_.empty()) return;
  json names = json::array();
  for (const Call& call : calls_) names.push_back(call.name);
  const json answer =
      ask({{"command", "time"}, {"names", names}, {"rounds", rounds}, {"warm_up", warm_up}}, kTimeSeconds);
  if (answer.contains("error")) {
    note(fmt::format("baselines: {}", answer["error"].get<std::string>()));
    calls_.clear();
    return;
  }
  for (const double us : numbers(answer.value("copy", json::array()))) copy_.add(us);
  const json times = answer.value("calls", json::object());
  for (Call& call : calls_)
    for (const double us : numbers(times.value(call.name, json::array()))) call.us.add(us);
  for (const char* sensor : {"clock_mhz", "power_w"})
    if (answer.contains(sensor)) sensed_[sensor] = answer[sensor];
  if (answer.contains("throttled"))
    sensed_["throttled"] = sensed_.value("throttled", false) || answer["throttled"].get<bool>();
}

json GpuBaselines::results() {
  json list = json::array();
  for (const Call& call : calls_) {
    if (call.us.size() == 0 || call.us.min() <= 0) continue;
    json one = {{"name", call.name},
                {"version", call.version},
                {"way", call.way},
                {"n", call.us.size()},
                {"median_us", call.us.median()},
                {"p5_us", call.us.p5()},
                {"p95_us", call.us.p95()},
                {"copy_us", copy_.median()},
                {"of_copy", copy_.median() / call.us.median()}};
    one.update(sensed_);
    list.push_back(std::move(one));
  }
  if (!calls_.empty()) (void)ask({{"command", "release"}}, kTimeSeconds);
  calls_.clear();
  return list;
}

}  // namespace rooftile::harness
