#pragma once
// AdamW with means of 8 bits as its definition reads, tensor by tensor. Every operation is one of f32,
// whatever the scalar that values are kept in; what all elements share is f64, rounded once.
#include <algorithm>

#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/adamw_8bit/adamw_8bit.maps.h"

namespace rooftile::harness {

inline std::int64_t adamw_8bit_tensors(const Case& c) {
  return static_cast<std::int64_t>(c.parameter(kTensors, 1));
}

struct Adamw8bitOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    std::int64_t t = static_cast<std::int64_t>(c.parameter("step"));
    const bool skips = a.has("found_inf") && to_double(a["found_inf"].load(0)) != 0;
    if (a.has("steps")) {
      t = static_cast<std::int64_t>(to_double(a["steps"].load(0))) + 1;
      a["steps"].store(0, S(static_cast<double>(skips ? t - 1 : t)));
    }
    const double scale = a.has("gradient_scale") ? to_double(a["gradient_scale"].load(0)) : 1;
    for (std::int64_t item = 0; item < adamw_8bit_tensors(c); ++item)
      block_by_block(c, a, item, skips, t, static_cast<float>(c.parameter("maximize") != 0 ? -scale : scale));
  }

 private:
  static double power(double beta, std::int64_t t) {
    double all = 1;
    for (; t > 0; t /= 2, beta *= beta) all *= t % 2 != 0 ? beta : 1;
    return all;
  }
  /// The nearest number, between two the lower one. A negative mean has a negative number.
  static int code_of(const DynamicMap& map, const float (&middles)[255], float mean, float most) {
    const float x = most != 0 ? mean / most : 0;
    const auto code = static_cast<int>(std::lower_bound(middles, middles + 255, x) - middles);
    return map.numbers[code] == 0 && x < 0 ? code - 1 : code;
  }
  static float moved(double beta, float mean, float x) {
    const auto share = static_cast<float>(1 - beta);
    return share < 0.5f ? mean + (x - mean) * share : x + (mean - x) * static_cast<float>(beta);
  }

  template <class S>
  static void block_by_block(const Case& c, Arrays<S>& a, std::int64_t item, bool skips, std::int64_t t,
                             float factor) {
    const auto array = [&](const char* name) { return a.find(item_name(name, item)); };
    Array<S>*parameter = array("parameter"), *master = array("master"), *gradient = array("gradient"),
    *means[2] = {array("m"), array("v")}, *absmax[2] = {array("m_absmax"), array("v_absmax")};
    const DynamicMap* const maps[2] = {&kSignedMap, &kUnsignedMap};
    const double lr = c.parameter("lr", 1e-3), beta1 = c.parameter("beta1", 0.9),
                 beta2 = c.parameter("beta2", 0.999);
    const auto decay = static_cast<float>(lr * c.parameter("weight_decay", 0.01)),
               size = static_cast<float>(lr / (1 - power(beta1, t))),
               root_factor = static_cast<float>(1 / std::sqrt(1 - power(beta2, t))),
               eps = static_cast<float>(c.parameter("eps", 1e-8));
    const auto number = [](const Array<S>* of, std::int64_t i) {
      return static_cast<float>(to_double(of->load(i)));
    };
    float middles[2][255];
    for (int o = 0; o < 2; ++o)
      for (int i = 0; i < 255; ++i) middles[o][i] = (maps[o]->numbers[i] + maps[o]->numbers[i + 1]) * 0.5f;
    for (std::int64_t begin = 0; begin < parameter->size(); begin += kDynamicBlock) {
      const std::int64_t end = std::min(parameter->size(), begin + kDynamicBlock),
                         block = begin / kDynamicBlock;
      float mean[2][kDynamicBlock], most[2] = {};
      const float scale[2] = {number(absmax[0], block), number(absmax[1], block)};
      for (std::int64_t i = begin; i < end; ++i) {
        const float g = number(gradient, i) * factor;
        for (int o = 0; o < 2; ++o) {
          const float before = maps[o]->numbers[static_cast<int>(number(means[o], i))] * scale[o];
          mean[o][i - begin] = moved(o == 0 ? beta1 : beta2, before, o == 0 ? g : g * g);
        }
        float &m = mean[0][i - begin], &v = mean[1][i - begin];
        float p = number(master && !skips ? master : parameter, i);
        if (std::isfinite(m) && std::isfinite(v)) {
          const float step = m * size / (std::sqrt(v) * root_factor + eps);
          if (!skips) p = p - (p * decay + step);
        } else {
          m = v = 0;
        }
        parameter->store(i, S(static_cast<double>(p)));
        if (master) master->store(i, skips ? master->load(i) : S(static_cast<double>(p)));
        for (int o = 0; o < 2; ++o) most[o] = std::fmax(most[o], std::fabs(mean[o][i - begin]));
      }
      for (int o = 0; o < 2; ++o) {
        absmax[o]->store(block, S(static_cast<double>(skips ? scale[o] : most[o])));
        for (std::int64_t i = begin; i < end; ++i)
          means[o]->store(
              i, skips ? means[o]->load(i)
                       : S(static_cast<double>(code_of(*maps[o], middles[o], mean[o][i - begin], most[o]))));
      }
    }
  }
};

}  // namespace rooftile::harness
