#pragma once
// What an op promises beside its values: what it refuses, its gradient, its cost, its reach.
#include "rooftile/harness/check/ledger.h"

namespace rooftile::harness {

/// Each misuse gets a sentence that names the function, and changes nothing: an operand absent, of another
/// dtype or shape, null, misaligned; an output of stride 0, or half over an input; an unknown variant; a
/// workspace one byte short, or over an operand. Views that interleave without sharing an element are taken.
void check_refusals(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger);

/// The backward oracle against central differences of the forward oracle, both in double. By names: "dx" is
/// the gradient of the forward operand x; a backward input that bears a forward operand's name takes its
/// value.
void check_gradient(const Spec& spec, const Spec& forward, DType dtype, Ledger& ledger);

/// The oracle counted against the stated flops (within 2%), the elements it touched against the stated bytes
/// (exactly).
void check_cost(const Spec& spec, DType dtype, Ledger& ledger);

/// One call on more than 2^31 elements, the inputs overlapping themselves, rows spot-checked.
void check_huge(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger);

}  // namespace rooftile::harness
