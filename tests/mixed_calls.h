#pragma once
// Twenty calls of all kinds, as a program makes them: for tests that run the same work in a graph, on several
// streams and from several threads, on a GPU and on the emulated device.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "rooftile/core/view_of.h"
#include "rooftile/ops/blas1/blas1.h"
#include "rooftile/ops/image/image.h"
#include "rooftile/ops/layer_norm/layer_norm.h"
#include "rooftile/ops/softmax/softmax.h"

namespace rooftile::mixed {

/// Where the work's memory is from: both host and device must see it.
struct Memory {
  void* (*allocate)(std::size_t bytes) = [](std::size_t bytes) { return std::aligned_alloc(256, bytes); };
  void (*release)(void*) = std::free;
};
inline Memory memory;

/// Floats, NaN at first.
class Values {
 public:
  explicit Values(std::int64_t count) : count_(count), data_(memory.allocate((bytes() + 255) / 256 * 256)) {
    if (data_) std::memset(data_, 0xff, bytes());
  }
  ~Values() { memory.release(data_); }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  float* data() const { return static_cast<float*>(data_); }
  std::int64_t count() const { return count_; }
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(float); }
  void fill(int seed) const {
    for (std::int64_t i = 0; i < count_; ++i)
      data()[i] = static_cast<float>((i * 7919 + seed * 104729) % 1013) / 300 - 1.6f;
  }

 private:
  std::int64_t count_;
  void* data_;
};

/// Each call uses what those before it wrote. All memory is there before the first.
struct Work {
  static constexpr int kCalls = 20;
  const std::int64_t rows, columns, width = columns - columns % 4, count = rows * columns;
  Values x{count}, y{count}, sum{count}, soft{count}, normal{count}, dx{count}, gray_in{count},
      gray_out{count};
  Values weight{columns}, bias{columns}, dweight{columns}, dbias{columns}, mean{rows}, rstd{rows}, dots{5};
  Values space{16 * columns + 1024};

  Work(std::int64_t of_rows, std::int64_t of_columns) : rows(of_rows), columns(of_columns) {}

  bool there() const { return space.data() && dots.data(); }
  void fill(int seed) const {
    x.fill(seed);
    y.fill(seed + 1);
    weight.fill(seed + 2);
    bias.fill(seed + 3);
    gray_in.fill(seed + 4);  // whatever its bits are: u8 takes any
  }
  std::vector<const Values*> results() const {
    return {&x, &y, &sum, &soft, &normal, &dx, &dweight, &dbias, &mean, &rstd, &dots};
  }
  void poison() const {
    for (const Values* v : {&sum, &soft, &normal, &dx, &dweight, &dbias, &mean, &rstd, &dots, &gray_out})
      std::memset(v->data(), 0xff, v->bytes());
  }
  /// Every bit that was written.
  std::vector<char> bits() const {
    std::vector<char> all;
    const auto take = [&](const Values& v, std::size_t bytes) {
      const char* from = reinterpret_cast<const char*>(v.data());
      all.insert(all.end(), from, from + bytes);
    };
    for (const Values* v : results()) take(*v, v->bytes());
    take(gray_out, static_cast<std::size_t>(rows * width));
    return all;
  }

  /// The first sentence of a call that was refused; else ok.
  Status run(const Queue& queue) const {
    for (int call = 0; call < kCalls; ++call)
      if (Status s = run(queue, call); !s) return s;
    return {};
  }

 private:
  View table(const Values& v) const { return view(v.data(), {rows, columns}); }
  View line(const Values& v) const { return view(v.data(), {v.count()}); }
  Status dot_of(const Queue& queue, const Values& a, const Values& b, int to) const {
    return dot(queue, table(a), table(b), scalar_view(dots.data() + to));
  }
  Status gray(const Queue& queue, GrayWeights weights) const {
    const auto* rgb = reinterpret_cast<const std::uint8_t*>(gray_in.data());
    return rgb_to_gray(queue, view(rgb, {rows, width, 3}),
                       view(reinterpret_cast<std::uint8_t*>(gray_out.data()), {rows, width}), {weights});
  }
  Status normalise(const Queue& queue, const Values& to) const {
    return layer_norm(queue, {.x = table(sum), .weight = line(weight), .bias = line(bias)},
                      {.y = table(to), .mean = line(mean), .rstd = line(rstd)});
  }
  Status gradients(const Queue& queue) const {
    return layer_norm_backward(
        queue,
        {.x = table(sum), .dy = table(soft), .weight = line(weight), .mean = line(mean), .rstd = line(rstd)},
        {.dx = table(dx), .dweight = line(dweight), .dbias = line(dbias)}, {},
        Workspace{space.data(), space.bytes()});
  }

  Status run(const Queue& queue, int call) const {
    switch (call) {
      case 0:
      case 10:
        return add(queue, table(x), call ? table(sum) : table(y), table(sum));
      case 1:
        return softmax(queue, table(sum), table(soft));
      case 2:
        return normalise(queue, normal);
      case 3:
        return gradients(queue);
      case 4:
        return dot_of(queue, normal, soft, 0);
      case 5:
        return axpby(queue, 0.5, table(normal), 0.25, table(y));
      case 6:
        return gray(queue, GrayWeights::bt601);
      case 7:
        return softmax_backward(queue, table(soft), table(normal), table(dx));
      case 8:
        return dot_of(queue, dx, y, 1);
      case 9:
        return copy(queue, table(dx), table(x));
      case 11:
        return softmax(queue, table(sum), table(soft), {.log = true});
      case 12:
        return dot_of(queue, soft, soft, 2);
      case 13:
        return normalise(queue, sum);
      case 14:
        return axpby(queue, -1, table(soft), 1e-3, table(x));
      case 15:
        return add(queue, table(sum), table(x), table(normal));
      case 16:
        return softmax(queue, table(normal), table(normal));
      case 17:
        return dot_of(queue, normal, sum, 3);
      case 18:
        return gray(queue, GrayWeights::luminosity);
      default:
        return dot_of(queue, x, y, 4);
    }
  }
};

}  // namespace rooftile::mixed
