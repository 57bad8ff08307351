// f16 and bf16 on tensor cores. A thread gathers words of 8 elements of K into registers while the stage
// before is multiplied, then puts them into shared memory in the order that ldmatrix wants: rows of 64 bytes
// of K, whose 16-byte word w lies at w ^ (row/2 % 4), so that eight rows are in all 32 banks.
#include "rooftile/ops/conv2d/conv2d.gpu.h"

namespace rooftile::conv_gpu {
namespace {

constexpr int kDepth = 32, kRow = kDepth * 2, kStage = (kM + kN) * kRow;
constexpr int kWarpM = 32, kWarpN = 32, kPitch = kWarpN + 8;  // floats; of a warp's part of the epilogue
constexpr int kShared = 2 * kStage > 8 * 16 * kPitch * 4 ? 2 * kStage : 8 * 16 * kPitch * 4;

ROOFTILE_TILE int place_in_stage(int row, int word) { return row * kRow + (word ^ (row / 2 % 4)) * 16; }

template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    conv_mma(const __grid_constant__ GpuConv p, std::int64_t first_tile) {
  ROOFTILE_SHARED(tables, Tables<kM, kN, kDepth, 2>);
  ROOFTILE_SHARED(words, uint4[kShared / 16]);
  std::byte* const ring = reinterpret_cast<std::byte*>(&words[0]);
  const GpuTile tile = tile_at(p, first_tile + blockIdx.x);
  const int t = static_cast<int>(threadIdx.x), warp = t / 32, lane = t % 32;
  const int stages = static_cast<int>((tile.last - tile.first + kDepth - 1) / kDepth);
  const auto* rows = static_cast<const std::uint16_t*>(p.rows.data) + tile.group * p.rows.group;
  const auto* columns = static_cast<const std::uint16_t*>(p.columns.data) + tile.group * p.columns.group;
  constexpr std::uint16_t kOne = std::is_same_v<T, bf16> ? 0x3f80 : 0x3c00;

  unsigned held[3][4];
  const auto row_of_word = [&](int w) { return w == 0 ? t % kM : kM + t % kN; };
  const auto word_of_row = [&](int w) { return w == 0 ? t / kM : t / kN + 2 * (w - 1); };
  const auto fetch = [&](int stage) {
    ROOFTILE_UNROLL for (int w = 0; w < 3; ++w) {
      const Place own = tables.own[row_of_word(w)];
      const Place* const steps = &tables.steps[stage % 2][w == 0 ? 0 : 1][word_of_row(w) * 8];
      ROOFTILE_UNROLL for (int e = 0; e < 4; ++e) {
        unsigned pair[2];
        ROOFTILE_UNROLL for (int k = 0; k < 2; ++k) {
          pair[k] = w == 0 ? element(p.rows, rows, own, steps[2 * e + k], kOne)
                           : element(p.columns, columns, own, steps[2 * e + k], kOne);
        }
        held[w][e] = pair[0] | pair[1] << 16;
      }
    }
  };
  const auto put = [&](int stage) {
    ROOFTILE_UNROLL for (int w = 0; w < 3; ++w) {
      const uint4 word{held[w][0], held[w][1], held[w][2], held[w][3]};
      *reinterpret_cast<uint4*>(ring + stage % 2 * kStage + place_in_stage(row_of_word(w), word_of_row(w))) =
          word;
    }
  };

  fill_own(tables, p, tile);
  fill_steps(tables, p, tile, 0);
  __syncthreads();
  fill_steps(tables, p, tile, 1);
  fetch(0);
  put(0);
  const int warp_row = warp / 4 * kWarpM, warp_column = warp % 4 * kWarpN;
  const int a_place = place_in_stage(warp_row + lane % 16, lane / 16);
  const int b_place = place_in_stage(kM + warp_column + lane % 8 + lane / 16 * 8, lane / 8 % 2);
  float sums[2][4][4] = {};
  ROOFTILE_UNROLL_BY(1) for (int s = 0; s < stages; ++s) {
    __syncthreads();  // the stage and the next one's steps are here, and all have read the ones before
    if (s + 1 < stages) fetch(s + 1);
    const std::byte* const stage = ring + s % 2 * kStage;
    ROOFTILE_UNROLL for (int step = 0; step < kDepth / 16; ++step) {
      unsigned left[2][4], right[2][4];
      ROOFTILE_UNROLL for (int i = 0; i < 2; ++i) {
        rooftile::cuda::load_matrix(left[i], stage + (a_place ^ step * 32) + i * 16 * kRow);
        rooftile::cuda::load_matrix(right[i], stage + (b_place ^ step * 32) + i * 16 * kRow);
      }
      ROOFTILE_UNROLL for (int i = 0; i < 2; ++i) {
        ROOFTILE_UNROLL for (int j = 0; j < 4; ++j) {
          const unsigned pair[2] = {right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]};
          if constexpr (std::is_same_v<T, bf16>)
            rooftile::cuda::mma_bf16(sums[i][j], left[i], pair);
          else
            rooftile::cuda::mma_f16(sums[i][j], left[i], pair);
        }
      }
    }
    if (s + 1 < stages) put(s + 1);
    if (s + 2 < stages) fill_steps(tables, p, tile, s + 2);
  }
  __syncthreads();

  // 16 rows of a warp at a time through shared memory: from fragments to four neighbours.
  float* const part = reinterpret_cast<float*>(ring) + warp * 16 * kPitch;
  ROOFTILE_UNROLL for (int i = 0; i < 2; ++i) {
    ROOFTILE_UNROLL for (int j = 0; j < 4; ++j) {
      float* const at = part + lane / 4 * kPitch + j * 8 + lane % 4 * 2;
      const float2 upper{sums[i][j][0], sums[i][j][1]}, lower{sums[i][j][2], sums[i][j][3]};
      *reinterpret_cast<float2*>(at) = upper;
      *reinterpret_cast<float2*>(at + 8 * kPitch) = lower;
    }
    __syncwarp();
    ROOFTILE_UNROLL_BY(1) for (int e = lane; e < 16 * (kWarpN / 4); e += 32) {
      const int r = e / (kWarpN / 4), c = e % (kWarpN / 4) * 4;
      const std::int64_t row = tile.row + warp_row + i * 16 + r, column = tile.column + warp_column + c;
      const std::int64_t rest = p.n - column;
      const float4 four = *reinterpret_cast<const float4*>(part + r * kPitch + c);
      if (row < p.m && rest > 0)
        finish(p, tile, row, column, rest < 4 ? static_cast<int>(rest) : 4,
               Four{{four.x, four.y, four.z, four.w}});
    }
    __syncwarp();
  }
}

}  // namespace

Status multiply_16(const CudaLaunch& launch, const GpuConv& p, DType type) {
  return with_type<bf16, f16>(type,
                              [&]<class T>() { return launch_blocks(launch, p, p.tiles, conv_mma<T>); });
}

}  // namespace rooftile::conv_gpu
