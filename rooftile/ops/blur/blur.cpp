#include "rooftile/ops/blur/blur.h"

#include "rooftile/backend/cpu/fp_mode.h"
#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/blur/blur.problem.h"
#include "rooftile/ops/blur/ladder/ladder.h"

namespace rooftile {
namespace {

constexpr std::int64_t kMaxRadius = 2047;
constexpr Signature::Option kBorder = choice("border", "replicate reflect_101 zero");

constexpr Signature kBox{"box_blur",
                         {{'T', {DType::u8}}},
                         {input("x", 'T', "... H W C"), output("y", 'T', "... H W C")},
                         {whole("radius", 1, 0, kMaxRadius), kBorder}};

constexpr Signature kGaussian{"gaussian_blur",
                              {{'T', {DType::u8}}},
                              {input("x", 'T', "... H W C"), output("y", 'T', "... H W C")},
                              {real("sigma", 1, 0.25, kMaxSigma), kBorder}};

Status any_box(const BoxProblem&) { return {}; }
Status any_gaussian(const GaussianProblem&) { return {}; }

constexpr Variant kGaussianVariants[] = {
    {"separable", "down the columns, then along the rows, two taps to a multiplication", Role::standard,
     accepts<any_gaussian>},
};

Status rung_box(const BoxProblem& problem) {
  const Pictures& p = problem.pictures;
  if (p.channels != 1 || !p.dense_x() || !p.dense_y())
    return Status::error(
        "box_blur: the ladder's rungs take pictures of one channel, side by side, these have %s",
        p.channels != 1 ? "more channels" : "gaps");
  if (p.border != BlurBorder::replicate)
    return Status::error("box_blur: the ladder's rungs replicate the border, border is another");
  if (problem.radius > ladder::kMaxRungRadius)
    return Status::error("box_blur: the ladder's rungs take a radius of up to %lld, it is %lld",
                         static_cast<long long>(ladder::kMaxRungRadius),
                         static_cast<long long>(problem.radius));
  constexpr std::int64_t kMaxHeight = std::int64_t{65535} * 32, kMaxWidth = std::int64_t{1} << 30;
  if (p.height > kMaxHeight || p.width > kMaxWidth)
    return Status::error("box_blur: the ladder's rungs take pictures of up to %lldx%lld, these are %lldx%lld",
                         static_cast<long long>(kMaxHeight), static_cast<long long>(kMaxWidth),
                         static_cast<long long>(p.height), static_cast<long long>(p.width));
  return {};
}

constexpr Variant kBoxVariants[] = {
    {"running", "sums of columns run down the rows, a window's sum runs along them", Role::standard,
     accepts<any_box>},
    {"04_running_columns", "a thread runs down a column: one pixel enters, one leaves", Role::gpu_rung,
     accepts<rung_box>},
    {"03_separable", "sums along the rows, then down the columns", Role::gpu_rung, accepts<rung_box>},
    {"02_shared_halo", "a tile and its halo in shared memory", Role::gpu_rung, accepts<rung_box>},
    {"01_naive", "a thread for each pixel, (2r + 1)² loads in it", Role::gpu_rung, accepts<rung_box>},
};

/// 3 or 4 channels stay side by side where they are so in both; else each channel is a picture.
Pictures pictures_of(const ConstView& x, const ConstView& y, void* to, BlurBorder border) {
  const int c = y.rank - 1, w = c - 1, h = c - 2;
  const std::int64_t channels = y.shape[c];
  const auto side_by_side = [&](const ConstView& v) {
    return v.stride[c] == 1 && (v.shape[w] <= 1 || v.stride[w] == channels);
  };
  const bool together = (channels == 3 || channels == 4) && side_by_side(x) && side_by_side(y);
  ConstView of_x = x, of_y = y;  // an element for each picture
  for (ConstView* v : {&of_x, &of_y}) {
    v->rank = h;
    if (together) continue;
    v->shape[h] = v->shape[c];
    v->stride[h] = v->stride[c];
    ++v->rank;
  }
  Pictures p{.x = static_cast<const std::uint8_t*>(x.data),
             .y = static_cast<std::uint8_t*>(to),
             .batch = elements_of(of_y, of_x),
             .count = 0,
             .height = y.shape[h],
             .width = y.shape[w],
             .channels = together ? static_cast<int>(channels) : 1,
             .x_row = x.stride[h],
             .x_pixel = x.stride[w],
             .y_row = y.stride[h],
             .y_pixel = y.stride[w],
             .border = border};
  if (y.size() > 0) p.count = p.batch.rows * p.batch.columns;
  return p;
}

Status launch_box(const Queue& queue, const Op& op, const Call& c) {
  const std::int64_t radius = c.whole(0);
  const BoxProblem p{pictures_of(c.view(0), c.view(1), c.output(1), static_cast<BlurBorder>(c.whole(1))),
                     radius, box_division(radius)};
  return dispatch(queue, op, &p, c.variant);
}

/// A call, so that none of its arithmetic leaves the guard around it.
[[gnu::noinline]] GaussianWeights weights_of(double sigma) { return gaussian_weights(sigma); }

Status launch_gaussian(const Queue& queue, const Op& op, const Call& c) {
  GaussianProblem p{pictures_of(c.view(0), c.view(1), c.output(1), static_cast<BlurBorder>(c.whole(1))), {}};
  {
    const cpu::FpMode mode;
    p.weights = weights_of(c.options[0]);
  }
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op box_blur_op{"box_blur", "forward", "box_blur", kBoxVariants, kBox, launch_box};
extern const Op gaussian_blur_op{"gaussian_blur",   "forward", "gaussian_blur",
                                 kGaussianVariants, kGaussian, launch_gaussian};
extern const Op* const blur_ops[] = {&box_blur_op, &gaussian_blur_op, nullptr};

Status box_blur(const Queue& queue, ConstView x, View y, const BoxBlurOptions& options) {
  return call(queue, box_blur_op, {&x, &y},
              {static_cast<double>(options.radius), double(static_cast<int>(options.border))},
              options.variant);
}

Status gaussian_blur(const Queue& queue, ConstView x, View y, const GaussianBlurOptions& options) {
  return call(queue, gaussian_blur_op, {&x, &y}, {options.sigma, double(static_cast<int>(options.border))},
              options.variant);
}

}  // namespace rooftile
