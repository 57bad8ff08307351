#include "rooftile/core/width.h"
#include "rooftile/ops/transpose/channels.h"
#include "rooftile/ops/transpose/ladder/ladder.h"
#include "rooftile/ops/transpose/panel.h"
#include "rooftile/ops/transpose/transpose.problem.h"
#include "rooftile/tile/cpu/elements.h"

namespace rooftile {
namespace {
using namespace tile;

/// All matrices cut into tiles: first across a matrix, then down, then the next; body(x, y, height, width)
/// for each tile of a thread's share. x and y: of its first element.
template <class E, class Body>
void for_tiles(const TransposeProblem& p, std::int64_t tall, std::int64_t wide, std::int64_t begin,
               std::int64_t end, Body body) {
  const std::int64_t down = (p.down.size + tall - 1) / tall, across = (p.across.size + wide - 1) / wide;
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const std::int64_t j = tile % across * wide, i = tile / across % down * tall,
                       matrix = tile / across / down;
    body(static_cast<const E*>(p.x) + p.batch.offset(1, matrix) + i * p.down.x_stride + j * p.across.x_stride,
         static_cast<E*>(p.y) + p.batch.offset(0, matrix) + i * p.down.y_stride + j * p.across.y_stride,
         std::min(tall, p.down.size - i), std::min(wide, p.across.size - j));
  }
}
std::int64_t tiles_of(const TransposeProblem& p, std::int64_t tall, std::int64_t wide) {
  return p.batch.rows * ((p.down.size + tall - 1) / tall) * ((p.across.size + wide - 1) / wide);
}

/// Squares in vector registers.
template <class E>
void turn_panels(const CpuLaunch& launch, const TransposeProblem& p, std::int64_t bytes) {
  using Panel = TransposePanel<E>;
  const bool streaming = bytes > launch.streaming_bytes;
  for_programs(launch, tiles_of(p, Panel::kDown, Panel::kAcross), bytes,
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 Panel panel(scratch.begin, streaming);
                 for_tiles<E>(p, Panel::kDown, Panel::kAcross, begin, end,
                              [&](const E* x, E* y, std::int64_t height, std::int64_t width) {
                                panel.turn(x, p.down.x_stride, y, p.across.y_stride, height, width);
                              });
                 if (streaming) stream_fence();
               });
}

/// Any strides: element by element, in tiles small enough that their lines stay in the first cache.
template <class E>
void move_elements(const CpuLaunch& launch, const TransposeProblem& p, std::int64_t bytes) {
  constexpr std::int64_t kTall = 64, kWide = 64;
  for_programs(launch, tiles_of(p, kTall, kWide), bytes,
               [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                 for_tiles<E>(p, kTall, kWide, begin, end,
                              [&](const E* x, E* y, std::int64_t height, std::int64_t width) {
                                for (std::int64_t j = 0; j < width; ++j)
                                  for (std::int64_t i = 0; i < height; ++i)
                                    y[i * p.down.y_stride + j * p.across.y_stride] =
                                        x[i * p.down.x_stride + j * p.across.x_stride];
                              });
               });
}

/// Planes taken apart, or put together. `planes`: with those of them, apart, that are not taken.
template <class E, bool kApart>
void move_planes(const CpuLaunch& launch, const TransposeProblem& p, std::int64_t planes,
                 std::int64_t bytes) {
  const std::int64_t size = kApart ? p.down.size : p.across.size;
  const std::int64_t pitch = kApart ? p.across.y_stride : p.down.x_stride;
  const std::int64_t steps = (size + kPlaneStep<E> - 1) / kPlaneStep<E>;
  const bool streaming = bytes > launch.streaming_bytes;
  const auto move = [&]<int kPlanes, int kUsed = kPlanes>() {
    using Its = Planes<E, kPlanes, kUsed>;
    for_programs(launch, p.batch.rows * steps, bytes,
                 [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                   for (std::int64_t program = begin; program < end; ++program) {
                     const std::int64_t matrix = program / steps,
                                        first = (program - matrix * steps) * kPlaneStep<E>;
                     const E* x = static_cast<const E*>(p.x) + p.batch.offset(1, matrix) +
                                  first * (kApart ? kPlanes : 1);
                     E* y = static_cast<E*>(p.y) + p.batch.offset(0, matrix) + first * (kApart ? 1 : kPlanes);
                     const std::int64_t count = std::min(kPlaneStep<E>, size - first);
                     if (streaming)
                       Its::template stream<kApart>(x, y, pitch, count, reinterpret_cast<E*>(scratch.begin));
                     else
                       Its::template move<kApart>(x, y, pitch, count);
                   }
                   if (streaming) stream_fence();
                 });
  };
  if (kApart && p.across.size < planes) return move.template operator()<4, 3>();
  with_planes(planes, move);
}

/// Whether these are bytes of pixels one after another, in y without gaps, and of which kind.
template <class F>
bool with_channels_of(const TransposeProblem& p, F f) {
  const std::int64_t step = p.down.x_stride;
  return p.width() == 1 && p.down.y_stride == 1 && (step == 1 || step == -1) &&
         p.across.y_stride == p.down.size && with_channels(p.across.x_stride, p.down.size, step < 0, f);
}
/// Pixels whose channels change order, or are fewer.
template <class Its>
void move_pixels(const CpuLaunch& launch, const TransposeProblem& p) {
  const std::int64_t steps = (p.across.size + Its::kStep - 1) / Its::kStep, bytes = 2 * p.size(),
                     to_lowest = p.down.x_stride < 0 ? (p.down.size - 1) * p.down.x_stride : 0;
  const bool streaming = bytes > launch.streaming_bytes;
  for_programs(launch, p.batch.rows * steps, bytes,
               [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                 auto* const turned = reinterpret_cast<std::uint8_t*>(scratch.begin);
                 for (std::int64_t program = begin; program < end; ++program) {
                   const std::int64_t row = program / steps, first = (program - row * steps) * Its::kStep,
                                      count = std::min(Its::kStep, p.across.size - first);
                   const auto* x = static_cast<const std::uint8_t*>(p.x) + p.batch.offset(1, row) +
                                   first * p.across.x_stride + to_lowest;
                   auto* y =
                       static_cast<std::uint8_t*>(p.y) + p.batch.offset(0, row) + first * p.across.y_stride;
                   Its::move(x, streaming ? turned : y, count);
                   if (streaming) stream_run(turned, count * p.down.size, y);
                 }
                 if (streaming) stream_fence();
               });
}
/// With x's neighbours in ascending order: planes of bgr are those of rgb, the last one first.
template <class E>
TransposeProblem ascending(TransposeProblem p) {
  if (!p.turned() || p.across.x_stride != -1) return p;
  const std::int64_t last = p.across.size - 1;
  p.x = static_cast<const E*>(p.x) - last;
  p.y = static_cast<E*>(p.y) + last * p.across.y_stride;
  p.across.x_stride = 1;
  p.across.y_stride = -p.across.y_stride;
  return p;
}

/// Neighbours in y are neighbours in x: rows of bytes. Long ones are cut; of short ones the addresses are
/// counted on from row to row, as finding each anew takes as long as moving it.
void copy_rows(const CpuLaunch& launch, const TransposeProblem& p) {
  constexpr std::int64_t kLong = 8192, kAhead = 16;
  Rows<2> rows = p.rows;
  rows.columns *= p.width();
  for (auto& operand : rows.stride)
    for (int d = 0; d < rows.rank; ++d) operand[d] *= p.width();
  const std::int64_t bytes = 2 * rows.rows * rows.columns;
  const bool large = bytes > launch.streaming_bytes;
  const auto copy = [](std::uint8_t* to, const std::uint8_t* from, std::int64_t size) {
    std::memcpy(to, from, static_cast<std::size_t>(size));
  };
  if (rows.columns >= kLong || rows.rank == 0)
    return for_dense_parts(launch, Operands<2>{rows, {p.y, p.x}}, 1, large, [&](const Part<2>& part) {
      auto* to = reinterpret_cast<std::uint8_t*>(part.data[0]);
      const auto* from = reinterpret_cast<const std::uint8_t*>(part.data[1]);
      large ? stream_run(from, part.size, to) : copy(to, from, part.size);
    });
  bool lines = reinterpret_cast<std::uintptr_t>(p.y) % kLineBytes == 0 && rows.columns % kLineBytes == 0;
  for (int d = 0; d < rows.rank; ++d) lines = lines && rows.stride[0][d] % kLineBytes == 0;
  const std::int64_t inner = rows.extent[rows.rank - 1], x_step = rows.stride[1][rows.rank - 1],
                     y_step = rows.stride[0][rows.rank - 1];
  for_programs(launch, rows.rows, bytes, [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t count = std::min(end - begin, inner - begin % inner);
      const auto* x = static_cast<const std::uint8_t*>(p.x) + rows.offset(1, begin);
      auto* y = static_cast<std::uint8_t*>(p.y) + rows.offset(0, begin);
      begin += count;
      if (large && lines) {
        for (std::int64_t r = 0; r < count; ++r, x += x_step, y += y_step) {
          for (std::int64_t b = 0; b < rows.columns; b += kLineBytes)
            __builtin_prefetch(x + b + kAhead * x_step, 0, 2);
          stream_run(x, rows.columns, y);
        }
      } else {
        for (std::int64_t r = 0; r < count; ++r, x += x_step, y += y_step) copy(y, x, rows.columns);
      }
    }
    if (large) stream_fence();
  });
}

template <class E>
void launch_elements(const CpuLaunch& launch, const TransposeProblem& given) {
  const TransposeProblem p = ascending<E>(given);
  // Thinner matrices would turn squares that are mostly empty.
  constexpr std::int64_t kThin = 8;
  const std::int64_t bytes = 2 * p.size() * std::int64_t(sizeof(E));
  const auto few = [](std::int64_t planes) { return planes >= 2 && planes <= kMaxPlanes; };
  if (p.side_by_side() && p.down.size >= kThin && p.across.size >= kThin)
    turn_panels<E>(launch, p, bytes);
  else if (p.side_by_side() && few(p.across.size) &&
           (p.down.x_stride == p.across.size || (p.across.size == 3 && p.down.x_stride == 4)))
    move_planes<E, true>(launch, p, p.down.x_stride, bytes);
  else if (p.side_by_side() && few(p.down.size) && p.across.y_stride == p.down.size)
    move_planes<E, false>(launch, p, p.down.size, bytes);
  else
    move_elements<E>(launch, p, bytes);
}

void launch_tile(const CpuLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return;
  if (with_channels_of(p, [&]<class Its>() { move_pixels<Its>(launch, p); })) return;
  if (!p.turned() && p.down.x_stride == 1 && p.down.y_stride == 1) return copy_rows(launch, p);
  return with_width(p.width(), [&]<class T>() { return launch_elements<T>(launch, p); });
}

}  // namespace

ROOFTILE_CPU_KERNELS(transpose) = {
    entry<launch_tile>("transpose", "tile"),
    entry<launch_tile>("permute", "tile"),
    entry<ladder::launch_streaming>("transpose", "04_streaming"),
    entry<ladder::launch_vectors>("transpose", "03_vectors"),
    entry<ladder::launch_blocked>("transpose", "02_blocked"),
    entry<ladder::launch_scalar>("transpose", "01_scalar"),
    {},
};

}  // namespace rooftile
