#include "python/src/lists.h"

#include <cstdio>

namespace rooftile::python {

bool Lists::read(const rooftile_function& function, PyObject* const* objects, const rooftile_view** views) {
  int counted = -1;  // the first list
  for (int o = 0; o < function.operands; ++o) {
    const rooftile_operand& operand = function.operand[o];
    if (!operand.list || !objects[o]) continue;
    const bool list = PyList_Check(objects[o]), tuple = PyTuple_Check(objects[o]);
    const Py_ssize_t count = list ? PyList_Size(objects[o]) : tuple ? PyTuple_Size(objects[o]) : 1;
    if (counted >= 0 && count != tensors_) {
      PyErr_Format(PyExc_ValueError, "%s: %s has %zd arrays, must have %zd as %s has", function.name,
                   operand.name, count, static_cast<Py_ssize_t>(tensors_), function.operand[counted].name);
      return false;
    }
    if (counted < 0) counted = o;
    tensors_ = count;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* object = list    ? PyList_GetItem(objects[o], i)
                         : tuple ? PyTuple_GetItem(objects[o], i)
                                 : objects[o];
      if (!object || !read_item(function, o, i, object)) return false;
    }
    views[o] = views_[o].data();
  }
  return true;
}

bool Lists::read_item(const rooftile_function& function, int operand, Py_ssize_t place, PyObject* object) {
  const rooftile_operand& its = function.operand[operand];
  rooftile_view& view = views_[operand].emplace_back();
  view.rank = -1;
  if (object == Py_None && its.optional) return true;
  char name[80];
  std::snprintf(name, sizeof name, "%s[%zd]", its.name, place);
  const Place where{function.name, name};
  Item& item = items_.emplace_back();
  item.operand = operand;
  item.object = object;
  Array& array = item.array;
  if (!framework_of(object, where, array.framework)) return false;
  if (array.framework.kind == Framework::Kind::scalar) {
    PyErr_Format(PyExc_TypeError, "%s: %s is a NumPy scalar; pass an array", function.name, name);
    return false;
  }
  if (is_negated(object, array.framework)) {
    PyErr_Format(PyExc_ValueError, "%s: %s is a negated view of other memory; pass its .resolve_neg()",
                 function.name, name);
    return false;
  }
  if (!read_array(object, where, array)) return false;
  if (its.role != ROOFTILE_INPUT && array.read_only) {
    PyErr_Format(PyExc_ValueError, "%s: %s is %s, and the function writes it; pass another array",
                 function.name, name, array.framework.immutable ? "an immutable array" : "read-only");
    return false;
  }
  if (!(array.device == items_.front().array.device)) {
    PyErr_Format(PyExc_ValueError,
                 "%s: %s and %s[0] are on different devices; all arrays of a call are on one", function.name,
                 name, function.operand[items_.front().operand].name);
    return false;
  }
  view = array.view;
  return true;
}

}  // namespace rooftile::python
