#include "rooftile/core/signature.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "rooftile/core/check.h"
#include "rooftile/core/dtype_names.h"
#include "rooftile/core/relations.h"

namespace rooftile {
namespace {

/// Whether `name` is one of the words of `list`.
bool has_word(const char* list, const char* name) {
  const std::size_t length = std::strlen(name);
  for (const char* at = list; (at = std::strstr(at, name)); at += length)
    if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' ')) return true;
  return false;
}

/// What the letters stand for in a call, each bound by the first operand that has it.
template <class Value>
class Letters {
 public:
  bool bound(char letter) const { return bound_ >> (letter - 'A') & 1; }
  void bind(char letter, Value value, const Argument& by) {
    bound_ |= 1u << (letter - 'A');
    value_[letter - 'A'] = value;
    name_[letter - 'A'] = by.name;
    view_[letter - 'A'] = &by.view;
  }
  const Value& operator[](char letter) const { return value_[letter - 'A']; }
  Argument by(char letter) const { return {name_[letter - 'A'], *view_[letter - 'A']}; }

 private:
  std::uint32_t bound_ = 0;
  Value value_[26];
  const char* name_[26];
  const ConstView* view_[26];
};

/// "3x4", "4xC", "a scalar": what a shape must be, as far as it is known by now.
class Expected {
 public:
  void add(std::int64_t size) { put("%s%lld", at_ ? "x" : "", static_cast<long long>(size)); }
  void add(const char* unknown) { put("%s%s", at_ ? "x" : "", unknown); }
  const char* text() const { return at_ ? text_ : "a scalar"; }
  /// " where H is 6, G is 4".
  void name(std::string_view name, std::int64_t value) {
    put("%s%.*s is %lld", at_ ? ", " : " where ", static_cast<int>(name.size()), name.data(),
        static_cast<long long>(value));
  }
  const char* named() const { return text_; }

 private:
  template <class... Values>
  void put(const char* format, Values... values) {
    const int room = static_cast<int>(sizeof text_) - at_;
    if (room > 1) at_ += std::snprintf(text_ + at_, static_cast<std::size_t>(room), format, values...);
  }
  char text_[192] = "";
  int at_ = 0;
};

const Signature::Types& types_of(const Signature& signature, char letter) {
  const Signature::Types* its = signature.types;
  while (its->letter != letter) ++its;
  return *its;
}

/// Leaves lists out, but where `lists` says that the call has one item of each: check_lists.
class Checker {
 public:
  /// `names`: of operands, for sentences; null: the signature's.
  Checker(const Signature& signature, const Call& call, bool lists = false,
          const char* const* names = nullptr)
      : s_(signature), call_(call), lists_(lists), names_(names) {}

  Status run() {
    const int count = s_.operand_count();
    for (int o = 0; o < count; ++o) {
      const Signature::Operand& operand = s_.operands[o];
      if (operand.list && !lists_) continue;
      const Argument a = argument(o);
      if (operand.optional && !a.view.present()) continue;
      ROOFTILE_TRY(type(a, operand.type));
      ROOFTILE_TRY(shape(a, operand.shape));
      if (operand.role != Signature::Role::input) ROOFTILE_TRY(check_output(s_.function, a));
    }
    ROOFTILE_TRY(followers(count));
    ROOFTILE_TRY(apart(count));
    ROOFTILE_TRY(options());
    return *s_.where ? relations() : Status();
  }

  Status infer(int operand, View& inferred) {
    for (int o = 0; o < s_.operand_count(); ++o) {
      if (s_.operands[o].role == Signature::Role::output || s_.operands[o].list || !call_.view(o).present())
        continue;
      ROOFTILE_TRY(type(argument(o), s_.operands[o].type));
      ROOFTILE_TRY(shape(argument(o), s_.operands[o].shape));
    }
    ROOFTILE_TRY(options());
    const Signature::Operand& it = s_.operands[operand];
    inferred = {};
    inferred.rank = 0;
    inferred.dtype = inferred_type(it.type);
    if (it.shape.one) return {};
    if (it.shape.outer && !outer_)
      return Status::error("%s: the sizes of %s do not follow from the inputs; pass %s", s_.function, it.name,
                           it.name);
    for (int d = 0; it.shape.outer && d < outer_rank_; ++d)
      inferred.shape[inferred.rank++] = outer_->view.shape[d];
    for (int k = 0; k < it.shape.count; ++k) {
      std::int64_t size = 0;
      ROOFTILE_TRY(inferred_size(it, it.shape.letters[k], size));
      if (inferred.rank == kMaxRank)
        return Status::error("%s: %s would have more than %d dimensions", s_.function, it.name, kMaxRank);
      inferred.shape[inferred.rank++] = size;
    }
    std::int64_t stride = 1;
    for (int d = inferred.rank - 1; d >= 0; --d) {
      inferred.stride[d] = stride;
      stride =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                    static_cast<std::uint64_t>(std::max<std::int64_t>(inferred.shape[d], 1)));
    }
    return {};
  }

 private:
  Argument argument(int o) const {
    static constexpr ConstView kAbsent{};
    return {names_ ? names_[o] : s_.operands[o].name,
            s_.operands[o].list && !lists_ ? kAbsent : call_.view(o)};
  }

  /// What the letter may stand for.
  std::uint32_t mask_of(char letter) const {
    if (types_.bound(letter)) return 1u << static_cast<int>(types_[letter]);
    return all_of(letter);
  }
  /// What it might have stood for.
  std::uint32_t all_of(char letter) const {
    const Signature::Types& its = types_of(s_, letter);
    if (wide(its)) return 1u << static_cast<int>(DType::f64);
    return its.mask | (its.or_as ? mask_of(its.or_as) : 0);
  }

  /// Whether a letter is f64 as another is.
  bool wide(const Signature::Types& its) const {
    return its.wide_as && types_.bound(its.wide_as) && types_[its.wide_as] == DType::f64;
  }

  Status type(Argument a, char letter) {
    DType allowed[kDTypes];
    std::size_t count = 0;
    const std::uint32_t mask = all_of(letter);
    for (int t = 0; t < kDTypes; ++t)
      if (mask >> t & 1) allowed[count++] = static_cast<DType>(t);
    const char another = types_of(s_, letter).or_as;
    if (a.view.present() && a.view.rank <= kMaxRank && another && types_.bound(another) &&
        std::find(allowed, allowed + count, a.view.dtype) == allowed + count)
      return neither(a, types_of(s_, letter));
    if (wide(types_of(s_, letter)) && a.view.present() && a.view.rank <= kMaxRank &&
        a.view.dtype != DType::f64)
      return Status::error("%s: %s is %s, must be f64 as %s is", s_.function, a.name, describe(a.view).text,
                           types_.by(types_of(s_, letter).wide_as).name);
    ROOFTILE_TRY(check_view(s_.function, a, std::span(allowed, count)));
    if (bits(a.view.dtype) < 8) ROOFTILE_TRY(check_packed(s_.function, a));
    if (!types_.bound(letter)) {
      types_.bind(letter, a.view.dtype, a);
      return {};
    }
    if (types_[letter] == a.view.dtype) return {};
    return Status::error("%s: %s is %s, must be %s as %s is", s_.function, a.name, describe(a.view).text,
                         name(types_[letter]), types_.by(letter).name);
  }

  /// Operands whose dtype may be that of one after them, as a bias's that of y.
  Status followers(int count) {
    for (int o = 0; o < count; ++o) {
      const Signature::Types& its = types_of(s_, s_.operands[o].type);
      const Argument a = argument(o);
      if (!its.or_as || !types_.bound(its.or_as) || !a.view.present()) continue;
      if (!(all_of(its.letter) >> static_cast<int>(a.view.dtype) & 1)) return neither(a, its);
    }
    return {};
  }

  /// "must be f32, or f16 as x is": which dtypes a letter has, and which it may follow.
  Status neither(Argument a, const Signature::Types& its) const {
    const DType followed = types_[its.or_as];
    const DTypeNames list(its.mask & ~(1u << static_cast<int>(followed)));
    return Status::error("%s: %s is %s, must be %s%s%s as %s is", s_.function, a.name, describe(a.view).text,
                         list.text, *list.text ? ", or " : "", name(followed), types_.by(its.or_as).name);
  }

  Status shape(Argument a, const Signature::Shape& shape) {
    if (shape.one) {
      if (a.view.size() == 1) return {};
      return Status::error("%s: %s is %s, must have one element", s_.function, a.name, describe(a.view).text);
    }
    const int outer = a.view.rank - shape.count;
    if (shape.outer && !outer_ && outer < 0)
      return Status::error("%s: %s is %s, needs at least %d dimension%s", s_.function, a.name,
                           describe(a.view).text, shape.count, shape.count == 1 ? "" : "s");
    bool right = shape.outer ? outer >= 0 : outer == 0;
    if (right && shape.outer && outer_) {
      right = outer == outer_rank_;
      for (int d = 0; right && d < outer; ++d) right = a.view.shape[d] == outer_->view.shape[d];
    }
    for (int k = 0; right && k < shape.count; ++k) {
      const char letter = shape.letters[k];
      const std::int64_t size = a.view.shape[outer + k];
      if (is_size(letter))
        right = size == letter - '0';
      else if (sizes_.bound(letter))
        right = size == sizes_[letter];
      else
        sizes_.bind(letter, size, a);
    }
    if (!right) return wrong_shape(a, shape);
    if (shape.outer && !outer_) {
      outer_.emplace(a);
      outer_rank_ = outer;
    }
    return {};
  }
  static bool is_size(char letter) { return letter <= '9'; }

  Status wrong_shape(Argument a, const Signature::Shape& shape) const {
    Expected expected;
    std::optional<Argument> source;  // who says so
    if (shape.outer && !outer_) expected.add("...");
    if (shape.outer && outer_) {
      source.emplace(*outer_);
      for (int d = 0; d < outer_rank_; ++d) expected.add(outer_->view.shape[d]);
    }
    for (int k = 0; k < shape.count; ++k) {
      const char letter = shape.letters[k];
      const char unknown[] = {letter, '\0'};
      // Its own letters were bound on the way to the one that is wrong.
      if (is_size(letter) || !sizes_.bound(letter) || sizes_.by(letter).name == a.name) {
        expected.add(unknown);
      } else {
        expected.add(sizes_[letter]);
        if (!source) source.emplace(sizes_.by(letter));
      }
    }
    if (!source)
      return Status::error("%s: %s is %s, must be %s", s_.function, a.name, describe(a.view).text,
                           expected.text());
    return Status::error("%s: %s is %s, must be %s where %s is %s", s_.function, a.name,
                         describe(a.view).text, expected.text(), source->name, describe(source->view).text);
  }

  /// Outputs lie apart from each other and from the inputs, but for those that they may be; a workspace from
  /// all. Each one's range is found once: for every pair they took a fifth of a call of 1x8.
  Status apart(int count) const {
    Range range[Signature::kMaxOperands];
    for (int o = 0; o < count; ++o)
      range[o] = argument(o).view.present() ? range_of(argument(o).view) : Range{};
    const auto meet = [](const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; };
    for (int o = 0; o < count; ++o) {
      if (s_.operands[o].role == Signature::Role::input) continue;
      for (int other = 0; other < count; ++other) {
        // Each pair of outputs once.
        if (other == o || (other > o && s_.operands[other].role != Signature::Role::input)) continue;
        if (!meet(range[o], range[other])) continue;
        ROOFTILE_TRY(check_no_overlap(s_.function, argument(o), argument(other),
                                      has_word(s_.operands[o].may_be, s_.operands[other].name)));
      }
    }
    if (!call_.workspace.pointer || call_.workspace.bytes == 0) return {};
    const auto begin = reinterpret_cast<std::uintptr_t>(call_.workspace.pointer);
    for (int o = 0; o < count; ++o)
      if (meet(range[o], {begin, begin + std::min(call_.workspace.bytes, SIZE_MAX - begin)}))
        ROOFTILE_TRY(check_workspace_apart(s_.function, call_.workspace, argument(o)));
    return {};
  }

  DType inferred_type(char letter) const {
    if (wide(types_of(s_, letter))) return DType::f64;
    for (char its = letter; its; its = types_of(s_, its).or_as)
      if (types_.bound(its)) return types_[its];
    return static_cast<DType>(__builtin_ctz(types_of(s_, letter).mask));
  }
  Status inferred_size(const Signature::Operand& operand, char letter, std::int64_t& size) const {
    if (is_size(letter) || sizes_.bound(letter)) {
      size = is_size(letter) ? letter - '0' : sizes_[letter];
      return {};
    }
    std::string_view rest = s_.where;
    for (Relation r; next_relation(rest, r);)
      if (r.gives() == letter && evaluate(r.right, values(), size) == Evaluated::known) {
        if (size >= 0) return {};
        return Status::error("%s: size %c of %s would be %lld = %.*s", s_.function, letter, operand.name,
                             static_cast<long long>(size), static_cast<int>(r.right.size()), r.right.data());
      }
    return Status::error("%s: size %c of %s does not follow from the inputs; pass %s", s_.function, letter,
                         operand.name, operand.name);
  }

  ValueOf values() const {
    return {this, [](const void* self, std::string_view name, std::int64_t& value) {
              return static_cast<const Checker*>(self)->value_of(name, value);
            }};
  }
  bool value_of(std::string_view name, std::int64_t& value) const {
    if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z') {
      if (!sizes_.bound(name[0])) return false;
      value = sizes_[name[0]];
      return true;
    }
    if (name == "outer") {
      value = 1;
      bool fits = outer_.has_value();
      for (int d = 0; fits && d < outer_rank_; ++d)
        fits = !__builtin_mul_overflow(value, outer_->view.shape[d], &value);
      return fits;
    }
    for (int k = 0; k < s_.option_count(); ++k)
      if (name == s_.options[k].name) {
        value = call_.whole(k);
        return s_.options[k].kind != Signature::Option::Kind::real &&
               s_.options[k].kind != Signature::Option::Kind::any;
      }
    return false;
  }
  /// A relation about the sizes of an operand that is absent says nothing.
  Status relations() const {
    std::string_view rest = s_.where;
    for (Relation r; next_relation(rest, r);) {
      std::int64_t left = 0, right = 0;
      const Evaluated of_left = evaluate(r.left, values(), left),
                      of_right = evaluate(r.right, values(), right);
      if (of_left == Evaluated::unknown_name || of_right == Evaluated::unknown_name) continue;
      const bool known = of_left == Evaluated::known && of_right == Evaluated::known;
      if (known && r.holds(left, right)) continue;
      Expected names;
      for (std::string_view both : {r.left, r.right})
        for (std::string_view name = next_name(both); !name.empty(); name = next_name(both)) {
          std::int64_t value = 0;
          if (value_of(name, value) && !(r.gives() && name.data() == r.left.data())) names.name(name, value);
        }
      const auto text = [](std::string_view part) { return static_cast<int>(part.size()); };
      if (r.gives() && known) {
        const Argument by = sizes_.by(r.gives());
        return Status::error("%s: %s is %s: %c is %lld, must be %lld = %.*s%s", s_.function, by.name,
                             describe(by.view).text, r.gives(), static_cast<long long>(left),
                             static_cast<long long>(right), text(r.right), r.right.data(), names.named());
      }
      return Status::error("%s: must have %.*s%s", s_.function, text(r.text), r.text.data(), names.named());
    }
    return {};
  }

  Status options() const {
    using Kind = Signature::Option::Kind;
    for (int k = 0; k < s_.option_count(); ++k) {
      const Signature::Option& option = s_.options[k];
      const double value = call_.options[k];
      if (option.kind == Kind::any) continue;
      // A comparison by operators would trap on NaN where the caller wants that.
      const bool within =
          __builtin_isgreaterequal(value, option.least) && __builtin_islessequal(value, option.most);
      if (within &&
          (option.kind == Kind::real || value == static_cast<double>(static_cast<std::int64_t>(value))))
        continue;
      if (option.kind == Kind::choice) return wrong_choice(option, value);
      if (option.kind == Kind::flag)
        return Status::error("%s: %s is %g, must be 0 or 1", s_.function, option.name, value);
      const bool whole = option.kind == Kind::whole,
                 from = option.least > (whole ? -kLargestWhole : -kLargestReal),
                 to = option.most < (whole ? kLargestWhole : kLargestReal);
      const char* kind = whole ? "a whole number" : "finite";
      if (from && to)
        return Status::error("%s: %s is %g, must be %s from %g to %g", s_.function, option.name, value,
                             whole ? kind : "a number", option.least, option.most);
      if (from && option.least == 0)
        return Status::error("%s: %s is %g, must be %s and not negative", s_.function, option.name, value,
                             kind);
      if (from)
        return Status::error("%s: %s is %g, must be %s and at least %g", s_.function, option.name, value,
                             kind, option.least);
      if (to)
        return Status::error("%s: %s is %g, must be %s and at most %g", s_.function, option.name, value, kind,
                             option.most);
      return Status::error("%s: %s is %g, must be %s", s_.function, option.name, value, kind);
    }
    return {};
  }
  /// "must be bt601 (0) or luminosity (1)".
  Status wrong_choice(const Signature::Option& option, double value) const {
    char list[192] = "";
    std::size_t at = 0;
    int place = 0;
    for (const char* word = option.words; *word; ++place) {
      const std::size_t length = std::strcspn(word, " ");
      const bool last = word[length] == '\0';
      at += static_cast<std::size_t>(std::snprintf(list + at, sizeof list - at, "%s%.*s (%d)",
                                                   place == 0 ? ""
                                                   : last     ? " or "
                                                              : ", ",
                                                   static_cast<int>(length), word, place));
      word += length + !last;
      if (at >= sizeof list) break;
    }
    return Status::error("%s: %s is %g, must be %s", s_.function, option.name, value, list);
  }

  const Signature& s_;
  const Call& call_;
  const bool lists_;
  const char* const* names_;
  Letters<DType> types_;
  Letters<std::int64_t> sizes_;
  std::optional<Argument> outer_;
  int outer_rank_ = 0;
};

/// Whether no output of a call has an element.
bool writes_nothing(const Signature& signature, const Call& call) {
  for (int o = 0; o < signature.operand_count(); ++o)
    if (signature.operands[o].role != Signature::Role::input && call.view(o).present() &&
        call.view(o).size() != 0)
      return false;
  return true;
}

/// Item by item, each as a call of its own. Sentences name the item: "adamw: gradient[3] is …".
Status check_lists(const Signature& signature, const Call& call) {
  if (call.tensors < 0)
    return Status::error("%s: a list of %lld tensors, must not be negative", signature.function,
                         static_cast<long long>(call.tensors));
  ROOFTILE_TRY(Checker(signature, call).run());
  const ConstView absent{};
  const ConstView* views[Signature::kMaxOperands];
  Call one = call;
  one.views = views;
  const int count = signature.operand_count();
  for (std::int64_t item = 0; item < call.tensors; ++item) {
    for (int o = 0; o < count; ++o) {
      views[o] = signature.operands[o].list ? call.item(o, item) : call.views[o];
      if (!views[o]) views[o] = &absent;
    }
    if (Checker(signature, one, true).run()) continue;
    char texts[Signature::kMaxOperands][64];
    const char* names[Signature::kMaxOperands];
    for (int o = 0; o < count; ++o) {
      names[o] = signature.operands[o].name;
      if (!signature.operands[o].list) continue;
      std::snprintf(texts[o], sizeof texts[o], "%s[%lld]", names[o], static_cast<long long>(item));
      names[o] = texts[o];
    }
    return Checker(signature, one, true, names).run();
  }
  return {};
}

/// Dtypes that a GPU's kernels lack. (A function of CPUs alone says itself what to call instead.)
Status check_device(const Queue& queue, const Signature& signature, const Call& call) {
  if (!queue.status() || queue.device() == Device::cpu) return {};
  for (int o = 0; o < signature.operand_count(); ++o) {
    const Signature::Types& its = types_of(signature, signature.operands[o].type);
    if (its.cpu_mask == 0 || signature.operands[o].list || its.cpu_mask == its.mask) continue;
    const ConstView& view = call.view(o);
    if (!view.present() || !its.on_cpus_alone(view.dtype)) continue;
    return Status::error("%s: %s is %s, which CPUs alone take; on a GPU it must be one of %s",
                         signature.function, signature.operands[o].name, describe(view).text,
                         DTypeNames(its.mask & ~its.cpu_mask).text);
  }
  return {};
}

}  // namespace

Status check(const Signature& signature, const Call& call) {
  return signature.has_lists() ? check_lists(signature, call) : Checker(signature, call).run();
}

Status infer(const Signature& signature, const Call& call, int operand, View& inferred) {
  return Checker(signature, call).infer(operand, inferred);
}

Status call(const Queue& queue, const Op& op, const Call& call) {
  ROOFTILE_TRY(check(op.signature, call));
  ROOFTILE_TRY(check_device(queue, op.signature, call));
  if (op.workspace) ROOFTILE_TRY(check_workspace(op.function, call.workspace, op.workspace(queue, call)));
  // A list's launch leaves out what is empty.
  if (op.signature.has_lists() || !writes_nothing(op.signature, call)) return op.launch(queue, op, call);
  // Rows without columns would still be gone through one by one, 2^40 of them for minutes: as no rows.
  ConstView none[Signature::kMaxOperands];
  const ConstView* views[Signature::kMaxOperands];
  for (int o = 0; o < op.signature.operand_count(); ++o) {
    none[o] = call.view(o);
    const Signature::Shape& shape = op.signature.operands[o].shape;
    if (shape.outer && none[o].present())
      std::fill_n(none[o].shape, std::max(none[o].rank - shape.count, 0), std::int64_t{0});
    views[o] = &none[o];
  }
  Call short_call = call;
  short_call.views = views;
  return op.launch(queue, op, short_call);
}

Status workspace_of(const Queue& queue, const Op& op, const Call& call, std::size_t& bytes) {
  ROOFTILE_TRY(queue.status());
  ROOFTILE_TRY(check(op.signature, call));
  ROOFTILE_TRY(check_device(queue, op.signature, call));
  bytes = op.workspace ? op.workspace(queue, call) : 0;
  return {};
}

}  // namespace rooftile
