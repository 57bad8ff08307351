#pragma once
// Operands that are lists: any number of arrays for each, as many as of the function's other lists.
#include <Python.h>

#include <deque>
#include <vector>

#include "python/src/arrays.h"

namespace rooftile::python {

struct Lists {
  struct Item {
    int operand;
    PyObject* object;  ///< borrowed: the list's
    Array array;
  };
  std::deque<Item> items;  ///< those that are there, on one device
  std::vector<rooftile_view> views[ROOFTILE_MAX_OPERANDS];
  std::int64_t tensors = 1;

  /// Those of a function's operands that are lists, or tuples, or one array for a list of one; None for an
  /// item that is left out. False with an exception.
  bool read(const rooftile_function& function, PyObject* const* objects);

 private:
  bool read_item(const rooftile_function& function, int operand, Py_ssize_t place, PyObject* object);
};

}  // namespace rooftile::python
