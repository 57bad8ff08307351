#include "rooftile/harness/spec.h"

#include <algorithm>

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

std::size_t outer_sizes(const Spec& spec, const Case& c) {
  return c.shape.size() - std::min(c.shape.size(), spec.letters.size());
}

std::vector<std::size_t> independent_dimensions(const Spec& spec, const Case& c) {
  std::vector<std::size_t> dims{0};
  const std::size_t outer = outer_sizes(spec, c);
  for (std::size_t l = 0; l < spec.letters.size(); ++l)
    if (outer + l > 0 && spec.independent.find(spec.letters[l]) != std::string::npos)
      dims.push_back(outer + l);
  return dims;
}

}  // namespace rooftile::harness
