#pragma once
// What a baseline's shared library offers to the bench: one symbol, plain C.
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROOFTILE_BASELINE_VERSION 1

typedef struct {
  const char* name;   // "x"
  int written;        // 0: only read
  const char* dtype;  // "f32"
  int rank;
  const int64_t* shape;
  void* data;  // contiguous
} RooftileBaselineOperand;

typedef struct {
  const char* function;  // "softmax_backward"
  int operand_count;
  const RooftileBaselineOperand* operands;
  int parameter_count;
  const char* const* parameter_names;
  const double* parameter_values;
  int threads;
} RooftileBaselineCase;

typedef struct {
  int version;  // ROOFTILE_BASELINE_VERSION
  const char* name;
  const char* library_version;
  /// Everything but the call itself: primitives, buffers, threads. Null where the library has no such
  /// function or type; `why` then gets a sentence.
  void* (*prepare)(const RooftileBaselineCase*, char* why, size_t why_size);
  int (*run)(void* call, int times);  // 0 where it worked
  void (*release)(void* call);
  /// Wakes the library's threads.
  void (*wake)(int threads);
} RooftileBaseline;

#define ROOFTILE_BASELINE_SYMBOL "rooftile_baseline"
typedef const RooftileBaseline* (*RooftileBaselineFunction)(void);

#ifdef __cplusplus
}
#endif
