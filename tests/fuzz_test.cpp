// Random shapes, strides and offsets: 10,000 over all ops under AddressSanitizer, 1,000 elsewhere, as many as
// ROOFTILE_FUZZ_CASES says where it is set; ROOFTILE_FUZZ_SEED gives others.
#include <gtest/gtest.h>

#include <cstdlib>

#include "rooftile/harness/check.h"

namespace rooftile::harness {
namespace {

long number(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtol(text, nullptr, 10) : otherwise;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr long kCases = 10000;
#else
constexpr long kCases = 1000;
#endif

class Fuzz : public testing::TestWithParam<std::size_t> {};

TEST_P(Fuzz, RandomCases) {
  const long all = number("ROOFTILE_FUZZ_CASES", kCases);
  const long specs = static_cast<long>(all_specs().size());
  CheckOptions options;
  options.functions = {all_specs()[GetParam()].function};
  options.listed = false;
  options.random_cases = static_cast<int>((all + specs - 1) / specs);
  options.seed = static_cast<std::uint64_t>(number("ROOFTILE_FUZZ_SEED", 1));
  int cases = 0;
  for (const CheckResult& r : check(options)) {
    for (const std::string& failure : r.failures) ADD_FAILURE() << failure;
    cases += r.cases + r.refused;
  }
  if (all_specs()[GetParam()].standard) {
    EXPECT_GE(cases, options.random_cases * 9 / 10);
  }
}

INSTANTIATE_TEST_SUITE_P(, Fuzz, testing::Range(std::size_t{0}, all_specs().size()), [](const auto& subject) {
  return std::string(all_specs()[subject.param].function);
});

}  // namespace
}  // namespace rooftile::harness
