// The module rooftile._core: the library's functions as callables, queues, and what functions take.
#include <cstring>

#include "python/src/arrays.h"
#include "python/src/function.h"
#include "python/src/openmp.h"

namespace rooftile::python {

PyTypeObject* queue_type = nullptr;
PyTypeObject* function_type = nullptr;

namespace {

PyObject* none() {
  Py_INCREF(Py_None);
  return Py_None;
}

// ---- Queue

PyObject* queue_of(PyTypeObject* type, const char* device, const rooftile_queue_options& options) {
  rooftile_queue* queue = nullptr;
  rooftile_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = rooftile_queue_new(device, &options, &queue);
  Py_END_ALLOW_THREADS;
  if (!queue) {
    PyErr_SetString(PyExc_ValueError, status.message);
    return nullptr;
  }
  const auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  auto* self = reinterpret_cast<QueueObject*>(alloc(type, 0));
  if (!self) {
    rooftile_queue_free(queue);
    return nullptr;
  }
  self->queue = queue;
  self->stream = options.stream;
  rooftile_queue_about(queue, &self->facts);
  return reinterpret_cast<PyObject*>(self);
}

PyObject* queue_new(PyTypeObject* type, PyObject* args, PyObject* named) {
  static const char* const kWords[] = {"device", "threads", "isa",    "architecture",  "checked",
                                       "seed",   "index",   "stream", "plugin_folder", nullptr};
  const char* device = "cpu";
  rooftile_queue_options options = ROOFTILE_QUEUE_DEFAULTS;
  unsigned long long seed = 0;
  PyObject* stream = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, named, "|s$iziiKiOz:Queue", const_cast<char**>(kWords), &device,
                                   &options.threads, &options.isa, &options.architecture, &options.checked,
                                   &seed, &options.device, &stream, &options.plugin_folder))
    return nullptr;
  options.seed = seed;
  if (stream && stream != Py_None) {
    options.stream = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred()) return nullptr;
  }
  return queue_of(type, device, options);
}

void queue_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  rooftile_queue_free(reinterpret_cast<QueueObject*>(self)->queue);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

const rooftile_queue_facts& facts_of(PyObject* self) { return reinterpret_cast<QueueObject*>(self)->facts; }

PyObject* queue_repr(PyObject* self) {
  const rooftile_queue_facts& f = facts_of(self);
  if (std::strcmp(f.device, "cuda") == 0) return PyUnicode_FromFormat("rooftile.Queue('cuda': %s)", f.isa);
  return PyUnicode_FromFormat("rooftile.Queue('%s': %s, threads=%d)", f.device, f.isa, f.threads);
}

PyGetSetDef queue_facts[] = {
    {"device", [](PyObject* s, void*) { return PyUnicode_FromString(facts_of(s).device); }, nullptr,
     "\"cpu\", \"cuda\" or \"emulated\"", nullptr},
    {"isa", [](PyObject* s, void*) { return PyUnicode_FromString(facts_of(s).isa); }, nullptr,
     "the instruction set: \"avx512\"; of a GPU \"sm_90\"", nullptr},
    {"isa_reason", [](PyObject* s, void*) { return PyUnicode_FromString(facts_of(s).isa_reason); }, nullptr,
     "why that one, in a sentence", nullptr},
    {"threads", [](PyObject* s, void*) { return PyLong_FromLong(facts_of(s).threads); }, nullptr,
     "how many threads run a call", nullptr},
    {"architecture", [](PyObject* s, void*) { return PyLong_FromLong(facts_of(s).architecture); }, nullptr,
     "of a GPU: 90 for compute capability 9.0; 0: of a CPU", nullptr},
    {"index", [](PyObject* s, void*) { return PyLong_FromLong(facts_of(s).index); }, nullptr,
     "of 'cuda': the GPU's number; otherwise -1", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

constexpr char kQueueDoc[] =
    "Queue(device='cpu', *, threads=0, isa=None, architecture=90, checked=False, seed=0, index=-1, "
    "stream=None, plugin_folder=None)\n--\n\n"
    "Where calls run: pass it as queue=. Calls on one queue run one after another.\n\n"
    "device: 'cpu', 'cuda' or 'emulated' (the GPU's kernels on this CPU, on host arrays).\n"
    "threads: of 'cpu' and 'emulated'; 0: all that this process may use.\n"
    "isa: of 'cpu': 'baseline', 'avx2' or 'avx512'; None: $ROOFTILE_CPU, else the best there is.\n"
    "architecture, checked, seed: of 'emulated': 80, 86, 89 or 90; find races and more, far slower; shuffle\n"
    "a block's threads.\n"
    "index, stream: of 'cuda': the GPU's number (-1: the current one) and a cudaStream_t as a number.\n"
    "plugin_folder: None: $ROOFTILE_PLUGINS, else the package's own.\n\n"
    "Raises ValueError where an option or the machine does not allow it.";

PyType_Slot queue_slots[] = {{Py_tp_new, reinterpret_cast<void*>(queue_new)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(queue_dealloc)},
                             {Py_tp_repr, reinterpret_cast<void*>(queue_repr)},
                             {Py_tp_getset, queue_facts},
                             {Py_tp_doc, const_cast<char*>(kQueueDoc)},
                             {0, nullptr}};
PyType_Spec queue_spec{"rooftile.Queue", sizeof(QueueObject), 0, Py_TPFLAGS_DEFAULT, queue_slots};

// ---- Functions: they live as long as the process

/// As what a function is pickled by: getattr(the module, its name).
PyObject* function_reduce(PyObject*, PyObject*) {
  Owned importlib{PyImport_ImportModule("importlib")};
  if (!importlib) return nullptr;
  return Py_BuildValue("N(s)", PyObject_GetAttrString(importlib.get(), "import_module"), "rooftile");
}

PyMethodDef function_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
PyType_Slot function_slots[] = {{Py_tp_methods, function_methods}, {0, nullptr}};
PyType_Spec function_spec{"rooftile._core.Function", sizeof(Function), 0, Py_TPFLAGS_DEFAULT, function_slots};

/// {"name": …}, of one operand.
PyObject* describe(const rooftile_operand& o) {
  constexpr const char* kRoles[] = {"input", "output", "in_out"};
  Owned dtypes{PyList_New(0)};
  for (int t = 0; t < 13; ++t) {
    if (!(o.dtypes >> t & 1)) continue;
    Owned name{PyUnicode_FromString(kDTypeNames[t])};
    PyList_Append(dtypes.get(), name.get());
  }
  const char type[] = {o.type, '\0'}, or_as[] = {o.or_as, '\0'}, wide_as[] = {o.wide_as, '\0'},
             below[] = {o.below, '\0'};
  return Py_BuildValue("{ss ss ss ss ss ss ss sO sN sN sN ss ss sN}", "name", o.name, "role", kRoles[o.role],
                       "may_be", o.may_be, "sum_of", o.sum_of, "type", type, "or_as", or_as, "wide_as",
                       wide_as, "dtypes", dtypes.get(), "optional", PyBool_FromLong(o.optional), "one",
                       PyBool_FromLong(o.one), "outer", PyBool_FromLong(o.outer), "letters", o.letters,
                       "below", below, "list", PyBool_FromLong(o.list));
}

PyObject* describe(const rooftile_option& o) {
  constexpr const char* kKinds[] = {"flag", "choice", "real", "any_real", "whole"};
  return Py_BuildValue("{ss ss ss sd sd sd}", "name", o.name, "kind", kKinds[o.kind], "words", o.words,
                       "default", o.otherwise, "least", o.least, "most", o.most);
}

PyObject* set_helpers(PyObject*, PyObject* args) {
  return PyArg_ParseTuple(args, "OOOOOOOOOOOO", &helpers.framework_of, &helpers.empty, &helpers.finish,
                          &helpers.dtype_code, &helpers.with_gradients, &helpers.result_type,
                          &helpers.stream_of, &helpers.used_on, &helpers.option_value, &helpers.whole_number,
                          &helpers.array_of, &helpers.by_views)
             ? (Py_INCREF(args), none())
             : nullptr;
}

PyObject* set_numpy(PyObject*, PyObject* args) {
  PyObject *empty = nullptr, *sample = nullptr, *dtypes = nullptr;
  if (!PyArg_ParseTuple(args, "OOO!", &empty, &sample, &PyList_Type, &dtypes)) return nullptr;
  if (!learn_numpy(sample, dtypes)) return nullptr;
  Py_INCREF(empty);
  helpers.numpy_empty = empty;
  return none();
}

PyObject* set_torch(PyObject*, PyObject* args) {
  return PyArg_ParseTuple(args, "OOO!", &torch.is_neg, &torch.written, &PyDict_Type, &torch.forward_ad)
             ? (Py_INCREF(args), none())
             : nullptr;
}

PyMethodDef methods[] = {
    {"functions", describe_functions, METH_NOARGS, "What each function takes, from its signature."},
    {"make_function", make_function, METH_VARARGS, "(place, usage, doc, below_gradients) → a callable."},
    {"set_helpers", set_helpers, METH_VARARGS, "Python's side of reading and making arrays."},
    {"set_numpy", set_numpy, METH_VARARGS,
     "(numpy.empty, a sample, dtypes): reads NumPy's arrays from now on."},
    {"set_torch", set_torch, METH_VARARGS,
     "(Tensor.is_neg, written, vars(forward_ad)): what is asked of PyTorch from now on."},
    {"xla_handler", xla_handler, METH_O, "(cuda) → XLA's custom call, for jax.ffi.register_ffi_target."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition{
    PyModuleDef_HEAD_INIT, "rooftile._core", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

/// A queue without which a call came.
struct Default {
  std::string device;
  int index;
  void* stream;
  PyObject* queue;
};

}  // namespace

/// Types, queues and what was learnt of frameworks belong to one interpreter. Python gives another one a copy
/// of the module without its initialisation, so the package's first call asks, too.
bool main_interpreter() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return true;
  PyErr_SetString(
      PyExc_ImportError,
      "rooftile: is imported in a subinterpreter, and works in a process's main one only; use threads or "
      "processes");
  return false;
}

PyObject* describe_functions(PyObject*, PyObject*) {
  if (!main_interpreter()) return nullptr;
  Owned all{PyList_New(0)};
  rooftile_function f;
  for (int place = 0; rooftile_function_at(place, &f); ++place) {
    Owned operands{PyList_New(0)}, options{PyList_New(0)};
    for (int o = 0; o < f.operands; ++o) {
      Owned one{describe(f.operand[o])};
      if (!one || PyList_Append(operands.get(), one.get()) != 0) return nullptr;
    }
    for (int k = 0; k < f.options; ++k) {
      Owned one{describe(f.option[k])};
      if (!one || PyList_Append(options.get(), one.get()) != 0) return nullptr;
    }
    Owned one{Py_BuildValue("{ss sz sN ss sO sO}", "name", f.name, "backward", f.backward, "workspace",
                            PyBool_FromLong(f.has_workspace), "where", f.where, "operands", operands.get(),
                            "options", options.get())};
    if (!one || PyList_Append(all.get(), one.get()) != 0) return nullptr;
  }
  return all.release();
}

PyObject* make_function(PyObject*, PyObject* args) {
  int place = 0, below = 0;
  const char *usage = nullptr, *doc = nullptr;
  if (!PyArg_ParseTuple(args, "issp", &place, &usage, &doc, &below)) return nullptr;
  rooftile_function signature;
  if (!rooftile_function_at(place, &signature)) {
    PyErr_Format(PyExc_IndexError, "rooftile: there is no function of place %d", place);
    return nullptr;
  }
  const auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(function_type, Py_tp_alloc));
  auto* f = reinterpret_cast<Function*>(alloc(function_type, 0));
  if (!f) return nullptr;
  f->signature = signature;
  f->doc = new std::string(doc);
  f->usage = new std::string(usage);
  f->below_gradients = below != 0;
  f->broadcasts = !below && std::strcmp(f->signature.name, "add") == 0;
  f->result_types = new std::vector<Function::ResultType>;
  for (int o = 0; o < signature.operands; ++o)
    f->operand_names[o] = PyUnicode_InternFromString(signature.operand[o].name);
  for (int k = 0; k < signature.options; ++k)
    f->option_names[k] = PyUnicode_InternFromString(signature.option[k].name);
  f->method = {signature.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_function)),
               METH_FASTCALL | METH_KEYWORDS, f->doc->c_str()};
  Owned module{PyUnicode_FromString("rooftile")};
  return PyCFunction_NewEx(&f->method, reinterpret_cast<PyObject*>(f), module.get());
}

PyObject* pytorchs_queue() {
  const rooftile_executor* threads = pytorchs_threads();
  if (!threads) return default_queue("cpu", 0, nullptr);
  static PyObject* made = nullptr;
  if (!made) {
    rooftile_queue_options options = ROOFTILE_QUEUE_DEFAULTS;
    options.executor = threads;
    made = queue_of(queue_type, "cpu", options);
  }
  return made;
}

PyObject* default_queue(const char* device, int index, void* stream) {
  static auto& made = *new std::vector<Default>;
  for (const Default& it : made)
    if (it.device == device && it.index == index && it.stream == stream) return it.queue;
  Owned named{PyDict_New()};
  Owned args{Py_BuildValue("(s)", device)};
  if (!named || !args) return nullptr;
  if (std::strcmp(device, "cuda") == 0) {
    Owned number{PyLong_FromLong(index)}, pointer{PyLong_FromVoidPtr(stream)};
    PyDict_SetItemString(named.get(), "index", number.get());
    PyDict_SetItemString(named.get(), "stream", pointer.get());
  }
  PyObject* queue = PyObject_Call(reinterpret_cast<PyObject*>(queue_type), args.get(), named.get());
  if (queue) made.push_back({device, index, stream, queue});
  return queue;
}

}  // namespace rooftile::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__core() {
  using namespace rooftile::python;
  if (!main_interpreter()) return nullptr;
  Owned module{PyModule_Create(&definition)};
  if (!module) return nullptr;
  queue_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&queue_spec));
  function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&function_spec));
  if (!queue_type || !function_type) return nullptr;
  Py_INCREF(reinterpret_cast<PyObject*>(queue_type));
  if (PyModule_AddObject(module.get(), "Queue", reinterpret_cast<PyObject*>(queue_type)) != 0) return nullptr;
  return module.release();
}
