#pragma once

namespace rooftile::harness {

/// The commit that this was built from, as `git describe` names it ("-dirty": with changes); "unknown" where
/// it was no checkout.
const char* commit();
/// Of that commit, or of the build: "2026-11-24".
const char* commit_date();

}  // namespace rooftile::harness
