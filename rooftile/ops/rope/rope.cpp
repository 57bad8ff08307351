#include "rooftile/ops/rope/rope.h"

#include <algorithm>
#include <cmath>

#include "rooftile/core/signature.h"
#include "rooftile/ops/rope/rope.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kI{'I', {DType::i64, DType::i32}};
constexpr Signature::Types kF{'F', {DType::f32}};
constexpr double kMaxOffset = 2147483648;
constexpr const char* kWhere = "2*R <= D; rotary % 2 = 0; rotary <= D; rotary % (2*R) = 0; rotary <= 2*R";

constexpr Signature kForward{"rope",
                             {kT, kI, kF},
                             {input("q", 'T', "B S H D"), input("k", 'T', "B S G D"),
                              optional(input("positions", 'I', "B S")), optional(input("inv_freq", 'F', "R")),
                              output("yq", 'T', "B S H D", "q"), output("yk", 'T', "B S G D", "k")},
                             {flag("interleaved"), whole("rotary", 0, 0), whole("offset", 0, 0, kMaxOffset),
                              real("base", 10000, 0.001), real("attention_factor", 1, 0, 1024)},
                             kWhere};
constexpr Signature kBackward{
    "rope_backward",
    {kT, kI, kF},
    {input("dyq", 'T', "B S H D"), input("dyk", 'T', "B S G D"), optional(input("positions", 'I', "B S")),
     optional(input("inv_freq", 'F', "R")), output("dq", 'T', "B S H D", "dyq"),
     output("dk", 'T', "B S G D", "dyk")},
    {flag("interleaved"), whole("rotary", 0, 0), whole("offset", 0, 0, kMaxOffset),
     real("base", 10000, 0.001), real("attention_factor", 1, 0, 1024)},
    kWhere};

Status any(const void*) { return {}; }
constexpr Variant kVariants[] = {
    {"tile", "a token's cosines and sines once, in f64; then all of its heads, read and written once",
     Role::standard, any}};

RopeHeads heads_of(const ConstView& x, const ConstView& y) {
  RopeHeads heads{x.data, const_cast<void*>(y.data), x.shape[2]};
  // The stride of a single element means nothing.
  for (int d = 0; d < 4; ++d) {
    heads.x_stride[d] = x.shape[d] > 1 ? x.stride[d] : 0;
    heads.y_stride[d] = x.shape[d] > 1 ? y.stride[d] : 0;
  }
  if (x.shape[3] <= 1) heads.x_stride[3] = heads.y_stride[3] = 1;
  return heads;
}

Status launch_turned(const Queue& queue, const Op& op, const Call& c, double direction) {
  const ConstView &q = c.view(0), &k = c.view(1), &positions = c.view(2), &inv_freq = c.view(3);
  RopeProblem p{};
  p.q = heads_of(q, c.view(4));
  p.k = heads_of(k, c.view(5));
  p.batch = q.shape[0], p.length = q.shape[1], p.size = q.shape[3];
  p.pairs = inv_freq.present() ? inv_freq.shape[0] : (c.whole(1) ? c.whole(1) : p.size) / 2;
  if (positions.present()) {
    p.positions = positions.data;
    p.position_dtype = positions.dtype;
    for (int d = 0; d < 2; ++d) p.position_stride[d] = positions.stride[d];
  }
  if (inv_freq.present()) {
    p.inv_freq = static_cast<const float*>(inv_freq.data);
    p.inv_freq_stride = inv_freq.stride[0];
  }
  p.offset = c.options[2];
  p.base = c.options[3];
  p.cosine_factor = c.options[4];
  p.sine_factor = direction * c.options[4];
  p.dtype = q.dtype;
  p.interleaved = c.flag(0);
  return dispatch(queue, op, &p, c.variant);
}
Status launch_forward(const Queue& queue, const Op& op, const Call& c) {
  return launch_turned(queue, op, c, 1);
}
Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  return launch_turned(queue, op, c, -1);
}

struct OptionValues {
  double all[5];
  explicit OptionValues(const RopeOptions& o)
      : all{double(o.interleaved), static_cast<double>(o.rotary), static_cast<double>(o.offset), o.base,
            o.attention_factor} {}
};

/// Keys that there are not: none of q's tokens has one.
ConstView no_heads(ConstView q) {
  if (q.rank > 2) q.shape[2] = 0;
  q.data = nullptr;
  return q;
}

/// YaRN's ramp: from 0 at the pair that turns `beta_fast` times in the original length to 1 at `beta_slow`'s.
class Ramp {
 public:
  Ramp(const RopeScaling& s, double d, double base) {
    const auto pair_of = [&](double turns) {
      return d * std::log(s.original_length / (turns * 2 * M_PI)) / (2 * std::log(base));
    };
    low_ = pair_of(s.beta_fast), high_ = pair_of(s.beta_slow);
    if (s.truncate) low_ = std::floor(low_), high_ = std::ceil(high_);
    low_ = std::max(low_, 0.), high_ = std::min(high_, d - 1);
    if (low_ == high_) high_ += 0.001;
  }
  double at(double pair) const { return std::clamp((pair - low_) / (high_ - low_), 0., 1.); }

 private:
  double low_, high_;
};

/// A frequency of Llama 3's: wavelengths above O / low are stretched, those below O / high are not.
double llama3(const RopeScaling& s, double frequency) {
  const double turns = s.original_length * frequency / (2 * M_PI);
  if (turns < s.low_freq_factor) return frequency / s.factor;
  if (turns > s.high_freq_factor) return frequency;
  const double smooth = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

}  // namespace

extern const Op rope_op{"rope", "forward", "rope", kVariants, kForward, launch_forward};
extern const Op rope_backward_op{"rope", "backward", "rope_backward", kVariants, kBackward, launch_backward};
extern const Op* const rope_ops[] = {&rope_op, &rope_backward_op, nullptr};

Status rope(const Queue& queue, const RopeInputs& in, const RopeOutputs& out, const RopeOptions& options) {
  const bool alone = !in.k.present() && !out.k.present();
  const ConstView none = no_heads(in.q);
  const ConstView* const views[] = {&in.q,  alone ? &none : &in.k, &in.positions, &in.inv_freq,
                                    &out.q, alone ? &none : &out.k};
  return call(queue, rope_op, Call{views, OptionValues(options).all, options.variant});
}
Status rope_backward(const Queue& queue, const RopeBackwardInputs& in, const RopeBackwardOutputs& out,
                     const RopeOptions& options) {
  const bool alone = !in.dyk.present() && !out.dk.present();
  const ConstView none = no_heads(in.dyq);
  const ConstView* const views[] = {&in.dyq, alone ? &none : &in.dyk, &in.positions, &in.inv_freq,
                                    &out.dq, alone ? &none : &out.dk};
  return call(queue, rope_backward_op, Call{views, OptionValues(options).all, options.variant});
}

Status rope_frequencies(std::span<float> inv_freq, double base, const RopeScaling& s,
                        double& attention_factor) {
  using Kind = RopeScaling::Kind;
  const auto refuse = [](const char* name, double value, const char* must) {
    return Status::error("rope_frequencies: %s is %g, must be %s", name, value, must);
  };
  if (!(base > 1 && std::isfinite(base))) return refuse("base", base, "finite and above 1");
  if (!(s.factor >= 1 && std::isfinite(s.factor))) return refuse("factor", s.factor, "finite and 1 or more");
  const bool measures =
      s.kind == Kind::yarn || s.kind == Kind::llama3 || (s.kind == Kind::ntk && s.length != 0);
  if (measures && !(s.original_length > 0 && std::isfinite(s.original_length)))
    return refuse("original_length", s.original_length, "finite and above 0");
  if (s.kind == Kind::ntk && !(s.length >= 0 && std::isfinite(s.length)))
    return refuse("length", s.length, "finite and not negative");
  if (s.kind == Kind::yarn && !(s.beta_slow > 0 && s.beta_fast >= s.beta_slow && std::isfinite(s.beta_fast)))
    return refuse("beta_fast", s.beta_fast, "finite and beta_slow or more, which is above 0");
  if (s.kind == Kind::llama3 &&
      !(s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor && std::isfinite(s.high_freq_factor)))
    return refuse("high_freq_factor", s.high_freq_factor,
                  "finite and above low_freq_factor, which is above 0");

  const auto pairs = static_cast<double>(inv_freq.size());
  if (s.kind == Kind::ntk && inv_freq.size() > 1) {
    const double longer =
        s.length == 0 ? s.factor : s.factor * std::max(s.length / s.original_length, 1.) - (s.factor - 1);
    base *= std::pow(longer, pairs / (pairs - 1));
  }
  const Ramp ramp(s, 2 * pairs, base);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    double f = std::pow(base, -static_cast<double>(i) / pairs);
    if (s.kind == Kind::linear) f /= s.factor;
    if (s.kind == Kind::llama3) f = llama3(s, f);
    if (s.kind == Kind::yarn) {
      const double slow = ramp.at(static_cast<double>(i));
      f = f / s.factor * slow + f * (1 - slow);
    }
    inv_freq[i] = static_cast<float>(f);
  }
  attention_factor = s.kind == Kind::yarn ? 0.1 * std::log(s.factor) + 1 : 1;
  return {};
}

}  // namespace rooftile
