#pragma once
// The one way to launch a kernel: on a GPU by the runtime, on the emulated device by its engine. Kernels and
// launches are the same source for both.
#include <cuda_runtime.h>

#include <cstddef>
#include <tuple>

#include "rooftile/core/plugin.h"
#include "rooftile/core/status.h"

#if defined(ROOFTILE_EMULATED)
#include "rooftile/backend/emulated/engine.h"
#endif

namespace rooftile::cuda {

struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
  unsigned cluster = 1;          ///< blocks of a cluster, side by side in x; from sm_90 on
  bool early = false;  ///< may start before the kernel before it is done, and waits (ptx.h); from sm_90 on
};

#if defined(ROOFTILE_EMULATED)

inline int clusters_at_once(const CudaLaunch&, const void*, const Grid&) { return 0; }

template <class... P, class... A>
Status launch(const CudaLaunch& where, const char* name, const Grid& grid, void (*kernel)(P...),
              const A&... arguments) {
  emulated::Options options;
  options.architecture = where.architecture;
  options.threads = where.threads;
  options.seed = where.seed;
  Status s = emulated::launch({grid.blocks, grid.threads, grid.shared_bytes, grid.cluster}, options, name,
                              kernel, static_cast<P>(arguments)...);
  if (!s && where.counters)  // it may have ended in the middle of a count
    for (std::size_t i = 0; i < kCudaCounters; ++i) where.counters[i] = 0;
  return s;
}

#else

/// A sentence that names the call.
inline Status status_of(cudaError_t error, const char* function, const char* call) {
  if (error == cudaSuccess) return {};
  return Status::error("%s: %s: %s (%s)", function, call, cudaGetErrorString(error), cudaGetErrorName(error));
}

/// Makes the queue's device current while it lives.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    if (cudaGetDevice(&before_) == cudaSuccess && before_ != device)
      changed_ = cudaSetDevice(device) == cudaSuccess;
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Lets a kernel have all the dynamic shared memory of its device, whoever asks first. As much as one launch
/// needs would not do: another thread's smaller launch of the same kernel could come between.
cudaError_t allow_shared_memory(const void* kernel, int device);
/// What a kernel must be allowed for a launch.
inline cudaError_t allow(const void* kernel, int device, const Grid& grid) {
  constexpr std::size_t kPlainShared = 40 * 1024;  // and 8 KiB that the kernel declares
  constexpr unsigned kPlainCluster = 8;            // on every GPU that has clusters
  if (grid.shared_bytes > kPlainShared)
    if (const cudaError_t error = allow_shared_memory(kernel, device)) return error;
  if (grid.cluster <= kPlainCluster) return cudaSuccess;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}
/// A launch in the runtime's words.
struct Configuration : cudaLaunchConfig_t {
  cudaLaunchAttribute all[2];

  Configuration(const Grid& grid, void* stream) : cudaLaunchConfig_t{}, all{} {
    gridDim = grid.blocks;
    blockDim = grid.threads;
    dynamicSmemBytes = grid.shared_bytes;
    this->stream = static_cast<cudaStream_t>(stream);
    attrs = all;
    if (grid.cluster > 1) {
      cudaLaunchAttribute& cluster = all[numAttrs++];
      cluster.id = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim = {grid.cluster, 1, 1};
    }
    if (grid.early) {
      cudaLaunchAttribute& early = all[numAttrs++];
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
    }
  }
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;
};

/// How many clusters of a launch the device runs at once, of which not every multiprocessor can be a part (of
/// an H200's 132, 120 in clusters of four blocks that fill one each, 112 in those of sixteen); 0: it does not
/// tell. Remembered: asking takes longer than a launch.
int clusters_at_once(const CudaLaunch& where, const void* kernel, const Grid& grid);

/// Launches on the queue's stream and returns; `name` is for sentences.
template <class... P, class... A>
Status launch(const CudaLaunch& where, const char* name, const Grid& grid, void (*kernel)(P...),
              const A&... arguments) {
  const OnDevice device(where.device);
  const void* const entry = reinterpret_cast<const void*>(kernel);
  if (const cudaError_t error = allow(entry, where.device, grid); error != cudaSuccess)
    return status_of(error, name, "cudaFuncSetAttribute");
  std::tuple<P...> values(static_cast<P>(arguments)...);
  void* pointers[sizeof...(P) + 1];  // one more, so that there is one
  std::apply(
      [&](auto&... value) {
        void** at = pointers;
        ((*at++ = const_cast<void*>(static_cast<const void*>(&value))), ...);
      },
      values);
  if (grid.cluster <= 1 && !grid.early)  // the shorter way
    return status_of(cudaLaunchKernel(entry, grid.blocks, grid.threads, pointers, grid.shared_bytes,
                                      static_cast<cudaStream_t>(where.stream)),
                     name, "cudaLaunchKernel");
  const Configuration configuration(grid, where.stream);
  return status_of(cudaLaunchKernelExC(&configuration, entry, pointers), name, "cudaLaunchKernelExC");
}

#endif

}  // namespace rooftile::cuda
