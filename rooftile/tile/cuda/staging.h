#pragma once
// Short rows that begin anywhere: a block copies all of its rows as they lie, word by word, between memory
// and shared memory, where its teams then find pieces of 2, 4 or 8 bytes.
#include "rooftile/tile/cuda/team.h"

namespace rooftile::tile {
inline namespace cuda {

/// The places of up to 8 operands in shared memory, in four bits each: first those with rows, then vectors.
struct SharedLayout {
  unsigned of = 0;
  int rows = 0, vectors = 0;
  int row_bytes = 0, vector_bytes = 0;  ///< of a place, multiples of 16
  std::uintptr_t begins = 0;            ///< the bits of all rows' addresses

  constexpr int operator[](int operand) const { return static_cast<int>(of >> 4 * operand & 15); }
  void set(int operand, int place) { of |= static_cast<unsigned>(place) << 4 * operand; }
  void add_vector(int operand) { set(operand, rows + vectors++); }
  std::int64_t bytes() const { return std::int64_t{row_bytes} * rows + std::int64_t{vector_bytes} * vectors; }
};

/// Where operands lie in dynamic shared memory: rows at the same offset from a 16-byte boundary as in memory,
/// vectors at a boundary.
struct Staging {
  std::byte* all;
  SharedLayout shared_layout;

  template <class T>
  ROOFTILE_TILE T* at(int operand, const T* from) const {
    const auto offset = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) % 16);
    return reinterpret_cast<T*>(all + shared_layout[operand] * shared_layout.row_bytes + offset);
  }
  ROOFTILE_TILE float* vector(int operand) const {
    const int number = shared_layout[operand] - shared_layout.rows;
    return reinterpret_cast<float*>(all + shared_layout.rows * shared_layout.row_bytes +
                                    number * shared_layout.vector_bytes);
  }
};

/// A run of elements as whole words of memory between elements at both ends.
struct Run {
  int head, words, tail;
  template <class T>
  ROOFTILE_TILE Run(const T* from, int elements) {
    constexpr int kPerWord = 16 / int(sizeof(T));
    const auto at = reinterpret_cast<std::uintptr_t>(from);
    head = static_cast<int>((-at) % 16 / sizeof(T));
    head = head < elements ? head : elements;
    words = (elements - head) / kPerWord;
    tail = elements - head - words * kPerWord;
  }
};

/// Calls f(i) for each of `count`, by all threads of a block. Rarely more than one to a thread: unrolled, the
/// loops would only fill the cache of instructions.
template <class F>
ROOFTILE_TILE void each_of_block(int count, F&& f) {
  ROOFTILE_UNROLL_BY(1) for (int i = static_cast<int>(threadIdx.x); i < count; i += kWarpsThreads) f(i);
}
/// By all threads of a block, and zeros up to `capacity` elements; there after finish_stage().
template <class T>
ROOFTILE_TILE void stage_in(const Staging& staging, int operand, const T* from, int elements, int capacity) {
  const Run run(from, elements);
  T* to = staging.at(operand, from);
  const int thread = static_cast<int>(threadIdx.x);
  each_of_block(run.words, [&](int i) {
    rooftile::cuda::cp_async_16(reinterpret_cast<uint4*>(to + run.head) + i,
                                reinterpret_cast<const uint4*>(from + run.head) + i);
  });
  if (thread < run.head) to[thread] = from[thread];
  if (thread < run.tail) to[elements - 1 - thread] = from[elements - 1 - thread];
  if (elements < capacity) each_of_block(capacity - elements, [&](int i) { to[elements + i] = T{}; });
}
/// Elements that a vector has in its place: those of a whole number of threads, of which none has more lanes.
constexpr std::int64_t vector_elements(std::int64_t elements) { return (elements + 7) / 8 * 8; }
/// The same for what every row needs: as floats, which no row has to widen, to a boundary of 16 bytes, and
/// zeros for the last thread's other lanes. `absent`: its elements where it has no data.
template <class T>
ROOFTILE_TILE void stage_vector(const Staging& staging, int operand, const T* from, float absent,
                                int elements) {
  float* to = staging.vector(operand);
  int head = 0;
  if constexpr (std::is_same_v<T, float>)
    if (from && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
      head = elements / 4 * 4;
      each_of_block(elements / 4, [&](int i) {
        rooftile::cuda::cp_async_16(reinterpret_cast<uint4*>(to) + i,
                                    reinterpret_cast<const uint4*>(from) + i);
      });
    }
  each_of_block(static_cast<int>(vector_elements(elements)) - head, [&](int i) {
    float value = absent;
    if (from) value = head + i < elements ? widen<float>(from[head + i]) : 0;
    to[head + i] = value;
  });
}
ROOFTILE_TILE
void finish_stage() {
  rooftile::cuda::cp_async_commit();
  rooftile::cuda::cp_async_wait<0>();
  __syncthreads();
}
/// The way back, after a barrier.
template <class T>
ROOFTILE_TILE void stage_out(const Staging& staging, int operand, T* to, int elements) {
  const Run run(to, elements);
  const T* from = staging.at<T>(operand, to);
  const int thread = static_cast<int>(threadIdx.x);
  each_of_block(run.words, [&](int i) {
    const uint4 word = reinterpret_cast<const uint4*>(from + run.head)[i];
    reinterpret_cast<uint4*>(to + run.head)[i] = word;
  });
  if (thread < run.head) to[thread] = from[thread];
  if (thread < run.tail) to[elements - 1 - thread] = from[elements - 1 - thread];
}

}  // namespace cuda
}  // namespace rooftile::tile
