// Judges the layouts of lesson 14's exercise, in the header that the compiler's -include names. Each layout
// is a function, so it is compared with one written by hand, at every coordinate.
#include <cstdio>
#include <cute/tensor.hpp>

int failures = 0;

/// `right(coordinates…)`: the index that the layout must give.
template <class Layout, class Right>
void judge(const char* name, const Layout& layout, Right right) {
  const auto coordinates = make_identity_layout(cute::shape(layout));
  for (int i = 0; i < size(layout); ++i) {
    const auto at = coordinates(i);
    const int must = cute::apply(flatten(at), right), is = static_cast<int>(layout(at));
    if (is == must) continue;
    std::printf("%-20s coordinate ", name);
    print(at);
    std::printf(" gives %d, must be %d\n", is, must);
    ++failures;
    return;
  }
  std::printf("%-20s right: ", name);
  print(layout);
  std::printf("\n");
}

int main() {
  judge("part_of_a_matrix", part_of_a_matrix(), [](int row, int column) { return 12 * row + column; });
  judge("transposed", transposed(), [](int column, int row) { return 12 * row + column; });
  judge("image", image(), [](int color, int row, int column) { return (6 * row + column) * 3 + color; });
  judge("threads_and_values", threads_and_values(),
        [](int thread, int neighbour, int pair) { return 16 * pair + 2 * thread + neighbour; });
  judge("windows", windows(), [](int window, int element) { return window + element; });
  return failures == 0 ? 0 : 1;
}
