// Wrong [values]: a token outside gives zeros
// Says: expected nan, got 0
#include <cuda_runtime.h>

/// y[b][c] = table[tokens[b]][c] for c below d. The table has `rows` rows; a token that is none of them gives
/// a row of NaN. Block b has token b, and 128 threads.
__global__ void embedding(const long long* tokens, const float* table, float* y, long long rows, int d) {
  const long long token = tokens[blockIdx.x];
  const bool there = token >= 0 && token < rows;
  const float* row = table + (there ? token : 0) * d;
  float* out = y + static_cast<long long>(blockIdx.x) * d;
  for (int c = threadIdx.x; c < d; c += 128) out[c] = there ? row[c] : 0;
}
