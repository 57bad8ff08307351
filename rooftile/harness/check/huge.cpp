// One call on more than 2^31 elements: the only place where an index in 32 bits shows.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "rooftile/harness/check/contract.h"
#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/check/standard_cases.h"

namespace rooftile::harness {
namespace {

constexpr std::int64_t kBoundary = std::int64_t{1} << 31;
constexpr std::int64_t kSmall = std::int64_t{1} << 26;  // elements of an input that is laid out in full

std::int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (std::int64_t kib; file >> key >> kib && std::getline(file, unit);)
    if (key == "MemAvailable:") return kib * 1024;
  return 0;
}

/// Memory of the kernel's: pages that are never touched cost nothing.
struct Pages {
  explicit Pages(std::size_t size) : bytes(std::max<std::size_t>(size, 1)) {
    p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Pages() {
    if (p != MAP_FAILED) munmap(p, bytes);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::size_t bytes;
  void* p;
};

/// An operand too large to lay out: each index of the first dimension begins one element behind the one
/// before, so rows differ and memory stays small. Of rank 1: one element, seen everywhere.
struct Huge {
  Operand operand;
  std::vector<double> values;  // of the window
  bool windowed = false;
  View view;
  std::unique_ptr<Pages> memory;

  std::int64_t inner() const { return count_of(operand.shape) / std::max<std::int64_t>(operand.shape[0], 1); }
  /// An operand that is read and written holds zeros, but in the rows that are looked at later.
  std::map<std::int64_t, std::vector<double>> given;

  std::byte* row(std::int64_t row) const {
    return static_cast<std::byte*>(view.mutable_data()) +
           static_cast<std::size_t>(row * inner()) * width_of(operand.dtype);
  }
  void give(std::int64_t at) {
    Operand part = operand;
    part.shape[0] = 1;
    const Bytes bytes =
        encode(operand.dtype, fill_values(part, is_floating(operand.dtype) ? Fill::normal : Fill::bytes,
                                          static_cast<std::uint64_t>(at)));
    std::memcpy(row(at), bytes.data(), bytes.size());
    given[at] = decode(operand.dtype, bytes);
  }

  /// What the call gets of one row; of an operand that all rows share, all.
  std::vector<double> input(std::int64_t row_index) const {
    if (operand.kind == Operand::Kind::output) return {};
    if (operand.kind == Operand::Kind::inout)
      return operand.batched ? given.at(row_index)
                             : std::vector<double>(static_cast<std::size_t>(count_of(operand.shape)), 0);
    if (!operand.batched) return values;
    std::vector<double> part;
    for (std::int64_t i = 0; i < inner(); ++i) {
      const std::int64_t at = !windowed                   ? row_index * inner() + i
                              : operand.shape.size() == 1 ? 0
                                                          : row_index + i;
      part.push_back(values[static_cast<std::size_t>(at)]);
    }
    return part;
  }
};

Huge make(const Operand& operand, bool ones) {
  Huge h;
  h.operand = operand;
  const std::int64_t count = count_of(operand.shape);
  const bool input = operand.kind == Operand::Kind::input;
  h.windowed = input && count > kSmall;
  Placement where = place(operand, Layout::contiguous, 0);
  std::int64_t held = count;
  if (h.windowed) {
    held = operand.shape.size() == 1 ? 1 : operand.shape[0] + h.inner();
    where.strides[0] = operand.shape.size() == 1 ? 0 : 1;
  }
  h.memory = std::make_unique<Pages>(static_cast<std::size_t>(held) * width_of(operand.dtype));
  h.view.data = h.memory->p;
  h.view.dtype = operand.dtype;
  h.view.rank = static_cast<int>(operand.shape.size());
  std::copy(operand.shape.begin(), operand.shape.end(), h.view.shape);
  std::copy(where.strides.begin(), where.strides.end(), h.view.stride);
  if (input) {
    Operand window = operand;
    window.shape = {held};
    const bool floating = is_floating(operand.dtype);
    h.values = ones ? std::vector<double>(static_cast<std::size_t>(held), 1)
                    : fill_values(window, floating ? Fill::normal : Fill::bytes, 11);
    const Bytes bytes = encode(operand.dtype, h.values);
    h.values = decode(operand.dtype, bytes);
    std::memcpy(h.memory->p, bytes.data(), bytes.size());
  }
  return h;
}

std::string check_rows(const Spec& spec, const Case& c, const std::vector<Huge>& operands, std::int64_t row,
                       const std::string& variant) {
  if (std::none_of(operands.begin(), operands.end(),
                   [](const Huge& h) { return h.operand.kind != Operand::Kind::input && h.operand.batched; }))
    return "";  // all is summed
  Case one = c;
  one.shape[0] = 1;
  std::vector<std::vector<double>> values;
  for (const Huge& h : operands) values.push_back(h.input(row));
  const Problem p(spec, one, std::move(values));
  for (std::size_t o = 0; o < operands.size(); ++o) {
    const Huge& h = operands[o];
    if (h.operand.kind == Operand::Kind::input || !h.operand.batched) continue;
    const std::size_t bytes = static_cast<std::size_t>(h.inner()) * width_of(h.operand.dtype);
    const std::byte* at = h.row(row);
    const Comparison comparison =
        compare(limits_of(spec, one, variant), p.operands()[o], p.answer(o), Bytes(at, at + bytes));
    if (!comparison.failure.empty())
      return fmt::format("row {} of {}: {}", row, h.operand.name, comparison.failure);
  }
  return "";
}

std::string check_sums(const Spec& spec, const Case& c, const Huge& h, const std::string& variant) {
  const std::int64_t count = count_of(h.operand.shape);
  Bytes bytes(static_cast<std::size_t>(count) * width_of(h.operand.dtype));
  std::memcpy(bytes.data(), h.view.data, bytes.size());
  Answer answer;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = spec.huge_output(c, h.operand.name, i);
    answer.value.push_back(value);
    answer.magnitude.push_back(std::fabs(value));
    answer.rest.push_back(0);
  }
  answer.rounded = encode(h.operand.dtype, answer.value);
  return compare(limits_of(spec, c, variant), h.operand, answer, bytes).failure;
}

}  // namespace

void check_huge(const Spec& spec, DType dtype, const Subjects& subjects, Ledger& ledger) {
  const Case c = spec.huge_case ? spec.huge_case() : Case{shape_of(spec, 65537, 32771), dtype, {}};
  const Queues& queues = subjects.isas.back();
  const Queue& queue = queues.all[Queues::kTwo].queue;
  CheckResult& result = ledger.of(queues.isa, Ledger::kChoice);
  const std::vector<Operand> operands = spec.operands(c);

  std::int64_t needed = std::int64_t{1} << 30, largest = 0;
  bool sums = false;
  for (const Operand& operand : operands) {
    const std::int64_t count = count_of(operand.shape);
    largest = std::max(largest, count);
    if (operand.kind != Operand::Kind::input) needed += bytes_of(operand.dtype, count);
    sums = sums || (operand.kind != Operand::Kind::input && !operand.batched);
  }
  if (largest <= kBoundary || (spec.suits && !spec.suits(c)) || (spec.refuses && spec.refuses(c))) {
    result.notes.push_back(fmt::format("{}: takes no shape beyond 2^31 elements", spec.function));
    return;
  }
  if (needed > available_bytes()) {
    result.notes.push_back(fmt::format("{}: {} needs {:.1f} GiB, {:.1f} GiB are free: skipped", spec.function,
                                       describe(c), static_cast<double>(needed) * 0x1p-30,
                                       static_cast<double>(available_bytes()) * 0x1p-30));
    return;
  }
  std::vector<Huge> memory;
  Arguments arguments;
  for (const Operand& operand : operands) {
    memory.push_back(make(operand, sums));
    if (memory.back().memory->p == MAP_FAILED) {
      result.notes.push_back(
          fmt::format("{}: the system gave no memory for {}: skipped", spec.function, operand.name));
      return;
    }
    arguments.add(operand.name, memory.back().view);
  }
  const std::int64_t rows = c.shape[0], across = kBoundary / std::max<std::int64_t>(largest / rows, 1);
  std::set<std::int64_t> spots = {0, 1, rows / 2, across - 1, across, across + 1, rows - 1};
  std::erase_if(spots, [&](std::int64_t row) { return row < 0 || row >= rows; });
  for (Huge& h : memory)
    if (h.operand.kind == Operand::Kind::inout && h.operand.batched)
      for (std::int64_t row : spots) h.give(row);

  std::string chosen;
  const Observed observed(queue, chosen);
  std::size_t bytes = 0;
  Status status = spec.workspace ? spec.workspace(queue, c, arguments, bytes) : Status{};
  const Pages workspace(bytes);
  if (status) status = spec.call(queue, c, arguments, nullptr, {workspace.p, bytes});
  std::string failure = status ? "" : fmt::format("is refused: {}", status.message());

  for (std::int64_t row : spots)
    if (failure.empty()) failure = check_rows(spec, c, memory, row, chosen);
  for (const Huge& h : memory) {
    if (!failure.empty() || h.operand.kind == Operand::Kind::input || h.operand.batched) continue;
    if (spec.huge_output)
      failure = check_sums(spec, c, h, chosen);
    else
      result.notes.push_back(fmt::format("{}: no huge_output in cases.h tells what {} should be",
                                         spec.function, h.operand.name));
  }
  ledger.note(queues.isa, Ledger::kChoice, failure.empty() ? "" : describe(c) + ": " + failure);
}

}  // namespace rooftile::harness
