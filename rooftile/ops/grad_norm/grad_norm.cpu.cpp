#include "rooftile/ops/grad_norm/grad_norm.tile.h"

namespace rooftile {
namespace {
using namespace tile;
using kernels::Nrm2;

/// The chunks [begin, end) of one tensor, one after the other.
template <Access kAccess, class Add>
void add_chunks(const ReductionProblem<1>& p, const ThreadScratch& scratch, std::int64_t begin,
                std::int64_t end, Add add) {
  with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    Chunks<T, 1> rows(p, scratch);
    for (std::int64_t c = begin; c < end; ++c) add(chunk_of<Nrm2, float, kAccess>(rows.row(0, c, end)));
  });
}

std::int64_t chunks_of(std::int64_t size) { return (size + kReductionChunk - 1) / kReductionChunk; }

/// Tensor after tensor, each in chunks of its own. Threads share the chunks of all by blocks of 2^k, as many
/// as fit a table on the stack: each block is one node of the pairwise tree.
template <Access kAccess>
Nrm2::Partial norm_of(const CpuLaunch& launch, const GradNormProblem& p, std::int64_t chunks,
                      std::int64_t bytes) {
  constexpr std::int64_t kMaxBlocks = 512;
  std::int64_t block = 1;
  while ((chunks + block - 1) / block > kMaxBlocks) block *= 2;
  const std::int64_t blocks = (chunks + block - 1) / block;
  Nrm2::Partial partials[kMaxBlocks];
  for_programs(launch, blocks, bytes,
               [&](const ThreadScratch& scratch, std::int64_t first_block, std::int64_t end_block) {
                 const std::int64_t begin = first_block * block, end = std::min(chunks, end_block * block);
                 Pairwise<Nrm2> joined;
                 std::int64_t at = begin;
                 const auto add = [&](const Nrm2::Partial& partial) {
                   joined.add(partial);
                   if (++at % block != 0 && at != end) return;
                   partials[(at - 1) / block] = joined.total();
                   joined = {};
                 };
                 std::int64_t first = 0;
                 for (std::int64_t i = 0; i < p.count() && first < end; ++i) {
                   const std::int64_t last = first + chunks_of(p.size(i));
                   const std::int64_t from = std::max(begin, first), to = std::min(end, last);
                   if (from < to) add_chunks<kAccess>(p.tensor(i), scratch, from - first, to - first, add);
                   first = last;
                 }
               });
  Pairwise<Nrm2> joined;
  for (std::int64_t b = 0; b < blocks; ++b) joined.add(partials[b]);
  return joined.total();
}

Status launch_norm(const CpuLaunch& launch, const GradNormProblem& p) {
  std::int64_t chunks = 0, bytes = 0;
  for (std::int64_t i = 0; i < p.count(); ++i) {
    chunks += chunks_of(p.size(i));
    bytes += p.size(i) * (bits(p.view(i).dtype) / 8);
  }
  const Nrm2::Partial all = bytes > launch.streaming_bytes
                                ? norm_of<Access::streaming>(launch, p, chunks, bytes)
                                : norm_of<Access::cached>(launch, p, chunks, bytes);
  kernels::grad_norm_finish(p.numbers, all);
  return {};
}

Status launch_clip(const CpuLaunch& launch, const ClipByNormProblem& p) {
  return for_lists<kernels::ClipByNorm>(launch, "clip_by_norm", p);
}

}  // namespace

ROOFTILE_CPU_KERNELS(grad_norm) = {
    entry<launch_norm>("grad_norm", "tile"), entry<launch_clip>("clip_by_norm", "tile"), {}};

}  // namespace rooftile
