// y = x by CuTe, for a vector and for a matrix of any size and any strides. Lesson 14 walks through it;
// copy.cu checks and times it. nvcc makes kernels of it. Any other compiler runs the same threads one after
// another, on the CPU.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cute/tensor.hpp>

using namespace cute;

// [whole]
/// A thread's part of a whole tile: all its vectors are loaded, then all are stored.
template <class Plan, class Source, class Target>
CUTE_HOST_DEVICE void copy_whole(Plan plan, int thread, Source x, Target y) {
  const auto mine = plan.get_slice(thread);
  const auto from = mine.partition_S(x);  // (elements of a vector, vectors down, vectors across)
  auto to = mine.partition_D(y);
  auto held = make_fragment_like(to);  // registers
  copy(plan, from, held);
  copy(plan, held, to);
}
// [/whole]

// [edge]
/// A thread's part of a tile that sticks out past the end: single elements, where their coordinates are
/// inside the shape.
template <class Threads, class Source, class Target, class Where, class Shape>
CUTE_HOST_DEVICE void copy_edge(Threads threads, int thread, Source x, Target y, Where coordinates,
                                Shape shape) {
  const auto from = local_partition(x, threads, thread);
  auto to = local_partition(y, threads, thread);
  const auto where = local_partition(coordinates, threads, thread);
  auto held = make_fragment_like(to);
  auto inside = make_tensor<bool>(cute::shape(where));
  for (int i = 0; i < size(where); ++i) inside(i) = elem_less(where(i), shape);
  copy_if(inside, from, held);
  copy_if(inside, held, to);
}
// [/edge]

// [tile]
/// What thread `thread` of block `block` does: the block has a tile, the thread its part of it.
template <class Source, class Target, class Tile, class Threads, class Values>
CUTE_HOST_DEVICE void copy_tile(std::int64_t block, int thread, Source x, Target y, Tile tile,
                                Threads threads, Values values) {
  using T = typename Target::value_type;
  using Vector = uint_bit_t<size(Values{}) * sizeof_bits_v<T>>;  // uint128_t: one load, one store of 16 bytes
  const auto plan = make_tiled_copy(Copy_Atom<UniversalCopy<Vector>, T>{}, threads, values);

  const auto tiles = make_layout(ceil_div(shape(x), tile), LayoutRight{});
  const auto at = tiles.get_hier_coord(block);  // which tile
  const auto coordinates = local_tile(make_identity_tensor(shape(x)), tile, at);
  const auto last = coordinates(size(coordinates) - 1);
  if (elem_less(last, shape(x)))
    copy_whole(plan, thread, local_tile(x, tile, at), local_tile(y, tile, at));
  else
    copy_edge(threads, thread, local_tile(x, tile, at), local_tile(y, tile, at), coordinates, shape(x));
}
// [/tile]

// [run]
#ifdef __CUDACC__
template <class Source, class Target, class Tile, class Threads, class Values>
__global__ void kernel(Source x, Target y, Tile tile, Threads threads, Values values) {
  copy_tile(blockIdx.x, static_cast<int>(threadIdx.x), x, y, tile, threads, values);
}
#endif

template <class Source, class Target, class Tile, class Threads, class Values>
void run(Source x, Target y, Tile tile, Threads threads, Values values) {
  const std::int64_t blocks = size(ceil_div(shape(x), tile));
  if (blocks == 0) return;  // nothing to copy
#ifdef __CUDACC__
  constexpr int kThreads = size(Threads{});
  kernel<<<static_cast<unsigned>(blocks), kThreads>>>(x, y, tile, threads, values);
#else
  for (std::int64_t block = 0; block < blocks; ++block)
    for (int thread = 0; thread < size(threads); ++thread)
      copy_tile(block, thread, x, y, tile, threads, values);
#endif
}
// [/run]

template <class T>
bool aligned(const T* x, const T* y) {
  return reinterpret_cast<std::uintptr_t>(x) % 16 == 0 && reinterpret_cast<std::uintptr_t>(y) % 16 == 0;
}

// [vector]
template <class T>
void copy_vector(const T* x, T* y, std::int64_t n, std::int64_t x_stride, std::int64_t y_stride) {
  constexpr int V = 16 / sizeof(T);    // elements of a vector
  const Shape<Int<256 * 4 * V>> tile;  // four vectors a thread
  const auto copy = [&](auto x_strides, auto y_strides, auto values) {
    run(make_tensor(make_gmem_ptr(x), make_shape(n), x_strides),
        make_tensor(make_gmem_ptr(y), make_shape(n), y_strides), tile, Layout<Int<256>>{}, values);
  };
  if (x_stride == 1 && y_stride == 1 && aligned(x, y))
    copy(make_stride(_1{}), make_stride(_1{}), Layout<Int<V>>{});  // _1: 1, known at compile time
  else
    copy(make_stride(x_stride), make_stride(y_stride), Layout<_1>{});
}
// [/vector]

// [matrix]
struct Strides {
  std::int64_t down, across;  // from a row to the next, from a column to the next
};

template <class T>
void copy_matrix(const T* x, T* y, std::int64_t rows, std::int64_t columns, Strides xs, Strides ys) {
  // Where y's columns are contiguous, copy the transposed matrices: their rows are.
  if (std::abs(ys.down) < std::abs(ys.across))
    return copy_matrix(x, y, columns, rows, Strides{xs.across, xs.down}, Strides{ys.across, ys.down});

  constexpr int V = 16 / sizeof(T);
  const Shape<_32, Int<32 * V>> tile;                                 // four vectors a thread
  const auto threads = make_layout(Shape<_8, _32>{}, LayoutRight{});  // a warp has neighbours in a row
  const auto copy = [&](auto x_strides, auto y_strides, auto values) {
    run(make_tensor(make_gmem_ptr(x), make_shape(rows, columns), x_strides),
        make_tensor(make_gmem_ptr(y), make_shape(rows, columns), y_strides), tile, threads, values);
  };
  if (xs.across == 1 && ys.across == 1 && xs.down % V == 0 && ys.down % V == 0 && aligned(x, y))
    copy(make_stride(xs.down, _1{}), make_stride(ys.down, _1{}), Layout<Shape<_1, Int<V>>>{});
  else
    copy(make_stride(xs.down, xs.across), make_stride(ys.down, ys.across), Layout<Shape<_1, _1>>{});
}
// [/matrix]
