// The forward on Hopper: of f16 and bf16, any heads, masks and strides; no bias, cap and dropout.
#include "rooftile/ops/attention/attention.hopper.h"

#include "rooftile/ops/attention/attention.hopper_maps.h"
#include "rooftile/tile/cuda/row_range.h"

namespace rooftile::attention_gpu {
namespace {
using cuda::TensorMap;

template <class T, class Shape>
Status launch_shape(const CudaLaunch& launch, const AttentionProblem& p) {
  const std::int64_t row_tiles = p.tiles(p.s, Shape::kQueries), tiles = p.b * p.h * row_tiles;
  if (tiles > kFar)
    return Status::error("attention: wgmma takes up to 2^30 tiles of queries; these are %lld",
                         static_cast<long long>(tiles));
  HopperRun run{};
  run.whole = HopperSequence::of(p, {0, p.s, 0, p.t});
  run.heads = static_cast<int>(p.h), run.share = static_cast<int>(p.group());
  run.row_tiles = static_cast<int>(row_tiles), run.tiles = static_cast<int>(tiles);
  run.together = static_cast<int>(hopper_heads_together(p));
  run.loads = engine_moves(p.q, p.s, p.h, p.b, false) && engine_moves(p.k, p.t, p.g, p.b, false) &&
              engine_moves(p.v, p.t, p.g, p.b, false);
  // It stores words of 4 bytes (H200): of an odd row the next element, too.
  run.stores = p.e % 2 == 0 && engine_moves(p.y, p.s, p.h, p.b, true);

  TensorMap q{}, k{}, v{}, y{};
  HopperSteps unused;
  Status s;
  if (run.loads) {
    s = hopper_map_of(q, "attention", p.q, p.d, p.s, p.h, p.b, Shape::kQueries, run.q);
    if (s) s = hopper_map_of(k, "attention", p.k, p.d, p.t, p.g, p.b, Shape::kKeys, run.k);
    if (s) s = hopper_map_of(v, "attention", p.v, p.e, p.t, p.g, p.b, Shape::kKeys, run.v);
  }
  if (s && run.stores) s = hopper_map_of(y, "attention", p.y, p.e, p.s, p.h, p.b, 16, unused);
  if (!s) return s;
  const unsigned blocks =
      static_cast<unsigned>(tiles < launch.multiprocessors ? tiles : launch.multiprocessors);
  run.counter = run.loads && !p.cu_q ? launch.counters : nullptr;  // it is drawn by one thread
  return cuda::launch(launch, "attention", {blocks, Shape::kThreads, sizeof(HopperShared<T, Shape>)},
                      p.cu_q ? attention_hopper<T, Shape, true> : attention_hopper<T, Shape, false>, q, k, v,
                      y, p, run);
}

}  // namespace

Status launch_hopper(const CudaLaunch& launch, const AttentionProblem& p) {
  if (p.b * p.h * p.s == 0) return {};
  return tile::with_type<f16, bf16>(p.dtype, [&]<class T>() {
    return with_size(
        p, [&]<int kSize>() { return launch_shape<T, HopperShape<kSize, kSize == 64 ? 3 : 2>>(launch, p); });
  });
}

}  // namespace rooftile::attention_gpu
