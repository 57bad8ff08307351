#include "rooftile/ops/activation/activation.tile.h"
#include "rooftile/ops/gemm/gemm.problem.h"
#include "rooftile/tile/cpu/elements.h"

namespace rooftile {
namespace {
using namespace tile;

template <class T>
float value_of(const void* p, std::int64_t at) {
  const T& x = static_cast<const T*>(p)[at];
  if constexpr (std::is_same_v<T, tf32>)
    return to_float(tf32{x.bits & 0xffffe000u});
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<float>(x);
  else
    return to_float(x);
}

float activated(int which, float x) {
  const Tile<float> t = fill<float>(x);
  switch (which) {
    case 1:
      return kernels::relu(t).v[0][0];
    case 2:
      return kernels::gelu_erf(t).v[0][0];
    case 3:
      return kernels::gelu_tanh(t).v[0][0];
    case 4:
      return kernels::silu(t, 1).v[0][0];
    case 5:
      return kernels::sigmoid(t).v[0][0];
    case 6:
      return kernels::tanh(t).v[0][0];
    default:
      return x;
  }
}

template <class T>
void multiply(const GemmProblem& p, std::int64_t matrix) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      const std::int64_t a = p.batch.offset(1, matrix) + i * p.a_row,
                         b = p.batch.offset(2, matrix) + j * p.b_column;
      const std::int64_t y = p.batch.offset(0, matrix) + i * p.y_row + j * p.y_column,
                         c = p.batch.offset(3, matrix) + i * p.c_row + j * p.c_column;
      if constexpr (std::is_same_v<T, std::int8_t>) {
        std::int32_t sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k)
          sum += static_cast<const T*>(p.a)[a + k * p.a_column] * static_cast<const T*>(p.b)[b + k * p.b_row];
        if (p.bias) sum += static_cast<const std::int32_t*>(p.bias)[j * p.bias_stride];
        static_cast<std::int32_t*>(p.y)[y] = sum;
      } else {
        using S = std::conditional_t<std::is_same_v<T, double>, double, float>;
        S sum = 0;
        const auto at = [](const void* q, std::int64_t k) -> S {
          if constexpr (std::is_same_v<T, double>)
            return static_cast<const double*>(q)[k];
          else
            return value_of<T>(q, k);
        };
        for (std::int64_t k = 0; k < p.k; ++k)
          sum = std::fma(at(p.a, a + k * p.a_column), at(p.b, b + k * p.b_row), sum);
        const auto any = [&](const void* q, DType type, std::int64_t k) {
          return type == DType::tf32 ? S(static_cast<const float*>(q)[k])
                                     : S(load_scalar(static_cast<const char*>(q) + k * bits(type) / 8, type));
        };
        S v = S(p.alpha) * sum;
        if (p.bias) v = std::fma(S(p.alpha), sum, any(p.bias, p.bias_type, j * p.bias_stride));
        if constexpr (std::is_same_v<T, double>)
          v = p.activation == 1 && v <= 0 ? 0 : v;
        else
          v = activated(p.activation, v);
        if (p.reads_c()) v = std::fma(S(p.beta), any(p.c, p.out, c), v);
        if (p.out == DType::tf32)
          static_cast<tf32*>(p.y)[y] = from_double<tf32>(v);
        else
          store_scalar(static_cast<char*>(p.y) + y * bits(p.out) / 8, p.out, v);
      }
    }
}

void launch_tile(const CpuLaunch& launch, const GemmProblem& p) {
  if (p.empty()) return;
  for_programs(launch, p.batch.rows, p.batch.rows * p.m * p.n * p.k,
               [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                 for (std::int64_t matrix = begin; matrix < end; ++matrix)
                   with_type<double, float, tf32, f16, bf16, std::int8_t>(
                       p.type, [&]<class T>() { multiply<T>(p, matrix); });
               });
}

}  // namespace

ROOFTILE_CPU_KERNELS(gemm) = {
    entry<launch_tile>("gemm", "tile"),
    {},
};

}  // namespace rooftile
