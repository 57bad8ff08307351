#pragma once
// y = A·Bᵀ by tensor cores, in bf16 with sums in f32: A has m rows of k, B has n rows of k. Rung 9 of gemm's
// ladder, its index arithmetic written as CuTe layouts: tiles of 128 x 128 x 32, eight warps, four stages by
// cp.async, ldmatrix, mma.sync. m and n are multiples of 128, k of 32. Lesson 45 explains it.
#include <cute/tensor.hpp>

using namespace cute;

/// What is known at compile time. `Bits`: the swizzle, which permutes the 16-byte words of a row.
template <class Bits = Swizzle<2, 3, 3>>
struct Plan {
  using T = bfloat16_t;
  using Block = Shape<_128, _128, _32>;  // a block's tile: of M, N and K
  static constexpr int kStages = 4;

  // [shared]
  // Eight rows of 32 elements, swizzled: bits 3 and 4 of an index ^= bits 6 and 7. Then as often as it takes.
  using Rows = decltype(composition(Bits{}, Layout<Shape<_8, _32>, Stride<_32, _1>>{}));
  using Shared = decltype(tile_to_shape(Rows{}, Shape<_128, _32, Int<kStages>>{}));
  // [/shared]

  // [plan]
  // Global to shared: 256 threads, 64 rows of four 16-byte words at a time.
  using Copy = decltype(make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, T>{},
                                        Layout<Shape<_64, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{}));
  // The product: 2 x 4 warps. A warp takes 16 columns of a tile at a time, as ldmatrix loads them.
  using Mma = decltype(make_tiled_mma(SM80_16x8x16_F32BF16BF16F32_TN{}, Layout<Shape<_2, _4>>{},
                                      Tile<_32, _64, _16>{}));
  // Shared to registers: four matrices of 8 x 8 per ldmatrix.
  using Load = Copy_Atom<SM75_U32x4_LDSM_N, T>;
  // [/plan]

  struct Storage {
    alignas(128) T a[cosize_v<Shared>], b[cosize_v<Shared>];
  };
};

#ifdef __CUDACC__
template <class P>
__global__ void __launch_bounds__(256)
    gemm_kernel(const bfloat16_t* a, const bfloat16_t* b, bfloat16_t* y, int m, int n, int k) {
  // [tiles]
  const auto block = make_coord(blockIdx.y, blockIdx.x, _);
  const auto matrix = [](auto* data, int rows, int columns) {
    return make_tensor(make_gmem_ptr(data), make_shape(rows, columns), make_stride(columns, _1{}));
  };
  const auto a_tiles = local_tile(matrix(a, m, k), typename P::Block{}, block, Step<_1, X, _1>{});
  const auto b_tiles = local_tile(matrix(b, n, k), typename P::Block{}, block, Step<X, _1, _1>{});
  auto y_tile = local_tile(matrix(y, m, n), typename P::Block{}, block, Step<_1, _1, X>{});

  extern __shared__ char bytes[];
  auto& storage = *reinterpret_cast<typename P::Storage*>(bytes);
  auto a_shared = make_tensor(make_smem_ptr(storage.a), typename P::Shared{});  // (row, K, stage)
  auto b_shared = make_tensor(make_smem_ptr(storage.b), typename P::Shared{});
  // [/tiles]

  // [partition]
  const auto copier = typename P::Copy{}.get_slice(threadIdx.x);
  const auto a_from = copier.partition_S(a_tiles), b_from = copier.partition_S(b_tiles);
  auto a_to = copier.partition_D(a_shared), b_to = copier.partition_D(b_shared);

  const typename P::Mma mma;
  const auto mine = mma.get_slice(threadIdx.x);
  auto left = mine.partition_fragment_A(a_shared(_, _, 0));  // registers: (of an atom, down, along K)
  auto right = mine.partition_fragment_B(b_shared(_, _, 0));
  auto y_mine = mine.partition_C(y_tile);
  auto sums = mine.partition_fragment_C(y_tile);  // f32
  clear(sums);

  const auto load_a = make_tiled_copy_A(typename P::Load{}, mma);
  const auto load_b = make_tiled_copy_B(typename P::Load{}, mma);
  const auto a_rows = load_a.get_slice(threadIdx.x).partition_S(a_shared);
  const auto b_rows = load_b.get_slice(threadIdx.x).partition_S(b_shared);
  auto left_loaded = load_a.get_slice(threadIdx.x).retile_D(left);  // the registers of `left`
  auto right_loaded = load_b.get_slice(threadIdx.x).retile_D(right);
  // [/partition]

  // [loop]
  const int slices = size<2>(a_tiles);
  const auto copy_slice = [&](int slice) {
    if (slice < slices) {
      copy(typename P::Copy{}, a_from(_, _, _, slice), a_to(_, _, _, slice % P::kStages));
      copy(typename P::Copy{}, b_from(_, _, _, slice), b_to(_, _, _, slice % P::kStages));
    }
    cp_async_fence();  // closes a group, an empty one too
  };
  for (int slice = 0; slice < P::kStages - 1; ++slice) copy_slice(slice);
  for (int slice = 0; slice < slices; ++slice) {
    cp_async_wait<P::kStages - 2>();
    __syncthreads();  // this slice is here for all, and all have read the one before
    copy_slice(slice + P::kStages - 1);
    for_each(make_int_sequence<size<2>(left)>{}, [&](auto step) {  // 16 of K
      copy(load_a, a_rows(_, _, step, slice % P::kStages), left_loaded(_, _, step));
      copy(load_b, b_rows(_, _, step, slice % P::kStages), right_loaded(_, _, step));
      gemm(mma, left(_, _, step), right(_, _, step), sums);
    });
  }
  auto rounded = make_fragment_like<bfloat16_t>(sums);
  for (int i = 0; i < size(sums); ++i) rounded(i) = bfloat16_t(sums(i));
  copy(AutoVectorizingCopyWithAssumedAlignment<32>{}, rounded, y_mine);  // pairs
  // [/loop]
}
#endif
