// The backward on Hopper: of f16 and bf16, heads of 64 and 128, any masks and strides, and nothing else.
// As with mma: first delta of each query, then dk and dv, then dq, over what held delta.
#include "rooftile/ops/attention/attention.hopper_backward.h"

#include "rooftile/ops/attention/attention.hopper_maps.h"
#include "rooftile/tile/cuda/row_range.h"

namespace rooftile::attention_gpu {
namespace {
using cuda::TensorMap;

constexpr const char* kFunction = "attention_backward";

template <class Shape>
Status launch_pass(const CudaLaunch& launch, const AttentionProblem& p) {
  constexpr bool kKeys = Shape::kKeys;
  const std::int64_t rows = kKeys ? p.t : p.s, others = kKeys ? p.s : p.t;
  const std::int64_t heads = kKeys ? p.g : p.h, other_heads = kKeys ? p.h : p.g;
  const std::int64_t blocks = p.b * heads * ((rows + Shape::kRows - 1) / Shape::kRows);
  if (blocks == 0) return {};
  if (blocks > 0x7fffffff)
    return Status::error("%s: a grid has at most 2147483647 blocks, this call would take %lld", kFunction,
                         static_cast<long long>(blocks));
  // A query sees the keys from `left` before its own to `right` after it; a key meets queries the other way
  // round.
  const std::int64_t before = kKeys ? p.right : p.left, after = kKeys ? p.left : p.right;
  HopperBackwardRun run{};
  run.rows = static_cast<int>(rows), run.others = static_cast<int>(others);
  run.low = before < 0 || before > kFar ? static_cast<int>(-kFar) : within_far(others - rows - before);
  run.high = after < 0 || after > kFar ? static_cast<int>(kFar) : within_far(others - rows + after + 1);
  run.share = static_cast<int>(p.group());
  run.together = heads_together(p, kKeys);
  run.factor = p.scale * kLog2E;

  const AttentionOperand own[2] = {kKeys ? p.k : p.q, kKeys ? p.v : p.dy},
                         other[2] = {kKeys ? p.q : p.k, kKeys ? p.dy : p.v},
                         to[2] = {kKeys ? p.dk : p.dq, kKeys ? p.dv : p.dq};
  run.loads = run.stores = true;
  for (int side = 0; side < 2; ++side) {
    run.loads = run.loads && engine_moves(own[side], rows, heads, p.b, false) &&
                engine_moves(other[side], others, other_heads, p.b, false);
    run.stores = run.stores && engine_moves(to[side], rows, heads, p.b, true);
  }
  TensorMap own_map[2]{}, other_map[2]{}, to_map[2]{};
  HopperSteps unused;
  for (int side = 0; side < 2; ++side) {
    Status s;
    if (run.loads)
      s = hopper_map_of(own_map[side], kFunction, own[side], Shape::kSize, rows, heads, p.b, Shape::kRows,
                        run.own[side]);
    if (s && run.loads)
      s = hopper_map_of(other_map[side], kFunction, other[side], Shape::kSize, others, other_heads, p.b,
                        Shape::kOthers, run.other[side]);
    if (s && run.stores)
      s = hopper_map_of(to_map[side], kFunction, to[side], Shape::kSize, rows, heads, p.b, 16, unused);
    if (!s) return s;
  }
  return cuda::launch(launch, kFunction,
                      {static_cast<unsigned>(blocks), Shape::kThreads, sizeof(HopperBackwardShared<Shape>)},
                      attention_backward_hopper<Shape>, own_map[0], own_map[1], other_map[0], other_map[1],
                      to_map[0], to_map[1], p, run);
}

}  // namespace

Status launch_backward_hopper(const CudaLaunch& launch, const AttentionProblem& problem) {
  AttentionProblem p = problem;
  p.words = in_words(p.y, p.e) && in_words(p.dy, p.e);
  if (Status s = launch_delta(launch, p); !s) return s;
  return tile::with_type<f16, bf16>(p.dtype, [&]<class T>() -> Status {
    if (p.d == 64) {
      if (Status s = launch_pass<HopperBackwardShape<T, 64, 96, 3, true>>(launch, p); !s) return s;
      return launch_pass<HopperBackwardShape<T, 64, 128, 3, false>>(launch, p);
    }
    if (Status s = launch_pass<HopperBackwardShape<T, 128, 64, 3, true>>(launch, p); !s) return s;
    return launch_pass<HopperBackwardShape<T, 128, 96, 3, false>>(launch, p);
  });
}

}  // namespace rooftile::attention_gpu
