// Views of any bytes, in each place of each function: what can be no view is refused with a sentence, and
// whatever comes, no memory outside the arguments is touched. And dense empty views: all are taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "rooftile/core/check.h"
#include "rooftile/core/op.h"
#include "rooftile/core/permuted.h"
#include "rooftile/harness/check/runner.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {

using Random = std::mt19937_64;

/// UTF-8 without control characters.
bool printable(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i++]);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && byte < 0xc2) || byte > 0xf4) return false;
    for (int more = byte < 0x80 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3; more > 0; --more)
      if (i == text.size() || (static_cast<unsigned char>(text[i++]) & 0xc0) != 0x80) return false;
  }
  return !text.empty();
}

/// Whether it describes a tensor or is absent, by the header's words and not by the library's code.
bool well_formed(const ConstView& v) {
  if (v.rank < 0) return true;  // absent, whatever else it holds
  if (v.rank > 8 || static_cast<int>(v.dtype) >= 13) return false;
  __int128 elements = 1, reach = 0;
  constexpr __int128 kMax = __int128{1} << 62;
  bool empty = false;
  for (int d = 0; d < v.rank; ++d) {
    if (v.shape[d] < 0) return false;
    empty = empty || v.shape[d] == 0;
    const std::int64_t last = std::max<std::int64_t>(v.shape[d] - 1, 0);
    elements *= std::max<std::int64_t>(v.shape[d], 1);
    const __int128 far = __int128{v.stride[d]} * last;
    if (elements > kMax || far > kMax || far < -kMax) return false;
    reach += far < 0 ? -far : far;
  }
  return (reach + 1) * bits(v.dtype) <= kMax && (empty || v.data);
}

/// The bytes of memory it touches, of a view that is well formed.
struct Touched {
  __int128 begin = 0, end = 0;
};
Touched touched(const ConstView& v) {
  __int128 low = 0, high = bits(v.dtype);
  for (int d = 0; d < v.rank; ++d) {
    if (v.shape[d] == 0) return {};
    (v.stride[d] < 0 ? low : high) += __int128{v.stride[d]} * (v.shape[d] - 1) * bits(v.dtype);
  }
  const auto data = static_cast<__int128>(reinterpret_cast<std::uintptr_t>(v.data));
  return {data + (low >> 3), data + ((high + 7) >> 3)};
}
/// Whether a call may have `v` in place of `original`: nothing outside `original` is touched, within a
/// second.
bool harmless(const ConstView& v, const ConstView& original) {
  const Touched t = touched(v), allowed = touched(original);
  std::int64_t elements = 1;
  for (int d = 0; d < v.rank; ++d)
    if (__builtin_mul_overflow(elements, v.shape[d], &elements)) return false;
  return elements < 100000 && (t.begin == t.end || (t.begin >= allowed.begin && t.end <= allowed.end));
}

template <class T>
void put(Random& random, T& field, std::initializer_list<T> edges) {
  if (random() % 3 == 0)
    field = static_cast<T>(random());
  else
    field = edges.begin()[random() % edges.size()];
}
/// One field, or any run of bytes, gets other values.
void damage(View& v, Random& random) {
  const std::size_t d = random() % kMaxRank;
  const std::initializer_list<std::int64_t> numbers = {
      0, 1, -1, 2, 3, 5, 7, 100, INT_MAX, INT64_MAX, INT64_MIN, std::int64_t{1} << 61};
  switch (random() % 8) {
    case 0:
      put(random, v.rank,
          {-1, 0, 1, 2, 7, 8, 9, 64, 100000, INT_MAX, INT_MIN, kTooFewElements, kUnlikeStrides, kUnlikeOrder,
           kNoDimension, kTwiceDimension});
      break;
    case 1:
      v.dtype = static_cast<DType>(random() % 3 == 0 ? random() % 13 : random() % 256);
      break;
    case 2:
      put(random, v.shape[d], numbers);
      break;
    case 3:
      put(random, v.stride[d], numbers);
      break;
    case 4:
      v.data = random() % 2 ? nullptr : static_cast<const char*>(v.data) + random() % 64;
      break;
    case 5:
      v.rank = static_cast<int>(random() % 9);
      v.shape[d] = static_cast<std::int64_t>(random() % 2);
      break;
    default: {
      auto* bytes = reinterpret_cast<unsigned char*>(&v);
      const std::size_t begin = random() % sizeof v, count = random() % (sizeof v - begin) + 1;
      for (std::size_t i = 0; i < count; ++i) bytes[begin + i] = static_cast<unsigned char>(random());
    }
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr int kCalls = 1500;
#else
constexpr int kCalls = 4000;
#endif

class AnyView : public testing::TestWithParam<std::size_t> {
 protected:
  const Spec& spec() const { return all_specs()[GetParam()]; }
};

TEST_P(AnyView, IsRefusedOrTakenAndNothingElseIsTouched) {
  const Op* op = find_op(spec().function);
  ASSERT_NE(op, nullptr);
  const Queue queue = Queue::cpu({.threads = 1});
  ASSERT_TRUE(queue.status()) << queue.status().message();
  Random random(GetParam() + 1);
  int refused = 0, taken = 0, malformed = 0;
  const auto sets = parameter_sets(spec(), spec().dtypes.front(), 4);
  for (std::size_t s = 0; s < sets.size(); ++s) {
    const Problem problem(spec(), {shape_of(spec(), 3, 5), spec().dtypes[s % spec().dtypes.size()], sets[s]},
                          1);
    Memory memory(problem);
    const std::vector<View> right = memory.views();
    Workspace workspace;
    ASSERT_TRUE(memory.workspace(queue, workspace));
    for (int call = 0; call < kCalls / int(sets.size()); ++call) {
      std::vector<View> views = right;
      for (std::uint64_t left = 1 + random() % 3; left > 0; --left)
        damage(views[random() % views.size()], random);
      bool broken = false, allowed = true;
      Arguments arguments;
      for (std::size_t o = 0; o < views.size(); ++o) {
        arguments.add(problem.operands()[o].name, views[o]);
        const bool right_now = well_formed(views[o]);
        broken = broken || !right_now;
        allowed = allowed && (!right_now || !views[o].present() || harmless(views[o], right[o]));
      }
      if (!broken && !allowed) continue;
      const std::uint64_t which = random() % (op->variants.size() + 1);
      const char* variant = which == op->variants.size() ? nullptr : op->variants[which].name;
      std::vector<Status> statuses = {spec().call(queue, problem.what(), arguments, variant, workspace)};
      std::size_t bytes = 0;
      if (spec().workspace) statuses.push_back(spec().workspace(queue, problem.what(), arguments, bytes));
      std::string what;
      for (std::size_t o = 0; o < views.size(); ++o)
        what += std::string(problem.operands()[o].name) + ": " + rooftile::describe(views[o]).text + "; ";
      for (const Status& status : statuses) {
        if (broken) ASSERT_FALSE(status) << what << "is taken";
        if (!status) ASSERT_TRUE(printable(status.message())) << what << status.message();
        if (!status)
          ASSERT_NE(std::string(status.message()).find(spec().function), std::string::npos) << what;
      }
      std::string harm;
      memory.take(harm, !statuses.front());
      ASSERT_EQ(harm, "") << what;
      malformed += broken;
      (statuses.front() ? taken : refused) += 1;
    }
  }
  EXPECT_GT(malformed, kCalls / 4);
  EXPECT_GT(refused, kCalls / 4);
  EXPECT_GT(taken, kCalls / 100);
}

TEST_P(AnyView, DenseAndEmptyIsTaken) {
  const Queue queue = Queue::cpu({.threads = 1});
  alignas(64) static std::byte memory[16][8192];
  // The call of that case; `absent_data`: where nothing is, the pointer is null.
  const auto call = [&](const Case& c, bool absent_data) {
    Arguments arguments;
    std::size_t o = 0;
    for (const Operand& operand : spec().operands(c)) {
      if (operand.shape.size() > kMaxRank) return Status::error("no view has so many dimensions");
      std::vector<Extent> sizes(operand.shape.begin(), operand.shape.end());
      const bool none = absent_data && count_of(operand.shape) == 0;
      arguments.add(operand.name,
                    rooftile::detail::make_view<View>(none ? nullptr : memory[o], operand.dtype,
                                                      int(sizes.size()), sizes.data(), nullptr));
      ++o;
    }
    if (spec().bench_prepare) spec().bench_prepare(c, arguments);
    std::size_t bytes = 0;
    if (spec().workspace)
      if (Status s = spec().workspace(queue, c, arguments, bytes); !s) return s;
    std::vector<std::byte> space(bytes + 64);
    void* pointer = space.data();
    std::size_t room = space.size();
    return spec().call(queue, c, arguments, nullptr, {std::align(64, bytes, pointer, room), bytes});
  };
  std::size_t least = 2, calls = 0, ranks = 0;
  for (const Case& c : spec().cases()) least = std::min(least, c.shape.size());
  least = std::max(least, spec().letters.size());
  const std::size_t most = spec().outer ? kMaxRank : spec().letters.size();
  // Whether the function takes such sizes: heads a multiple of their groups, say.
  const auto suits = [&](Case& c) {
    if (spec().adjust) spec().adjust(c);
    return !spec().suits || spec().suits(c);
  };
  for (int t = 0; t < kDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    for (std::size_t rank = least; rank <= most; ++rank) {
      Case twos{Shape(rank, 2), dtype, {}};
      suits(twos);
      if (!call(twos, false)) continue;  // a dtype or a rank that the function does not take
      ++ranks;
      for (unsigned empty = 1; empty < 1u << rank; ++empty) {
        Case c{{}, dtype, {}};
        for (std::size_t d = 0; d < rank; ++d) c.shape.push_back(empty >> d & 1 ? 0 : 2 + int(d % 2));
        if (!suits(c)) continue;
        if (spec().refuses && spec().refuses(c)) continue;
        for (bool absent_data : {false, true}) {
          const Status s = call(c, absent_data);
          ASSERT_TRUE(s) << s.message();
          ++calls;
        }
      }
    }
  }
  ASSERT_GT(ranks, 0u);
  // Of one rank 378 with six sizes and three dtypes; all there are of two sizes.
  EXPECT_GE(calls, std::min<std::size_t>(301, ranks * 2 * ((std::size_t{1} << least) - 1)));
}

INSTANTIATE_TEST_SUITE_P(, AnyView, testing::Range(std::size_t{0}, all_specs().size()),
                         [](const auto& subject) {
                           return std::string(all_specs()[subject.param].function);
                         });

TEST(AnyViews, EachFunctionIsTried) {
  for (const Op* op : all_ops()) EXPECT_NE(find_spec(op->function), nullptr) << op->function;
}

TEST(AnyViews, IsDescribed) {
  Random random(1);
  int cut = 0;
  for (int i = 0; i < 20000; ++i) {
    float x[1];
    View v = view(x, {2, 3});
    if (i % 2) damage(v, random);
    for (int d = 0; d < kMaxRank && i % 4 == 3; ++d)
      v.shape[d] = v.stride[d] = static_cast<std::int64_t>(random() | 1);
    if (i % 4 == 3) v.rank = static_cast<int>(random() % 10);
    const std::string text = rooftile::describe(v).text;
    ASSERT_TRUE(printable(text)) << text;
    ASSERT_LT(text.size(), sizeof(Description::text));
    const bool full = text.size() + 1 == sizeof(Description::text);
    if (full) ASSERT_EQ(text.substr(text.size() - 3), "…") << text;
    cut += full;
  }
  EXPECT_GT(cut, 100);
  for (int t = kDTypes; t < 256; ++t) {
    const auto dtype = static_cast<DType>(t);
    EXPECT_STREQ(name(dtype), "of an unknown dtype");
    EXPECT_EQ(bits(dtype), 0);
    EXPECT_FALSE(is_known(dtype));
    EXPECT_FALSE(is_floating(dtype));
  }
}

}  // namespace
}  // namespace rooftile::harness
