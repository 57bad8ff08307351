// expect: (assignment of member .*x.* in read-only|cannot assign to variable 'threadIdx')
#include <cuda_runtime.h>

__global__ void kernel(unsigned* x) {
#ifndef ROOFTILE_FIXED
  threadIdx.x = 0;
#endif
  x[0] = threadIdx.x;
}
