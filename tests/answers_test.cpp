// `why` answers what a call would: of every function, for every dtype.
#include "cli/answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cli/failure.h"
#include "rooftile/harness/spec.h"

namespace rooftile::cli {
namespace {

/// What became of a call: the variant that runs or would, or why there is none.
struct Outcome {
  bool taken = false;
  std::string word;  ///< the variant, or the refusal
};

Outcome asked(const Queue& queue, const harness::Spec& spec, const harness::Case& c) try {
  for (const Answer& answer : answers_to(queue, spec, c))
    if (answer.chosen) return {true, answer.variant->name};
  return {false, "no variant takes it"};
} catch (const Failure& failure) {
  EXPECT_EQ(failure.code(), kFailedCheck);
  return {false, failure.what()};
}

/// The same call, made on zeros, but for what no input may lack.
Outcome made(Queue queue, const harness::Spec& spec, const harness::Case& c) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<std::vector<Line>> memory;
  const auto take = [&](std::size_t bytes) { return memory.emplace_back(bytes / sizeof(Line) + 1).data(); };
  harness::Arguments arguments;
  for (const harness::Operand& operand : spec.operands(c)) {
    View view;
    view.dtype = operand.dtype;
    view.rank = static_cast<int>(operand.shape.size());
    std::int64_t dense = 1;
    for (int d = view.rank; d-- > 0; dense *= view.shape[d]) {
      view.shape[d] = operand.shape[static_cast<std::size_t>(d)];
      view.stride[d] = dense;
    }
    view.data = take(static_cast<std::size_t>(bytes_of(operand.dtype, dense)));
    arguments.add(operand.name, view);
  }
  if (spec.bench_prepare) spec.bench_prepare(c, arguments);
  Outcome outcome;
  queue.set_observer({&outcome.word, [](void* word, const char*, const char* variant, const char*) {
                        *static_cast<std::string*>(word) = variant;
                      }});
  Workspace workspace;
  Status status = spec.workspace ? spec.workspace(queue, c, arguments, workspace.bytes) : Status();
  if (workspace.bytes) workspace.pointer = take(workspace.bytes);
  if (status) status = spec.call(queue, c, arguments, nullptr, workspace);
  queue.set_observer({});
  outcome.taken = status.ok();
  if (!status) outcome.word = status.message();
  return outcome;
}

TEST(Answers, AreThoseOfTheCallOfEveryFunctionForEveryDtype) {
  const Queue queue = Queue::cpu({.threads = 1});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  int taken = 0, refused = 0;
  for (const harness::Spec& spec : harness::all_specs())
    for (int t = 0; t < kDTypes; ++t) {
      harness::Case c = spec.bench().cache.front();
      c.dtype = static_cast<DType>(t);
      const bool listed = std::count(spec.dtypes.begin(), spec.dtypes.end(), c.dtype) > 0;
      const Outcome answer = asked(queue, spec, c), call = made(queue, spec, c);
      EXPECT_EQ(answer.taken, call.taken) << spec.function << " " << name(c.dtype) << ": " << call.word;
      EXPECT_EQ(answer.word, call.word) << spec.function << " " << name(c.dtype);
      EXPECT_TRUE(call.taken || !listed) << spec.function << " " << name(c.dtype) << ": " << call.word;
      // Otherwise the question is about another call.
      const std::vector<harness::Operand> operands = spec.operands(c);
      EXPECT_TRUE(std::any_of(operands.begin(), operands.end(), [&](auto& o) { return o.dtype == c.dtype; }))
          << spec.function << " " << name(c.dtype);
      EXPECT_TRUE(call.taken || call.word.find(name(c.dtype)) != std::string::npos) << call.word;
      ++(call.taken ? taken : refused);
    }
  EXPECT_GT(taken, 20);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace rooftile::cli
