// On a GPU: products by wgmma have the bits of mma, on which a row's bits in any batch rest. Skipped with a
// sentence where there is no GPU, or none that has wgmma.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>

#include "rooftile/core/convert.h"
#include "rooftile/ops/gemm/gemm.h"

namespace rooftile {
namespace {

std::string no_hopper() {
  int devices = 0, major = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess)
    return cudaGetErrorString(error);
  if (devices == 0) return "there is no GPU";
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  return major == 9 ? "" : "the GPU has no wgmma";
}

/// Memory that host and device see.
template <class T>
class Array {
 public:
  explicit Array(std::int64_t count) : bytes_(static_cast<std::size_t>(count) * sizeof(T)) {
    if (cudaMallocManaged(&data_, bytes_) != cudaSuccess) data_ = nullptr;
  }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  T* data() const { return static_cast<T*>(data_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

template <class T>
T drawn(std::mt19937& random) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<int>(random() % 256) - 128);
  else
    return from_double<T>(double(std::normal_distribution<float>()(random)) * double(1 << random() % 8));
}

/// a {m, k}, b {k, n} kept by columns; y of type Y.
template <class T, class Y>
void gives_the_bits_of_mma(std::int64_t m, std::int64_t k, std::int64_t n) {
  std::mt19937 random(static_cast<unsigned>(m + k + n));
  const Array<T> a(m * k), b(k * n);
  const Array<Y> by_wgmma(m * n), by_mma(m * n);
  for (const void* data : {static_cast<void*>(a.data()), static_cast<void*>(b.data()),
                           static_cast<void*>(by_wgmma.data()), static_cast<void*>(by_mma.data())})
    ASSERT_NE(data, nullptr);
  for (std::int64_t i = 0; i < m * k; ++i) a.data()[i] = drawn<T>(random);
  for (std::int64_t i = 0; i < k * n; ++i) b.data()[i] = drawn<T>(random);
  ConstView columns = view(static_cast<const T*>(b.data()), {n, k});
  std::swap(columns.shape[0], columns.shape[1]);
  std::swap(columns.stride[0], columns.stride[1]);
  const Queue queue = Queue::cuda();
  const auto run = [&](const Array<Y>& y, const char* variant) {
    std::memset(y.data(), 0xA5, y.bytes());
    GemmOptions options;
    options.variant = variant;
    const Status s = gemm(queue, {view(static_cast<const T*>(a.data()), {m, k}), columns},
                          view(y.data(), {m, n}), options);
    ASSERT_TRUE(s) << s.message();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  };
  run(by_wgmma, "wgmma");
  run(by_mma, "mma");
  EXPECT_EQ(std::memcmp(by_wgmma.data(), by_mma.data(), by_mma.bytes()), 0) << m << "x" << k << "x" << n;
}

TEST(Bits, WgmmaHasThoseOfMma) {
  if (const std::string why = no_hopper(); !why.empty()) GTEST_SKIP() << why;
  for (const std::int64_t m : {1, 16, 64, 300, 1024})
    for (const std::int64_t k : {16, 1040, 4096}) {
      gives_the_bits_of_mma<bf16, float>(m, k, 520);
      gives_the_bits_of_mma<tf32, float>(m, k, 520);
      gives_the_bits_of_mma<std::int8_t, std::int32_t>(m, k, 520);
    }
}

}  // namespace
}  // namespace rooftile
