#pragma once

#include <cstdint>
#include <string_view>

namespace rooftile::cpu {

/// The instruction sets the kernels are compiled for, each a superset of the one before.
///   baseline  what every CPU of the architecture has (x86-64: SSE2)
///   avx2      AVX2, FMA, F16C, BMI2           (-mavx2 -mfma -mf16c -mbmi2)
///   avx512    avx2 and AVX-512 F, BW, CD, DQ, VL
enum class Isa { baseline, avx2, avx512 };

/// "baseline", "avx2" or "avx512".
const char* name(Isa isa);

/// The Isa of that name; false, with `isa` unchanged, where there is none.
bool parse(std::string_view text, Isa& isa);

/// What CPUID and XGETBV answer, as far as a choice depends on it. All zero on other architectures.
struct CpuFeatures {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_1_eax = 0;
  std::uint64_t xcr0 = 0;  // the register state that the operating system saves
};

/// Those of this CPU, asked once.
const CpuFeatures& cpu_features();

/// What `isa` needs and this CPU lacks, as the end of a sentence ("this CPU has no avx512bw",
/// "the operating system does not save the avx512 registers"); null where nothing is missing.
const char* missing(Isa isa, const CpuFeatures& features = cpu_features());

/// Whether this CPU has the instructions and the operating system saves the registers.
bool supported(Isa isa);

/// The best supported one.
Isa best_isa();

/// AVX512_BF16 (vcvtneps2bf16, vdpbf16ps): variants inside avx512, not an Isa.
bool has_avx512_bf16();

/// Which Isa to load, and why. Where `ok` is false, `reason` is an error sentence and `isa` is baseline.
struct IsaChoice {
  bool ok = true;
  Isa isa = Isa::baseline;
  char reason[200] = {};
};

/// The best supported Isa, or the one `override_value` names (null or empty: none), which came from `source`.
IsaChoice choose_isa(const char* override_value, const CpuFeatures& features = cpu_features(),
                     const char* source = "ROOFTILE_CPU");

}  // namespace rooftile::cpu
