// Every GPU kernel of the library on the emulated device: all cases, plain and under the checks (quick's rows
// fit a warp, where a block's barrier does not matter). One test for each function, so that they share out
// among processors.
#include <gtest/gtest.h>

#include <tuple>

#include "rooftile/harness/check.h"

namespace rooftile::harness {
namespace {

class EmulatedOps : public testing::TestWithParam<std::tuple<const char*, std::size_t>> {};

TEST_P(EmulatedOps, Checked) {
  const auto [device, index] = GetParam();
  const Spec& spec = all_specs()[index];
  CheckOptions options;
  options.functions = {spec.function};
  options.isas = {device};
  int cases = 0;
  for (const CheckResult& r : check(options)) {
    for (const std::string& failure : r.failures) ADD_FAILURE() << failure;
    EXPECT_TRUE(r.ok()) << r.function << " " << r.variant << " " << r.isa << ": " << r.passed << " of "
                        << r.cases;
    cases += r.cases;
  }
  EXPECT_GT(cases, 50) << "the checks ran";
}

INSTANTIATE_TEST_SUITE_P(, EmulatedOps,
                         testing::Combine(testing::Values("emulated-checked", "emulated"),
                                          testing::Range(std::size_t{0}, all_specs().size())),
                         [](const auto& subject) {
                           const std::string device = std::get<0>(subject.param);
                           return std::string(all_specs()[std::get<1>(subject.param)].function) +
                                  (device == "emulated" ? "" : "_under_checks");
                         });

}  // namespace
}  // namespace rooftile::harness
