#pragma once
// A fiber: a stack, and where on it execution stands.

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define ROOFTILE_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ROOFTILE_FIBER_ASAN 1
#endif
#endif
#if !defined(__x86_64__) && !defined(ROOFTILE_FIBER_UCONTEXT)
#define ROOFTILE_FIBER_UCONTEXT \
  1  // elsewhere the C library switches: 20 times slower, it sets the signal mask
#endif
#if defined(ROOFTILE_FIBER_UCONTEXT)
#include <ucontext.h>
#endif

namespace rooftile::emulated {

struct Fiber {
  void* stack_pointer = nullptr;  // while it does not run
  std::byte* stack = nullptr;  // lowest address; the host's is learnt when it is left (for AddressSanitizer)
  std::size_t stack_bytes = 0;
  Fiber* next_free = nullptr;
  void* fake_stack = nullptr;
  void* owner = nullptr;  // what the fiber's main function is given
#if defined(ROOFTILE_FIBER_UCONTEXT)
  ucontext_t context;
#endif
};

/// Makes `fiber` begin in main(fiber) when it is switched to next. `color` moves its frames within a page, so
/// that the tops of many stacks do not meet in the same lines of the cache. main must not return.
void prepare(Fiber& fiber, void (*main)(Fiber&), unsigned color);

/// Leaves `from` and goes on with `to`; returns when someone switches back.
#if defined(ROOFTILE_FIBER_ASAN) || defined(ROOFTILE_FIBER_UCONTEXT)
void switch_fiber(Fiber& from, Fiber& to);
#else
extern "C" void rooftile_switch(void** from, void* to);
inline void switch_fiber(Fiber& from, Fiber& to) { rooftile_switch(&from.stack_pointer, to.stack_pointer); }
#endif
/// The first thing that a fiber's main function does.
void fiber_started();

/// `count` stacks of `bytes` each, with a page between them that must not be touched where the system grants
/// one. Null where there is no memory. Pages are real only once they are used.
std::byte* map_stacks(std::size_t count, std::size_t bytes);
void unmap_stacks(std::byte* stacks, std::size_t count, std::size_t bytes);
constexpr std::size_t kGuardPage = 4096;

}  // namespace rooftile::emulated
