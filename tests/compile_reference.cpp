// The yardstick of compile_budget_test.cpp: a kernel as this project writes them, in one file that includes
// nothing, so that the time to compile it says how fast the machine is, and how busy. Change it, and its
// figure there with it.
#define INLINE inline __attribute__((always_inline))

namespace {

typedef float Vector __attribute__((vector_size(16), aligned(4), may_alias));

struct Tile {
  Vector v[4];
};
template <class F>
INLINE Tile each(F f) {
  return {{f(0), f(1), f(2), f(3)}};
}
INLINE Tile operator+(const Tile& a, const Tile& b) {
  return each([&](int i) { return a.v[i] + b.v[i]; });
}
INLINE Tile operator-(const Tile& a, const Tile& b) {
  return each([&](int i) { return a.v[i] - b.v[i]; });
}
INLINE Tile operator*(const Tile& a, const Tile& b) {
  return each([&](int i) { return a.v[i] * b.v[i]; });
}
INLINE Tile fill(float value) {
  return each([&](int) { return value - Vector{}; });
}

/// `kDegree` steps of a polynomial along a row, then what is left of the row, one by one.
template <int kDegree, bool kAdds>
__attribute__((noinline, flatten)) float row(const float* x, const float* weight, float* y, long size) {
  Tile sums = fill(0), shift = fill(static_cast<float>(kDegree));
  const auto step = [&](const Tile& h, const Tile& w) {
    Tile p = fill(1);
    for (int d = kDegree; d > 0; --d) p = p * (h - shift) + fill(1 / static_cast<float>(d));
    sums = sums + p * w;
    return p;
  };
  const auto load = [](const float* from, long at) {
    return each([&](int i) { return *reinterpret_cast<const Vector*>(from + at + 4 * i); });
  };
  long at = 0;
  for (; at + 16 <= size; at += 16) {
    Tile p = step(load(x, at), load(weight, at));
    if (kAdds) p = p + load(y, at);
    for (int i = 0; i < 4; ++i) *reinterpret_cast<Vector*>(y + at + 4 * i) = p.v[i];
  }
  if (at < size) {
    float room[2][16] = {};
    for (long k = at; k < size; ++k) {
      room[0][k - at] = x[k];
      room[1][k - at] = weight[k];
    }
    const Tile p = step(load(room[0], 0), load(room[1], 0));
    for (long k = at; k < size; ++k) y[k] = p.v[(k - at) / 4][(k - at) % 4] + (kAdds ? y[k] : 0);
  }
  float sum = 0;
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 4; ++k) sum += sums.v[i][k];
  return sum;
}

template <int kDegree>
float rows(const float* x, const float* weight, float* y, long size) {
  float sum = row<kDegree, false>(x, weight, y, size) + row<kDegree, true>(x, weight, y, size);
  if constexpr (kDegree > 1) sum += rows<kDegree - 1>(x, weight, y, size);
  return sum;
}

}  // namespace

float compile_reference(const float* x, const float* weight, float* y, long size) {
  return rows<16>(x, weight, y, size);
}
