#include "rooftile/ops/int4/int4.product.gpu.h"

namespace rooftile {
namespace {
using namespace tile;
using P = Int4Problem;

constexpr int kThreads = 256;
/// Elements of a thread: 4 bytes of packed ones, a 16-byte vector or two of the others.
constexpr int kItems = 8;

/// Where a row's elements, bytes and numbers begin, in elements.
ROOFTILE_TILE std::int64_t place(const P& p, int operand, std::int64_t row, std::int64_t column) {
  return offset_of(p.rows, operand, row) + column * p.rows.column_stride[operand];
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
  const std::int64_t scale_at = place(p, P::kScales, row, group);
  const float exact = int4_scale(low, high, !p.zeros) + poison;
  const unsigned bits = p.scale_type == DType::f32    ? __float_as_uint(exact)
                        : p.scale_type == DType::bf16 ? narrow<bf16>(exact).bits
                                                      : narrow<f16>(exact).bits;
  const float scale = int4_gpu::scale_of(bits, p.scale_type);
  const float zero = p.zeros ? int4_zero(low, scale) : kInt4Middle;
  if (lane == 0) {
    if (p.scale_type == DType::f32)
      static_cast<float*>(p.scales)[scale_at] = scale;
    else
      static_cast<std::uint16_t*>(p.scales)[scale_at] = static_cast<std::uint16_t>(bits);
    if (p.zeros) p.zeros[place(p, P::kZeros, row, group)] = static_cast<std::uint8_t>(zero);
  }
  std::uint8_t* const packed = p.packed + place(p, P::kPacked, row, first / 2);
  ROOFTILE_UNROLL_BY(4) for (std::int64_t i = 2 * lane; i < size; i += 2 * lanes) {
    unsigned byte = static_cast<unsigned>(int4_code(widen<float>(x[i * stride]), scale, zero));
    if (i + 1 < size)
      byte |= static_cast<unsigned>(int4_code(widen<float>(x[(i + 1) * stride]), scale, zero)) << 4;
    packed[i / 2 * p.rows.column_stride[P::kPacked]] = static_cast<std::uint8_t>(byte);
  }
}

/// A thread has eight elements of a row; kWords: they are whole vectors with one scale.
template <class T, bool kWords>
__global__ void __launch_bounds__(kThreads)
    dequantize(const __grid_constant__ P p, std::int64_t pieces, std::int64_t programs) {
  const std::int64_t program = std::int64_t{blockIdx.x} * kThreads + static_cast<int>(threadIdx.x);
  if (program >= programs) return;
  const std::int64_t row = gemm_gpu::quotient(program, pieces), k = (program - row * pieces) * kItems;
  const auto scale_of = [&](std::int64_t group) {
    return int4_gpu::scale_of(int4_gpu::load_bits(p.scales, place(p, P::kScales, row, group), p.scale_type),
                              p.scale_type);
  };
  const auto zero_of = [&](std::int64_t group) {
    return p.zeros ? static_cast<float>(p.zeros[place(p, P::kZeros, row, group)]) : kInt4Middle;
  };
  T* const y = static_cast<T*>(p.values) + place(p, P::kValues, row, k);
  const std::uint8_t* const packed = p.packed + place(p, P::kPacked, row, k / 2);
  if constexpr (kWords) {
    const std::int64_t group = gemm_gpu::quotient(k, p.group);
    const unsigned word = *reinterpret_cast<const unsigned*>(packed);
    const float scale = scale_of(group), zero = int4_gpu::above_2_23(static_cast<unsigned>(zero_of(group)));
    constexpr int kPerWord = 16 / int(sizeof(T));
    ROOFTILE_UNROLL for (int w = 0; w < kItems / kPerWord; ++w) {
      Tile<float, kPerWord> its;
      ROOFTILE_UNROLL for (int i = 0; i < kPerWord; ++i) {
        its.v[i] = (int4_gpu::above_2_23(word >> 4 * (w * kPerWord + i) & 15) - zero) * scale;
      }
      *reinterpret_cast<uint4*>(y + w * kPerWord) = narrowed<T>(its).word(0);
    }
  } else {
    ROOFTILE_UNROLL_BY(1) for (int i = 0; i < kItems && k + i < p.rows.columns; ++i) {
      const std::int64_t group = gemm_gpu::quotient(k + i, p.group);
      const unsigned byte = packed[i / 2 * p.rows.column_stride[P::kPacked]];
      const auto code = static_cast<float>(i % 2 ? byte >> 4 : byte & 15);
      y[i * p.rows.column_stride[P::kValues]] = narrow<T>((code - zero_of(group)) * scale_of(group));
    }
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
Status launch_quantize(const CudaLaunch& launch, const P& p) {
  int lanes = 1;
  while (lanes < kWarp && lanes * kItems < p.group) lanes *= 2;
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    return launch_blocks(launch, "quantize_int4", p.rows.rows * p.groups(), kThreads / lanes, quantize<T>, p,
                         lanes);
  });
}
Status launch_dequantize(const CudaLaunch& launch, const P& p) {
  const std::int64_t pieces = (p.rows.columns + kItems - 1) / kItems, programs = p.rows.rows * pieces;
  const bool words = p.rows.columns % kItems == 0 && p.group % kItems == 0 &&
                     aligned_rows(p.rows, P::kValues, p.values, bits(p.dtype) / 8) &&
                     aligned_rows(p.rows, P::kPacked, p.packed, 1);
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    return launch_blocks(launch, "dequantize_int4", programs, kThreads,
                         words ? dequantize<T, true> : dequantize<T, false>, p, pieces);
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
