#include "rooftile/ops/pattern/pattern.h"

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/pattern/ladder/ladder.h"
#include "rooftile/ops/pattern/pattern.problem.h"
#include "rooftile/ops/pattern/pattern.time.h"

namespace rooftile {
namespace {

constexpr Signature kSignature{"color_pattern",
                               {{'T', {DType::f32, DType::f16, DType::bf16, DType::u8}}},
                               {output("y", 'T', "H W 4")},
                               {real("t", 0, -wave::kMaxTime, wave::kMaxTime)}};

Status any_pattern(const PatternProblem&) { return {}; }

/// The rungs write whole pixels, and their grids are of 32x8 pixels a block.
Status rung_pattern(const PatternProblem& p) {
  if (p.dtype != DType::f32 && p.dtype != DType::u8)
    return Status::error("color_pattern: the ladder's rungs write f32 and u8, y is %s", name(p.dtype));
  constexpr std::int64_t kMaxHeight = std::int64_t{65535} * 8, kMaxWidth = std::int64_t{1} << 30;
  if (p.height > kMaxHeight || p.width > kMaxWidth)
    return Status::error(
        "color_pattern: the ladder's rungs take a picture of up to %lldx%lld, y is %lldx%lld",
        static_cast<long long>(kMaxHeight), static_cast<long long>(kMaxWidth),
        static_cast<long long>(p.height), static_cast<long long>(p.width));
  return {};
}
Status double_pattern(const PatternProblem& p) {
  ROOFTILE_TRY(rung_pattern(p));
  if (p.t >= -kMaxRungTime && p.t <= kMaxRungTime) return {};
  return Status::error("color_pattern: this rung's angles are doubles, right for |t| up to %g, t is %g",
                       kMaxRungTime, p.t);
}

constexpr Variant kVariants[] = {
    {"tables", "a sine for each row, column and diagonal of a tile; a pixel is three words, or-ed",
     Role::standard, accepts<any_pattern>},
    {"02_turns", "angles are fractions of a turn, in integers; three f32 polynomials per pixel",
     Role::gpu_rung, accepts<rung_pattern>},
    {"01_one_pixel", "a thread for each pixel of a 2-D grid, three sines in double", Role::gpu_rung,
     accepts<double_pattern>},
};

Status launch(const Queue& queue, const Op& op, const Call& c) {
  const ConstView& y = c.view(0);
  PatternProblem p{.y = c.output(0),
                   .dtype = y.dtype,
                   .height = y.shape[0],
                   .width = y.shape[1],
                   .row = y.stride[0],
                   .pixel = y.stride[1],
                   .channel = y.stride[2],
                   .phase = {},
                   .t = c.options[0]};
  for (int k = 0; k < 3; ++k) p.phase[k] = wave::phase_at(p.t, wave::kRates[k]);
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op color_pattern_op{"color_pattern", "forward", "color_pattern", kVariants, kSignature, launch};
extern const Op* const pattern_ops[] = {&color_pattern_op, nullptr};

Status color_pattern(const Queue& queue, View y, const ColorPatternOptions& options) {
  const ConstView to = y;
  return call(queue, color_pattern_op, {&to}, {options.t}, options.variant);
}

}  // namespace rooftile
