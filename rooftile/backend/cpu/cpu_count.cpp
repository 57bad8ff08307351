#include "rooftile/backend/cpu/cpu_count.h"

#include <algorithm>
#include <climits>

#if defined(__linux__)
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#else
#include <thread>
#endif

namespace rooftile::cpu {

#if defined(__linux__)

namespace {

/// The lines of a file, however long (mountinfo's overlay options pass 4096 characters); none if absent.
class Lines {
 public:
  explicit Lines(const std::string& path) : file_(std::fopen(path.c_str(), "re")) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() {
    std::free(line_);
    if (file_) std::fclose(file_);
  }
  bool next(std::string_view& line) {
    const ssize_t length = file_ ? getline(&line_, &capacity_, file_) : -1;
    if (length < 0) return false;
    line = std::string_view(line_, static_cast<std::size_t>(length));
    if (line.ends_with('\n')) line.remove_suffix(1);
    return true;
  }

 private:
  FILE* file_;
  char* line_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Cuts the text up to `separator` off the front of `rest`.
std::string_view take(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view head = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return head;
}

bool lists(std::string_view comma_separated, std::string_view word) {
  while (!comma_separated.empty())
    if (take(comma_separated, ',') == word) return true;
  return false;
}

/// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// This process's cgroup in the hierarchy of the cpu controller (version 1) or in the one of version 2.
std::string cgroup_path(const std::string& root, bool version2) {
  Lines lines(root + "/proc/self/cgroup");
  for (std::string_view line; lines.next(line);) {
    take(line, ':');
    const std::string_view controllers = take(line, ':');
    if (version2 ? controllers.empty() : lists(controllers, "cpu")) return std::string(line);
  }
  return "/";
}

int cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return INT_MAX;  // version 1 writes -1 for none
  const long long whole = quota / period + (quota % period != 0);
  return static_cast<int>(std::min<long long>(whole, INT_MAX));
}

long long number(std::string_view text, long long otherwise) {
  const std::string digits(text);
  char* end = nullptr;
  const long long value = std::strtoll(digits.c_str(), &end, 10);
  return end == digits.c_str() ? otherwise : value;
}

long long read_number(const std::string& path) {
  Lines lines(path);
  std::string_view line;
  return lines.next(line) ? number(line, -1) : -1;
}

int quota_of(const std::string& folder, bool version2) {
  if (!version2)
    return cpus(read_number(folder + "/cpu.cfs_quota_us"), read_number(folder + "/cpu.cfs_period_us"));
  Lines lines(folder + "/cpu.max");  // "max 100000" or "150000 100000"
  std::string_view line;
  if (!lines.next(line)) return INT_MAX;
  const std::string_view quota = take(line, ' ');
  return quota == "max" ? INT_MAX : cpus(number(quota, -1), number(line, -1));
}

/// The least quota from the process's cgroup up to the mount point.
int quota_under(const std::string& root, std::string_view mounted, const std::string& mount_point,
                bool version2) {
  // In a container the hierarchy may be mounted from the container's cgroup on: /docker/1234 is the mount
  // point itself. A path that is not below it (another namespace's, "/../x") leaves the mount point to ask.
  std::string path = cgroup_path(root, version2);
  if (mounted == "/") mounted = "";
  const bool below =
      path.starts_with(mounted) && (path.size() == mounted.size() || path[mounted.size()] == '/');
  path = below && path.find("/..") == std::string::npos ? path.substr(mounted.size()) : "";
  if (path == "/") path.clear();

  int least = INT_MAX;
  for (;; path.resize(path.rfind('/'))) {
    least = std::min(least, quota_of(root + mount_point + path, version2));
    if (path.find('/') == std::string::npos) return least;
  }
}

}  // namespace

int affinity_cpus() {
  // cpu_set_t ends at 1024 CPUs, and a smaller mask than the kernel's is refused; 64 Ki is beyond any kernel.
  unsigned long mask[1024] = {};
  cpu_set_t* set = reinterpret_cast<cpu_set_t*>(mask);
  if (sched_getaffinity(0, sizeof mask, set) != 0) return 1;
  return std::max(1, CPU_COUNT_S(sizeof mask, set));
}

int cgroup_cpus(const char* root) try {
  // 31 23 0:28 /mounted /mount/point rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
  int least = INT_MAX;
  Lines lines(std::string(root) + "/proc/self/mountinfo");
  for (std::string_view line; lines.next(line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view type_on = line.substr(dash + 3);
    const std::string_view type = take(type_on, ' ');
    take(type_on, ' ');
    const bool version2 = type == "cgroup2";
    if (!version2 && !(type == "cgroup" && lists(type_on, "cpu"))) continue;
    for (int i = 0; i < 3; ++i) take(line, ' ');
    const std::string mounted = unescape(take(line, ' '));
    const std::string mount_point = unescape(take(line, ' '));
    least = std::min(least, quota_under(root, mounted, mount_point, version2));
  }
  return least;
} catch (...) {
  return INT_MAX;  // out of memory for a path
}

#else

int affinity_cpus() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }
int cgroup_cpus(const char*) { return INT_MAX; }

#endif

int usable_cpus() { return std::max(1, std::min(affinity_cpus(), cgroup_cpus())); }

}  // namespace rooftile::cpu
