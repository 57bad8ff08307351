#pragma once
// What the words of a command line mean. Each function refuses with a sentence that shows the word.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/op.h"
#include "rooftile/harness/spec.h"

namespace rooftile::cli {

/// "64x1024"; also "64×1024". One to eight whole numbers from 0.
harness::Shape parse_shape(const std::string& text);
std::vector<harness::Shape> parse_shapes(const std::vector<std::string>& texts);

DType parse_dtype(const std::string& text);
std::vector<DType> parse_dtypes(const std::vector<std::string>& texts);

/// "scale=0.5"; names that `spec`'s own cases do not use are refused.
std::map<std::string, double> parse_parameters(const harness::Spec& spec,
                                               const std::vector<std::string>& texts);

/// Functions by name; an op's name stands for its forward and its backward function. No name: all.
/// `direction` keeps those of "forward" or "backward"; empty: both.
std::vector<const Op*> select_ops(const std::vector<std::string>& names, std::string_view direction = {});
std::vector<std::string> functions_of(const std::vector<const Op*>& ops);

/// Each name is a variant of one of the ops at least, and, where a device is named, no rung of the other
/// ladder.
void check_variants(const std::vector<const Op*>& ops, const std::vector<std::string>& names,
                    const std::string& device = {});

/// Each name is an instruction set that this CPU runs.
void check_isas(const std::vector<std::string>& names);

/// What --device and --isa ask for together, as CheckOptions::isas takes it.
std::vector<std::string> isas_of(const std::string& device, const std::vector<std::string>& isas);

/// The shape has as many sizes as the op's cases.h says.
void check_rank(const harness::Spec& spec, const harness::Shape& shape);

/// What the operands of a case take in memory, all together; infinite where a size overflows.
double operand_bytes(const harness::Spec& spec, const harness::Case& c);

/// The names that --device, --isa and --layout take.
const std::vector<std::string>& devices();
const std::vector<std::string>& isas();
const std::vector<std::string>& layouts();

/// " (did you mean softmax?)", or nothing where no name is near. `best`: the name, where it is known already.
std::string suggestion(std::string_view word, const std::vector<std::string>& names, std::string best = {});

/// "standard", "named", "rung", "oracle" or "GPU rung".
const char* role_name(Role role);

/// "64x1024"
std::string to_text(const harness::Shape& shape);

}  // namespace rooftile::cli
