#include "rooftile/harness/course/exercise_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "rooftile/harness/check/compare.h"

namespace rooftile::harness {

std::string inputs_of(const Problem& problem, std::size_t output, std::int64_t element) {
  constexpr std::int64_t kMost = 4;
  std::string text;
  if (element < 0) return text;
  const Shape& shape = problem.operands()[output].shape;
  const std::int64_t outputs = count_of(shape);
  for (std::size_t o = 0; o < problem.operands().size(); ++o) {
    const Operand& operand = problem.operands()[o];
    const std::int64_t size = count_of(operand.shape);
    // Of as many elements, or of some for each: a pixel's channels. Else all, if they are few. Of matrices
    // other elements belong together.
    const bool begins = !std::string_view(problem.spec().axes).starts_with("m x") &&
                        operand.shape.size() >= shape.size() &&
                        std::equal(shape.begin(), shape.end(), operand.shape.begin());
    const bool few = size <= kMost;
    if (!problem.is_input(o) || size == 0 || !(few || (begins && size / outputs <= kMost))) continue;
    const std::int64_t count = begins ? size / outputs : size, first = begins ? element * count : 0;
    for (std::int64_t i = first; i < first + count; ++i) {
      const double value = problem.values(o)[static_cast<std::size_t>(i)];
      text += fmt::format("{}{}{} = {}", text.empty() ? "; " : ", ", element_name(operand, i),
                          problem.is_output(o) ? " was" : "",
                          operand.dtype == DType::i64 ? fmt::format("{:.0f}", value)  // a seed
                                                      : value_text(value));
    }
  }
  return text;
}

std::string changed_input(const Problem& problem, const std::string& damage) {
  for (const Operand& operand : problem.operands()) {
    const std::string begin = fmt::format("input {} was changed at byte ", operand.name);
    if (!damage.starts_with(begin) || damage.find_first_not_of("0123456789", begin.size()) != damage.npos)
      continue;
    const std::int64_t at =
        std::stoll(damage.substr(begin.size())) * 8 / static_cast<std::int64_t>(bits(operand.dtype));
    return fmt::format("{} was changed, and {} is an input", element_name(operand, at), operand.name);
  }
  return "";
}

}  // namespace rooftile::harness
