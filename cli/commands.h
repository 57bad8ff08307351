#pragma once
// The commands: what command_line.cpp read, and one function each, which returns the exit code.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/one_case.h"

namespace rooftile::cli {

struct DevicesArguments {
  bool measure = true;
  std::string json;
};
int devices(const DevicesArguments& arguments);

struct ListArguments {
  std::vector<std::string> ops;
  bool tuning = false;
  std::string json;
};
int list(const ListArguments& arguments);

/// What check and bench are to be about.
struct Selection {
  std::vector<std::string> ops, variants, isas, dtypes;
  std::string device = "cpu";  ///< or "cuda", "emulated", "emulated-checked"
  std::string direction;       ///< "forward", "backward" or empty
};

struct CheckArguments {
  Selection selection;
  bool quick = false, huge = false, random_only = false, versions = false;
  std::vector<std::string> languages;  ///< of --versions
  int random_cases = 0;
  std::int64_t seed = 1;
  std::string json, csv;
};
int check(const CheckArguments& arguments);
/// What `check --versions` does, of these functions.
int check_versions(const CheckArguments& arguments, const std::vector<std::string>& functions);

struct BenchArguments {
  Selection selection;
  std::vector<std::string> shapes;
  std::vector<int> threads;
  bool full = false, baselines = true, versions = false, resume = false;
  std::vector<std::string> baseline_names;  ///< or one of "on" and "off"
  double seconds = 0, baseline_seconds = 300;
  std::string part;                ///< "2/3"
  std::string compare;             ///< a record to set the times beside
  std::vector<std::string> merge;  ///< records to make one of, instead of measuring
  std::string json, csv;
  std::string plot;  ///< a folder for pictures of speed against size
};
int bench(const BenchArguments& arguments);

struct WhyArguments {
  std::string op, shape, dtype, isa, layout, device = "cpu";
  std::vector<std::string> parameters;
  bool backward = false, in_place = false;
  std::string json;
};
int why(const WhyArguments& arguments);

struct TraceArguments {
  CaseArguments what;
  std::vector<std::string> variants;
  bool all = false;
  int architecture = 90;
  std::string json;
};
int trace(const TraceArguments& arguments);

struct ProfileArguments {
  CaseArguments what;
  std::string variant, tools, from, csv;
  bool run = false, against_trace = false;
};
int profile(const ProfileArguments& arguments);

struct AsmArguments {
  CaseArguments what;
  std::string variant, device = "cpu", isa, kernel, tools;
  bool sass = true, ptx = false, source = true;
};
int assembly(const AsmArguments& arguments);

struct ReportArguments {
  std::string out = "report.html", photo, json;
  std::optional<std::string> docs_url;  ///< of the lessons; none: this checkout's, where it is one
  std::vector<std::string> from;
};
int report(const ReportArguments& arguments);

struct PlotArguments {
  std::string record, folder;
};
int plot(const PlotArguments& arguments);

struct ExerciseArguments {
  std::string what;  ///< "list", "start", "check", "hint", "solution" or "progress"
  std::string name;
  std::string file;  ///< check: another file than the one in exercises/
};
int exercise(const ExerciseArguments& arguments);

struct GrayArguments {
  std::string in, out;
  bool luminosity = false;
};
int image_gray(const GrayArguments& arguments);

struct BlurArguments {
  std::string in, out;
  std::int64_t radius = -1;  ///< a box; below 0: none
  double sigma = 0;          ///< not 0: a Gaussian
  int border = 0;            ///< of BlurBorder
};
int image_blur(const BlurArguments& arguments);

struct PatternArguments {
  std::string out, size = "640x480";  ///< width x height
  double time = 0;                    ///< of the first frame, in seconds
  int frames = 1, fps = 30;
};
int image_pattern(const PatternArguments& arguments);

}  // namespace rooftile::cli
