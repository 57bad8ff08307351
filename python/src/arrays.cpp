#include "python/src/arrays.h"

#include <cstring>
#include <string_view>

namespace rooftile::python {

Helpers helpers{};
Torch torch;

const char* const kDTypeNames[13] = {"f64", "f32", "tf32", "f16", "bf16", "f8e4m3", "f8e5m2",
                                     "i64", "i32", "i8",   "u8",  "bool", "u4"};

namespace {

constexpr int kItemBytes[13] = {8, 4, 4, 2, 2, 1, 1, 8, 4, 1, 1, 1, 1};

// ---- NumPy

/// The front of a PyArrayObject: since NumPy 1.0 part of its C interface (PyArray_DATA and the others read it
/// in line). learn_numpy() checks it.
struct NumpyArray {
  PyObject head;
  char* data;
  int rank;
  std::intptr_t* shape;
  std::intptr_t* strides;  // in bytes
  PyObject* base;
  PyObject* dtype;
  int flags;
};
constexpr int kWriteable = 0x0400;  // NPY_ARRAY_WRITEABLE

/// dtypes by their address: the native ones, which are single objects, and those that were met.
struct KnownDType {
  PyObject* object;
  int dtype;
};
KnownDType known_dtypes[64];
int known_count = 0;
bool numpy_learned = false;

int dtype_of_numpy(PyObject* dtype, Place place) {
  for (int i = 0; i < known_count; ++i)
    if (known_dtypes[i].object == dtype) return known_dtypes[i].dtype;
  // Others by their names: bf16 and the 8-bit floats of ml_dtypes, copies of the native ones.
  Owned code{PyObject_CallFunction(helpers.dtype_code, "ssO", place.function, place.operand, dtype)};
  if (!code) return -1;
  const int found = static_cast<int>(PyLong_AsLong(code.get()));
  if (found >= 0 && known_count < 64) {
    Py_INCREF(dtype);
    known_dtypes[known_count++] = {dtype, found};
  }
  return found;
}

bool read_numpy(PyObject* object, Place place, Array& a) {
  const NumpyArray& n = *reinterpret_cast<const NumpyArray*>(object);
  const int dtype = dtype_of_numpy(n.dtype, place);
  if (dtype < 0) return false;
  a.view.data = n.data;
  a.view.dtype = static_cast<std::uint8_t>(dtype);
  a.view.rank = n.rank;
  a.read_only = !(n.flags & kWriteable);
  const int bytes = kItemBytes[dtype];
  bool empty = false;
  for (int d = 0; d < n.rank; ++d) empty = empty || n.shape[d] == 0;
  for (int d = 0; d < n.rank && d < 8; ++d) {
    a.view.shape[d] = n.shape[d];
    a.view.stride[d] = n.strides[d] / bytes;
    if (n.strides[d] % bytes != 0 && n.shape[d] > 1 && !empty) {
      PyErr_Format(
          PyExc_ValueError,
          "%s: %s has a stride of %zd bytes, which is no multiple of the %d bytes of %s; pass a copy",
          place.function, place.operand, n.strides[d], bytes, kDTypeNames[dtype]);
      return false;
    }
  }
  return true;
}

// ---- DLPack

int dtype_of_dlpack(dlpack::DataType t) {
  enum { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6, kFloat8E4M3FN = 10, kFloat8E5M2 = 12 };
  if (t.lanes != 1) return -1;
  switch (t.code) {
    case kFloat:
      return t.bits == 64 ? ROOFTILE_F64 : t.bits == 32 ? ROOFTILE_F32 : t.bits == 16 ? ROOFTILE_F16 : -1;
    case kBfloat:
      return t.bits == 16 ? ROOFTILE_BF16 : -1;
    case kInt:
      return t.bits == 64 ? ROOFTILE_I64 : t.bits == 32 ? ROOFTILE_I32 : t.bits == 8 ? ROOFTILE_I8 : -1;
    case kUInt:
      return t.bits == 8 ? ROOFTILE_U8 : -1;
    case kBool:
      return t.bits == 8 ? ROOFTILE_BOOL : -1;
    case kFloat8E4M3FN:
      return t.bits == 8 ? ROOFTILE_F8E4M3 : -1;
    case kFloat8E5M2:
      return t.bits == 8 ? ROOFTILE_F8E5M2 : -1;
    default:
      return -1;
  }
}

dlpack::DataType dlpack_of_dtype(int dtype) {
  constexpr std::uint8_t kCode[13] = {2, 2, 2, 2, 4, 10, 12, 0, 0, 0, 1, 6, 1};
  return {kCode[dtype], static_cast<std::uint8_t>(8 * kItemBytes[dtype]), 1};
}

bool read_tensor(const dlpack::Tensor& t, Place place, Array& a) {
  const int dtype = dtype_of_dlpack(t.dtype);
  if (dtype < 0) {
    constexpr const char* kNames[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
    if (t.dtype.lanes == 1 && t.dtype.code < 7)
      PyErr_Format(PyExc_TypeError, "%s: %s has dtype %s%d, which the library does not know", place.function,
                   place.operand, kNames[t.dtype.code], t.dtype.bits);
    else
      PyErr_Format(PyExc_TypeError,
                   "%s: %s has a dtype that the library does not know (DLPack's code %d, %d bits, %d lanes)",
                   place.function, place.operand, t.dtype.code, t.dtype.bits, t.dtype.lanes);
    return false;
  }
  if (t.rank < 0 || (t.rank > 0 && !t.shape)) {
    PyErr_Format(PyExc_ValueError, "%s: %s came by DLPack with %d dimensions%s: its object is broken",
                 place.function, place.operand, static_cast<int>(t.rank), t.rank > 0 ? " and no shape" : "");
    return false;
  }
  const bool host = t.device.type == dlpack::kCpu || t.device.type == dlpack::kCudaHost;
  const bool cuda = t.device.type == dlpack::kCuda || t.device.type == dlpack::kCudaManaged;
  if (!host && !cuda) {
    PyErr_Format(
        PyExc_ValueError,
        "%s: %s lies on a device of DLPack's type %d; the library takes arrays of the CPU and of CUDA",
        place.function, place.operand, static_cast<int>(t.device.type));
    return false;
  }
  a.device = host ? dlpack::Device{dlpack::kCpu, 0} : dlpack::Device{dlpack::kCuda, t.device.id};
  a.view.data = t.data ? static_cast<char*>(t.data) + t.byte_offset : nullptr;
  a.view.dtype = static_cast<std::uint8_t>(dtype);
  a.view.rank = t.rank;
  std::uint64_t dense = 1;
  for (int d = t.rank - 1; d >= 0 && t.rank <= 8;
       --d) {  // of more dimensions the library says that they are too many
    a.view.shape[d] = t.shape[d];
    a.view.stride[d] = t.strides ? t.strides[d] : static_cast<std::int64_t>(dense);
    dense *= static_cast<std::uint64_t>(t.shape[d] > 0 ? t.shape[d] : 1);
  }
  return true;
}

/// A framework's current stream, by Python.
bool stream_of(PyObject* object, void*& stream) {
  Owned number{PyObject_CallFunctionObjArgs(helpers.stream_of, object, nullptr)};
  if (!number) return false;
  stream = PyLong_AsVoidPtr(number.get());
  return !PyErr_Occurred();
}

/// The producer makes its data ready on the stream it is told: the one that the call will be on; 1: CUDA's
/// default one.
Owned capsule_of(PyObject* object) {
  long type = dlpack::kCpu;
  if (Owned device{PyObject_CallMethod(object, "__dlpack_device__", nullptr)}) {
    PyObject* first = PyTuple_Check(device.get()) ? PyTuple_GetItem(device.get(), 0) : nullptr;
    if (first) type = PyLong_AsLong(first);
  }
  if (PyErr_Occurred()) return Owned();
  Owned method{PyObject_GetAttrString(object, "__dlpack__")};
  if (!method) return Owned();
  Owned none{PyTuple_New(0)};
  Owned words{PyDict_New()};
  Owned version{Py_BuildValue("(ii)", 1, 3)};
  if (!none || !words || !version) return Owned();
  if (type == dlpack::kCuda) {
    void* current = nullptr;
    if (!stream_of(object, current)) return Owned();
    Owned stream{current ? PyLong_FromVoidPtr(current) : PyLong_FromLong(1)};
    if (!stream) return Owned();
    PyDict_SetItemString(words.get(), "stream", stream.get());
  }
  PyDict_SetItemString(words.get(), "max_version", version.get());
  if (Owned capsule{PyObject_Call(method.get(), none.get(), words.get())}) return capsule;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return Owned();
  PyErr_Clear();  // from before DLPack 1.0
  PyDict_DelItemString(words.get(), "max_version");
  return Owned{PyObject_Call(method.get(), none.get(), words.get())};
}

bool read_capsule(PyObject* object, Place place, Array& a) {
  Owned capsule = capsule_of(object);
  if (!capsule) return false;
  if (PyCapsule_IsValid(capsule.get(), "dltensor_versioned")) {
    auto* m =
        static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"));
    PyCapsule_SetName(capsule.get(), "used_dltensor_versioned");
    a.versioned = m;
    if (m->version.major != 1) {
      PyErr_Format(PyExc_ValueError, "%s: %s speaks DLPack %u.%u, this package 1.x", place.function,
                   place.operand, m->version.major, m->version.minor);
      return false;
    }
    a.read_only = m->flags & dlpack::kReadOnly;
    return read_tensor(m->tensor, place, a);
  }
  if (PyCapsule_IsValid(capsule.get(), "dltensor")) {
    a.managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
    PyCapsule_SetName(capsule.get(), "used_dltensor");
    return read_tensor(a.managed->tensor, place, a);
  }
  PyErr_Format(PyExc_TypeError,
               "%s: the __dlpack__ of %s returned %R, must return a capsule that is not used", place.function,
               place.operand, capsule.get());
  return false;
}

// ---- Which type is read how

Framework frameworks[64];
int framework_count = 0;

bool learn_framework(PyTypeObject* type, Place place, Framework& framework) {
  Owned answer{PyObject_CallFunction(helpers.framework_of, "ssO", place.function, place.operand,
                                     reinterpret_cast<PyObject*>(type))};
  if (!answer) return false;
  const char* kind = nullptr;
  int has_gradients = 0, immutable = 0;
  if (!PyArg_ParseTuple(answer.get(), "spp", &kind, &has_gradients, &immutable)) return false;
  framework = {type, Framework::Kind::dlpack, has_gradients != 0, immutable != 0, nullptr};
  if (std::strcmp(kind, "numpy") == 0) framework.kind = Framework::Kind::numpy;
  if (std::strcmp(kind, "scalar") == 0) framework.kind = Framework::Kind::scalar;
  if (std::strcmp(kind, "exchange") == 0) {
    Owned capsule{PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__")};
    if (!capsule) return false;
    auto* api =
        static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
    if (!api) return false;
    while (api && api->version.major != 1) api = api->previous;
    if (api && api->tensor_from_object) {
      framework.kind = Framework::Kind::exchange;
      framework.api = api;
    }
  }
  return true;
}

}  // namespace

bool framework_of(PyObject* object, Place place, Framework& framework) {
  PyTypeObject* type = Py_TYPE(object);
  for (int i = 0; i < framework_count; ++i)
    if (frameworks[i].type == type) {
      framework = frameworks[i];
      return true;
    }
  if (!learn_framework(type, place, framework)) return false;
  if (framework_count == 64) return true;  // a program that makes types: theirs are asked anew each time
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  frameworks[framework_count++] = framework;
  return true;
}

namespace {

bool read_exchange(PyObject* object, Place place, Array& array) {
  dlpack::Tensor tensor;
  if (array.framework.api->tensor_from_object(object, &tensor) != 0) {
    if (array.framework.has_gradients) {  // PyTorch's own words are a trace of its C++
      PyErr_Clear();
      PyErr_Format(PyExc_ValueError, "%s: %s has no dense memory of its own: it is sparse or without storage",
                   place.function, place.operand);
    } else if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_ValueError, "%s: %s gave no tensor", place.function, place.operand);
    }
    return false;
  }
  return read_tensor(tensor, place, array);
}

}  // namespace

PyObject* hand_over(PyObject* helper, const char* function, PyObject* const* args, Py_ssize_t count,
                    PyObject* keywords) {
  Owned places{PyTuple_New(count)}, named{PyDict_New()};
  if (!places || !named) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SetItem(places.get(), i, args[i]);
  }
  for (Py_ssize_t i = 0; keywords && i < PyTuple_Size(keywords); ++i)
    PyDict_SetItem(named.get(), PyTuple_GetItem(keywords, i), args[count + i]);
  return PyObject_CallFunction(helper, "sOO", function, places.get(), named.get());
}

bool asks_for_dtype(const char* message) {
  constexpr std::string_view kMust = ", must be ", kOne = "one of ";
  const char* at = std::strstr(message, kMust.data());
  if (!at) return false;
  at += kMust.size();
  if (std::strncmp(at, kOne.data(), kOne.size()) == 0) at += kOne.size();
  const std::size_t length = std::strcspn(at, ", ");
  for (const char* const name : kDTypeNames)
    if (std::strlen(name) == length && std::strncmp(at, name, length) == 0) return true;
  return false;
}

bool in_forward_mode() {
  static PyObject* const name = PyUnicode_InternFromString("_current_level");
  PyObject* level = torch.forward_ad ? PyDict_GetItem(torch.forward_ad, name) : nullptr;
  return level && PyLong_Check(level) && PyLong_AsLong(level) >= 0;
}

bool is_negated(PyObject* object, const Framework& framework) {
  if (!framework.has_gradients || !torch.is_neg) return false;
  Owned negated{PyObject_CallFunctionObjArgs(torch.is_neg, object, nullptr)};
  PyErr_Clear();  // a tracer of JAX
  return negated.get() == Py_True;
}

bool read_array(PyObject* object, Place place, Array& array) {
  if (!framework_of(object, place, array.framework)) return false;
  array.read_only = array.framework.immutable;
  switch (array.framework.kind) {
    case Framework::Kind::numpy:
      return read_numpy(object, place, array);
    case Framework::Kind::exchange:
      return read_exchange(object, place, array);
    default:
      return read_capsule(object, place, array);
  }
}

bool new_array(PyObject* like, const Array& like_array, int dtype, int rank, const std::int64_t* shape,
               Place place, Owned& object, Array& array) {
  if (like_array.framework.kind == Framework::Kind::exchange) {
    dlpack::Tensor prototype{};
    prototype.device = like_array.device;
    prototype.rank = rank;
    prototype.dtype = dlpack_of_dtype(dtype);
    prototype.shape = const_cast<std::int64_t*>(shape);
    dlpack::ManagedVersioned* managed = nullptr;
    const auto set_error = [](void*, const char*, const char* message) {
      PyErr_SetString(PyExc_RuntimeError, message);
    };
    void* made = nullptr;
    if (like_array.framework.api->allocate(&prototype, &managed, nullptr, set_error) != 0 ||
        like_array.framework.api->object_from_managed(managed, &made) != 0) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_MemoryError, "%s: no memory for %s", place.function, place.operand);
      return false;
    }
    object = Owned(static_cast<PyObject*>(made));
    return read_array(object.get(), place, array);
  }
  Owned sizes{PyTuple_New(rank)};
  if (!sizes) return false;
  for (int d = 0; d < rank; ++d) PyTuple_SetItem(sizes.get(), d, PyLong_FromLongLong(shape[d]));
  PyObject* native = nullptr;
  if (like_array.framework.kind == Framework::Kind::numpy)
    for (int i = 0; i < known_count && !native; ++i)
      if (known_dtypes[i].dtype == dtype) native = known_dtypes[i].object;
  if (native && helpers.numpy_empty)
    object = Owned(PyObject_CallFunctionObjArgs(helpers.numpy_empty, sizes.get(), native, nullptr));
  else
    object = Owned(
        PyObject_CallFunction(helpers.empty, "sOOs", place.function, like, sizes.get(), kDTypeNames[dtype]));
  return object && read_array(object.get(), place, array);
}

bool current_stream(PyObject* object, const Array& array, void*& stream) {
  stream = nullptr;
  if (array.framework.kind != Framework::Kind::exchange) return stream_of(object, stream);
  if (array.framework.api->current_stream(array.device.type, array.device.id, &stream) == 0) return true;
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, "rooftile: the current stream could not be found");
  return false;
}

bool learn_numpy(PyObject* sample, PyObject* dtypes) {
  if (!numpy_learned) {
    const NumpyArray& n = *reinterpret_cast<const NumpyArray*>(sample);  // (2, 3) of f32, every second column
    Owned interface { PyObject_GetAttrString(sample, "__array_interface__") };
    if (!interface) return false;
    PyObject* data = PyDict_GetItemString(interface.get(), "data");
    const void* address = data ? PyLong_AsVoidPtr(PyTuple_GetItem(data, 0)) : nullptr;
    Owned dtype{PyObject_GetAttrString(sample, "dtype")};
    if (!dtype || PyErr_Occurred()) return false;
    if (n.data != address || n.rank != 2 || n.shape[0] != 2 || n.shape[1] != 3 || n.strides[0] != 24 ||
        n.strides[1] != 8 || n.dtype != dtype.get() || (n.flags & kWriteable)) {
      PyErr_SetString(PyExc_ImportError,
                      "rooftile: this NumPy lays its arrays out in another way than NumPy 1 and 2; please "
                      "install one of these");
      return false;
    }
    numpy_learned = true;
  }
  const Py_ssize_t count = PyList_Size(dtypes);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *dtype = nullptr, *pair = PyList_GetItem(dtypes, i);
    int code = 0;
    if (!PyArg_ParseTuple(pair, "Oi", &dtype, &code)) return false;
    if (known_count == 64) break;
    Py_INCREF(dtype);
    known_dtypes[known_count++] = {dtype, code};
  }
  return true;
}

}  // namespace rooftile::python
