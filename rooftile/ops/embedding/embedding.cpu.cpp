#include <algorithm>
#include <limits>

#include "rooftile/ops/embedding/embedding.problem.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

/// Runs body.operator()<kAccess, T>(team, begin, end) on each thread's share of `programs`.
template <class Body>
void for_dtype(const CpuLaunch& launch, bool dense, DType dtype, std::int64_t programs, std::int64_t bytes,
               Body body) {
  with_access(dense, bytes > launch.streaming_bytes, [&]<Access kAccess>() {
    with_row_type<kAccess>(dtype, [&]<class T>() {
      for_programs(launch, programs, bytes,
                   [&](const ThreadScratch& scratch, std::int64_t begin, std::int64_t end) {
                     body.template operator()<T>(CpuTeam<float, kAccess>(scratch, dtype), begin, end);
                     if (kAccess == Access::streaming) stream_fence();
                   });
    });
  });
}

/// How many tokens ahead a row of the table is prefetched: rows are anywhere, and no processor guesses them.
constexpr std::int64_t kTokensAhead = 4;

// [forward]
void launch_forward(const CpuLaunch& launch, const EmbeddingProblem& p) {
  using P = EmbeddingProblem;
  const bool dense = (p.rows.columns <= 1 || p.rows.column_stride[P::kY] == 1) &&
                     p.table_column_stride == 1 &&
                     (!p.position || p.rows.columns <= 1 || p.rows.column_stride[P::kPosition] == 1);
  const std::int64_t bytes = p.rows.rows * p.rows.columns * bits(p.dtype) / 8 * 2;
  const auto token_at = [&](std::int64_t row) { return p.tokens.at(p.rows.offset(P::kTokens, row)); };
  for_dtype(launch, dense, p.dtype, p.rows.rows, bytes,
            [&]<class T>(const auto& team, std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t token = token_at(i);
                const Row<T> y{static_cast<T*>(p.y) + p.rows.offset(P::kY, i), p.rows.columns,
                               p.rows.column_stride[P::kY]};
                if (!p.tokens.is_row(token)) {
                  team.each(y.size, [&](auto chunk) ROOFTILE_INLINE {
                    team.store(y, chunk, team.fill(std::numeric_limits<float>::quiet_NaN()));
                  });
                  continue;
                }
                Row<const T> x{static_cast<const T*>(p.table) + token * p.table_stride, y.size,
                               p.table_column_stride};
                if (i + kTokensAhead < end)
                  if (const std::int64_t next = token_at(i + kTokensAhead); p.tokens.is_row(next))
                    x.ahead = (next - token) * p.table_stride;
                auto reader = team;
                reader.one_pass();
                const auto row = reader.hold(x, 0);
                if (!p.position) {
                  reader.each(y.size, [&](auto chunk) ROOFTILE_INLINE { team.store(y, chunk, row[chunk]); });
                  continue;
                }
                const Row<const T> place{static_cast<const T*>(p.position) + p.rows.offset(P::kPosition, i),
                                         y.size, p.rows.column_stride[P::kPosition]};
                reader.each(y.size, [&](auto chunk) ROOFTILE_INLINE {
                  team.store(y, chunk, row[chunk] + team.load(place, chunk));
                });
              }
            });
}
// [/forward]

// [sort]
/// A counting sort, stable, by one thread: n + V steps beside the n · D of the sums.
void sort_tokens(const EmbeddingBackwardProblem& p) {
  const std::int64_t rows = p.tokens.table_rows;
  const auto key_of = [&](std::int64_t i) {
    return p.key(p.tokens.at(p.rows.offset(EmbeddingBackwardProblem::kTokens, i)));
  };
  std::fill_n(p.ends, rows + 1, 0);
  for (std::int64_t i = 0; i < p.rows.rows; ++i) ++p.ends[key_of(i)];
  std::int32_t before = 0;
  for (std::int64_t v = 0; v <= rows; ++v) {  // where each token's begin
    const std::int32_t its = p.ends[v];
    p.ends[v] = before;
    before += its;
  }
  for (std::int64_t i = 0; i < p.rows.rows; ++i)  // and, as they take their places, end
    p.order[p.ends[key_of(i)]++] = static_cast<std::int32_t>(i);
}
// [/sort]

/// Row by row of a gradient: row r is the sum of the rows list(r) of dy, in their order.
template <class List>
void add_rows(const CpuLaunch& launch, const EmbeddingBackwardProblem& p, const EmbeddingSums& sums,
              List list) {
  using P = EmbeddingBackwardProblem;
  const bool dense = (p.rows.columns <= 1 || p.rows.column_stride[P::kDy] == 1) && sums.column_stride == 1;
  const std::int64_t bytes = (p.rows.rows + sums.rows) * p.rows.columns * bits(p.dtype) / 8;
  // Threads take turns: tokenizers give the commonest tokens the smallest numbers.
  const std::int64_t turns = launch.threads;
  for_dtype(
      launch, dense, p.dtype, turns, bytes,
      [&]<class T>(const auto& team, std::int64_t begin, std::int64_t end) {
        for (std::int64_t turn = begin; turn < end; ++turn)
          for (std::int64_t r = turn; r < sums.rows; r += turns) {
            const Row<T> to{static_cast<T*>(sums.data) + r * sums.stride, p.rows.columns, sums.column_stride};
            const auto its = list(r);
            team.each(to.size, [&](auto chunk) ROOFTILE_INLINE {
              auto sum = team.fill(0);
              for (std::int64_t j = 0; j < its.count; ++j)
                sum += team.load(Row<const T>{static_cast<const T*>(p.dy) + p.rows.offset(P::kDy, its.row(j)),
                                              to.size, p.rows.column_stride[P::kDy]},
                                 chunk);
              team.store(to, chunk, sum);
            });
          }
      });
}

void launch_backward(const CpuLaunch& launch, const EmbeddingBackwardProblem& p) {
  sort_tokens(p);
  struct OfToken {
    const std::int32_t* first;
    std::int64_t count;
    std::int64_t row(std::int64_t j) const { return first[j]; }
  };
  add_rows(launch, p, p.table, [&](std::int64_t v) {
    const std::int64_t begin = v ? p.ends[v - 1] : 0;
    return OfToken{p.order + begin, p.ends[v] - begin};
  });
  struct AtPlace {
    std::int64_t place, length, count;
    std::int64_t row(std::int64_t j) const { return j * length + place; }
  };
  if (p.position.data)
    add_rows(launch, p, p.position, [&](std::int64_t s) {
      return AtPlace{s, p.length, p.rows.rows / std::max<std::int64_t>(p.length, 1)};
    });
}

}  // namespace

ROOFTILE_CPU_KERNELS(embedding) = {
    entry<launch_forward>("embedding", "tile"),
    entry<launch_backward>("embedding_backward", "tile"),
    {},
};

}  // namespace rooftile
