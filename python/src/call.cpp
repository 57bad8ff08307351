// One call from Python: arguments to views, missing outputs made, the library's call without Python's lock.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "python/src/arrays.h"
#include "python/src/function.h"
#include "python/src/lists.h"

namespace rooftile::python {
namespace {

struct Words {
  PyObject *out, *queue, *device, *variant, *axis, *keepdims;  // interned
};
const Words& words() {
  static const Words all{PyUnicode_InternFromString("out"),    PyUnicode_InternFromString("queue"),
                         PyUnicode_InternFromString("device"), PyUnicode_InternFromString("variant"),
                         PyUnicode_InternFromString("axis"),   PyUnicode_InternFromString("keepdims")};
  return all;
}

/// A call under way.
class Call {
 public:
  explicit Call(Function& function) : f_(function), s_(function.signature) {}

  PyObject* run(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    if (!take(args, count, keywords)) return nullptr;
    if (along_ || (f_.broadcasts && has_numbers()))
      return hand_over(helpers.by_views, s_.name, args, count, keywords);
    if (!bring_numbers() || !complete()) return nullptr;
    if (wants_gradients_) return hand_over(helpers.with_gradients, s_.name, args, count, keywords);
    if (!lists_.read(s_, object_, views_)) return nullptr;
    if (!read_given())
      return wrapped_ ? hand_over(helpers.with_gradients, s_.name, args, count, keywords) : nullptr;
    if (f_.broadcasts && shapes_differ()) return hand_over(helpers.by_views, s_.name, args, count, keywords);
    if (!one_device() || !make_outputs() || !choose_queue() || !make_workspace() || !launch()) return nullptr;
    return results();
  }

 private:
  const rooftile_operand& operand(int o) const { return s_.operand[o]; }
  bool writes(int o) const { return operand(o).role != ROOFTILE_INPUT; }
  Place place(int o) const { return {s_.name, operand(o).name}; }

  bool take(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    for (int k = 0; k < s_.options; ++k) options_[k] = s_.option[k].otherwise;
    int o = 0;
    for (Py_ssize_t i = 0; i < count; ++i, ++o) {
      while (o < s_.operands && (operand(o).optional || operand(o).role == ROOFTILE_OUTPUT)) ++o;
      if (o == s_.operands) return too_many(count);
      object_[o] = args[i];
    }
    const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; ++i)
      if (!take_word(PyTuple_GetItem(keywords, i), args[count + i])) return false;
    return !out_ || take_out();
  }

  bool take_word(PyObject* word, PyObject* value) {
    // By their addresses first: nearly all words are interned.
    for (const bool by_text : {false, true}) {
      const auto is = [&](PyObject* name) {
        return by_text ? PyUnicode_Compare(word, name) == 0 : word == name;
      };
      for (int o = 0; o < s_.operands; ++o) {
        if (!is(f_.operand_names[o]) || (operand(o).role == ROOFTILE_OUTPUT && !operand(o).optional))
          continue;
        if (object_[o]) {
          PyErr_Format(PyExc_TypeError, "%s: %s is given twice", s_.name, operand(o).name);
          return false;
        }
        return take_operand(o, value);
      }
      for (int k = 0; k < s_.options; ++k)
        if (is(f_.option_names[k])) return take_option(k, value);
      if (is(words().out)) return (out_ = value == Py_None ? nullptr : value), true;
      if (is(words().queue)) return (queue_ = value == Py_None ? nullptr : value), true;
      if (is(words().device)) return take_text("device", value, device_);
      if (is(words().variant)) return take_text("variant", value, variant_);
      if (is(words().axis) || is(words().keepdims)) return (along_ = true);
    }
    PyErr_Format(PyExc_TypeError, "%s: takes no %R; it takes %s", s_.name, word, f_.usage->c_str());
    return false;
  }

  bool take_operand(int o, PyObject* value) {
    if (operand(o).role == ROOFTILE_OUTPUT) {  // an optional one: True asks for it, an array receives it
      if (value == Py_None || value == Py_False) return true;
      if (value == Py_True) return (wanted_[o] = true);
    }
    object_[o] = value == Py_None && operand(o).optional ? nullptr : value;
    return true;
  }

  bool take_text(const char* what, PyObject* value, const char*& text) {
    if (value == Py_None) return true;
    if (!PyUnicode_Check(value)) {
      PyErr_Format(PyExc_TypeError, "%s: %s is %R, must be a text", s_.name, what, value);
      return false;
    }
    text_[what[0] == 'd'] = Owned(PyUnicode_AsUTF8String(value));
    char* letters = nullptr;  // without a null among them
    if (!text_[what[0] == 'd'] ||
        PyBytes_AsStringAndSize(text_[what[0] == 'd'].get(), &letters, nullptr) != 0)
      return false;
    text = letters;
    return true;
  }

  bool take_option(int k, PyObject* value) {
    const rooftile_option& option = s_.option[k];
    if (option.kind == ROOFTILE_CHOICE && PyUnicode_Check(value)) {
      Owned text{PyUnicode_AsUTF8String(value)};
      char* given = nullptr;
      if (!text || PyBytes_AsStringAndSize(text.get(), &given, nullptr) != 0) return false;
      int at = 0;
      for (const char* word = option.words; *word; ++at) {
        const std::size_t length = std::strcspn(word, " ");
        if (std::strlen(given) == length && std::strncmp(given, word, length) == 0) {
          options_[k] = at;
          return true;
        }
        word += length + (word[length] == ' ');
      }
      PyErr_Format(PyExc_ValueError, "%s: %s is %R, must be one of: %s", s_.name, option.name, value,
                   option.words);
      return false;
    }
    if (value == Py_True || value == Py_False) {
      options_[k] = value == Py_True;
      return true;
    }
    if (!PyFloat_Check(value) && !PyLong_Check(value) && PyObject_HasAttrString(value, "requires_grad")) {
      Owned number{PyObject_CallFunction(helpers.option_value, "ssO", s_.name, option.name, value)};
      if (!number) return false;
      options_[k] = PyFloat_AsDouble(number.get());
      return true;
    }
    options_[k] = PyFloat_AsDouble(value);
    if (options_[k] != -1 || !PyErr_Occurred()) return true;
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "%s: %s is %R, must be %s", s_.name, option.name, value,
                   option.kind == ROOFTILE_FLAG     ? "True or False"
                   : option.kind == ROOFTILE_CHOICE ? option.words
                   : option.kind == ROOFTILE_WHOLE  ? "a whole number"
                                                    : "a number");
    }
    return false;
  }

  bool too_many(Py_ssize_t count) const {
    int most = 0;
    for (int o = 0; o < s_.operands; ++o) most += !operand(o).optional && operand(o).role != ROOFTILE_OUTPUT;
    PyErr_Format(PyExc_TypeError, "%s: takes %d arrays by place, was given %zd; it takes %s", s_.name, most,
                 count, f_.usage->c_str());
    return false;
  }

  /// One array: the first output. Several in a tuple: each output that is not optional.
  bool take_out() {
    int o = 0;
    const auto next = [&] {
      while (o < s_.operands && (operand(o).role != ROOFTILE_OUTPUT || operand(o).optional)) ++o;
      return o < s_.operands;
    };
    if (!PyTuple_Check(out_)) {
      if (!next())
        return PyErr_Format(PyExc_TypeError, "%s: has no output that out could be", s_.name), false;
      object_[o] = out_;
      return true;
    }
    Py_ssize_t i = 0;
    const Py_ssize_t count = PyTuple_Size(out_);
    for (; i < count && next(); ++i, ++o)
      object_[o] = PyTuple_GetItem(out_, i) == Py_None ? nullptr : PyTuple_GetItem(out_, i);
    if (i == count && !next()) return true;
    PyErr_Format(PyExc_ValueError, "%s: out holds %zd arrays, must hold one for each output", s_.name, count);
    return false;
  }

  /// A number of Python's in the place of one element of integers, as a seed is: an array beside the first.
  bool bring_numbers() {
    constexpr std::uint32_t kI64 = 1u << ROOFTILE_I64;
    for (int o = 0; o < s_.operands; ++o) {
      if (!object_[o] || operand(o).list || !PyLong_CheckExact(object_[o]) || !operand(o).one ||
          !(operand(o).dtypes & kI64))
        continue;
      PyObject* like = Py_None;
      for (int other = s_.operands; other-- > 0;)
        if (object_[other] && !PyLong_CheckExact(object_[other])) like = object_[other];
      if (!replace(o, PyObject_CallFunction(helpers.whole_number, "ssOO", s_.name, operand(o).name,
                                            object_[o], like)))
        return false;
    }
    return true;
  }

  /// Every operand that must be there is; which tensors have gradients.
  bool complete() {
    for (int o = 0; o < s_.operands; ++o) {
      if (!object_[o]) {
        if (operand(o).optional || operand(o).role == ROOFTILE_OUTPUT) continue;
        PyErr_Format(PyExc_TypeError, "%s: %s is absent; it takes %s", s_.name, operand(o).name,
                     f_.usage->c_str());
        return false;
      }
      if (operand(o).list) continue;  // in place and without gradients: lists.h
      if (!framework_of(object_[o], place(o), array_[o].framework)) return false;
      if (!array_[o].framework.has_gradients || f_.below_gradients || wants_gradients_) continue;
      if (array_[o].framework.kind != Framework::Kind::exchange || in_forward_mode()) {
        // A subclass, a tracer: no plain array; or one that may carry a tangent.
        wants_gradients_ = true;
        continue;
      }
      static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
      Owned wants{PyObject_GetAttr(object_[o], requires_grad)};
      if (!wants) return false;
      wants_gradients_ = wants.get() == Py_True;
    }
    return true;
  }

  bool has_numbers() const {
    return std::any_of(object_, object_ + s_.operands,
                       [](PyObject* o) { return o && (PyFloat_Check(o) || PyLong_Check(o)); });
  }
  bool shapes_differ() const {
    const rooftile_view &x = *views_[0], &y = *views_[1];
    if (std::max(x.rank, y.rank) > static_cast<int>(std::size(x.shape)))
      return false;  // the library refuses it
    return x.rank != y.rank || !std::equal(x.shape, x.shape + x.rank, y.shape);
  }

  bool read_given() {
    if (!lists_.items().empty()) {  // what new arrays are like, and where
      const Lists::Item& item = lists_.items().front();
      first_ = item.operand;
      object_like_ = item.object;
      array_[first_].device = item.array.device;
      array_[first_].framework = item.array.framework;
      array_[first_].view = item.array.view;
    }
    for (int o = 0; o < s_.operands; ++o) {
      if (!object_[o] || operand(o).list) continue;
      if (array_[o].framework.kind == Framework::Kind::scalar) {
        if (writes(o)) {
          PyErr_Format(PyExc_ValueError,
                       "%s: %s is a NumPy scalar, and the function writes it; pass an array", s_.name,
                       operand(o).name);
          return false;
        }
        if (!replace(o, PyObject_CallFunctionObjArgs(helpers.array_of, object_[o], nullptr))) return false;
      }
      if (is_negated(object_[o], array_[o].framework) && !resolve(o)) return false;
      if (!read_array(object_[o], place(o), array_[o])) {
        // One of PyTorch's without memory of its own, as under vmap: the operator's business, or refused
        // there.
        wrapped_ = array_[o].framework.has_gradients && !f_.below_gradients &&
                   array_[o].framework.kind == Framework::Kind::exchange &&
                   PyErr_ExceptionMatches(PyExc_ValueError);
        if (wrapped_) PyErr_Clear();
        return false;
      }
      if (writes(o) && array_[o].read_only) {
        PyErr_Format(PyExc_ValueError, "%s: %s is %s, and the function writes it; pass another array",
                     s_.name, operand(o).name,
                     array_[o].framework.immutable ? "an immutable array" : "read-only");
        return false;
      }
      if (first_ < 0) first_ = o;
      views_[o] = &array_[o].view;
    }
    if (first_ < 0) first_ = 0;  // nothing but empty lists: on the CPU
    return true;
  }
  /// The array that others are made like.
  PyObject* like() const { return object_like_ ? object_like_ : object_[first_]; }

  /// A negated view is read by a copy; its memory holds other numbers.
  bool resolve(int o) {
    if (writes(o)) {
      PyErr_Format(PyExc_ValueError,
                   "%s: %s is a negated view of other memory, and the function writes it; pass a tensor of "
                   "its own, as its .resolve_neg() is",
                   s_.name, operand(o).name);
      return false;
    }
    return replace(o, PyObject_CallMethod(object_[o], "resolve_neg", nullptr));
  }
  /// By a new object, null after an error.
  bool replace(int o, PyObject* made) {
    resolved_[o] = Owned{made};
    return (object_[o] = made);
  }

  bool one_device() const {
    for (int o = 0; o < s_.operands; ++o) {
      if (!object_[o] || operand(o).list || array_[o].device == array_[first_].device) continue;
      char place[2][32];
      for (const int k : {0, 1}) {
        const dlpack::Device& device = array_[k ? first_ : o].device;
        std::snprintf(place[k], sizeof place[k], device.type == dlpack::kCuda ? "CUDA device %d" : "the CPU",
                      static_cast<int>(device.id));
      }
      PyErr_Format(PyExc_ValueError, "%s: %s is on %s, %s on %s; all arrays of a call are on one device",
                   s_.name, operand(o).name, place[0], operand(first_).name, place[1]);
      return false;
    }
    return true;
  }

  bool make_outputs() {
    for (int o = 0; o < s_.operands; ++o) {
      if (object_[o] || operand(o).role != ROOFTILE_OUTPUT || (operand(o).optional && !wanted_[o])) continue;
      rooftile_view inferred;
      const rooftile_status status = rooftile_infer(s_.name, views_, options_, o, &inferred);
      if (status.message[0]) return refused(status);
      if (!new_array(like(), array_[first_], inferred.dtype, inferred.rank, inferred.shape, place(o),
                     made_[o], array_[o]))
        return false;
      object_[o] = made_[o].get();
      views_[o] = &array_[o].view;
    }
    return true;
  }

  bool choose_queue() {
    const bool cuda = array_[first_].device.type == dlpack::kCuda;
    const char* where = cuda ? "CUDA" : "the CPU";
    if (queue_ && (device_ || Py_TYPE(queue_) != queue_type)) {
      PyErr_Format(
          PyExc_TypeError,
          device_ ? "%s: takes queue or device, not both" : "%s: queue is %R, must be a rooftile.Queue",
          s_.name, queue_);
      return false;
    }
    void* stream = nullptr;
    if (cuda && !current_stream(like(), array_[first_], stream)) return false;
    if (!queue_) {
      const bool pytorchs = !device_ && !cuda && array_[first_].framework.has_gradients;
      const char* kind = device_ ? device_ : cuda ? "cuda" : "cpu";
      queue_ = pytorchs ? pytorchs_queue() : default_queue(kind, array_[first_].device.id, stream);
      if (!queue_) return false;
    }
    const char* device = reinterpret_cast<QueueObject*>(queue_)->facts.device;
    elsewhere_ = cuda && reinterpret_cast<QueueObject*>(queue_)->stream != stream;
    if ((std::strcmp(device, "cuda") == 0) == cuda) {
      const int its = reinterpret_cast<QueueObject*>(queue_)->facts.index, theirs = array_[first_].device.id;
      if (!cuda || its == theirs) return true;
      PyErr_Format(PyExc_ValueError, "%s: the arrays are on CUDA device %d, the queue is of device %d",
                   s_.name, theirs, its);
      return false;
    }
    PyErr_Format(PyExc_ValueError, "%s: the arrays are on %s, the queue's device is \"%s\"", s_.name, where,
                 device);
    return false;
  }

  bool make_workspace() {
    if (!s_.has_workspace) return true;
    std::size_t bytes = 0;
    const rooftile_status status =
        rooftile_workspace_of_lists(queue(), s_.name, views_, lists_.tensors(), options_, &bytes);
    if (status.message[0]) return refused(status);
    if (bytes == 0) return true;
    workspace_.bytes = bytes;
    if (array_[first_].device.type == dlpack::kCpu) {
      host_ = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
      workspace_.pointer = host_;
      if (!host_) PyErr_NoMemory();
      return host_ != nullptr;
    }
    const std::int64_t shape[] = {static_cast<std::int64_t>(bytes + 63)};
    if (!new_array(like(), array_[first_], ROOFTILE_U8, 1, shape, {s_.name, "the workspace"},
                   workspace_object_, workspace_array_))
      return false;
    const auto address = reinterpret_cast<std::uintptr_t>(workspace_array_.view.data);
    workspace_.pointer = reinterpret_cast<void*>((address + 63) / 64 * 64);
    return true;
  }

  const rooftile_queue* queue() const { return reinterpret_cast<QueueObject*>(queue_)->queue; }

  bool launch() {
    Py_INCREF(queue_);
    Owned hold{queue_};
    rooftile_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = rooftile_call_lists(queue(), s_.name, views_, lists_.tensors(), options_, variant_, workspace_);
    Py_END_ALLOW_THREADS;
    if (status.message[0]) return refused(status);
    if (!tell_torch()) return false;
    if (!elsewhere_) return true;
    // Frameworks give memory away again in the order of their current stream, which this call is not on.
    if (workspace_object_ && !used_elsewhere(workspace_object_.get())) return false;
    for (const Owned& made : made_)
      if (made && !used_elsewhere(made.get())) return false;
    return true;
  }
  /// Of the caller's tensors that were written PyTorch counts the versions, so that a backward that needs the
  /// former values says so.
  bool tell_torch() {
    Owned written;
    const auto add = [&](PyObject* object, const Array& array) {
      if (!array.framework.has_gradients) return true;
      if (!written) written = Owned{PyList_New(0)};
      return written && PyList_Append(written.get(), object) == 0;
    };
    for (int o = 0; o < s_.operands; ++o)
      if (object_[o] && !operand(o).list && writes(o) && !made_[o] && !add(object_[o], array_[o]))
        return false;
    for (const Lists::Item& item : lists_.items())
      if (writes(item.operand) && !add(item.object, item.array)) return false;
    return !written || Owned{PyObject_CallFunctionObjArgs(torch.written, written.get(), nullptr)};
  }
  bool used_elsewhere(PyObject* object) const {
    Owned stream{PyLong_FromVoidPtr(reinterpret_cast<QueueObject*>(queue_)->stream)};
    return stream && Owned{PyObject_CallFunction(helpers.used_on, "OOi", object, stream.get(),
                                                 static_cast<int>(array_[first_].device.id))};
  }

  /// The library's sentence: a TypeError where it says which dtype there must be.
  bool refused(const rooftile_status& status) const {
    PyErr_SetString(asks_for_dtype(status.message) ? PyExc_TypeError : PyExc_ValueError, status.message);
    return false;
  }

  PyObject* result(int o) {
    if (made_[o] && array_[first_].framework.immutable)
      return PyObject_CallFunction(helpers.finish, "OO", like(), made_[o].get());
    if (made_[o]) return made_[o].release();
    Py_INCREF(object_[o]);
    return object_[o];
  }

  PyObject* results() {
    int count = 0, last = -1;
    unsigned outputs = 0;
    const bool pure = has_output();
    for (int o = 0; o < s_.operands; ++o) {
      if (!object_[o] || operand(o).role == ROOFTILE_INPUT || (pure && operand(o).role == ROOFTILE_IN_OUT))
        continue;
      outputs |= 1u << o;
      last = o;
      ++count;
    }
    if (count == 1) return result(last);
    Owned all{PyTuple_New(count)};
    if (!all) return nullptr;
    int at = 0;
    for (int o = 0; o < s_.operands; ++o) {
      if (!(outputs >> o & 1)) continue;
      PyObject* one = result(o);
      if (!one) return nullptr;
      PyTuple_SetItem(all.get(), at++, one);
    }
    PyObject* type = result_type(outputs);
    return type ? PyObject_CallFunctionObjArgs(type, all.get(), nullptr) : nullptr;
  }
  bool has_output() const {
    for (int o = 0; o < s_.operands; ++o)
      if (operand(o).role == ROOFTILE_OUTPUT) return true;
    return false;
  }

  /// A named tuple's `_make` for these outputs; borrowed.
  PyObject* result_type(unsigned outputs) {
    for (const Function::ResultType& known : *f_.result_types)
      if (known.outputs == outputs) return known.type;
    Owned names{PyList_New(0)};
    for (int o = 0; o < s_.operands; ++o)
      if (outputs >> o & 1) PyList_Append(names.get(), f_.operand_names[o]);
    PyObject* type = PyObject_CallFunction(helpers.result_type, "sO", s_.name, names.get());
    if (type) f_.result_types->push_back({outputs, type});
    return type;
  }

 public:
  ~Call() { std::free(host_); }

 private:
  Function& f_;
  const rooftile_function& s_;
  PyObject* object_[ROOFTILE_MAX_OPERANDS] = {};  // borrowed: the caller's, or made_
  bool wanted_[ROOFTILE_MAX_OPERANDS] = {};
  Owned made_[ROOFTILE_MAX_OPERANDS], resolved_[ROOFTILE_MAX_OPERANDS];
  Array array_[ROOFTILE_MAX_OPERANDS];
  const rooftile_view* views_[ROOFTILE_MAX_OPERANDS] = {};
  double options_[ROOFTILE_MAX_OPTIONS];
  Lists lists_;
  int first_ = -1;
  PyObject *out_ = nullptr, *queue_ = nullptr, *object_like_ = nullptr;
  const char *device_ = nullptr, *variant_ = nullptr;
  Owned text_[2];
  bool wants_gradients_ = false;
  bool along_ = false;      ///< rows are along dimensions that the call names
  bool wrapped_ = false;    ///< an operand has no memory of its own
  bool elsewhere_ = false;  ///< the queue's stream is not the arrays' current one
  rooftile_workspace workspace_{nullptr, 0};
  void* host_ = nullptr;
  Owned workspace_object_;
  Array workspace_array_;
};

}  // namespace

PyObject* call_function(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return Call(*reinterpret_cast<Function*>(self)).run(args, count, keywords);
}

}  // namespace rooftile::python
