// Exercise embedding_rows: a row of the table for each token; a block per token.
#include <cuda_runtime.h>

/// y[b][c] = table[tokens[b]][c] for c below d. The table has `rows` rows; a token that is none of them gives
/// a row of NaN. Block b has token b, and 128 threads.
__global__ void embedding(const long long* tokens, const float* table, float* y, long long rows, int d) {
  // Right for tokens that are rows, and slow: each thread has a stretch of the row.
  const int share = (d + 127) / 128;
  for (int c = threadIdx.x * share; c < d && c < (threadIdx.x + 1) * share; ++c)
    y[static_cast<long long>(blockIdx.x) * d + c] = table[tokens[blockIdx.x] * d + c];
}
