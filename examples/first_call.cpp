// The smallest whole program: the softmax of one row, through the library.
// [first_call]
#include <rooftile/rooftile.h>

#include <cstdio>

int main() {
  const float x[4] = {1, 2, 3, 4};
  float y[4];
  const rooftile::Queue queue = rooftile::Queue::cpu();
  if (rooftile::Status s = rooftile::softmax(queue, rooftile::view(x, {1, 4}), rooftile::view(y, {1, 4}));
      !s) {
    std::fprintf(stderr, "%s\n", s.message());
    return 1;
  }
  std::printf("%.3f %.3f %.3f %.3f\n", y[0], y[1], y[2], y[3]);  // 0.032 0.087 0.237 0.644
}
// [/first_call]
