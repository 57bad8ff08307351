// The judge of exercises: values by the op's cases, races by the checked emulated device, traffic by its
// trace.
#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/exercise/function.h"
#include "rooftile/exercise/plugin.h"
#include "rooftile/harness/check/compare.h"
#include "rooftile/harness/check/runner.h"
#include "rooftile/harness/check/survive.h"
#include "rooftile/harness/course/exercise.h"
#include "rooftile/harness/course/exercise_functions.h"
#include "rooftile/harness/course/exercise_inputs.h"
#include "rooftile/harness/course/exercise_score.h"
#include "rooftile/harness/course/sources.h"
#include "rooftile/harness/course/trace.h"
#include "rooftile/runtime/queue_state.h"

namespace rooftile::harness {
namespace {

using emulated::Finding;
using emulated::FindingKind;

/// Of a processor's time, of one call; and by the clock, where the machine has other work.
constexpr double kSeconds = 10, kMaxWait = 300;
/// Of a grid's accesses: one of four blocks may have a third more than its share, or the others less.
constexpr double kMaxOfBlock = 0.5;

/// What went wrong in one case.
struct Fault {
  Case c;
  std::string kind, sentence;
};

const char* kind_of(FindingKind kind) {
  constexpr const char* kNames[] = {"race",    "bounds",   "unwritten", "wait",
                                    "barrier", "deadlock", "trap",      "misaligned"};
  return kNames[static_cast<int>(kind)];
}

/// Fills of one nature: a kernel that fails with some of them and with nothing else has one mistake.
const char* nature(Fill fill) {
  switch (fill) {
    case Fill::one_infinity:
    case Fill::minus_infinities:
    case Fill::masked:
      return "infinities";
    case Fill::large_offset:
    case Fill::constant_rows:
      return "offsets";
    case Fill::huge:
    case Fill::huge_rows:
      return "huge";
    case Fill::one_nan:
      return "nan_inputs";
    case Fill::denormals:
      return "small";
    default:
      return "";
  }
}

class Judge {
 public:
  Judge(const Exercise& exercise, const std::string& folder, const std::vector<std::string>& sources)
      : exercise_(exercise), spec_(spec_of(exercise)), sources_(sources), queue_(make_queue(folder)) {
    if (const Status s = queue_.status(); !s) throw std::runtime_error(s.message());
    const std::string file = fmt::format("{}/rooftile-{}.so", folder, queue_.state().backend->name);
    void* plugin = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    const auto function = [&](const char* name) { return plugin ? dlsym(plugin, name) : nullptr; };
    const auto counts = reinterpret_cast<exercise::Counts* (*)()>(function("rooftile_exercise_counts"));
    if (!counts) throw std::runtime_error(file + ": is no exercise's plug-in");
    counts_ = counts();
    const auto controls =
        reinterpret_cast<const emulated::Controls* (*)()>(function("rooftile_exercise_controls"));
    if (controls) controls_ = controls();
    leave_ = reinterpret_cast<void (*)()>(function("rooftile_exercise_leave"));
    if (spec_.call) return;
    const auto kernel = reinterpret_cast<Kernel (*)()>(function("rooftile_exercise_kernel"));
    if (!kernel) throw std::runtime_error(file + ": has no kernel of " + exercise.function);
    spec_.call = [kernel = kernel(), operands = spec_.operands](
                     const Queue& queue, const Case& c, const Arguments& arguments, const char*, Workspace) {
      exercise::FunctionProblem problem;
      int o = 0;
      for (const Operand& operand : operands(c)) problem.operands[o++] = arguments.out(operand.name);
      return kernel(queue.state().kernel_launch, &problem);
    };
  }

  /// Of a kernel that is dying: what was found of it before, if anything.
  std::optional<Verdict> last_finding() const {
    if (leave_) leave_();
    const std::optional<Fault> found = finding(dying_);
    return found ? std::optional(wrong(found->kind, found->sentence)) : std::nullopt;
  }

  Verdict run() {
    const Verdict verdict = judge_results();
    if (!verdict.ok) return verdict;
    if (const Verdict traffic = exercise_.on_gpu ? judge_traffic() : judge_reads(); !traffic.ok)
      return traffic;
    return {true, "right", fmt::format("right in {} cases{}", judged_, praise_)};
  }

 private:
  Queue make_queue(const std::string& folder) const {
    if (exercise_.on_gpu) {
      EmulatedOptions options;
      options.threads = 1;
      options.checked = true;
      options.plugin_folder = folder.c_str();
      return Queue::emulated(options);
    }
    CpuOptions options;
    options.threads = 1;
    options.plugin_folder = folder.c_str();
    return Queue::cpu(options);
  }

  /// A sentence of the kind "what, where"; the exercise adds what one probably did.
  Verdict wrong(const std::string& kind, const std::string& sentence) const {
    std::string likely;
    for (const std::string& name : {kind, std::string("values")})
      if (const auto it = exercise_.likely.find(name); it != exercise_.likely.end() && likely.empty())
        if (name == kind || values_too(kind)) likely = it->second;
    if (kind == "threads" && likely.empty())
      likely =
          "Does one thread do what the others should share? Each lane of a warp needs work in each step.";
    if (kind == "blocks" && likely.empty())
      likely = "Does one block do what the grid should share? blockIdx.x says which part is a block's.";
    if (kind == "input" && likely.empty()) likely = "Does the left side of an = name the wrong array?";
    for (const Option& option : spec_.options)  // what is wrong in all calls is not the cause of these
      if (kind.substr(0, kind.find('=')) == option.name && exercise_.likely.count(kind) == 0)
        likely = fmt::format("Only calls that give {} fail.", kind);
    return {false, kind, likely.empty() ? sentence : sentence + ". " + likely};
  }
  /// Kinds that are wrong values in some cases alone.
  static bool values_too(const std::string& kind) {
    for (const char* other :
         {"input", "grid", "blocks", "threads", "race", "bounds", "unwritten", "wait", "barrier", "deadlock",
          "trap", "nothing", "crash", "sectors", "passes", "banks", "shared", "refused"})
      if (kind == other) return false;
    return true;
  }

  Verdict judge_results() {
    std::vector<Fault> faults;
    std::vector<Case> right;
    std::uint64_t seed = 0;
    for (const Case& c : cases_of(exercise_, spec_)) {
      const Problem problem(spec_, c, ++seed);
      bool refused = false;
      std::optional<Fault> fault = try_case(problem, refused);
      if (refused) continue;
      ++judged_;
      if (!fault) {
        right.push_back(c);
        continue;
      }
      const bool found = fault->kind != "values" && fault->kind != "nothing";
      if (found && faults.empty()) return wrong(fault->kind, fault->sentence);
      if (found) break;  // wrong already in plainer cases
      faults.push_back(std::move(*fault));
    }
    if (judged_ == 0) return {false, "refused", "no case of " + exercise_.function + " was taken"};
    if (faults.empty()) return {true, "", ""};
    const Fault& first = telling(faults);
    return wrong(kind_of(faults, right), first.sentence);
  }

  /// The fault to tell of: with usual values, if there is one.
  static const Fault& telling(const std::vector<Fault>& faults) {
    for (const Fault& fault : faults)
      if (!*nature(fault.c.fill)) return fault;
    return faults.front();
  }

  std::string kind_of(std::vector<Fault> faults, const std::vector<Case>& right) {
    // Who makes two mistakes is told of the one that shows with usual values.
    const auto usual = [](const Fault& f) { return *nature(f.c.fill) == '\0'; };
    if (std::any_of(faults.begin(), faults.end(), usual)) std::erase_if(faults, std::not_fn(usual));
    const auto all = [&](auto&& is) { return std::all_of(faults.begin(), faults.end(), is); };
    const auto any_right = [&](auto&& is) { return std::any_of(right.begin(), right.end(), is); };
    const auto has_elements = [](const Case& c) { return count_of(c.shape) > 0; };
    // In place, an element that nobody wrote holds the input.
    const bool unwritten = all([](const Fault& f) { return f.kind == "nothing" || f.c.in_place; });
    if (all([&](const Fault& f) { return f.c.in_place; })) return "in_place";
    if (unwritten && !any_right(has_elements)) return "nothing";
    if (const std::string first = nature(faults[0].c.fill);
        !first.empty() && all([&](const Fault& f) { return nature(f.c.fill) == first; }))
      return first;
    if (const std::string option = option_of(faults); !option.empty()) return option;
    if (!usual(faults[0])) return "unusual";
    if (all([](const Fault& f) { return f.sentence.find("got nan") != f.sentence.npos; })) return "nan";
    const auto odd = [&](const Case& c) { return length(c) % exercise_.whole != 0; };
    if (all([&](const Fault& f) { return odd(f.c) && right_in(of_whole_length(f.c)); }) &&
        any_right([&](const Case& c) { return has_elements(c) && !odd(c); }))
      return "tail";
    return unwritten ? "missing" : "values";
  }

  /// The option that all faults give, and without which none is left: "beta=0", or "eps" of several values.
  std::string option_of(const std::vector<Fault>& faults) {
    for (const Option& option : spec_.options) {
      const auto given = [&](const Fault& f) {
        return exercise_.set.count(option.name) == 0 && f.c.parameters.count(option.name) != 0;
      };
      const auto right_without = [&](const Fault& f) {
        Case c = f.c;
        c.parameters.erase(option.name);
        return right_in(c);
      };
      if (!std::all_of(faults.begin(), faults.end(), given) ||
          !std::all_of(faults.begin(), faults.end(), right_without))
        continue;
      const auto value = [&](const Fault& f) {  // what a kernel in f32 gets: 1e-60 is 0, and so is -0
        return static_cast<float>(f.c.parameter(option.name)) + 0.0f;
      };
      const float first = value(faults[0]);
      return std::all_of(faults.begin(), faults.end(), [&](const Fault& f) { return value(f) == first; })
                 ? fmt::format("{}={:g}", option.name, first)
                 : option.name;
    }
    return "";
  }

  /// Whether the kernel gets a case right: a fault's case that is changed in one thing tells whether that
  /// thing is the cause.
  bool right_in(const Case& c) {
    if ((spec_.suits && !spec_.suits(c)) || (spec_.refuses && spec_.refuses(c))) return false;
    bool refused = false;
    return !try_case(Problem(spec_, c, 1), refused);
  }
  /// The case with its rows grown to whole steps of the kernel.
  Case of_whole_length(Case c) const {
    if (!c.shape.empty()) c.shape.back() += exercise_.whole - 1 - (c.shape.back() - 1) % exercise_.whole;
    return c;
  }
  /// A row's columns, or an elementwise op's elements.
  std::int64_t length(const Case& c) const {
    const bool rows = std::string_view(spec_.axes).find("columns") != std::string_view::npos;
    return rows && !c.shape.empty() ? c.shape.back() : count_of(c.shape);
  }

  /// The case without what every case is given.
  std::string what(Case c) const {
    for (const auto& [name, value] : exercise_.set) c.parameters.erase(name);
    return describe(c);
  }

  /// What kernels may touch: operands, and the scratch of a launch.
  void register_memory(const Problem& problem, const Memory& memory) const {
    if (!controls_) return;
    controls_->forget_globals();
    for (std::size_t o = 0; o < problem.operands().size(); ++o) {
      const View& view = memory.views()[o];
      const auto bytes =
          static_cast<std::size_t>((count_of(problem.operands()[o].shape) * bits(view.dtype) + 7) / 8);
      controls_->register_global(view.data, bytes, problem.operands()[o].name);
    }
    const CudaLaunch& launch = queue_.state().cuda;
    if (launch.scratch) controls_->register_global(launch.scratch, kCudaScratchBytes, "the partial sums");
  }

  std::optional<Fault> try_case(const Problem& problem, bool& refused) {
    const Case& c = problem.what();
    Memory memory(problem);
    dying_ = c;
    register_memory(problem, memory);
    *counts_->kind = '\0';
    const Run got = harness::run(queue_, problem, memory, exercise_.variant.c_str());
    const std::string where = what(c) + ": ";
    if (std::optional<Fault> found = finding(c)) return found;
    if (got.refused) {
      // The library refuses before the kernel runs; what the emulated device refuses is the learner's.
      refused = got.message.find("emulated: ") == std::string::npos;
      return Fault{c, "launch", where + got.message};
    }
    if (const std::string changed = changed_input(problem, got.damage); !changed.empty())
      return Fault{c, "input", where + changed};
    if (!got.damage.empty()) return Fault{c, "bounds", where + got.damage};
    if (*counts_->kind) return Fault{c, counts_->kind, where + counts_->note};
    const Limits limits = limits_of(spec_, c, "tile");
    for (std::size_t o = 0; o < problem.operands().size(); ++o) {
      if (!problem.is_output(o)) continue;
      const Comparison compared = compare(limits, problem.operands()[o], problem.answer(o), got.outputs[o]);
      if (compared.failure.empty()) continue;
      const bool untouched = compared.failure.find("was never written") != std::string::npos;
      if (untouched) return Fault{c, "nothing", where + compared.failure};
      return Fault{c, "values", where + compared.failure + inputs_of(problem, o, compared.wrong)};
    }
    return {};
  }

  std::optional<Fault> finding(const Case& c) const {
    if (!controls_) return {};
    // Threads at different barriers race, too; the barrier is the mistake.
    const auto first = [](FindingKind kind) {
      return kind == FindingKind::kDivergentBarrier || kind == FindingKind::kDeadlock;
    };
    std::optional<Finding> told;
    for (Finding f; controls_->take_findings(&f, 1) != 0;)
      if (!told || (first(f.kind) && !first(told->kind))) told = f;
    if (!told) return {};
    return Fault{c, harness::kind_of(told->kind), what(c) + ": " + told->sentence};
  }

  Verdict judge_traffic() {
    const Exercise::Traffic& limit = exercise_.traffic;
    for (const Shape& shape : limit.shapes) {
      const Case c{shape, dtype_of(exercise_, spec_), exercise_.set};
      // A kernel that leaves out what this shape needs moves less, too.
      bool refused = false;
      if (const std::optional<Fault> fault = try_case(Problem(spec_, c, 1), refused))
        return wrong(fault->kind == "nothing" ? "missing" : fault->kind, fault->sentence);
      if (controls_) controls_->forget_globals();
      const Trace t = trace(queue_, spec_, c, exercise_.variant, sources_);
      const std::string size = describe(shape);
      const auto wasted = [](const TracedLine& l) { return 32 * l.counts.sectors - l.counts.used_bytes; };
      const TracedLine* worst = nullptr;
      std::uint64_t requests = 0, lanes = 0;
      for (const TracedLine& l : t.lines) requests += l.counts.requests, lanes += l.counts.lanes;
      const double busy = requests ? static_cast<double>(lanes) / static_cast<double>(requests) : 0;
      if (busy < limit.lanes)
        return wrong("threads",
                     fmt::format("{:.3g} of a warp's 32 lanes work at a time, {:g} or more should ({})", busy,
                                 limit.lanes, size));
      if (t.totals.busiest_block > kMaxOfBlock)
        return wrong("blocks", fmt::format("one block makes {:.0f}% of all accesses of global memory ({})",
                                           100 * t.totals.busiest_block, size));
      for (const TracedLine& l : t.lines) {
        const auto& n = l.counts;
        if (n.sectors > 0 && (!worst || wasted(l) > wasted(*worst))) worst = &l;
        const std::uint64_t passes =
            n.requests * std::max<std::uint64_t>(1, std::uint64_t(n.access_bytes) / 4);
        if (limit.banks && n.wavefronts > passes)
          return wrong("banks",
                       fmt::format("line {} takes {:.3g} passes over the 32 banks for each request, where {} "
                                   "would do ({}, {})",
                                   n.line, n.wavefronts_per_request(), passes / n.requests, size, l.text));
      }
      const double share = t.moved_bytes() / t.stated_bytes;
      if (limit.of_stated > 0 && share > limit.of_stated && worst && worst->counts.used_share() < 0.9 &&
          static_cast<double>(wasted(*worst)) > 0.1 * t.moved_bytes())
        return wrong(
            "sectors",
            fmt::format(
                "line {} moves {:.3g} sectors for each request and uses {:.1f}% of their bytes ({}, {})",
                worst->counts.line, worst->counts.sectors_per_request(), 100 * worst->counts.used_share(),
                size, worst->text));
      if (limit.of_stated > 0 && share > limit.of_stated)
        return wrong("passes",
                     fmt::format("the kernel moves {:.0f} bytes of global memory, where {:.0f} would do ({})",
                                 t.moved_bytes(), t.stated_bytes, size));
      praise_ = fmt::format("; {} needs {:.0f} bytes: yours {}{}", size, t.stated_bytes, score(t),
                            score_of_library(exercise_, c, sources_));
    }
    if (limit.shared >= 0 && counts_->shared_bytes > limit.shared)
      return wrong("shared", fmt::format("a block takes {} bytes of shared memory, the task allows {}",
                                         counts_->shared_bytes, limit.shared));
    return {true, "", ""};
  }

  Verdict judge_reads() {
    const double most = exercise_.traffic.reads;
    if (most <= 0) return {true, "", ""};
    constexpr std::int64_t kColumns = 1000;
    const Problem problem(spec_, Case{{1, kColumns}, DType::f32, exercise_.set}, 1);
    bool refused = false;
    if (const std::optional<Fault> fault = try_case(problem, refused))
      return wrong(fault->kind == "nothing" ? "missing" : fault->kind, fault->sentence);
    Memory memory(problem);
    counts_->loads = 0;
    harness::run(queue_, problem, memory, exercise_.variant.c_str());
    const double reads = static_cast<double>(counts_->loads) / double(kColumns);
    if (reads > most + 0.01)
      return wrong("passes", fmt::format("the row is read {:.3g} times, the task allows {:g}", reads, most));
    praise_ = fmt::format("; it reads the row {:.3g} times", reads);
    return {true, "", ""};
  }

  const Exercise& exercise_;
  Spec spec_;
  std::vector<std::string> sources_;
  Queue queue_;
  exercise::Counts* counts_ = nullptr;
  const emulated::Controls* controls_ = nullptr;
  void (*leave_)() = nullptr;
  int judged_ = 0;
  Case dying_;
  std::string praise_;
};

using Send = std::function<void(const std::string&)>;

void send_verdict(const Send& send, const Verdict& v) {
  const nlohmann::json answer = {{"ok", v.ok}, {"kind", v.kind}, {"sentence", v.sentence}};
  send(answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// The child's: for a kernel that touches a page it may not.
const Judge* running = nullptr;
const Send* sender = nullptr;

/// The checked device sees an access before it is made, so the finding is there when the access kills. This
/// allocates, which a handler should not; the alternative is to die without a word.
void on_death(int number) {
  signal(number, SIG_DFL);
  if (const std::optional<Verdict> found = running->last_finding()) {
    send_verdict(*sender, *found);
    _exit(0);
  }
  raise(number);
}

void catch_death(const Judge& judge, const Send& send) {
  running = &judge, sender = &send;
  static std::vector<char> stack(1 << 18);  // a fiber's own may be what ran out
  stack_t alternative = {};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_death;
  action.sa_flags = SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGBUS}) sigaction(number, &action, nullptr);
}

}  // namespace

Verdict judge(const Exercise& exercise, const std::string& plugin_folder,
              const std::vector<std::string>& sources) {
  Verdict verdict;
  std::string error;
  bool answered = false;
  const Death death = in_child(
      [&](const auto& send) {
        try {
          Judge judge(exercise, plugin_folder, sources);
          const Send to = send;
          catch_death(judge, to);
          send_verdict(to, judge.run());
        } catch (const std::exception& e) {
          send(nlohmann::json{{"error", e.what()}}.dump(-1, ' ', false,
                                                        nlohmann::json::error_handler_t::replace));
        }
      },
      [&](const std::string& text) {
        const auto answer = nlohmann::json::parse(text);
        answered = true;
        error = answer.value("error", "");
        verdict = {answer.value("ok", false), answer.value("kind", ""), answer.value("sentence", "")};
      },
      [] { return false; }, kMaxWait, kSeconds);
  if (!error.empty()) throw std::runtime_error(error);
  // By exit(), which no kernel has: it is in the code that runs on the host.
  if (const bool exits = death.how.find("exit code") != std::string::npos;
      exits || (!death.died && !answered))
    return {false, "exit",
            "your file ends the program, and so nothing was judged: is there an exit() in its host code?"};
  if (!death.died) return verdict;
  // What hangs has a loop without an end; what dies has an index out of bounds.
  const bool hangs = death.how.find("did not return") != std::string::npos;
  const char* const kind = hangs ? "endless" : "crash";
  const auto likely = exercise.likely.find(kind);
  if (hangs && likely == exercise.likely.end())
    return {false, kind,
            fmt::format("{}: the kernel {}. A loop never ends: does its index grow in each step?", death.what,
                        death.how)};
  return {false, kind,
          fmt::format("{}the kernel {}{}", death.in_kernel ? death.what + ": " : "", death.how,
                      likely == exercise.likely.end() ? "" : ". " + likely->second)};
}

}  // namespace rooftile::harness
