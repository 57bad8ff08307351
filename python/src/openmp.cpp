#include "python/src/openmp.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <atomic>
#include <string_view>

namespace rooftile::python {
namespace {

/// What is called of the runtime: GNU's entry, which LLVM's and Intel's have, too.
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* context, unsigned threads, unsigned flags) = nullptr;
  int (*thread)() = nullptr;
  int (*threads)() = nullptr;       // of the region
  int (*next_threads)() = nullptr;  // of the next region
  explicit operator bool() const { return parallel && thread && threads && next_threads; }
};
OpenMp openmp;
std::atomic<bool> forked = false;

struct Region {
  int tasks;
  void (*task)(void*, int);
  void* context;
};

void share(void* context) {
  const Region& r = *static_cast<const Region*>(context);
  const int step = openmp.threads();  // 1 within another region
  for (int i = openmp.thread(); i < r.tasks; i += step) r.task(r.context, i);
}

void parallel(void*, int tasks, void (*task)(void*, int), void* context) {
  Region region{tasks, task, context};
  if (tasks < 2 || openmp.next_threads() < 2 || forked) {
    for (int i = 0; i < tasks; ++i) task(context, i);
    return;
  }
  // All threads, as PyTorch's regions have: GNU's runtime ends those that a smaller region leaves out.
  openmp.parallel(share, &region, 0, 0);
}

template <class F>
void find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
}

/// Through the library that brought it: a process may hold several runtimes.
OpenMp find_openmp() {
  void* pytorch = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        if (!info->dlpi_name || !std::string_view(info->dlpi_name).ends_with("/libtorch_cpu.so")) return 0;
        *static_cast<void**>(found) = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        return 1;
      },
      &pytorch);
  OpenMp its;
  if (!pytorch) return its;
  find(pytorch, "GOMP_parallel", its.parallel);
  find(pytorch, "omp_get_thread_num", its.thread);
  find(pytorch, "omp_get_num_threads", its.threads);
  // at::get_num_threads(): also tells a thread's runtime, at its first call, what torch.set_num_threads said
  // elsewhere.
  find(pytorch, "_ZN2at15get_num_threadsEv", its.next_threads);
  if (!its.next_threads) find(pytorch, "omp_get_max_threads", its.next_threads);
  return its;
}

}  // namespace

const rooftile_executor* pytorchs_threads() {
  static const rooftile_executor executor{nullptr, 0, parallel};
  static const bool found = [] {
    openmp = find_openmp();
    return openmp && pthread_atfork(nullptr, nullptr, [] { forked = true; }) == 0;
  }();
  return found && !forked ? &executor : nullptr;
}

}  // namespace rooftile::python
