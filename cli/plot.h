#pragma once
// Speed against size as pictures: what bench --plot and the command plot write.
#include <nlohmann/json.hpp>
#include <string>

namespace rooftile::cli {

/// Early word on a folder for pictures to be made after long work: throws a Failure where there can be none.
void check_picture_folder(const std::string& folder);

/// One SVG for each function, dtype and number of threads of the record's series of sizes, and a PNG beside
/// each where there is rsvg-convert. Makes the folder. Returns what to tell: lines, or "" where nothing was
/// measured in two sizes.
std::string write_pictures(const nlohmann::json& record, const std::string& folder);

}  // namespace rooftile::cli
