#pragma once
// How row programs and lane functions run on a GPU, as data: from what a program is, to numbers. An op
// overrides one only where a measurement stands beside it (kTuning in its <op>.tuning.h). `rooftile list
// --tuning` prints the table, `rooftile why --device cuda` the row that a call follows. No CUDA in here.
#include "rooftile/tile/cuda/row_shape.h"

namespace rooftile::tile {
inline namespace cuda {

/// What the numbers follow from.
struct RowFacts {
  int inputs;            ///< row operands that a team holds, without a residual
  int vectors;           ///< over the columns
  int bytes;             ///< of an element
  bool column_sums;      ///< gradients of vectors, kept in registers over a block of rows
  bool samples = false;  ///< elements are read before the pass that adds them up
};

struct RowTuning {
  int elements;              ///< of a thread at most: with 16 to 32 the most bytes are in flight
  int max_threads;           ///< of a block that holds a row
  Clusters clusters;         ///< how longer rows are cut
  Streaming streaming = {};  ///< which rows come to shared memory while the row before is computed
  Late late = {};            ///< of those
  /// Threads of a row of up to 32, up to 64, and more 16-byte vectors' elements, if it has as many vectors.
  int min_threads[3];
  /// Blocks that a multiprocessor must be able to have, by thread scope: warp, warps, block, cluster, any; 0:
  /// as the compiler likes.
  int min_blocks[5] = {0, 0, 0, 0, 0};
  int stages = 0;  ///< vectors that teams bring to shared memory
  /// Of the shortest teams whose rows have a kernel of their own where they fill the team, as no lane of it
  /// can be empty; any: none.
  Scope full = Scope::any;

  constexpr int threads_of(std::int64_t columns) const {
    return min_threads[columns <= 32 ? 0 : columns <= 64 ? 1 : 2];
  }
};

/// What a program gets that says nothing of its own. The figures are an H200's (bench/h200*.json).
constexpr RowTuning row_tuning(const RowFacts& f) {
  if (f.column_sums) {
    // A block waits for its neighbours, and is not there before all of them are: layer_norm_backward bf16
    // 4096x16384, two blocks 129 µs, four 185. Rows that begin anywhere stream, too: bf16 16384x4095 214 µs,
    // so 141; f32 224 and 228. f32 2097152x32 with four threads 271 µs, with two 318.
    return {.elements = 16,
            .max_threads = 512,
            .clusters = {512, 512, 512, f.bytes},
            .streaming = {Scope::warp, f.inputs, 512, f.bytes == 4 ? Scope::cluster : Scope::block},
            .late = {100, 1},  // blocks of rows
            .min_threads = {4, 4, 4},
            .min_blocks = {4, 1, 1, 1, 1},
            .stages = f.vectors};
  }
  // softmax, f32 with two threads, four and eight: 524288x64 82 µs with two, 70 with four; 655360x100 157
  // with four, 141 with eight; 2097152x32 154 with two, 196 with four. bf16 524288x64: 40 with two, 49 with
  // four. Its backward f32 2097152x32: 190 µs with four, 240 with two. Blocks of clusters are short, and
  // their threads hold more: softmax bf16 4096x16384 72 µs with two blocks of 128 threads, 73 with one of
  // 512; 2048x32768 71 and, with one of 1024, 76.
  RowTuning t{.elements = f.inputs > 1 ? 16 : 32,
              .max_threads = f.vectors > 0 ? 512 : 1024,
              .clusters = {f.bytes == 2 && f.inputs == 1 ? 256 : 512, 256, 256,
                           (f.inputs > 1 ? 32 : 64) * f.bytes / 16},
              .min_threads = {2, 2, 2},
              .min_blocks = {0, 0, 0, 3, 0}};
  if (f.samples) {
    // As layer_norm's kernel by hand had it. bf16: warps as the compiler likes them 2097152x30 85 µs, with 80
    // registers 103; 65536x1024 72 and 74. A block's with 64 registers; vectors asked for right after the row
    // 8192x4096 40.4 µs, so 40.0. f32: clusters of two blocks, since with three their threads lack registers.
    if (f.bytes == 4) t.min_blocks[static_cast<int>(Scope::warp)] = 4;
    t.min_blocks[static_cast<int>(Scope::block)] = f.bytes == 2 ? 2 : 0;
    t.min_blocks[static_cast<int>(Scope::cluster)] = f.bytes == 2 ? 3 : 2;
    t.stages = f.bytes == 2 ? f.vectors : 0;
  }
  if (f.bytes == 4 && f.inputs == 1) t.min_threads[1] = 4, t.min_threads[2] = 8;
  // What the kernel for full rows is worth, where it is worth 3%: rms_norm bf16 4096x16384 17%, f32 8192x4096
  // 3%, warps 1 to 2%; layer_norm bf16 65536x1024 and 262144x256 10%. Of two inputs and softmax at most 2%.
  if (f.inputs == 1) t.full = f.samples ? Scope::warp : Scope::block;
  if (f.bytes == 4 && f.inputs > 1) t.min_threads[0] = t.min_threads[1] = t.min_threads[2] = 4;
  return t;
}

/// Of a lane function over `operands` tensors.
struct LanesTuning {
  int vectors;  ///< of 16 bytes, in flight at once: those of a thread and an operand
  int threads;  ///< of a block
};
constexpr LanesTuning lanes_tuning(int operands) {
  return {.vectors = operands > 3 ? 2 : 4, .threads = kFewThreads};
}

}  // namespace cuda
}  // namespace rooftile::tile
