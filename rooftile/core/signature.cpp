#include "rooftile/core/signature.h"

#include <cstring>

#include "rooftile/core/check.h"

namespace rooftile {
namespace {

/// Whether `name` is one of the words of `list`.
bool has_word(const char* list, const char* name) {
  const std::size_t length = std::strlen(name);
  for (const char* at = list; (at = std::strstr(at, name)); at += length)
    if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' ')) return true;
  return false;
}

/// What the letters stand for in a call: sizes and dtypes, each bound by the first operand that has it.
template <class Value>
struct Letters {
  Value value[26];
  const char* by[26] = {};

  static int place(char letter) { return letter - 'A'; }
  bool bound(char letter) const { return by[place(letter)] != nullptr; }
  void bind(char letter, Value v, const char* operand) {
    value[place(letter)] = v;
    by[place(letter)] = operand;
  }
  const Value& operator[](char letter) const { return value[place(letter)]; }
};

class Checker {
 public:
  Checker(const Signature& signature, const Call& call) : s_(signature), call_(call) {}

  Status run() {
    const int count = s_.operand_count();
    for (int o = 0; o < count; ++o) {
      const Signature::Operand& operand = s_.operands[o];
      const Argument a = argument(o);
      if (operand.optional && !a.view.present()) continue;
      ROOFTILE_TRY(type(a, operand.type));
      ROOFTILE_TRY(shape(a, operand.shape));
      if (operand.role == Signature::Role::input) continue;
      ROOFTILE_TRY(check_output(s_.function, a));
    }
    for (int o = 0; o < count; ++o) {
      if (s_.operands[o].role == Signature::Role::input) continue;
      for (int other = 0; other < count; ++other) {
        // Each pair of outputs once.
        if (other == o || (other > o && s_.operands[other].role != Signature::Role::input)) continue;
        ROOFTILE_TRY(check_no_overlap(s_.function, argument(o), argument(other),
                                      has_word(s_.operands[o].may_be, s_.operands[other].name)));
      }
    }
    for (int o = 0; o < count; ++o)
      ROOFTILE_TRY(check_workspace_apart(s_.function, call_.workspace, argument(o)));
    return options();
  }

 private:
  Argument argument(int o) const { return {s_.operands[o].name, *call_.views[o]}; }

  std::uint32_t mask_of(char letter) const {
    if (types_.bound(letter)) return 1u << static_cast<int>(types_[letter]);
    const Signature::Types* its = s_.types;
    while (its->letter != letter) ++its;
    return its->mask | (its->or_as ? mask_of(its->or_as) : 0);
  }

  Status type(Argument a, char letter) {
    DType allowed[kDTypes];
    std::size_t count = 0;
    // A letter that stands for a dtype by now: first that the view is one at all, then that they are alike.
    const bool bound = types_.bound(letter);
    const std::uint32_t mask = bound ? all_of(letter) : mask_of(letter);
    for (int t = 0; t < kDTypes; ++t)
      if (mask >> t & 1) allowed[count++] = static_cast<DType>(t);
    ROOFTILE_TRY(check_view(s_.function, a, std::span(allowed, count)));
    if (bound) return check_same_dtype(s_.function, {types_.by[letter - 'A'], *first_[letter - 'A']}, a);
    types_.bind(letter, a.view.dtype, a.name);
    first_[letter - 'A'] = &a.view;
    return {};
  }
  /// What the letter might have stood for.
  std::uint32_t all_of(char letter) const {
    const Signature::Types* its = s_.types;
    while (its->letter != letter) ++its;
    return its->mask | (its->or_as ? mask_of(its->or_as) : 0);
  }

  Status shape(Argument a, const Signature::Shape& shape) {
    const int rank = a.view.rank, outer = rank - shape.count;
    if (shape.outer) ROOFTILE_TRY(check_rank(s_.function, a, shape.count));
    if (!shape.outer && rank != shape.count)
      return Status::error("%s: %s is %s, must have %d dimension%s", s_.function, a.name,
                           describe(a.view).text, shape.count, shape.count == 1 ? "" : "s");
    if (shape.outer && !outer_) {
      outer_ = &a.view;
      outer_name_ = a.name;
      outer_rank_ = outer;
    } else if (shape.outer) {
      bool same = outer == outer_rank_;
      for (int d = 0; same && d < outer; ++d) same = a.view.shape[d] == outer_->shape[d];
      if (!same) return mismatch(a, {outer_name_, *outer_});
    }
    for (int k = 0; k < shape.count; ++k) {
      const char letter = shape.letters[k];
      const std::int64_t size = a.view.shape[outer + k];
      if (!sizes_.bound(letter)) {
        sizes_.bind(letter, size, a.name);
        sized_[letter - 'A'] = &a.view;
      } else if (sizes_[letter] != size) {
        return mismatch(a, {sizes_.by[letter - 'A'], *sized_[letter - 'A']});
      }
    }
    return {};
  }
  Status mismatch(Argument a, Argument earlier) const {
    return Status::error("%s: %s is %s, %s is %s: shapes must match", s_.function, earlier.name,
                         describe(earlier.view).text, a.name, describe(a.view).text);
  }

  Status options() const {
    for (int k = 0; k < s_.option_count(); ++k) {
      const Signature::Option& option = s_.options[k];
      const double value = call_.options[k];
      if (option.kind == Signature::Option::Kind::flag) {
        if (value == 0 || value == 1) continue;  // quiet, also of NaN
        return Status::error("%s: %s is %g, must be 0 or 1", s_.function, option.name, value);
      }
      // A comparison by operators would trap on NaN where the caller wants that.
      if (__builtin_isgreaterequal(value, option.least) && __builtin_islessequal(value, option.most))
        continue;
      return Status::error("%s: %s is %g, must be finite", s_.function, option.name, value);
    }
    return {};
  }

  const Signature& s_;
  const Call& call_;
  Letters<DType> types_;
  Letters<std::int64_t> sizes_;
  const ConstView* first_[26];
  const ConstView* sized_[26];
  const ConstView* outer_ = nullptr;
  const char* outer_name_ = nullptr;
  int outer_rank_ = 0;
};

}  // namespace

Status check(const Signature& signature, const Call& call) { return Checker(signature, call).run(); }

Status call(const Queue& queue, const Op& op, const Call& call) {
  ROOFTILE_TRY(check(*op.signature, call));
  return op.launch(queue, op, call);
}

}  // namespace rooftile
