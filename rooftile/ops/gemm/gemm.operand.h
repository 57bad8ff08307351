#pragma once
// How A and B are stored, as the GPU's launches see it. No CUDA: gemm.cpp refuses by it.
#include "rooftile/ops/gemm/gemm.problem.h"

namespace rooftile::gemm_gpu {

inline constexpr std::int64_t kMaxMapped = 0x7fffff00;
inline constexpr int kMaxMappedBatch = 2;

/// A or B, whose M or N is `mn`. Strides in elements.
struct GpuOperand {
  const std::byte* data;
  std::int64_t mn_stride, k_stride;
  bool k_first;  ///< neighbours are along K: tiles lie in shared memory as rows of K
  int piece;     ///< bytes that can be copied at once
};

/// 16, 8 or 4: the largest that divides all of a matrix's rows' addresses; else the element's size.
inline int piece_of(const Rows<4>& batch, int index, const void* data, std::int64_t near, std::int64_t far,
                    int size) {
  if (near != 1) return size;
  std::int64_t all = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data)) | far * size;
  for (int d = 0; d < batch.rank; ++d) all |= batch.stride[index][d] * size;
  for (const int piece : {16, 8, 4})
    if (piece >= size && all % piece == 0) return piece;
  return size;
}

/// Of an extent of 1 the stride means nothing: 0 spoils no alignment.
inline std::int64_t stride_of(std::int64_t extent, std::int64_t stride) { return extent <= 1 ? 0 : stride; }

/// `size`: bytes of an element.
inline GpuOperand operand_of(const GemmProblem& p, int index, const void* data, std::int64_t mn,
                             std::int64_t mn_stride, std::int64_t k_stride, int size) {
  GpuOperand o{};
  o.data = static_cast<const std::byte*>(data);
  o.mn_stride = stride_of(mn, mn_stride);
  o.k_stride = stride_of(p.k, k_stride);
  const bool mn_first = mn_stride == 1 && (mn > 1 || p.k <= 1) && !(k_stride == 1 && p.k > mn);
  o.k_first = !mn_first;
  o.piece = mn_first ? piece_of(p.batch, index, data, mn_stride, o.k_stride, size)
                     : piece_of(p.batch, index, data, p.k <= 1 ? 1 : k_stride, o.mn_stride, size);
  return o;
}
inline GpuOperand a_of(const GemmProblem& p, int size) {
  return operand_of(p, 1, p.a, p.m, p.a_row, p.a_column, size);
}
inline GpuOperand b_of(const GemmProblem& p, int size) {
  return operand_of(p, 2, p.b, p.n, p.b_column, p.b_row, size);
}

/// Whether Hopper's copy engine brings it by 16-byte vectors: what a tensor map can tell of it.
inline bool is_boxed(const GemmProblem& p, int index, const GpuOperand& o, std::int64_t mn, int size) {
  const std::int64_t most = (std::int64_t{1} << 40) / size;
  const std::int64_t stride = o.k_first ? o.mn_stride : o.k_stride, extent = o.k_first ? mn : p.k;
  bool fits = o.piece == 16 && stride < most && stride >= (extent > 1 ? 1 : 0);
  for (int d = 0; d < p.batch.rank; ++d) {
    const std::int64_t of_batch = p.batch.stride[index][d];
    fits = fits && of_batch >= 0 && of_batch < most;
  }
  return fits;
}
/// Whether its coordinates are of 32 bits, the batch's at most two.
inline bool is_mapped(const GemmProblem& p) {
  return p.k >= 1 && p.k <= kMaxMapped && p.m <= kMaxMapped && p.n <= kMaxMapped &&
         p.batch.rank <= kMaxMappedBatch && p.batch.rows <= kMaxMapped;
}

}  // namespace rooftile::gemm_gpu
