#pragma once
// Loads and stores with a cache policy, fences and atomics.

#include <cstddef>

#include "rooftile/backend/emulated/device/threads.h"

#define ROOFTILE_LOAD(name)             \
  template <class T>                    \
  ROOFTILE_CALL T name(const T* from) { \
    return *from;                       \
  }
#define ROOFTILE_STORE(name)                \
  template <class T>                        \
  ROOFTILE_CALL void name(T* to, T value) { \
    *to = value;                            \
  }
// A cache policy changes no value, and there is no cache to change.
ROOFTILE_LOAD(__ldg)
ROOFTILE_LOAD(__ldcs)
ROOFTILE_LOAD(__ldcg)
ROOFTILE_LOAD(__ldca)
ROOFTILE_LOAD(__ldlu)
ROOFTILE_STORE(__stcs)
ROOFTILE_STORE(__stcg)
ROOFTILE_STORE(__stwb)
ROOFTILE_STORE(__stwt)
#undef ROOFTILE_LOAD
#undef ROOFTILE_STORE

ROOFTILE_CALL void __threadfence() { ::rooftile::emulated::device::fence(true); }
ROOFTILE_CALL void __threadfence_system() { ::rooftile::emulated::device::fence(true); }
ROOFTILE_CALL void __threadfence_block() { ::rooftile::emulated::device::fence(false); }

/// The 32-bit address within the block's shared memory.
ROOFTILE_CALL std::size_t __cvta_generic_to_shared(const void* pointer, ROOFTILE_HERE) {
  return ::rooftile::emulated::device::shared_offset(pointer, where);
}

// Functions of the engine: the return address is the kernel's line. Each returns the value from before.
int atomicAdd(int*, int);
unsigned atomicAdd(unsigned*, unsigned);
unsigned long long atomicAdd(unsigned long long*, unsigned long long);
float atomicAdd(float*, float);
double atomicAdd(double*, double);
int atomicSub(int*, int);
unsigned atomicSub(unsigned*, unsigned);
unsigned atomicInc(unsigned*, unsigned);  // to 0 after the second argument
unsigned atomicDec(unsigned*, unsigned);
float atomicExch(float*, float);
#define ROOFTILE_ATOMIC(type)   \
  type atomicMin(type*, type);  \
  type atomicMax(type*, type);  \
  type atomicAnd(type*, type);  \
  type atomicOr(type*, type);   \
  type atomicXor(type*, type);  \
  type atomicExch(type*, type); \
  type atomicCAS(type*, type compare, type value);
ROOFTILE_ATOMIC(int)
ROOFTILE_ATOMIC(unsigned)
ROOFTILE_ATOMIC(unsigned long long)
#undef ROOFTILE_ATOMIC
long long atomicMin(long long*, long long);
long long atomicMax(long long*, long long);
unsigned short atomicCAS(unsigned short*, unsigned short compare, unsigned short value);

namespace rooftile::emulated::device {
// ld.acquire and st.release, for flags (rooftile/backend/cuda/ptx.h).
unsigned load_acquire(const unsigned*);
void store_release(unsigned*, unsigned);
}  // namespace rooftile::emulated::device
