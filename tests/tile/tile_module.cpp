#include <initializer_list>

#include "tests/tile/tile_checks.h"

// The lists of the other files, in one.
extern "C" __attribute__((visibility("default"))) const TileCheck* rooftile_tile_checks() {
  static TileCheck all[64];
  int count = 0;
  for (const TileCheck* list :
       {tile_number_checks, tile_lane_checks, tile_memory_checks, tile_program_checks})
    for (; list->name; ++list) all[count++] = *list;
  return all;
}
