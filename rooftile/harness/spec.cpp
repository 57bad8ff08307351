#include "rooftile/harness/spec.h"

namespace rooftile::harness {

const Op* find_op(std::string_view function) {
  for (const Op* op : all_ops())
    if (function == op->function) return op;
  return nullptr;
}

const Spec* find_spec(std::string_view function) {
  for (const Spec& spec : all_specs())
    if (function == spec.function) return &spec;
  return nullptr;
}

}  // namespace rooftile::harness
