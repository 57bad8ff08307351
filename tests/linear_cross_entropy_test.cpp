// What linear_cross_entropy keeps in memory, and who hears of the calls that it is made of.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "rooftile/core/view_of.h"
#include "rooftile/ops/gemm/gemm.h"
#include "rooftile/ops/linear_cross_entropy/linear_cross_entropy.h"

namespace rooftile {
namespace {

/// A call of so many rows on memory that nobody reads: every input shows one element.
struct Sizes {
  std::int64_t rows, channels, classes;
  float value = 0;
  std::int64_t target = 0;
  LinearCrossEntropyInputs inputs() {
    return {view(static_cast<const float*>(&value), {rows, channels}, {0, 0}),
            view(static_cast<const float*>(&value), {classes, channels}, {0, 0}),
            view(static_cast<const std::int64_t*>(&target), {rows}, {0})};
  }
};

std::size_t workspace(const Queue& queue, std::int64_t rows, std::int64_t classes,
                      const LinearCrossEntropyOptions& options = {}) {
  Sizes sizes{rows, 64, classes};
  float loss = 0;
  std::size_t bytes = 0;
  const Status status =
      linear_cross_entropy_workspace(queue, sizes.inputs(), {.loss = scalar_view(&loss)}, options, bytes);
  EXPECT_TRUE(status) << status.message();
  return bytes;
}

TEST(LinearCrossEntropy, ItsWorkspaceIsOfAChunk) {
  const Queue queue = Queue::cpu({.threads = 1});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  constexpr std::int64_t kClasses = 32000;
  const std::size_t few = workspace(queue, 1024, kClasses), many = workspace(queue, 65536, kClasses);
  EXPECT_EQ(few, 512u * kClasses * 4 + 1024 * 4);
  EXPECT_EQ(many - few, (65536u - 1024) * 4);  // each row's loss
  // Of small vocabularies 64 MiB at most, of large ones 512 rows.
  EXPECT_EQ(workspace(queue, 1 << 20, 1024), (1u << 26) + (4u << 20));
  EXPECT_EQ(workspace(queue, 1 << 20, 128256), 512u * 128256 * 4 + (4u << 20));
  EXPECT_EQ(workspace(queue, 100, kClasses, {.chunk = 10}), 10u * kClasses * 4 + 448);  // of 64 bytes each
}

TEST(LinearCrossEntropy, RefusesWhatDoesNotFit) {
  const Queue queue = Queue::cpu({.threads = 1});
  Sizes sizes{4, 8, 16};
  float loss = 0;
  LinearCrossEntropyInputs in = sizes.inputs();
  EXPECT_EQ(
      std::string(linear_cross_entropy(queue, in, {.loss = scalar_view(&loss)}).message()),
      "linear_cross_entropy: needs a workspace of 320 bytes (ask linear_cross_entropy_workspace), was given "
      "0");
  EXPECT_EQ(
      std::string(linear_cross_entropy(queue, in, {.loss = scalar_view(&loss)}, {.chunk = -1}).message()),
      "linear_cross_entropy: chunk is -1, must be a whole number and not negative");
  in.weight = view(static_cast<const float*>(&sizes.value), {16, 9}, {0, 0});
  EXPECT_EQ(std::string(linear_cross_entropy(queue, in, {.loss = scalar_view(&loss)}).message()),
            "linear_cross_entropy: weight is 16x9 f32 (strides 0, 0), must be Vx8 where hidden is 4x8 f32 "
            "(strides 0, 0)");
}

TEST(LinearCrossEntropy, AnObserverHearsOfTheCallAlone) {
  Queue queue = Queue::cpu({.threads = 1});
  std::vector<std::string> heard;
  queue.set_observer({&heard, [](void* context, const char* op, const char* variant, const char*) {
                        static_cast<std::vector<std::string>*>(context)->push_back(std::string(op) + " " +
                                                                                   variant);
                      }});
  const std::vector<float> hidden(6 * 4, 0.5f), weight(3 * 4, 0.25f);
  const std::vector<std::int64_t> target(6, 1);
  float loss = 0;
  alignas(64) std::byte memory[1024];
  const Status status = linear_cross_entropy(
      queue, {view(hidden.data(), {6, 4}), view(weight.data(), {3, 4}), view(target.data(), {6})},
      {.loss = scalar_view(&loss)}, {.chunk = 2}, {memory, sizeof memory});
  ASSERT_TRUE(status) << status.message();
  EXPECT_NEAR(loss, std::log(3), 1e-6);
  float y[9];
  ASSERT_TRUE(gemm(queue, {view(weight.data(), {3, 4}), view(hidden.data(), {4, 3})}, view(y, {3, 3})));
  queue.set_observer({});
  EXPECT_EQ(heard, (std::vector<std::string>{"linear_cross_entropy chunks", "gemm tile"}));
}

}  // namespace
}  // namespace rooftile
