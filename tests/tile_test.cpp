// Runs the checks of tests/tile for every instruction set that was built and that this CPU has. Each is a
// shared library of its own, like the plug-ins: linked into one program, code of one would end up in
// another's.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "rooftile/backend/cpu/isa.h"
#include "tests/tile/tile_checks.h"

namespace {

struct Run {
  std::string name;  ///< "avx2_exp"
  void (*run)(const TileReport&);
};
void PrintTo(const Run& run, std::ostream* out) { *out << run.name; }

std::vector<Run> all_runs() {
  std::vector<Run> runs;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    rooftile::cpu::Isa parsed{};
    if (!rooftile::cpu::parse(isa, parsed) || !rooftile::cpu::supported(parsed)) continue;
    const std::string path = std::string(ROOFTILE_TEST_TILE) + "/tile_checks_" + isa + ".so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;  // not among ROOFTILE_ISAS
    const auto checks = reinterpret_cast<TileChecksFunction>(dlsym(library, "rooftile_tile_checks"));
    for (const TileCheck* check = checks(); check->name; ++check)
      runs.push_back({std::string(isa) + "_" + check->name, check->run});
  }
  return runs;
}

class Tile : public testing::TestWithParam<Run> {};
INSTANTIATE_TEST_SUITE_P(Isa, Tile, testing::ValuesIn(all_runs()),
                         [](const auto& run) { return run.param.name; });

TEST_P(Tile, Check) {
  const TileReport report{nullptr, [](void*, const char* text) { ADD_FAILURE() << text; },
                          std::getenv("ROOFTILE_ALL_FLOATS") != nullptr};
  GetParam().run(report);
}

TEST(TileModules, AreThereForThisCpu) { EXPECT_GE(all_runs().size(), 20u); }

}  // namespace
