#pragma once
// The engine's functions that stand for the instructions of rooftile/backend/cuda/hopper.h. They act for the
// thread that runs now. (mbarriers and bulk copies are in calls.h.)
#include <cstdint>

#include "rooftile/backend/emulated/device/calls.h"

namespace rooftile::cuda {
struct TensorMap;
}

namespace rooftile::emulated::device {

/// Shared memory by the addresses of PTX: 32 bits, the rank of a cluster's block from bit 24 on.
std::uint32_t shared_address(const void*, Site);

// The copy engine. `blocks`: 0, or kToAll and a bit for each block of the cluster.
constexpr std::uint32_t kToAll = 1u << 31;
void tensor_load(void* to, const cuda::TensorMap*, const int* at, int rank, std::uint64_t* barrier,
                 std::uint32_t blocks, Site);
void tensor_store(const cuda::TensorMap*, const int* at, int rank, const void* from, Site);
void bulk_commit(Site);
void bulk_wait(unsigned groups_left, Site);

// The tensor cores.
struct Product {
  MatrixType type;
  std::uint64_t a, b;                // descriptors
  const std::uint32_t* a_registers;  // in place of a, or null
  float* sums;                       // of bytes integers; the engine moves their bits
  int n;
  bool a_mn_major, b_mn_major, add;
  MatrixType b_type = type;  // another one of two f8
};
void wgmma_fence();
void wgmma(const Product&, Site);
void wgmma_commit();
void wgmma_wait(unsigned groups_left, Site);
/// Two numbers as a pair of 16 bits; refused where one is what stands in the place of a sum that is not
/// there.
std::uint32_t pack(bool bf16, float low, float high, Site);

bool elect_one(Site);
void set_max_registers(unsigned count, bool increase, Site);

}  // namespace rooftile::emulated::device
