#pragma once
// Launches of the kernels in matrices.cu.
#include "rooftile/backend/emulated/engine.h"

#define G const Geometry&, const Options&
namespace rooftile::emulated::test::launch_of {
enum class Type { bf16, f16, tf32 };
/// A block of one warp for each tile: d = c + a·b. a: 16 rows of 32 bytes; b: 8 columns of 32 bytes, or, of
/// 16-bit elements, `by_rows`: 16 rows of 16 bytes; c and d: 16 rows of 8.
Status multiply(G, Type, bool by_rows, const unsigned* a, const unsigned* b, const float* c, float* d);
/// The same in bytes and their sums.
Status multiply_bytes(G, const unsigned* a, const unsigned* b, const int* c, int* d);
/// 32 rows of 16 bytes to registers, as they are or transposed; out[matrix][lane].
Status load_matrices(G, bool transposed, const unsigned* x, unsigned* out);
/// And back.
Status store_matrices(G, bool transposed, const unsigned* registers, unsigned* rows);
/// What is wrong: one lane has ended; the tile that ldmatrix reads is not waited for, or was not written in
/// part; its row is misaligned.
Status lane_missing(G, float* d);
Status lane_missing_of_bytes(G, int* d);
Status bytes_unwritten(G, const unsigned* a, int* d);
Status no_barrier(G, const unsigned* x, unsigned* out);
Status misaligned_row(G, const unsigned* x, unsigned* out);
}  // namespace rooftile::emulated::test::launch_of
#undef G
