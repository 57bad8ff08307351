#include "rooftile/core/check.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rooftile/core/permuted.h"

namespace rooftile {
namespace {

constexpr std::int64_t kMax = std::int64_t{1} << 62;

/// a · b, or false where it passes kMax.
bool multiply(std::int64_t a, std::int64_t b, std::int64_t& product) {
  return !__builtin_mul_overflow(a, b, &product) && product <= kMax && product >= -kMax;
}

/// Two views of 2^62 bits each lie up to 2^63 apart.
using Distance = __int128;

/// A stride in bits and the whole numbers that may multiply it.
struct Term {
  std::int64_t stride, least, most;
};

/// Whether distance + Σ c·stride lies strictly between low and high for some choice of the c.
bool reachable(const Term* term, const Term* end, Distance distance, Distance low, Distance high,
               int& steps) {
  Distance rest_low = 0, rest_high = 0;
  for (const Term* t = term; t != end; ++t) {
    rest_low += Distance{t->least} * t->stride;
    rest_high += Distance{t->most} * t->stride;
  }
  if (distance + rest_high <= low || distance + rest_low >= high) return false;
  if (term == end) return true;
  if (--steps < 0) return true;
  rest_low -= Distance{term->least} * term->stride;
  rest_high -= Distance{term->most} * term->stride;
  // Only the c for which the smaller strides can still make up the difference.
  const Distance first = std::max<Distance>(term->least, (low - distance - rest_high) / term->stride - 1);
  const Distance last = std::min<Distance>(term->most, (high - distance - rest_low) / term->stride + 1);
  for (Distance c = first; c <= last; ++c)
    if (reachable(term + 1, end, distance + c * term->stride, low, high, steps)) return true;
  return false;
}

/// Adds a view's dimensions, `sign` 1 or -1, and gives the address of its lowest element in bits.
std::int64_t add_terms(const ConstView& view, int sign, Term* terms, int& count) {
  const std::int64_t width = bits(view.dtype);
  std::int64_t base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(view.data)) * 8;
  for (int d = 0; d < view.rank; ++d) {
    const std::int64_t most = view.shape[d] - 1;
    if (view.stride[d] == 0 || most == 0) continue;  // nobody checked the stride of a single element
    std::int64_t stride = view.stride[d] * width;
    if (stride < 0) {
      base += stride * most;
      stride = -stride;
    }
    Term* same = std::find_if(terms, terms + count, [&](const Term& t) { return t.stride == stride; });
    if (same == terms + count) *same = {stride, 0, 0}, ++count;
    (sign > 0 ? same->most : same->least) += sign * most;
  }
  return base;
}

}  // namespace

bool is_dense(const ConstView& view) {
  std::int64_t expected = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    if (view.shape[d] != 1 && view.stride[d] != expected) return false;
    // As view() fills strides in: a size of 0 counts as 1, and a product that does not fit wraps.
    expected =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(expected) *
                                  static_cast<std::uint64_t>(std::max<std::int64_t>(view.shape[d], 1)));
  }
  return true;
}

Description describe(const ConstView& view) {
  Description d;
  constexpr int kSize = sizeof d.text;
  if (!view.present()) {
    std::strcpy(d.text, "absent");
    return d;
  }
  int at = 0;
  const auto add = [&](const char* format, auto... values) {
    if (at < kSize) at += std::snprintf(d.text + at, static_cast<std::size_t>(kSize - at), format, values...);
  };
  const bool ranked = view.rank <= kMaxRank;
  if (!ranked) add("%d-dimensional ", view.rank);
  for (int i = 0; ranked && i < view.rank; ++i)
    add("%s%lld", i ? "x" : "", static_cast<long long>(view.shape[i]));
  if (ranked) add("%s", view.rank ? " " : "scalar ");
  add("%s", name(view.dtype));
  if (!is_known(view.dtype)) add(" (%d)", static_cast<int>(view.dtype));
  if (ranked && !is_dense(view)) {
    for (int i = 0; i < view.rank; ++i)
      add("%s%lld", i ? ", " : " (strides ", static_cast<long long>(view.stride[i]));
    add("%s", ")");
  }
  constexpr char kCut[] = "…";
  if (at >= kSize) std::strcpy(d.text + kSize - sizeof kCut, kCut);
  return d;
}

namespace {
/// Of a rank above kMaxRank.
Status refuse_rank(const char* function, Argument argument) {
  const ConstView& v = argument.view;
  const auto first = static_cast<long long>(v.shape[0]), second = static_cast<long long>(v.shape[1]);
  switch (v.rank) {
    case kTooFewElements:
      return Status::error("%s: %s has a shape of %lld elements, its memory holds %lld", function,
                           argument.name, first, second);
    case kUnlikeStrides:
      return Status::error("%s: %s has %lld sizes and %lld strides, must have as many of both", function,
                           argument.name, first, second);
    case kUnlikeOrder:
      return Status::error("%s: %s is permuted by %lld dimensions and has %lld, name each once", function,
                           argument.name, first, second);
    case kNoDimension: {  // of a view made by hand, by any number of dimensions
      const auto count = std::clamp<long long>(second, 0, kMaxRank);
      return Status::error("%s: %s is permuted by dimension %lld, must be from %lld to %lld", function,
                           argument.name, first, -count, count - 1);
    }
    case kTwiceDimension:
      return Status::error("%s: %s is permuted by dimension %lld twice, name each of its %lld once", function,
                           argument.name, first, second);
    default:
      return Status::error("%s: %s has %d dimensions, at most %d are possible", function, argument.name,
                           v.rank, kMaxRank);
  }
}
}  // namespace

Status check_view(const char* function, Argument argument, std::span<const DType> allowed) {
  const ConstView& v = argument.view;
  if (!v.present()) return Status::error("%s: %s is absent", function, argument.name);
  if (v.rank > kMaxRank) return refuse_rank(function, argument);
  if (std::find(allowed.begin(), allowed.end(), v.dtype) == allowed.end()) {
    char list[128] = "";
    for (DType type : allowed) {
      if (*list) std::strcat(list, ", ");
      std::strcat(list, name(type));
    }
    return Status::error("%s: %s is %s, must be one of %s", function, argument.name, describe(v).text, list);
  }
  std::int64_t span = bits(v.dtype), elements = 1;
  bool fits = true, empty = false;
  for (int d = 0; d < v.rank; ++d) {
    if (v.shape[d] < 0)
      return Status::error("%s: %s has size %lld in dimension %d, must not be negative", function,
                           argument.name, static_cast<long long>(v.shape[d]), d);
    empty = empty || v.shape[d] == 0;
    std::int64_t reach = 0;
    fits = fits && multiply(elements, std::max<std::int64_t>(v.shape[d], 1), elements) &&
           multiply(v.stride[d], std::max<std::int64_t>(v.shape[d] - 1, 0), reach) &&
           multiply(reach, bits(v.dtype), reach) && std::abs(reach) <= kMax - span;
    if (fits) span += std::abs(reach);
  }
  if (!fits)  // an empty view as well: its rows are counted all the same
    return Status::error("%s: %s is %s: it reaches beyond 2^62 elements or bits of address space", function,
                         argument.name, describe(v).text);
  if (empty) return {};
  if (!v.data)
    return Status::error("%s: %s is %s, but its data is null", function, argument.name, describe(v).text);
  const std::uintptr_t alignment = static_cast<std::uintptr_t>(std::max(bits(v.dtype) / 8, 1));
  if (reinterpret_cast<std::uintptr_t>(v.data) % alignment != 0)
    return Status::error("%s: %s is at address %p, which is not a multiple of the %zu bytes of %s", function,
                         argument.name, v.data, static_cast<std::size_t>(alignment), name(v.dtype));
  return {};
}

Status check_output(const char* function, Argument output) {
  const ConstView& v = output.view;
  int order[kMaxRank], count = 0;  // dimensions by their strides, the smallest first
  for (int d = 0; d < v.rank; ++d) {
    if (v.shape[d] == 0) return {};
    if (v.shape[d] == 1) continue;
    int at = count++;
    for (; at > 0 && std::llabs(v.stride[order[at - 1]]) > std::llabs(v.stride[d]); --at)
      order[at] = order[at - 1];
    order[at] = d;
  }
  std::int64_t reach = 0;  // of the smaller strides together
  for (int i = 0; i < count; ++i) {
    const std::int64_t stride = std::llabs(v.stride[order[i]]);
    const std::int64_t most = v.shape[order[i]] - 1;
    // Most outputs pass here: this stride leads past all that the smaller ones reach. Else, whether it and
    // they can come back to where they began.
    if (stride <= reach) {
      Term terms[kMaxRank] = {{stride, 1, most}};
      for (int j = 0; j < i; ++j) {
        const std::int64_t others = v.shape[order[i - 1 - j]] - 1;
        terms[j + 1] = {std::llabs(v.stride[order[i - 1 - j]]), -others, others};
      }
      int steps = 100000;
      if (stride == 0 || reachable(terms, terms + i + 1, 0, -1, 1, steps))
        return Status::error("%s: output %s is %s: its strides place several elements at one address",
                             function, output.name, describe(v).text);
    }
    reach += stride * most;
  }
  return {};
}

Range range_of(const ConstView& v) {
  const std::uintptr_t data = reinterpret_cast<std::uintptr_t>(v.data);
  std::int64_t low = 0, high = bits(v.dtype);
  for (int d = 0; d < v.rank; ++d) {
    if (v.shape[d] <= 0) return {data, data};
    (v.stride[d] < 0 ? low : high) += v.stride[d] * (v.shape[d] - 1) * bits(v.dtype);
  }
  // Shifts, because low is negative and must round down: half bytes begin in the byte before.
  return {data + static_cast<std::uintptr_t>(low >> 3), data + static_cast<std::uintptr_t>((high + 7) >> 3)};
}

bool overlap(const ConstView& a, const ConstView& b) {
  const Range ra = range_of(a), rb = range_of(b);
  if (ra.begin == ra.end || rb.begin == rb.end || ra.end <= rb.begin || rb.end <= ra.begin) return false;
  Term terms[2 * kMaxRank];
  int count = 0;
  const Distance from_a = add_terms(a, 1, terms, count), from_b = add_terms(b, -1, terms, count);
  std::sort(terms, terms + count, [](const Term& s, const Term& t) { return s.stride > t.stride; });
  int steps = 100000;
  return reachable(terms, terms + count, from_a - from_b, -bits(a.dtype), bits(b.dtype), steps);
}

Status check_no_overlap(const char* function, Argument output, Argument input, bool in_place) {
  const ConstView &o = output.view, &i = input.view;
  if (!i.present() || !o.present()) return {};
  bool same = in_place && o.data == i.data && o.dtype == i.dtype && o.rank == i.rank;
  for (int d = 0; same && d < o.rank; ++d)
    same = o.shape[d] == i.shape[d] && (o.stride[d] == i.stride[d] || o.shape[d] <= 1);
  if (same || !overlap(o, i)) return {};
  return Status::error("%s: output %s (%s at %p) overlaps %s (%s at %p)%s", function, output.name,
                       describe(o).text, o.data, input.name, describe(i).text, i.data,
                       in_place ? ": it may be the same view or apart from it" : ": they must lie apart");
}

Status check_packed(const char* function, Argument argument) {
  if (is_dense(argument.view)) return {};
  return Status::error("%s: %s is %s: packed elements must lie side by side in row-major order", function,
                       argument.name, describe(argument.view).text);
}

Status check_workspace(const char* function, Workspace workspace, std::size_t needed) {
  if (needed == 0) return {};
  if (workspace.bytes < needed || !workspace.pointer)
    return Status::error("%s: needs a workspace of %zu bytes (ask %s_workspace), was given %zu", function,
                         needed, function, workspace.pointer ? workspace.bytes : 0);
  if (reinterpret_cast<std::uintptr_t>(workspace.pointer) % 64 != 0)
    return Status::error("%s: the workspace at %p is not aligned to 64 bytes", function, workspace.pointer);
  return {};
}

Status check_workspace_apart(const char* function, Workspace workspace, Argument argument) {
  if (!argument.view.present() || !workspace.pointer || workspace.bytes == 0) return {};
  const std::size_t bytes = std::min<std::size_t>(workspace.bytes, std::size_t{1} << 58);  // 2^61 bits
  const View memory = view(static_cast<std::uint8_t*>(workspace.pointer), {bytes});
  if (!overlap(memory, argument.view)) return {};
  return Status::error(
      "%s: the workspace (%zu bytes at %p) overlaps %s (%s at %p): it must lie apart from all arguments",
      function, workspace.bytes, workspace.pointer, argument.name, describe(argument.view).text,
      argument.view.data);
}

}  // namespace rooftile
