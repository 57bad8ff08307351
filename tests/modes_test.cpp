// A caller's rounding mode and traps neither show in a result nor end the program: every op of the registry,
// every dtype, on the CPU and on the emulated device.
#include <gtest/gtest.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cfenv>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "rooftile/harness/compare.h"
#include "rooftile/harness/runner.h"
#include "rooftile/harness/standard_cases.h"
#include "rooftile/rooftile.h"

namespace rooftile::harness {
namespace {

struct Mode {
  const char* name;
  int rounding, traps;
};
constexpr Mode kModes[] = {{"rounding up", FE_UPWARD, 0},
                           {"rounding down", FE_DOWNWARD, 0},
                           {"rounding toward zero", FE_TOWARDZERO, 0},
                           {"all traps on", FE_TONEAREST, FE_ALL_EXCEPT}};

// What runs, for the handler: a trap is no failed expectation, but the end of this program.
char running[256];
void trapped(int) {
  const char text[] = "floating-point arithmetic before the guard, or outside it: ";
  (void)!write(2, text, sizeof text - 1);
  (void)!write(2, running, std::strlen(running));
  (void)!write(2, "\n", 1);
  _exit(1);
}

void set(const Mode& mode) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::fesetround(mode.rounding);
#if defined(__GLIBC__)
  feenableexcept(mode.traps);
#endif
}
/// What the guard may change: <cfenv> tells of x86's other unit.
unsigned modes() {
#if defined(__x86_64__)
  return _mm_getcsr() & 0xffc0;
#else
  return static_cast<unsigned>(std::fegetround());
#endif
}
void restore() {
#if defined(__GLIBC__)
  fedisableexcept(FE_ALL_EXCEPT);
#endif
  std::fesetround(FE_TONEAREST);
}

void check_modes(const Queue& queue, const char* device) {
  std::signal(SIGFPE, trapped);
  int calls = 0;
  for (const Spec& spec : all_specs())
    for (const DType dtype : spec.dtypes)
      for (const std::int64_t columns : {777, 1, 0}) {
        // Numbers that a float holds: the cases' own rounding to options is not the library's.
        const Case c{shape_of(spec, 3, columns), dtype, {{"eps", 0.5}, {"scale", 0.75}, {"log", 1}}};
        if ((spec.suits && !spec.suits(c)) || (spec.refuses && spec.refuses(c))) continue;
        const Problem problem(spec, c, 7);
        std::vector<Bytes> expected;
        const auto run = [&](const Mode& mode) {
          std::snprintf(running, sizeof running, "%s, %s, %d columns, %s, %s", spec.function, name(dtype),
                        static_cast<int>(columns), device, mode.name);
          Memory memory(problem);
          Workspace workspace;
          const Arguments arguments = memory.arguments();
          Status status = spec.workspace ? memory.workspace(queue, workspace) : Status{};
          ASSERT_TRUE(status) << running << ": " << status.message();
          std::size_t bytes = 0;
          set(mode);
          const unsigned before = modes();
          if (spec.workspace) status = spec.workspace(queue, c, arguments, bytes);
          if (status) status = spec.call(queue, c, arguments, nullptr, workspace);
          const unsigned after = modes();
          restore();
          EXPECT_EQ(after, before) << running << ": the caller has other modes after the call";
          ASSERT_TRUE(status) << running << ": " << status.message();
          std::string damage;
          std::vector<Bytes> outputs = memory.take(damage);
          EXPECT_EQ(damage, "") << running;
          if (expected.empty()) expected = outputs;
          for (std::size_t o = 0; o < outputs.size(); ++o) {
            if (!problem.is_output(o)) continue;
            EXPECT_EQ(first_difference(problem.operands()[o].dtype, outputs[o].data(), expected[o].data(),
                                       outputs[o].size()),
                      -1)
                << running << ": " << problem.operands()[o].name;
          }
          ++calls;
        };
        run({"the default", FE_TONEAREST, 0});
        for (const Mode& mode : kModes) run(mode);
      }
  std::signal(SIGFPE, SIG_DFL);
  EXPECT_GT(calls, 300);
}

TEST(Modes, OfTheCallerDoNotShowOnTheCpu) {
  for (const std::string& isa : built_isas())
    check_modes(Queue::cpu({.threads = 1, .isa = isa.c_str()}), isa.c_str());
}

TEST(Modes, OfTheCallerDoNotShowOnTheEmulatedDevice) {
  const Queue queue = Queue::emulated({.threads = 1});
  if (!queue.status()) GTEST_SKIP() << queue.status().message();
  check_modes(queue, "emulated");
}

// An option that is refused is refused whatever traps are on.
TEST(Modes, ANanIsRefusedWithTrapsOn) {
  float x[4] = {}, y[4];
  std::snprintf(running, sizeof running, "layer_norm, eps NaN");
  std::signal(SIGFPE, trapped);
  const Queue queue = Queue::cpu({.threads = 1});
  const ConstView from = view(static_cast<const float*>(x), {4});
  set({"all traps on", FE_TONEAREST, FE_ALL_EXCEPT});
  const Status nan = layer_norm(queue, {from}, {view(y, {4})}, {.eps = __builtin_nanf("")});
  const Status negative = layer_norm(queue, {from}, {view(y, {4})}, {.eps = -1});
  const Status minus_zero = layer_norm(queue, {from}, {view(y, {4})}, {.eps = -0.f});
  restore();
  std::signal(SIGFPE, SIG_DFL);
  EXPECT_STREQ(nan.message(), "layer_norm: eps is nan, must be finite and not negative");
  EXPECT_STREQ(negative.message(), "layer_norm: eps is -1, must be finite and not negative");
  EXPECT_TRUE(minus_zero) << minus_zero.message();
}

}  // namespace
}  // namespace rooftile::harness
