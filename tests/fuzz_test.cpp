// Random cases by structure: 100,000, which all functions share, so that one function more costs no time;
// under AddressSanitizer 400 of each, or of each what ROOFTILE_FUZZ_CASES says (make test-all: 100,000).
// ROOFTILE_FUZZ_SEED gives others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "rooftile/harness/check/check.h"

namespace rooftile::harness {
namespace {

long number(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtol(text, nullptr, 10) : otherwise;
}

long cases_of_each() {
#if defined(__SANITIZE_ADDRESS__)
  return 400;
#else
  return std::max(400L, 100000 / static_cast<long>(all_specs().size()));
#endif
}

class Fuzz : public testing::TestWithParam<std::size_t> {};

TEST_P(Fuzz, RandomCases) {
  CheckOptions options;
  options.functions = {all_specs()[GetParam()].function};
  options.listed = false;
  options.random_cases = static_cast<int>(number("ROOFTILE_FUZZ_CASES", cases_of_each()));
  options.seed = static_cast<std::uint64_t>(number("ROOFTILE_FUZZ_SEED", 1));
  int cases = 0;
  for (const CheckResult& r : check(options)) {
    for (const std::string& failure : r.failures) ADD_FAILURE() << failure;
    for (const std::string& note : r.notes) std::puts(note.c_str());
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
