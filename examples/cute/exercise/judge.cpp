// Judges the layouts of lesson 14's exercise, in the header that the compiler's -include names. Each layout
// is a function, so it is compared with one written by hand: its shape, then its index at every coordinate.
#include <cstdio>
#include <cute/tensor.hpp>

int failures = 0;

/// `shape`: of the coordinates that it must take; `right(coordinates…)`: the index that it must give.
template <class Layout, class Shape, class Right>
void judge(const char* name, const Layout& layout, const Shape& shape, Right right) {
  if constexpr (decltype(congruent(shape, cute::shape(layout)))::value) {
    const auto coordinates = make_identity_layout(shape);
    for (int i = 0; cute::shape(layout) == shape && i < size(layout); ++i) {
      const auto at = coordinates(i);
      const int must = cute::apply(flatten(at), right), is = static_cast<int>(layout(at));
      if (is == must) continue;
      std::printf("%-20s coordinate ", name);
      print(at);
      std::printf(" gives %d, must be %d\n", is, must);
      ++failures;
      return;
    }
  }
  const bool is_right = cute::shape(layout) == shape;
  std::printf(is_right ? "%-20s right: " : "%-20s has the shape ", name);
  if (is_right) {
    print(layout);
  } else {
    print(cute::shape(layout));
    std::printf(", must have ");
    print(shape);
    ++failures;
  }
  std::printf("\n");
}

int main() {
  judge("part_of_a_matrix", part_of_a_matrix(), make_shape(5, 7),
        [](int row, int column) { return 12 * row + column; });
  judge("transposed", transposed(), make_shape(7, 5), [](int column, int row) { return 12 * row + column; });
  judge("image", image(), make_shape(3, 4, 6),
        [](int color, int row, int column) { return (6 * row + column) * 3 + color; });
  judge("threads_and_values", threads_and_values(), make_shape(8, make_shape(2, 2)),
        [](int thread, int neighbour, int pair) { return 16 * pair + 2 * thread + neighbour; });
  judge("windows", windows(), make_shape(8, 3), [](int window, int element) { return window + element; });
  return failures == 0 ? 0 : 1;
}
