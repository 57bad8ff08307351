#pragma once
// Launches of the kernels in hopper.cu.
#include <cstdint>

#include "rooftile/backend/cuda/tensor_map.h"
#include "rooftile/backend/emulated/engine.h"

namespace rooftile::emulated::test {
/// What is wrong with the pipeline of a product.
enum class Bug : int {
  kNone,
  kNoFullWait,
  kConsumersParity,
  kProducersParity,
  kNoEmptyWait,
  kReleasedBeforeWait,
  kOneGroupTooMany,
  kExpectsABoxLess,
  kExpects16Less,
  kExpects16More,
  kNoProxyFence,
  kSwizzle,
  kStride,
  kNoCommit,
  kNoLastWait,
  kNoWgmmaFence,
  kToFirstBlock,
  kToOwnBlock,
  kBeyondCluster,
  kOneSliceTooFar,
  kStoresLeft,
  kBufferUsedAgain,
  kNoClusterBarrierAtEnd,
  kNoClusterBarrierAtStart,
  kNoInitFence,
  kTooManyRegisters,
  kRegistersNotGiven,
  kSumChanged,
  kEmptyCountsOneLess,
  kEachThreadReleases,
  kOperandOverwritten  // by an ordinary store: only the checks see it
};
namespace launch_of {
#define G const Geometry&, const Options&
/// C (256 rows at most, by N) = A·Bᵀ: two blocks of a cluster below each other share B; a cluster for each
/// 128 columns. bf16; maps with boxes of 64 by 128 of A, by 64 of B, by 16 of C, swizzled by 128 bytes.
Status product(G, const cuda::TensorMap& a, const cuda::TensorMap& b, const cuda::TensorMap& c, int columns,
               int k, Bug);
/// One wgmma: A of 64 by 32 bytes of k and B of N by as many, or of 16 bits their transposes, brought by
/// loads of boxes with the swizzle. `out`: of i8 integers. Types differ where they are f8.
enum class Element { kBf16, kF16, kTf32, kI8, kE4m3, kE5m2 };
struct Operand {
  bool mn_major;
  int extent, first_k;  // k begins there, bytes; only K-major
};
Status one_wgmma(G, Element a_type, Element b_type, const cuda::TensorMap& a, const cuda::TensorMap& b,
                 cuda::Swizzle, Operand a_form, Operand b_form, void* out);
/// The same with A in registers (`words`: 64 rows of 8 words); B is N-major with a 128-byte swizzle, 64
/// columns.
Status registers_wgmma(G, const std::uint32_t* words, const cuda::TensorMap& b, bool changed, float* out);
/// A box into shared memory, and all its bytes from there.
Status copy_box(G, const cuda::TensorMap&, int rank, const int* at, unsigned bytes, std::byte* out);
/// What waits of each parity see while phases go by; and lanes that elect_one chose.
Status phases(G, unsigned* seen);
#undef G
}  // namespace launch_of
}  // namespace rooftile::emulated::test
