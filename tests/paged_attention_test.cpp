// What the cases of rooftile/ops/paged_attention cannot say: a token decoded has the bits that it has in a
// prefill by attention; a slot's last token stays, on every device; and the sentences.
#include "rooftile/ops/paged_attention/paged_attention.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
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
    if (dtype_ == DType::f8e4m3) new (at(i)) f8e4m3(from_double<f8e4m3>(double(value)));
    if (dtype_ == DType::f8e5m2) new (at(i)) f8e5m2(from_double<f8e5m2>(double(value)));
  }
  float get(std::size_t i) {
    float value = 0;
    std::memcpy(&value, at(i), width());
    const auto as = [&]<class T>(T bits) { return std::memcpy(&bits, at(i), sizeof bits), to_float(bits); };
    return dtype_ == DType::f32      ? value
           : dtype_ == DType::f16    ? as(f16{})
           : dtype_ == DType::bf16   ? as(bf16{})
           : dtype_ == DType::f8e4m3 ? as(f8e4m3{})
                                     : as(f8e5m2{});
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

/// A cache of another dtype than the queries', and its scales. y times v's must be exact: a power of two, of
/// f16, which has subnormal ones, 1.
struct Codes {
  DType dtype;
  float k_scale = 0.3f, v_scale = 2;
};

struct Sizes {
  std::int64_t tokens, heads, keys, d, e;
};

/// A queue's workspace, of paged_attention's calls.
struct Memory {
  std::vector<std::byte> bytes;
  Workspace workspace;

  explicit Memory(std::size_t size) : bytes(size + 64, std::byte{0xff}) {  // NaN
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    if (size > 0) workspace = {reinterpret_cast<void*>((address + 63) / 64 * 64), size};
  }
};

/// Attention by its signature: this build may lack the function.
Status prefill(const Queue& queue, const Op& attention, std::array<ConstView, 3> inputs, const ConstView& y,
               const ConstView& lse, const std::array<double, 6>& options) {
  const ConstView absent{};
  std::vector<const ConstView*> views(static_cast<std::size_t>(attention.signature.operand_count()), &absent);
  for (std::size_t i = 0; i < 3; ++i) views[i] = &inputs[i];
  views.end()[-2] = &y, views.end()[-1] = &lse;
  return call(queue, attention, Call{views.data(), options.data()});
}

/// Sequences of random lengths, the first of which may be given, all of them beginnings of one, whose pages
/// they share: their last `queries` tokens against attention's rows of the same tokens. `bytes`: of workspace
/// that it took.
void decode_and_compare(const Queue& queue, DType dtype, const Sizes& size, std::int64_t sequences,
                        std::int64_t page_size, std::int64_t queries, const Options& options,
                        const std::vector<std::int32_t>& given, std::size_t& bytes, const Codes* codes) {
  const Op* attention = harness::find_op("attention");
  if (!attention) GTEST_SKIP() << "this build lacks attention";
  const auto [tokens, heads, keys, d, e] = size;
  std::mt19937 random(static_cast<unsigned>(page_size * 100 + queries));
  Tensor q(dtype, {1, tokens, heads, d}), k(dtype, {1, tokens, keys, d}), v(dtype, {1, tokens, keys, e});
  q.fill(random), k.fill(random), v.fill(random);
  // The prefill's keys and values are what the cache holds.
  Tensor appended_k = k, appended_v = v;
  const DType cache_dtype = codes ? codes->dtype : dtype;
  for (const auto& [x, scale] : {std::pair{&k, codes ? codes->k_scale : 1}, {&v, codes ? codes->v_scale : 1}})
    for (std::size_t i = 0; codes && i < x->size(); ++i) {
      Tensor code(cache_dtype, {1});
      code.set(0, x->get(i) * (1 / scale));
      x->set(i, code.get(0));
    }
  const float scale = options.scale == 0 ? float(1 / std::sqrt(double(d))) : float(options.scale);
  Tensor y(dtype, {1, tokens, heads, e}), lse(DType::f32, {1, heads, tokens});
  {
    const Status s = prefill(
        queue, *attention, {q.view(), k.view(), v.view()}, y.view(), lse.view(),
        {1, options.window_left, -1, double(codes ? scale * codes->k_scale : scale), options.softcap, 0});
    ASSERT_TRUE(s) << s.message();
    for (std::size_t i = 0; codes && i < y.size(); ++i) y.set(i, y.get(i) * codes->v_scale);
  }
  std::vector<float> k_scale(static_cast<std::size_t>(keys), codes ? codes->k_scale : 0),
      v_scale(static_cast<std::size_t>(keys), codes ? codes->v_scale : 0);
  ConstView k_scales, v_scales;
  if (codes) k_scales = view(k_scale.data(), {keys}), v_scales = view(v_scale.data(), {keys});

  // The cache: pages in disorder, all that is not a token NaN.
  const std::int64_t each = (tokens + page_size - 1) / page_size, pages = each + 2;
  Tensor k_cache(cache_dtype, {pages, page_size, keys, d}), v_cache(cache_dtype, {pages, page_size, keys, e});
  k_cache.fill(NAN), v_cache.fill(NAN);
  std::vector<std::int32_t> order(static_cast<std::size_t>(pages)), slots(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  for (std::int64_t j = 0; j < tokens; ++j)
    slots[static_cast<std::size_t>(j)] =
        static_cast<std::int32_t>(order[static_cast<std::size_t>(j / page_size)] * page_size + j % page_size);
  Status s = kv_cache_append(
      queue, {appended_k.view(), appended_v.view(), of(slots, {1, tokens}), k_scales, v_scales},
      {k_cache.view(), v_cache.view()});
  ASSERT_TRUE(s) << s.message();

  std::vector<std::int32_t> lengths(static_cast<std::size_t>(sequences)),
      table(static_cast<std::size_t>(sequences * each), -7);  // what no sequence reaches is no page
  Tensor last(dtype, {sequences, queries, heads, d}), decoded(dtype, {sequences, queries, heads, e}),
      decoded_lse(DType::f32, {sequences, heads, queries});
  last.fill(random);
  const auto row = [&](std::int64_t channels) { return static_cast<std::size_t>(heads * channels); };
  for (std::int64_t n = 0; n < sequences; ++n) {
    const std::int64_t length = static_cast<std::size_t>(n) < given.size()
                                    ? given[static_cast<std::size_t>(n)]
                                    : std::int64_t(random() % static_cast<unsigned>(tokens + 1));
    lengths[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(length);
    for (std::int64_t m = 0; m * page_size < length; ++m)
      table[static_cast<std::size_t>(n * each + m)] = order[static_cast<std::size_t>(m)];
    for (std::int64_t i = 0; i < queries; ++i)
      if (const std::int64_t token = length - queries + i; token >= 0)
        std::memcpy(last.at(static_cast<std::size_t>(n * queries + i) * row(d)),
                    q.at(static_cast<std::size_t>(token) * row(d)), row(d) * q.width());
  }
  const PagedAttentionInputs inputs{
      last.view(), k_cache.view(), v_cache.view(), of(table, {sequences, each}), of(lengths, {sequences}),
      {},          k_scales,       v_scales};
  const PagedAttentionOutputs outputs{decoded.view(), decoded_lse.view()};
  s = paged_attention_workspace(queue, inputs, outputs, bytes);
  ASSERT_TRUE(s) << s.message();
  const Memory memory(bytes);
  s = paged_attention(queue, inputs, outputs,
                      {.window_left = static_cast<std::int64_t>(options.window_left),
                       .scale = float(options.scale),
                       .softcap = float(options.softcap)},
                      memory.workspace);
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

std::size_t decoded_is_as_prefilled(const Queue& queue, DType dtype, const Sizes& size,
                                    std::int64_t sequences, std::int64_t page_size, std::int64_t queries,
                                    const Options& options, const std::vector<std::int32_t>& given = {},
                                    const Codes* codes = nullptr) {
  std::size_t bytes = 0;
  decode_and_compare(queue, dtype, size, sequences, page_size, queries, options, given, bytes, codes);
  return bytes;
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
/// Fewer key heads than threads, which share a sequence's blocks of keys: of the last
/// shape scratch holds so few that it takes two rounds.
TEST(PagedAttention, DecodesTheBitsOfAPrefillAtAnyNumberOfThreads) {
  for (int threads : {1, 2, 4, 7}) {
    SCOPED_TRACE(testing::Message() << threads << " threads");
    const Queue queue = Queue::cpu({.threads = threads});
    decoded_is_as_prefilled(queue, DType::bf16, {1100, 4, 1, 64, 64}, 1, 16, 4, {}, {1100});
    decoded_is_as_prefilled(queue, DType::f32, {800, 4, 2, 64, 72}, 1, 16, 9, {}, {799});
    decoded_is_as_prefilled(queue, DType::f16, {900, 4, 1, 100, 128}, 2, 7, 8, {500, 0.3, 2}, {900, 97});
    if (threads == 2)
      decoded_is_as_prefilled(queue, DType::f32, {1700, 8, 1, 200, 240}, 1, 16, 1, {}, {1700});
  }
}
TEST(PagedAttention, DecodesTheBitsOfAPrefillOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  in_all_ways(Queue::emulated({.threads = 2}), true, {DType::f32, DType::bf16});  // f16 may be left out there
}

/// Chunks of 512 keys: lengths at their borders, one block for each chunk (few sequences), or for all of a
/// sequence's (many), against a prefill whose blocks pass through all.
void over_chunks(const Queue& queue, DType dtype, bool splits) {
  const std::vector<std::int32_t> borders = {511, 512, 513, 1023, 1024, 1025, 1100, 0, 1};
  const auto few = static_cast<std::int64_t>(borders.size());
  const Sizes usual{1100, 4, 2, 16, 24};
  const auto takes_workspace = [&](std::int64_t sequences, std::int64_t page_size, std::int64_t queries,
                                   const Options& options = {}) {
    return decoded_is_as_prefilled(queue, dtype, usual, sequences, page_size, queries, options, borders) > 0;
  };
  for (std::int64_t page_size : {1, 16, 64, 1100}) EXPECT_EQ(takes_workspace(few, page_size, 1), splits);
  EXPECT_FALSE(takes_workspace(140, 16, 1));
  for (std::int64_t queries : {3, 20})  // tokens on both sides of a border; more than a block's rows
    EXPECT_EQ(takes_workspace(few, 16, queries), splits);
  for (double window : {0., 511., 700.}) EXPECT_EQ(takes_workspace(few, 16, 2, {window, 0.3, 2}), splits);
  EXPECT_FALSE(takes_workspace(140, 7, 2, {600, 0.3, 2}));
  // Five chunks; the other buckets of channels, and sums of no whole words.
  decoded_is_as_prefilled(queue, dtype, {2100, 2, 1, 16, 16}, 6, 16, 1, {},
                          {1535, 1536, 1537, 2047, 2048, 2049});
  decoded_is_as_prefilled(queue, dtype, {1100, 3, 1, 72, 101}, 5, 16, 1, {}, {1024, 1025, 1100});
  decoded_is_as_prefilled(queue, dtype, {1100, 1, 1, 200, 250}, 5, 16, 1, {}, {1024, 1025, 1100});
}
TEST(PagedAttention, DecodesTheBitsOfAPrefillOverChunks) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  for (DType dtype : {DType::f32, DType::bf16}) over_chunks(Queue::emulated(), dtype, true);
}
TEST(PagedAttention, TakesNoWorkspaceOnACpu) { over_chunks(Queue::cpu(), DType::bf16, false); }

/// A cache of codes against a prefill of the numbers that they are, over chunks, too.
void decodes_codes(const Queue& queue, const std::vector<DType>& dtypes) {
  for (DType dtype : dtypes)
    for (DType of_cache : {DType::f8e4m3, DType::f8e5m2}) {
      const Codes codes{.dtype = of_cache, .v_scale = dtype == DType::f16 ? 1.f : 2.f};
      const auto decode = [&](const Sizes& size, std::int64_t page_size, std::int64_t queries,
                              const Options& options = {}, const std::vector<std::int32_t>& given = {}) {
        decoded_is_as_prefilled(queue, dtype, size, 12, page_size, queries, options, given, &codes);
      };
      for (std::int64_t page_size : {1, 16, 260}) decode({260, 4, 2, 16, 24}, page_size, 1);
      decode({260, 4, 2, 13, 9}, 7, 3, {20, 0.3, 2});  // no whole words
      decode({1100, 2, 1, 64, 64}, 16, 2, {}, {511, 512, 513, 1024, 1025, 1100});
      decode({200, 3, 1, 72, 128}, 16, 1);
      decode({200, 3, 1, 200, 256}, 16, 17);
    }
}
TEST(PagedAttention, DecodesCodesInTheBitsOfAPrefill) {
  decodes_codes(Queue::cpu(), {DType::f32, DType::f16, DType::bf16});
  if (kEmulatedIsBuilt) decodes_codes(Queue::emulated(), {DType::f32, DType::bf16});
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
  std::vector<std::int32_t> table = {0}, length = {static_cast<std::int32_t>(query + 1)};
  Status s = prefill(queue, *attention, {of_tokens(q), of_tokens(k), of_tokens(v)}, of_tokens(y), {},
                     {1, -1, -1, 1, 0, 0});
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

/// Pages apart by more than 2^31 elements (flashinfer 3130: page index times stride in 32 bits): a cache
/// whose second page begins so far behind the first gives the bits of one whose pages are together. Of the
/// memory between them nothing is touched.
TEST(PagedAttention, ReadsAndWritesPagesFarApart) {
  constexpr std::int64_t kPage = 4, kChannels = 8, kApart = (std::int64_t{1} << 31) + 64;
  constexpr std::size_t kBytes = (kApart + kPage * kChannels) * sizeof(float);
  const auto far_memory = [] {
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<float*>(memory);
  };
  for (const Queue& queue : {Queue::cpu(), kEmulatedIsBuilt ? Queue::emulated() : Queue::cpu()}) {
    const std::array<float*, 2> caches = {far_memory(), far_memory()};
    if (!caches[0] || !caches[1]) GTEST_SKIP() << "this machine gives no 8 GiB of addresses";
    std::mt19937 random(9);
    Tensor tokens(DType::f32, {1, 2 * kPage, 1, kChannels}), q(DType::f32, {1, 1, 1, kChannels});
    tokens.fill(random);
    q.fill(random);
    std::vector<std::int32_t> slots(2 * kPage), table = {0, 1}, length = {2 * kPage};
    std::iota(slots.begin(), slots.end(), 0);
    Tensor dense(DType::f32, {2, kPage, 1, kChannels}), near(DType::f32, {1, 1, 1, kChannels}),
        far(DType::f32, {1, 1, 1, kChannels});
    const auto decode = [&](const View& k, const View& v, Tensor& y) {
      Status s = kv_cache_append(queue, {tokens.view(), tokens.view(), of(slots, {1, 2 * kPage})}, {k, v});
      ASSERT_TRUE(s) << s.message();
      s = paged_attention(queue, {q.view(), k, v, of(table, {1, 2}), of(length, {1})}, {y.view()});
      ASSERT_TRUE(s) << s.message();
    };
    Tensor values = dense;
    decode(dense.view(), values.view(), near);
    std::array<View, 2> views = {dense.view(), dense.view()};
    for (std::size_t i = 0; i < 2; ++i) views[i].data = caches[i], views[i].stride[0] = kApart;
    decode(views[0], views[1], far);
    EXPECT_EQ(std::memcmp(near.at(0), far.at(0), kChannels * sizeof(float)), 0);
    for (float* cache : caches) munmap(cache, kBytes);
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
