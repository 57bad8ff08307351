#include "rooftile/harness/bench/bench_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <stdexcept>

#include "rooftile/core/convert.h"
#include "rooftile/harness/bench/machine.h"
#include "rooftile/harness/bench/timing.h"
#include "rooftile/harness/check/fill.h"
#include "rooftile/harness/tensor.h"

namespace rooftile::harness {
namespace {

// A prime, so that rows of usual lengths begin at ever other places of the pattern.
constexpr std::int64_t kPatternElements = 65521;
// Operands a power of two apart share cache sets and DRAM banks: cost a copy 5 to 10% in memory. In cache a
// gap would cost room. As the roofs are measured.
constexpr std::size_t kGap = (std::size_t{1} << 20) + 2048, kGapFrom = std::size_t{4} << 20;

/// SplitMix64: Steele, Lea and Flood, 2014.
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
};

double value(Fill fill, Random& random) {
  const double normal = random.normal();
  switch (fill) {
    case Fill::wide:
      return std::ldexp(normal, static_cast<int>(random.next() % 25) - 12);
    case Fill::positive:
      return std::fabs(normal);
    case Fill::constant_rows:
      return 0.75;
    case Fill::large_offset:
      return 1000 + normal;
    default:
      return normal;
  }
}

template <class T>
void put(char* to, std::int64_t i, T v) {
  std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)), &v, sizeof(T));
}
template <class T>
T get(const void* from, std::int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(from) + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return v;
}

/// `below`: of an integer that is an index; 0: any.
void set_element(char* to, DType dtype, std::int64_t i, double v, Random& random, std::int64_t below) {
  const std::uint64_t number =
      below > 0 ? random.next() % static_cast<std::uint64_t>(below) : random.next() % 100;
  switch (dtype) {
    case DType::f64:
      return put(to, i, v);
    case DType::f32:
      return put(to, i, static_cast<float>(v));
    case DType::tf32:
      return put(to, i, from_double<tf32>(v));
    case DType::f16:
      return put(to, i, from_double<f16>(v));
    case DType::bf16:
      return put(to, i, from_double<bf16>(v));
    case DType::f8e4m3:
      return put(to, i, from_double<f8e4m3>(v));
    case DType::f8e5m2:
      return put(to, i, from_double<f8e5m2>(v));
    case DType::i64:
      return put(to, i, static_cast<std::int64_t>(number));
    case DType::i32:
      return put(to, i, static_cast<std::int32_t>(number));
    case DType::boolean:
      return put(to, i, static_cast<std::uint8_t>(random.next() % 2));
    case DType::i8:
    case DType::u8:
      return put(to, i, static_cast<std::uint8_t>(random.next()));
    case DType::u4:
      to[i / 2] = static_cast<char>(random.next());
      return;
  }
}

std::vector<char> pattern_of(const Operand& operand, Fill fill, std::uint64_t seed) {
  Random random{seed};
  const std::string_view name = operand.name;
  const bool scale = operand.positive || name == "rstd" || name == "norm";
  std::vector<char> pattern(static_cast<std::size_t>(bytes_of(operand.dtype, kPatternElements + 1)));
  pattern.resize(static_cast<std::size_t>(bytes_of(operand.dtype, kPatternElements / 2 * 2)));
  for (std::int64_t i = 0; i < kPatternElements / 2 * 2; ++i) {
    const double v = scale ? 0.5 + std::fabs(random.normal()) : value(fill, random);
    set_element(pattern.data(), operand.dtype, i, v, random, operand.below);
  }
  return pattern;
}

/// All of the op's own indices.
std::vector<char> indices_of(const Spec& spec, const Case& c, const Operand& operand) {
  const std::int64_t size = count_of(operand.shape);
  std::vector<char> all(static_cast<std::size_t>(std::max<std::int64_t>(bytes_of(operand.dtype, size), 1)));
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t value = spec.bench_index(c, operand.name, i);
    if (operand.dtype == DType::i64)
      put(all.data(), i, value);
    else
      put(all.data(), i, static_cast<std::int32_t>(value));
  }
  return all;
}

View dense_view(void* data, DType dtype, const Shape& shape) {
  View view;
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    view.shape[d] = shape[static_cast<std::size_t>(d)];
    view.stride[d] = stride;
    stride *= std::max<std::int64_t>(view.shape[d], 1);
  }
  return view;
}

}  // namespace

std::string dimensions(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

void repeat(char* to, std::size_t bytes, const std::vector<char>& pattern) {
  for (std::size_t at = 0; at < bytes; at += pattern.size())
    std::memcpy(to + at, pattern.data(), std::min(pattern.size(), bytes - at));
}

double element(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::f64:
      return get<double>(data, i);
    case DType::f32:
    case DType::tf32:
      return static_cast<double>(get<float>(data, i));
    case DType::f16:
      return static_cast<double>(to_float(get<f16>(data, i)));
    case DType::bf16:
      return static_cast<double>(to_float(get<bf16>(data, i)));
    case DType::f8e4m3:
      return static_cast<double>(to_float(get<f8e4m3>(data, i)));
    case DType::f8e5m2:
      return static_cast<double>(to_float(get<f8e5m2>(data, i)));
    case DType::i64:
      return static_cast<double>(get<std::int64_t>(data, i));
    case DType::i32:
      return get<std::int32_t>(data, i);
    case DType::i8:
      return get<std::int8_t>(data, i);
    case DType::u8:
    case DType::boolean:
      return get<std::uint8_t>(data, i);
    case DType::u4:
      return i % 2 ? get<std::uint8_t>(data, i / 2) & 15 : get<std::uint8_t>(data, i / 2) >> 4;
  }
  return 0;
}

BenchData::BenchData(const Spec& spec, const Case& c) : case_(c), prepare_(spec.bench_prepare) {
  if (c.layout != Layout::contiguous && c.layout != Layout::offset)
    throw std::runtime_error(
        fmt::format("{}: the bench times contiguous operands, this case has others", spec.function));
  finite_inputs_ = finite(c.fill);
  std::size_t size = 0;
  std::vector<std::size_t> at;
  std::vector<int> shares;
  for (const Operand& operand : spec.operands(c)) {
    Placed placed{operand, dense_view(nullptr, operand.dtype, operand.shape), 0, {}};
    placed.bytes = static_cast<std::size_t>(bytes_of(operand.dtype, placed.view.size()));
    int shared = -1;
    for (std::size_t i = 0; c.in_place && operand.may_be && i < operands_.size(); ++i)
      if (operands_[i].operand.name == std::string_view(operand.may_be)) shared = static_cast<int>(i);
    std::size_t start = size;
    if (shared < 0) {
      if (c.layout == Layout::offset && operand.keeps_layout)
        start += static_cast<std::size_t>(bytes_of(operand.dtype, c.offset));
      size = (start + placed.bytes + 63) / 64 * 64 + (placed.bytes >= kGapFrom ? kGap : 0);
      bytes_ += placed.bytes;
    }
    at.push_back(start);
    shares.push_back(shared);
    operands_.push_back(std::move(placed));
  }
  if (size > available_memory_bytes() / 10 * 9)
    throw std::runtime_error(fmt::format("{} {} needs {} MiB, {} MiB of memory are free", spec.function,
                                         dimensions(c.shape), size >> 20, available_memory_bytes() >> 20));
  block_ = MemoryBlock(std::max<std::size_t>(size, 64));
  if (block_.data() == nullptr)
    throw std::runtime_error(fmt::format("{} {}: the system refused {} MiB of memory", spec.function,
                                         dimensions(c.shape), size >> 20));
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    Placed& placed = operands_[i];
    const bool shared = shares[i] >= 0;
    if (shared) {
      Placed& input = operands_[static_cast<std::size_t>(shares[i])];
      placed.view.data = input.view.data;
      placed.operand.kind = Operand::Kind::inout;
      placed.pattern = input.pattern;
    } else {
      placed.view.data = block_.data() + at[i];
      if (placed.operand.kind != Operand::Kind::output)
        placed.pattern = spec.bench_index && placed.operand.below > 0
                             ? indices_of(spec, c, placed.operand)
                             : pattern_of(placed.operand, c.fill, 0x5eed + 977 * i);
    }
    arguments_.add(placed.operand.name, placed.view);
  }
  refill();
  poison(0xff);
}

bool BenchData::changes_inputs() const {
  return std::any_of(operands_.begin(), operands_.end(),
                     [](const Placed& p) { return p.operand.kind == Operand::Kind::inout; });
}

void BenchData::refill() {
  for (const Placed& p : operands_)
    if (!p.pattern.empty()) repeat(static_cast<char*>(p.view.mutable_data()), p.bytes, p.pattern);
  if (prepare_) prepare_(case_, arguments_);
}

void BenchData::poison(unsigned char with) {
  for (const Placed& p : operands_)
    if (p.operand.kind == Operand::Kind::output && p.bytes > 0)
      std::memset(p.view.mutable_data(), with, p.bytes);
}

std::uint64_t BenchData::hash() const {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  constexpr std::size_t kLanes = 4;  // one chain of multiplications would take 3 ns for each 8 bytes
  std::uint64_t lanes[kLanes] = {1, 2, 3, 4};
  for (const Placed& p : operands_) {
    if (!p.written()) continue;
    const char* from = static_cast<const char*>(p.view.data);
    std::size_t left = p.bytes;
    for (; left > 0;) {
      std::uint64_t words[kLanes] = {};
      const std::size_t part = std::min(left, sizeof words);
      std::memcpy(words, from, part);
      for (std::size_t k = 0; k < kLanes; ++k)
        lanes[k] = (lanes[k] ^ words[k] ^ lanes[k] >> 29) * kMultiplier;
      from += part;
      left -= part;
    }
  }
  std::uint64_t all = 0;
  for (const std::uint64_t lane : lanes) all = (all ^ lane ^ all >> 31) * kMultiplier;
  return all;
}

std::string BenchData::not_finite() const {
  if (!finite_inputs_) return {};
  for (const Placed& p : operands_) {
    if (!p.written() || !is_floating(p.operand.dtype)) continue;
    const std::int64_t size = p.view.size();
    const std::int64_t step = std::max<std::int64_t>(1, size / 4'000'000);  // a second a gigabyte otherwise
    for (std::int64_t i = 0; i < size; i += step) {
      const double v = element(p.view.data, p.operand.dtype, i);
      if (!std::isfinite(v))
        return fmt::format("element {} of {} is {} after the call, though every input is finite", i,
                           p.operand.name, v);
    }
  }
  return {};
}

void BenchData::flush() const {
  for (const Placed& p : operands_) flush_range(p.view.data, p.bytes);
}

std::vector<double> BenchData::sample(std::size_t index) const {
  const Placed& p = operands_[index];
  const std::int64_t size = p.view.size(), count = std::min(size, kSampled);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(element(p.view.data, p.operand.dtype, i * size / count));
  return values;
}

}  // namespace rooftile::harness
