// Judges the learner's kernel as rooftile's attention: f32, heads of up to 64 channels, causal or not.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/attention/attention.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::AttentionProblem& p) {
  using rooftile::Status;
  if (p.d > 64 || p.e != p.d || p.g != p.h)
    return Status::error("attention: the exercise takes heads of up to 64 channels, as many of k as of q");
  if (p.b == 0 || p.h == 0 || p.s == 0) return {};
  const auto size = [](std::int64_t n) { return static_cast<unsigned>(n); };
  return rooftile::cuda::launch(
      where, "attention", {{size((p.s + 63) / 64), size(p.h), size(p.b)}, {64}}, attention,
      static_cast<const float*>(p.q.data), static_cast<const float*>(p.k.data),
      static_cast<const float*>(p.v.data), static_cast<float*>(const_cast<void*>(p.y.data)),
      Sizes{static_cast<int>(p.s), static_cast<int>(p.t), static_cast<int>(p.h), static_cast<int>(p.d)},
      p.scale, p.right == 0);
}
ROOFTILE_EXERCISE_KERNEL("attention", "04_registers", launch)
