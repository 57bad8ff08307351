#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct Int4Options {
  std::int64_t group = 128;       ///< elements of a row that share a scale, an even number; K or more: all
  const char* variant = nullptr;  ///< null: chosen by the library; else one that `rooftile list` shows
};

/// Quantises to 4 bits with a scale per group, as GPTQ and AWQ checkpoints have it: each row in groups of
/// `group`, the last of any length. With s the scale, rounded to its dtype, and round to the nearest, ties to
/// even, all in f32:
/// without zeros: s = max|x| / 7, code = clamp(round(x / s) + 8, 0, 15);
/// with zeros: s = (max(x, 0) - min(x, 0)) / 15, zero = clamp(round(-min / s), 0, 15),
/// code = clamp(round(x / s) + zero, 0, 15).
///
/// x: {…, K}, f32, f16 or bf16. packed: {…, ⌈K/2⌉} of u8, two codes to a byte, the first in the low nibble,
/// as GPTQ and ONNX have it; where K is odd a row's last high nibble is 0. scales: {…, ⌈K/group⌉}, f32, f16
/// or bf16. zeros: optional, as scales, u8: present, the group is asymmetric. Any strides; outputs apart from
/// all else. No workspace. The same bits on every machine.
///
/// A quotient that is NaN counts as 0: a group of zeros has scale 0, and dequantises to 0. A NaN or an
/// infinity makes its group's scale NaN, a scale beyond its dtype is infinite: both dequantise to NaN
/// throughout.
///
/// Errors: an absent view, a dtype or size other than said above, a group that is odd or below 2, null or
/// misaligned data, outputs that overlap. Cost: x is read, the second time from a cache; half a byte per
/// element and the scales are written. Source: Frantar et al., arXiv:2210.17323; Lin et al.,
/// arXiv:2306.00978.
Status quantize_int4(const Queue& queue, ConstView x, View packed, View scales, View zeros = {},
                     const Int4Options& options = {});

/// And back: y = (code - zero) · scale in f32, rounded to y's dtype. Without zeros they are 8.
/// y: {…, K}, f32, f16 or bf16; else as above. A zero may be any of u8's numbers. Errors: as above. Cost:
/// half a byte read per element, y written.
Status dequantize_int4(const Queue& queue, ConstView packed, ConstView scales, ConstView zeros, View y,
                       const Int4Options& options = {});

struct GemmInt4Inputs {
  ConstView x;           ///< {…, M, K}: f32, f16 or bf16
  ConstView packed;      ///< {N, ⌈K/2⌉} of u8: the weight W {N, K}, as quantize_int4 packs it
  ConstView scales;      ///< {N, ⌈K/group⌉}: f32, f16 or bf16
  ConstView zeros = {};  ///< optional: as scales, u8; absent: 8 everywhere
  ConstView bias = {};   ///< optional: {N}, x's dtype or f32
};

/// y = x·Wᵀ + bias without W in memory: what runs GPTQ and AWQ checkpoints. y: {…, M, N}, x's dtype, any
/// strides, apart from all else.
///
/// Each weight is dequantize_int4's in x's dtype. The rest is gemm's: one chain over ascending K in f32, the
/// bias added, y rounded once. So every bit is that of dequantize_int4, then gemm, and a row of y depends
/// only on its row of x.
///
/// M, N, K from 0 up, any strides. Fast where K and group are multiples of 32 (or one group is a row), and
/// packed's rows are contiguous, aligned to 16. Workspace: gemm_int4_workspace(…) bytes; 0 on a CPU, for f32
/// and up to 64 rows of x. With more, a GPU dequantises W there, into N rows of 2·K bytes. Errors: as
/// quantize_int4's and gemm's, a workspace that is too small. Cost: 2·M·N·K flops; N·K/2 bytes, scales,
/// zeros, x and y; the workspace written and read once.
Status gemm_int4(const Queue& queue, const GemmInt4Inputs& inputs, View y, const Int4Options& options = {},
                 Workspace workspace = {});
Status gemm_int4_workspace(const Queue& queue, const GemmInt4Inputs& inputs, View y,
                           const Int4Options& options, std::size_t& bytes);

}  // namespace rooftile
