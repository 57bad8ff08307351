#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace rooftile::harness {

/// One cache as the system reports it, with the size that measurement found (`effective_bytes`; 0: not
/// measured). The two differ on many virtual machines.
struct Cache {
  int level = 0;
  std::string kind;  ///< "data", "instruction" or "unified"
  std::size_t bytes = 0;
  int shared_by = 1;  ///< hardware threads that share it
  int line_bytes = 64;
  std::size_t effective_bytes = 0;

  std::size_t usable_bytes() const { return effective_bytes > 0 ? effective_bytes : bytes; }
};

/// Measured bandwidth of one level of the memory, in 10^9 bytes a second (a copy's bytes count twice).
struct LevelRate {
  std::string name;                 ///< "L1", "L2", "L3", "memory"
  std::size_t footprint_bytes = 0;  ///< bytes touched by all threads together
  int threads = 1;
  double read_gbs = 0, write_gbs = 0, copy_gbs = 0;
  std::string read_kernel, write_kernel, copy_kernel;  ///< which kernel was the fastest
};

/// Measured arithmetic peak of one kind of instruction.
struct PeakRate {
  std::string name;   ///< "fma", "fma+add" (both kinds of unit busy), "mul+add", "dot" (bf16 pairs)
  std::string dtype;  ///< "f32", "f64", "bf16"
  std::string isa;    ///< "avx512", "avx2", "baseline"
  int threads = 1;
  double gflops = 0;
};

/// What this machine is and, once measured, what it can do.
struct Machine {
  std::string cpu, vendor, os, compiler;
  std::string isa, isa_reason;   ///< filled by whoever chose the ISA
  int cores = 1;                 ///< usable: the lesser of affinity and cgroup quota
  int threads = 1;               ///< hardware threads that are online
  std::size_t memory_bytes = 0;  ///< the lesser of what is installed and the cgroup's limit
  std::vector<Cache> caches;
  std::vector<LevelRate> levels;
  std::vector<PeakRate> peaks;
};

/// Describes this machine; measures nothing. `levels`, `peaks`, `isa` and effective sizes stay empty.
Machine describe_machine();

/// The record's "machine" object.
nlohmann::json to_json(const Machine& machine);

/// Threads worth starting: the lesser of the affinity mask and the cgroup's quota, at least 1.
int usable_cores();

/// Bytes that this process may still take: the lesser of the system's available memory and what the cgroups
/// leave.
std::size_t available_memory_bytes();

/// Size of the last-level cache as reported; 32 MiB where nothing is.
std::size_t last_level_cache_bytes();

}  // namespace rooftile::harness
