// The copies of copy.h: checked, element by element, and timed beside the runtime's own. Lesson 14 walks
// through them.
//   nvcc -std=c++17 -O3 -arch=native -isystem build/cute/include -o build/cute/copy examples/cute/copy.cu &&
//   build/cute/copy
// g++ builds it as well, where there is no nvcc: lesson 14 says how.
#include "copy.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#ifdef __CUDACC__
void check(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "copy: line %d: %s: %s\n", line, call, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)
#endif

/// An array where the copies run: on the GPU, or on the CPU without nvcc. 256 bytes' alignment.
template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& host) : bytes_(host.size() * sizeof(T)) {
#ifdef __CUDACC__
    CHECK(cudaMalloc(&data_, bytes_));
    CHECK(cudaMemcpy(data_, host.data(), bytes_, cudaMemcpyHostToDevice));
#else
    data_ = static_cast<T*>(::operator new (bytes_, std::align_val_t{256}));
    std::memcpy(data_, host.data(), bytes_);
#endif
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() {
#ifdef __CUDACC__
    CHECK(cudaFree(data_));
#else
    ::operator delete (data_, std::align_val_t{256});
#endif
  }
  T* data() { return data_; }
  std::vector<T> host() const {
    std::vector<T> host(bytes_ / sizeof(T));
#ifdef __CUDACC__
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host.data(), data_, bytes_, cudaMemcpyDeviceToHost));
#else
    std::memcpy(host.data(), data_, bytes_);
#endif
    return host;
  }

 private:
  std::size_t bytes_;
  T* data_ = nullptr;
};

/// A matrix in an array: its first element is the array's element `first`, of `elements`.
struct Placed {
  Strides strides;
  std::int64_t first, elements;

  /// `before` elements lie in front of the matrix, and `after` past it.
  Placed(std::int64_t rows, std::int64_t columns, Strides s, std::int64_t before, std::int64_t after)
      : strides(s) {
    std::int64_t low = 0, high = 0;
    if (rows > 0 && columns > 0)
      for (const std::int64_t reach : {(rows - 1) * s.down, (columns - 1) * s.across})
        (reach < 0 ? low : high) += reach;
    first = before - low;
    elements = before - low + high + 1 + after;
  }
  std::int64_t operator()(std::int64_t row, std::int64_t column) const {
    return first + row * strides.down + column * strides.across;
  }
};

/// Is y what two loops make it, and all around it what it was?
template <class T, class Copy>
bool right(const char* what, std::int64_t rows, std::int64_t columns, Strides xs, Strides ys, int x_off,
           int y_off, Copy copy) {
  constexpr int kGuard = 16384;  // more than a tile
  const Placed x(rows, columns, xs, x_off, 0), y(rows, columns, ys, kGuard + y_off, kGuard);
  std::vector<T> source(x.elements), expected(y.elements, T(0xAB));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = T(i * 37 % 8191 + 1);
  Array<T> device_x(source), device_y(expected);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      expected[y(row, column)] = source[x(row, column)];

  copy(device_x.data() + x.first, device_y.data() + y.first);
  const std::vector<T> result = device_y.host();
  for (std::size_t i = 0; i < result.size(); ++i)
    if (result[i] != expected[i]) {
      std::fprintf(
          stderr,
          "copy: %s of %lld x %lld elements of %zu bytes, strides %lld %lld to %lld %lld, from %d to %d: ",
          what, (long long)rows, (long long)columns, sizeof(T), (long long)xs.down, (long long)xs.across,
          (long long)ys.down, (long long)ys.across, x_off, y_off);
      std::fprintf(stderr, "element %lld of y's array is %g, must be %g\n", (long long)i - y.first,
                   double(result[i]), double(expected[i]));
      return false;
    }
  return true;
}

template <class T>
bool check_vectors() {
  int cases = 0;
  for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 15, 16, 17, 4095, 4096, 4097, 12289, 100000})
    for (const std::int64_t x_stride : {1, 2, -1, 0, 3})
      for (const std::int64_t y_stride : {1, 2, -1})
        for (const auto& [x_off, y_off] : {std::pair{0, 0}, {1, 0}, {0, 1}}) {
          const auto copy = [&](const T* x, T* y) { copy_vector(x, y, n, x_stride, y_stride); };
          if (!right<T>("vector", 1, n, {0, x_stride}, {0, y_stride}, x_off, y_off, copy)) return false;
          ++cases;
        }
  std::printf("%d vectors of %zu-byte elements are right\n", cases, sizeof(T));
  return true;
}

template <class T>
bool check_matrices() {
  int cases = 0;
  for (const std::int64_t r : {0, 1, 2, 7, 32, 33, 100})
    for (const std::int64_t c : {0, 1, 3, 4, 30, 127, 128, 129, 260}) {
      const std::int64_t padded = (c / 16 + 1) * 16;
      const std::pair<Strides, Strides> layouts[] = {
          {{c, 1}, {c, 1}},            // contiguous
          {{padded, 1}, {padded, 1}},  // rows of whole vectors
          {{c + 3, 1}, {padded, 1}},   // odd rows
          {{1, r}, {1, r + 5}},        // columns
          {{c, 1}, {1, r}},            // transposed
          {{4 * c, 2}, {c, 1}},        // every second element
          {{-c, -1}, {c, 1}},          // from the end
          {{0, 1}, {padded, 1}},       // one row for all
      };
      for (const auto& [xs, ys] : layouts)
        for (const auto& [x_off, y_off] : {std::pair{0, 0}, {1, 0}, {0, 1}}) {
          const auto copy = [&, xs = xs, ys = ys](const T* x, T* y) { copy_matrix(x, y, r, c, xs, ys); };
          if (!right<T>("matrix", r, c, xs, ys, x_off, y_off, copy)) return false;
          ++cases;
        }
    }
  std::printf("%d matrices of %zu-byte elements are right\n", cases, sizeof(T));
  return true;
}

#ifdef __CUDACC__
/// The median of 21 calls, in microseconds.
template <class Work>
double time_of(Work work) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> times(21);
  work();  // the first loads the kernel
  for (float& ms : times) {
    CHECK(cudaEventRecord(begin));
    work();
    CHECK(cudaEventRecord(end));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  return 1000. * times[times.size() / 2];
}

/// One line: CuTe's copy, and the runtime's of the same where it has one.
template <class Copy, class Runtime>
void line(const char* what, double elements, Copy copy, Runtime runtime) {
  const double bytes = 2 * elements * sizeof(float), us = time_of(copy), theirs = time_of(runtime);
  std::printf("%-44s %8.1f us %6.0f GB/s, the runtime's %8.1f us %6.0f GB/s\n", what, us, bytes / us / 1e3,
              theirs, bytes / theirs / 1e3);
}

void time_all() {
  const std::int64_t side = 8192, n = side * side;
  Array<float> x_array{std::vector<float>(n)}, y_array{std::vector<float>(n)};
  const float* x = x_array.data();
  float* y = y_array.data();
  // [times]
  const auto memcpy = [&](const float* from, std::int64_t many) {
    return [=] { CHECK(cudaMemcpyAsync(y, from, many * sizeof(float), cudaMemcpyDeviceToDevice)); };
  };
  const auto memcpy_rows = [&](std::int64_t columns, std::int64_t apart) {
    return [=] {
      const std::size_t pitch = apart * sizeof(float);
      CHECK(cudaMemcpy2DAsync(y, pitch, x, pitch, columns * sizeof(float), side, cudaMemcpyDeviceToDevice));
    };
  };
  line(
      "vector of 8192^2", n, [&] { copy_vector(x, y, n, 1, 1); }, memcpy(x, n));
  line(
      "vector of 8192^2 - 1, x not aligned", n - 1, [&] { copy_vector(x + 1, y, n - 1, 1, 1); },
      memcpy(x + 1, n - 1));
  line(
      "8192 x 8191, rows 8192 apart", side * (side - 1),
      [&] {
        copy_matrix(x, y, side, side - 1, {side, 1}, {side, 1});
      },
      memcpy_rows(side - 1, side));
  line(
      "8192 x 8191, rows 8191 apart", side * (side - 1),
      [&] {
        copy_matrix(x, y, side, side - 1, {side - 1, 1}, {side - 1, 1});
      },
      memcpy_rows(side - 1, side - 1));
  line(
      "8192 x 8192, transposed", n,
      [&] {
        copy_matrix(x, y, side, side, {side, 1}, {1, side});
      },
      memcpy(x, n));
  line(
      "4194304 x 16, rows 16 apart", n,
      [&] {
        copy_matrix(x, y, n / 16, 16, {16, 1}, {16, 1});
      },
      memcpy(x, n));
  // [/times]
}
#endif

int main() {
#ifdef __CUDACC__
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s\n", properties.name);
#else
  std::printf("CPU: all threads one after another\n");
#endif
  bool all_right = check_vectors<float>() && check_matrices<std::uint16_t>();
#ifdef __CUDACC__
  all_right = all_right && check_vectors<std::uint16_t>() && check_matrices<float>();
  if (all_right) time_all();
#endif
  return all_right ? 0 : 1;
}
