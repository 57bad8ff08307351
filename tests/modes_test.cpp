// An option that is refused is refused whatever traps the caller has on. What calls compute under them,
// `rooftile check` sees (rooftile/harness/check/modes.cpp).
#include <gtest/gtest.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cfenv>
#include <csignal>

#include "rooftile/harness/check/runner.h"
#include "rooftile/ops/activation/activation.h"
#include "rooftile/ops/layer_norm/layer_norm.h"

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

#if defined(__x86_64__)
// Of all control bits: <cfenv> tells of x86's other unit.
TEST(Modes, AreTheCallersAgainAfterACall) {
  constexpr unsigned kControl = 0xffc0, kOther = 0xefc0;  // toward zero, no subnormals, the inexact trap on
  const float x[4] = {-1, 2, -3, 4};
  float y[4];
  const Queue queue = Queue::cpu({.threads = 1});
  const ConstView from = view(x, {4});
  const View to = view(y, {4});
  const unsigned before = _mm_getcsr();
  _mm_setcsr((before & ~(kControl | 0x3fu)) | kOther);
  const Status status = relu(queue, from, to);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(after & kControl, kOther);
}
#endif

}  // namespace
}  // namespace rooftile::harness
