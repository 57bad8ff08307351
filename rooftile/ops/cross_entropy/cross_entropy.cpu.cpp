#include <algorithm>

#include "rooftile/ops/cross_entropy/cross_entropy.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// In the first cache, since it is read for its largest logit, then for the exponentials: 16 KiB of f32.
constexpr std::int64_t kSegment = 4096;
/// Of a row, as far as indices of 32 bits go.
constexpr std::int64_t kPart = std::int64_t{1} << 30;

/// Runs program.operator()<T>(team, row, end) for each row; `bytes`: what the call moves.
template <int kOperands, class Program>
void for_logits(const CpuLaunch& launch, const Rows<kOperands>& rows, const CrossEntropyTerms& terms,
                DType dtype, std::int64_t bytes, Program program) {
  const bool dense = rows.dense() && (!terms.weight.data || terms.weight.stride == 1);
  with_access(dense, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_row_type<kAccess>(dtype, [&]<class T>() {
      for_programs(launch, rows.rows, bytes,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row)
                       program.template operator()<T>(CpuTeam<float, kAccess>(scratch, dtype), row, end);
                     if (kAccess == Access::streaming) stream_fence();
                   });
    });
  });
}

/// What the rows add to the mean's divisor.
template <int kOperands>
double divisor_of(const Rows<kOperands>& rows, int target, const CrossEntropyTerms& terms) {
  double sum = 0;
  for (std::int64_t row = 0; row < rows.rows; ++row)
    sum += terms.share_of(terms.target_at(rows.offset(target, row)));
  return sum;
}

void launch_forward(const CpuLaunch& launch, const CrossEntropyProblem& p) {
  using P = CrossEntropyProblem;
  if (p.parts != CrossEntropyParts::shared)
    for_logits(
        launch, p.rows, p.terms, p.dtype, p.rows.rows * p.rows.columns * bits(p.dtype) / 8,
        [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
          kernels::cross_entropy(
              team, row_of<const T>(p.rows, P::kLogits, p.logits, row, end), kSegment, p.terms.smooths(), p,
              {p.rows.offset(P::kTarget, row), p.rows.offset(P::kLosses, row), p.rows.offset(P::kLse, row)});
        });
  if (p.parts == CrossEntropyParts::rows) return;
  double sum = 0;
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    sum += double(p.losses[p.rows.offset(P::kLosses, row)]);
  *p.loss = static_cast<float>(p.terms.mean ? sum / divisor_of(p.rows, P::kTarget, p.terms) : sum);
}

CrossEntropyShared shared_of(const CrossEntropyBackwardProblem& p) {
  CrossEntropyShared shared{0, static_cast<double>(p.terms.classes)};
  if (p.reduces())
    shared.gradient = p.dloss_or_one() /
                      (p.terms.mean ? divisor_of(p.rows, CrossEntropyBackwardProblem::kTarget, p.terms) : 1);
  if (p.weighs()) {
    shared.weights = 0;
    for (std::int64_t c = 0; c < p.terms.classes; ++c) shared.weights += p.terms.weight_of(c);
  }
  return shared;
}

void launch_backward(const CpuLaunch& launch, const CrossEntropyBackwardProblem& p) {
  using P = CrossEntropyBackwardProblem;
  const CrossEntropyShared shared = p.parts == CrossEntropyParts::rows ? *p.shared : shared_of(p);
  if (p.parts == CrossEntropyParts::shared) {
    *p.shared = shared;
    return;
  }
  const bool weighted = p.weighs();
  for_logits(
      launch, p.rows, p.terms, p.dtype, 2 * p.rows.rows * p.rows.columns * bits(p.dtype) / 8,
      [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
        const auto factors =
            kernels::cross_entropy_factors(p, shared, p.rows.offset(P::kTarget, row),
                                           p.rows.offset(P::kLse, row), p.rows.offset(P::kDlosses, row));
        const auto logits = row_of<const T>(p.rows, P::kLogits, p.logits, row, end);
        const auto dlogits = row_of<T>(p.rows, P::kDlogits, p.dlogits, row, end);
        const Row<const float> weight{weighted ? static_cast<const float*>(p.terms.weight.data) : nullptr,
                                      p.terms.classes, p.terms.weight.stride};
        team.one_pass();
        for (std::int64_t first = 0; first < logits.size; first += kPart)
          kernels::cross_entropy_backward(team, logits.part(first, kPart), dlogits.part(first, kPart),
                                          weighted ? weight.part(first, kPart) : weight, first, factors);
      });
}

}  // namespace

ROOFTILE_CPU_KERNELS(cross_entropy) = {
    entry<launch_forward>("cross_entropy", "tile"),
    entry<launch_backward>("cross_entropy_backward", "tile"),
    {},
};

}  // namespace rooftile
