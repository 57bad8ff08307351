#include "rooftile/harness/signature_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace rooftile::harness {
namespace {

std::string joined(const std::vector<std::string>& words, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 < words.size() ? ", " : last) + words[i];
  return text;
}

/// "f32, f16 or bf16"; "f32 or x's"; "f32, f64 where x is".
std::string dtypes_of(const Signature& signature, char letter) {
  const auto types = std::find_if(std::begin(signature.types), std::end(signature.types),
                                  [&](const Signature::Types& t) { return t.letter == letter; });
  std::vector<std::string> words;
  for (int t = 0; t < kDTypes; ++t)
    if (types->mask >> t & 1) words.emplace_back(name(static_cast<DType>(t)));
  const auto first_of = [&](char its) {
    int o = 0;
    while (signature.operands[o].type != its) ++o;
    return std::string(signature.operands[o].name);
  };
  if (types->or_as) words.push_back(first_of(types->or_as) + "'s");
  return joined(words, " or ") + (types->wide_as ? ", f64 where " + first_of(types->wide_as) + " is" : "");
}

std::string shape_of(const Signature::Shape& shape) {
  if (shape.one) return "one element";
  std::vector<std::string> sizes;
  if (shape.outer) sizes.emplace_back("…");
  for (int k = 0; k < shape.count; ++k) sizes.emplace_back(1, shape.letters[k]);
  return fmt::format("{}", fmt::join(sizes, " "));
}

/// "x residual": {"x", "residual"}.
std::vector<std::string> words_of(const char* list) {
  std::istringstream stream(list);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string notes_of(const Signature::Operand& operand) {
  std::string notes = operand.list ? "a list" : "";
  if (operand.optional) notes += notes.empty() ? "optional" : "; optional";
  if (*operand.may_be)
    notes += (notes.empty() ? "may be " : "; may be ") + joined(words_of(operand.may_be), " or ");
  if (operand.below) notes += fmt::format("{}indices below {}", notes.empty() ? "" : "; ", operand.below);
  if (*operand.sum_of)
    notes += (notes.empty() ? "the sum of " : "; the sum of ") + joined(words_of(operand.sum_of), " and ");
  return notes;
}

}  // namespace

std::vector<OperandText> operand_texts(const Signature& signature) {
  constexpr const char* kRoles[] = {"input", "output", "in and out"};
  std::vector<OperandText> texts;
  for (int o = 0; o < signature.operand_count(); ++o) {
    const Signature::Operand& operand = signature.operands[o];
    texts.push_back({operand.name, kRoles[static_cast<int>(operand.role)], dtypes_of(signature, operand.type),
                     shape_of(operand.shape), notes_of(operand)});
  }
  return texts;
}

namespace {
/// "finite, not negative"; "whole, from 1 to 64".
std::string range_of(const Signature::Option& option) {
  const bool whole = option.kind == Signature::Option::Kind::whole;
  const double reach = whole ? kLargestWhole : kLargestReal;
  const std::string kind = whole ? "whole" : "finite";
  if (option.least > -reach && option.most < reach)
    return fmt::format("{}from {:g} to {:g}", whole ? "whole, " : "", option.least, option.most);
  if (option.least > -reach)
    return option.least == 0 ? kind + ", not negative" : fmt::format("{}, at least {:g}", kind, option.least);
  return option.most < reach ? fmt::format("{}, at most {:g}", kind, option.most) : kind;
}
}  // namespace

std::vector<OptionText> option_texts(const Signature& signature) {
  using Kind = Signature::Option::Kind;
  std::vector<OptionText> texts;
  for (int k = 0; k < signature.option_count(); ++k) {
    const Signature::Option& option = signature.options[k];
    std::string values;
    switch (option.kind) {
      case Kind::flag:
        values = "0 or 1";
        break;
      case Kind::any:
        values = "any number";
        break;
      case Kind::real:
      case Kind::whole:
        values = range_of(option);
        break;
      case Kind::choice:
        values = joined(words_of(option.words), " or ");
        break;
    }
    const bool choice = option.kind == Kind::choice;
    texts.push_back({option.name, values,
                     choice ? words_of(option.words)[static_cast<std::size_t>(option.otherwise)]
                            : fmt::format("{:g}", option.otherwise)});
  }
  return texts;
}

}  // namespace rooftile::harness
