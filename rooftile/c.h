/* The library for C, and for languages that call C. A function takes views by pointer (NULL: an operand left
 * out), its options as numbers, and returns a status whose message is empty on success.
 *
 *     rooftile_queue* queue;
 *     rooftile_status s = rooftile_queue_cpu(0, &queue);
 *     const int64_t shape[] = {64, 1024};
 *     rooftile_view x = rooftile_dense(data, ROOFTILE_F32, 2, shape), y = rooftile_dense(out, ROOFTILE_F32,
 * 2, shape); s = rooftile_softmax(queue, &x, &y, 1.0, 0); if (s.message[0]) puts(s.message);
 *     rooftile_queue_free(queue);
 *
 * What each function computes, takes and costs: its C++ header, and docs/reference.md. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROOFTILE_API __attribute__((visibility("default")))

enum {
  ROOFTILE_F64,
  ROOFTILE_F32,
  ROOFTILE_TF32,
  ROOFTILE_F16,
  ROOFTILE_BF16,
  ROOFTILE_F8E4M3,
  ROOFTILE_F8E5M2,
  ROOFTILE_I64,
  ROOFTILE_I32,
  ROOFTILE_I8,
  ROOFTILE_U8,
  ROOFTILE_BOOL,
  ROOFTILE_U4
};

/* A tensor: the caller's memory, up to 8 sizes, strides in elements. */
typedef struct rooftile_view {
  void* data;
  uint8_t dtype; /* ROOFTILE_F32, ... */
  int32_t rank;
  int64_t shape[8];
  int64_t stride[8];
} rooftile_view;

typedef struct rooftile_status {
  char message[400]; /* empty: success */
} rooftile_status;

/* Memory that a function may use while it runs: aligned to 64 bytes, apart from all operands. */
typedef struct rooftile_workspace {
  void* pointer;
  size_t bytes;
} rooftile_workspace;

/* Where kernels run; the C++ class Queue. On failure *queue is NULL. rooftile_queue_free(NULL) does nothing.
 */
typedef struct rooftile_queue rooftile_queue;
ROOFTILE_API rooftile_status rooftile_queue_cpu(int threads /* 0: all */, rooftile_queue** queue);
ROOFTILE_API rooftile_status rooftile_queue_cuda(int device /* -1: the current one */, void* stream,
                                                 rooftile_queue** queue);
ROOFTILE_API rooftile_status rooftile_queue_emulated(int architecture /* 90 */, int checked,
                                                     rooftile_queue** queue);
ROOFTILE_API void rooftile_queue_free(rooftile_queue* queue);

/* Any function by its name: views and options in the order of docs/reference.md. A variant of NULL is the
 * library's choice. */
ROOFTILE_API rooftile_status rooftile_call(const rooftile_queue* queue, const char* function,
                                           const rooftile_view* const* views, const double* options,
                                           const char* variant, rooftile_workspace workspace);
/* The bytes of workspace that such a call needs. */
ROOFTILE_API rooftile_status rooftile_workspace_of(const rooftile_queue* queue, const char* function,
                                                   const rooftile_view* const* views, const double* options,
                                                   size_t* bytes);

/* A dense row-major view. */
static inline rooftile_view rooftile_dense(const void* data, int dtype, int rank, const int64_t* shape) {
  rooftile_view view;
  uint64_t dense = 1; /* a product that does not fit is refused where the view is used */
  int d;
  view.data = (void*)data;
  view.dtype = (uint8_t)dtype;
  view.rank = rank;
  for (d = rank < 8 ? rank - 1 : 7; d >= 0; --d) {
    view.shape[d] = shape[d];
    view.stride[d] = (int64_t)dense;
    dense *= (uint64_t)(shape[d] > 0 ? shape[d] : 1);
  }
  return view;
}

#include "rooftile/c_functions.h"

#ifdef __cplusplus
}
#endif
