#include "cli/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "cli/failure.h"
#include "rooftile/backend/cpu/isa.h"

namespace rooftile::cli {
namespace {

/// Letters to change, add or drop from one word to the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = above;
    }
  }
  return row[b.size()];
}

/// Our name of a dtype by the one that other libraries give it, or nothing.
std::string dtype_called(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"float", "f32"},     {"single", "f32"}, {"half", "f16"},      {"double", "f64"},  {"bfloat", "bf16"},
      {"bfloat16", "bf16"}, {"int", "i32"},    {"long", "i64"},      {"char", "i8"},     {"byte", "u8"},
      {"boolean", "bool"},  {"fp8", "f8e4m3"}, {"float8", "f8e4m3"}, {"e4m3", "f8e4m3"}, {"e5m2", "f8e5m2"}};
  for (const auto& [other, ours] : kOthers)
    if (word == other) return std::string(ours);
  // fp32, float32, int8, uint8: the kind's letter, then the bits.
  for (const auto& [kind, letter] :
       {std::pair<std::string_view, char>{"fp", 'f'}, {"float", 'f'}, {"int", 'i'}, {"uint", 'u'}})
    if (word.starts_with(kind)) {
      const std::string ours = letter + std::string(word.substr(kind.size()));
      for (int i = 0; i < kDTypes; ++i)
        if (ours == name(static_cast<DType>(i))) return ours;
    }
  return {};
}

std::int64_t parse_size(std::string_view size, const std::string& whole) {
  if (size.empty()) refuse("shape \"{}\": a size is missing; write it as 64x1024", whole);
  if (size[0] == '-') refuse("shape \"{}\": size {} is negative", whole, size);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), value);
  if (error == std::errc::result_out_of_range)
    refuse("shape \"{}\": size {} is beyond 2^63 - 1", whole, size);
  if (error != std::errc() || end != size.data() + size.size())
    refuse("shape \"{}\": \"{}\" is no size; write it as 64x1024", whole, size);
  return value;
}

/// Numbers of sizes that the spec's operands can be made from.
std::pair<std::size_t, std::size_t> ranks(const harness::Spec& spec) {
  const std::string axes = spec.axes;
  const std::string named = axes.substr(0, axes.find('('));
  std::size_t count = 1;
  for (std::size_t at = named.find(" x "); at != named.npos; at = named.find(" x ", at + 3)) ++count;
  std::size_t least = count, most = count;
  const auto widen = [&](const std::vector<harness::Case>& cases) {
    for (const harness::Case& c : cases) {
      least = std::min(least, c.shape.size());
      most = std::max(most, c.shape.size());
    }
  };
  if (spec.cases) widen(spec.cases());
  if (axes.starts_with("any")) least = 1, most = kMaxRank;  // "any shape"
  if (axes.find('(') != axes.npos) most = kMaxRank;  // "rows x columns (more outer dimensions may precede)"
  return {least, most};
}

}  // namespace

harness::Shape parse_shape(const std::string& text) {
  constexpr std::string_view kTimes = "×";
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    const bool times = text.compare(i, kTimes.size(), kTimes) == 0;
    plain += times ? 'x' : text[i];
    i += times ? kTimes.size() : 1;
  }
  constexpr std::size_t kMostSizes = 16;  // one for each letter of a signature: paged attention has nine
  harness::Shape shape;
  std::string_view rest = plain;
  while (true) {
    const std::size_t end = rest.find('x');
    shape.push_back(parse_size(rest.substr(0, end), text));
    if (shape.size() > kMostSizes) refuse("shape \"{}\": more than {} sizes", text, kMostSizes);
    if (end == rest.npos) return shape;
    rest.remove_prefix(end + 1);
  }
}

std::vector<harness::Shape> parse_shapes(const std::vector<std::string>& texts) {
  std::vector<harness::Shape> shapes;
  for (const std::string& text : texts) shapes.push_back(parse_shape(text));
  return shapes;
}

DType parse_dtype(const std::string& text) {
  std::vector<std::string> names;
  for (int i = 0; i < kDTypes; ++i) {
    const DType type = static_cast<DType>(i);
    if (text == name(type)) return type;
    names.emplace_back(name(type));
  }
  refuse("no dtype \"{}\"{}; there are {}", text, suggestion(text, names, dtype_called(text)),
         fmt::join(names, " "));
}

std::vector<DType> parse_dtypes(const std::vector<std::string>& texts) {
  std::vector<DType> types;
  for (const std::string& text : texts) types.push_back(parse_dtype(text));
  return types;
}

std::map<std::string, double> parse_parameters(const harness::Spec& spec,
                                               const std::vector<std::string>& texts) {
  std::map<std::string, double> parameters;
  if (texts.empty()) return parameters;
  std::set<std::string> known;
  if (spec.cases)
    for (const harness::Case& c : spec.cases())
      for (const auto& [name, value] : c.parameters) known.insert(name);
  for (const std::string& text : texts) {
    const std::size_t sign = text.find('=');
    const std::string name = text.substr(0, sign);
    if (sign == text.npos || name.empty()) refuse("--set {}: write it as name=value", text);
    if (!known.count(name))
      refuse("{} has no parameter \"{}\"{}{}", spec.function, name,
             suggestion(name, {known.begin(), known.end()}),
             known.empty() ? std::string("; it has none")
                           : fmt::format("; there are: {}", fmt::join(known, ", ")));
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + sign + 1, end, value);
    if (error != std::errc() || stopped != end || !std::isfinite(value))
      refuse("--set {}: \"{}\" is no number", text, text.substr(sign + 1));
    parameters[name] = value;
  }
  return parameters;
}

std::vector<const Op*> select_ops(const std::vector<std::string>& names, std::string_view direction) {
  std::vector<const Op*> chosen;
  std::vector<std::string> known;
  for (const Op* op : all_ops())
    for (const char* name : {op->function, op->name})
      if (std::find(known.begin(), known.end(), name) == known.end()) known.emplace_back(name);
  const auto fits = [&](const Op* op) { return direction.empty() || direction == op->direction; };
  const auto add = [&](const Op* op) {
    if (std::find(chosen.begin(), chosen.end(), op) == chosen.end()) chosen.push_back(op);
  };
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      refuse("no op \"{}\"{}; `rooftile list` names them all", name, suggestion(name, known));
    bool any = false;
    for (const Op* op : all_ops())
      if ((name == op->function || name == op->name) && fits(op)) add(op), any = true;
    if (!any) refuse("{} has no {} function", name, direction);
  }
  if (names.empty())
    for (const Op* op : all_ops())
      if (fits(op)) add(op);
  if (chosen.empty()) refuse("there is no op");
  return chosen;
}

std::vector<std::string> functions_of(const std::vector<const Op*>& ops) {
  std::vector<std::string> functions;
  for (const Op* op : ops) functions.emplace_back(op->function);
  return functions;
}

void check_variants(const std::vector<const Op*>& ops, const std::vector<std::string>& names,
                    const std::string& device) {
  std::vector<std::string> known;
  for (const Op* op : ops)
    for (const Variant& variant : op->variants) known.emplace_back(variant.name);
  const auto is_all = [&](const std::string& name, Role role) {
    for (const Op* op : ops)
      for (const Variant& variant : op->variants)
        if (name == variant.name && variant.role != role) return false;
    return true;
  };
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      refuse("{}: no variant \"{}\"{}; `rooftile list` names them all", fmt::join(functions_of(ops), ", "),
             name, suggestion(name, known));
    if (device == "cpu" && is_all(name, Role::gpu_rung))
      refuse(
          "{} is a rung of the GPU's ladder: --device emulated runs it on this CPU, --device cuda on a GPU",
          name);
    if (!device.empty() && device != "cpu" && is_all(name, Role::rung))
      refuse("{} is a rung of the CPU's ladder, which --device {} does not run", name, device);
  }
}

void check_isas(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    cpu::Isa isa{};
    if (!cpu::parse(name, isa))
      refuse("no instruction set \"{}\"{}; there are {}", name, suggestion(name, cli::isas()),
             fmt::join(cli::isas(), " "));
    if (const char* why = cpu::missing(isa)) fail("{} cannot run here: {}", name, why);
  }
}

std::vector<std::string> isas_of(const std::string& device, const std::vector<std::string>& isas) {
  if (std::find(devices().begin(), devices().end(), device) == devices().end())
    refuse("no device \"{}\"{}; there are {}", device, suggestion(device, devices()),
           fmt::join(devices(), " "));
  check_isas(isas);
  if (device == "cpu") return isas;
  if (!isas.empty())
    refuse("--isa {}: instruction sets are the CPU's, --device is {}", fmt::join(isas, ","), device);
  return {device};
}

void check_rank(const harness::Spec& spec, const harness::Shape& shape) {
  const auto [least, most] = ranks(spec);
  if (shape.size() < least || shape.size() > most)
    refuse("shape \"{}\": {} takes {}, {} given", to_text(shape), spec.function, spec.axes,
           shape.size() == 1 ? std::string("1 size is") : fmt::format("{} sizes are", shape.size()));
}

double operand_bytes(const harness::Spec& spec, const harness::Case& c) {
  double total = 0;
  for (const harness::Operand& operand : spec.operands(c)) {
    double bytes = bits(operand.dtype) / 8.0;
    for (const std::int64_t size : operand.shape) bytes *= static_cast<double>(size);
    total += bytes;
  }
  return total;
}

const std::vector<std::string>& devices() {
  static const std::vector<std::string> names = {"cpu", "cuda", "emulated", "emulated-checked"};
  return names;
}

const std::vector<std::string>& isas() {
  static const std::vector<std::string> names = {"baseline", "avx2", "avx512"};
  return names;
}

const std::vector<std::string>& layouts() {
  static const std::vector<std::string> names = {"contiguous", "padded_rows", "strided_columns",
                                                 "transposed"};
  return names;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names, std::string best) {
  if (!best.empty()) return fmt::format(" (did you mean {}?)", best);
  std::size_t least = 3;
  if (word.size() > 64) return best;
  for (const std::string& name : names) {
    const std::size_t d = distance(word, name);
    if (d < least && d < name.size()) least = d, best = name;
  }
  return best.empty() ? best : fmt::format(" (did you mean {}?)", best);
}

const char* role_name(Role role) {
  constexpr const char* kNames[] = {"standard", "named", "rung", "oracle", "GPU rung"};
  return kNames[static_cast<int>(role)];
}

std::string to_text(const harness::Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

}  // namespace rooftile::cli
