// Every op and dtype through the check engine: a new op folder is tested without a change here. All cases run
// on each instruction set. At every offset, row and number of threads bits are compared on the best of them
// alone, since all are compiled from one source; on the others each way through a kernel once, and by
// fuzz_test's random cases. Under AddressSanitizer, which says nothing of bits, that holds for all, and f16
// gets two cases of each variant: its kernels touch the same addresses in the same order as bf16's.
// make test-all (ROOFTILE_ALL_CASES) compares bits everywhere.
#include <gtest/gtest.h>

#include <cstdlib>

#include "rooftile/harness/check/check.h"
#include "rooftile/harness/check/runner.h"

namespace rooftile::harness {
namespace {

struct Subject {
  const Spec* spec;
  DType dtype;
};
std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Spec& spec : all_specs())
    for (DType dtype : spec.dtypes) all.push_back({&spec, dtype});
  return all;
}

class Ops : public testing::TestWithParam<Subject> {};

TEST_P(Ops, Checked) {
  CheckOptions options;
  options.functions = {GetParam().spec->function};
  options.dtypes = {GetParam().dtype};
  if (!std::getenv("ROOFTILE_ALL_CASES")) options.brief = built_isas();
#if defined(__SANITIZE_ADDRESS__)
  options.quick = GetParam().dtype == DType::f16;
#else
  if (!options.brief.empty()) options.brief.pop_back();
#endif
  const std::vector<CheckResult> results = check(options);
  int cases = 0;
  for (const CheckResult& r : results) {
    for (const std::string& failure : r.failures) ADD_FAILURE() << failure;
    EXPECT_TRUE(r.ok()) << r.function << " " << r.variant << " " << r.isa << ": " << r.passed << " of "
                        << r.cases;
    cases += r.cases;
  }
  EXPECT_GT(cases, options.quick ? 0 : 50) << "the checks ran";
}

INSTANTIATE_TEST_SUITE_P(, Ops, testing::ValuesIn(subjects()), [](const auto& subject) {
  return std::string(subject.param.spec->function) + "_" + name(subject.param.dtype);
});

TEST(Registry, EachOpHasASpecAndEachSpecAnOp) {
  for (const Op* op : all_ops()) EXPECT_NE(find_spec(op->function), nullptr) << op->function;
  for (const Spec& spec : all_specs()) EXPECT_NE(find_op(spec.function), nullptr) << spec.function;
}

}  // namespace
}  // namespace rooftile::harness
