// What the cases of rooftile/ops/paged_attention cannot say: a token decoded has the bits that it has in a
// prefill by attention; a slot's last token stays, on every device; and the sentences.
#include "rooftile/ops/paged_attention/paged_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "rooftile/core/convert.h"
#include "rooftile/core/signature.h"
#include "rooftile/harness/spec.h"

namespace rooftile {
namespace {

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;

struct Options {
  double window_left = -1, scale = 0, softcap = 0;
};

/// Elements of any dtype, dense.
class Tensor {
 public:
  Tensor(DType dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {
    std::size_t size = 1;
    for (std::int64_t s : shape_) size *= static_cast<std::size_t>(s);
    bytes_.resize(size * width());
  }
  std::size_t width() const { return static_cast<std::size_t>(bits(dtype_)) / 8; }
  std::size_t size() const { return bytes_.size() / width(); }
  std::byte* at(std::size_t i) { return bytes_.data() + i * width(); }
  void set(std::size_t i, float value) {
    if (dtype_ == DType::f32) std::memcpy(at(i), &value, 4);
    if (dtype_ == DType::f16) new (at(i)) f16(from_double<f16>(double(value)));
    if (dtype_ == DType::bf16) new (at(i)) bf16(from_double<bf16>(double(value)));
  }
  Tensor& fill(std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < size(); ++i) set(i, normal(random));
    return *this;
  }
  Tensor& fill(float value) {
    for (std::size_t i = 0; i < size(); ++i) set(i, value);
    return *this;
  }
  View view() {
    View v;
    v.data = bytes_.data();
    v.dtype = dtype_;
    v.rank = static_cast<int>(shape_.size());
    std::int64_t stride = 1;
    for (int d = v.rank - 1; d >= 0; --d) {
      v.shape[d] = shape_[static_cast<std::size_t>(d)];
      v.stride[d] = stride;
      stride *= v.shape[d];
    }
    return v;
  }

 private:
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::vector<std::byte> bytes_;
};

View of(std::vector<std::int32_t>& values, std::initializer_list<std::int64_t> shape) {
  View v;
  v.data = values.data();
  v.dtype = DType::i32;
  v.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), v.shape);
  std::int64_t stride = 1;
  for (int d = v.rank - 1; d >= 0; stride *= v.shape[d--]) v.stride[d] = stride;
  return v;
}

struct Sizes {
  std::int64_t tokens, heads, keys, d, e;
};

/// Sequences of random lengths, all of them beginnings of one, whose pages they share: their last `queries`
/// tokens against attention's rows of the same tokens.
void decoded_is_as_prefilled(const Queue& queue, DType dtype, const Sizes& size, std::int64_t sequences,
                             std::int64_t page_size, std::int64_t queries, const Options& options) {
  const Op* attention = harness::find_op("attention");
  if (!attention) GTEST_SKIP() << "this build lacks attention";
  const auto [tokens, heads, keys, d, e] = size;
  std::mt19937 random(static_cast<unsigned>(page_size * 100 + queries));
  Tensor q(dtype, {1, tokens, heads, d}), k(dtype, {1, tokens, keys, d}), v(dtype, {1, tokens, keys, e});
  q.fill(random), k.fill(random), v.fill(random);
  Tensor y(dtype, {1, tokens, heads, e}), lse(DType::f32, {1, heads, tokens});
  {
    const ConstView views[] = {q.view(), k.view(), v.view(), {}, {}, {}, {}, y.view(), lse.view()};
    const ConstView* all[] = {&views[0], &views[1], &views[2], &views[3], &views[4],
                              &views[5], &views[6], &views[7], &views[8]};
    const double values[] = {1, options.window_left, -1, options.scale, options.softcap};
    const Status s = call(queue, *attention, Call{all, values});
    ASSERT_TRUE(s) << s.message();
  }

  // The cache: pages in disorder, all that is not a token NaN.
  const std::int64_t each = (tokens + page_size - 1) / page_size, pages = each + 2;
  Tensor k_cache(dtype, {pages, page_size, keys, d}), v_cache(dtype, {pages, page_size, keys, e});
  k_cache.fill(NAN), v_cache.fill(NAN);
  std::vector<std::int32_t> order(static_cast<std::size_t>(pages)), slots(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  for (std::int64_t j = 0; j < tokens; ++j)
    slots[static_cast<std::size_t>(j)] =
        static_cast<std::int32_t>(order[static_cast<std::size_t>(j / page_size)] * page_size + j % page_size);
  Status s =
      kv_cache_append(queue, {k.view(), v.view(), of(slots, {1, tokens})}, {k_cache.view(), v_cache.view()});
  ASSERT_TRUE(s) << s.message();

  std::vector<std::int32_t> lengths(static_cast<std::size_t>(sequences)),
      table(static_cast<std::size_t>(sequences * each), -7);  // what no sequence reaches is no page
  Tensor last(dtype, {sequences, queries, heads, d}), decoded(dtype, {sequences, queries, heads, e}),
      decoded_lse(DType::f32, {sequences, heads, queries});
  last.fill(random);
  const auto row = [&](std::int64_t channels) { return static_cast<std::size_t>(heads * channels); };
  for (std::int64_t n = 0; n < sequences; ++n) {
    const std::int64_t length = std::int64_t(random() % static_cast<unsigned>(tokens + 1));
    lengths[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(length);
    for (std::int64_t m = 0; m * page_size < length; ++m)
      table[static_cast<std::size_t>(n * each + m)] = order[static_cast<std::size_t>(m)];
    for (std::int64_t i = 0; i < queries; ++i)
      if (const std::int64_t token = length - queries + i; token >= 0)
        std::memcpy(last.at(static_cast<std::size_t>(n * queries + i) * row(d)),
                    q.at(static_cast<std::size_t>(token) * row(d)), row(d) * q.width());
  }
  s = paged_attention(
      queue,
      {last.view(), k_cache.view(), v_cache.view(), of(table, {sequences, each}), of(lengths, {sequences})},
      {decoded.view(), decoded_lse.view()},
      {.window_left = static_cast<std::int64_t>(options.window_left),
       .scale = float(options.scale),
       .softcap = float(options.softcap)});
  ASSERT_TRUE(s) << s.message();

  const Tensor none = Tensor(dtype, {heads, e}).fill(0.f);
  for (std::int64_t n = 0; n < sequences; ++n)
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::int64_t length = lengths[static_cast<std::size_t>(n)], token = length - queries + i;
      const std::string where = "length " + std::to_string(length) + ", query " + std::to_string(i) + " of " +
                                std::to_string(queries) + ", pages of " + std::to_string(page_size);
      std::byte* const is = decoded.at(static_cast<std::size_t>(n * queries + i) * row(e));
      const std::byte* const was =
          token < 0 ? const_cast<Tensor&>(none).at(0) : y.at(static_cast<std::size_t>(token) * row(e));
      ASSERT_EQ(std::memcmp(is, was, row(e) * y.width()), 0) << "y: " << where;
      for (std::int64_t h = 0; h < heads; ++h) {
        float one = 0, other = -INFINITY;
        std::memcpy(&one, decoded_lse.at(static_cast<std::size_t>((n * heads + h) * queries + i)), 4);
        if (token >= 0) std::memcpy(&other, lse.at(static_cast<std::size_t>(h * tokens + token)), 4);
        ASSERT_EQ(std::memcmp(&one, &other, 4), 0) << "lse: " << where << ": " << one << ", was " << other;
      }
    }
}

void in_all_ways(const Queue& queue, bool few, const std::vector<DType>& dtypes) {
  const std::int64_t sequences = few ? 25 : 200;
  const Sizes usual{260, 4, 2, 16, 24};
  for (DType dtype : dtypes)
    for (std::int64_t page_size : {1, 16, 64, 260})  // 260: contiguous
      decoded_is_as_prefilled(queue, dtype, usual, dtype == DType::f32 ? 200 : sequences, page_size, 1, {});
  for (std::int64_t queries : {2, 5, 16, 40})
    decoded_is_as_prefilled(queue, DType::f32, usual, sequences, 16, queries, {});
  decoded_is_as_prefilled(queue, DType::f32, usual, sequences, 7, 3, {20, 0.3, 2});
  // Each bucket of channels; groups of one, and of more than a block's rows.
  decoded_is_as_prefilled(queue, DType::bf16, {200, 3, 3, 72, 128}, sequences / 4, 16, 1, {});
  decoded_is_as_prefilled(queue, DType::bf16, {200, 40, 1, 130, 8}, sequences / 5, 16, 1, {});
}

TEST(PagedAttention, DecodesTheBitsOfAPrefill) {
  const std::vector<DType> all = {DType::f32, DType::f16, DType::bf16};
  in_all_ways(Queue::cpu({.threads = 1}), false, all);
  in_all_ways(Queue::cpu({.threads = 3}), true, all);
}
TEST(PagedAttention, DecodesTheBitsOfAPrefillOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  in_all_ways(Queue::emulated({.threads = 2}), true, {DType::f32, DType::bf16});  // f16 may be left out there
}

/// A sum that underflowed is -0: of a query before whose end a key has a score so high that nothing is left
/// of what came before. In the prefill keys follow that it does not see.
void decodes_the_sign_of_a_zero(const Queue& queue, std::int64_t high, std::int64_t query) {
  const Op* attention = harness::find_op("attention");
  if (!attention) GTEST_SKIP() << "this build lacks attention";
  constexpr std::int64_t kTokens = 129;
  std::vector<float> q(kTokens, 1), k(kTokens), v(kTokens, 1), y(kTokens, 9), decoded(1, 9);
  for (std::int64_t j = 0; j <= query; ++j) v[static_cast<std::size_t>(j)] = j == 0 ? -1.f : -0.f;
  k[static_cast<std::size_t>(high)] = 200;
  const auto of_tokens = [&](std::vector<float>& x) { return view(x.data(), {1, kTokens, 1, 1}); };
  const ConstView views[] = {of_tokens(q), of_tokens(k), of_tokens(v), {}, {}, {}, {}, of_tokens(y), {}};
  const ConstView* all[] = {&views[0], &views[1], &views[2], &views[3], &views[4],
                            &views[5], &views[6], &views[7], &views[8]};
  const double values[] = {1, -1, -1, 1, 0};
  std::vector<std::int32_t> table = {0}, length = {static_cast<std::int32_t>(query + 1)};
  Status s = call(queue, *attention, Call{all, values});
  ASSERT_TRUE(s) << s.message();
  s = paged_attention(
      queue, {view(q.data(), {1, 1, 1, 1}), of_tokens(k), of_tokens(v), of(table, {1, 1}), of(length, {1})},
      {view(decoded.data(), {1, 1, 1, 1})}, {.scale = 1});
  ASSERT_TRUE(s) << s.message();
  const float row = y[static_cast<std::size_t>(query)];
  EXPECT_EQ(row, 0);
  EXPECT_EQ(std::memcmp(&row, decoded.data(), 4), 0) << row << " and " << decoded[0];
}
TEST(PagedAttention, DecodesTheSignOfAZero) {
  // Where the CPU's blocks of 96 keys show it, and where a GPU's of 32.
  for (const auto& [high, query] : {std::pair{96, 99}, {64, 95}}) {
    decodes_the_sign_of_a_zero(Queue::cpu(), high, query);
    if (kEmulatedIsBuilt) decodes_the_sign_of_a_zero(Queue::emulated(), high, query);
  }
}

TEST(KvCacheAppend, KeepsTheLastTokenOfASlot) {
  for (const Queue& queue :
       {Queue::cpu({.threads = 3}), kEmulatedIsBuilt ? Queue::emulated({.threads = 3}) : Queue::cpu()}) {
    constexpr std::int64_t kTokens = 700, kSlots = 24, kChannels = 300;
    std::vector<float> k(kTokens * kChannels), k_cache(kSlots * kChannels, -1), v_cache(kSlots, -1),
        v(kTokens);
    std::vector<std::int32_t> slots(kTokens);
    std::vector<float> expected(kSlots, -1);
    std::mt19937 random(7);
    for (std::int64_t i = 0; i < kTokens; ++i) {
      const auto slot = slots[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(random() % (kSlots + 2)) - 1;
      for (std::int64_t c = 0; c < kChannels; ++c)
        k[static_cast<std::size_t>(i * kChannels + c)] = static_cast<float>(i);
      v[static_cast<std::size_t>(i)] = static_cast<float>(i);
      if (slot >= 0 && slot < kSlots) expected[static_cast<std::size_t>(slot)] = static_cast<float>(i);
    }
    const Status s = kv_cache_append(
        queue,
        {view(k.data(), {kTokens, 1, kChannels}), view(v.data(), {kTokens, 1, 1}), of(slots, {kTokens})},
        {view(k_cache.data(), {4, 6, 1, kChannels}), view(v_cache.data(), {4, 6, 1, 1})});
    ASSERT_TRUE(s) << s.message();
    EXPECT_EQ(v_cache, expected);
    for (std::int64_t i = 0; i < kSlots * kChannels; ++i)
      ASSERT_EQ(k_cache[static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(i / kChannels)]) << i;
  }
}

TEST(PagedAttention, RefusesInSentences) {
  const Queue queue = Queue::cpu();
  std::vector<float> x(4096);
  std::vector<std::int32_t> table(8), lengths(2);
  const View q = view(x.data(), {2, 1, 3, 8}), cache = view(x.data() + 512, {4, 4, 2, 8}),
             y = view(x.data() + 2048, {2, 1, 3, 8});
  const auto message = [&](const View& of_q, const View& of_y, const View& pages,
                           const PagedAttentionOptions& o = {}) {
    return std::string(
        paged_attention(queue, {of_q, cache, cache, pages, of(lengths, {2})}, {.y = of_y}, o).message());
  };
  EXPECT_EQ(message(q, y, of(table, {2, 4})), "paged_attention: must have H % G = 0 where H is 3, G is 2");
  const View even = view(x.data(), {2, 1, 4, 8}), even_y = view(x.data() + 2048, {2, 1, 4, 8});
  EXPECT_EQ(message(even, even_y, of(table, {2, 4})), "");
  EXPECT_EQ(message(even, even_y, of(table, {1, 8})),
            "paged_attention: page_table is 1x8 i32, must be 2xM where q is 2x1x4x8 f32");
  EXPECT_EQ(message(even, even_y, of(table, {2, 4}), {.window_left = -2}),
            "paged_attention: window_left is -2, must be a whole number and at least -1");
  EXPECT_EQ(std::string(kv_cache_append(queue, {cache, cache, of(table, {4})}, {cache, cache}).message())
                .substr(0, 40),
            "kv_cache_append: slots is 4 i32, must be");
}

}  // namespace
}  // namespace rooftile
