// What the cases of rooftile/ops/attention cannot say: by wgmma, which takes tiles and, backward, heads that
// the check's own shapes seldom have, both directions give the bits of mma, however their operands lie and
// whatever lies beside.
#include "rooftile/ops/attention/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "rooftile/core/convert.h"

namespace rooftile {
namespace {

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;

/// How {B, S, H, D} lies in memory: as it reads; {B, H, S, D}, which the copy engine takes, too; or with
/// every other element, which threads gather.
enum class Lie { dense, turned, apart };

struct Tensor {
  std::int64_t shape[4];
  std::vector<bf16> elements;

  ConstView in(Lie lie, std::vector<bf16>& memory) const {
    const View v = out(lie, memory);
    each([&](std::size_t i, std::int64_t at) { memory[static_cast<std::size_t>(at)] = elements[i]; }, v);
    return v;
  }
  View out(Lie lie, std::vector<bf16>& memory) const {
    const std::int64_t apart = lie == Lie::apart ? 2 : 1;
    memory.assign(elements.size() * static_cast<std::size_t>(apart), from_double<bf16>(-7));
    View v = lie == Lie::turned ? view(memory.data(), {shape[0], shape[2], shape[1], shape[3]})
                                : view(memory.data(), {shape[0], shape[1], shape[2], shape[3]});
    if (lie == Lie::turned) std::swap(v.shape[1], v.shape[2]), std::swap(v.stride[1], v.stride[2]);
    for (std::int64_t& stride : v.stride) stride *= apart;
    return v;
  }
  /// What came out, dense.
  std::vector<bf16> back(const View& v) const {
    std::vector<bf16> all(elements.size());
    const bf16* const from = static_cast<const bf16*>(v.data);
    each([&](std::size_t i, std::int64_t at) { all[i] = from[at]; }, v);
    return all;
  }
  Tensor batch(std::int64_t which) const {
    const auto size = static_cast<std::ptrdiff_t>(elements.size()) / shape[0];
    return {{1, shape[1], shape[2], shape[3]},
            {elements.begin() + which * size, elements.begin() + (which + 1) * size}};
  }

 private:
  template <class F>
  void each(F&& f, const View& v) const {
    std::size_t i = 0;
    for (std::int64_t b = 0; b < shape[0]; ++b)
      for (std::int64_t s = 0; s < shape[1]; ++s)
        for (std::int64_t h = 0; h < shape[2]; ++h)
          for (std::int64_t c = 0; c < shape[3]; ++c)
            f(i++, b * v.stride[0] + s * v.stride[1] + h * v.stride[2] + c * v.stride[3]);
  }
};

struct Problem {
  Tensor q, k, v, y, dy;
  std::vector<float> lse;
  AttentionOptions options;
  std::vector<std::int32_t> cu_q = {}, cu_k = {};
};

/// dq, dk and dv, one after the other.
std::vector<bf16> gradients(const Queue& queue, const Problem& p, const char* variant, Lie in, Lie out) {
  std::vector<bf16> memory[8], all;
  const View dq = p.q.out(out, memory[5]), dk = p.k.out(out, memory[6]), dv = p.v.out(out, memory[7]);
  AttentionOptions options = p.options;
  options.variant = variant;
  const Status s = attention_backward(queue,
                                      {.q = p.q.in(in, memory[0]),
                                       .k = p.k.in(in, memory[1]),
                                       .v = p.v.in(in, memory[2]),
                                       .y = p.y.in(in, memory[3]),
                                       .dy = p.dy.in(in, memory[4]),
                                       .lse = view(p.lse.data(), {p.q.shape[0], p.q.shape[2], p.q.shape[1]})},
                                      {.dq = dq, .dk = dk, .dv = dv}, options);
  EXPECT_TRUE(s) << s.message();
  for (const std::vector<bf16>& part : {p.q.back(dq), p.k.back(dk), p.v.back(dv)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}
bool same(const std::vector<bf16>& a, const std::vector<bf16>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(bf16)) == 0;
}

/// Two batches, two heads of q to one of k.
Problem problem_of(const Queue& queue, std::int64_t queries, std::int64_t keys, std::int64_t d,
                   const AttentionOptions& options) {
  std::mt19937 random(static_cast<unsigned>(queries + keys + d));
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::int64_t rows, std::int64_t heads) {
    Tensor t{{2, rows, heads, d}, std::vector<bf16>(static_cast<std::size_t>(2 * rows * heads * d))};
    for (bf16& x : t.elements) x = from_double<bf16>(double(normal(random)));
    return t;
  };
  Problem p{numbers(queries, 2),
            numbers(keys, 1),
            numbers(keys, 1),
            numbers(queries, 2),
            numbers(queries, 2),
            std::vector<float>(static_cast<std::size_t>(2 * 2 * queries)),
            options};
  std::vector<bf16> memory[3];
  const Status s = attention(
      queue,
      {.q = p.q.in(Lie::dense, memory[0]),
       .k = p.k.in(Lie::dense, memory[1]),
       .v = p.v.in(Lie::dense, memory[2])},
      {.y = view(p.y.elements.data(), {2, queries, 2, d}), .lse = view(p.lse.data(), {2, 2, queries})},
      options);
  EXPECT_TRUE(s) << s.message();
  return p;
}

/// y, then lse.
std::vector<std::uint32_t> results(const Queue& queue, const Problem& p, const char* variant, Lie lie) {
  std::vector<bf16> memory[4];
  std::vector<float> lse(p.lse.size());
  const View y = p.y.out(lie, memory[3]);
  AttentionOptions options = p.options;
  options.variant = variant;
  AttentionInputs in{.q = p.q.in(lie, memory[0]), .k = p.k.in(lie, memory[1]), .v = p.v.in(lie, memory[2])};
  if (const auto n = static_cast<std::int64_t>(p.cu_q.size()); n != 0)
    in.cu_seqlens_q = view(p.cu_q.data(), {n}), in.cu_seqlens_k = view(p.cu_k.data(), {n});
  const Status s = attention(
      queue, in, {.y = y, .lse = view(lse.data(), {p.q.shape[0], p.q.shape[2], p.q.shape[1]})}, options);
  EXPECT_TRUE(s) << s.message();
  std::vector<std::uint32_t> all;
  for (const bf16 x : p.y.back(y)) all.push_back(x.bits);
  for (const float x : lse) all.push_back(std::bit_cast<std::uint32_t>(x));
  return all;
}

/// Scores of a large scale grow from tile to tile, and within a tile of wgmma, so that sums must shrink.
TEST(Attention, GivesTheBitsOfMmaByWgmmaOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.threads = 2});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  const AttentionOptions masks[] = {
      {.scale = 1}, {.causal = true, .scale = .5}, {.window_left = 600, .window_right = 20}};
  for (const std::int64_t d : {64, 72, 128, 256})
    for (const AttentionOptions& options : masks) {
      if ((d == 72 || d == 256) && !options.causal) continue;
      SCOPED_TRACE(testing::Message() << "heads of " << d << ", causal " << options.causal << ", "
                                      << options.window_left << " keys to the left");
      const Problem p = problem_of(queue, 140, 1100, d, options);
      const std::vector<std::uint32_t> expected = results(queue, p, "mma", Lie::dense);
      for (const Lie lie : {Lie::dense, Lie::apart})
        EXPECT_EQ(results(queue, p, "wgmma", lie), expected) << "lies " << static_cast<int>(lie);
    }
}

/// What lies before, between and behind sequences is NaN. One has no query, one no key.
TEST(Attention, GivesTheBitsOfMmaByWgmmaOfPackedSequencesOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.threads = 2});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  for (const std::int64_t d : {64, 128, 200})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message() << "heads of " << d << ", causal " << causal);
      const Problem two = problem_of(queue, 300, 900, d, {.causal = causal, .scale = .5});
      Problem p{two.q.batch(1), two.k.batch(1), two.v.batch(1),       two.y.batch(1),         {},
                two.lse,        two.options,    {2, 70, 70, 71, 290}, {5, 605, 640, 640, 890}};
      p.lse.resize(p.lse.size() / 2);
      for (Tensor* t : {&p.k, &p.v}) {
        const std::size_t row = t->elements.size() / 900;
        for (const std::size_t at : {4, 620, 890, 899})
          std::fill_n(t->elements.begin() + static_cast<std::ptrdiff_t>(at * row), row, bf16{0x7fc0});
      }
      const std::vector<std::uint32_t> expected = results(queue, p, "mma", Lie::dense);
      for (const Lie lie : {Lie::dense, Lie::apart})
        EXPECT_EQ(results(queue, p, "wgmma", lie), expected) << "lies " << static_cast<int>(lie);
    }
}

TEST(Attention, GivesTheGradientsOfMmaByWgmmaOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.threads = 1}), other = Queue::emulated({.threads = 2, .seed = 5});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  const AttentionOptions masks[] = {{}, {.causal = true}, {.window_left = 40, .window_right = 20}};
  for (const std::int64_t d : {64, 128})
    for (const AttentionOptions& options : masks) {
      SCOPED_TRACE(testing::Message() << "heads of " << d << ", causal " << options.causal << ", "
                                      << options.window_left << " keys to the left");
      const Problem p = problem_of(queue, 140, 210, d, options);
      const std::vector<bf16> expected = gradients(queue, p, "mma", Lie::dense, Lie::dense);
      for (const Lie in : {Lie::dense, Lie::turned, Lie::apart})
        for (const Lie out : {Lie::dense, Lie::turned, Lie::apart}) {
          if (in != out && in != Lie::dense) continue;
          EXPECT_TRUE(same(gradients(in == out ? queue : other, p, "wgmma", in, out), expected))
              << "inputs " << static_cast<int>(in) << ", outputs " << static_cast<int>(out);
        }
      // A batch alone.
      const auto half = static_cast<std::ptrdiff_t>(p.lse.size() / 2);
      const Problem second{p.q.batch(1), p.k.batch(1),  p.v.batch(1),
                           p.y.batch(1), p.dy.batch(1), {p.lse.begin() + half, p.lse.end()},
                           options};
      EXPECT_TRUE(same(gradients(queue, second, "wgmma", Lie::dense, Lie::dense),
                       gradients(queue, second, "mma", Lie::dense, Lie::dense)));
      const std::vector<bf16> alone = gradients(queue, second, "wgmma", Lie::dense, Lie::dense);
      const std::size_t of_dq = second.q.elements.size();
      EXPECT_EQ(std::memcmp(alone.data(), expected.data() + of_dq, of_dq * sizeof(bf16)), 0);
    }
}

/// Few queries and many keys, whose blocks threads share: sequences that are packed, too.
TEST(Attention, HasTheSameBitsAtAnyNumberOfThreads) {
  constexpr std::int64_t kQueries = 3, kKeys = 4000, kHeads = 2, kD = 64, kE = 70;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::int64_t count) {
    std::vector<float> all(static_cast<std::size_t>(count));
    for (float& x : all) x = normal(random);
    return all;
  };
  std::vector<float> q = numbers(kQueries * kHeads * kD), k = numbers(kKeys * kD), v = numbers(kKeys * kE),
                     bias = numbers(kHeads * kQueries * kKeys), sink = numbers(kHeads), alibi{.01f, .02f};
  std::int64_t seed = 5;
  std::vector<std::int32_t> cu_q{0, 1, 3}, cu_k{0, 1900, 4000};
  const auto results = [&](int threads, int which) {
    AttentionInputs in{.q = view(q.data(), {1, kQueries, kHeads, kD}),
                       .k = view(k.data(), {1, kKeys, 1, kD}),
                       .v = view(v.data(), {1, kKeys, 1, kE})};
    AttentionOptions options{.causal = which != 1};
    if (which == 1)
      in.bias = view(bias.data(), {1, kHeads, kQueries, kKeys}), in.sink = view(sink.data(), {kHeads});
    if (which == 2) in.seed = view(&seed, {1}), in.alibi = view(alibi.data(), {kHeads}), options.dropout = .3;
    if (which == 3) in.cu_seqlens_q = view(cu_q.data(), {3}), in.cu_seqlens_k = view(cu_k.data(), {3});
    if (which == 4) options.window_left = 900;
    std::vector<float> y(kQueries * kHeads * kE, 9), lse(kHeads * kQueries, 9);
    const Status s = attention(
        Queue::cpu({.threads = threads}), in,
        {.y = view(y.data(), {1, kQueries, kHeads, kE}), .lse = view(lse.data(), {1, kHeads, kQueries})},
        options);
    EXPECT_TRUE(s) << s.message();
    y.insert(y.end(), lse.begin(), lse.end());
    return y;
  };
  for (int which = 0; which < 5; ++which) {
    const std::vector<float> one = results(1, which);
    for (int threads : {2, 4, 9, 16}) {
      const std::vector<float> other = results(threads, which);
      EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size() * sizeof(float)), 0)
          << threads << " threads, call " << which;
    }
  }
}

}  // namespace
}  // namespace rooftile
