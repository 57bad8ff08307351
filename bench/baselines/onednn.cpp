// oneDNN as a baseline: its primitives, prepared beforehand, on the bench's own memory.
#include <omp.h>
#include <dnnl.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/baselines/baseline.h"

namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

/// What oneDNN has no such thing for: a sentence, or empty where that goes without saying.
struct Refusal {
  std::string why;
};

struct Call {
  dnnl::primitive primitive;
  Arguments arguments;
  dnnl::stream stream;
  int threads = 1;
  std::vector<std::vector<float>> own;  // statistics and gradients in oneDNN's form
};

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type type_of(const RooftileBaselineOperand& operand) {
  const std::string dtype = operand.dtype;
  if (dtype == "f32") return memory::data_type::f32;
  if (dtype == "bf16") return memory::data_type::bf16;
  if (dtype == "f16") return memory::data_type::f16;
  if (dtype == "u8") return memory::data_type::u8;
  if (dtype == "i8") return memory::data_type::s8;
  if (dtype == "i32") return memory::data_type::s32;
  throw Refusal{};
}

class Problem {
 public:
  Problem(const RooftileBaselineCase& asked, Call& call) : asked_(asked), call_(call) {
    scratchpad_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  const RooftileBaselineOperand* find(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      for (int i = 0; i < asked_.operand_count; ++i)
        if (std::strcmp(asked_.operands[i].name, name) == 0) return &asked_.operands[i];
    return nullptr;
  }
  const RooftileBaselineOperand& need(std::initializer_list<const char*> names) const {
    if (const RooftileBaselineOperand* operand = find(names)) return *operand;
    throw Refusal{};
  }
  /// The input or output of that place in the list.
  const RooftileBaselineOperand& at(bool written, int place) const {
    for (int i = 0; i < asked_.operand_count; ++i)
      if ((asked_.operands[i].written != 0) == written && place-- == 0) return asked_.operands[i];
    throw Refusal{};
  }
  double parameter(std::initializer_list<const char*> names, double otherwise) const {
    for (const char* name : names)
      for (int i = 0; i < asked_.parameter_count; ++i)
        if (std::strcmp(asked_.parameter_names[i], name) == 0) return asked_.parameter_values[i];
    return otherwise;
  }
  const dnnl::primitive_attr& attributes() const { return scratchpad_; }

  /// Outer dimensions as one, the last as the other.
  static memory::desc rows(const RooftileBaselineOperand& operand) {
    memory::dim outer = 1;
    for (int d = 0; d + 1 < operand.rank; ++d) outer *= operand.shape[d];
    const memory::dim columns = operand.rank ? operand.shape[operand.rank - 1] : 1;
    if (outer * columns == 0) throw Refusal{};
    return {{outer, columns}, type_of(operand), memory::format_tag::ab};
  }
  static memory::desc flat(const RooftileBaselineOperand& operand) {
    memory::dim size = 1;
    for (int d = 0; d < operand.rank; ++d) size *= operand.shape[d];
    if (size == 0) throw Refusal{};
    return {{size}, type_of(operand), memory::format_tag::a};
  }

  void set(int argument, const memory::desc& desc, void* data) {
    call_.arguments[argument] = memory(desc, cpu(), data);
  }
  float* own(int argument, const memory::desc& desc) {
    call_.own.emplace_back(desc.get_size() / sizeof(float));
    set(argument, desc, call_.own.back().data());
    return call_.own.back().data();
  }
  /// oneDNN's weights are f32; others are converted beforehand, as a model in its hands would hold them.
  void set_f32(int argument, const memory::desc& desc, const RooftileBaselineOperand& weight) {
    if (std::strcmp(weight.dtype, "f32") == 0) return set(argument, desc, weight.data);
    if (std::strcmp(weight.dtype, "bf16") != 0) throw Refusal{"takes weights in f32 or bf16 only"};
    float* to = own(argument, desc);
    const auto* from = static_cast<const std::uint16_t*>(weight.data);
    for (memory::dim i = 0; i < desc.get_dims()[0]; ++i) {
      const std::uint32_t word = std::uint32_t{from[i]} << 16;
      std::memcpy(to + i, &word, sizeof word);
    }
  }
  /// A gradient goes where it is wanted, or to memory of its own where that has another type or nobody wants
  /// it.
  void set_f32(int argument, const memory::desc& desc, const RooftileBaselineOperand* gradient) {
    if (gradient && std::strcmp(gradient->dtype, "f32") == 0)
      set(argument, desc, gradient->data);
    else
      own(argument, desc);
  }
  template <class Primitive, class Description>
  void finish(const Description& description) {
    // Plain loops for what no kernel was written for, a thousand times as slow: nobody's choice.
    const std::string implementation = description.impl_info_str();
    if (implementation.rfind("ref", 0) == 0)
      throw Refusal{"it has only its reference for that type on this CPU"};
    const memory::desc scratchpad = description.scratchpad_desc();  // an argument too many is an error
    if (scratchpad.get_size() > 0) call_.arguments[DNNL_ARG_SCRATCHPAD] = memory(scratchpad, cpu());
    call_.primitive = Primitive(description);
  }

 private:
  const RooftileBaselineCase& asked_;
  Call& call_;
  dnnl::primitive_attr scratchpad_;
};

dnnl::algorithm softmax_kind(const Problem& p) {
  if (p.parameter({"scale"}, 1) != 1) throw Refusal{};
  return p.parameter({"log"}, 0) != 0 ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
}

dnnl::softmax_forward::primitive_desc softmax_forward(const Problem& p, const memory::desc& rows) {
  return {cpu(), dnnl::prop_kind::forward_training, softmax_kind(p), rows, rows, 1, p.attributes()};
}

void softmax(Problem& p) {
  const RooftileBaselineOperand &x = p.need({"x"}), &y = p.need({"y"});
  const memory::desc rows = Problem::rows(x);
  p.set(DNNL_ARG_SRC, rows, x.data);
  p.set(DNNL_ARG_DST, rows, y.data);
  p.finish<dnnl::softmax_forward>(dnnl::softmax_forward::primitive_desc(
      cpu(), dnnl::prop_kind::forward_inference, softmax_kind(p), rows, rows, 1, p.attributes()));
}

void softmax_backward(Problem& p) {
  const RooftileBaselineOperand &y = p.need({"y"}), &dy = p.need({"dy"}), &dx = p.need({"dx"});
  const memory::desc rows = Problem::rows(y);
  p.set(DNNL_ARG_DST, rows, y.data);
  p.set(DNNL_ARG_DIFF_DST, rows, dy.data);
  p.set(DNNL_ARG_DIFF_SRC, rows, dx.data);
  p.finish<dnnl::softmax_backward>(dnnl::softmax_backward::primitive_desc(
      cpu(), softmax_kind(p), rows, rows, rows, 1, softmax_forward(p, rows), p.attributes()));
}

struct Norm {
  memory::desc rows, statistics, weights;
  dnnl::normalization_flags flags = dnnl::normalization_flags::none;
  const RooftileBaselineOperand *weight = nullptr, *bias = nullptr;
  float epsilon = 0;
};

Norm norm_of(const Problem& p) {
  Norm n;
  const RooftileBaselineOperand& x = p.need({"x"});
  if (p.find({"residual", "r"})) throw Refusal{};  // oneDNN has no such fusion
  n.rows = Problem::rows(x);
  const memory::dims size = n.rows.get_dims();
  n.statistics = memory::desc({size[0]}, memory::data_type::f32, memory::format_tag::a);
  n.weights = memory::desc({size[1]}, memory::data_type::f32, memory::format_tag::a);
  n.weight = p.find({"weight", "w", "gamma"});
  n.bias = p.find({"bias", "b", "beta"});
  if (n.weight) n.flags = n.flags | dnnl::normalization_flags::use_scale;
  if (n.bias) n.flags = n.flags | dnnl::normalization_flags::use_shift;
  n.epsilon = static_cast<float>(p.parameter({"eps", "epsilon"}, 1e-5));
  return n;
}

dnnl::layer_normalization_forward::primitive_desc norm_forward(const Problem& p, const Norm& n) {
  return {cpu(),         dnnl::prop_kind::forward_training, n.rows, n.rows, n.statistics, n.epsilon, n.flags,
          p.attributes()};
}

void layer_norm(Problem& p) {
  const Norm n = norm_of(p);
  p.set(DNNL_ARG_SRC, n.rows, p.need({"x"}).data);
  p.set(DNNL_ARG_DST, n.rows, p.need({"y"}).data);
  if (n.weight) p.set_f32(DNNL_ARG_SCALE, n.weights, *n.weight);
  if (n.bias) p.set_f32(DNNL_ARG_SHIFT, n.weights, *n.bias);
  const RooftileBaselineOperand* mean = p.find({"mean"});
  if (mean && std::strcmp(mean->dtype, "f32") == 0)
    p.set(DNNL_ARG_MEAN, n.statistics, mean->data);
  else
    p.own(DNNL_ARG_MEAN, n.statistics);
  p.own(DNNL_ARG_VARIANCE, n.statistics);
  p.finish<dnnl::layer_normalization_forward>(norm_forward(p, n));
}

void layer_norm_backward(Problem& p) {
  Norm n = norm_of(p);
  const RooftileBaselineOperand &mean = p.need({"mean"}), &rstd = p.need({"rstd"});
  if (std::strcmp(rstd.dtype, "f32") != 0) throw Refusal{"takes statistics in f32 only"};
  const RooftileBaselineOperand* dweight = p.find({"dweight", "dw", "dgamma"});
  const RooftileBaselineOperand* dbias = p.find({"dbias", "db", "dbeta"});
  if (dbias) n.flags = n.flags | dnnl::normalization_flags::use_shift;
  p.set(DNNL_ARG_SRC, n.rows, p.need({"x"}).data);
  p.set(DNNL_ARG_DIFF_DST, n.rows, p.need({"dy"}).data);
  p.set(DNNL_ARG_DIFF_SRC, n.rows, p.need({"dx"}).data);
  p.set(DNNL_ARG_MEAN, n.statistics, mean.data);
  float* variance = p.own(DNNL_ARG_VARIANCE, n.statistics);
  const float* inverse = static_cast<const float*>(rstd.data);
  for (memory::dim row = 0; row < n.rows.get_dims()[0]; ++row)
    variance[row] = 1 / (inverse[row] * inverse[row]) - n.epsilon;
  if (n.weight) {
    p.set_f32(DNNL_ARG_SCALE, n.weights, *n.weight);
    p.set_f32(DNNL_ARG_DIFF_SCALE, n.weights, dweight);
  }
  if (dbias) {
    p.set_f32(DNNL_ARG_DIFF_SHIFT, n.weights, dbias);
    if (!n.bias) p.own(DNNL_ARG_SHIFT, n.weights);  // asked for, never read
  }
  const bool weights = n.flags != dnnl::normalization_flags::none;
  p.finish<dnnl::layer_normalization_backward>(dnnl::layer_normalization_backward::primitive_desc(
      cpu(), weights ? dnnl::prop_kind::backward : dnnl::prop_kind::backward_data, n.rows, n.rows, n.rows,
      n.statistics, n.epsilon, n.flags, norm_forward(p, n), p.attributes()));
}

void copy(Problem& p) {
  const RooftileBaselineOperand &x = p.at(false, 0), &y = p.at(true, 0);
  memory::desc flat = Problem::flat(x);
  // As many bits: its reorder of f16 takes 40 ns an element, that of bf16 runs at a copy's speed.
  if (flat.get_data_type() == memory::data_type::f16)
    flat = {flat.get_dims(), memory::data_type::bf16, memory::format_tag::a};
  p.set(DNNL_ARG_FROM, flat, x.data);
  p.set(DNNL_ARG_TO, flat, y.data);
  p.finish<dnnl::reorder>(dnnl::reorder::primitive_desc(cpu(), flat, cpu(), flat, p.attributes()));
}

/// A reorder from rows to columns: the same dimensions, y's last two strides exchanged.
void transpose(Problem& p) {
  const RooftileBaselineOperand &x = p.at(false, 0), &y = p.at(true, 0);
  memory::dims size, x_strides(static_cast<std::size_t>(x.rank)), y_strides(x_strides.size());
  for (int d = 0; d < x.rank; ++d) size.push_back(x.shape[d]);
  memory::dim stride = 1;
  for (std::size_t d = size.size(); d-- > 0; stride *= size[d]) x_strides[d] = y_strides[d] = stride;
  if (stride == 0) throw Refusal{};
  y_strides[size.size() - 1] = size[size.size() - 2];
  y_strides[size.size() - 2] = 1;
  auto type = type_of(x);
  if (type == memory::data_type::f16) type = memory::data_type::bf16;  // as in copy
  const memory::desc from(size, type, x_strides), to(size, type, y_strides);
  p.set(DNNL_ARG_FROM, from, x.data);
  p.set(DNNL_ARG_TO, to, y.data);
  p.finish<dnnl::reorder>(dnnl::reorder::primitive_desc(cpu(), from, cpu(), to, p.attributes()));
}

void add(Problem& p) {
  const RooftileBaselineOperand &a = p.at(false, 0), &b = p.at(false, 1), &y = p.at(true, 0);
  const memory::desc flat = Problem::flat(a);
  p.set(DNNL_ARG_SRC_0, flat, a.data);
  p.set(DNNL_ARG_SRC_1, flat, b.data);
  p.set(DNNL_ARG_DST, flat, y.data);
  p.finish<dnnl::binary>(
      dnnl::binary::primitive_desc(cpu(), dnnl::algorithm::binary_add, flat, flat, flat, p.attributes()));
}

void axpby(Problem& p) {
  const RooftileBaselineOperand &x = p.at(false, 0), &y = p.at(true, 0);
  const memory::desc flat = Problem::flat(x);
  const std::vector<float> scales = {static_cast<float>(p.parameter({"beta"}, -0.3)),
                                     static_cast<float>(p.parameter({"alpha"}, 0.7))};
  p.set(DNNL_ARG_MULTIPLE_SRC, flat, y.data);  // the first may be the output
  p.set(DNNL_ARG_MULTIPLE_SRC + 1, flat, x.data);
  p.set(DNNL_ARG_DST, flat, y.data);
  p.finish<dnnl::sum>(dnnl::sum::primitive_desc(cpu(), flat, scales, {flat, flat}, p.attributes()));
}

constexpr struct {
  const char* function;
  void (*build)(Problem&);
} kFunctions[] = {
    {"softmax", softmax},
    {"softmax_backward", softmax_backward},
    {"layer_norm", layer_norm},
    {"layer_norm_backward", layer_norm_backward},
    {"copy", copy},
    {"transpose", transpose},
    {"add", add},
    {"axpby", axpby},
};

void* prepare(const RooftileBaselineCase* asked, char* why, std::size_t why_size) {
  const auto refuse = [&](const char* sentence) {
    std::snprintf(why, why_size, "%s", sentence);
    return nullptr;
  };
  for (const auto& known : kFunctions) {
    if (std::strcmp(known.function, asked->function) != 0) continue;
    Call* call = nullptr;
    try {
      omp_set_num_threads(asked->threads);  // primitives divide their work when they are made
      call = new Call;
      call->threads = asked->threads;
      call->stream = dnnl::stream(cpu());
      Problem problem(*asked, *call);
      known.build(problem);
      return call;
    } catch (const Refusal& refusal) {
      delete call;
      return refuse(refusal.why.c_str());
    } catch (const dnnl::error& error) {
      delete call;
      return refuse(error.status == dnnl_unimplemented ? "it has no such primitive for this CPU"
                                                       : error.what());
    } catch (const std::exception& error) {
      delete call;
      return refuse(error.what());
    }
  }
  return nullptr;
}

int run(void* opaque, int times) {
  Call& call = *static_cast<Call*>(opaque);
  omp_set_num_threads(call.threads);
  try {
    for (int i = 0; i < times; ++i) call.primitive.execute(call.stream, call.arguments);
    call.stream.wait();
    return 0;
  } catch (const dnnl::error& error) {
    return static_cast<int>(error.status);
  }
}

void release(void* call) { delete static_cast<Call*>(call); }

void wake(int threads) {
#pragma omp parallel num_threads(threads)
  { asm volatile("" ::: "memory"); }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const RooftileBaseline* rooftile_baseline() {
  static const std::string version = [] {
    const dnnl_version_t* v = dnnl_version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }();
  static const RooftileBaseline baseline{
      ROOFTILE_BASELINE_VERSION, "oneDNN", version.c_str(), prepare, run, release, wake};
  return &baseline;
}
