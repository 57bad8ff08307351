#pragma once
// Codes of 8 bits as their definition reads. Every operation is one of f32, whatever the scalar that values
// are kept in; formats by the conversions of core/convert.h.
#include "rooftile/core/convert.h"
#include "rooftile/core/philox.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

inline std::int64_t block_of(const Case& c) { return static_cast<std::int64_t>(c.parameter("block", 128)); }

/// The nearest number of a format, saturating; of a NaN, one, or 0 of integers.
inline double nearest_code(float x, DType type) {
  if (type == DType::i8)  // + 0: an integer has one zero
    return std::isnan(x) ? 0 : std::fmax(-127, std::fmin(127, std::nearbyint(double(x)))) + 0.0;
  const float largest = type == DType::f8e4m3 ? 448.0f : 57344.0f;
  const double within = std::isnan(x) ? double(x) : std::fmax(-largest, std::fmin(largest, double(x)));
  return double(type == DType::f8e4m3 ? to_float(from_double<f8e4m3>(within))
                                      : to_float(from_double<f8e5m2>(within)));
}
/// One of the two numbers of a format beside x, away from 0 where the share of a step that is beyond the
/// other, and half a word, are 2^31 or more.
inline double code_by_chance(float x, DType type, std::uint32_t word) {
  if (std::isnan(x)) return type == DType::i8 ? 0 : double(x);
  const double largest = type == DType::i8 ? 127 : type == DType::f8e4m3 ? 448 : 57344;
  const double size = std::fmin(std::fabs(double(x)), largest);
  double step = 1;
  if (type != DType::i8) {
    const int mantissa = type == DType::f8e4m3 ? 3 : 2, smallest = type == DType::f8e4m3 ? -6 : -14;
    step = std::ldexp(1, (size == 0 ? smallest : std::max(std::ilogb(size), smallest)) - mantissa);
  }
  const double lower = std::floor(size / step), rest = size / step - lower;
  const bool up = std::floor(rest * 0x1p31) + word / 2 >= 0x1p31;
  const double number = std::copysign((lower + (up ? 1 : 0)) * step, double(x));
  return type == DType::i8 ? number + 0.0 : number;
}
/// By chance where a case has a seed, else to nearest.
template <class S>
class Rounding {
 public:
  explicit Rounding(Arrays<S>& a) : by_chance_(a.has("seed")) {
    if (by_chance_) stream_ = {whole(a["seed"]), a.has("offset") ? whole(a["offset"]) : 0};
  }
  double operator()(float x, DType type, std::int64_t index) const {
    return by_chance_ ? code_by_chance(x, type, stream_.word(static_cast<std::uint64_t>(index)))
                      : nearest_code(x, type);
  }

 private:
  static std::uint64_t whole(const Array<S>& number) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(to_double(number.load(0))));
  }
  bool by_chance_;
  PhiloxStream stream_{};
};
inline float scale_of_block(const std::vector<float>& block, DType type) {
  float most = 0;
  for (float x : block)
    if (!(std::fabs(x) <= most)) most = std::isnan(most) ? most : std::fabs(x);
  const float scale = most / (type == DType::i8 ? 127.0f : type == DType::f8e4m3 ? 448.0f : 57344.0f);
  return scale < 0x1p-126f ? 0x1p-126f : scale;
}

template <DType kType>
struct QuantizeOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), block = block_of(c);
    const Rounding<S> rounded(a);
    std::int64_t at = 0;
    for (std::int64_t row = 0; columns > 0 && row < a["x"].size() / columns; ++row)
      for (std::int64_t begin = 0; begin < columns; begin += block, ++at) {
        std::vector<float> x;
        for (std::int64_t i = begin; i < std::min(columns, begin + block); ++i)
          x.push_back(static_cast<float>(to_double(a["x"].load(row * columns + i))));
        const float scale = c.parameter("given") != 0 ? static_cast<float>(to_double(a["given"].load(at)))
                                                      : scale_of_block(x, kType);
        a["scale"].store(at, S(double(scale)));
        const float each_one = 1 / scale;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::int64_t index = row * columns + begin + static_cast<std::int64_t>(i);
          a["codes"].store(index, S(rounded(x[i] * each_one, kType, index)));
        }
      }
  }
};

template <DType kType>
struct QuantizeTensorOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    const Rounding<S> rounded(a);
    std::vector<float> x;
    for (std::int64_t i = 0; i < a["x"].size(); ++i)
      x.push_back(static_cast<float>(to_double(a["x"].load(i))));
    const float scale = scale_of_block(x, kType), each_one = 1 / scale;
    a["scale"].store(0, S(double(scale)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      a["codes"].store(index, S(rounded(x[i] * each_one, kType, index)));
    }
  }
};

struct DequantizeOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), block = block_of(c);
    const std::int64_t blocks = (columns + block - 1) / block;
    for (std::int64_t i = 0; i < a["y"].size(); ++i) {
      const auto value = static_cast<float>(to_double(a["codes"].load(i)));
      const auto scale =
          static_cast<float>(to_double(a["scale"].load(i / columns * blocks + i % columns / block)));
      a["y"].store(i, S(double(value * scale)));
    }
  }
};

inline DType fake_format(const Case& c) {
  constexpr DType kFormats[] = {DType::f8e4m3, DType::f8e5m2, DType::i8};
  return kFormats[static_cast<int>(c.parameter("format"))];
}

struct FakeQuantizeOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), block = block_of(c);
    std::int64_t at = 0;
    for (std::int64_t row = 0; columns > 0 && row < a["x"].size() / columns; ++row)
      for (std::int64_t begin = 0; begin < columns; begin += block, ++at) {
        std::vector<float> x;
        for (std::int64_t i = begin; i < std::min(columns, begin + block); ++i)
          x.push_back(static_cast<float>(to_double(a["x"].load(row * columns + i))));
        const float scale = c.parameter("given") != 0 ? static_cast<float>(to_double(a["given"].load(at)))
                                                      : scale_of_block(x, fake_format(c));
        const float each_one = 1 / scale;
        for (std::size_t i = 0; i < x.size(); ++i)
          a["y"].store(row * columns + begin + static_cast<std::int64_t>(i),
                       S(double(float(nearest_code(x[i] * each_one, fake_format(c))) * scale)));
      }
  }
};

struct FakeQuantizeBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), block = block_of(c);
    const std::int64_t blocks = (columns + block - 1) / block;
    const DType type = fake_format(c);
    for (std::int64_t i = 0; i < a["dx"].size(); ++i) {
      bool within = true;
      const S dy = a["dy"].load(i);
      const auto x = static_cast<float>(to_double(a["x"].load(i)));
      if (c.parameter("given") != 0) {
        const auto scale =
            static_cast<float>(to_double(a["given"].load(i / columns * blocks + i % columns / block)));
        // In a format without a largest number; 448 and 480 have 4 bits, as all between.
        const float size = std::fabs(x * (1 / scale));
        const double ulp = type == DType::i8 ? 1 : type == DType::f8e4m3 ? 32 : 8192;
        within = std::nearbyint(double(size) / ulp) * ulp <= (type == DType::i8       ? 127
                                                              : type == DType::f8e4m3 ? 448
                                                                                      : 57344);
      }
      a["dx"].store(i, within ? dy : S(0));
    }
  }
};

}  // namespace rooftile::harness
