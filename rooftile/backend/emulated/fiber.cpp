#include "rooftile/backend/emulated/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#if defined(ROOFTILE_FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(ROOFTILE_FIBER_UCONTEXT)
// The registers that a called function must keep, and the stack: 8 instructions' worth of memory and no
// system call. The floating-point modes are the same in all fibers.
extern "C" void rooftile_switch(void** from, void* to);
asm(R"(
  .text
  .p2align 4
  .hidden rooftile_switch
  .globl rooftile_switch
  .type rooftile_switch, @function
rooftile_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size rooftile_switch, .-rooftile_switch
  .hidden rooftile_fiber_begin
  .globl rooftile_fiber_begin
  .type rooftile_fiber_begin, @function
rooftile_fiber_begin:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  callq *%r13
  ud2
  .cfi_endproc
  .size rooftile_fiber_begin, .-rooftile_fiber_begin
)");
extern "C" void rooftile_fiber_begin();
#endif

namespace rooftile::emulated {
namespace {
#if defined(ROOFTILE_FIBER_ASAN)
thread_local Fiber* left;  // the fiber that this host thread switched away from
#endif
#if defined(ROOFTILE_FIBER_UCONTEXT)
// makecontext passes ints.
void begin(unsigned fiber_high, unsigned fiber_low, unsigned main_high, unsigned main_low) {
  const auto join = [](unsigned high, unsigned low) {
    return static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low);
  };
  reinterpret_cast<void (*)(Fiber&)>(join(main_high, main_low))(
      *reinterpret_cast<Fiber*>(join(fiber_high, fiber_low)));
}
#endif
}  // namespace

void prepare(Fiber& fiber, void (*main)(Fiber&), unsigned color) {
  constexpr std::size_t kColors = 16, kStep = 192;
  const std::size_t bytes = fiber.stack_bytes - color % kColors * kStep;
  fiber.fake_stack = nullptr;
#if defined(ROOFTILE_FIBER_ASAN)
  // A thread that was left in the middle of a kernel left its frames' marks, which others would run into.
  __asan_unpoison_memory_region(fiber.stack, fiber.stack_bytes);
#endif
#if defined(ROOFTILE_FIBER_UCONTEXT)
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = bytes;
  fiber.context.uc_link = nullptr;
  const auto f = reinterpret_cast<std::uintptr_t>(&fiber), m = reinterpret_cast<std::uintptr_t>(main);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(&begin), 4, unsigned(std::uint64_t{f} >> 32),
              unsigned(f), unsigned(std::uint64_t{m} >> 32), unsigned(m));
#else
  auto* top = reinterpret_cast<std::uintptr_t*>(fiber.stack + bytes);
  *--top = 0;  // the end of the chain of frames, and 16-byte alignment at the call in rooftile_fiber_begin
  *--top = 0;
  *--top = reinterpret_cast<std::uintptr_t>(&rooftile_fiber_begin);
  *--top = 0;                                         // rbp
  *--top = 0;                                         // rbx
  *--top = reinterpret_cast<std::uintptr_t>(&fiber);  // r12
  *--top = reinterpret_cast<std::uintptr_t>(main);    // r13
  *--top = 0;                                         // r14
  *--top = 0;                                         // r15
  fiber.stack_pointer = top;
#endif
}

#if defined(ROOFTILE_FIBER_ASAN) || defined(ROOFTILE_FIBER_UCONTEXT)
void switch_fiber(Fiber& from, Fiber& to) {
#if defined(ROOFTILE_FIBER_ASAN)
  left = &from;
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
#endif
#if defined(ROOFTILE_FIBER_UCONTEXT)
  swapcontext(&from.context, &to.context);
#else
  rooftile_switch(&from.stack_pointer, to.stack_pointer);
#endif
#if defined(ROOFTILE_FIBER_ASAN)
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(from.fake_stack, &stack, &bytes);
  left->stack = static_cast<std::byte*>(const_cast<void*>(stack));
  left->stack_bytes = bytes;
#endif
}
#endif

void fiber_started() {
#if defined(ROOFTILE_FIBER_ASAN)
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
  left->stack = static_cast<std::byte*>(const_cast<void*>(stack));
  left->stack_bytes = bytes;
#endif
}

std::byte* map_stacks(std::size_t count, std::size_t bytes) {
  const std::size_t each = bytes + kGuardPage;
  void* memory =
      mmap(nullptr, count * each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* stacks = static_cast<std::byte*>(memory);
  // A stack grows down to the page below it. A system that refuses so many pieces gives none of the later
  // ones.
  for (std::size_t i = 0; i < count; ++i)
    if (mprotect(stacks + i * each, kGuardPage, PROT_NONE) != 0) break;
  return stacks;
}

void unmap_stacks(std::byte* stacks, std::size_t count, std::size_t bytes) {
  if (stacks) munmap(stacks, count * (bytes + kGuardPage));
}

}  // namespace rooftile::emulated
