#pragma once
// What passes from validation (nf4.cpp) to the launches (nf4.cpu.cpp, nf4.cu).
#include "rooftile/core/rows.h"

namespace rooftile {

/// The tensor's elements in row-major order, in either direction.
struct Nf4Problem {
  Rows<1> rows;  ///< by row_major_of: x's, or y's
  void* data;
  std::uint8_t* packed;
  std::int64_t packed_stride;
  float* absmax;
  std::int64_t absmax_stride;
  std::int64_t first;  ///< of `data`'s elements, where `packed` begins with element 0; quantising: 0
  int block, block_log;
  DType dtype;

  constexpr std::int64_t size() const { return rows.rows * rows.columns; }
  bool contiguous() const {
    std::int64_t expected = rows.columns;
    for (int d = rows.rank - 1; d >= 0; --d) {
      if (rows.stride[0][d] != expected) return false;
      expected *= rows.extent[d];
    }
    return rows.columns <= 1 || rows.column_stride[0] == 1;
  }
};

/// The 16 levels: quantiles of a normal distribution, of which 0 is one and the outermost are ±1; and between
/// each two where the upper one begins. As bitsandbytes has them: four of these are not the midpoints of what
/// the levels are as f32, but the next number.
inline constexpr float kNf4Levels[16] = {
    -1,
    -0x1.647362p-1f,
    -0x1.0cd66p-1f,
    -0x1.94654p-2f,
    -0x1.23449ap-2f,
    -0x1.7a6a7ep-3f,
    -0x1.74f0e2p-4f,
    0,
    0x1.45f5fep-4f,
    0x1.4995c6p-3f,
    0x1.f809bap-3f,
    0x1.5a0674p-2f,
    0x1.c3497p-2f,
    0x1.200f56p-1f,
    0x1.722766p-1f,
    1,
};
inline constexpr float kNf4Thresholds[15] = {
    -0x1.b239b2p-1f, -0x1.38a4ep-1f,  -0x1.d709p-2f,  -0x1.5bd4ecp-2f, -0x1.e079d8p-3f,
    -0x1.1a7178p-3f, -0x1.74f0e2p-5f, 0x1.45f5fep-5f, 0x1.ec90c6p-4f,  0x1.a0cfcp-3f,
    0x1.2b05a8p-2f,  0x1.8ea7f2p-2f,  0x1.00da06p-1f, 0x1.491b5ep-1f,  0x1.b913b2p-1f,
};

}  // namespace rooftile
