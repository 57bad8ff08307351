#include <algorithm>
#include <cmath>
#include <cstring>

#include "rooftile/ops/gemm/gemm.codes.cpu.h"
#include "rooftile/ops/int4/int4.problem.h"
#include "rooftile/ops/int4/int4.product.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;
using Codes = tile::Tile<std::int32_t>;

/// Codes of a group that are bytes before they are packed, or after.
constexpr std::int64_t kSegment = 4096;

/// One group: its elements, bytes and numbers. A row's groups begin with whole bytes.
struct Place {
  std::int64_t row, group, first, size;

  Place(const Int4Problem& p, std::int64_t program)
      : row(program / p.groups()),
        group(program % p.groups()),
        first(group * p.group),
        size(std::min(p.group, p.rows.columns - first)) {}
  template <class T>
  Row<T> values(const Int4Problem& p, std::int64_t from, std::int64_t count) const {
    const std::int64_t stride = p.rows.column_stride[Int4Problem::kValues];
    return {static_cast<T*>(p.values) + p.rows.offset(Int4Problem::kValues, row) + (first + from) * stride,
            count, stride};
  }
  std::uint8_t* packed(const Int4Problem& p, std::int64_t from) const {
    return p.packed + p.rows.offset(Int4Problem::kPacked, row) +
           (first + from) / 2 * p.rows.column_stride[Int4Problem::kPacked];
  }
  void* scale(const Int4Problem& p) const {
    return static_cast<std::byte*>(p.scales) +
           (p.rows.offset(Int4Problem::kScales, row) + group * p.rows.column_stride[Int4Problem::kScales]) *
               (bits(p.scale_type) / 8);
  }
  std::uint8_t* zero(const Int4Problem& p) const {
    return p.zeros + p.rows.offset(Int4Problem::kZeros, row) +
           group * p.rows.column_stride[Int4Problem::kZeros];
  }
};

/// Codes, a byte each, two to a byte; the first in the low nibble. Past the last one there is a 0.
void pack_codes(const std::uint8_t* codes, std::int64_t count, std::uint8_t* packed, std::int64_t stride) {
  const std::int64_t bytes = (count + 1) / 2;
  std::int64_t b = 0;
  for (; stride == 1 && b + 4 <= bytes; b += 4) {
    std::uint64_t w;
    std::memcpy(&w, codes + 2 * b, 8);
    w = (w | w >> 4) & 0x00FF00FF00FF00FF;
    w = (w | w >> 8) & 0x0000FFFF0000FFFF;
    const auto word = static_cast<std::uint32_t>(w | w >> 16);
    std::memcpy(packed + b, &word, 4);
  }
  for (; b < bytes; ++b) packed[b * stride] = static_cast<std::uint8_t>(codes[2 * b] | codes[2 * b + 1] << 4);
}
/// And back; of an odd count one more.
void unpack_codes(const std::uint8_t* packed, std::int64_t stride, std::int64_t count, std::uint8_t* codes) {
  const std::int64_t bytes = (count + 1) / 2;
  std::int64_t b = 0;
  for (; stride == 1 && b + 4 <= bytes; b += 4) {
    std::uint32_t word;
    std::memcpy(&word, packed + b, 4);
    std::uint64_t w = word;
    w = (w | w << 16) & 0x0000FFFF0000FFFF;
    w = (w | w << 8) & 0x00FF00FF00FF00FF;
    w = (w | w << 4) & 0x0F0F0F0F0F0F0F0F;
    std::memcpy(codes + 2 * b, &w, 8);
  }
  for (; b < bytes; ++b) {
    codes[2 * b] = packed[b * stride] & 15;
    codes[2 * b + 1] = packed[b * stride] >> 4;
  }
}

/// int4_code of many.
ROOFTILE_TILE Codes codes_of(const tile::Tile<float>& x, float scale, float zero) {
  const auto its = x / scale;
  const auto near = min(max(select(its == its, its, like(its, 0.0f)), -16), 16) + 0x1.8p23f;
  const auto code = min(max((near - 0x1.8p23f) + zero, 0), 15);
  return bit_cast<std::int32_t>(code + 0x1p23f) & 15;
}

template <class T, class Team>
void quantize_group(const Team& team, const Int4Problem& p, const Place& its) {
  const Row<const T> x = its.values<const T>(p, 0, its.size);
  tile::Tile<float> low = team.fill(0), high = team.fill(0), poison = team.fill(0);
  team.each(x.size, [&](auto chunk) ROOFTILE_INLINE {
    const auto values = team.load(x, chunk);
    low = min(values, low);
    high = max(values, high);
    poison += values * 0.0f;  // NaN where one is infinite or NaN
  });
  const float least = team.min(low), most = team.max(high), nan = team.sum(poison);
  store_scalar(its.scale(p), p.scale_type, double(int4_scale(least, most, !p.zeros) + nan));
  const auto scale = static_cast<float>(load_scalar(its.scale(p), p.scale_type));
  const float zero = p.zeros ? int4_zero(least, scale) : kInt4Middle;
  if (p.zeros) *its.zero(p) = static_cast<std::uint8_t>(zero);
  alignas(64) std::uint8_t codes[kSegment + 8];
  for (std::int64_t at = 0; at < its.size; at += kSegment) {
    const std::int64_t count = std::min(kSegment, its.size - at);
    const Row<const T> part = its.values<const T>(p, at, count);
    const Row<std::uint8_t> to{codes, count, 1};
    team.each(count, [&](auto chunk) ROOFTILE_INLINE {
      team.store(to, chunk, codes_of(team.load(part, chunk), scale, zero));
    });
    codes[count] = 0;
    pack_codes(codes, count, its.packed(p, at), p.rows.column_stride[Int4Problem::kPacked]);
  }
}

template <class T, class Team>
void dequantize_group(const Team& team, const Int4Problem& p, const Place& its) {
  const auto scale = static_cast<float>(load_scalar(its.scale(p), p.scale_type));
  const float zero = p.zeros ? static_cast<float>(*its.zero(p)) : kInt4Middle;
  alignas(64) std::uint8_t codes[kSegment + 8];
  for (std::int64_t at = 0; at < its.size; at += kSegment) {
    const std::int64_t count = std::min(kSegment, its.size - at);
    unpack_codes(its.packed(p, at), p.rows.column_stride[Int4Problem::kPacked], count, codes);
    const Row<const std::uint8_t> from{codes, count, 1};
    const Row<T> y = its.values<T>(p, at, count);
    team.each(count, [&](auto chunk) ROOFTILE_INLINE {
      team.store(y, chunk, (convert<float>(team.load_integers(from, chunk)) - zero) * scale);
    });
  }
}

/// Runs body.operator()<T>(team, place) for each group.
template <class Body>
void for_groups(const CpuLaunch& launch, const Int4Problem& p, Body body) {
  const bool dense = p.rows.columns <= 1 || p.rows.column_stride[Int4Problem::kValues] == 1;
  const std::int64_t bytes = p.rows.rows * p.rows.columns * (bits(p.dtype) + 4) / 8;
  with_access(dense, false, [&]<Access kAccess>() {
    with_row_type<kAccess>(p.dtype, [&]<class T>() {
      for_programs(launch, p.rows.rows * p.groups(), bytes,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     const CpuTeam<float, kAccess> team(scratch, p.dtype);
                     for (std::int64_t program = begin; program < end; ++program)
                       body.template operator()<T>(team, Place(p, program));
                   });
    });
  });
}
void launch_quantize(const CpuLaunch& launch, const Int4Problem& p) {
  for_groups(launch, p,
             [&]<class T>(const auto& team, const Place& its) { quantize_group<T>(team, p, its); });
}
void launch_dequantize(const CpuLaunch& launch, const Int4Problem& p) {
  for_groups(launch, p,
             [&]<class T>(const auto& team, const Place& its) { dequantize_group<T>(team, p, its); });
}

// ---- the product

/// Rows of W: codes by shifts, their zeros and scales beside each other.
struct Int4Lanes {
  using Weight = Int4Weight;
  static constexpr int kLanes = kVecLanes<float>;
  alignas(64) float scales[kLanes] = {}, zeros[kLanes] = {};

  static float scale_of(const Weight& w, Weight::Line line, std::int64_t k) {
    return number_at<float>(w.scales, w.scale_type, w.scale_at(line, w.group_of(k)));
  }
  void set(const Weight& w, int lane, Weight::Line line, std::int64_t k) {
    scales[lane] = scale_of(w, line, k);
    zeros[lane] = static_cast<float>(w.zero(line, w.group_of(k)));
  }
  template <class Put>
  ROOFTILE_TILE void each(const std::uint32_t (&words)[kLanes], Put put) const {
    const auto scale = load_unaligned<Vec<float>>(scales), zero = load_unaligned<Vec<float>>(zeros);
    const auto codes = load_unaligned<Vec<std::int32_t>>(words);
#pragma GCC unroll 8
    for (int e = 0; e < 8; ++e)
      put((__builtin_convertvector(codes >> Weight::shift(e) & 15, Vec<float>) - zero) * scale);
  }
  static float one(const Weight& w, Weight::Line line, std::int64_t k, unsigned code) {
    return (static_cast<float>(code) - static_cast<float>(w.zero(line, w.group_of(k)))) *
           scale_of(w, line, k);
  }
};

}  // namespace

ROOFTILE_CPU_KERNELS(int4) = {
    entry<launch_quantize>("quantize_int4", "tile"),
    entry<launch_dequantize>("dequantize_int4", "tile"),
    entry<launch_codes<Int4Lanes>>("gemm_int4", "tile"),
    {},
};

}  // namespace rooftile
