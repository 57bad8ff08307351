#pragma once
// Arrays of any framework as the library's views, without copies: NumPy's by its own structure, those of
// types with DLPack's C exchange by that, all others by __dlpack__.
#include <Python.h>

#include <cstdint>

#include "python/src/dlpack_abi.h"
#include "rooftile/c.h"

namespace rooftile::python {

/// A reference that is given back.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* object) : object_(object) {}
  Owned(Owned&& other) noexcept : object_(other.release()) {}
  Owned& operator=(Owned&& other) noexcept {
    PyObject* old = object_;
    object_ = other.release();
    Py_XDECREF(old);
    return *this;
  }
  ~Owned() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  PyObject* object_ = nullptr;
};

/// How a type of arrays is read, and where new ones come from.
struct Framework {
  enum class Kind : std::uint8_t { numpy, exchange, dlpack, scalar };
  PyTypeObject* type = nullptr;
  Kind kind = Kind::dlpack;
  bool has_gradients = false;  ///< PyTorch's: calls with gradients are another's business
  bool immutable = false;      ///< JAX's
  const dlpack::ExchangeApi* api = nullptr;
};

/// One operand of a call.
struct Array {
  rooftile_view view;
  dlpack::Device device{dlpack::kCpu, 0};
  bool read_only = false;
  Framework framework;
  dlpack::ManagedVersioned* versioned = nullptr;  // what __dlpack__ gave, to be given back
  dlpack::Managed* managed = nullptr;

  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() {
    if (!versioned && !managed) return;
    // A deleter may run Python, where an error of this call must not be seen, nor lost.
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    if (versioned && versioned->deleter) versioned->deleter(versioned);
    if (managed && managed->deleter) managed->deleter(managed);
    PyErr_Restore(type, value, trace);
  }
};

/// The operand that an error is about.
struct Place {
  const char* function;
  const char* operand;
};

/// Python's side of this file: see rooftile/_frameworks.py.
struct Helpers {
  PyObject* framework_of;  ///< type → ("numpy" | "exchange" | "dlpack" | "scalar", has_gradients, immutable)
  PyObject* empty;         ///< (like, shape, dtype's name) → an array of like's framework, or one for
  PyObject* finish;        ///< (like, array) → what the caller gets of it
  PyObject* dtype_code;    ///< (function, operand, NumPy dtype) → its place in kDTypeNames, or raises
  PyObject* with_gradients;  ///< (function, args, kwargs) → the call's result
  PyObject* result_type;     ///< (function, names) → a named tuple's type
  PyObject* stream_of;       ///< (array of a GPU) → its framework's current stream there, as a number
  PyObject* used_on;         ///< (array, stream, device): that stream uses it, too
  PyObject* array_of;        ///< a NumPy scalar → an array of it
  PyObject* by_views;        ///< (function, args, words) → the result of a call on views of its arrays
  PyObject* option_value;    ///< (function, option, value) → a float; raises where a gradient would be lost
  PyObject* whole_number;    ///< (function, operand, int, like) → an array of it, beside `like`
  PyObject* numpy_empty;     ///< numpy.empty, or None until NumPy is imported
};
extern Helpers helpers;
/// What a helper (function, args, words) gives for a call; null after an error.
PyObject* hand_over(PyObject* helper, const char* function, PyObject* const* args, Py_ssize_t count,
                    PyObject* keywords);

/// What is asked of PyTorch, once one of its tensors was met.
struct Torch {
  PyObject* is_neg = nullptr;      ///< torch.Tensor.is_neg
  PyObject* written = nullptr;     ///< (list of tensors): their versions go on
  PyObject* forward_ad = nullptr;  ///< the dictionary of torch.autograd.forward_ad
};
extern Torch torch;
/// Whether a level of forward-mode differentiation is entered, so that a tensor may carry a tangent.
bool in_forward_mode();
/// Whether this is a view whose numbers are the negative of what memory holds, as PyTorch's imaginary part of
/// a conjugate is. Its strides do not tell: asking took 40 ns of a call's 1000.
bool is_negated(PyObject* object, const Framework& framework);

/// How arrays of this object's type are read; false with an exception where it is no array.
bool framework_of(PyObject* object, Place place, Framework& framework);
/// Fills `array`; false with an exception.
bool read_array(PyObject* object, Place place, Array& array);
/// A new dense array of `like`'s framework and device, as an object and as a view; false with an exception.
bool new_array(PyObject* like, const Array& like_array, int dtype, int rank, const std::int64_t* shape,
               Place place, Owned& object, Array& array);
/// The current stream of `object`'s framework on its CUDA device; null: the default one, or it does not say.
bool current_stream(PyObject* object, const Array& array, void*& stream);

/// NumPy's structure and dtypes, checked against a sample; false with an exception.
bool learn_numpy(PyObject* sample, PyObject* dtypes);

extern const char* const kDTypeNames[13];
/// Whether the library's sentence says which dtype there must be: "…, must be f32 as x is", "…, must be one
/// of f32, f16".
bool asks_for_dtype(const char* message);

}  // namespace rooftile::python
