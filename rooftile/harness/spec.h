#pragma once
// What an op tells the harness about itself, in its cases.h: the one source for check, bench, gradients, why
// and docs.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/op.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"
#include "rooftile/harness/arrays.h"

namespace rooftile::harness {

using Shape = std::vector<std::int64_t>;

/// How the operands of a case lie in memory. The outermost dimensions keep their meaning in each.
enum class Layout {
  contiguous,
  offset,           ///< contiguous, beginning `Case::offset` elements behind a 64-byte boundary
  padded_rows,      ///< rows further apart than they are long, by an odd number of elements
  strided_columns,  ///< every second element
  reversed,         ///< negative strides in every dimension
  transposed,       ///< the last two dimensions exchanged in memory
  broadcast,        ///< inputs: a stride of 0 in the first dimension; outputs: padded_rows
};

/// What the inputs hold.
enum class Fill {
  normal,         ///< standard normal, rounded to the dtype
  wide,           ///< normal · 2^k, k uniform in -12 … 12
  positive,       ///< |normal|
  constant_rows,  ///< one value throughout
  large_offset,   ///< 1000 + normal: cancels in a variance by E[x²] - E[x]²
  zeros,
  denormals,         ///< around the dtype's smallest normal number
  one_infinity,      ///< normal, one +inf in each row
  minus_infinities,  ///< normal, half of each row -inf; a whole row -inf where there are several
  masked,            ///< a causal mask's row: normal - 95 at its beginning, then -inf throughout
  one_nan,           ///< normal, one NaN in each row
  huge,              ///< up to the dtype's largest numbers, of both signs, among normal ones
  huge_rows,         ///< each row one huge value throughout, of either sign: a masked one's
  far_rows,          ///< rows whose squares leave f32, in each way, among normal ones
  bytes,             ///< integers: uniform over the whole range of the dtype
};

struct Case {
  Shape shape;  ///< in the op's own terms (Spec::axes)
  DType dtype = DType::f32;
  std::map<std::string, double> parameters;  ///< "scale", "eps", …; flags are 0 or 1
  Layout layout = Layout::contiguous;
  Fill fill = Fill::normal;
  std::int64_t offset = 0;  ///< in elements, with Layout::offset
  bool in_place = false;    ///< outputs with Operand::may_be share that input's memory

  double parameter(std::string_view name, double otherwise = 0) const {
    for (const auto& [its, value] :
         parameters)  // a few, asked for at each element: no string is made of `name`
      if (its == name) return value;
    return otherwise;
  }
};

/// A number beside the operands, or whether an optional operand is there: by its name in Case::parameters.
struct Option {
  enum class Kind {
    real,   ///< any number from `least` to `most`
    choice  ///< a whole one
  };
  const char* name;
  Kind kind = Kind::choice;
  double otherwise = 0;  ///< what a case has that does not say
  double least = 0, most = 1;
};
/// The largest number of an option that is a float.
inline constexpr double kMaxFloat = 0x1.fffffep127;

struct Operand {
  enum class Kind { input, output, inout };
  const char* name;
  Kind kind;
  DType dtype;
  Shape shape;
  bool batched = true;           ///< its first dimension counts rows that know nothing of each other
  const char* may_be = nullptr;  ///< the input whose memory this output may be
  bool keeps_layout = true;      ///< follows Case::layout; false: contiguous but in random cases (a weight)
  bool optional = false;         ///< a call without it is no error, though this case has it
  std::int64_t below = 0;        ///< integers: indices, 0 <= value < below; 0: any
  bool positive = false;         ///< a bench's values: divided by or taken roots of, never near zero or below
};

/// What a case's call gets: views by operand name; an operand that the case lacks is absent.
class Arguments {
 public:
  void add(const std::string& name, const View& view) { views_[name] = view; }
  ConstView in(const std::string& name) const { return find(name); }
  View out(const std::string& name) const { return find(name); }

 private:
  View find(const std::string& name) const {
    const auto it = views_.find(name);
    return it == views_.end() ? View{} : it->second;
  }
  std::map<std::string, View> views_;
};

/// |error| ≤ max(u(output)·|y|, half the output's smallest subnormal) + c·√K·u(accumulator)·magnitude, where
/// the oracle gives the magnitude of each output element: Σ|terms| carried through the equation. A variant
/// that rounds factors to a short dtype on their way may be off by `factor_rounding` times Σ|terms| of those
/// more.
struct Tolerance {
  bool exact = false;  ///< no arithmetic: every bit must match
  double c = 2;        ///< at most 8
  /// K: the longest chain of additions in this variant; 1 for none.
  double (*chain)(const Case&, std::string_view variant) = nullptr;
  DType (*accumulator)(const Case&) = nullptr;
  /// 0 for a variant that rounds none.
  double (*factor_rounding)(const Case&, std::string_view variant) = nullptr;
  const char* reason = "";
};

/// A wrong result that equals the right answer by nature, and why that is so.
struct Excuse {
  const char* wrong_result;  ///< "zeros", "constant", "input" or "input NAME", "last_row", "last_column",
                             ///< "unread_tail", "lower_precision"
  const char* reason;
  bool (*applies)(const Case&) = nullptr;  ///< null: to every case
  const char* operand = nullptr;           ///< the output it is about; null: each
};

/// Shapes to time, all in the case's terms.
struct BenchCases {
  std::vector<Case> cache;  ///< fits a second-level cache of 1 MiB; the first is the one of `make report`
  std::vector<Case>
      memory;  ///< at least 8 times any last-level cache… made longer by the harness (scale_memory)
  std::vector<Case> gpu;    ///< for a GPU: 128 MiB or more, Case::offset elements behind a boundary
  std::vector<Case> sweep;  ///< speed against size, 4 KiB to 1 GiB moved; empty: none
};

struct Spec {
  const char* function;  ///< Op::function, by which its variants are found
  const char* axes;      ///< what a shape's numbers mean: "rows x columns"
  std::vector<DType> dtypes;
  std::function<std::vector<Operand>(const Case&)> operands;
  std::function<Status(const Queue&, const Case&, const Arguments&, const char* variant, Workspace)> call;
  std::function<Status(const Queue&, const Case&, const Arguments&, std::size_t& bytes)> workspace =
      {};                                    ///< empty: none
  OracleFunctions oracle;                    ///< oracles<SoftmaxOracle>()
  std::function<double(const Case&)> flops;  ///< each + - · / max exp … counts one
  /// What tensor cores multiply, whose rate is the limit; null: the case's dtype.
  DType (*multiplies)(const Case&) = nullptr;
  std::function<double(const Case&)>
      bytes;  ///< each operand's touched elements, once; an inout's once read, once written
  Tolerance tolerance;
  std::vector<Excuse> excuses = {};
  std::function<std::vector<Case>()> cases;  ///< the op's own, beside those of standard_cases(spec)
  std::function<BenchCases()> bench;
  const char* gradient_of = nullptr;  ///< the forward function, whose finite differences check this backward
  std::vector<Option> options = {};   ///< each that the function has; cases try them with hostile inputs

  // How the cases that the harness adds by itself (standard_cases, random ones) fit this op.
  bool standard = true;  ///< false: none of them
  /// What rows hold, beside normal numbers, whose bits must not depend on the rows around them.
  std::vector<Fill> fills_alone = {};
  int least_rank = 1;  ///< random shapes have this rank or more
  /// Huge inputs stay below 2^this, for sums, squares and products of inputs to be numbers; as floats go:
  /// none.
  int largest_exponent = 1024;
  /// {rows, columns} in the op's terms; empty: the same.
  std::function<Shape(const Shape& rows_columns)> standard_shape = {};
  /// False drops a case that means nothing here; empty: all do.
  std::function<bool(const Case&)> suits = {};
  /// A shape's letters behind the outer sizes (rooftile/harness/letters.h); empty: rows x columns.
  std::string letters = {};
  bool outer = true;  ///< whether outer sizes may stand before the letters
  std::string independent =
      {};  ///< letters whose indices know nothing of each other: a product's rows and columns
  /// Whether a random input may show one element at several indices; not where inputs follow from each other,
  /// as a backward's lse does from what it went forward on.
  bool repeats = true;
  /// Makes a random shape one that means something: heads a multiple of their groups.
  std::function<void(Case&)> adjust = {};
  /// Changes the filled inputs, before they are rounded to their dtype: indices that must lie in a range,
  /// say.
  void (*prepare)(const Case&, Arrays<double>& inputs) = nullptr;
  /// In a bench: element i of an operand of indices, where random ones below their bound would not do; null:
  /// they do.
  std::int64_t (*bench_index)(const Case&, std::string_view operand, std::int64_t i) = nullptr;
  /// In a bench: writes what a filled input must hold besides values, a header; null: nothing.
  void (*bench_prepare)(const Case&, const Arguments&) = nullptr;
  /// A word of the sentence by which the op refuses this case, which it then must; null: it takes the case.
  const char* (*refuses)(const Case&) = nullptr;
  /// The case of more than 2^31 elements; null: {65537, 32771} in the op's terms, the dtype of fewest bits.
  Case (*huge_case)() = nullptr;
  /// Beyond 2^31 elements: the right answer of an output that is not batched where every input is 1
  /// throughout.
  double (*huge_output)(const Case&, std::string_view operand, std::int64_t index) = nullptr;

  /// What the launches choose on a GPU by numbers of their own, in sentences for `rooftile why --device`;
  /// null: they tell nothing.
  std::vector<std::string> (*gpu_plan)(const Case&) = nullptr;

  const char* folder = "";  ///< of rooftile/ops; all_specs() knows it
};

/// How many sizes stand before the letters.
std::size_t outer_sizes(const Spec& spec, const Case& c);
/// The dimensions of a case's shape whose indices know nothing of each other: the outermost, and those of
/// independent letters.
std::vector<std::size_t> independent_dimensions(const Spec& spec, const Case& c);

/// Every spec, from the op folders' cases.h; generated.
const std::vector<Spec>& all_specs();

/// The op of a spec, and the spec of a function's name; null where there is none.
const Op* find_op(std::string_view function);
const Spec* find_spec(std::string_view function);

}  // namespace rooftile::harness
