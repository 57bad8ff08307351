#include "rooftile/harness/bench/commit.h"

#include "rooftile_commit.h"  // written by cmake/commit.cmake at each build

namespace rooftile::harness {

const char* commit() { return ROOFTILE_COMMIT; }
const char* commit_date() { return ROOFTILE_COMMIT_DATE; }

}  // namespace rooftile::harness
