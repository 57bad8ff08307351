#include "rooftile/harness/bench/memory_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rooftile::harness {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
[[maybe_unused]] constexpr int kFillWord = kFill * 0x01010101;

inline std::size_t bytes_to_line(const char* to, std::size_t bytes) {
  return std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
}

void read_bytes(const char* from, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (; bytes >= 8; bytes -= 8, from += 8) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    sum ^= word;
  }
  for (; bytes > 0; --bytes, ++from) sum ^= static_cast<unsigned char>(*from);
  asm volatile("" ::"r"(sum));
}

// -- portable ----------------------------------------------------------------------------------------------

void copy_memcpy(void* dst, const void* src, std::size_t bytes) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

void write_memset(void* dst, const void*, std::size_t bytes) {
  if (bytes > 0) std::memset(dst, kFill, bytes);
  asm volatile("" ::"r"(dst) : "memory");
}

void read_words(void*, const void* src, std::size_t bytes) {
  auto* from = static_cast<const char*>(src);
  std::uint64_t sums[4] = {};
  for (; bytes >= 32; bytes -= 32, from += 32) {
    std::uint64_t words[4];
    std::memcpy(words, from, 32);
    for (int i = 0; i < 4; ++i) sums[i] ^= words[i];
  }
  asm volatile("" ::"r"(sums[0]), "r"(sums[1]), "r"(sums[2]), "r"(sums[3]));
  read_bytes(from, bytes);
}

#if defined(__x86_64__)

// The ends of a range, which the vector loops leave; `if` spares short loops the call.
inline void copy_bytes(char* to, const char* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
inline void write_bytes(char* to, std::size_t bytes) {
  if (bytes > 0) std::memset(to, kFill, bytes);
}

/// Copies up to the first line boundary of the destination, which aligned and streaming stores need.
inline void skip_to_line(char*& to, const char*& from, std::size_t& bytes) {
  const std::size_t head = bytes_to_line(to, bytes);
  copy_bytes(to, from, head);
  to += head;
  from += head;
  bytes -= head;
}

template <bool kStream>
inline void finish(char* to, const char* from, std::size_t bytes) {
  copy_bytes(to, from, bytes);
  if constexpr (kStream) _mm_sfence();
}

inline void touch(const char* from) {
  char ignored;
  asm volatile("movb %1, %0" : "=r"(ignored) : "m"(*from));
}

void copy_rep_movsb(void* dst, const void* src, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes)::"memory");
}

void write_rep_stosb(void* dst, const void*, std::size_t bytes) {
  asm volatile("rep stosb" : "+D"(dst), "+c"(bytes) : "a"(kFill) : "memory");
}

namespace sse2 {
#define ROOFTILE_TARGET
#define ROOFTILE_VECTOR __m128i
#define ROOFTILE_LOAD(p) _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
#define ROOFTILE_STORE(p, v) _mm_store_si128(reinterpret_cast<__m128i*>(p), v)
#define ROOFTILE_STREAM(p, v) _mm_stream_si128(reinterpret_cast<__m128i*>(p), v)
#define ROOFTILE_ZERO _mm_setzero_si128
#define ROOFTILE_FILL _mm_set1_epi32
#define ROOFTILE_XOR _mm_xor_si128
#include "rooftile/harness/bench/memory_kernels.inc"
#undef ROOFTILE_TARGET
#undef ROOFTILE_VECTOR
#undef ROOFTILE_LOAD
#undef ROOFTILE_STORE
#undef ROOFTILE_STREAM
#undef ROOFTILE_ZERO
#undef ROOFTILE_FILL
#undef ROOFTILE_XOR
}  // namespace sse2

namespace avx2 {
#define ROOFTILE_TARGET __attribute__((target("avx2")))
#define ROOFTILE_VECTOR __m256i
#define ROOFTILE_LOAD(p) _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
#define ROOFTILE_STORE(p, v) _mm256_store_si256(reinterpret_cast<__m256i*>(p), v)
#define ROOFTILE_STREAM(p, v) _mm256_stream_si256(reinterpret_cast<__m256i*>(p), v)
#define ROOFTILE_ZERO _mm256_setzero_si256
#define ROOFTILE_FILL _mm256_set1_epi32
#define ROOFTILE_XOR _mm256_xor_si256
#include "rooftile/harness/bench/memory_kernels.inc"
#undef ROOFTILE_TARGET
#undef ROOFTILE_VECTOR
#undef ROOFTILE_LOAD
#undef ROOFTILE_STORE
#undef ROOFTILE_STREAM
#undef ROOFTILE_ZERO
#undef ROOFTILE_FILL
#undef ROOFTILE_XOR
}  // namespace avx2

namespace avx512 {
#define ROOFTILE_TARGET __attribute__((target("avx512f")))
#define ROOFTILE_VECTOR __m512i
#define ROOFTILE_LOAD(p) _mm512_loadu_si512(p)
#define ROOFTILE_STORE(p, v) _mm512_store_si512(p, v)
#define ROOFTILE_STREAM(p, v) _mm512_stream_si512(reinterpret_cast<__m512i*>(p), v)
#define ROOFTILE_ZERO _mm512_setzero_si512
#define ROOFTILE_FILL _mm512_set1_epi32
#define ROOFTILE_XOR _mm512_xor_si512
#include "rooftile/harness/bench/memory_kernels.inc"
#undef ROOFTILE_TARGET
#undef ROOFTILE_VECTOR
#undef ROOFTILE_LOAD
#undef ROOFTILE_STORE
#undef ROOFTILE_STREAM
#undef ROOFTILE_ZERO
#undef ROOFTILE_FILL
#undef ROOFTILE_XOR
}  // namespace avx512

void add_x86_kernels(std::vector<MemoryKernel>& reads, std::vector<MemoryKernel>& writes,
                     std::vector<MemoryKernel>& copies) {
  const auto copy = Traffic::kCopy;
  const auto read = Traffic::kRead;
  const auto write = Traffic::kWrite;
  __builtin_cpu_init();
  copies.push_back({"rep movsb", copy, false, copy_rep_movsb});
  writes.push_back({"rep stosb", write, false, write_rep_stosb});
  // What won somewhere on the machines tried (or is one step from it), not every combination: a contest
  // times each of these at every footprint.
#define ROOFTILE_BASIC_KERNELS(isa)                                                                 \
  copies.insert(copies.end(),                                                                       \
                {                                                                                   \
                    {#isa " plain x4", copy, false, isa::copy_straight<4, false, 0>},               \
                    {#isa " plain x8", copy, false, isa::copy_straight<8, false, 0>},               \
                    {#isa " plain x4 ahead 1024", copy, false, isa::copy_straight<4, false, 1024>}, \
                    {#isa " stream x4", copy, true, isa::copy_straight<4, true, 0>},                \
                    {#isa " stream x8", copy, true, isa::copy_straight<8, true, 0>},                \
                    {#isa " stream x4 ahead 2048", copy, true, isa::copy_straight<4, true, 2048>},  \
                });                                                                                 \
  reads.insert(reads.end(), {                                                                       \
                                {#isa " x8", read, false, isa::read_all<8, 1, 0>},                  \
                                {#isa " x8 ahead 2048", read, false, isa::read_all<8, 1, 2048>},    \
                            });                                                                     \
  writes.insert(writes.end(), {                                                                     \
                                  {#isa " plain x8", write, false, isa::write_all<8, false>},       \
                                  {#isa " stream x4", write, true, isa::write_all<4, true>},        \
                              });
#define ROOFTILE_WIDE_KERNELS(isa)                                                                        \
  ROOFTILE_BASIC_KERNELS(isa)                                                                             \
  copies.insert(copies.end(),                                                                             \
                {                                                                                         \
                    {#isa " plain x4 ahead 4096", copy, false, isa::copy_straight<4, false, 4096>},       \
                    {#isa " stream x1", copy, true, isa::copy_straight<1, true, 0>},                      \
                    {#isa " stream x4 ahead 512", copy, true, isa::copy_straight<4, true, 512>},          \
                    {#isa " stream x4 ahead 4096", copy, true, isa::copy_straight<4, true, 4096>},        \
                    {#isa " stream x4 ahead 8192", copy, true, isa::copy_straight<4, true, 8192>},        \
                    {#isa " stream x4 ahead 4096 nta", copy, true, isa::copy_straight<4, true, 4096, 0>}, \
                    {#isa " stream pages 4", copy, true, isa::copy_pages<4, true, 0>},                    \
                    {#isa " stream blocks 64K", copy, true, isa::copy_blocks<65536, true>},               \
                });                                                                                       \
  reads.insert(reads.end(), {                                                                             \
                                {#isa " x4", read, false, isa::read_all<4, 1, 0>},                        \
                                {#isa " x16", read, false, isa::read_all<16, 1, 0>},                      \
                                {#isa " x8 ahead 4096", read, false, isa::read_all<8, 1, 4096>},          \
                                {#isa " x8 ahead 2048 nta", read, false, isa::read_all<8, 1, 2048, 0>},   \
                                {#isa " x4 pages 4", read, false, isa::read_all<4, 4, 0>},                \
                            });                                                                           \
  writes.insert(writes.end(), {                                                                           \
                                  {#isa " plain x4", write, false, isa::write_all<4, false>},             \
                                  {#isa " stream x8", write, true, isa::write_all<8, true>},              \
                                  {#isa " stream x4 pages 4", write, true, isa::write_all<4, true, 4>},   \
                              });
  ROOFTILE_BASIC_KERNELS(sse2)
  if (__builtin_cpu_supports("avx2")) {
    ROOFTILE_WIDE_KERNELS(avx2)
  }
  if (__builtin_cpu_supports("avx512f")) {
    ROOFTILE_WIDE_KERNELS(avx512)
  }
#undef ROOFTILE_BASIC_KERNELS
#undef ROOFTILE_WIDE_KERNELS
}

#endif  // __x86_64__

struct Kernels {
  std::vector<MemoryKernel> reads, writes, copies;
  Kernels() {
    copies.push_back({"memcpy", Traffic::kCopy, false, copy_memcpy});
    writes.push_back({"memset", Traffic::kWrite, false, write_memset});
    reads.push_back({"words", Traffic::kRead, false, read_words});
#if defined(__x86_64__)
    add_x86_kernels(reads, writes, copies);
#endif
  }
};

}  // namespace

std::span<const MemoryKernel> memory_kernels(Traffic traffic) {
  static const Kernels kernels;
  switch (traffic) {
    case Traffic::kRead:
      return kernels.reads;
    case Traffic::kWrite:
      return kernels.writes;
    case Traffic::kCopy:
      return kernels.copies;
  }
  return {};
}

}  // namespace rooftile::harness
