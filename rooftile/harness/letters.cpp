#include "rooftile/harness/letters.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "rooftile/core/relations.h"
#include "rooftile/harness/signature_spec.h"
#include "rooftile/harness/tensor.h"

namespace rooftile::harness {
namespace {

/// What each letter of a signature stands for in a case.
class Letters {
 public:
  Letters(const Op& op, std::string free, const Case& c) : op_(op), free_(std::move(free)), case_(c) {
    const Shape& shape = c.shape;
    const std::size_t outer = shape.size() < free_.size() ? 0 : shape.size() - free_.size();
    outer_.assign(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(outer));
  }
  const Shape& outer() const { return outer_; }
  bool value_of(std::string_view name, std::int64_t& value) const {
    if (name == "outer") return value = count_of(outer_), true;
    if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z') return (value = size_of(name[0])) >= 0;
    for (int k = 0; k < op_.signature.option_count(); ++k)
      if (name == op_.signature.options[k].name)
        return value = static_cast<std::int64_t>(case_.parameter(name, op_.signature.options[k].otherwise)),
               true;
    return false;
  }
  ValueOf values() const {
    return {this, [](const void* self, std::string_view name, std::int64_t& value) {
              return static_cast<const Letters*>(self)->value_of(name, value);
            }};
  }
  /// -1: nothing says it.
  std::int64_t size_of(char letter) const {
    if (letter <= '9') return letter - '0';
    if (const std::size_t at = free_.find(letter); at != std::string::npos)
      return outer_.size() + at < case_.shape.size() ? case_.shape[outer_.size() + at] : -1;
    std::string_view rest = op_.signature.where;
    std::int64_t size = 0;
    for (Relation r; next_relation(rest, r);)
      if (r.gives() == letter && evaluate(r.right, values(), size) == Evaluated::known) return size;
    return -1;
  }
  /// Whether every relation holds, those that give a size included: none is negative.
  bool hold() const {
    std::string_view rest = op_.signature.where;
    for (Relation r; next_relation(rest, r);) {
      std::int64_t left = 0, right = 0;
      if (evaluate(r.left, values(), left) != Evaluated::known ||
          evaluate(r.right, values(), right) != Evaluated::known)
        return false;
      if (r.gives() && right < 0) return false;
      if (!r.holds(left, right)) return false;
    }
    return true;
  }

 private:
  const Op& op_;
  std::string free_;
  const Case& case_;
  Shape outer_;
};

/// Texts that live as long as the program: an Option's name is a pointer.
const char* kept(const std::string& text) {
  static std::map<std::string, std::string> all;
  return (all[text] = text).c_str();
}

class Function {
 public:
  explicit Function(const SpecParts& parts)
      : op_(find_op(parts.function)), independent_(parts.independent), absent_(parts.absent) {
    if (!op_) throw std::runtime_error(std::string(parts.function) + ": no such function");
    std::string given;
    std::string_view rest = signature().where;
    for (Relation r; next_relation(rest, r);)
      if (r.gives()) given += r.gives();
    for (int o = 0; o < signature().operand_count(); ++o) {
      const Signature::Shape& shape = signature().operands[o].shape;
      outer_ = outer_ || shape.outer;
      for (int k = 0; !shape.one && k < shape.count; ++k)
        if (const char letter = shape.letters[k]; letter > '9' &&
                                                  letters_.find(letter) == std::string::npos &&
                                                  given.find(letter) == std::string::npos)
          letters_ += letter;
    }
  }
  const Signature& signature() const { return op_->signature; }
  const Op& op() const { return *op_; }
  const std::string& letters() const { return letters_; }
  bool has_outer() const { return outer_; }
  bool independent(char letter) const { return independent_.find(letter) != std::string::npos; }

  double usual(const Signature::Operand& operand) const {
    return std::find(absent_.begin(), absent_.end(), operand.name) == absent_.end() ? 1 : 0;
  }
  bool has(const Case& c, const Signature::Operand& operand) const {
    return !operand.optional || c.parameter(operand.name, usual(operand)) != 0;
  }
  /// What a letter may stand for in a case: another letter's dtype first.
  std::vector<DType> choices(const Case& c, const Signature::Types& its) const {
    std::vector<DType> list;
    if (its.or_as) list.push_back(dtype(c, its.or_as));
    for (int t = 0; t < kDTypes; ++t)
      if (its.mask >> t & 1 && std::find(list.begin(), list.end(), static_cast<DType>(t)) == list.end())
        list.push_back(static_cast<DType>(t));
    return list;
  }
  DType dtype(const Case& c, char letter) const {
    for (const Signature::Types& its : signature().types) {
      if (its.letter != letter) continue;
      if (&its == &signature().types[0]) return c.dtype;
      const std::vector<DType> list = choices(c, its);
      const auto k = static_cast<std::size_t>(c.parameter(std::string(1, letter), 0));
      return list[std::min(k, list.size() - 1)];
    }
    throw std::runtime_error(std::string(signature().function) + ": a dtype's letter is not declared");
  }
  std::vector<Operand> operands(const Case& c) const {
    const Letters letters(*op_, letters_, c);
    std::vector<Operand> list;
    bool first_output = true;
    for (int o = 0; o < signature().operand_count(); ++o) {
      const Signature::Operand& s = signature().operands[o];
      if (!has(c, s)) continue;
      Operand operand{s.name, Operand::Kind::input, dtype(c, s.type), {}};
      if (s.role != Signature::Role::input)
        operand.kind = s.role == Signature::Role::output ? Operand::Kind::output : Operand::Kind::inout;
      operand.optional = s.optional;
      operand.shape = shape_of(s, letters);
      operand.batched = (s.shape.outer && !letters.outer().empty()) ||
                        (!s.shape.one && s.shape.count > 0 && independent(s.shape.letters[0]));
      operand.keeps_layout = s.shape.outer || s.shape.count > 1;
      if (s.below) operand.below = std::max<std::int64_t>(letters.size_of(s.below), 1);
      if (operand.kind == Operand::Kind::output && first_output) operand.may_be = first_there(s.may_be, list);
      first_output = first_output && operand.kind == Operand::Kind::input;
      if (!s.list || tensors_of(signature(), c) > 0) list.push_back(operand);
      for (std::int64_t item = 1; s.list && item < tensors_of(signature(), c); ++item) {
        Operand more = operand;
        more.name = kept(item_name(s.name, item));
        Case its = c;
        if (!letters.outer().empty()) its.shape[0] += item;
        more.shape = shape_of(s, Letters(*op_, letters_, its));
        list.push_back(more);
      }
    }
    return list;
  }
  std::vector<Option> options() const {
    std::vector<Option> list = options_of(signature());
    for (int o = 0; o < signature().operand_count(); ++o)
      if (const Signature::Operand& s = signature().operands[o]; s.optional)
        list.push_back({s.name, Option::Kind::choice, usual(s), 0, 1});
    if (signature().has_lists()) list.push_back({kTensors, Option::Kind::choice, 1, 1, 3});
    for (const Signature::Types& its : signature().types)
      if (its.letter && &its != &signature().types[0] && choices({}, its).size() > 1)
        list.push_back({kept(std::string(1, its.letter)), Option::Kind::choice, 0, 0,
                        static_cast<double>(choices({}, its).size() - 1)});
    return list;
  }

 private:
  static Shape shape_of(const Signature::Operand& s, const Letters& letters) {
    Shape shape;
    if (s.shape.one) return {1};
    if (s.shape.outer) shape = letters.outer();
    for (int k = 0; k < s.shape.count; ++k)
      shape.push_back(std::max<std::int64_t>(letters.size_of(s.shape.letters[k]), 0));
    return shape;
  }
  /// The first of these inputs that a case has.
  static const char* first_there(const char* words, const std::vector<Operand>& list) {
    for (const Operand& operand : list) {
      const std::string all = std::string(" ") + words + " ";
      if (all.find(std::string(" ") + operand.name + " ") != std::string::npos) return operand.name;
    }
    return nullptr;
  }

  const Op* op_;
  std::string independent_, letters_;
  std::vector<std::string> absent_;
  bool outer_ = false;
};

std::string axes_of(const Function& f) {
  std::string text = f.has_outer() ? "outer sizes" : "";
  for (char letter : f.letters()) text += (text.empty() ? "" : " x ") + std::string(1, letter);
  return text;
}

}  // namespace

Spec spec_of(const SpecParts& parts) {
  const Function f(parts);
  Spec spec{};
  spec.function = f.op().function;
  spec.axes = kept(axes_of(f));
  spec.dtypes = dtypes_of(f.signature());
  spec.operands = [f](const Case& c) { return f.operands(c); };
  spec.options = f.options();
  spec.call = [f, options = options_of(f.signature())](const Queue& queue, const Case& c,
                                                       const Arguments& arguments, const char* variant,
                                                       Workspace workspace) {
    return with_call(f.signature(), options, c, arguments, [&](Call its) {
      its.variant = variant;
      its.workspace = workspace;
      return call(queue, f.op(), its);
    });
  };
  if (f.op().workspace)
    spec.workspace = [f, options = options_of(f.signature())](
                         const Queue& queue, const Case& c, const Arguments& arguments, std::size_t& bytes) {
      return with_call(f.signature(), options, c, arguments,
                       [&](const Call& its) { return workspace_of(queue, f.op(), its, bytes); });
    };
  spec.oracle = parts.oracle;
  spec.tolerance = parts.tolerance;
  spec.bytes = [f](const Case& c) {
    double sum = 0;
    for (const Operand& o : f.operands(c))
      sum += (o.kind == Operand::Kind::inout ? 2. : 1.) *
             static_cast<double>(bytes_of(o.dtype, count_of(o.shape)));
    return sum;
  };
  spec.standard = false;
  spec.letters = f.letters();
  spec.outer = f.has_outer();
  spec.independent = parts.independent;
  spec.suits = [f](const Case& c) { return Letters(f.op(), f.letters(), c).hold(); };
  if (std::strcmp(f.op().direction, "backward") == 0) spec.gradient_of = f.op().name;
  return spec;
}

double list_elements(const Case& c) {
  double sum = 0;
  for (std::int64_t item = 0; item < static_cast<std::int64_t>(c.parameter(kTensors, 1)); ++item) {
    double n = 1;
    for (std::size_t d = 0; d < c.shape.size(); ++d)
      n *= static_cast<double>(c.shape[d] + (d == 0 ? item : 0));
    sum += n;
  }
  return sum;
}

}  // namespace rooftile::harness
