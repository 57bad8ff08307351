#include "cli/plot.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/file_descriptor.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/record.h"
#include "rooftile/harness/drawing/speed.h"
#include "rooftile/harness/report/report.h"

namespace rooftile::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRasterizer = "rsvg-convert";
constexpr const char* kNoRasterizer =
    "no PNG files: rsvg-convert draws them from the SVG files, and it is not on PATH; install the package "
    "librsvg2-bin "
    "(Debian, Ubuntu)";

/// As PNG of twice the size, for screens and slides; dark mode's rules are for browsers alone.
std::string png_of(const std::string& svg_path) {
  const ProgramOutput drawn = run_program(
      {find_on_path(kRasterizer), "--format=png", "--zoom=2", fs::absolute(svg_path).string()}, false);
  if (drawn.code != 0 || !drawn.text.starts_with("\x89PNG"))
    fail("{}: {} could not make a PNG of it (exit code {})", svg_path, kRasterizer, drawn.code);
  return drawn.text;
}

}  // namespace

void check_picture_folder(const std::string& folder) {
  if (folder.empty()) return;
  if (folder == "-") refuse("--plot needs a folder: standard output cannot take several pictures");
  // The folder may be made, and those above it: the first one that is there decides.
  fs::path there = fs::absolute(folder);
  struct stat info {};
  while (::stat(there.c_str(), &info) != 0) {
    if (errno != ENOENT || there == there.parent_path())
      fail("{}: cannot be written: {}", folder, reason(errno));
    there = there.parent_path();
  }
  if (!S_ISDIR(info.st_mode)) fail("{}: {} is not a folder", folder, there.string());
  if (::access(there.c_str(), W_OK | X_OK) != 0) fail("{}: cannot be written: {}", folder, reason(errno));
}

std::string write_pictures(const nlohmann::json& record, const std::string& folder) {
  const auto charts = drawing::speed_charts(record, drawing::series_of(record));
  if (charts.empty()) return "";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail("{}: cannot be made: {}", folder, error.message());
  const bool png = !find_on_path(kRasterizer).empty();
  std::string told;
  for (const drawing::SpeedChart& chart : charts) {
    const std::string path = (fs::path(folder) / (chart.name + ".svg")).string();
    write_destination(path, draw(chart).svg);
    if (png) write_destination(fs::path(path).replace_extension(".png").string(), png_of(path));
    told += fmt::format("picture: {}{}\n", path, png ? " and .png" : "");
  }
  return png ? told : told + "note: " + kNoRasterizer + "\n";
}

int plot(const PlotArguments& arguments) {
  check_picture_folder(arguments.folder);
  const nlohmann::json record = read_record(arguments.record);
  if (const Status s = harness::validate_record(record); !s) fail("{}: {}", arguments.record, s.message());
  const std::string told = write_pictures(record, arguments.folder);
  if (told.empty())
    fail("{}: holds no speed against size: `rooftile bench OP --plot DIR --json FILE` records it",
         arguments.record);
  say("{}", told);
  return kOk;
}

}  // namespace rooftile::cli
