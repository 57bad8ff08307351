#include "rooftile/ops/int4/int4.product.gpu.h"

namespace rooftile {
namespace {
using namespace tile;
using P = Int4Problem;

constexpr int kThreads = 256;
/// Elements of a thread: 4 bytes of packed ones, a 16-byte vector or two of the others.
constexpr int kItems = 8;
/// Such pieces of a thread, whose loads are in flight together, where rows are whole vectors.
constexpr int kPieces = 4;

/// Where a row's elements, bytes and numbers begin, in elements.
ROOFTILE_TILE std::int64_t place(const P& p, int operand, std::int64_t row, std::int64_t column) {
  return offset_of(p.rows, operand, row) + column * p.rows.column_stride[operand];
}

/// A scale rounded to its dtype, as it is stored.
ROOFTILE_TILE unsigned bits_of(float scale, DType type) {
  return type == DType::f32    ? __float_as_uint(scale)
         : type == DType::bf16 ? narrow<bf16>(scale).bits
                               : narrow<f16>(scale).bits;
}
ROOFTILE_TILE void store_factor(const P& p, std::int64_t row, std::int64_t group, unsigned bits, float zero) {
  const std::int64_t at = place(p, P::kScales, row, group);
  if (p.scale_type == DType::f32)
    static_cast<float*>(p.scales)[at] = __uint_as_float(bits);
  else
    static_cast<std::uint16_t*>(p.scales)[at] = static_cast<std::uint16_t>(bits);
  if (p.zeros) p.zeros[place(p, P::kZeros, row, group)] = static_cast<std::uint8_t>(zero);
}

/// int4_code() of eight elements as a word, for a scale from 2^-60 to 2^100 and elements of its group: no
/// quotient is NaN or beyond 2^22, and no remainder subnormal where the quotient is not next to 0. Two steps
/// with the exact remainder round x / scale as a division does (Markstein), in 5 instructions instead of 10.
ROOFTILE_TILE unsigned packed_codes(const float (&x)[kItems], float scale, float reciprocal, float zero) {
  const float above = 0x1.8p23f - zero;
  float halves[2] = {0x1p23f, 0x1p23f};  // four codes each, from the last to the first
  ROOFTILE_UNROLL for (int i = kItems - 1; i >= 0; --i) {
    float quotient = x[i] * reciprocal;
    ROOFTILE_UNROLL for (int step = 0; step < 2; ++step) {
      quotient = fmaf(fmaf(-scale, quotient, x[i]), reciprocal, quotient);
    }
    const float code = fminf(fmaxf((quotient + 0x1.8p23f) - above, 0.0f), 15.0f);
    halves[i / 4] = fmaf(code, static_cast<float>(1 << i % 4 * 4), halves[i / 4]);
  }
  return __byte_perm(__float_as_uint(halves[0]), __float_as_uint(halves[1]), 0x5410);
}

template <class T>
ROOFTILE_TILE void load_piece(float (&to)[kItems], const T* from) {
  constexpr int kInWord = 16 / int(sizeof(T));
  ROOFTILE_UNROLL for (int w = 0; w < kItems / kInWord; ++w) {
    const uint4 word = reinterpret_cast<const uint4*>(from)[w];
    T its[kInWord];
    memcpy(its, &word, sizeof word);
    ROOFTILE_UNROLL for (int i = 0; i < kInWord; ++i) to[w * kInWord + i] = widen<float>(its[i]);
  }
}

/// Whole vectors, and groups of 32 elements for each of 2^lanes_log neighbours, which keep them in registers.
template <class T>
__global__ void __launch_bounds__(kThreads)
    quantize_words(const __grid_constant__ P p, int lanes_log, std::int64_t programs) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + static_cast<int>(threadIdx.x);
  const int lanes = 1 << lanes_log, lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const bool lives = thread >> lanes_log < programs;
  const std::int64_t program = lives ? thread >> lanes_log : programs - 1;
  const std::int64_t row = gemm_gpu::quotient(program, p.groups()), group = program - row * p.groups();
  const std::int64_t first = group * p.group + lane * kItems;
  const T* const x = static_cast<const T*>(p.values) + place(p, P::kValues, row, first);

  float values[kPieces][kItems];
  ROOFTILE_UNROLL for (int j = 0; j < kPieces; ++j) load_piece(values[j], x + j * lanes * kItems);
  float low = 0, high = 0, poison = 0;
  ROOFTILE_UNROLL for (int i = 0; i < kPieces * kItems; ++i) {
    const float value = values[i / kItems][i % kItems];
    low = fminf(low, value);
    high = fmaxf(high, value);
    poison = fmaf(value, 0.0f, poison);
  }
  for (int far = lanes / 2; far > 0; far /= 2) {
    low = fminf(low, __shfl_xor_sync(kAllLanes, low, far));
    high = fmaxf(high, __shfl_xor_sync(kAllLanes, high, far));
    poison += __shfl_xor_sync(kAllLanes, poison, far);
  }
  if (!lives) return;
  const unsigned bits = bits_of(int4_scale(low, high, !p.zeros) + poison, p.scale_type);
  const float scale = int4_gpu::scale_of(bits, p.scale_type);
  const float zero = p.zeros ? int4_zero(low, scale) : kInt4Middle;
  if (lane == 0) store_factor(p, row, group, bits, zero);

  auto* const packed = reinterpret_cast<unsigned*>(p.packed + place(p, P::kPacked, row, first / 2));
  if (scale >= 0x1p-60f && scale <= 0x1p100f) {
    const float reciprocal = 1 / scale;
    ROOFTILE_UNROLL for (int j = 0; j < kPieces; ++j) {
      packed[j * lanes] = packed_codes(values[j], scale, reciprocal, zero);
    }
    return;
  }
  ROOFTILE_UNROLL_BY(1) for (int j = 0; j < kPieces; ++j) {
    unsigned word = 0;
    ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kItems; ++i) {
      const float value = widen<float>(x[j * lanes * kItems + i]);
      word |= static_cast<unsigned>(int4_code(value, scale, zero)) << 4 * i;
    }
    packed[j * lanes] = word;
  }
}

/// Neighbours of a warp for each group, as many as have eight elements each, up to 32. They read it twice,
/// the second time from L1 or L2.
template <class T>
__global__ void __launch_bounds__(kThreads)
    quantize(const __grid_constant__ P p, int lanes, std::int64_t programs) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + static_cast<int>(threadIdx.x);
  const std::int64_t program = gemm_gpu::quotient(thread, lanes);
  const int lane = static_cast<int>(thread - program * lanes);
  const std::int64_t row = gemm_gpu::quotient(program, p.groups()), group = program - row * p.groups();
  const std::int64_t first = group * p.group, rest = p.rows.columns - first;
  const std::int64_t size = program >= programs ? 0 : rest < p.group ? rest : p.group;
  const std::int64_t stride = p.rows.column_stride[P::kValues];
  const T* x = static_cast<const T*>(p.values) + (size > 0 ? place(p, P::kValues, row, first) : 0);

  float low = 0, high = 0, poison = 0;  // the last NaN where one is infinite or NaN
  ROOFTILE_UNROLL_BY(4) for (std::int64_t i = lane; i < size; i += lanes) {
    const float value = widen<float>(x[i * stride]);
    low = fminf(low, value);
    high = fmaxf(high, value);
    poison += value * 0.0f;
  }
  for (int far = lanes / 2; far > 0; far /= 2) {
    low = fminf(low, __shfl_xor_sync(kAllLanes, low, far));
    high = fmaxf(high, __shfl_xor_sync(kAllLanes, high, far));
    poison += __shfl_xor_sync(kAllLanes, poison, far);
  }
  if (size == 0) return;
  const unsigned bits = bits_of(int4_scale(low, high, !p.zeros) + poison, p.scale_type);
  const float scale = int4_gpu::scale_of(bits, p.scale_type);
  const float zero = p.zeros ? int4_zero(low, scale) : kInt4Middle;
  if (lane == 0) store_factor(p, row, group, bits, zero);
  std::uint8_t* const packed = p.packed + place(p, P::kPacked, row, first / 2);
  ROOFTILE_UNROLL_BY(4) for (std::int64_t i = 2 * lane; i < size; i += 2 * lanes) {
    unsigned byte = static_cast<unsigned>(int4_code(widen<float>(x[i * stride]), scale, zero));
    if (i + 1 < size)
      byte |= static_cast<unsigned>(int4_code(widen<float>(x[(i + 1) * stride]), scale, zero)) << 4;
    packed[i / 2 * p.rows.column_stride[P::kPacked]] = static_cast<std::uint8_t>(byte);
  }
}

ROOFTILE_TILE unsigned zero_of(const P& p, std::int64_t row, std::int64_t group) {
  return p.zeros ? p.zeros[place(p, P::kZeros, row, group)] : static_cast<unsigned>(kInt4Middle);
}

/// Rows of whole vectors, a group's too. 2^across_log threads share a row: what is computed once for it,
/// which took longer than the copy, serves four pieces.
template <class T>
__global__ void __launch_bounds__(kThreads)
    dequantize_words(const __grid_constant__ P p, int across_log, int group_log, std::int64_t segments,
                     std::int64_t) {
  const std::int64_t strip = gemm_gpu::quotient(blockIdx.x, segments),
                     segment = blockIdx.x - strip * segments;
  const int across = 1 << across_log, thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = strip * (kThreads >> across_log) + (thread >> across_log);
  if (row >= p.rows.rows) return;
  const std::int64_t first = (segment * kPieces << across_log) + (thread & (across - 1));
  const std::int64_t pieces = p.rows.columns / kItems;
  const auto* const packed = reinterpret_cast<const unsigned*>(p.packed + place(p, P::kPacked, row, 0));
  const std::int64_t scales = place(p, P::kScales, row, 0);
  const std::uint8_t* const zeros = p.zeros ? p.zeros + place(p, P::kZeros, row, 0) : nullptr;
  unsigned words[kPieces], bits[kPieces], zero[kPieces];
  ROOFTILE_UNROLL for (int j = 0; j < kPieces; ++j) {
    const std::int64_t piece = first + j * across, k = piece * kItems;
    if (piece >= pieces) continue;
    const std::int64_t group = group_log >= 0 ? k >> group_log : gemm_gpu::quotient(k, p.group);
    words[j] = packed[piece];
    bits[j] = int4_gpu::load_bits(p.scales, scales + group * p.rows.column_stride[P::kScales], p.scale_type);
    zero[j] = zeros ? zeros[group * p.rows.column_stride[P::kZeros]] : static_cast<unsigned>(kInt4Middle);
  }
  T* const y = static_cast<T*>(p.values) + place(p, P::kValues, row, 0);
  constexpr int kPerWord = 16 / int(sizeof(T));
  ROOFTILE_UNROLL for (int j = 0; j < kPieces; ++j) {
    const std::int64_t piece = first + j * across;
    if (piece >= pieces) continue;
    const int4_gpu::Int4Factor factor{int4_gpu::scale_of(bits[j], p.scale_type),
                                      int4_gpu::above_2_23(zero[j])};
    ROOFTILE_UNROLL for (int w = 0; w < kItems / kPerWord; ++w) {
      const auto its = int4_gpu::dequantised<kPerWord>(words[j] >> 4 * w * kPerWord, factor);
      reinterpret_cast<uint4*>(y + piece * kItems)[w] = narrowed<T>(its).word(0);
    }
  }
}

/// A thread has eight elements of a row, which begin anywhere.
template <class T>
__global__ void __launch_bounds__(kThreads)
    dequantize(const __grid_constant__ P p, std::int64_t pieces, std::int64_t programs) {
  const std::int64_t program = std::int64_t{blockIdx.x} * kThreads + static_cast<int>(threadIdx.x);
  if (program >= programs) return;
  const std::int64_t row = gemm_gpu::quotient(program, pieces), k = (program - row * pieces) * kItems;
  T* const y = static_cast<T*>(p.values) + place(p, P::kValues, row, k);
  const std::uint8_t* const packed = p.packed + place(p, P::kPacked, row, k / 2);
  ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kItems && k + i < p.rows.columns; ++i) {
    const std::int64_t group = gemm_gpu::quotient(k + i, p.group);
    const unsigned byte = packed[i / 2 * p.rows.column_stride[P::kPacked]];
    const auto code = static_cast<float>(i % 2 ? byte >> 4 : byte & 15);
    const float scale = int4_gpu::scale_of(
        int4_gpu::load_bits(p.scales, place(p, P::kScales, row, group), p.scale_type), p.scale_type);
    y[i * p.rows.column_stride[P::kValues]] =
        narrow<T>((code - static_cast<float>(zero_of(p, row, group))) * scale);
  }
}

Status launch_blocks(const CudaLaunch& launch, const char* name, std::int64_t programs, std::int64_t each,
                     auto kernel, const auto&... arguments) {
  const std::int64_t blocks = (programs + each - 1) / each;
  if (blocks == 0) return {};
  if (blocks > kMaxBlocks)
    return Status::error("%s: the rows' groups take %lld blocks, more than the %lld of a launch", name,
                         static_cast<long long>(blocks), static_cast<long long>(kMaxBlocks));
  return rooftile::cuda::launch(launch, name, {static_cast<unsigned>(blocks), kThreads}, kernel, arguments...,
                                programs);
}
/// Rows are whole aligned vectors, and so is what shares a scale.
bool in_words(const P& p) {
  return p.rows.columns % kItems == 0 && p.group % kItems == 0 &&
         aligned_rows(p.rows, P::kValues, p.values, bits(p.dtype) / 8) &&
         aligned_rows(p.rows, P::kPacked, p.packed, 1);
}
/// Of a power of two, else -1.
int log_of(std::int64_t x) {
  for (int log = 0; log < 62; ++log)
    if (std::int64_t{1} << log == x) return log;
  return -1;
}
Status launch_quantize(const CudaLaunch& launch, const P& p) {
  int lanes = 1;
  while (lanes < kWarp && lanes * kItems < p.group) lanes *= 2;
  const int each = kPieces * kItems, lanes_log = p.group % each == 0 ? log_of(p.group / each) : -1;
  const bool words = in_words(p) && lanes_log >= 0 && lanes_log <= 5 && p.rows.columns % p.group == 0;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    const std::int64_t programs = p.rows.rows * p.groups();
    return words ? launch_blocks(launch, "quantize_int4", programs, kThreads >> lanes_log, quantize_words<T>,
                                 p, lanes_log)
                 : launch_blocks(launch, "quantize_int4", programs, kThreads / lanes, quantize<T>, p, lanes);
  });
}
Status launch_dequantize(const CudaLaunch& launch, const P& p) {
  const std::int64_t pieces = (p.rows.columns + kItems - 1) / kItems;
  int across_log = 0;
  while (1 << across_log < kThreads && pieces > kPieces << across_log) ++across_log;
  const std::int64_t segments = (pieces + (kPieces << across_log) - 1) / (kPieces << across_log);
  const std::int64_t together = kThreads >> across_log, strips = (p.rows.rows + together - 1) / together;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    return in_words(p) ? launch_blocks(launch, "dequantize_int4", strips * segments, 1, dequantize_words<T>,
                                       p, across_log, log_of(p.group), segments)
                       : launch_blocks(launch, "dequantize_int4", p.rows.rows * pieces, kThreads,
                                       dequantize<T>, p, pieces);
  });
}

}  // namespace

ROOFTILE_CUDA_KERNELS(int4) = {
    entry<launch_quantize>("quantize_int4", "tile"),
    entry<launch_dequantize>("dequantize_int4", "tile"),
    entry<codes_gpu::launch_few<int4_gpu::Int4Values>>("gemm_int4", "few_rows"),
    entry<codes_gpu::launch_mma<int4_gpu::Int4Values>>("gemm_int4", "mma"),
    entry<codes_gpu::launch_simt<int4_gpu::Int4Values>>("gemm_int4", "simt"),
    {},
};

}  // namespace rooftile
