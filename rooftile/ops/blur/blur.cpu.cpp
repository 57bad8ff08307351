#include "rooftile/core/op.h"
#include "rooftile/ops/blur/box.cpu.h"
#include "rooftile/ops/blur/gaussian.cpu.h"

namespace rooftile {
namespace {
using namespace tile;

template <bool kSmall, int kChannels>
void launch_box_of(const CpuLaunch& launch, const BoxProblem& problem) {
  const std::int64_t width = kBoxSpan / kChannels - 2 * problem.radius - 2;
  for_blur_parts(launch, problem.pictures, width, 3, [&](const ThreadScratch& scratch, const BlurPart& part) {
    BoxBlur<kSmall, kChannels>(problem, scratch.begin, part).run();
  });
}
/// The channels as a constant.
template <class F>
void with_channels(int channels, F&& f) {
  if (channels == 4) return f.template operator()<4>();
  if (channels == 3) return f.template operator()<3>();
  f.template operator()<1>();
}

void launch_running(const CpuLaunch& launch, const BoxProblem& problem) {
  with_channels(problem.pictures.channels, [&]<int kChannels>() {
    if (problem.radius <= kMaxSmallBox)
      launch_box_of<true, kChannels>(launch, problem);
    else
      launch_box_of<false, kChannels>(launch, problem);
  });
}

void launch_separable(const CpuLaunch& launch, const GaussianProblem& problem) {
  const std::int64_t width = kGaussianTile / problem.pictures.channels;
  for_blur_parts(launch, problem.pictures, width, 4 * problem.weights.radius + 2,
                 [&](const ThreadScratch& scratch, const BlurPart& part) {
                   GaussianBlur(problem, scratch.begin, part).run();
                 });
}

}  // namespace

ROOFTILE_CPU_KERNELS(blur) = {
    entry<launch_running>("box_blur", "running"),
    entry<launch_separable>("gaussian_blur", "separable"),
    {},
};

}  // namespace rooftile
