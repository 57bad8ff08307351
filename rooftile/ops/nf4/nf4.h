#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct Nf4Options {
  std::int64_t block = 64;        ///< elements that share a scale: a power of two from 32 to 4096
  const char* variant = nullptr;  ///< null: chosen by the library; else one that `rooftile list` shows
};

/// Quantises to 4 bits: the elements of x in row-major order, in blocks of `block`, the last of any length.
/// A block's scale is its largest magnitude; each element · (1 / scale) becomes the nearest of 16 levels, the
/// quantiles of a normal distribution.
///
/// x: any shape of rank 0 to 8, f32, f16 or bf16, any strides. packed: {⌈n/2⌉} of u8, two elements to a byte,
/// the first in the high nibble; where n is odd the last low nibble is 7, the level 0. absmax: {⌈n/block⌉} of
/// f32. Both with any stride, apart from x and each other. No workspace.
///
/// Bytes and scales are bitsandbytes' (its CUDA kernels' thresholds, IEEE reciprocals). In a block of zeros
/// 0 · inf is NaN, which has level 0, -1: it dequantises to -0, as there. A NaN among others has level 0 and
/// counts in no scale; an infinity makes the scale infinite. Where its own ways differ: its
/// CUDA kernels are built with fast math, whose reciprocal may give a weight next to a threshold the
/// neighbouring level; without a kernel it takes the nearest level, which next to a threshold may be another.
///
/// Errors: an absent view, a dtype or size other than said above, a block that is no power of two from 32 to
/// 4096, null or misaligned data, outputs that overlap. Cost: x read, ⌈n/2⌉ and 4·⌈n/block⌉ bytes written.
/// Source: Dettmers et al., arXiv:2305.14314.
Status quantize_nf4(const Queue& queue, ConstView x, View packed, View absmax,
                    const Nf4Options& options = {});

struct DequantizeNf4Options {
  std::int64_t block = 64;
  /// The flattened tensor's element that is y's first: rows from r on begin with r · columns.
  std::int64_t first = 0;
  const char* variant = nullptr;
};

/// And back: y_i = level · scale, rounded once to y's dtype. `packed` and `absmax` may hold more than y's
/// elements from `first` on: a range of rows is dequantised by itself.
///
/// y: any shape, f32, f16 or bf16, any strides. packed: u8, at least ⌈(first + n)/2⌉; absmax: f32, at least
/// ⌈(first + n)/block⌉; nothing past these is read. No workspace.
///
/// Every bit is bitsandbytes'. Where its own ways differ: without a kernel it rounds the levels to y's dtype
/// first.
///
/// Errors: as quantize_nf4's. Cost: half a byte read for each element, y written.
Status dequantize_nf4(const Queue& queue, ConstView packed, ConstView absmax, View y,
                      const DequantizeNf4Options& options = {});

struct GemmNf4Inputs {
  ConstView x;          ///< {…, M, K}: f32, f16 or bf16
  ConstView packed;     ///< {⌈N·K/2⌉} of u8: the weight W {N, K}, as quantize_nf4 packs it
  ConstView absmax;     ///< {⌈N·K/block⌉} of f32
  ConstView bias = {};  ///< optional: {N}, x's dtype or f32
};

/// y = x·Wᵀ + bias without W in memory: QLoRA's product. y: {…, M, N}, x's dtype, any strides, apart from all
/// else.
///
/// Each weight is dequantize_nf4's in x's dtype, level · scale rounded once. The rest is gemm's: one chain
/// over ascending K in f32, the bias added, y rounded once. So every bit is that of dequantize_nf4, then
/// gemm, and a row of y depends only on its row of x. If scales are in 8 bits, call dequantize_scales first,
/// as bitsandbytes does.
///
/// M, N, K from 0 up. Fast where K is a multiple of 32 and packed's bytes are contiguous, aligned to 16.
/// Workspace: gemm_nf4_workspace(…) bytes; 0 on a CPU, for f32 and up to 64 rows of x. With more, a GPU
/// dequantises W there, into N rows of 2·K bytes. Errors: as quantize_nf4's and gemm's, a workspace that is
/// too small. Cost: 2·M·N·K flops; N·K/2 + 4·N·K/block bytes, x and y; the workspace written and read once.
Status gemm_nf4(const Queue& queue, const GemmNf4Inputs& inputs, View y, const Nf4Options& options = {},
                Workspace workspace = {});
Status gemm_nf4_workspace(const Queue& queue, const GemmNf4Inputs& inputs, View y, const Nf4Options& options,
                          std::size_t& bytes);

struct ScalesOptions {
  const char* variant = nullptr;
};

/// Double quantisation: NF4's scales in 8 bits. Blocks of 256 scales less `offset`; a block's absmax is its
/// largest magnitude, and each (scale - offset) · (1 / absmax) becomes the nearest of 256 numbers, of which
/// more are near 0.
///
/// scales: {n} of f32. offset: one f32; bitsandbytes takes the mean of all scales. codes: {n} of u8. absmax:
/// {⌈n/256⌉} of f32. Any strides, outputs apart from all else. No workspace. Every bit is that of
/// bitsandbytes' CUDA kernels with IEEE reciprocals; NaN and blocks of zeros as quantize_nf4's: code 0.
///
/// Errors: as quantize_nf4's.
Status quantize_scales(const Queue& queue, ConstView scales, ConstView offset, View codes, View absmax,
                       const ScalesOptions& options = {});
/// And back: scale = number · absmax + offset, each rounded.
Status dequantize_scales(const Queue& queue, ConstView codes, ConstView absmax, ConstView offset, View scales,
                         const ScalesOptions& options = {});

}  // namespace rooftile
