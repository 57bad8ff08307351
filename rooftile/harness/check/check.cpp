#include "rooftile/harness/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "rooftile/core/signature.h"
#include "rooftile/harness/check/contract.h"
#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/invariance.h"
#include "rooftile/harness/check/ledger.h"
#include "rooftile/harness/check/standard_cases.h"
#include "rooftile/harness/check/survive.h"
#include "rooftile/harness/check/wrong_results.h"

namespace rooftile::harness {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CheckResult, function, op, direction, variant, isa, dtype, cases, passed,
                                   refused, wrong_results, rejected, worst_of_tolerance, rms_of_tolerance,
                                   ulp_histogram, failures, notes)
namespace {

using Dead = std::set<std::pair<std::string, std::string>>;
using Receive = std::function<void(const std::vector<CheckResult>&)>;

template <class List, class T>
bool contains(const List& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool cancelled(const CheckOptions& options) { return options.cancel && *options.cancel; }

std::vector<Queues> make_queues(const CheckOptions& options) {
  const std::vector<std::string> built = built_isas();
  std::vector<Queues> queues;
  for (const std::string& isa : options.isas.empty() ? built : options.isas) queues.emplace_back(isa);
  if (queues.empty())
    throw std::runtime_error("check: there is no plug-in that this CPU runs; run `make build`");
  return queues;
}

bool any_has(const std::vector<Queues>& queues, const Op& op, std::size_t variant) {
  return std::any_of(queues.begin(), queues.end(),
                     [&](const Queues& q) { return has_variant(q.all[Queues::kOne].queue, op, variant); });
}

/// Null, the library's choice, before the names of those that a plug-in has. On the checked device, which is
/// slow, the choice is left out unless asked for: on the plain one it is checked.
std::vector<const char*> variants_of(const Spec& spec, const CheckOptions& options,
                                     const std::vector<Queues>& queues) {
  std::vector<const char*> variants;
  const auto wanted = [&](const char* name) {
    return options.variants.empty() || contains(options.variants, std::string(name));
  };
  const bool names_alone =
      options.variants.empty() && contains(options.isas, std::string("emulated-checked"));
  if (wanted(Ledger::kChoice) && !names_alone) variants.push_back(nullptr);
  if (const Op* op = find_op(spec.function))
    for (std::size_t v = 0; v < op->variants.size(); ++v)
      if (wanted(op->variants[v].name) && any_has(queues, *op, v)) variants.push_back(op->variants[v].name);
  return variants;
}

bool is_cpu(const std::string& isa) {
  return isa != "cuda" && isa != "emulated" && isa != "emulated-checked";
}

/// Whether a dtype is to be checked: of what was chosen, and not on a device whose kernels lack it.
bool wanted(const Spec& spec, const CheckOptions& options, DType dtype) {
  if (!options.dtypes.empty() && !contains(options.dtypes, dtype)) return false;
  const Op* op = find_op(spec.function);
  return !op || !op->signature.types[0].on_cpus_alone(dtype) ||
         std::all_of(options.isas.begin(), options.isas.end(), is_cpu);
}

std::vector<std::string> brief_of(const CheckOptions& options, const std::vector<Queues>& queues) {
  if (!options.paths) return options.brief;
  std::vector<std::string> all;
  for (const Queues& q : queues) all.push_back(q.isa);
  return all;
}

/// A tolerance that the arithmetic cannot justify is too loose; so is one that no error comes near.
constexpr double kMaxC = 8;
constexpr double kMinWorst = 0.02;

class SpecCheck {
 public:
  SpecCheck(const Spec& spec, const CheckOptions& options, std::vector<Queues>& queues, const Dead& dead,
            std::int64_t done, std::int64_t total)
      : spec_(spec),
        options_(options),
        subjects_{queues, variants_of(spec, options, queues), dead, brief_of(options, queues)},
        done_(done),
        total_(total) {}

  /// Hands over each dtype's results.
  void run(const std::vector<DType>& dtypes, const Receive& receive) {
    for (std::size_t d = 0; d < dtypes.size(); ++d) {
      if (cancelled(options_)) break;
      Ledger ledger(spec_, dtypes[d]);
      const int count = chosen_dtypes(), share = options_.random_cases / count,
                more = options_.random_cases % count;
      run_dtype(dtypes[d], share + (static_cast<int>(d) < more), ledger);
      std::vector<CheckResult> results = ledger.close();
      if (coverage_.cases > 0 && d + 1 == dtypes.size() && !results.empty())
        results.front().notes.push_back(coverage_.describe(spec_));
      receive(results);
    }
  }

 private:
  /// Also those that are done: their share of the random cases stays theirs.
  int chosen_dtypes() const {
    return static_cast<int>(std::count_if(spec_.dtypes.begin(), spec_.dtypes.end(),
                                          [&](DType t) { return wanted(spec_, options_, t); }));
  }

  void run_dtype(DType dtype, int random, Ledger& ledger) {
    if (!spec_.tolerance.exact && !(spec_.tolerance.c <= kMaxC))
      ledger.note("any", Ledger::kOracle,
                  fmt::format("the tolerance's c is {:g}, may be at most {:g}", spec_.tolerance.c, kMaxC));
    if (options_.listed) list(dtype, ledger);
    if (random > 0 && (spec_.standard || !spec_.letters.empty())) {
      progress(dtype, "at random", 0);
      guarded(ledger,
              [&] { check_random(spec_, dtype, random, options_.seed, subjects_, ledger, coverage_); });
    }
  }

  void list(DType dtype, Ledger& ledger) {
    guarded(ledger, [&] { cases(dtype, ledger); });
    if (options_.quick || (options_.paths && spec_.letters.size() > 1)) return;
    const auto step = [&](const char* what, auto&& f) {
      if (cancelled(options_)) return;
      progress(dtype, what, 0);
      guarded(ledger, f);
    };
    step("bits", [&] { check_invariance(spec_, dtype, subjects_, ledger); });
    if (options_.paths) return;
    step("modes", [&] { check_modes(spec_, dtype, subjects_, ledger); });
    step("edges", [&] { check_edges(spec_, dtype, subjects_, ledger); });
    step("refusals", [&] { check_refusals(spec_, dtype, subjects_, ledger); });
    step("cost", [&] { check_cost(spec_, dtype, ledger); });
    if (spec_.gradient_of) step("gradient", [&] { gradient(dtype, ledger); });
    step("taken", [&] { taken(dtype, ledger); });
    step("looseness", [&] { looseness(dtype, ledger); });
  }

  /// What an oracle or a spec throws fails the check like any other sentence.
  template <class F>
  void guarded(Ledger& ledger, F&& f) {
    try {
      f();
    } catch (const std::exception& e) {
      ledger.note("any", Ledger::kOracle, e.what());
    }
  }

  void cases(DType dtype, Ledger& ledger) {
    const std::vector<Case> list = all_cases(spec_, dtype, options_.quick);
    const Op* op = find_op(spec_.function);
    WrongResults wrong_results(spec_, dtype, op && !op->variants.empty() ? op->variants[0].name : "");
    // Some 128 cases go each way through a kernel; some 32 of functions of many letters, whose cases cost by
    // their product.
    const std::size_t enough = spec_.letters.size() > 1 ? 32 : 128;
    const std::size_t step = options_.paths ? std::max<std::size_t>(list.size() / enough, 1) : 1;
    for (std::size_t k = 0; k < list.size() && !cancelled(options_); k += step) {
      const Problem problem(spec_, list[k], options_.seed + k);
      Memory memory(problem);
      const bool streaming = k / step % 2;
      for (Queues& queues : subjects_.isas)
        for (const char* variant : subjects_.of(queues))
          one(problem, memory, queues, queues.all[streaming ? Queues::kThreeStreaming : Queues::kOne],
              variant, ledger);
      if (!options_.quick && !spec_refuses(list[k])) wrong_results.show(problem);
      progress(dtype, "", 1);
    }
    if (options_.quick || step > 1 || cancelled(options_)) return;
    const std::vector<std::string> sentences = wrong_results.verdict();
    for (int i = 0; i < wrong_results.rejected(); ++i) ledger.note("any", Ledger::kOracle, "");
    CheckResult& oracle = ledger.of("any", Ledger::kOracle);
    oracle.wrong_results = wrong_results.tried(), oracle.rejected = wrong_results.rejected();
    for (const std::string& s : sentences) ledger.note("any", Ledger::kOracle, s);
  }

  bool spec_refuses(const Case& c) const { return spec_.refuses && spec_.refuses(c); }

  void one(const Problem& p, Memory& memory, const Queues& queues, const NamedQueue& queue,
           const char* variant, Ledger& ledger) {
    const std::string label = variant ? variant : Ledger::kChoice;
    const Run got = harness::run(queue.queue, p, memory, variant);
    std::string failure = got.damage;
    if (spec_refuses(p.what())) {
      const std::string word = spec_.refuses(p.what());
      if (!got.refused)
        failure = "is taken, but must be refused";
      else if (got.message.find(word) == std::string::npos)
        failure = fmt::format("is refused by a sentence without \"{}\": {}", word, got.message);
    } else if (got.refused && !got.chosen.empty()) {  // a variant was found that takes the call
      failure = "fails in its kernel: " + got.message;
    } else if (got.refused && variant) {
      if (got.message.find(spec_.function) == std::string::npos)
        failure =
            fmt::format("is refused by a sentence that does not name {}: {}", spec_.function, got.message);
      if (failure.empty()) {
        ++ledger.of(queues.isa, label).refused;
        return;
      }
    } else if (got.refused) {
      failure = "is refused: " + got.message;
    } else {
      const Limits limits = limits_of(spec_, p.what(), got.chosen);
      for (std::size_t o = 0; o < p.operands().size(); ++o) {
        if (!p.is_output(o)) continue;
        const Comparison c = compare(limits, p.operands()[o], p.answer(o), got.outputs[o]);
        ledger.add(queues.isa, label, c);
        if (failure.empty()) failure = c.failure;
      }
    }
    ledger.note(queues.isa, label,
                failure.empty() ? "" : fmt::format("{}, {}: {}", describe(p.what()), queue.name, failure));
  }

  void gradient(DType dtype, Ledger& ledger) {
    const Spec* forward = find_spec(spec_.gradient_of);
    if (!forward)
      throw std::runtime_error(fmt::format("gradient of {}: there is no such function", spec_.gradient_of));
    check_gradient(spec_, *forward, dtype, ledger);
  }

  /// Every variant must take a case of some dtype: one that refuses all is dead. One that is composed has no
  /// kernel, and may be for other devices.
  void taken(DType dtype, Ledger& ledger) {
    const Op* op = find_op(spec_.function);
    const auto composed = [&](const char* name) {
      return std::any_of(op->variants.begin(), op->variants.end(),
                         [&](const Variant& v) { return v.compose && std::strcmp(v.name, name) == 0; });
    };
    for (Queues& queues : subjects_.isas) {
      for (const char* variant : subjects_.of(queues)) {
        if (!variant || composed(variant) || ledger.of(queues.isa, variant).cases > 0) continue;
        bool takes = false;
        std::string message;
        // Two cases of each dtype say it nearly always: of one dtype's all, gemm's took 1.7 s.
        for (const bool quick : {true, false})
          for (DType other : spec_.dtypes) {
            if (takes || other == dtype) continue;
            for (const Case& c : all_cases(spec_, other, quick)) {
              if (takes || count_of(c.shape) > 100000) continue;
              const Problem p(spec_, c, 1);
              Memory memory(p);
              const Run got = harness::run(queues.all[Queues::kOne].queue, p, memory, variant);
              takes = !got.refused;
              message = got.message;
            }
          }
        if (!takes) ledger.note(queues.isa, variant, fmt::format("takes no case of any dtype: {}", message));
      }
    }
  }

  void looseness(DType dtype, Ledger& ledger) {
    // Sums of integers are exact, or wrong.
    if (spec_.tolerance.exact || !is_floating(dtype) ||
        !contains(subjects_.variants, static_cast<const char*>(nullptr)))
      return;
    for (const Queues& queues : subjects_.isas) {
      if (subjects_.dead.count({queues.isa, Ledger::kChoice})) continue;
      const double worst = ledger.of(queues.isa, Ledger::kChoice).worst_of_tolerance;
      if (worst < kMinWorst)
        ledger.note(
            queues.isa, Ledger::kChoice,
            fmt::format(
                "the largest error of all cases is {:.2g} of its tolerance, which is too loose to be one "
                "(at least {:g} is expected)",
                worst, kMinWorst));
    }
  }

  void progress(DType dtype, const char* what, std::int64_t cases) {
    done_ += cases;
    if (options_.progress)
      options_.progress(
          {done_, total_,
           fmt::format("{} {}{}{}", spec_.function, rooftile::name(dtype), *what ? " " : "", what)});
  }

  const Spec& spec_;
  const CheckOptions& options_;
  Subjects subjects_;
  Coverage coverage_;
  std::int64_t done_, total_;
};

std::int64_t cases_of(const Spec& spec, const CheckOptions& options) {
  std::int64_t n = 0;
  if (!options.listed) return 0;
  for (DType dtype : spec.dtypes)
    if (wanted(spec, options, dtype))
      n += static_cast<std::int64_t>(all_cases(spec, dtype, options.quick).size());
  return n;
}

/// The chosen dtype of fewest bits, so that outputs beyond 2^31 elements fit the memory.
std::vector<CheckResult> huge(const Spec& spec, const CheckOptions& options, std::vector<Queues>& queues) {
  const DType* smallest = nullptr;
  for (const DType& dtype : spec.dtypes)
    if (wanted(spec, options, dtype) && !is_packed(dtype))
      if (!smallest || bits(dtype) < bits(*smallest)) smallest = &dtype;
  if (!smallest) return {};
  Ledger ledger(spec, *smallest);
  try {
    check_huge(spec, *smallest, {queues, {nullptr}}, ledger);
  } catch (const std::exception& e) {
    ledger.note("any", Ledger::kOracle, e.what());
  }
  return ledger.close();
}

std::vector<DType> dtypes_of(const Spec& spec, const CheckOptions& options) {
  std::vector<DType> dtypes;
  for (DType dtype : spec.dtypes)
    if (wanted(spec, options, dtype)) dtypes.push_back(dtype);
  return dtypes;
}

/// A GPU that was opened does not outlive a fork.
bool in_children(const CheckOptions& options) {
  return can_fork() && !contains(options.isas, std::string("cuda"));
}

/// What a check of one function has left to do, and knows.
struct Work {
  const Spec& spec;
  std::vector<DType> dtypes;
  Dead dead;
  std::int64_t done, total;
};

void run_here(const Work& work, const CheckOptions& options, std::vector<Queues>& queues,
              const Receive& receive) {
  if (options.huge) {
    if (options.progress)
      options.progress({work.done, work.total, std::string(work.spec.function) + " beyond 2^31 elements"});
    return receive(huge(work.spec, options, queues));
  }
  SpecCheck(work.spec, options, queues, work.dead, work.done, work.total).run(work.dtypes, receive);
}

/// In a child, which sends {"progress"}, {"results"}, or the {"error"} that it ends by.
Death run_in_child(const Work& work, const CheckOptions& options, const Receive& receive) {
  using Json = nlohmann::json;
  std::string error;
  const Death death = in_child(
      [&](const auto& send_text) {
        const auto send = [&](const Json& message) {
          send_text(message.dump(-1, ' ', false, Json::error_handler_t::replace));
        };
        CheckOptions mine = options;
        mine.progress = [&](const Progress& p) { send({{"progress", {p.done, p.total, p.what}}}); };
        try {
          std::vector<Queues> queues = make_queues(options);
          run_here(work, mine, queues, [&](const std::vector<CheckResult>& results) {
            send({{"results", results}});
          });
        } catch (const std::exception& e) {
          send({{"error", e.what()}});
        }
      },
      [&](const std::string& text) {
        const Json message = Json::parse(text);
        if (const auto p = message.find("progress");
            p != message.end() && options.progress && !cancelled(options))
          options.progress({p->at(0), p->at(1), p->at(2)});
        if (const auto r = message.find("results"); r != message.end())
          receive(r->get<std::vector<CheckResult>>());
        if (const auto e = message.find("error"); e != message.end()) error = *e;
      },
      [&] { return cancelled(options); }, options.huge ? 10 * options.seconds : options.seconds);
  if (!error.empty()) throw std::runtime_error(error);
  return death;
}

/// The result of a variant that ended its process.
CheckResult result_of(const Spec& spec, const Death& death) {
  const std::string variant = death.in_kernel ? death.variant : Ledger::kOracle,
                    isa = death.in_kernel ? death.isa : "any";
  Ledger ledger(spec, spec.dtypes.front());
  ledger.note(isa, variant,
              death.in_kernel ? fmt::format("{}: {}", death.what, death.how)
                              : fmt::format("the check {} outside of a kernel", death.how));
  CheckResult result = ledger.close().front();
  if (death.in_kernel) result.dtype = death.dtype;
  return result;
}

std::vector<CheckResult> check_all(const std::vector<const Spec*>& specs, const CheckOptions& options) {
  std::vector<CheckResult> results;
  std::int64_t done = 0, total = 0;
  for (const Spec* spec : specs) total += options.huge ? 1 : cases_of(*spec, options);
  std::vector<Queues> queues;
  const bool children = in_children(options);
  if (!children) queues = make_queues(options);
  for (const Spec* spec : specs) {
    Work work{*spec, dtypes_of(*spec, options), {}, done, total};
    const Receive receive = [&](const std::vector<CheckResult>& more) {
      results.insert(results.end(), more.begin(), more.end());
      if (!work.dtypes.empty()) work.dtypes.erase(work.dtypes.begin());
    };
    if (!children) {
      const LastWords last_words;
      const Work all = work;
      run_here(all, options, queues, receive);
    }
    while (children && !cancelled(options) && !work.dtypes.empty()) {
      const Death death = run_in_child(work, options, receive);
      if (!death.died) break;
      results.push_back(result_of(*spec, death));
      // On with the others; what dies twice would do so for ever.
      if (!death.in_kernel || !work.dead.insert({death.isa, death.variant}).second) break;
    }
    if (cancelled(options)) break;
    done += options.huge ? 1 : cases_of(*spec, options);
  }
  return results;
}

/// Whether nobody chose dtypes, and the emulated device was built without f16's kernels.
bool lacks_f16(const CheckOptions& options) {
  return !ROOFTILE_EMULATED_F16 && options.dtypes.empty() &&
         (contains(options.isas, std::string("emulated")) ||
          contains(options.isas, std::string("emulated-checked")));
}

}  // namespace

std::vector<CheckResult> check(const CheckOptions& options) {
  std::vector<const Spec*> specs;
  for (const Spec& spec : all_specs())
    if (options.functions.empty() || contains(options.functions, std::string(spec.function)))
      specs.push_back(&spec);
  for (const std::string& function : options.functions) {
    if (find_spec(function)) continue;
    std::string known;
    for (const Spec& spec : all_specs()) known += (known.empty() ? "" : ", ") + std::string(spec.function);
    throw std::invalid_argument(fmt::format("check: no function \"{}\"; there are {}", function, known));
  }
  for (const std::string& variant : options.variants) {
    bool known = variant == Ledger::kChoice;
    for (const Spec* spec : specs)
      if (const Op* op = find_op(spec->function))
        for (const Variant& v : op->variants) known = known || variant == v.name;
    if (!known)
      throw std::invalid_argument(
          fmt::format("check: no variant \"{}\" of the functions asked for", variant));
  }
  for (DType dtype : options.dtypes)
    if (std::none_of(specs.begin(), specs.end(), [&](const Spec* s) { return contains(s->dtypes, dtype); }))
      throw std::invalid_argument(
          fmt::format("check: none of the functions asked for takes {}", rooftile::name(dtype)));
  if (!lacks_f16(options)) return check_all(specs, options);
  CheckOptions others = options;
  for (int type = 0; type < kDTypes; ++type)
    if (DType{static_cast<std::uint8_t>(type)} != DType::f16)
      others.dtypes.push_back(DType{static_cast<std::uint8_t>(type)});
  std::vector<CheckResult> results = check_all(specs, others);
  if (!results.empty())
    results.front().notes.push_back(
        "f16 is left out: this build has no kernels of it for the emulated device (ROOFTILE_EMULATED_F16)");
  return results;
}

std::vector<CheckResult> check_spec(const Spec& spec, const CheckOptions& options) {
  return check_all({&spec}, options);
}

}  // namespace rooftile::harness
