#include "rooftile/ops/image/image.h"

#include <algorithm>
#include <utility>

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/image/image.problem.h"

namespace rooftile {
namespace {

constexpr const char* kGray = "rgb_to_gray";
constexpr Signature kSignature{kGray,
                               {{'T', {DType::u8}}},
                               {input("rgb", 'T', "... 3"), output("gray", 'T', "...")},
                               {choice("weights", "bt601 luminosity")}};

Status any_picture(const GrayProblem&) { return {}; }
Status packed_picture(const GrayProblem& p) {
  if (p.packed()) return {};
  return Status::error(
      "%s: the ladder's rungs take packed pixels, these are %lld bytes apart, their channels %lld, the gray "
      "ones %lld",
      kGray, static_cast<long long>(p.rows.column_stride[1]), static_cast<long long>(p.channel),
      static_cast<long long>(p.rows.column_stride[0]));
}

/// And of those, rows that begin at a multiple of `bytes` bytes.
template <int kBytes>
Status words_picture(const GrayProblem& p) {
  ROOFTILE_TRY(packed_picture(p));
  if (p.rows.rows == 0 || p.rows.columns == 0) return {};
  bool whole = reinterpret_cast<std::uintptr_t>(p.rgb) % kBytes == 0 &&
               reinterpret_cast<std::uintptr_t>(p.gray) % kBytes == 0;
  for (int d = 0; d < p.rows.rank; ++d)
    whole = whole && p.rows.stride[0][d] % kBytes == 0 && p.rows.stride[1][d] % kBytes == 0;
  if (whole) return {};
  return Status::error(
      "%s: this rung takes rows that begin at multiples of %d bytes, those of rgb (from %p on) or of gray "
      "(from %p on) do "
      "not",
      kGray, kBytes, static_cast<const void*>(p.rgb), static_cast<const void*>(p.gray));
}

constexpr Variant kVariants[] = {
    {"tile", "every stride: the block language's kernel", Role::standard, accepts<any_picture>},
    {"05_streaming", "prefetch 8 KB ahead, stores past the caches", Role::rung, accepts<packed_picture>},
    {"04_pairs", "two products and their sum in one operation on 16-bit pairs", Role::rung,
     accepts<packed_picture>},
    {"03_vectors", "64 pixels at a time, each channel a vector of 32-bit integers", Role::rung,
     accepts<packed_picture>},
    {"02_integers", "integers; the division becomes a multiplication and a shift", Role::rung,
     accepts<packed_picture>},
    {"01_scalar", "one pixel at a time, in floats, as the equation reads", Role::rung,
     accepts<packed_picture>},
    {"05_sixteen_pixels", "words of 16 bytes through shared memory", Role::gpu_rung,
     accepts<words_picture<16>>},
    {"04_shared_memory", "lanes read neighbours; shared memory takes the triples apart", Role::gpu_rung,
     accepts<words_picture<4>>},
    {"03_words", "three words are four pixels", Role::gpu_rung, accepts<words_picture<4>>},
    {"02_fixed_point", "integers, and no division", Role::gpu_rung, accepts<packed_picture>},
    {"01_one_pixel", "a thread for each pixel, in floats, as the equation reads", Role::gpu_rung,
     accepts<packed_picture>},
};

Status launch(const Queue& queue, const Op& op, const Call& c) {
  // Of the thousandths of BT.601 and of GIMP's luminosity.
  constexpr int kWeights[2][3] = {{299, 587, 114}, {210, 720, 70}};
  const ConstView &rgb = c.view(0), &gray = c.view(1);
  ConstView pixels = rgb;  // of which each element begins a pixel
  --pixels.rank;
  GrayProblem problem{elements_of(gray, pixels),
                      static_cast<const std::uint8_t*>(rgb.data),
                      static_cast<std::uint8_t*>(c.output(1)),
                      rgb.stride[pixels.rank],
                      {}};
  std::copy_n(kWeights[static_cast<int>(c.options[0])], 3, problem.weight);
  if (problem.channel == -1 && problem.rows.columns > 0) {  // BGR: the same sum from the other end
    problem.rgb -= 2;
    problem.channel = 1;
    std::swap(problem.weight[0], problem.weight[2]);
  }
  return dispatch(queue, op, &problem, c.variant);
}

}  // namespace

extern const Op rgb_to_gray_op{"rgb_to_gray", "forward", kGray, kVariants, kSignature, launch};
extern const Op* const image_ops[] = {&rgb_to_gray_op, nullptr};

Status rgb_to_gray(const Queue& queue, ConstView rgb, View gray, const GrayOptions& options) {
  return call(queue, rgb_to_gray_op, {&rgb, &gray}, {double(static_cast<int>(options.weights))},
              options.variant);
}

}  // namespace rooftile
