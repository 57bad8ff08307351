#include "rooftile/core/relations.h"

namespace rooftile {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// sum = product {(+ | -) product}; product = factor {(* | / | %) factor}; factor = number | name | -factor |
/// (sum).
class Parser {
 public:
  Parser(std::string_view text, const ValueOf& values) : rest_(text), values_(values) {}

  Evaluated run(std::int64_t& result) {
    result = sum();
    skip();
    if (!rest_.empty()) fail(Evaluated::malformed);
    return state_;
  }

 private:
  std::int64_t sum() {
    std::int64_t value = product();
    for (char c = peek(); c == '+' || c == '-'; c = peek()) {
      rest_.remove_prefix(1);
      const std::int64_t other = product();
      if (c == '+' ? __builtin_add_overflow(value, other, &value)
                   : __builtin_sub_overflow(value, other, &value))
        fail(Evaluated::out_of_range);
    }
    return value;
  }
  std::int64_t product() {
    std::int64_t value = factor();
    for (char c = peek(); c == '*' || c == '/' || c == '%'; c = peek()) {
      rest_.remove_prefix(1);
      const std::int64_t other = factor();
      if (c == '*') {
        if (__builtin_mul_overflow(value, other, &value)) fail(Evaluated::out_of_range);
      } else if (other == 0 || other == -1) {  // nothing is a multiple of 0 but 0 itself
        value = other == 0 ? (c == '/' ? 0 : value) : (c == '/' ? 0 - value : 0);
      } else {
        const std::int64_t remainder = value % other;
        const bool down = remainder != 0 && (remainder < 0) != (other < 0);
        value = c == '/' ? value / other - down : remainder + (down ? other : 0);
      }
    }
    return value;
  }
  std::int64_t factor() {
    const char c = peek();
    std::int64_t value = 0;
    if (c == '(') {
      rest_.remove_prefix(1);
      value = sum();
      if (peek() != ')') return fail(Evaluated::malformed);
      rest_.remove_prefix(1);
    } else if (c == '-') {
      rest_.remove_prefix(1);
      value = 0 - factor();
    } else if (is_digit(c)) {
      for (; !rest_.empty() && is_digit(rest_.front()); rest_.remove_prefix(1))
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, rest_.front() - '0', &value))
          fail(Evaluated::out_of_range);
    } else if (is_letter(c)) {
      if (!values_.get(values_.context, next_name(rest_), value)) fail(Evaluated::unknown_name);
    } else {
      fail(Evaluated::malformed);
      if (!rest_.empty()) rest_.remove_prefix(1);
    }
    return value;
  }
  char peek() {
    skip();
    return rest_.empty() ? '\0' : rest_.front();
  }
  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::int64_t fail(Evaluated with) {
    if (state_ == Evaluated::known || with == Evaluated::malformed) state_ = with;
    return 0;
  }

  std::string_view rest_;
  const ValueOf& values_;
  Evaluated state_ = Evaluated::known;
};

}  // namespace

bool next_relation(std::string_view& rest, Relation& relation) {
  const std::size_t end = rest.find(';');
  relation.text = trimmed(rest.substr(0, end));
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (relation.text.empty()) return false;
  const std::size_t at = relation.text.find_first_of("=<>");
  relation.between = at == std::string_view::npos ? '\0' : relation.text[at];
  relation.left = trimmed(relation.text.substr(0, at));
  relation.right = {};
  if (at != std::string_view::npos)
    relation.right = trimmed(relation.text.substr(at + (relation.between == '=' ? 1 : 2)));
  return true;
}

Evaluated evaluate(std::string_view expression, const ValueOf& values, std::int64_t& result) {
  return Parser(expression, values).run(result);
}

std::string_view next_name(std::string_view& rest) {
  while (!rest.empty() && !is_letter(rest.front())) rest.remove_prefix(1);
  std::size_t length = 0;
  while (length < rest.size() && (is_letter(rest[length]) || is_digit(rest[length]))) ++length;
  const std::string_view name = rest.substr(0, length);
  rest.remove_prefix(length);
  return name;
}

}  // namespace rooftile
