#pragma once

namespace rooftile::cli {

struct EnvironmentVariable {
  const char *name, *text;
};

/// What --help and the manual page say of the environment.
inline constexpr EnvironmentVariable kEnvironment[] = {
    {"ROOFTILE_CPU", "the CPU's instruction set: baseline, avx2 or avx512"},
    {"ROOFTILE_PLUGINS", "the folder of the plug-ins"},
    {"ROOFTILE_BASELINES", "the folder of the baselines' programs"},
    {"ROOFTILE_PYTHON", "the Python that runs them (python3)"},
    {"ROOFTILE_CUDA_TOOLS", "the folder of ncu, cuobjdump and nvdisasm"},
};

}  // namespace rooftile::cli
