#include <cstring>

#include "rooftile/core/width.h"
#include "rooftile/ops/blas1/blas1.problem.h"
#include "rooftile/ops/blas1/blas1.tile.h"
#include "rooftile/ops/blas1/ladder/ladder.h"
#include "rooftile/tile/cpu/elements.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

// ---- copy

/// Dense rows of any dtype are rows of bytes.
Rows<2> byte_rows(const CopyProblem& p) {
  Rows<2> rows = p.rows;
  const std::int64_t width = bits(p.dtype) / 8;
  rows.columns *= width;
  for (auto& operand : rows.stride)
    for (int d = 0; d < rows.rank; ++d) operand[d] *= width;
  return rows;
}

/// Of an odd count of packed elements the last one, which has half a byte.
void copy_last_half(const CopyProblem& p) {
  const auto* x = static_cast<const std::uint8_t*>(p.x) + p.rows.columns / 2;
  auto* y = static_cast<std::uint8_t*>(p.y) + p.rows.columns / 2;
  if (p.rows.columns % 2 == 1) *y = static_cast<std::uint8_t>((*x & 0xf0) | (*y & 0x0f));
}

/// From here on a copy between caches is the C library's: `rep movsb` behind it claims whole lines without
/// reading what they held (Zen 5, L2: 232 GB/s, vectors 174 to 233); shorter ones it would slow down (L1: 200
/// instead of 290).
constexpr std::int64_t kLongCopy = 24 * 1024;

void round_rows(const CpuLaunch& launch, const Rows<2>& rows, const float* x, std::byte* y, DType to) {
  for_each_row(launch, rows, to, [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
    kernels::copy_rounded(team, row_of<const float>(rows, 1, x, row, end), row_of<T>(rows, 0, y, row, end));
  });
}
/// Threads share rows: a long one is cut.
void launch_rounded(const CpuLaunch& launch, const CopyProblem& p) {
  constexpr std::int64_t kLength = 1 << 14;
  Rows<2> rows = p.rows;
  const float* x = static_cast<const float*>(p.x);
  std::byte* y = static_cast<std::byte*>(p.y);
  if (rows.rank == 0 && rows.dense() && rows.columns > kLength) {
    Rows<2> cut = rows;
    cut.rank = 1;
    cut.extent[0] = cut.rows = rows.columns / kLength;
    cut.columns = cut.stride[0][0] = cut.stride[1][0] = kLength;
    round_rows(launch, cut, x, y, p.to);
    x += cut.rows * kLength;
    y += cut.rows * kLength * (bits(p.to) / 8);
    rows.columns %= kLength;
  }
  if (rows.columns > 0) round_rows(launch, rows, x, y, p.to);
}

void launch_copy(const CpuLaunch& launch, const CopyProblem& p) {
  if (p.to != p.dtype) return launch_rounded(launch, p);
  if (!p.rows.dense()) {
    const auto elements = [&]<class T>() {
      for_staged_parts<T>(launch, Operands<2>{p.rows, {p.y, p.x}}, [](const Part<2>& part) {
        std::memcpy(part.data[0], part.data[1], static_cast<std::size_t>(part.size) * sizeof(T));
      });
    };
    return with_width(bits(p.dtype) / 8, elements);
  }
  Rows<2> rows = p.rows;
  if (p.dtype == DType::u4) {
    copy_last_half(p);
    rows.columns /= 2;
  } else {
    rows = byte_rows(p);
  }
  const bool streaming = 2 * rows.rows * rows.columns > launch.streaming_bytes;
  with_dense_access(streaming, [&]<Access kAccess>() {
    for_dense_parts(launch, Operands<2>{rows, {p.y, p.x}}, 1, streaming, [&](const Part<2>& part) {
      if (kAccess == Access::cached && part.size >= kLongCopy) {
        if (part.data[0] != part.data[1])
          std::memcpy(part.data[0], part.data[1], static_cast<std::size_t>(part.size));
        return;
      }
      const CpuTeam<float, kAccess> team(nullptr);
      const std::int64_t words = part.size / 4, rest = part.size % 4;
      const Part<2> whole{words, 0, {part.data[0], part.data[1]}};
      const Part<2> end{rest, 0, {part.data[0] + words * 4, part.data[1] + words * 4}};
      if (words > 0) kernels::copy_words(team, whole.row<const float>(1), whole.row<float>(0));
      if (rest > 0) kernels::copy_bytes(team, end.row<const std::uint8_t>(1), end.row<std::uint8_t>(0));
    });
  });
}

// ---- add

void launch_add(const CpuLaunch& launch, const AddProblem& p) {
  const Operands<3> operands{p.rows, {p.z, p.x, p.y}};
  for_elements<double, float, f16, bf16>(
      launch, operands, p.dtype, [&]<class T>(auto team, const Part<3>& part) ROOFTILE_INLINE {
        kernels::add(team, part.row<const T>(1), part.row<const T>(2), part.row<T>(0));
      });
}

}  // namespace

// What blas1.kernels.cpp has not.
ROOFTILE_CPU_KERNELS(blas1_rest) = {
    entry<launch_copy>("copy", "tile"),
    entry<launch_add>("add", "tile"),
    entry<ladder::launch_add_streaming>("add", "03_streaming"),
    entry<ladder::launch_add_vectors>("add", "02_vectors"),
    entry<ladder::launch_add_scalar>("add", "01_scalar"),
    entry<ladder::launch_dot_compensated>("dot", "compensated"),
    entry<ladder::launch_dot_chunks>("dot", "04_chunks"),
    entry<ladder::launch_dot_accumulators>("dot", "03_accumulators"),
    entry<ladder::launch_dot_vectors>("dot", "02_vectors"),
    entry<ladder::launch_dot_scalar>("dot", "01_scalar"),
    {},
};

}  // namespace rooftile
