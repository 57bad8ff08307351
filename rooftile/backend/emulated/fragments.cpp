// What the lanes of a warp do with matrices: ldmatrix, stmatrix, mma.sync, elect.sync. Each lane brings its
// registers; the last one to come does the work of all (WarpOperation::kCollective). Shared memory is read
// and written by each lane's own code, in matrices.h, where the checked build sees it.
#include <algorithm>
#include <bit>
#include <cstring>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/device/hopper_calls.h"
#include "rooftile/backend/emulated/state.h"
#include "rooftile/backend/emulated/tensor_core.h"

namespace rooftile::emulated {
namespace {

struct Collective {
  void (*run)(Thread* lanes);
  Site where;
};
template <class T>
T& of(const Thread& lane) {
  return static_cast<T&>(*reinterpret_cast<Collective*>(lane.value));
}
void meet(Collective& mine) {
  device::warp_operation(device::WarpOperation::kCollective, ~0u, reinterpret_cast<std::uint64_t>(&mine), 0,
                         mine.where);
}

/// Matrix m's row r is lane 8m + r's; a lane holds columns 2(lane % 4) and the next of its row lane / 4.
struct RowExchange : Collective {
  std::uint32_t (*row)[4];
  std::uint32_t* registers;
  int matrices;
  bool transposed, to_rows;
};
void exchange(Thread* lanes) {
  const RowExchange first = of<RowExchange>(lanes[0]);
  for (int m = 0; m < first.matrices; ++m)
    for (int r = 0; r < 8; ++r)
      for (int c = 0; c < 8; ++c) {
        const int row = first.transposed ? c : r, column = first.transposed ? r : c;
        std::uint32_t& word = (*of<RowExchange>(lanes[m * 8 + r]).row)[c / 2];
        std::uint32_t& held = of<RowExchange>(lanes[row * 4 + column / 2]).registers[m];
        const int from = first.to_rows ? 16 * (column % 2) : 16 * (c % 2);
        const int to = first.to_rows ? 16 * (c % 2) : 16 * (column % 2);
        std::uint32_t& target = first.to_rows ? word : held;
        const std::uint32_t element = (first.to_rows ? held : word) >> from & 0xffff;
        target = (target & ~(0xffffu << to)) | element << to;
      }
}

struct Mma : Collective {
  float* d;
  const std::uint32_t *a, *b;
  device::MatrixType type;
};
/// Row g of a, column g of b and row g of d are lanes 4g to 4g + 3's, each with a word of every eight bytes.
void multiply_fragments(Thread* lanes) {
  const device::MatrixType type = of<Mma>(lanes[0]).type;
  const tensor_core::Model model = tensor_core::model(type);
  const int per_word = type == device::MatrixType::kTf32 ? 1 : 2;
  float a[16][tensor_core::kDepth] = {}, b[8][tensor_core::kDepth] = {}, d[16][8];
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < model.block; ++k) {
      const int word = k / per_word, half = k % per_word;
      const Mma& lane = of<Mma>(lanes[row % 8 * 4 + word % 4]);
      const auto element = [&](std::uint32_t bits) {
        return tensor_core::to_float(type, per_word == 2 ? bits >> 16 * half & 0xffff : bits);
      };
      a[row][k] = element(lane.a[row / 8 + 2 * (word / 4)]);
      if (row < 8) b[row][k] = element(lane.b[word / 4]);
    }
  const auto result = [&](int row, int column) -> float& {
    return of<Mma>(lanes[row % 8 * 4 + column / 2]).d[row / 8 * 2 + column % 2];
  };
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) d[row][column] = result(row, column);
  tensor_core::multiply(a, b, d, model);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) result(row, column) = d[row][column];
}
struct ByteMma : Collective {
  std::int32_t* d;
  const std::uint32_t *a, *b;
};
/// The same of signed bytes, four to a word.
void multiply_bytes(Thread* lanes) {
  std::int8_t a[16][32], b[8][32];
  std::uint32_t d[16][8];
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 32; ++k) {
      const ByteMma& lane = of<ByteMma>(lanes[row % 8 * 4 + k / 4 % 4]);
      const auto element = [k](std::uint32_t word) { return static_cast<std::int8_t>(word >> k % 4 * 8); };
      a[row][k] = element(lane.a[row / 8 + 2 * (k / 16)]);
      if (row < 8) b[row][k] = element(lane.b[k / 16]);
    }
  const auto result = [&](int row, int column) -> std::int32_t& {
    return of<ByteMma>(lanes[row % 8 * 4 + column / 2]).d[row / 8 * 2 + column % 2];
  };
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      d[row][column] = static_cast<std::uint32_t>(result(row, column));
  tensor_core::multiply(a, 16, b, 8, &d[0][0]);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      result(row, column) = static_cast<std::int32_t>(d[row][column]);
}
}  // namespace

void run_collective(Thread* lanes, unsigned members) {
  const Thread& any = lanes[std::countr_zero(members)];
  if (members != ~0u)
    fail(static_cast<int>(FindingKind::kDivergentBarrier), any.where,
         "a matrix instruction takes all 32 lanes of a warp; here only those of %08x are left (%s:%u)",
         members, any.where.file, any.where.line);
  of<Collective>(any).run(lanes);
}

namespace device {
bool elect_one(Site where) {
  Collective mine{[](Thread*) {}, where};
  meet(mine);
  return current->lane == 0;
}
void exchange_rows(std::uint32_t (&row)[4], std::uint32_t* registers, int matrices, bool transposed,
                   bool to_rows, Site where) {
  RowExchange mine{{&exchange, where}, &row, registers, matrices, transposed, to_rows};
  meet(mine);
}
void multiply_fragments(MatrixType type, float (&d)[4], const std::uint32_t (&a)[4],
                        const std::uint32_t (&b)[2], Site where) {
  Mma mine{{&emulated::multiply_fragments, where}, d, a, b, type};
  meet(mine);
}
void multiply_bytes(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                    Site where) {
  ByteMma mine{{&emulated::multiply_bytes, where}, d, a, b};
  meet(mine);
}
}  // namespace device
}  // namespace rooftile::emulated
