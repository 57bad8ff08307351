#include "rooftile/harness/course/versions.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

#include "rooftile/core/signature.h"
#include "rooftile/harness/bench/python_baselines.h"
#include "rooftile/harness/check/compare.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {
using nlohmann::json;

constexpr int kCallSeconds = 120;
constexpr std::size_t kMaxFailures = 3;
constexpr std::int64_t kGuard = 64;  // elements of NaN to both sides of an operand's
/// Sums may be added one element after another: the chain of the ladder's scalar rung.
constexpr const char* kJudgedAs = "01_scalar";

/// Memory that a version's process sees, too.
class SharedMemory {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 27;
  SharedMemory() : descriptor_(memfd_create("rooftile-versions", 0)) {  // inherited: no MFD_CLOEXEC
    if (descriptor_ < 0 || ftruncate(descriptor_, kBytes) != 0)
      throw std::runtime_error("check --versions: this system gives no shared memory (memfd_create)");
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (at == MAP_FAILED) throw std::runtime_error("check --versions: 128 MiB cannot be mapped");
    data_ = static_cast<std::byte*>(at);
  }
  ~SharedMemory() {
    if (data_) munmap(data_, kBytes);
    if (descriptor_ >= 0) close(descriptor_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  int descriptor() const { return descriptor_; }
  std::byte* data() const { return data_; }
  /// The next 64-byte boundary, from which `bytes` are the caller's; throws where they are not left.
  std::size_t take(std::size_t bytes) {
    const std::size_t at = (used_ + 63) / 64 * 64;
    if (bytes > kBytes - at) throw std::runtime_error("a case does not fit 128 MiB");
    used_ = at + bytes;
    return at;
  }
  void clear() { used_ = 0; }
  std::size_t used() const { return used_; }

 private:
  int descriptor_;
  std::byte* data_ = nullptr;
  std::size_t used_ = 0;
};

/// An input in shared memory as the case places it, with NaN around it.
json share(SharedMemory& memory, const Problem& p, std::size_t o) {
  const Operand& operand = p.operands()[o];
  const Placement placement = place(operand, p.what().layout, p.what().offset);
  std::int64_t low = 0;
  for (std::size_t d = 0; d < operand.shape.size(); ++d)
    if (placement.strides[d] < 0 && operand.shape[d] > 0)
      low += placement.strides[d] * (operand.shape[d] - 1);
  const std::size_t width = width_of(operand.dtype);
  const auto elements = span_of(operand.shape, placement) + placement.offset + 2 * kGuard;
  const std::size_t bytes = static_cast<std::size_t>(elements) * width, at = memory.take(bytes);
  std::memset(memory.data() + at, static_cast<int>(poison(operand.dtype)), bytes);
  const std::size_t first = at + static_cast<std::size_t>(kGuard + placement.offset - low) * width;
  View view;
  view.data = memory.data() + first;
  view.dtype = operand.dtype;
  view.rank = static_cast<int>(operand.shape.size());
  for (std::size_t d = 0; d < operand.shape.size(); ++d)
    view.shape[d] = operand.shape[d], view.stride[d] = placement.strides[d];
  scatter(view, p.bytes(o).data());
  return {{"at", first}, {"strides", placement.strides}};
}

/// The same as doubles side by side, for languages that have lists.
json share_doubles(SharedMemory& memory, const Problem& p, std::size_t o) {
  const std::vector<double>& values = p.values(o);
  const std::size_t at = memory.take(values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(memory.data() + at, values.data(), values.size() * sizeof(double));
  const Placement dense = place(p.operands()[o], Layout::contiguous, 0);
  return {{"at", at}, {"strides", dense.strides}};
}

/// What the versions in one language share: their process, which is started again where one ended it.
class LanguageRun {
 public:
  LanguageRun(std::string language, const std::string& driver, bool cuda)
      : language_(std::move(language)), driver_(driver), cuda_(cuda) {
    start();
  }
  bool here() const { return python_ != nullptr; }
  const std::string& why() const { return why_; }
  std::int64_t largest() const { return largest_; }
  std::int64_t most() const { return most_; }
  const std::string& name() const { return name_; }
  const std::string& library() const { return library_; }
  bool lists() const { return language_ == "plain"; }

  std::vector<VersionResult> versions(const char* function) {
    std::vector<VersionResult> found;
    const json answer = python_->ask({{"command", "versions"}, {"function", function}}, kCallSeconds);
    for (const json& one : answer.value("versions", json::array())) {
      VersionResult result;
      result.function = function;
      result.name = one.value("name", "");
      result.trap = one.value("trap", "");
      result.language = name_, result.library = library_;
      found.push_back(std::move(result));
    }
    return found;
  }

  /// -1 of a function that puts dimensions in another order, by its spec's option: they then are not given as
  /// one.
  static int letters_in(const Problem& p, const Signature& signature, const char* name) {
    for (const Option& option : p.spec().options)
      if (std::string_view(option.name) == "order") return -1;
    return letters_of(signature, name);
  }

  /// Runs one version on one case and judges what it returns.
  void run(const Problem& p, VersionResult& result) {
    const Spec& spec = p.spec();
    ++result.cases;
    if (lists() && p.what().layout != Layout::contiguous) return decline(result, "strided");
    const Signature& signature = find_op(spec.function)->signature;
    memory_.clear();
    json inputs = json::array(), outputs = json::array();
    for (std::size_t o = 0; o < p.operands().size(); ++o) {
      const Operand& operand = p.operands()[o];
      json one = {{"name", operand.name},
                  {"dtype", rooftile::name(operand.dtype)},
                  {"shape", operand.shape},
                  {"letters", letters_in(p, signature, operand.name)}};
      if (p.is_input(o)) {
        one.update(lists() ? share_doubles(memory_, p, o) : share(memory_, p, o));
        inputs.push_back(one);
      }
    }
    const Bytes before(memory_.data(), memory_.data() + memory_.used());
    for (std::size_t o = 0; o < p.operands().size(); ++o) {
      if (!p.is_output(o)) continue;
      const Operand& operand = p.operands()[o];
      const std::size_t bytes = static_cast<std::size_t>(count_of(operand.shape)) * sizeof(double);
      const std::size_t at = memory_.take(bytes);
      std::memset(memory_.data() + at, 0xFF, bytes);
      outputs.push_back({{"name", operand.name},
                         {"dtype", rooftile::name(operand.dtype)},
                         {"shape", operand.shape},
                         {"letters", letters_in(p, signature, operand.name)},
                         {"at", at}});
    }
    json request = {{"command", "run"}, {"version", result.name}, {"inputs", inputs}, {"outputs", outputs}};
    request.update(options_json(spec, p.what()));
    const json answer = python_->ask(request, kCallSeconds);
    if (answer.contains("declined")) return decline(result, answer["declined"].get<std::string>());
    ++result.accepted;
    std::string failure;
    if (answer.contains("error"))
      failure = answer["error"].get<std::string>();
    else if (std::memcmp(before.data(), memory_.data(), before.size()) != 0)
      failure = "changes its inputs";
    else
      failure = judge(p, outputs, result);
    if (failure.empty())
      ++result.passed;
    else if (result.failures.size() < kMaxFailures)
      result.failures.push_back(fmt::format("{}, {}: {}", result.name, describe(p.what()), failure));
    if (!python_->alive()) start();
  }

 private:
  void start() {
    python_ = PythonBaselines::start(
        {driver_, language_, cuda_ ? "cuda" : "cpu", std::to_string(memory_.descriptor())}, why_,
        fmt::format("not what versions in {} need", language_).c_str());
    if (!python_) {
      if (why_.empty())
        why_ = fmt::format("versions in {} are left out: its library is not installed", language_);
      return;
    }
    largest_ = python_->hello().value("largest", std::int64_t{0});
    most_ = python_->hello().value("most", std::int64_t{0});
    name_ = python_->hello()["peers"][0].value("name", "");
    library_ = python_->hello()["peers"][0].value("version", "");
  }

  static void decline(VersionResult& result, const std::string& what) { ++result.declined[what]; }

  std::string judge(const Problem& p, const json& outputs, VersionResult& result) const {
    const Limits limits = limits_of(p.spec(), p.what(), kJudgedAs);
    for (const json& output : outputs) {
      const std::size_t o = p.index_of(output["name"].get<std::string>());
      const Operand& operand = p.operands()[o];
      const std::byte* at = memory_.data() + output["at"].get<std::size_t>();
      const std::size_t count = static_cast<std::size_t>(count_of(operand.shape));
      Bytes got(at, at + count * width_of(operand.dtype));
      if (lists()) {
        std::vector<double> values(count);
        if (count) std::memcpy(values.data(), at, count * sizeof(double));
        got = encode(operand.dtype, values);
      }
      const Comparison c = compare(limits, operand, p.answer(o), got);
      if (!c.failure.empty()) return c.failure;
      result.worst_of_tolerance = std::max(result.worst_of_tolerance, c.worst);
    }
    return {};
  }

  std::string language_, driver_;
  bool cuda_;
  SharedMemory memory_;
  std::unique_ptr<PythonBaselines> python_;
  std::string why_, name_, library_;
  std::int64_t largest_ = 0, most_ = 0;
};

std::string driver_path() {
  bool named = false;
  const std::filesystem::path place = baselines_place("", named) / "check_versions.py";
  if (!std::filesystem::exists(place))
    throw std::runtime_error(
        fmt::format("check --versions: {} is missing; the build puts it beside the library", place.string()));
  return place.string();
}

/// A case that a version can be asked: it returns new arrays, so none is in place; nor one to be refused.
bool askable(const Spec& spec, const Case& c) { return !c.in_place && !(spec.refuses && spec.refuses(c)); }

/// How large a case is: its elements; of many letters, whose product says little, the operands' or the flops.
double size_of(const Spec& spec, const Case& c) {
  double all = 1, elements = 0;
  for (const std::int64_t size : c.shape) all *= static_cast<double>(size);
  if (spec.letters.empty()) return all;
  for (const Operand& operand : spec.operands(c)) elements += static_cast<double>(count_of(operand.shape));
  return std::min(all, std::max(elements, spec.flops(c)));
}

void check_one(const Spec& spec, const VersionOptions& options, LanguageRun& run, VersionResults& all) {
  std::vector<VersionResult> results = run.versions(spec.function);
  if (results.empty()) return;
  for (const DType dtype : spec.dtypes) {
    if (!options.dtypes.empty() &&
        std::find(options.dtypes.begin(), options.dtypes.end(), dtype) == options.dtypes.end())
      continue;
    // Versions are in GPUs' languages, too: none is in a dtype that CPUs alone take.
    const Op* op = find_op(spec.function);
    if (op && op->signature.types[0].on_cpus_alone(dtype)) continue;
    const std::vector<Case> cases = all_cases(spec, dtype, options.quick);
    const auto small = [&](const Case& c) {
      return askable(spec, c) && size_of(spec, c) <= static_cast<double>(run.largest());
    };
    const auto count = std::count_if(cases.begin(), cases.end(), small);
    auto chosen = [&, seen = std::int64_t{0}]() mutable {
      ++seen;
      return run.most() == 0 || count <= run.most() ||
             seen * run.most() / count != (seen - 1) * run.most() / count;
    };
    for (std::size_t k = 0; k < cases.size() && run.here(); ++k) {
      if (options.cancel && *options.cancel) return;
      if (!askable(spec, cases[k])) continue;
      // `most` of the small ones, evenly; what is not asked is counted, and not filled.
      std::string unasked;
      if (!small(cases[k]))
        unasked = fmt::format("more than {} elements", run.largest());
      else if (cases[k].fill == Fill::far_rows)
        unasked = "rows whose squares leave f32";  // which a version looks at once
      else if (!chosen())
        unasked = fmt::format("not among {} taken evenly of a dtype", run.most());
      std::optional<Problem> problem;
      for (VersionResult& result : results) {
        if (!run.here()) break;  // the version before ended it for good, which failed that one
        if (!unasked.empty()) {
          ++result.cases, ++result.declined[unasked];
          continue;
        }
        if (!problem) problem.emplace(spec, cases[k], options.seed + k);
        run.run(*problem, result);
      }
      if (options.progress)
        options.progress({static_cast<std::int64_t>(k), static_cast<std::int64_t>(cases.size()),
                          fmt::format("{} {} {}", spec.function, run.name(), rooftile::name(dtype))});
    }
  }
  all.results.insert(all.results.end(), results.begin(), results.end());
}

}  // namespace

const std::vector<std::string>& version_languages() {
  static const std::vector<std::string> all = {"plain", "numpy",  "torch", "triton",
                                               "numba", "cutile", "cute"};
  return all;
}

VersionResults check_versions(const VersionOptions& options) {
  for (const std::string& language : options.languages)
    if (std::find(version_languages().begin(), version_languages().end(), language) ==
        version_languages().end())
      throw std::invalid_argument(fmt::format("check: no language \"{}\"; there are {}", language,
                                              fmt::join(version_languages(), ", ")));
  const std::string driver = driver_path();
  VersionResults all;
  for (const std::string& language : options.languages.empty() ? version_languages() : options.languages) {
    LanguageRun run(language, driver, options.cuda);
    if (!run.here()) {
      all.notes.push_back(run.why());
      continue;
    }
    for (const Spec& spec : all_specs()) {
      if (!options.functions.empty() && std::find(options.functions.begin(), options.functions.end(),
                                                  spec.function) == options.functions.end())
        continue;
      if (!run.here() || (options.cancel && *options.cancel)) break;
      check_one(spec, options, run, all);
      if (!run.here())
        all.notes.push_back(
            fmt::format("{} ended in {} and could not be started again: what follows of it was not "
                        "checked",
                        run.name(), spec.function));
    }
  }
  // Its two cases need not be any that a version takes, nor ones that a trap falls into.
  if (options.quick) {
    const auto unjudged = std::erase_if(all.results, [](const VersionResult& r) {
      return r.accepted == 0 || (!r.trap.empty() && r.passed == r.accepted);
    });
    if (unjudged > 0)
      all.notes.push_back(
          fmt::format("not judged by a case of --quick, and left out: {} of the versions", unjudged));
  }
  // One function after the other, its languages in their order.
  std::stable_sort(all.results.begin(), all.results.end(), [](const auto& a, const auto& b) {
    const auto at = [](const std::string& f) {
      std::size_t k = 0;
      while (k < all_specs().size() && f != all_specs()[k].function) ++k;
      return k;
    };
    return at(a.function) < at(b.function);
  });
  return all;
}

}  // namespace rooftile::harness
