#include "rooftile/harness/bench/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "rooftile/harness/bench/doubts.h"

namespace rooftile::harness {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// The first line of a file, empty if there is none.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value behind `key` in a file of "key<separator>value" lines; quotes and blanks around it removed.
std::string lookup(const std::string& path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    std::string found = line.substr(0, at);
    found.erase(found.find_last_not_of(" \t") + 1);
    if (found != key) continue;
    const std::size_t from = line.find_first_not_of(" \t\"", at + 1);
    if (from == std::string::npos) return "";
    return line.substr(from, line.find_last_not_of(" \t\"") + 1 - from);
  }
  return "";
}

/// The leading decimal number; `otherwise` if there is none ("max", an empty file).
std::size_t number(const std::string& text, std::size_t otherwise) {
  std::size_t value = 0;
  std::istringstream stream(text);
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && stream >> value ? value : otherwise;
}

/// "48K", "1024K", "32M" in bytes.
std::size_t size_with_unit(const std::string& text) {
  const std::size_t value = number(text, 0);
  if (text.find('K') != std::string::npos) return value << 10;
  if (text.find('M') != std::string::npos) return value << 20;
  return value;
}

/// How many CPUs a list such as "0-3,8" names.
int count_cpus(const std::string& list) {
  int count = 0;
  std::istringstream stream(list);
  for (std::string range; std::getline(stream, range, ',');) {
    const std::size_t first = number(range, 0);
    const std::size_t dash = range.find('-');
    const std::size_t last = dash == std::string::npos ? first : number(range.substr(dash + 1), first);
    count += static_cast<int>(last - first) + 1;
  }
  return std::max(count, 1);
}

/// The folders of this process's cgroup and of its ancestors, for a v1 controller or, with "", for v2. A
/// limit anywhere on the way up binds. Inside a container the path may not exist; the mount's root then is
/// the group.
std::vector<std::string> cgroup_folders(const std::string& controller) {
  std::vector<std::string> folders;
  const std::string root = controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/path", "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find("," + controller + ",") == std::string::npos) continue;
    for (std::string path = line.substr(second + 1); path.size() > 1; path.erase(path.rfind('/'))) {
      folders.push_back(root + path);
    }
  }
  folders.push_back(root);
  return folders;
}

/// The least of the cgroups' memory limits, or of what they leave; kNoLimit where none is set.
std::size_t cgroup_memory(bool left) {
  std::size_t least = kNoLimit;
  const auto consider = [&](const std::string& folder, const char* limit_file, const char* usage_file) {
    const std::size_t limit = number(first_line(folder + "/" + limit_file), kNoLimit);
    if (limit >= kNoLimit / 4) return;  // v1 writes "none" as a very large number
    const std::size_t usage = left ? number(first_line(folder + "/" + usage_file), 0) : 0;
    least = std::min(least, limit - std::min(limit, usage));
  };
  for (const std::string& folder : cgroup_folders("")) consider(folder, "memory.max", "memory.current");
  for (const std::string& folder : cgroup_folders("memory")) {
    consider(folder, "memory.limit_in_bytes", "memory.usage_in_bytes");
  }
  return least;
}

/// CPUs' worth of time that the cgroups grant.
double cgroup_cpus() {
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& folder : cgroup_folders("")) {
    std::istringstream line(first_line(folder + "/cpu.max"));  // "200000 100000" or "max 100000"
    double quota = 0, period = 0;
    if (line >> quota >> period && quota > 0 && period > 0) least = std::min(least, quota / period);
  }
  for (const std::string& folder : cgroup_folders("cpu")) {
    const auto quota = static_cast<double>(number(first_line(folder + "/cpu.cfs_quota_us"), 0));  // -1: none
    const auto period = static_cast<double>(number(first_line(folder + "/cpu.cfs_period_us"), 0));
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  }
  return least;
}

std::vector<Cache> reported_caches() {
  std::vector<Cache> caches;
  for (int index = 0; index < 16; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    Cache cache;
    cache.level = static_cast<int>(number(first_line(folder + "level"), 0));
    if (cache.level == 0) break;
    cache.kind = first_line(folder + "type");
    std::transform(cache.kind.begin(), cache.kind.end(), cache.kind.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    cache.bytes = size_with_unit(first_line(folder + "size"));
    cache.shared_by = count_cpus(first_line(folder + "shared_cpu_list"));
    cache.line_bytes = static_cast<int>(number(first_line(folder + "coherency_line_size"), 64));
    if (cache.bytes > 0) caches.push_back(cache);
  }
#ifdef _SC_LEVEL1_DCACHE_SIZE
  if (caches.empty()) {  // no sysfs, as in some sandboxes; glibc asks the CPU itself
    const auto add = [&](int level, const char* kind, int name) {
      const long bytes = sysconf(name);
      if (bytes > 0) caches.push_back({level, kind, static_cast<std::size_t>(bytes), 1, 64, 0});
    };
    add(1, "data", _SC_LEVEL1_DCACHE_SIZE);
    add(2, "unified", _SC_LEVEL2_CACHE_SIZE);
    add(3, "unified", _SC_LEVEL3_CACHE_SIZE);
    if (!caches.empty()) caches.back().shared_by = static_cast<int>(std::thread::hardware_concurrency());
  }
#endif
  return caches;
}

std::string describe_os() {
  std::string text = lookup("/etc/os-release", "PRETTY_NAME", '=');
  utsname names{};
  if (uname(&names) == 0) {
    if (!text.empty()) text += ", ";
    text += std::string(names.sysname) + " " + names.release;
  }
  return text;
}

std::string describe_compiler() {
#if defined(__clang__)
  return "clang++ " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "g++ " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

int usable_cores() {
  int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  const double quota = cgroup_cpus();
  if (quota < cores) cores = std::max(1, static_cast<int>(std::ceil(quota)));
  return cores;
}

std::size_t available_memory_bytes() {
  const std::size_t kilobytes = number(lookup("/proc/meminfo", "MemAvailable", ':'), 0);
  const std::size_t system = kilobytes > 0 ? kilobytes << 10 : std::size_t{1} << 30;
  return std::min(system, cgroup_memory(true));
}

std::size_t last_level_cache_bytes() {
  static const std::size_t bytes = [] {
    std::size_t largest = 0;
    for (const Cache& cache : reported_caches()) largest = std::max(largest, cache.bytes);
    return largest > 0 ? largest : std::size_t{32} << 20;
  }();
  return bytes;
}

Machine describe_machine() {
  Machine machine;
  machine.cpu = lookup("/proc/cpuinfo", "model name", ':');
  machine.vendor = lookup("/proc/cpuinfo", "vendor_id", ':');
  utsname names{};
  if (machine.cpu.empty() && uname(&names) == 0) machine.cpu = names.machine;
  machine.os = describe_os();
  machine.compiler = describe_compiler();
  machine.cores = usable_cores();
  machine.threads = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  const std::size_t kilobytes = number(lookup("/proc/meminfo", "MemTotal", ':'), 0);
  machine.memory_bytes = std::min(kilobytes << 10, cgroup_memory(false));
  machine.caches = reported_caches();
  return machine;
}

nlohmann::json to_json(const Machine& machine) {
  using nlohmann::json;
  json caches = json::array(), levels = json::array(), peaks = json::array();
  for (const Cache& cache : machine.caches) {
    caches.push_back({{"level", cache.level},
                      {"kind", cache.kind},
                      {"bytes", cache.bytes},
                      {"shared_by", cache.shared_by},
                      {"line_bytes", cache.line_bytes}});
    if (cache.effective_bytes > 0) caches.back()["effective_bytes"] = cache.effective_bytes;
  }
  for (const LevelRate& level : machine.levels) {
    levels.push_back({{"name", level.name},
                      {"footprint_bytes", level.footprint_bytes},
                      {"threads", level.threads},
                      {"read_gbs", level.read_gbs},
                      {"write_gbs", level.write_gbs},
                      {"copy_gbs", level.copy_gbs}});
  }
  for (const PeakRate& peak : machine.peaks) {
    peaks.push_back({{"name", peak.name},
                     {"dtype", peak.dtype},
                     {"isa", peak.isa},
                     {"threads", peak.threads},
                     {"gflops", peak.gflops}});
  }
  return {{"cpu", machine.cpu},
          {"vendor", machine.vendor},
          {"isa", machine.isa},
          {"isa_reason", machine.isa_reason},
          {"cores", machine.cores},
          {"threads", machine.threads},
          {"memory_bytes", machine.memory_bytes},
          {"os", machine.os},
          {"compiler", machine.compiler},
          {"caches", caches},
          {"levels", levels},
          {"contradictions", contradictions(machine.levels)},
          {"peaks", peaks}};
}

}  // namespace rooftile::harness
