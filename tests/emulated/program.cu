// A whole program with what scripts/cuda_to_cpp.py rewrites: launches of several forms, shared arrays, "<<<"
// in text. tests/emulated/program.sh says what it must print.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

template <class T>
__global__ void sum(const T* x, T* y, int n) {
  __shared__ T part[256], first;  // not a launch: a <<< b
  extern __shared__ float more[];
  const int t = static_cast<int>(threadIdx.x);
  part[t] = t < n ? x[t] : T(0);
  if (t == 0) first = 1, more[1] = 2;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) *y = part[0] + first + T(more[1]);
}

__global__ void races(int* x) {
  __shared__ int one[2];
  one[threadIdx.x % 2] = static_cast<int>(threadIdx.x);
  __syncthreads();
  *x = one[0];
}

__global__ void nothing() {}

static void say(const char* what, cudaError_t error) {
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
}

int main(int argc, char**) {
  float host[256], *x = nullptr, *y = nullptr, result = 0;
  for (int i = 0; i < 256; ++i) host[i] = static_cast<float>(i);
  say("allocate", cudaMalloc(&x, sizeof host));
  cudaMalloc(&y, sizeof *y);
  say("too much", cudaMalloc(reinterpret_cast<float**>(&host), std::size_t(1) << 40));
  for (int i = 0; i < 256; ++i) host[i] = static_cast<float>(i);
  cudaGetLastError();
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  say("copied to host memory", cudaMemcpy(host, &result, 4, cudaMemcpyHostToDevice));
  say("copied past the end", cudaMemcpy(y, host, 8, cudaMemcpyHostToDevice));
  say("last", cudaGetLastError());
  say("last again", cudaGetLastError());
  nothing<<<1, 2048>>>();
  say("2048 threads", cudaGetLastError());
  sum<float><<<dim3(1, 1), (256), 2 * sizeof(float)>>>(x, y, 256);
  say("launched <<<once>>>", cudaGetLastError());
  say("ended", cudaDeviceSynchronize());
  cudaMemcpy(&result, y, sizeof result, cudaMemcpyDeviceToHost);
  std::printf("sum: %g\n", static_cast<double>(result));
  say("freed", cudaFree(x));
  say("freed twice", cudaFree(x));
  cudaGetLastError();
  if (argc > 1) {
    int* z = nullptr;
    cudaMalloc(&z, 4);
    races<<<1, 64>>>(z);
    say("race launched", cudaGetLastError());
    say("race ended", cudaDeviceSynchronize());
    say("race for good", cudaFree(y));
  }
}
