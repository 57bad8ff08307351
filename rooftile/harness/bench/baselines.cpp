#include "rooftile/harness/bench/baselines.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "bench/baselines/baseline.h"
#include "rooftile/harness/bench/python_baselines.h"
#include "rooftile/harness/bench/timing.h"

namespace rooftile::harness {

namespace fs = std::filesystem;

class LibraryBaseline {
 public:
  explicit LibraryBaseline(const RooftileBaseline* found) : table(found) {}
  const RooftileBaseline* const table;
};

namespace {

class LibraryCall : public BaselineCall {
 public:
  LibraryCall(const RooftileBaseline* table, void* call, BenchData& data, int threads)
      : table_(table), call_(call), data_(data), threads_(threads) {
    name = table->name;
    version = table->library_version;
  }
  ~LibraryCall() override { table_->release(call_); }

  void prepare(CacheState cache) override {
    if (cache == CacheState::kWarm) {
      table_->run(call_, 1);
    } else {
      data_.flush();
      table_->wake(threads_);
    }
  }
  double time(int calls) override {
    const std::int64_t start = now_ns();
    const bool failed = table_->run(call_, calls) != 0;
    return failed ? 0 : static_cast<double>(now_ns() - start) * 1e-9;
  }
  std::vector<std::vector<double>> results() override {
    data_.refill();
    data_.poison(0xff);  // what stays NaN was not written
    std::vector<std::vector<double>> all;
    if (table_->run(call_, 1) != 0) return all;
    for (std::size_t i = 0; i < data_.operands().size(); ++i) {
      if (!data_.operands()[i].written()) continue;
      std::vector<double> values = data_.sample(i);
      if (std::all_of(values.begin(), values.end(), [](double v) { return std::isnan(v); })) values.clear();
      all.push_back(std::move(values));
    }
    return all;
  }

 private:
  const RooftileBaseline* table_;
  void* call_;
  BenchData& data_;
  int threads_;
};

std::unique_ptr<LibraryBaseline> load(const fs::path& path, std::string& why) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = dlerror();
    why = fmt::format("{} cannot be loaded: {}", path.string(), error ? error : "unknown reason");
    return nullptr;
  }
  const auto function = reinterpret_cast<RooftileBaselineFunction>(dlsym(handle, ROOFTILE_BASELINE_SYMBOL));
  const RooftileBaseline* table = function ? function() : nullptr;
  if (table != nullptr && table->version == ROOFTILE_BASELINE_VERSION)
    return std::make_unique<LibraryBaseline>(table);
  why = table ? fmt::format("{} is a baseline of version {}, this bench needs {}", path.string(),
                            table->version, ROOFTILE_BASELINE_VERSION)
              : fmt::format("{} is a shared library, but no baseline (no symbol {})", path.string(),
                            ROOFTILE_BASELINE_SYMBOL);
  dlclose(handle);
  return nullptr;
}

}  // namespace

std::string library_folder() {
  Dl_info info;
  // Any symbol of the library will do.
  if (dladdr(reinterpret_cast<const void*>(&Queue::cpu), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string folder = fs::path(info.dli_fname).parent_path().string();
  return folder.empty() ? "." : folder;
}

fs::path baselines_place(const std::string& folder, bool& named) {
  const char* environment = std::getenv("ROOFTILE_BASELINES");
  if (environment == nullptr) environment = std::getenv("ROOFTILE_PEERS");  // its name of before
  named = !folder.empty() || (environment != nullptr && *environment != '\0');
  if (named) return !folder.empty() ? folder : environment;
  return fs::path(library_folder()) / "rooftile-baselines";
}

Baselines::Baselines(const std::string& folder, std::vector<std::string> only, bool versions)
    : only_(std::move(only)) {
  bool named = false;
  const fs::path place = baselines_place(folder, named);
  std::error_code error;
  if (named && !fs::is_directory(place, error)) {
    note(fmt::format("baselines: {} is no folder", place.string()));
    check_baselines(only_, {});
    return;
  }
  // OpenMP's threads spin for 10 ms after each region by default, on cores that the next contender needs; now
  // for about 0.5 ms, which still bridges the gap between two calls. Read when the library is loaded.
  setenv("GOMP_SPINCOUNT", "20000", 0);
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with("rooftile-baseline-") && file.ends_with(".so")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& path : found) {
    std::string why;
    if (auto library = load(path, why))
      libraries_.push_back(std::move(library));
    else
      note("baselines: " + why);
  }
  if (fs::exists(place / "baselines.py", error)) {
    std::vector<std::string> words = {(place / "baselines.py").string()};
    if (versions) words.emplace_back("--versions");
    std::string why;
    python_ = PythonBaselines::start(words, why);
    if (!why.empty()) note("baselines: " + why);
  }
  std::vector<std::string> here;
  for (const auto& library : libraries_) here.emplace_back(library->table->name);
  if (python_)
    for (const nlohmann::json& baseline : python_->hello()["peers"])
      here.push_back(baseline.value("name", ""));
  check_baselines(only_, here);
}

Baselines::~Baselines() = default;

void Baselines::note(const std::string& sentence) {
  if (said_.insert(sentence).second) notes_.push_back(sentence);
}

std::vector<std::unique_ptr<BaselineCall>> Baselines::calls(const Spec& spec, const Case& c, BenchData& data,
                                                            int threads) {
  std::vector<std::unique_ptr<BaselineCall>> all;
  std::vector<RooftileBaselineOperand> operands;
  for (const Placed& p : data.operands())
    operands.push_back({p.operand.name, p.written(), rooftile::name(p.operand.dtype), p.view.rank,
                        p.view.shape, p.view.mutable_data()});
  std::vector<const char*> names;
  std::vector<double> values;
  for (const auto& [parameter, v] : c.parameters) {
    names.push_back(parameter.c_str());
    values.push_back(v);
  }
  const RooftileBaselineCase asked{spec.function,   static_cast<int>(operands.size()),
                                   operands.data(), static_cast<int>(names.size()),
                                   names.data(),    values.data(),
                                   threads};
  for (const auto& library : libraries_) {
    char why[400] = "";
    if (void* call = library->table->prepare(&asked, why, sizeof why))
      all.push_back(std::make_unique<LibraryCall>(library->table, call, data, threads));
    else if (*why)
      note(fmt::format("{} is left out of {} {}: {}", library->table->name, spec.function,
                       rooftile::name(c.dtype), why));
  }
  if (python_) {
    std::string why;
    for (auto& call : python_->calls(spec, c, data, threads, why)) all.push_back(std::move(call));
    if (!why.empty()) note("baselines: " + why);
    if (!python_->alive()) python_.reset();
  }
  std::erase_if(all, [&](const auto& call) { return !is_wanted(call->name, only_); });
  return all;
}

bool is_wanted(const std::string& baseline, const std::vector<std::string>& only) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& name) {
           return strcasecmp(name.c_str(), baseline.c_str()) == 0;
         });
}

void check_baselines(const std::vector<std::string>& only, const std::vector<std::string>& here) {
  for (const std::string& name : only)
    if (here.empty() || !is_wanted(name, here))
      throw std::invalid_argument(
          fmt::format("no baseline \"{}\" is here; there {}", name,
                      here.empty() ? "is none" : fmt::format("are {}", fmt::join(here, ", "))));
}

std::string disagreement(const std::vector<double>& ours, const std::vector<double>& theirs, DType dtype) {
  if (theirs.empty()) return {};
  if (theirs.size() != ours.size()) return fmt::format("{} values instead of {}", theirs.size(), ours.size());
  // Loose: to find another function, not another rounding.
  const double share = dtype == DType::f64    ? 1e-6
                       : dtype == DType::f32  ? 1e-3
                       : dtype == DType::f16  ? 2e-2
                       : dtype == DType::bf16 ? 6e-2
                                              : 0.1;
  double size = 0;
  for (const double v : ours) size = std::max(size, std::fabs(v));
  const double allowed = is_floating(dtype) ? share * size + 1e-30 : 2;  // integers: rounded otherwise
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (!(std::fabs(ours[i] - theirs[i]) <= allowed))
      return fmt::format("computes {:.6g} where the kernel computes {:.6g}", theirs[i], ours[i]);
  return {};
}

}  // namespace rooftile::harness
