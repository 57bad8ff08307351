#pragma once
// What a function takes, said once. Validation and each refusal's sentence, the harness's operands, bytes and
// call, and a call by the function's name follow from it.
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "rooftile/core/op.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct Signature {
  static constexpr int kMaxOperands = 20, kMaxOptions = 12, kMaxLetters = 6;

  /// A set of dtypes that operands share by a letter. `or_as`: also what another letter stands for in this
  /// call (a weight is f32, or has x's dtype).
  struct Types {
    char letter = 0;
    char or_as = 0;
    std::uint32_t mask = 0;
    std::uint32_t cpu_mask = 0;  ///< those that CPUs alone take
    char wide_as = 0;            ///< the letter with which it is f64, and nothing else

    constexpr Types() = default;
    constexpr Types(char l, std::initializer_list<DType> types, char as = 0) : letter(l), or_as(as) {
      for (DType t : types) mask |= 1u << static_cast<int>(t);
    }
    /// The same and `type`, which on a GPU is refused.
    constexpr Types with_on_cpus(DType type) const {
      Types more = *this;
      more.mask |= 1u << static_cast<int>(type);
      more.cpu_mask |= 1u << static_cast<int>(type);
      return more;
    }
    /// The same, but f64 in calls where the other letter is (statistics of f64 rows).
    constexpr Types wide_with(char another) const {
      Types wide = *this;
      wide.wide_as = another;
      return wide;
    }
    constexpr bool on_cpus_alone(DType type) const { return cpu_mask >> static_cast<int>(type) & 1; }
  };

  /// "... C": any outer sizes, alike in all operands that have them, then a size for each letter. Letters
  /// that two operands share stand for one size; "3" stands for itself. "1" alone: one element, in any
  /// number of dimensions.
  struct Shape {
    bool outer = false, one = false;
    int count = 0;
    char letters[kMaxRank] = {};

    constexpr Shape() = default;
    consteval Shape(const char* text) {
      if (text[0] == '.') {
        if (text[1] != '.' || text[2] != '.') a_shape_is_three_dots_then_up_to_8_capital_letters();
        outer = true;
        text += 3;
      }
      one = text[0] == '1' && text[1] == '\0' && !outer;
      for (; *text; ++text) {
        if (*text == ' ') continue;
        if (!((*text >= 'A' && *text <= 'Z') || (*text >= '1' && *text <= '9')) || count == kMaxRank)
          a_shape_is_three_dots_then_up_to_8_capital_letters();
        letters[count++] = *text;
      }
    }
    static void
    a_shape_is_three_dots_then_up_to_8_capital_letters();  // what the compiler says of a wrong one
  };

  enum class Role : std::uint8_t { input, output, in_out };
  static void a_list_is_an_input_or_in_out();  // what the compiler says of another

  struct Operand {
    const char* name = nullptr;
    Role role = Role::input;
    char type = 0;
    Shape shape;
    const char* may_be = "";  ///< "x residual": inputs whose memory this output may be
    bool optional = false;
    /// "x residual": an output that holds these inputs' sum, rounded, with which the function goes on. So the
    /// backward's input of the first one's name is this output, and d<first> is each one's gradient, to which
    /// the gradient of this output comes in addition.
    const char* sum_of = "";
    /// The letter of a size that its values, which are indices, lie below: 0 <= value < size. What a function
    /// does with another value, its documentation says; it never reads or writes past an operand's end.
    char below = 0;
    /// A list: a call has `Call::tensors` of it, and item i shares sizes and dtypes with item i of the other
    /// lists. Each is read, or read and written, in place.
    bool list = false;
  };

  /// A number beside the operands. A flag is 0 or 1, a choice the place of one of its words, a real or a
  /// whole number lies between `least` and `most`; `any` is also infinite or NaN.
  struct Option {
    enum class Kind : std::uint8_t { flag, choice, real, any, whole };
    const char* name = nullptr;
    Kind kind = Kind::flag;
    double otherwise = 0;  ///< the default
    double least = 0, most = 1;
    const char* words = "";  ///< a choice's: "bt601 luminosity"
  };

  const char* function;
  Types types[kMaxLetters];
  Operand operands[kMaxOperands];  ///< in the order of the C++ function's
  Option options[kMaxOptions] = {};
  const char* where = "";  ///< relations between sizes and whole options: rooftile/core/relations.h

  constexpr int operand_count() const {
    int n = 0;
    while (n < kMaxOperands && operands[n].name) ++n;
    return n;
  }
  constexpr int output_count() const {
    int n = 0;
    for (int o = 0; o < operand_count(); ++o) n += operands[o].role != Role::input;
    return n;
  }
  constexpr bool has_lists() const {
    for (int o = 0; o < operand_count(); ++o)
      if (operands[o].list) return true;
    return false;
  }
  constexpr int option_count() const {
    int n = 0;
    while (n < kMaxOptions && options[n].name) ++n;
    return n;
  }
};

inline constexpr double kLargestReal = 1.7976931348623157e308;

constexpr Signature::Operand input(const char* name, char type, Signature::Shape shape) {
  return {name, Signature::Role::input, type, shape};
}
constexpr Signature::Operand output(const char* name, char type, Signature::Shape shape,
                                    const char* may_be = "") {
  return {name, Signature::Role::output, type, shape, may_be};
}
constexpr Signature::Operand in_out(const char* name, char type, Signature::Shape shape,
                                    const char* may_be = "") {
  return {name, Signature::Role::in_out, type, shape, may_be};
}
constexpr Signature::Operand optional(Signature::Operand operand) {
  operand.optional = true;
  return operand;
}
constexpr Signature::Operand sum_of(const char* inputs, Signature::Operand output) {
  output.sum_of = inputs;
  return output;
}
/// An operand of indices: each value is 0 or more and below the size of `letter`.
constexpr Signature::Operand below(char letter, Signature::Operand indices) {
  indices.below = letter;
  return indices;
}
/// An operand of which each call has as many as of the other lists: an optimiser's parameters.
consteval Signature::Operand list(Signature::Operand operand) {
  if (operand.role == Signature::Role::output) Signature::a_list_is_an_input_or_in_out();
  operand.list = true;
  return operand;
}
constexpr Signature::Option flag(const char* name) { return {name}; }
constexpr Signature::Option choice(const char* name, const char* words) {
  double most = 0;
  for (const char* at = words; *at; ++at) most += *at == ' ';
  return {name, Signature::Option::Kind::choice, 0, 0, most, words};
}
/// A finite number from `least` to `most`.
constexpr Signature::Option real(const char* name, double otherwise, double least = -kLargestReal,
                                 double most = kLargestReal) {
  return {name, Signature::Option::Kind::real, otherwise, least, most};
}
inline constexpr double kLargestWhole = 9007199254740992;  // 2^53: all below are doubles
/// A whole number from `least` to `most`.
constexpr Signature::Option whole(const char* name, double otherwise, double least = -kLargestWhole,
                                  double most = kLargestWhole) {
  return {name, Signature::Option::Kind::whole, otherwise, least, most};
}
/// Any number, infinities and NaN too.
constexpr Signature::Option any_real(const char* name, double otherwise) {
  return {name, Signature::Option::Kind::any, otherwise, -kLargestReal, kLargestReal};
}

/// One call: views and numbers in the signature's order; an absent operand is an absent view. Of a list,
/// views[o] is the first of `tensors` views, `item_bytes` apart; null: each is absent.
struct Call {
  const ConstView* const* views;
  const double* options;
  const char* variant = nullptr;
  Workspace workspace = {};
  std::int64_t tensors = 1;
  std::size_t item_bytes = sizeof(ConstView);

  const ConstView& view(int operand) const { return *views[operand]; }
  /// Of a list; null: it is absent.
  const ConstView* item(int operand, std::int64_t place) const {
    const auto* first = reinterpret_cast<const std::byte*>(views[operand]);
    return first ? reinterpret_cast<const ConstView*>(first + static_cast<std::size_t>(place) * item_bytes)
                 : nullptr;
  }
  void* output(int operand) const { return const_cast<void*>(views[operand]->data); }
  float real(int option) const { return static_cast<float>(options[option]); }
  std::int64_t whole(int option) const { return static_cast<std::int64_t>(options[option]); }
  bool flag(int option) const { return options[option] != 0; }
};

/// All that can be said of a call before it runs, but for the workspace's size.
Status check(const Signature& signature, const Call& call);

/// The dtype and shape, dense and without data, that output `operand` has in a call with these inputs;
/// outputs among the views are not looked at. Its dtype where inputs leave a choice: the first that it may
/// have.
Status infer(const Signature& signature, const Call& call, int operand, View& inferred);

/// Validates a call of `op` and runs it.
Status call(const Queue& queue, const Op& op, const Call& call);
/// The same from lists, for the typed functions.
inline Status call(const Queue& queue, const Op& op, std::initializer_list<const ConstView*> views,
                   std::initializer_list<double> options, const char* variant, Workspace workspace = {}) {
  return call(queue, op, Call{views.begin(), options.begin(), variant, workspace});
}

/// Validates a call and says how many bytes of workspace it needs: 0, unless the op has a say in it.
Status workspace_of(const Queue& queue, const Op& op, const Call& call, std::size_t& bytes);

}  // namespace rooftile
