#pragma once
// Bitwise: a row's result depends on that row's values and length alone.
#include "rooftile/harness/ledger.h"

namespace rooftile::harness {

/// Twice the same; with 1, 2, 3 and 7 threads; through the caches and past them; row i alone as in its batch;
/// at each whole-element offset within 64 bytes; contiguous as in every layout; in place as apart. Rungs,
/// which run on one thread and dense rows, meet what they take; variants of Role::named, which may order
/// additions otherwise, only themselves.
void check_invariance(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger);

/// Every operand's last element before a page that may not be accessed, then its first behind one: nothing
/// outside is read, not even by masked or vector loads, which no sanitizer sees.
void check_edges(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger);

/// Random shapes, strides, offsets, fills, parameters, threads: right, and bitwise what dense operands give
/// on one thread. `count` of them, each on one variant and instruction set.
void check_random(const Spec& spec, DType dtype, int count, std::uint64_t seed, const Subjects& subjects,
                  Ledger& ledger);

}  // namespace rooftile::harness
