// Every GPU kernel of the library on the emulated device: all cases, under the checks (quick's rows fit a
// warp, where a block's barrier does not matter) and, in make test-all, plain. One test for each function, so
// that they share out among processors. Under the checks each way through a kernel is gone once, and not with
// every offset, row and number of threads; and f16 is left out: its kernels touch the same addresses in the
// same order as bf16's. Both are left to make test-all (ROOFTILE_ALL_DTYPES).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <tuple>

#include "rooftile/core/signature.h"
#include "rooftile/harness/check/check.h"

namespace rooftile::harness {
namespace {

class EmulatedOps : public testing::TestWithParam<std::tuple<const char*, std::size_t>> {};

TEST_P(EmulatedOps, Checked) {
  const auto [device, index] = GetParam();
  const Spec& spec = all_specs()[index];
  CheckOptions options;
  options.functions = {spec.function};
  options.isas = {device};
  options.paths = std::string_view(device) == "emulated-checked" && !std::getenv("ROOFTILE_ALL_DTYPES");
  if (options.paths)
    for (const DType dtype : spec.dtypes)
      if (dtype != DType::f16) options.dtypes.push_back(dtype);
  const Signature& signature = find_op(spec.function)->signature;
  if (std::all_of(spec.dtypes.begin(), spec.dtypes.end(),
                  [&](DType t) { return signature.types[0].on_cpus_alone(t); })) {
    EXPECT_TRUE(check(options).empty());
    return;  // a function of CPUs alone
  }
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
