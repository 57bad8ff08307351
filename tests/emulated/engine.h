#pragma once
// Launches of the kernels in engine.cu.
#include "rooftile/backend/emulated/engine.h"

#define G const Geometry&, const Options&
namespace rooftile::emulated::test::launch_of {
Status indices(G, unsigned* out);
Status reverse(G, const float* x, float* y, int times);
Status warp_functions(G, int* out);
Status early_exit(G, int* out);
Status last_block(G, const float* x, float* partial, float* sum, unsigned* counter, int n);
Status wait_for_lower(G, unsigned* flags, unsigned* out);
Status wait_for_higher(G, unsigned* flags);
Status spin_lock(G, unsigned* lock, int* count);
Status deadlock(G);
Status two_kinds_of_shuffle(G, int* out);
Status trap_at(G, int thread);
Status assert_below(G, int limit);
Status overrun(G, int by);
Status static_shared_49k(G);
Status dynamic_sum(G, int* out);
Status poison(G, float* out);
Status async_double_buffer(G, bool waits, const float* x, float* y, int tiles);
Status ring(G, const float* x, float* y, int tiles);
Status cluster_sum(G, float* out);
Status cluster_send(G, float* out, int rounds, bool waits);
Status named(G, int* out);
Status convert(G, const float* x, unsigned short* half_bits, unsigned short* bfloat_bits, int n);
Status widen_half(G, const unsigned short* x, float* y);
Status count_atomics(G, int* i, unsigned* u, unsigned long long* l, float* f, double* d);
Status by_value(G, int* out);
Status two_barriers(G, float* x);
Status nothing(G, float* x);
Status shuffles(G, float* x);
}  // namespace rooftile::emulated::test::launch_of
#undef G
