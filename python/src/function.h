#pragma once
// A function of the library as Python calls it: its signature, and a call.
#include <Python.h>

#include <string>
#include <vector>

#include "rooftile/c.h"

namespace rooftile::python {

/// What Python's function object refers to.
struct Function {
  PyObject head;
  rooftile_function signature;
  std::string* doc;
  std::string* usage;  ///< "softmax(x, *, scale=1.0, …)"
  PyMethodDef method;
  bool below_gradients;  ///< called by the operators that have gradients: asks no tensor for them
  bool broadcasts;       ///< takes numbers, and shapes that broadcast, as add does
  PyObject* operand_names[ROOFTILE_MAX_OPERANDS];  // interned
  PyObject* option_names[ROOFTILE_MAX_OPTIONS];
  struct ResultType {
    unsigned outputs;  // a bit for each operand
    PyObject* type;
  };
  std::vector<ResultType>* result_types;
};

/// A rooftile.Queue.
struct QueueObject {
  PyObject head;
  rooftile_queue* queue;
  rooftile_queue_facts facts;
  void* stream;  ///< CUDA's
};
extern PyTypeObject* queue_type;
extern PyTypeObject* function_type;

/// The library's function of that place as a Python callable.
PyObject* make_function(PyObject* module, PyObject* args);
/// [{name, backward, workspace, operands: […], options: […]}, …].
PyObject* describe_functions(PyObject* module, PyObject* none);
/// XLA's custom call for host memory, or for CUDA's, in a capsule.
PyObject* xla_handler(PyObject* module, PyObject* cuda);

PyObject* call_function(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords);
/// The queue of a call without one: all threads of the CPU, the emulated device, or the arrays' stream.
PyObject* default_queue(const char* device, int index, void* stream);
/// That of PyTorch's tensors on the CPU: on PyTorch's own threads, where it has those of OpenMP.
PyObject* pytorchs_queue();

}  // namespace rooftile::python
