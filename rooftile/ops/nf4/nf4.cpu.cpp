#include <algorithm>
#include <cmath>
#include <cstring>

#include "rooftile/ops/gemm/gemm.codes.cpu.h"
#include "rooftile/ops/nf4/nf4.problem.h"
#include "rooftile/ops/nf4/nf4.product.h"
#include "rooftile/ops/nf4/nf4.scales.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// Elements at a time: whole blocks of any size, and 16 KiB of f32 in the first cache.
constexpr std::int64_t kChunk = 4096;
using Team = CpuTeam<float, Access::cached>;
using Codes = tile::Tile<std::int32_t>;

/// Where `count` elements from `first` on are not next to each other: calls f(pointer to one, its index).
template <class T, class F>
void for_apart(const Nf4Problem& p, std::int64_t first, std::int64_t count, F f) {
  auto* data = static_cast<T*>(p.data);
  std::int64_t row = first / p.rows.columns, column = first % p.rows.columns;
  for (std::int64_t i = 0; i < count; ++row, column = 0) {
    T* at = data + p.rows.offset(0, row) + column * p.rows.column_stride[0];
    for (; i < count && column < p.rows.columns; ++i, ++column, at += p.rows.column_stride[0]) f(at, i);
  }
}

/// How many thresholds each lane is above. A NaN is above none.
ROOFTILE_TILE Codes levels_of(const tile::Tile<float>& scaled) {
  Codes code = tile::fill<std::int32_t>(0);
  if constexpr (kHasLookup) {
    // By halves: with 8, 4, 2 and 1 thresholds ahead, the next one comes from a table in two registers.
    static constexpr auto kTable = [] {
      struct {
        float at[32] = {};
      } table;
      for (int i = 0; i < 15; ++i) table.at[i] = kNf4Thresholds[i];
      return table;
    }();
    for (int ahead = 8; ahead > 0; ahead /= 2)
      for (int v = 0; v < 4; ++v) {
        const auto threshold = vlookup(kTable.at, code.v[v] + (ahead - 1));
        code.v[v] += (scaled.v[v] > threshold ? Vec<std::int32_t>{} + ahead : Vec<std::int32_t>{});
      }
  } else {
    for (float threshold : kNf4Thresholds)
      for (int v = 0; v < 4; ++v) code.v[v] -= (Vec<std::int32_t>)(scaled.v[v] > threshold);
  }
  return code;
}

/// Eight codes, a byte each, to four bytes: the first of two in the high nibble.
ROOFTILE_TILE std::uint32_t packed_of(const std::uint8_t* codes) {
  std::uint64_t w;
  std::memcpy(&w, codes, 8);
  w = (w << 4 | w >> 8) & 0x00FF00FF00FF00FF;
  w = (w | w >> 8) & 0x0000FFFF0000FFFF;
  return static_cast<std::uint32_t>(w | w >> 16);
}

template <class T>
void quantize_chunk(const Nf4Problem& p, const T* x, std::int64_t first, std::int64_t count) {
  alignas(64) std::uint8_t codes[kChunk + 8];
  const Team team(nullptr);
  for (std::int64_t begin = 0; begin < count; begin += p.block) {
    const Row<const T> row{x + begin, std::min<std::int64_t>(p.block, count - begin)};
    tile::Tile<float> most = team.fill(0);
    team.each(row.size, [&](auto chunk) { most = max(abs(team.load(row, chunk)), most); });  // not NaN's
    const float absmax = team.max(most), each_one = 1 / absmax;
    p.absmax[((first + begin) >> p.block_log) * p.absmax_stride] = absmax;
    const Row<std::uint8_t> to{codes + begin, row.size};
    team.each(row.size,
              [&](auto chunk) { team.store(to, chunk, levels_of(team.load(row, chunk) * each_one)); });
  }
  if (count % 2) codes[count] = 7;  // the level 0
  const std::int64_t bytes = (count + 1) / 2;
  std::uint8_t* packed = p.packed + first / 2 * p.packed_stride;
  std::int64_t b = 0;
  if (p.packed_stride == 1)
    for (; b + 4 <= bytes; b += 4) {
      const std::uint32_t word = packed_of(codes + 2 * b);
      std::memcpy(packed + b, &word, 4);
    }
  for (; b < bytes; ++b)
    packed[b * p.packed_stride] = static_cast<std::uint8_t>(codes[2 * b] << 4 | codes[2 * b + 1]);
}

/// Runs body.operator()<T>(first, count, scratch) for each chunk of elements; `bytes`: what one of them
/// moves.
template <class Body>
void for_chunks(const CpuLaunch& launch, const Nf4Problem& p, Body body) {
  const std::int64_t size = p.size(), chunks = (size + kChunk - 1) / kChunk;
  with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    for_programs(launch, chunks, size * std::int64_t(sizeof(T)) + size / 2,
                 [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                   for (std::int64_t c = begin; c < end; ++c)
                     body.template operator()<T>(c * kChunk, std::min(kChunk, size - c * kChunk),
                                                 reinterpret_cast<T*>(scratch.begin));
                 });
  });
}

void launch_quantize(const CpuLaunch& launch, const Nf4Problem& p) {
  const bool contiguous = p.contiguous();
  for_chunks(launch, p, [&]<class T>(std::int64_t first, std::int64_t count, T* scratch) {
    if (contiguous) return quantize_chunk(p, static_cast<const T*>(p.data) + first, first, count);
    for_apart<T>(p, first, count, [&](const T* x, std::int64_t i) { scratch[i] = *x; });
    quantize_chunk<T>(p, scratch, first, count);
  });
}

/// Levels of a run of elements that begin with a whole byte and share a scale, in units of 2 · kVecLanes.
template <class T>
void dequantize_run(const std::uint8_t* packed, std::int64_t stride, std::int64_t count, float scale, T* y) {
  std::int64_t i = 0;
  const Team team(nullptr);
  if (stride == 1) {
    static constexpr auto kTable = [] {
      struct {
        float at[32] = {};
      } table;
      for (int k = 0; k < 32; ++k) table.at[k] = kNf4Levels[k % 16];
      return table;
    }();
    constexpr int kLanes = Team::kLanes, kWidth = kVecLanes<float>;
    for (; i + kLanes <= count; i += kLanes) {
      tile::Tile<float> t;
      for (int v = 0; v < 4; ++v) {
        std::int32_t nibbles[kWidth];
        const std::uint8_t* from = packed + (i + v * kWidth) / 2;
        for (int k = 0; k < kWidth / 2; ++k) {
          nibbles[2 * k] = from[k] >> 4;
          nibbles[2 * k + 1] = from[k] & 15;
        }
        if constexpr (kHasLookup) {
          t.v[v] = vlookup(kTable.at, load_unaligned<Vec<std::int32_t>>(nibbles)) * scale;
        } else {
          float levels[kWidth];
          for (int k = 0; k < kWidth; ++k) levels[k] = kNf4Levels[nibbles[k]];
          t.v[v] = load_unaligned<Vec<float>>(levels) * scale;
        }
      }
      store_whole(y + i, t);
    }
  }
  for (; i < count; ++i) {
    const std::uint8_t byte = packed[i / 2 * stride];
    store_scalar(y + i, dtype_of<T>, double(kNf4Levels[i % 2 ? byte & 15 : byte >> 4] * scale));
  }
}

template <class T>
void dequantize_chunk(const Nf4Problem& p, std::int64_t first, std::int64_t count, T* y) {
  const std::int64_t at = p.first + first, end = at + count;
  for (std::int64_t i = at; i < end;) {
    const float scale = p.absmax[(i >> p.block_log) * p.absmax_stride];
    const std::int64_t block_end = std::min(end, ((i >> p.block_log) + 1) << p.block_log);
    const std::uint8_t* packed = p.packed + i / 2 * p.packed_stride;
    if (i % 2) {  // the low nibble of a byte
      store_scalar(y + (i - at), dtype_of<T>, double(kNf4Levels[*packed & 15] * scale));
      ++i, packed += p.packed_stride;
    }
    dequantize_run(packed, p.packed_stride, block_end - i, scale, y + (i - at));
    i = block_end;
  }
}

void launch_dequantize(const CpuLaunch& launch, const Nf4Problem& p) {
  const bool contiguous = p.contiguous();
  for_chunks(launch, p, [&]<class T>(std::int64_t first, std::int64_t count, T* scratch) {
    if (contiguous) return dequantize_chunk(p, first, count, static_cast<T*>(p.data) + first);
    dequantize_chunk(p, first, count, scratch);
    for_apart<T>(p, first, count, [&](T* y, std::int64_t i) { *y = scratch[i]; });
  });
}

// ---- scales: one of them for 64 weights, so no vectors

/// Runs body(first, end) for each block of 256.
template <class Body>
void for_scale_blocks(const CpuLaunch& launch, std::int64_t count, Body body) {
  for_programs(launch, (count + kScaleBlock - 1) / kScaleBlock, 5 * count,
               [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                 for (std::int64_t b = begin; b < end; ++b)
                   body(b, b * kScaleBlock, std::min(count, (b + 1) * kScaleBlock));
               });
}
void launch_quantize_scales(const CpuLaunch& launch, const Nf4ScalesProblem& p) {
  for_scale_blocks(launch, p.count, [&](std::int64_t block, std::int64_t first, std::int64_t end) {
    const auto above = [&](std::int64_t i) { return p.scales[i * p.scales_stride] - *p.offset; };
    float most = 0;
    for (std::int64_t i = first; i < end; ++i) {
      const float size = std::fabs(above(i));
      if (size > most) most = size;  // not a NaN
    }
    p.absmax[block * p.absmax_stride] = most;
    const float each_one = 1 / most;
    for (std::int64_t i = first; i < end; ++i)
      p.codes[i * p.codes_stride] =
          static_cast<std::uint8_t>(nf4_scale_code(kNf4ScaleMap.at, above(i) * each_one));
  });
}
void launch_dequantize_scales(const CpuLaunch& launch, const Nf4ScalesProblem& p) {
  for_scale_blocks(launch, p.count, [&](std::int64_t block, std::int64_t first, std::int64_t end) {
    const float absmax = p.absmax[block * p.absmax_stride], offset = *p.offset;
    for (std::int64_t i = first; i < end; ++i)
      p.scales[i * p.scales_stride] = kNf4ScaleMap.at[p.codes[i * p.codes_stride]] * absmax + offset;
  });
}

// ---- the product

/// Rows of W: their levels from a table in registers, where there is such a thing.
struct Nf4Lanes {
  using Weight = Nf4Weight;
  static constexpr int kLanes = kVecLanes<float>;
  alignas(64) float scales[kLanes] = {};

  void set(const Weight& w, int lane, Weight::Line line, std::int64_t k) { scales[lane] = w.scale(line, k); }
  template <class Put>
  ROOFTILE_TILE void each(const std::uint32_t (&words)[kLanes], Put put) const {
    const auto scale = load_unaligned<Vec<float>>(scales);
    const auto codes = load_unaligned<Vec<std::int32_t>>(words);
#pragma GCC unroll 8
    for (int e = 0; e < 8; ++e) {
      if constexpr (kHasLookup16) {
        put(vlookup16(kNf4Table.at, codes >> Weight::shift(e)) * scale);
      } else {
        alignas(64) float levels[kLanes];
        for (int l = 0; l < kLanes; ++l) levels[l] = kNf4Levels[words[l] >> Weight::shift(e) & 15];
        put(load_unaligned<Vec<float>>(levels) * scale);
      }
    }
  }
  static float one(const Weight& w, Weight::Line line, std::int64_t k, unsigned code) {
    return kNf4Levels[code] * w.scale(line, k);
  }
};

}  // namespace

ROOFTILE_CPU_KERNELS(nf4) = {
    entry<launch_quantize>("quantize_nf4", "tile"),
    entry<launch_dequantize>("dequantize_nf4", "tile"),
    entry<launch_quantize_scales>("quantize_scales", "tile"),
    entry<launch_dequantize_scales>("dequantize_scales", "tile"),
    entry<launch_codes<Nf4Lanes>>("gemm_nf4", "tile"),
    {},
};

}  // namespace rooftile
