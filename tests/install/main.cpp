// Calls the installed library: the softmax of a small array sums to 1 in each row. With a folder's name it
// goes there first: the plug-ins must be found from anywhere.
#include <rooftile/rooftile.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc > 1 && chdir(argv[1]) != 0) return 2;
  const int rows = 3;
  const int columns = 37;
  std::vector<float> x(rows * columns);
  std::vector<float> y(x.size(), -1.0f);
  for (int i = 0; i < rows * columns; ++i) x[i] = std::sin(static_cast<float>(i));

  const rooftile::Queue queue = rooftile::Queue::cpu();
  if (rooftile::Status s = rooftile::softmax(queue, rooftile::view(x.data(), {rows, columns}),
                                             rooftile::view(y.data(), {rows, columns}));
      !s) {
    std::fprintf(stderr, "%s\n", s.message());
    return 1;
  }
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int column = 0; column < columns; ++column) sum += y[row * columns + column];
    if (!(std::fabs(sum - 1) < 1e-6)) {
      std::fprintf(stderr, "row %d sums to %.9g instead of 1\n", row, sum);
      return 1;
    }
  }
  std::printf("%d rows sum to 1, computed by %s\n", rows, queue.isa());
}
