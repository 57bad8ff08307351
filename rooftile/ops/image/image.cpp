#include "rooftile/ops/image/image.h"

#include <utility>

#include "rooftile/core/check.h"
#include "rooftile/core/op.h"
#include "rooftile/ops/image/image.problem.h"

namespace rooftile {
namespace {

constexpr const char* kGray = "rgb_to_gray";

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

}  // namespace

extern const Op rgb_to_gray_op{"rgb_to_gray", "forward", kGray, kVariants};
extern const Op* const image_ops[] = {&rgb_to_gray_op, nullptr};

Status rgb_to_gray(const Queue& queue, ConstView rgb, View gray, const GrayOptions& options) {
  ROOFTILE_TRY(check_view(kGray, {"rgb", rgb}, {DType::u8}));
  ROOFTILE_TRY(check_view(kGray, {"gray", gray}, {DType::u8}));
  ROOFTILE_TRY(check_rank(kGray, {"rgb", rgb}, 1));
  const int last = rgb.rank - 1;
  if (rgb.shape[last] != 3)
    return Status::error("%s: rgb is %s, its last dimension must be 3 (red, green, blue)", kGray,
                         describe(rgb).text);
  ConstView pixels = rgb;  // of which each element begins a pixel
  pixels.rank = last;
  bool same = gray.rank == last;
  for (int d = 0; same && d < last; ++d) same = gray.shape[d] == rgb.shape[d];
  if (!same)
    return Status::error("%s: rgb is %s, gray is %s: gray must have rgb's dimensions without the last", kGray,
                         describe(rgb).text, describe(gray).text);
  ROOFTILE_TRY(check_output(kGray, {"gray", gray}));
  ROOFTILE_TRY(check_no_overlap(kGray, {"gray", gray}, {"rgb", rgb}, false));

  GrayProblem problem{elements_of(gray, pixels),
                      static_cast<const std::uint8_t*>(rgb.data),
                      static_cast<std::uint8_t*>(gray.mutable_data()),
                      rgb.stride[last],
                      {}};
  switch (options.weights) {
    case GrayWeights::bt601:
      problem.weight[0] = 299, problem.weight[1] = 587, problem.weight[2] = 114;
      break;
    case GrayWeights::luminosity:
      problem.weight[0] = 210, problem.weight[1] = 720, problem.weight[2] = 70;
      break;
    default:
      return Status::error("%s: weights are %d, must be bt601 (0) or luminosity (1)", kGray,
                           static_cast<int>(options.weights));
  }
  if (problem.channel == -1 && problem.rows.columns > 0) {  // BGR: the same sum from the other end
    problem.rgb -= 2;
    problem.channel = 1;
    std::swap(problem.weight[0], problem.weight[2]);
  }
  return dispatch(queue, rgb_to_gray_op, &problem, options.variant);
}

}  // namespace rooftile
