#include "rooftile/core/check.h"
#include "rooftile/ops/grad_norm/grad_norm.tile.h"

namespace rooftile {
namespace {
using namespace tile;
using kernels::Nrm2;
using Partial = Nrm2::Partial;

/// The partials of one join, behind what the joins before came to.
constexpr int kBefore = 4, kMaxPartials = kMaxChunks - kBefore;
static_assert((kBefore + kMaxPartials) * sizeof(Partial) <= kCudaScratchBytes);

template <class T>
ROOFTILE_TILE Partial norm_chunk(const FlatItem<1>& item, std::int64_t first, std::int64_t size) {
  Rounds rounds;
  const Row<const T> row{static_cast<const T*>(item.data[0]) + first, size};
  constexpr int kLanes = 16 / int(sizeof(T));
  if (item.aligned() && item.size % kLanes == 0)
    return Nrm2::chunk(CudaTeam<float, kLanes, 0, Access::aligned, Scope::block>(kReductionThreads, rounds),
                       row);
  return Nrm2::chunk(CudaTeam<float, kLanes, 0, Access::any, Scope::block>(kReductionThreads, rounds), row);
}

/// A block for each chunk of each tensor; chunks of all tensors are equally long.
__global__ void __launch_bounds__(kReductionThreads)
    norm_chunks(const __grid_constant__ FlatItems<1> items, std::int64_t chunk, Partial* partials) {
  const FlatItem<1>& item = items.of_block(blockIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x - item.first_block} * chunk, rest = item.size - first;
  const std::int64_t size = rest < chunk ? rest : chunk;
  const DType dtype = item.dtype(0);
  const Partial partial = dtype == DType::f32    ? norm_chunk<float>(item, first, size)
                          : dtype == DType::bf16 ? norm_chunk<bf16>(item, first, size)
                                                 : norm_chunk<f16>(item, first, size);
  if (threadIdx.x == 0) partials[blockIdx.x] = partial;
}

/// Joins the chunks' partials to what came `before`, the first time to nothing; the last time it writes the
/// results.
__global__ void __launch_bounds__(kReductionThreads)
    join_norms(const Partial* partials, int count, Partial* before, bool first, bool last,
               const __grid_constant__ GradNormNumbers numbers) {
  const Partial joined = joined_chunks<Nrm2>(partials, count);
  if (threadIdx.x != 0) return;
  const Partial all = first ? joined : Nrm2::join(*before, joined);
  *before = all;
  if (last) kernels::grad_norm_finish(numbers, all);
}

class NormLaunches {
 public:
  NormLaunches(const CudaLaunch& launch, const GradNormProblem& p)
      : launch_(launch), p_(p), before_(static_cast<Partial*>(launch.scratch)), partials_(before_ + kBefore) {
    // As long that half of the table holds all of one tensor; the other half has room for many tensors.
    std::int64_t all = 0;
    for (std::int64_t i = 0; i < p.count(); ++i) all += p.size(i);
    while (all / chunk_ > kMaxPartials / 2) chunk_ *= 2;
  }

  Status run() {
    for (std::int64_t i = 0; i < p_.count(); ++i) {
      const ReductionProblem<1> t = p_.tensor(i);
      if (t.size() == 0) continue;
      const auto chunks = static_cast<int>((t.size() + chunk_ - 1) / chunk_);
      if (count_ + flats_.blocks + chunks > kMaxPartials) {
        ROOFTILE_TRY(flush());
        ROOFTILE_TRY(join(false));
      }
      if (t.contiguous(0)) {
        if (!flats_.takes(chunks)) ROOFTILE_TRY(flush());
        flats_.add({const_cast<void*>(t.data[0])}, {t.dtype}, t.size(), chunks);
      } else {
        ROOFTILE_TRY(flush());  // partials are joined in the order of the list
        ROOFTILE_TRY(strided(t, static_cast<unsigned>(chunks)));
        count_ += chunks;
      }
    }
    ROOFTILE_TRY(flush());
    return join(true);
  }

 private:
  Status flush() {
    if (flats_.items.count == 0) return {};
    const Status s = rooftile::cuda::launch(launch_, "grad_norm",
                                            {static_cast<unsigned>(flats_.blocks), kReductionThreads},
                                            norm_chunks, flats_.items, chunk_, partials_ + count_);
    count_ += static_cast<int>(flats_.blocks);
    flats_.clear();
    return s;
  }
  Status strided(const ReductionProblem<1>& t, unsigned chunks) {
    return with_type<float, f16, bf16>(t.dtype, [&]<class T>() {
      return rooftile::cuda::launch(launch_, "grad_norm", {chunks, kReductionThreads},
                                    reduce_chunks<Nrm2, T, Access::any, 1>, t, false, chunk_,
                                    partials_ + count_);
    });
  }
  Status join(bool last) {
    const Status s = rooftile::cuda::launch(launch_, "grad_norm", {1, kReductionThreads}, join_norms,
                                            static_cast<const Partial*>(partials_), count_, before_, first_,
                                            last, p_.numbers);
    first_ = false;
    count_ = 0;
    return s;
  }

  const CudaLaunch& launch_;
  const GradNormProblem& p_;
  Partial *before_, *partials_;
  FlatLaunch<1> flats_;
  std::int64_t chunk_ = kReductionChunk;
  int count_ = 0;  ///< partials that launches before wrote
  bool first_ = true;
};

Status launch_norm(const CudaLaunch& launch, const GradNormProblem& p) {
  return NormLaunches(launch, p).run();
}
Status launch_clip(const CudaLaunch& launch, const ClipByNormProblem& p) {
  return for_lists<kernels::ClipByNorm>(launch, "clip_by_norm", p);
}

}  // namespace

ROOFTILE_CUDA_KERNELS(grad_norm) = {
    entry<launch_norm>("grad_norm", "tile"), entry<launch_clip>("clip_by_norm", "tile"), {}};

}  // namespace rooftile
