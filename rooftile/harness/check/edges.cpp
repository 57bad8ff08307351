// Reads outside of the operands, shown by pages that may not be accessed.
#include <fmt/format.h>
#include <setjmp.h>
#include <signal.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/invariance.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {

#if defined(__SANITIZE_ADDRESS__)
using LeaksAllowed = __lsan::ScopedDisabler;
#else
struct LeaksAllowed {
  LeaksAllowed() {}  // not trivial, or it would be an unused variable
};
#endif

sigjmp_buf back;
void jump(int) { siglongjmp(back, 1); }

/// Runs f; false where it touched a page that may not be accessed. What f held is lost then.
template <class F>
bool survives(F&& f) {
  struct sigaction mine = {}, old_segv, old_bus;
  mine.sa_handler = jump;
  mine.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &mine, &old_segv);
  sigaction(SIGBUS, &mine, &old_bus);
  const bool fine = sigsetjmp(back, 1) == 0 ? (f(), true) : false;
  sigaction(SIGSEGV, &old_segv, nullptr);
  sigaction(SIGBUS, &old_bus, nullptr);
  return fine;
}

/// On the calling thread alone, so that the jump out of a kernel stays on its stack.
Queue* calling_thread(const std::string& isa, std::int64_t streaming_bytes) {
  if (isa == "emulated" || isa == "emulated-checked") {
    EmulatedOptions options;
    options.threads = 1;
    options.checked = isa != "emulated";
    return new Queue(Queue::emulated(options));
  }
  CpuOptions options;
  options.threads = 1;
  options.isa = isa.c_str();
  options.streaming_bytes = streaming_bytes;
  return new Queue(Queue::cpu(options));
}

}  // namespace

void check_edges(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger) {
  const LeaksAllowed what_a_jump_leaves_behind;
  const Fill usual = is_floating(dtype) ? Fill::normal : Fill::bytes;
  const auto sets = parameter_sets(spec, dtype, 3);
  for (const Queues& queues : subjects.isas) {
    if (has_own_memory(queues.all[Queues::kOne].queue)) continue;  // a GPU's pages cannot be guarded
    Queue* const both[] = {calling_thread(queues.isa, std::int64_t{1} << 62), calling_thread(queues.isa, 0)};
    const Queue* queue[] = {both[0], both[1]};
    for (std::int64_t columns : {1, 2, 3, 15, 16, 17, 31, 33, 64, 65, 100, 133, 300}) {
      for (const auto& parameters : sets) {
        const Case c{shape_of(spec, 3, columns), dtype, parameters, Layout::contiguous, usual};
        if ((spec.refuses && spec.refuses(c)) || (spec.suits && !spec.suits(c))) continue;
        const Problem p(spec, c, 5);
        for (Edge edge : {Edge::back, Edge::front}) {
          for (const char* variant : subjects.of(queues)) {
            const int which = columns % 2 == 0;
            auto memory = std::make_unique<Memory>(p, edge);
            Run got;
            const bool fine = survives([&] { got = run(*queue[which], p, *memory, variant); });
            std::string failure = got.damage;
            if (!fine) {
              failure =
                  fmt::format("touches memory {} its operands", edge == Edge::back ? "behind" : "before");
              (void)memory.release();  // what the jump left behind is in no state to be used or taken down
              queue[which] = calling_thread(queues.isa, which ? 0 : std::int64_t{1} << 62);
            } else if (got.refused) {
              if (variant) ++ledger.of(queues.isa, variant).refused;
              continue;
            }
            const std::string label = variant ? variant : Ledger::kChoice;
            ledger.note(queues.isa, label, failure.empty() ? "" : describe(c) + ": " + failure);
          }
        }
      }
    }
    for (std::size_t q = 0; q < 2; ++q)
      if (queue[q] == both[q]) delete both[q];
  }
}

}  // namespace rooftile::harness
