#pragma once
// Stochastic gradient descent as its definition reads, tensor by tensor.
#include "rooftile/harness/signature_spec.h"

namespace rooftile::harness {

struct SgdOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    double step = c.parameter("step");
    const bool skips = a.has("found_inf") && to_double(a["found_inf"].load(0)) != 0;
    if (a.has("steps")) {
      const double done = to_double(a["steps"].load(0));
      a["steps"].store(0, skips ? S(done) : S(done) + S(1.0));
      step = done + 1;
    }
    const S scale = a.has("gradient_scale") ? a["gradient_scale"].load(0) : S(1.0);
    for (std::int64_t item = 0; item < static_cast<std::int64_t>(c.parameter(kTensors, 1)); ++item)
      element_by_element(c, a, item, skips, step == 1, c.parameter("maximize") != 0 ? -scale : scale);
  }

 private:
  template <class S>
  static void element_by_element(const Case& c, Arrays<S>& a, std::int64_t item, bool skips, bool first,
                                 const S& scale) {
    const auto array = [&](const char* name) { return a.find(item_name(name, item)); };
    Array<S>*parameter = array("parameter"), *gradient = array("gradient"),
    *buffer = array("momentum_buffer"), *master = array("master");
    const double lr = c.parameter("lr", 1e-3), decay = c.parameter("weight_decay");
    const S momentum(c.parameter("momentum")), share(1 - c.parameter("dampening"));
    Array<S>* source = master ? master : parameter;
    for (std::int64_t i = 0; i < parameter->size(); ++i) {
      S p = source->load(i), direction = gradient->load(i) * scale, b = buffer ? buffer->load(i) : S(0.0);
      if (!skips) {
        if (decay != 0) direction = direction + S(decay) * p;
        if (buffer) {
          b = first ? direction : momentum * b + share * direction;
          direction = c.parameter("nesterov") != 0 ? direction + momentum * b : b;
        }
        p = p - S(lr) * direction;
      } else if (master) {
        p = parameter->load(i);
      }
      parameter->store(i, p);
      if (buffer) buffer->store(i, b);
      if (master) master->store(i, skips ? source->load(i) : p);
    }
  }
};

}  // namespace rooftile::harness
