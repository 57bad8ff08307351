#include "rooftile/harness/bench/ncu.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace rooftile::harness {
namespace {

constexpr const char* kStalls[] = {"barrier",
                                   "branch_resolving",
                                   "dispatch_stall",
                                   "drain",
                                   "gmma",
                                   "imc_miss",
                                   "lg_throttle",
                                   "long_scoreboard",
                                   "membar",
                                   "mio_throttle",
                                   "math_pipe_throttle",
                                   "misc",
                                   "no_instruction",
                                   "not_selected",
                                   "short_scoreboard",
                                   "sleeping",
                                   "tex_throttle",
                                   "wait"};

std::string stall_metric(const std::string& reason) {
  return "smsp__average_warps_issue_stalled_" + reason + "_per_issue_active.ratio";
}

/// The cells of one line; quotes as RFC 4180 has them.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += c, ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

/// "1,234.5" as a number; false for "n/a" and other words.
bool number(std::string text, double& value) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// What a unit is worth in ns or bytes; 1 for percent, counts and rates.
double scale_of(const std::string& unit) {
  static const std::map<std::string, double> scales = {
      {"us", 1e3},    {"usecond", 1e3}, {"ms", 1e6},    {"msecond", 1e6}, {"s", 1e9},         {"second", 1e9},
      {"Kbyte", 1e3}, {"Kibyte", 1024}, {"Mbyte", 1e6}, {"Gbyte", 1e9},   {"Mibyte", 1 << 20}};
  const auto found = scales.find(unit);
  return found == scales.end() ? 1 : found->second;
}

struct Columns {
  std::vector<std::string> names;
  std::size_t find(std::string_view name) const {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  }
  const std::string& cell(const std::vector<std::string>& row, std::string_view name) const {
    static const std::string none;
    const std::size_t at = find(name);
    return at < row.size() ? row[at] : none;
  }
};

void put(NcuKernel& kernel, const std::string& metric, const std::string& unit, const std::string& text) {
  double value = 0;
  if (!metric.empty() && number(text, value)) kernel.values[metric] = value * scale_of(unit);
}

}  // namespace

std::vector<std::string> ncu_metrics() {
  std::vector<std::string> metrics = {"gpu__time_duration.sum",
                                      "dram__bytes_read.sum",
                                      "dram__bytes_write.sum",
                                      "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                                      "lts__t_sector_hit_rate.pct",
                                      "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                      "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                      "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
                                      "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                      "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
                                      "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
                                      "smsp__sass_inst_executed_op_shared_ld.sum",
                                      "smsp__sass_inst_executed_op_shared_st.sum",
                                      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                                      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
                                      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                                      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
                                      "sm__warps_active.avg.pct_of_peak_sustained_active",
                                      "sm__maximum_warps_per_active_cycle_pct",
                                      "launch__occupancy_limit_registers",
                                      "launch__occupancy_limit_shared_mem",
                                      "launch__occupancy_limit_warps",
                                      "launch__occupancy_limit_blocks",
                                      "launch__registers_per_thread",
                                      "launch__grid_size",
                                      "launch__block_size",
                                      "sm__inst_issued.avg.pct_of_peak_sustained_active"};
  for (const char* reason : kStalls) metrics.push_back(stall_metric(reason));
  return metrics;
}

std::vector<NcuKernel> parse_ncu(const std::string& text) {
  std::vector<NcuKernel> kernels;
  std::vector<std::string> ids, units;
  Columns columns;
  bool is_long = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.compare(0, 5, "\"ID\",") == 0) {
      columns.names = cells_of(line);
      is_long = columns.find("Metric Name") < columns.names.size();
      units.clear();
      continue;
    }
    if (columns.names.empty() || line.empty() || line[0] != '"') continue;
    const std::vector<std::string> row = cells_of(line);
    if (row[0].empty()) {
      units = row;
      continue;
    }
    if (!is_long || ids.empty() || ids.back() != row[0]) {
      ids.push_back(row[0]);
      kernels.push_back({columns.cell(row, "Kernel Name"),
                         columns.cell(row, "Grid Size"),
                         columns.cell(row, "Block Size"),
                         {}});
    }
    if (is_long) {
      put(kernels.back(), columns.cell(row, "Metric Name"), columns.cell(row, "Metric Unit"),
          columns.cell(row, "Metric Value"));
      continue;
    }
    for (std::size_t i = 1; i < row.size() && i < columns.names.size(); ++i)
      if (columns.names[i].find("__") != std::string::npos)
        put(kernels.back(), columns.names[i], i < units.size() ? units[i] : "", row[i]);
  }
  return kernels;
}

std::string ncu_error(const std::string& text) {
  // What the command that it ran said comes before what ncu says of that.
  for (const std::string_view mark : {"rooftile: ", "==ERROR== "}) {
    std::size_t at = text.find(mark);
    while (at != std::string::npos && at > 0 && text[at - 1] != '\n') at = text.find(mark, at + 1);
    if (at == std::string::npos) continue;
    return text.substr(at + mark.size(), text.find('\n', at) - at - mark.size());
  }
  return "";
}

std::vector<std::pair<std::string, double>> ncu_stalls(const NcuKernel& kernel) {
  std::vector<std::pair<std::string, double>> stalls;
  for (const std::string reason : kStalls) {
    const double cycles = kernel.value(stall_metric(reason));
    std::string words = reason;
    std::replace(words.begin(), words.end(), '_', ' ');
    if (cycles > 0) stalls.emplace_back(words, cycles);
  }
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return stalls;
}

std::string ncu_limiter(const NcuKernel& kernel) {
  std::string limiter;
  double least = 0;
  for (const auto& [metric, words] : {std::pair{"launch__occupancy_limit_registers", "registers"},
                                      {"launch__occupancy_limit_shared_mem", "shared memory"},
                                      {"launch__occupancy_limit_warps", "warps"},
                                      {"launch__occupancy_limit_blocks", "blocks"}})
    if (kernel.has(metric) && (limiter.empty() || kernel.value(metric) < least)) {
      limiter = words;
      least = kernel.value(metric);
    }
  return limiter;
}

}  // namespace rooftile::harness
