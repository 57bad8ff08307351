#pragma once
// Relations between sizes and whole-number options, as a signature's `where` says them:
//   "P = (H + 2*padding - dilation*(R - 1) - 1)/stride + 1; H % G = 0; T >= S"
// Names are a size's letter, an option, or `outer`, the product of the outer sizes. + - * / % and brackets;
// quotients round down. Between the sides: =, <= or >=.
#include <cstdint>
#include <string_view>

namespace rooftile {

/// What a name stands for; false: nothing in this call.
struct ValueOf {
  const void* context;
  bool (*get)(const void* context, std::string_view name, std::int64_t& value);
};

struct Relation {
  std::string_view text, left, right;
  char between = '=';  ///< '=', '<' for <=, '>' for >=
  bool holds(std::int64_t of_left, std::int64_t of_right) const {
    return between == '=' ? of_left == of_right : between == '<' ? of_left <= of_right : of_left >= of_right;
  }
  /// The letter on the left where it stands alone before "=": the relation says what it is. Else 0.
  char gives() const {
    return between == '=' && left.size() == 1 && left[0] >= 'A' && left[0] <= 'Z' ? left[0] : 0;
  }
};

enum class Evaluated : std::uint8_t { known, unknown_name, out_of_range, malformed };

/// Takes the next relation off `rest`; false at its end.
bool next_relation(std::string_view& rest, Relation& relation);

/// One side's value.
Evaluated evaluate(std::string_view expression, const ValueOf& values, std::int64_t& result);

/// The next name in an expression, off `rest`; empty at its end.
std::string_view next_name(std::string_view& rest);

}  // namespace rooftile
