// Plug-ins with one fault each, and a small one without: which, ROOFTILE_TEST_PLUGIN says.
#include "rooftile/core/plugin.h"
#include "rooftile/ops/softmax/softmax.problem.h"

namespace rooftile {
namespace {

enum Kind { version_99, another_name, unknown_variant, unknown_op, no_symbol, null_plugin, online_only };
constexpr Kind kKind = ROOFTILE_TEST_PLUGIN;

/// Leaves a mark instead of a softmax: 42 where floating point is in its default mode, and what a subnormal
/// times one and a rounded sum are where it is not. With a scale of 77 it is one that wants too much scratch.
void mark(const CpuLaunch& launch, const SoftmaxProblem& p) {
  if (p.scale == 77) *launch.scratch_wanted = 1234;
  volatile float tiny = 0x1p-140f, one = 1;
  const bool honours_subnormals = tiny * one == 0x1p-140f, rounds_to_nearest = one + 0x1p-30f == 1;
  *static_cast<float*>(p.y) = honours_subnormals && rounds_to_nearest ? 42 : tiny * one + one;
}

constexpr PluginEntry kEntries[] = {entry<mark>(kKind == unknown_op ? "hardmax" : "softmax",
                                                kKind == unknown_variant ? "06_magic" : "online")};
[[maybe_unused]] const Plugin plugin{kKind == version_99 ? 99 : kPluginVersion,
                                     kKind == another_name ? "cpu-avx1024" : "cpu-baseline", 1, kEntries};

}  // namespace
}  // namespace rooftile

#define VISIBLE extern "C" __attribute__((visibility("default")))
VISIBLE const rooftile::Plugin* rooftile_plugin_of_another_time() { return nullptr; }
// The symbol itself must be there or not: no constant can say that.
#if !defined(ROOFTILE_TEST_NO_SYMBOL)
VISIBLE const rooftile::Plugin* rooftile_plugin() {
  return rooftile::kKind == rooftile::null_plugin ? nullptr : &rooftile::plugin;
}
#endif
