#pragma once
// What the headers for kernels call: the engine's functions that stand for a GPU's instructions. All of them
// act for the thread that runs now; what they wait for, and what is undefined, is as on the hardware.

#include <cstddef>
#include <cstdint>

// Under the checks a kernel's memcpy is the checker's (checked/hooks.cpp), for compilers copy whole
// structures with it, clang a float4, too. The engine, which is not instrumented, keeps the library's.
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define ROOFTILE_INSTRUMENTED
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(ROOFTILE_INSTRUMENTED)
asm("memcpy = __tsan_memcpy");
#endif

namespace rooftile::emulated {

/// A place in a kernel's source. `here()` as a default argument is the caller's place.
struct Site {
  const char* file = nullptr;
  unsigned line = 0;
};
constexpr Site here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  return {file, line};
}

/// One declaration of a shared array; its address is the array's key within a block.
struct SharedSite {
  const char* name;
  const char* file;
  unsigned line;
  std::size_t bytes, alignment;
};

namespace device {

// The whole block, or `threads` of it at the barrier `id` (0 to 15).
struct BlockVote {
  unsigned count;  // of threads whose predicate held
  bool any, all;
};
BlockVote block_barrier(bool predicate, Site);
/// Of those who wait: whether the predicate of any who came held.
bool named_barrier(unsigned id, unsigned threads, bool wait, bool predicate, Site);
void cluster_arrive(Site);
void cluster_wait(Site);
unsigned cluster_rank();
unsigned cluster_size();

// A warp's lanes named in `mask`.
enum class WarpOperation : unsigned char {
  kSync,
  kShuffle,  // of the four kinds, since lanes must come to the same one
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kMatch,
  kAdd,
  kMin,
  kMax,
  kMinSigned,
  kMaxSigned,
  kAnd,
  kOr,
  kXor,
  kCollective  // with matrices; the value is the address of what the lane brings
};
std::uint64_t warp_operation(WarpOperation, unsigned mask, std::uint64_t value, unsigned source_lane, Site);
unsigned lane();

// Matrices in a warp's registers (rooftile/backend/cuda/matrices.h). `row`: the 16 bytes of a matrix's row
// that this lane has read, or is about to write.
void exchange_rows(std::uint32_t (&row)[4], std::uint32_t* registers, int matrices, bool transposed,
                   bool to_rows, Site);
enum class MatrixType : unsigned char { kBf16, kF16, kTf32, kI8, kE4m3, kE5m2 };
void multiply_fragments(MatrixType, float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                        Site);
void multiply_bytes(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], Site);

// Shared memory.
void* shared_array(const SharedSite&);
std::byte* dynamic_shared();
std::uint32_t shared_offset(const void*, Site);
void* map_shared_rank(const void*, unsigned rank, Site);

// Copies that are made only when they are waited for.
void async_copy(void* to, const void* from, unsigned bytes, unsigned rest);  // and `rest` zeros
void async_commit();
void async_wait(unsigned groups_left);
void mbarrier_init(std::uint64_t*, unsigned arrivals, Site);
void mbarrier_arrive(std::uint64_t*, unsigned expected_bytes, bool arrive, Site);
void mbarrier_complete(std::uint64_t*, unsigned bytes, Site);  // that were stored already
bool mbarrier_wait(std::uint64_t*, unsigned parity, Site);
void mbarrier_init_fence();
void proxy_fence();
/// By an ordinary instruction: stmatrix.
void shared_written(const void*, unsigned bytes, Site);
void bulk_copy(void* to, const void* from, unsigned bytes, std::uint64_t* barrier, Site);

void fence(bool whole_device);
/// Lets other threads run: for loops that wait for what another thread writes.
void pause();
std::uint64_t clock();
[[noreturn]] void trap(Site);
[[noreturn]] void assert_failed(const char* expression, const char* file, unsigned line);

}  // namespace device
}  // namespace rooftile::emulated
