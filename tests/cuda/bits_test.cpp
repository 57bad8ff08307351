// On a GPU: products by wgmma have the bits of mma, on which a row's bits in any batch rest, and the emulated
// tensor core has those of the GPU's. Skipped with a sentence where there is no GPU, or none that has wgmma.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
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

/// a {m, k} times b {k, n}, which is kept by columns.
template <class T, class Y>
class Product {
 public:
  Product(std::int64_t m, std::int64_t k, std::int64_t n, unsigned seed)
      : m_(m), k_(k), n_(n), a_(m * k), b_(k * n), one_(m * n), other_(m * n) {
    if (!is_there()) return;
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < m * k; ++i) a_.data()[i] = drawn<T>(random);
    for (std::int64_t i = 0; i < k * n; ++i) b_.data()[i] = drawn<T>(random);
  }
  bool is_there() const { return a_.data() && b_.data() && one_.data() && other_.data(); }

  void has_the_same_bits(const Queue& queue, const char* variant, const Queue& other,
                         const char* other_variant) const {
    ASSERT_TRUE(is_there());
    run(queue, one_, variant);
    run(other, other_, other_variant);
    EXPECT_EQ(std::memcmp(one_.data(), other_.data(), one_.bytes()), 0) << m_ << "x" << k_ << "x" << n_;
  }

 private:
  void run(const Queue& queue, const Array<Y>& y, const char* variant) const {
    std::memset(y.data(), 0xA5, y.bytes());
    ConstView columns = view(static_cast<const T*>(b_.data()), {n_, k_});
    std::swap(columns.shape[0], columns.shape[1]);
    std::swap(columns.stride[0], columns.stride[1]);
    GemmOptions options;
    options.variant = variant;
    const Status s = gemm(queue, {view(static_cast<const T*>(a_.data()), {m_, k_}), columns},
                          view(y.data(), {m_, n_}), options);
    ASSERT_TRUE(s) << s.message();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  std::int64_t m_, k_, n_;
  Array<T> a_, b_;
  Array<Y> one_, other_;
};

template <class T, class Y>
void gives_the_bits_of_mma(std::int64_t m, std::int64_t k, std::int64_t n) {
  Product<T, Y>(m, k, n, static_cast<unsigned>(m + k + n))
      .has_the_same_bits(Queue::cuda(), "wgmma", Queue::cuda(), "mma");
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

/// ROOFTILE_TILES tiles or somewhat more, each of 16 x 8 sums of one instruction: `depth` products a sum.
template <class T, class Y>
void one_instruction_has_a_gpus_bits(const Queue& gpu, const Queue& emulated, std::int64_t depth) {
  constexpr std::int64_t kSide = 1024, kTiles = (kSide / 16) * (kSide / 8);
  const char* const wanted = std::getenv("ROOFTILE_TILES");
  const std::int64_t tiles = wanted ? std::atoll(wanted) : 2 * kTiles;
  for (std::int64_t p = 0; p * kTiles < tiles && !testing::Test::HasFailure(); ++p)
    Product<T, Y>(kSide, depth, kSide, static_cast<unsigned>(p))
        .has_the_same_bits(gpu, "mma", emulated, "mma");
}

TEST(Bits, TheEmulatedTensorCoreHasAGpus) {
  if (const std::string why = no_hopper(); !why.empty()) GTEST_SKIP() << why;
  const Queue gpu = Queue::cuda(), emulated = Queue::emulated();
  if (!emulated.status()) GTEST_SKIP() << emulated.status().message();
  one_instruction_has_a_gpus_bits<bf16, float>(gpu, emulated, 16);
  one_instruction_has_a_gpus_bits<f16, float>(gpu, emulated, 16);
  one_instruction_has_a_gpus_bits<tf32, float>(gpu, emulated, 8);
  one_instruction_has_a_gpus_bits<std::int8_t, std::int32_t>(gpu, emulated, 32);
  Product<bf16, float>(256, 1024, 256, 1).has_the_same_bits(gpu, "wgmma", emulated, "wgmma");
}

}  // namespace
}  // namespace rooftile
