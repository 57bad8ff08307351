#pragma once
// AdamW as its definition reads, tensor by tensor. The corrections of bias are f64 in every scalar.
#include "rooftile/harness/signature_spec.h"

namespace rooftile::harness {

inline std::int64_t adamw_tensors(const Case& c) {
  return static_cast<std::int64_t>(c.parameter(kTensors, 1));
}

struct AdamwOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    double t = c.parameter("step");
    const bool skips = a.has("found_inf") && to_double(a["found_inf"].load(0)) != 0;
    if (a.has("steps")) {
      const double done = to_double(a["steps"].load(0));
      a["steps"].store(0, skips ? S(done) : S(done) + S(1.0));
      t = done + 1;
    }
    const S scale = a.has("gradient_scale") ? a["gradient_scale"].load(0) : S(1.0);
    for (std::int64_t item = 0; item < adamw_tensors(c); ++item)
      element_by_element(c, a, item, skips, t, c.parameter("maximize") != 0 ? -scale : scale);
  }

 private:
  template <class S>
  static void element_by_element(const Case& c, Arrays<S>& a, std::int64_t item, bool skips, double t,
                                 const S& scale) {
    const auto array = [&](const char* name) { return a.find(item_name(name, item)); };
    Array<S>*parameter = array("parameter"), *gradient = array("gradient"), *m_of = array("m"),
    *v_of = array("v"), *max_of = array("max_v"), *master = array("master");
    const double lr = c.parameter("lr", 1e-3), beta1 = c.parameter("beta1", 0.9),
                 beta2 = c.parameter("beta2", 0.999), decay = c.parameter("weight_decay", 0.01);
    const bool l2 = c.parameter("l2") != 0 && decay != 0;
    const S eps(c.parameter("eps", 1e-8));
    // From the nearer of the two: the other way round, a mean far larger than x would leave none of x's
    // digits.
    const auto mean = [](double beta, const S& of, const S& x) {
      return 1 - beta < 0.5 ? of + S(1 - beta) * (x - of) : x + S(beta) * (of - x);
    };
    const S size(lr / (1 - std::pow(beta1, t))), root_factor(1 / std::sqrt(1 - std::pow(beta2, t)));
    Array<S>* source = master ? master : parameter;
    for (std::int64_t i = 0; i < parameter->size(); ++i) {
      S p = source->load(i), m = m_of->load(i), v = v_of->load(i), g = gradient->load(i) * scale;
      S most = max_of ? max_of->load(i) : v;
      if (!skips) {
        if (l2) g = g + S(decay) * p;
        m = mean(beta1, m, g);
        v = mean(beta2, v, g * g);
        if (!max_of || !(to_double(v) <= to_double(most))) most = v;
        const S divisor = root_factor * sqrt(most) + eps;
        S step = size * m / divisor;
        // Exactly; the bound's own arithmetic has no number for it.
        if (std::isinf(to_double(divisor)) && std::isfinite(to_double(m))) step = S(0.0);
        p = l2 ? p - step : p - (S(lr * decay) * p + step);
      } else if (master) {
        p = parameter->load(i);
      }
      parameter->store(i, p);
      m_of->store(i, m);
      v_of->store(i, v);
      if (max_of) max_of->store(i, most);
      if (master) master->store(i, skips ? source->load(i) : p);
    }
  }
};

}  // namespace rooftile::harness
