// Attention to codes by Hopper's f8 tensor cores: values to columns, then the kernel of
// attention_scaled.hopper.h.
#include "rooftile/ops/attention_scaled/attention_scaled.hopper.h"

#include "rooftile/core/check.h"
#include "rooftile/ops/attention/attention.hopper_maps.h"

namespace rooftile {
namespace {
using namespace attention_gpu;

constexpr int kSide = 64, kTurnThreads = 256;  ///< of a tile that a block turns

/// v {B, T, G, E} to {B, G, E, T}, its keys in the order of the weights that they meet; zeros past the last.
__global__ void __launch_bounds__(kTurnThreads)
    turn_values(const __grid_constant__ AttentionOperand v, std::uint8_t* const to, const std::int64_t keys,
                const std::int64_t row, const int heads, const int channels) {
  ROOFTILE_SHARED(tile, std::uint8_t[kSide * (kSide + 4)]);
  const std::int64_t key_tiles = (row + kSide - 1) / kSide, channel_tiles = (channels + kSide - 1) / kSide;
  const std::int64_t head = blockIdx.x / key_tiles / channel_tiles,
                     first_key = blockIdx.x % key_tiles * kSide,
                     first = blockIdx.x / key_tiles % channel_tiles * kSide;
  const auto* const from =
      static_cast<const std::uint8_t*>(v.data) + head / heads * v.stride[0] + head % heads * v.stride[2];
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kSide; i += kTurnThreads) {
    const int key = i / kSide, channel = i % kSide;
    const bool live = first_key + key < keys && first + channel < channels;
    tile[channel * (kSide + 4) + place_of_key(key)] =
        live ? from[(first_key + key) * v.stride[1] + (first + channel) * v.stride[3]] : std::uint8_t{0};
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kSide / 4; i += kTurnThreads) {
    const int channel = i / (kSide / 4), key = i % (kSide / 4) * 4;
    if (first + channel < channels && first_key + key < row)
      *reinterpret_cast<unsigned*>(to + (head * channels + first + channel) * row + first_key + key) =
          *reinterpret_cast<const unsigned*>(tile + channel * (kSide + 4) + key);
  }
}

Status launch_turn(const CudaLaunch& launch, const AttentionScaledProblem& p) {
  const AttentionProblem& a = p.attention;
  const auto tiles = [](std::int64_t n) { return (n + kSide - 1) / kSide; };
  const std::int64_t blocks = a.b * a.g * tiles(a.e) * tiles(p.turned_row());
  if (blocks > 0x7fffffff)
    return Status::error("attention_scaled: wgmma_f8 takes up to 2^31 tiles of values; these are %lld",
                         static_cast<long long>(blocks));
  return cuda::launch(launch, "attention_scaled", {static_cast<unsigned>(blocks), kTurnThreads}, turn_values,
                      a.v, p.turned, a.t, p.turned_row(), static_cast<int>(a.g), static_cast<int>(a.e));
}

Status launch_f8(const CudaLaunch& launch, const AttentionScaledProblem& problem) {
  using Shape = CodesShape;
  const AttentionProblem& p = problem.attention;
  if (p.b * p.h * p.s == 0) return {};
  const std::int64_t row_tiles = p.tiles(p.s, Shape::kQueries), tiles = p.b * p.h * row_tiles;
  if (tiles > kFar)
    return Status::error("attention_scaled: wgmma_f8 takes up to 2^30 tiles of queries; these are %lld",
                         static_cast<long long>(tiles));
  HopperRun run{};
  run.whole = HopperSequence::of(p, {0, p.s, 0, p.t});
  run.heads = static_cast<int>(p.h), run.share = static_cast<int>(p.group());
  run.row_tiles = static_cast<int>(row_tiles), run.tiles = static_cast<int>(tiles);
  run.together = static_cast<int>(hopper_heads_together(p));
  run.counter = launch.counters;
  const std::int64_t row = problem.turned_row();
  const AttentionOperand v{problem.turned, {p.g * p.e * row, row, p.e * row, 1}};
  cuda::TensorMap q_map{}, k_map{}, v_map{};
  const char* const function = "attention_scaled";
  ROOFTILE_TRY(hopper_map_of(q_map, function, p.q, p.d, p.s, p.h, p.b, Shape::kQueries, run.q, 1));
  ROOFTILE_TRY(hopper_map_of(k_map, function, p.k, p.d, p.t, p.g, p.b, Shape::kKeys, run.k, 1));
  ROOFTILE_TRY(hopper_map_of(v_map, function, v, row, p.e, p.g, p.b, Shape::kSize, run.v, 1));
  ROOFTILE_TRY(launch_turn(launch, problem));
  const unsigned blocks =
      static_cast<unsigned>(tiles < launch.multiprocessors ? tiles : launch.multiprocessors);
  return cuda::launch(launch, function, {blocks, Shape::kThreads, sizeof(CodesShared)}, attention_codes,
                      q_map, k_map, v_map, p, problem.out, run);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(attention_scaled) = {
    entry<launch_f8>("attention_scaled", "wgmma_f8", 90, true),
    {},
};

}  // namespace rooftile
