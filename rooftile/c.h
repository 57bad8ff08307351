/* The library for C, and for languages that call C. A function takes views by pointer (NULL: an operand left
 * out), its options as numbers, and returns a status whose message is empty on success.
 *
 *     rooftile_queue* queue;
 *     rooftile_status s = rooftile_queue_cpu(0, &queue);
 *     const int64_t shape[] = {64, 1024};
 *     rooftile_view x = rooftile_dense(data, ROOFTILE_F32, 2, shape), y = rooftile_dense(out, ROOFTILE_F32,
 * 2, shape); s = rooftile_softmax(queue, &x, &y, 1.0, 0, 0, 0); if (s.message[0]) puts(s.message);
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
  char message[1000]; /* empty: success */
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
/* The same with every option. Start from ROOFTILE_QUEUE_DEFAULTS; a device reads those that are its own. */
/* Threads of the caller's own: runs task(context, i) for each i below `tasks`, each exactly once and at most
 * `threads` of them at once, and returns when all are done. */
typedef struct rooftile_executor {
  void* self;
  int threads; /* 0: as many as this process may use */
  void (*parallel)(void* self, int tasks, void (*task)(void* context, int index), void* context);
} rooftile_executor;
typedef struct rooftile_queue_options {
  const char* plugin_folder; /* NULL: $ROOFTILE_PLUGINS, else the library's own folder */
  const char* isa;           /* CPU: "baseline", "avx2", "avx512"; NULL: $ROOFTILE_CPU, else the best */
  int threads;               /* CPU, emulated: 0: all that this process may use */
  int architecture;          /* emulated: 80, 86, 89 or 90 */
  int checked;               /* emulated: 1 finds races and more, far slower */
  uint64_t seed;             /* emulated: shuffles a block's threads; 0: in order */
  int device;                /* CUDA: its number; -1: the thread's current one */
  void* stream;              /* CUDA: a cudaStream_t; NULL: the default stream */
  const rooftile_executor* executor; /* CPU: instead of threads; NULL: a pool of the queue's own */
} rooftile_queue_options;
#define ROOFTILE_QUEUE_DEFAULTS \
  { NULL, NULL, 0, 90, 0, 0, -1, NULL, NULL }
ROOFTILE_API rooftile_status rooftile_queue_new(const char* device /* "cpu", "cuda", "emulated" */,
                                                const rooftile_queue_options* options /* NULL: defaults */,
                                                rooftile_queue** queue);
/* What a queue runs on; the texts live as long as it does. */
typedef struct rooftile_queue_facts {
  const char* device;     /* "cpu", "cuda", "emulated" */
  const char* isa;        /* "avx512"; of a GPU "sm_90" */
  const char* isa_reason; /* why, in a sentence */
  int threads;
  int architecture; /* of a GPU: 90 for compute capability 9.0; 0: of a CPU */
  int index;        /* of a GPU: its number; otherwise -1 */
} rooftile_queue_facts;
ROOFTILE_API rooftile_status rooftile_queue_about(const rooftile_queue* queue, rooftile_queue_facts* facts);
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

/* The same where a function takes lists (rooftile_operand.list): of each, the pointer is that of `tensors`
 * views, one after another; NULL: all are left out. A view whose rank is negative is left out, too. */
ROOFTILE_API rooftile_status rooftile_call_lists(const rooftile_queue* queue, const char* function,
                                                 const rooftile_view* const* views, int64_t tensors,
                                                 const double* options, const char* variant,
                                                 rooftile_workspace workspace);
ROOFTILE_API rooftile_status rooftile_workspace_of_lists(const rooftile_queue* queue, const char* function,
                                                         const rooftile_view* const* views, int64_t tensors,
                                                         const double* options, size_t* bytes);

/* What functions take, for programs that learn it at run time. The texts live as long as the library. */
enum { ROOFTILE_INPUT, ROOFTILE_OUTPUT, ROOFTILE_IN_OUT };
typedef struct rooftile_operand {
  const char* name;
  const char* may_be; /* an output: the inputs whose memory it may be, as "x residual"; or "" */
  const char* sum_of; /* an output that holds the sum of these inputs, as "x residual"; or "" */
  uint32_t dtypes;    /* which it may have: bit 1 << ROOFTILE_F32, ... */
  char type;          /* the letter that stands for its dtype: operands that share it have one dtype */
  char or_as;         /* the letter whose dtype it may have, too; or 0 */
  uint8_t role;       /* ROOFTILE_INPUT, ... */
  uint8_t optional;   /* it may be NULL */
  uint8_t one;        /* one element, in any number of dimensions: no letters */
  uint8_t outer;      /* any outer sizes come first, alike in all operands that have them */
  char letters[9];    /* then one size for each letter: "MN"; a digit stands for itself */
  char below;         /* its values are indices below the size of this letter; or 0 */
  uint8_t list;       /* a call has any number of it, as many as of the function's other lists */
  char wide_as;       /* the letter with which it is f64, and else not; or 0 */
} rooftile_operand;
enum { ROOFTILE_FLAG, ROOFTILE_CHOICE, ROOFTILE_REAL, ROOFTILE_ANY_REAL, ROOFTILE_WHOLE };
enum { ROOFTILE_MAX_OPERANDS = 20, ROOFTILE_MAX_OPTIONS = 12 };
typedef struct rooftile_option {
  const char* name;
  const char* words; /* of a choice, whose number is a word's place: "bt601 luminosity"; or "" */
  int kind; /* ROOFTILE_FLAG: 0 or 1; ..._REAL: finite; ..._ANY_REAL: also infinite or NaN; ..._WHOLE */
  double otherwise; /* the default */
  double least, most;
} rooftile_option;
typedef struct rooftile_function {
  const char* name;
  /* The function that computes its gradient, or NULL. Of that one's inputs each is an operand of this
   * function by its name, or d<output>, the gradient of an output; its outputs are d<input>. */
  const char* backward;
  int has_workspace; /* ask rooftile_workspace_of */
  int operands, options;
  rooftile_operand operand[ROOFTILE_MAX_OPERANDS];
  rooftile_option option[ROOFTILE_MAX_OPTIONS];
  /* Relations that hold between sizes (by their letters; `outer`: the product of the outer ones) and whole
   * options: "P = (H - R)/stride + 1; H % G = 0". Quotients round down. */
  const char* where;
} rooftile_function;
/* The function of that place, from 0; returns 0 beyond the last one. */
ROOFTILE_API int rooftile_function_at(int place, rooftile_function* function);
/* The dtype, sizes and dense strides that an output, by its place among the operands, has in such a call; its
 * data is NULL. Outputs among the views are not looked at. */
ROOFTILE_API rooftile_status rooftile_infer(const char* function, const rooftile_view* const* views,
                                            const double* options, int output, rooftile_view* inferred);

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
