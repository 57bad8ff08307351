#pragma once
// Short rows that begin anywhere: a block copies all of its rows as they lie, word by word, between memory
// and shared memory, where its teams then find single elements.
#include "rooftile/tile/cuda/team.h"

namespace rooftile::tile {
inline namespace cuda {

/// The places of up to 8 operands, in four bits each: one after the other for those that are there.
struct Places {
  unsigned of = 0;
  int count = 0;
  constexpr void add(int operand) { of |= static_cast<unsigned>(count++) << 4 * operand; }
};

/// Where operands lie in dynamic shared memory: each in a place of `bytes`, a multiple of 16, at the same
/// offset from a 16-byte boundary as in memory.
struct Stage {
  std::byte* all;
  int bytes;
  unsigned places;

  template <class T>
  ROOFTILE_TILE T* at(int operand, const T* from) const {
    const int place = static_cast<int>(places >> 4 * operand & 15);
    return reinterpret_cast<T*>(all + place * bytes + reinterpret_cast<std::uintptr_t>(from) % 16);
  }
};

/// A run of elements as whole words of memory between elements at both ends.
struct Run {
  int head, words, tail;
  template <class T>
  ROOFTILE_TILE Run(const T* from, int elements) {
    constexpr int kEach = 16 / int(sizeof(T));
    const auto at = reinterpret_cast<std::uintptr_t>(from);
    head = static_cast<int>((-at) % 16 / sizeof(T));
    head = head < elements ? head : elements;
    words = (elements - head) / kEach;
    tail = elements - head - words * kEach;
  }
};

/// By all threads of a block, and zeros up to `room` elements; there after finish_stage().
template <class T>
ROOFTILE_TILE void stage_in(const Stage& stage, int operand, const T* from, int elements, int room) {
  const Run run(from, elements);
  T* to = stage.at(operand, from);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < run.words; i += threads)
    rooftile::cuda::cp_async_16(reinterpret_cast<uint4*>(to + run.head) + i,
                                reinterpret_cast<const uint4*>(from + run.head) + i);
  if (thread < run.head) to[thread] = from[thread];
  if (thread < run.tail) to[elements - 1 - thread] = from[elements - 1 - thread];
  for (int i = elements + thread; i < room; i += threads) to[i] = T{};
}
ROOFTILE_TILE
void finish_stage() {
  rooftile::cuda::cp_async_commit();
  rooftile::cuda::cp_async_wait<0>();
  __syncthreads();
}
/// The way back, after a barrier.
template <class T>
ROOFTILE_TILE void stage_out(const Stage& stage, int operand, T* to, int elements) {
  const Run run(to, elements);
  const T* from = stage.at<T>(operand, to);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < run.words; i += threads) {
    const uint4 word = reinterpret_cast<const uint4*>(from + run.head)[i];
    reinterpret_cast<uint4*>(to + run.head)[i] = word;
  }
  if (thread < run.head) to[thread] = from[thread];
  if (thread < run.tail) to[elements - 1 - thread] = from[elements - 1 - thread];
}

}  // namespace cuda
}  // namespace rooftile::tile
