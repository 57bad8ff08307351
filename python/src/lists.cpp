#include "python/src/lists.h"

#include <cstdio>

namespace rooftile::python {

bool Lists::read(const rooftile_function& f, PyObject* const* objects) {
  int counted = -1;  // the first list
  for (int o = 0; o < f.operands; ++o) {
    if (!f.operand[o].list || !objects[o]) continue;
    PyObject* whole = objects[o];
    const bool list = PyList_Check(whole), tuple = PyTuple_Check(whole);
    const Py_ssize_t count = list ? PyList_Size(whole) : tuple ? PyTuple_Size(whole) : 1;
    if (counted >= 0 && count != tensors) {
      PyErr_Format(PyExc_ValueError, "%s: %s has %zd arrays, must have %zd as %s has", f.name,
                   f.operand[o].name, count, static_cast<Py_ssize_t>(tensors), f.operand[counted].name);
      return false;
    }
    if (counted < 0) counted = o;
    tensors = count;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* object = list ? PyList_GetItem(whole, i) : tuple ? PyTuple_GetItem(whole, i) : whole;
      if (!object || !read_item(f, o, i, object)) return false;
    }
  }
  return true;
}

bool Lists::read_item(const rooftile_function& f, int operand, Py_ssize_t place, PyObject* object) {
  const rooftile_operand& its = f.operand[operand];
  rooftile_view& view = views[operand].emplace_back();
  view.rank = -1;
  if (object == Py_None && its.optional) return true;
  char name[80];
  std::snprintf(name, sizeof name, "%s[%zd]", its.name, place);
  const Place where{f.name, name};
  Item& item = items.emplace_back();
  item.operand = operand;
  item.object = object;
  Array& array = item.array;
  if (!framework_of(object, where, array.framework)) return false;
  if (is_negated(object, array.framework)) {
    PyErr_Format(PyExc_ValueError, "%s: %s is a negated view of other memory; pass its .resolve_neg()",
                 f.name, name);
    return false;
  }
  if (!read_array(object, where, array)) return false;
  if (its.role != ROOFTILE_INPUT && array.read_only) {
    PyErr_Format(PyExc_ValueError, "%s: %s is %s, and the function writes it; pass another array", f.name,
                 name, array.framework.immutable ? "an immutable array" : "read-only");
    return false;
  }
  if (!(array.device == items.front().array.device)) {
    PyErr_Format(PyExc_ValueError,
                 "%s: %s and %s[0] are on different devices; all arrays of a call are on one", f.name, name,
                 f.operand[items.front().operand].name);
    return false;
  }
  view = array.view;
  return true;
}

}  // namespace rooftile::python
