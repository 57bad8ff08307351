#pragma once
// What Nsight Compute's command line (ncu) measures of a kernel, and its CSV.
#include <map>
#include <string>
#include <vector>

namespace rooftile::harness {

/// The metrics that `rooftile profile` asks ncu for.
std::vector<std::string> ncu_metrics();

/// One launch. Values by metric, in ns, bytes, percent or counts; a metric that ncu had no value for is
/// absent.
struct NcuKernel {
  std::string name, grid, block;
  std::map<std::string, double> values;

  bool has(const std::string& metric) const { return values.count(metric) != 0; }
  double value(const std::string& metric) const {
    const auto found = values.find(metric);
    return found == values.end() ? 0 : found->second;
  }
  /// sum / sum; 0 where the second is.
  double ratio(const std::string& above, const std::string& below) const {
    return value(below) > 0 ? value(above) / value(below) : 0;
  }
};

/// The launches in what `ncu --csv --page raw` (a line of metrics, a line of units, a line for each launch)
/// or
/// `--page details` (a line for each metric) wrote, whatever else stands around it. None: no table was found.
std::vector<NcuKernel> parse_ncu(const std::string& text);

/// ncu's own words where it failed: its first error, without the marks; else "".
std::string ncu_error(const std::string& text);

/// Why warps waited: cycles between two instructions of a warp, by reason, largest first.
std::vector<std::pair<std::string, double>> ncu_stalls(const NcuKernel& kernel);

/// What lets no more blocks onto a multiprocessor: "registers", "shared memory", …; "" where nothing is told.
std::string ncu_limiter(const NcuKernel& kernel);

}  // namespace rooftile::harness
