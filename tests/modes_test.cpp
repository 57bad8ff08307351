// An option that is refused is refused whatever traps the caller has on. What calls compute under them,
// `rooftile check` sees (rooftile/harness/modes.cpp).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cfenv>
#include <csignal>

#include "rooftile/harness/runner.h"
#include "rooftile/rooftile.h"

namespace rooftile::harness {
namespace {

void trapped(int) {
  const char text[] = "floating-point arithmetic on options that are refused\n";
  (void)!write(2, text, sizeof text - 1);
  _exit(1);
}

TEST(Modes, ANanIsRefusedWithTrapsOn) {
  float x[4] = {}, y[4];
  std::signal(SIGFPE, trapped);
  const Queue queue = Queue::cpu({.threads = 1});
  const ConstView from = view(static_cast<const float*>(x), {4});
#if defined(__GLIBC__)
  std::feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_ALL_EXCEPT);
#endif
  const Status nan = layer_norm(queue, {from}, {view(y, {4})}, {.eps = __builtin_nanf("")});
  const Status negative = layer_norm(queue, {from}, {view(y, {4})}, {.eps = -1});
  const Status minus_zero = layer_norm(queue, {from}, {view(y, {4})}, {.eps = -0.f});
  leave_fp_mode();
  std::signal(SIGFPE, SIG_DFL);
  EXPECT_STREQ(nan.message(), "layer_norm: eps is nan, must be finite and not negative");
  EXPECT_STREQ(negative.message(), "layer_norm: eps is -1, must be finite and not negative");
  EXPECT_TRUE(minus_zero) << minus_zero.message();
}

}  // namespace
}  // namespace rooftile::harness
