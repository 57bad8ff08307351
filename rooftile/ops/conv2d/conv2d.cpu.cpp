// Convolution and its gradients on the CPU: implicit products (Chetlur et al., cuDNN, 2014). Tiles of the
// result are shared among threads; gemm's micro-kernel multiplies blocks that are packed straight from the
// picture, as if its matrix of windows had been written. A block goes on with the sums of the one before: for
// each element one chain over all of K, however the result is cut.
#include "rooftile/ops/conv2d/conv2d.pack.h"
#include "rooftile/ops/gemm/epilogue.h"
#include "rooftile/ops/gemm/micro_kernel.h"

namespace rooftile {
namespace {
using namespace tile;

constexpr std::int64_t kStrip = kMicroColumns<float>, kSlack = 2 * kLanes<float>;
/// A tile's sums 144 KiB, A 48, B 16 of AVX-512's micro-tiles.
constexpr std::int64_t kTileRows = 96, kTileColumns = 384;
static_assert(kTileRows * (kTileColumns + kMicroDepth) + kStrip * kMicroDepth + 2 * (kTileColumns + kSlack) <=
              std::int64_t(kScratchBytes / sizeof(float)));

std::int64_t ceil_div(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

/// The product with rows and columns as they are computed: columns go to vectors. `turned`: they are i.
struct Cut {
  bool turned;
  std::int64_t rows, columns, k, row_tiles, column_tiles, row_panels, strips;

  Cut(const ConvProduct& p, int threads) {
    const std::int64_t m = p.m(), n = p.columns();
    // What is contiguous in the result, so long as that fills vectors.
    const bool along_i =
        p.out.data && p.out.i_stride == 1 && (p.out.stride[2] != 1 || p.out.low < kStrip / 2);
    turned = n < kStrip / 2 ? m > n : along_i && m >= kStrip / 2;
    rows = turned ? n : m;
    columns = turned ? m : n;
    k = p.k();
    row_panels = ceil_div(rows, kMicroRows);
    strips = ceil_div(columns, kStrip);
    row_tiles = ceil_div(rows, kTileRows / kMicroRows * kMicroRows);
    column_tiles = ceil_div(columns, kTileColumns);
    // Some tiles for each thread, unless they would be hardly more than a micro-tile.
    const std::int64_t wanted = threads > 1 ? 4 * threads : 1;
    while (p.groups * row_tiles * column_tiles < wanted) {
      const std::int64_t high = row_panels / row_tiles, wide = strips / column_tiles;
      if (high <= 2 && wide <= 2) break;
      if (high > 2 && (high * kMicroRows >= wide * kStrip || wide <= 2))
        ++row_tiles;
      else
        ++column_tiles;
    }
  }
  std::int64_t tiles() const { return row_tiles * column_tiles; }
  std::int64_t row(std::int64_t tile) const {
    return std::min(rows, row_panels * tile / row_tiles * kMicroRows);
  }
  std::int64_t column(std::int64_t tile) const {
    return std::min(columns, strips * tile / column_tiles * kStrip);
  }
};

/// One thread's part.
template <class T>
class Convolver {
 public:
  Convolver(const ConvProblem& problem, const ConvProduct& product, const Cut& cut, std::byte* scratch)
      : problem_(problem), p_(product), cut_(cut) {
    sums_ = reinterpret_cast<float*>(scratch);
    a_ = sums_ + kTileRows * kTileColumns + kSlack;
    b_ = a_ + kTileRows * kMicroDepth;
    bias_ = b_ + kStrip * kMicroDepth;
  }

  /// Tile `index` of all groups' tiles: first down the rows.
  void run(std::int64_t index) {
    const std::int64_t tile = index % cut_.tiles(), down = tile % cut_.row_tiles,
                       across = tile / cut_.row_tiles;
    group_ = index / cut_.tiles();
    row_ = cut_.row(down), column_ = cut_.column(across);
    rows_ = cut_.row(down + 1) - row_, columns_ = cut_.column(across + 1) - column_;
    if (rows_ <= 0 || columns_ <= 0) return;
    if (cut_.k == 0)
      for (std::int64_t r = 0; r < rows_; ++r) std::fill_n(sums_ + r * kTileColumns, columns_, 0.0f);
    for (std::int64_t k = 0; k < cut_.k; k += kMicroDepth) {
      const std::int64_t depth = std::min<std::int64_t>(kMicroDepth, cut_.k - k);
      pack(cut_.turned, true, row_, rows_, k, depth, a_);
      for (std::int64_t j = 0; j < columns_; j += kStrip) {
        pack(!cut_.turned, false, column_ + j, std::min(kStrip, columns_ - j), k, depth, b_);
        const void* lines[kMicroLines];
        std::fill_n(lines, kMicroLines, static_cast<const void*>(b_));
        for (std::int64_t i = 0; i < rows_;)
          i += with_rows(rows_ - i, [&]<int kRows>() ROOFTILE_INLINE {
            multiply_tile<kRows>(a_ + i * kMicroDepth, b_, kStrip, depth, sums_ + i * kTileColumns + j,
                                 kTileColumns, k == 0, lines);
          });
      }
    }
    finish();
  }

 private:
  /// Rows or columns of `right` or left from `first` on, from k on: A's in rows of K, B's in rows of a strip.
  void pack(bool right, bool as_a, std::int64_t first, std::int64_t count, std::int64_t k, std::int64_t depth,
            float* to) {
    const Windows& v = right ? p_.right : p_.left;
    const T* data = static_cast<const T*>(v.data) + group_ * v.group;
    const std::int64_t pitch = as_a ? kMicroDepth : kStrip;
    std::int64_t live = count;
    if (right && p_.along_windows) live = std::clamp<std::int64_t>(p_.n() - first, 0, count);
    if (live > 0) {
      if (p_.along_windows == as_a)
        p_.along_windows ? pack_terms(v, data, first, live, k, depth, to, pitch)
                         : pack_terms(v, data, k, depth, first, live, to, pitch);
      else
        p_.along_windows ? pack_windows(v, data, k, depth, first, live, to, pitch)
                         : pack_windows(v, data, first, live, k, depth, to, pitch);
    }
    const auto at = [&](std::int64_t row, std::int64_t d) -> float& {
      return as_a ? to[row * pitch + d] : to[d * pitch + row];
    };
    for (std::int64_t row = live; row < count; ++row)  // the bias's gradient
      for (std::int64_t d = 0; d < depth; ++d) at(row, d) = 1;
    for (std::int64_t row = count; !as_a && row < kStrip; ++row)
      for (std::int64_t d = 0; d < depth; ++d) at(row, d) = 0;
  }

  void finish() {
    if (p_.out.dtype == DType::f32) return finish_as<float>();
    finish_as<T>();
  }
  template <class O>
  void finish_as() {
    const bool turned = cut_.turned;
    const auto bias_at = [&](std::int64_t i) {
      return number_at<float>(problem_.bias, problem_.bias_dtype,
                              group_ * problem_.bias_group + i * problem_.bias_stride);
    };
    for (std::int64_t c = 0; problem_.bias && turned && c < columns_; ++c) bias_[c] = bias_at(column_ + c);
    // The last j may be the bias's gradient.
    const std::int64_t last = p_.n();
    O* const out = static_cast<O*>(p_.out.data) + group_ * p_.out.group;
    for (std::int64_t r = 0; r < rows_; ++r) {
      float* const row = sums_ + r * kTileColumns;
      if (problem_.bias)
        scale_row<float>(row, columns_, 1, turned ? bias_ : nullptr, !turned, turned ? 0 : bias_at(row_ + r));
      if (problem_.activation != 0) activate(problem_.activation, row, columns_);
      if (turned) {
        if (row_ + r < last)
          store_row<O, false>(row, columns_, 0.0f, false, nullptr, 0,
                              out + p_.out.offset(row_ + r) + column_ * p_.out.i_stride, p_.out.i_stride);
        else
          store_ones(row, column_, columns_);
      } else {
        const std::int64_t live = std::min(columns_, last - column_);
        if (live > 0) store_runs(row, live, out + (row_ + r) * p_.out.i_stride);
        if (live < columns_) store_ones(row + std::max<std::int64_t>(live, 0), row_ + r, 1);
      }
    }
  }
  /// A row whose elements' places go by digits.
  template <class O>
  void store_runs(const float* row, std::int64_t count, O* out) {
    const ConvOutput& o = p_.out;
    const std::int64_t low = o.stride[1] == o.low * o.stride[2] ? o.low * o.middle : o.low;
    for (std::int64_t j = 0; j < count;) {
      const std::int64_t at = column_ + j, run = std::min(count - j, low - at % low);
      store_row<O, false>(row + j, run, 0.0f, false, nullptr, 0, out + o.offset(at), o.stride[2]);
      j += run;
    }
  }
  void store_ones(const float* from, std::int64_t i, std::int64_t count) {
    const std::int64_t stride = p_.ones.i_stride;
    const std::int64_t at = group_ * p_.ones.group + i * stride;
    if (p_.ones.dtype == DType::f32)
      store_row<float, false>(from, count, 0.0f, false, nullptr, 0, static_cast<float*>(p_.ones.data) + at,
                              stride);
    else
      store_row<T, false>(from, count, 0.0f, false, nullptr, 0, static_cast<T*>(p_.ones.data) + at, stride);
  }

  const ConvProblem& problem_;
  const ConvProduct& p_;
  const Cut& cut_;
  std::int64_t group_ = 0, row_ = 0, column_ = 0, rows_ = 0, columns_ = 0;
  float *sums_, *a_, *b_, *bias_;
};

void launch_tile(const CpuLaunch& launch, const ConvProblem& p) {
  for (int i = 0; i < p.count; ++i) {
    const ConvProduct& product = p.products[i];
    if (product.empty()) continue;
    const Cut cut(product, launch.threads);
    // As many bytes as take as long to move: a thread does some 8 multiplications in the time of a byte.
    const double bytes =
        double(product.groups) * double(cut.rows) * double(cut.columns) * double(cut.k + 16) / 8;
    with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
      for_programs(launch, product.groups * cut.tiles(), static_cast<std::int64_t>(std::min(bytes, 1e15)),
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     Convolver<T> convolver(p, product, cut, scratch.begin);
                     for (std::int64_t tile = begin; tile < end; ++tile) convolver.run(tile);
                   });
    });
  }
}

}  // namespace

ROOFTILE_CPU_KERNELS(conv2d) = {
    entry<launch_tile>("conv2d", "tile"),
    entry<launch_tile>("conv2d_backward", "tile"),
    {},
};

}  // namespace rooftile
