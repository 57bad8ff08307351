#include "rooftile/core/op.h"
#include "rooftile/ops/image/image.problem.h"
#include "rooftile/ops/image/image.tile.h"
#include "rooftile/ops/image/ladder/ladder.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// A program's share of a row: 32 KiB moved, so that a second thread is worth its start.
constexpr std::int64_t kBlock = 8192;
/// From a pixel that is read to one that is asked for. 8 KB: one core then reads as fast as it can (Zen 5: 3
/// KB 0.76 of a copy's speed, 6 KB 0.84, 8 to 16 KB 0.89).
constexpr std::int64_t kAheadBytes = 8192;

void launch_tile(const CpuLaunch& launch, const GrayProblem& p) {
  const std::int64_t columns = p.rows.columns, bytes = 4 * p.rows.rows * columns;
  const bool dense = columns <= 1 || p.rows.column_stride[0] == 1;
  with_access(dense, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    // Blocks end where whole lines of gray do, so that streaming stores find them; the first of a row may be
    // short.
    const std::int64_t blocks = (columns + 63 + kBlock - 1) / kBlock;
    for_programs(
        launch, p.rows.rows * blocks, bytes, [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
          for (std::int64_t program = begin; program < end; ++program) {
            const std::int64_t row = program / blocks, block = program % blocks;
            std::uint8_t* gray = p.gray + p.rows.offset(0, row);
            const std::uint8_t* rgb = p.rgb + p.rows.offset(1, row);
            const std::int64_t behind =
                dense ? static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(gray) % 64) : 0;
            const std::int64_t stop = std::min(columns, (block + 1) * kBlock - behind);
            std::int64_t at = std::max<std::int64_t>(0, block * kBlock - behind);
            while (at < stop) {
              const bool head = at == 0 && behind > 0 && kAccess == Access::streaming;
              const std::int64_t size = head ? std::min(stop, 64 - behind) : stop - at;
              const std::int64_t pixel = p.rows.column_stride[1];
              const std::int64_t ahead = p.channel == 1 && pixel > 0 ? kAheadBytes / pixel : 0;
              kernels::rgb_to_gray(
                  CpuTeam<float, kAccess>(nullptr), Pixels{rgb + at * pixel, size, pixel, p.channel, ahead},
                  Row<std::uint8_t>{gray + at * p.rows.column_stride[0], size, p.rows.column_stride[0]},
                  p.weight[0], p.weight[1], p.weight[2]);
              at += size;
            }
          }
          if (kAccess == Access::streaming) stream_fence();
        });
  });
}

}  // namespace

ROOFTILE_CPU_KERNELS(image) = {
    entry<launch_tile>("rgb_to_gray", "tile"),
    entry<ladder::launch_streaming>("rgb_to_gray", "05_streaming"),
    entry<ladder::launch_pairs>("rgb_to_gray", "04_pairs"),
    entry<ladder::launch_vectors>("rgb_to_gray", "03_vectors"),
    entry<ladder::launch_integers>("rgb_to_gray", "02_integers"),
    entry<ladder::launch_scalar>("rgb_to_gray", "01_scalar"),
    {},
};

}  // namespace rooftile
