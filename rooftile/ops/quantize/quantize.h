#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct QuantizeOptions {
  std::int64_t block = 128;       ///< elements of a row that share a scale; its length or more: one for a row
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list quantize_i8`
};

struct QuantizeInputs {
  ConstView x;            ///< {…, C}: f32, f16 or bf16, rank 1 to 8
  ConstView given = {};   ///< optional: as scale, the scales to use instead of computed ones
  ConstView seed = {};    ///< optional: one whole number, i64 or i32; present: rounded by chance
  ConstView offset = {};  ///< optional: another of seed's dtype; 0. Without a seed it says nothing
};

/// Quantises to 8 bits: each row in blocks of `block`, the last of any length, each with a scale of its own.
/// scale = max(absmax / largest, 2^-126), where largest is 448; a code is x · (1 / scale), rounded to the
/// nearest f8e4m3, ties to even. All in f32.
/// codes: as x, f8e4m3. scale: {…, ⌈C/block⌉} of f32. Given scales are repeated there; one is for all rows
/// through strides of 0, and products beyond the largest saturate. Any strides. No workspace.
///
/// With a seed a product between two codes becomes the one farther from 0 with the probability `rest`, its
/// distance from the other in steps, to within 2^-31: where ⌊rest · 2^31⌋ + ⌊r/2⌋ ≥ 2^31 for the element's
/// word r, dropout's of seed, offset and index: the same on every machine. What is a code, or saturates,
/// stays.
///
/// A block of zeros has scale 2^-126 and codes 0. As by PyTorch's amax, a NaN makes its block's scale NaN, an
/// infinity makes it infinite: both dequantise to NaN throughout. A product that is NaN has the code 0x7F.
/// Scales and codes are those of DeepGEMM's per_token_cast_to_fp8, which keeps amax above 1e-4. torchao and
/// TransformerEngine multiply by 448 / amax instead: one code in many may differ.
///
/// Errors: an absent view, a dtype or size other than said above, a block below 1, null or misaligned data,
/// outputs that overlap. Cost: x read, codes and scales written; of rows beyond what a GPU holds (16384
/// elements) what is longer is read twice. Source: Micikevicius et al., arXiv:2209.05433.
Status quantize_f8e4m3(const Queue& queue, const QuantizeInputs& inputs, View codes, View scale,
                       const QuantizeOptions& options = {});
/// The same to f8e5m2, whose largest is 57344.
Status quantize_f8e5m2(const Queue& queue, const QuantizeInputs& inputs, View codes, View scale,
                       const QuantizeOptions& options = {});
/// The same to i8 from -127 to 127: products rounded to integers; the code of a NaN is 0.
Status quantize_i8(const Queue& queue, const QuantizeInputs& inputs, View codes, View scale,
                   const QuantizeOptions& options = {});

struct QuantizeTensorOptions {
  const char* variant = nullptr;
};
struct QuantizeTensorInputs {
  ConstView x, seed = {}, offset = {};  ///< x of any shape; else as QuantizeInputs'
};

/// The same with one scale for a whole tensor, found in the same call: max(amax / 448, 2^-126).
/// codes: as x. scale: one f32. The bits are those of quantize_f8e4m3 on x as one row with one block. Errors:
/// as above. Cost: x is read twice, from a GPU's L2 where it fits; codes are written; three launches.
Status quantize_tensor_f8e4m3(const Queue& queue, const QuantizeTensorInputs& inputs, View codes, View scale,
                              const QuantizeTensorOptions& options = {});
/// The same to f8e5m2.
Status quantize_tensor_f8e5m2(const Queue& queue, const QuantizeTensorInputs& inputs, View codes, View scale,
                              const QuantizeTensorOptions& options = {});
/// The same to i8.
Status quantize_tensor_i8(const Queue& queue, const QuantizeTensorInputs& inputs, View codes, View scale,
                          const QuantizeTensorOptions& options = {});

/// And back: y = code · scale in f32, rounded to y's dtype.
/// codes: {…, C}, f8e4m3, f8e5m2 or i8. scale: {…, ⌈C/block⌉} of f32. y: as codes, f32, f16 or bf16. Any
/// strides. No workspace. Errors: as above. Cost: codes and scales read, y written.
Status dequantize(const Queue& queue, ConstView codes, ConstView scale, View y,
                  const QuantizeOptions& options = {});

enum class CodeType { f8e4m3, f8e5m2, i8 };

struct FakeQuantizeOptions {
  std::int64_t block = 128;  ///< as QuantizeOptions'
  CodeType format = CodeType::f8e4m3;
  const char* variant = nullptr;
};

/// Quantises and dequantises in one pass, for training with a format's errors: y is what dequantize gives of
/// quantize_<format>'s codes and scales, of which none is written.
/// x, given: as QuantizeInputs'. y: as x, may be x. Cost: x read, y written.
Status fake_quantize(const Queue& queue, ConstView x, ConstView given, View y,
                     const FakeQuantizeOptions& options = {});

struct FakeQuantizeBackwardInputs {
  ConstView x;      ///< the forward's
  ConstView given;  ///< the forward's, or absent
  ConstView dy;     ///< as x
};

/// The straight-through gradient: dx = dy where x · (1 / given) rounds to a number within ± largest, and 0
/// where it was clamped or is NaN, as PyTorch's fake_quantize functions have it. Without `given` nothing is
/// clamped: dx = dy. Scales are constants.
///
/// dx: as x, may be x or dy. Cost: x and dy read, dx written.
Status fake_quantize_backward(const Queue& queue, const FakeQuantizeBackwardInputs& inputs, View dx,
                              const FakeQuantizeOptions& options = {});

}  // namespace rooftile
