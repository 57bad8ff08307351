#pragma once
// What a peer's shared library offers to the bench: one symbol, plain C.
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROOFTILE_PEER_VERSION 1

typedef struct {
  const char* name;   // "x"
  int written;        // 0: only read
  const char* dtype;  // "f32"
  int rank;
  const int64_t* shape;
  void* data;  // contiguous
} RooftilePeerOperand;

typedef struct {
  const char* function;  // "softmax_backward"
  int operand_count;
  const RooftilePeerOperand* operands;
  int parameter_count;
  const char* const* parameter_names;
  const double* parameter_values;
  int threads;
} RooftilePeerCase;

typedef struct {
  int version;  // ROOFTILE_PEER_VERSION
  const char* name;
  const char* library_version;
  /// Everything but the call itself: primitives, buffers, threads. Null where the library has no such
  /// function or type; `why` then gets a sentence.
  void* (*prepare)(const RooftilePeerCase*, char* why, size_t why_size);
  int (*run)(void* call, int times);  // 0 where it worked
  void (*release)(void* call);
  /// Wakes the library's threads.
  void (*wake)(int threads);
} RooftilePeer;

#define ROOFTILE_PEER_SYMBOL "rooftile_peer"
typedef const RooftilePeer* (*RooftilePeerFunction)(void);

#ifdef __cplusplus
}
#endif
