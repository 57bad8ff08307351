// What gemm.h's layouts say, shown and tried on a CPU: a block of 128 x 128 x 32 goes through the copies,
// ldmatrix and mma.sync, which are written out here as NVIDIA's PTX manual defines them. Lesson 45.
//   g++ @build/cute/flags -o build/cute/gemm_layouts examples/cute/gemm_layouts.cpp &&
//   build/cute/gemm_layouts block
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "gemm.h"

using T = bfloat16_t;

/// Which 16-byte word of 128 bytes each word of eight rows takes.
void shared() {
  // [words]
  const auto words = recast_layout<T, uint128_t>(Plan<>::Rows{});
  for (int row = 0; row < 8; ++row) {
    std::printf("row %d:", row);
    for (int word = 0; word < 4; ++word) std::printf("  %d", int(words(row, word)) % 8);
    std::printf("\n");
  }
  // [/words]
}

/// Which lane and register hold an element of 16 x 8 sums.
void fragments() {
  // [fragments]
  const MMA_Traits<SM80_16x8x16_F32BF16BF16F32_TN>::CLayout sums;  // (lane, register) -> element, by columns
  print(sums);
  std::printf("\n");
  int lane[128], reg[128];
  for (int t = 0; t < 32; ++t)
    for (int v = 0; v < 4; ++v) lane[sums(t, v)] = t, reg[sums(t, v)] = v;
  for (int row : {0, 1, 7, 8, 15}) {
    std::printf("row %2d:", row);
    for (int column = 0; column < 8; ++column)
      std::printf(" %2d.%d", lane[row + 16 * column], reg[row + 16 * column]);
    std::printf("\n");
  }
  // [/fragments]
}

template <class P>
using SharedTile = decltype(make_tensor(static_cast<T*>(nullptr), typename P::Shared{})(_, _, 0));

/// A thread's registers and its parts of the tiles, as in gemm_kernel.
template <class P>
struct Thread {
  using Mma = typename P::Mma;
  using Slice = decltype(Mma{}.get_slice(0));
  using LoadA = decltype(make_tiled_copy_A(typename P::Load{}, Mma{}).get_slice(0));
  using LoadB = decltype(make_tiled_copy_B(typename P::Load{}, Mma{}).get_slice(0));

  Slice mine;
  decltype(mine.partition_fragment_A(SharedTile<P>{})) left;
  decltype(mine.partition_fragment_B(SharedTile<P>{})) right;
  decltype(partition_fragment_C(Mma{}, Shape<_128, _128>{})) sums;
  decltype(LoadA{0}.partition_S(SharedTile<P>{})) a_rows;
  decltype(LoadB{0}.partition_S(SharedTile<P>{})) b_rows;

  Thread(int t, SharedTile<P> a, SharedTile<P> b)
      : mine(Mma{}.get_slice(t)), a_rows(LoadA{t}.partition_S(a)), b_rows(LoadB{t}.partition_S(b)) {
    clear(sums);
  }
};

/// ldmatrix of one warp: register r of lane t is word t % 4 of the row whose address lane 8r + t / 4 gives.
/// The number of wavefronts: of eight rows, how many share a 16-byte column of the banks.
template <class Row, class Register>
int load_matrices(Row row, Register reg) {
  int wavefronts = 0;
  for (int r = 0; r < 4; ++r) {
    int rows_in[8] = {}, most = 0;
    for (int i = 0; i < 8; ++i)
      most = std::max(most, ++rows_in[reinterpret_cast<std::size_t>(row(8 * r + i)) / 16 % 8]);
    wavefronts += most;
    for (int t = 0; t < 32; ++t) std::memcpy(reg(t, r), row(8 * r + t / 4) + t % 4 * 2, 4);
  }
  return wavefronts;
}

/// mma.sync of one warp: lane 4g + c has rows g and g + 8 of A and of the sums, and column g of B.
template <class Sums, class A, class B>
void multiply(Sums sums, A a, B b) {
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      for (int k = 0; k < 16; ++k)
        sums(row % 8 * 4 + column / 2)[row / 8 * 2 + column % 2] +=
            float(a(row % 8 * 4 + k % 8 / 2)[k / 8 * 4 + row / 8 * 2 + k % 2]) *
            float(b(column * 4 + k % 8 / 2)[k / 8 * 2 + k % 2]);
}

template <class P>
int block() {
  using Lane = Thread<P>;
  std::vector<T> a(128 * 32), b(128 * 32);  // small whole numbers: sums are exact
  for (int i = 0; i < 128 * 32; ++i) a[i] = T(float(i * 7 % 15 - 7)), b[i] = T(float(i * 5 % 13 - 6));
  std::vector<float> y(128 * 128);
  const auto rows = make_layout(Shape<_128, _32>{}, Stride<_32, _1>{});
  auto y_tile = make_tensor(y.data(), make_layout(Shape<_128, _128>{}, Stride<_128, _1>{}));
  static typename P::Storage storage;
  const auto a_tile = make_tensor(&storage.a[0], typename P::Shared{})(_, _, 0);
  const auto b_tile = make_tensor(&storage.b[0], typename P::Shared{})(_, _, 0);

  std::vector<Lane> threads;
  for (int t = 0; t < 256; ++t) {  // cp.async
    const auto copier = typename P::Copy{}.get_slice(t);
    const auto move = [](const auto& from, auto to) {
      for (int i = 0; i < size(from); ++i) to(i) = from(i);
    };
    move(copier.partition_S(make_tensor(a.data(), rows)), copier.partition_D(a_tile));
    move(copier.partition_S(make_tensor(b.data(), rows)), copier.partition_D(b_tile));
    threads.emplace_back(t, a_tile, b_tile);
  }
  int loads = 0, wavefronts = 0;
  for (Lane* warp = threads.data(); warp != threads.data() + 256; warp += 32)
    for (int step = 0; step < size<2>(warp->left); ++step) {
      const auto load = [&](auto all_rows, auto registers) {  // this thread's parts, of each lane
        for (int i = 0; i < size<1>(all_rows(warp[0])); ++i, ++loads)
          wavefronts += load_matrices([&](int t) { return &all_rows(warp[t])(0, i, step); },
                                      [&](int t, int r) { return &registers(warp[t], t)(2 * r, i, step); });
      };
      const int first = int(warp - threads.data());
      load([](Lane& t) { return t.a_rows; },
           [&](Lane& t, int lane) { return typename Lane::LoadA{first + lane}.retile_D(t.left); });
      load([](Lane& t) { return t.b_rows; },
           [&](Lane& t, int lane) { return typename Lane::LoadB{first + lane}.retile_D(t.right); });
      for (int i = 0; i < size<1>(warp->sums); ++i)
        for (int j = 0; j < size<2>(warp->sums); ++j)
          multiply([&](int t) { return &warp[t].sums(0, i, j); },
                   [&](int t) { return &warp[t].left(0, i, step); },
                   [&](int t) { return &warp[t].right(0, j, step); });
    }
  for (Lane& t : threads) copy(t.sums, t.mine.partition_C(y_tile));

  int wrong = 0;
  for (int i = 0; i < 128; ++i)
    for (int j = 0; j < 128; ++j) {
      float sum = 0;
      for (int k = 0; k < 32; ++k) sum += float(a[i * 32 + k]) * float(b[j * 32 + k]);
      if (y[i * 128 + j] == sum) continue;
      if (wrong++ == 0) std::printf("y(%d, %d) is %g, must be %g\n", i, j, y[i * 128 + j], sum);
    }
  std::printf("%d of 16384 elements of y are right\n", 16384 - wrong);
  std::printf("%d ldmatrix, %.3g wavefronts each\n", loads, double(wavefronts) / loads);
  return wrong == 0 ? 0 : 1;
}

int main(int count, char** arguments) {
  const char* const what = count == 2 ? arguments[1] : "";
  if (!std::strcmp(what, "shared")) return shared(), 0;
  if (!std::strcmp(what, "fragments")) return fragments(), 0;
  if (!std::strcmp(what, "block")) return block<Plan<>>();
  if (!std::strcmp(what, "unswizzled")) return block<Plan<Swizzle<0, 3, 3>>>();
  std::fprintf(stderr, "gemm_layouts: give one name: shared, fragments, block or unswizzled\n");
  return 2;
}
