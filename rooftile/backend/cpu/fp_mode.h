#pragma once

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#else
#include <cfenv>
#endif

namespace rooftile::cpu {

/// While it lives, floating point on this thread is the standard's default: round to nearest, subnormals
/// honoured, no traps. The caller's control bits come back afterwards; sticky flags raised in between stay
/// raised, as they would without the guard. Costs a register read where nothing has to change. On x86 it is
/// about SSE and AVX; the x87 unit is left alone.
///
/// A compiler may move arithmetic across the switch: guard a call to a function it cannot see into.
class FpMode {
 public:
  FpMode(const FpMode&) = delete;
  FpMode& operator=(const FpMode&) = delete;

#if defined(__x86_64__) || defined(__i386__)

  FpMode() : saved_(_mm_getcsr()) {
    if ((saved_ & kControl) != kDefault) [[unlikely]]
      _mm_setcsr((saved_ & ~kControl) | kDefault);
  }
  // Setting a flag whose trap is unmasked does not trap on SSE; only the next exception would.
  ~FpMode() {
    if ((saved_ & kControl) != kDefault) [[unlikely]]
      _mm_setcsr((_mm_getcsr() & ~kControl) | (saved_ & kControl));
  }

 private:
  static constexpr unsigned kControl = 0xffc0;  // FTZ, rounding, six masks, DAZ
  static constexpr unsigned kDefault = 0x1f80;  // all masked, the rest off
  unsigned saved_;

#elif defined(__aarch64__)

  // FPCR holds control bits only (the sticky flags live in FPSR), and the default is zero.
  FpMode() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if (saved_ != 0) [[unlikely]]
      asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~FpMode() {
    if (saved_ != 0) [[unlikely]]
      asm volatile("msr fpcr, %0" : : "r"(saved_));
  }

 private:
  std::uint64_t saved_;

#else

  // Portable and slower. The flags raised in between are dropped: raising them again could trap.
  FpMode() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FpMode() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;

#endif
};

}  // namespace rooftile::cpu
