#pragma once
// Bitwise: a row's result depends on that row's values and length alone.
#include "rooftile/harness/check/ledger.h"
#include "rooftile/harness/check/random_cases.h"

namespace rooftile::harness {

/// Twice the same; with 1, 2, 3 and 7 threads; through the caches and past them; row i alone as in its batch;
/// at each whole-element offset within 64 bytes; contiguous as in every layout; in place as apart. Rungs,
/// which run on one thread and dense rows, meet what they take; variants of Role::named, which may order
/// additions otherwise, only themselves. On what the subjects name as brief: each length once, unaligned,
/// strided and in place once each, by three threads.
void check_invariance(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger);

/// Every operand's last element before a page that may not be accessed, then its first behind one: nothing
/// outside is read, not even by masked or vector loads, which no sanitizer sees.
void check_edges(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger);

/// `count` cases by random_case, each on one variant and instruction set: right, and bitwise what dense
/// operands give on one thread, and what a part of the rows gives.
void check_random(const Spec& spec, DType dtype, int count, std::uint64_t seed, const Subjects& subjects,
                  Ledger& ledger, Coverage& coverage);

/// Each variant under each rounding mode of its caller, and with traps on: the same bits, and no trap.
void check_modes(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger);

Role role_of(const Spec& spec, const char* variant);

/// The first output of `got` that is not that of `reference`, a run of `p` that begins `from` indices
/// earlier in the dimension that was cut (of the whole problem: all outputs, of a part: those that have it);
/// empty where there is none.
std::string difference(const Problem& p, const std::vector<Bytes>& reference, const Problem& got_of,
                       const std::vector<Bytes>& got, std::int64_t from);

}  // namespace rooftile::harness
