#include "rooftile/backend/cpu/isa.h"

#include <cstdio>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rooftile::cpu {
namespace {

constexpr Isa kAll[] = {Isa::baseline, Isa::avx2, Isa::avx512};

struct Requirement {
  Isa isa;
  std::uint32_t CpuFeatures::*word;
  int bit;
  const char* absent;
};

constexpr Requirement kRequirements[] = {
    {Isa::avx2, &CpuFeatures::leaf1_ecx, 28, "this CPU has no avx"},
    {Isa::avx2, &CpuFeatures::leaf7_ebx, 5, "this CPU has no avx2"},
    {Isa::avx2, &CpuFeatures::leaf1_ecx, 12, "this CPU has no fma"},
    {Isa::avx2, &CpuFeatures::leaf1_ecx, 29, "this CPU has no f16c"},
    {Isa::avx2, &CpuFeatures::leaf7_ebx, 8, "this CPU has no bmi2"},
    {Isa::avx512, &CpuFeatures::leaf7_ebx, 16, "this CPU has no avx512f"},
    {Isa::avx512, &CpuFeatures::leaf7_ebx, 30, "this CPU has no avx512bw"},
    {Isa::avx512, &CpuFeatures::leaf7_ebx, 28, "this CPU has no avx512cd"},
    {Isa::avx512, &CpuFeatures::leaf7_ebx, 17, "this CPU has no avx512dq"},
    {Isa::avx512, &CpuFeatures::leaf7_ebx, 31, "this CPU has no avx512vl"},
};

constexpr std::uint64_t kYmmState = 0x06;  // XMM and upper YMM
constexpr std::uint64_t kZmmState = 0xe6;  // and mask registers, upper ZMM, ZMM16 to 31
constexpr int kAvx512Bf16Bit = 5;          // of leaf 7, subleaf 1, EAX

bool has(std::uint32_t word, int bit) { return (word >> bit & 1) != 0; }

CpuFeatures ask_cpu() {
  CpuFeatures features;
#if defined(__x86_64__)
  constexpr int kOsXsaveBit = 27;  // of leaf 1, ECX: XGETBV may be used
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(1, 0, &a, &b, &c, &d)) features.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    features.leaf7_ebx = b;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) features.leaf7_1_eax = a;
  }
  if (has(features.leaf1_ecx, kOsXsaveBit)) {
    unsigned low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // the intrinsic would need -mxsave
    features.xcr0 = std::uint64_t{high} << 32 | low;
  }
#endif
  return features;
}

Isa best_isa(const CpuFeatures& features) {
  Isa best = Isa::baseline;
  for (Isa isa : kAll)
    if (!missing(isa, features)) best = isa;
  return best;
}

}  // namespace

const char* name(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

bool parse(std::string_view text, Isa& isa) {
  for (Isa candidate : kAll)
    if (text == name(candidate)) {
      isa = candidate;
      return true;
    }
  return false;
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = ask_cpu();
  return features;
}

const char* missing(Isa isa, const CpuFeatures& features) {
  for (const Requirement& r : kRequirements)
    if (r.isa <= isa && !has(features.*r.word, r.bit)) return r.absent;
  if (isa >= Isa::avx2 && (features.xcr0 & kYmmState) != kYmmState)
    return "the operating system does not save the avx registers";
  if (isa >= Isa::avx512 && (features.xcr0 & kZmmState) != kZmmState)
    return "the operating system does not save the avx512 registers";
  return nullptr;
}

bool supported(Isa isa) { return !missing(isa); }

Isa best_isa() { return best_isa(cpu_features()); }

bool has_avx512_bf16() { return supported(Isa::avx512) && has(cpu_features().leaf7_1_eax, kAvx512Bf16Bit); }

IsaChoice choose_isa(const char* override_value, const CpuFeatures& features, const char* source) {
  IsaChoice choice;
  char* out = choice.reason;
  constexpr std::size_t kSize = sizeof choice.reason;

  if (!override_value || !*override_value) {
    choice.isa = best_isa(features);
    std::snprintf(out, kSize, "%s: the best this CPU supports", name(choice.isa));
    return choice;
  }
  Isa asked = Isa::baseline;
  if (!parse(override_value, asked)) {
    choice.ok = false;
    std::snprintf(out, kSize, "%s=%.100s: unknown; known are baseline, avx2, avx512", source, override_value);
  } else if (const char* absent = missing(asked, features)) {
    choice.ok = false;
    std::snprintf(out, kSize, "%s=%s: %s", source, name(asked), absent);
  } else {
    choice.isa = asked;
    std::snprintf(out, kSize, "%s: chosen by %s", name(asked), source);
  }
  return choice;
}

}  // namespace rooftile::cpu
