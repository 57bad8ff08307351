#pragma once
// A call's operands that are lists of arrays, as optimisers take: read and written in place, without
// gradients.
#include <deque>
#include <vector>

#include "python/src/arrays.h"

namespace rooftile::python {

class Lists {
 public:
  struct Item {
    int operand;
    PyObject* object;  ///< borrowed: the list's
    Array array;
  };

  /// Takes a function's lists from its operands, which are lists or tuples of arrays, or one array for a list
  /// of one; an item that is optional may be None. views: of each list, the first of its views. False: a
  /// Python error.
  bool read(const rooftile_function& function, PyObject* const* objects, const rooftile_view** views);

  /// All that are there, list by list.
  const std::deque<Item>& items() const { return items_; }
  /// How many each list has; 1 of a function without lists.
  std::int64_t tensors() const { return tensors_; }

 private:
  bool read_item(const rooftile_function& function, int operand, Py_ssize_t place, PyObject* object);

  std::deque<Item> items_;
  std::vector<rooftile_view> views_[ROOFTILE_MAX_OPERANDS];
  std::int64_t tensors_ = 1;
};

}  // namespace rooftile::python
