#pragma once
// dim3 and CUDA's short vectors, with the toolkit's alignments: a 16-byte vector is one access.

#define ROOFTILE_VECTORS(name, scalar, align2, align4)                                 \
  struct name##1 {                                                                     \
    scalar x;                                                                          \
  };                                                                                   \
  struct alignas(align2) name##2 {                                                     \
    scalar x, y;                                                                       \
  };                                                                                   \
  struct name##3 {                                                                     \
    scalar x, y, z;                                                                    \
  };                                                                                   \
  struct alignas(align4) name##4 {                                                     \
    scalar x, y, z, w;                                                                 \
  };                                                                                   \
  constexpr name##1 make_##name##1(scalar x) { return {x}; }                           \
  constexpr name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }              \
  constexpr name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

ROOFTILE_VECTORS(char, signed char, 2, 4)
ROOFTILE_VECTORS(uchar, unsigned char, 2, 4)
ROOFTILE_VECTORS(short, short, 4, 8)
ROOFTILE_VECTORS(ushort, unsigned short, 4, 8)
ROOFTILE_VECTORS(int, int, 8, 16)
ROOFTILE_VECTORS(uint, unsigned, 8, 16)
ROOFTILE_VECTORS(longlong, long long, 16, 16)
ROOFTILE_VECTORS(ulonglong, unsigned long long, 16, 16)
ROOFTILE_VECTORS(float, float, 8, 16)
ROOFTILE_VECTORS(double, double, 16, 16)
#undef ROOFTILE_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
