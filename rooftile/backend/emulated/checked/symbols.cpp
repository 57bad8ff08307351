#include "rooftile/backend/emulated/checked/symbols.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace rooftile::emulated {
namespace {

/// What a program writes to its standard output; empty where it cannot run.
std::string output_of(std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; error == 0 && (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  if (error == 0) waitpid(child, nullptr, 0);
  return text;
}

/// Frames of the emulated device's own headers, inlined into the kernel: the line that called them is meant.
bool is_ours(const std::string& file) {
  return file.find("rooftile/backend/emulated/") != std::string::npos ||
         file.find("rooftile/backend/cuda/ptx.h") != std::string::npos ||
         file.find("rooftile/backend/cuda/matrices.h") != std::string::npos;
}

bool is_an_op(const std::string& file) { return file.find("rooftile/ops/") != std::string::npos; }

void ask(const std::string& module, const std::vector<std::pair<std::uintptr_t, const void*>>& addresses,
         bool in_ops, std::map<const void*, Place>& places) {
  std::vector<std::string> words{"addr2line", "-a", "-i", "-e", module};
  char text[32];
  for (const auto& [offset, pc] : addresses) {
    std::snprintf(text, sizeof text, "0x%" PRIxPTR, offset);
    words.emplace_back(text);
  }
  const std::string output = output_of(words);
  std::size_t index = ~std::size_t{0};
  bool found = false;
  for (std::size_t begin = 0; begin < output.size();) {
    const std::size_t end = std::min(output.find('\n', begin), output.size());
    const std::string line = output.substr(begin, end - begin);
    begin = end + 1;
    if (line.compare(0, 2, "0x") == 0) {
      ++index;
      found = false;
      continue;
    }
    const std::size_t colon = line.rfind(':');
    if (index >= addresses.size() || colon == std::string::npos || line[0] == '?') continue;
    const std::string file = line.substr(0, colon);
    Place& place = places[addresses[index].second];
    const bool better = found && in_ops && is_an_op(file) && !is_an_op(place.file);
    if ((found && !better) || is_ours(file)) continue;
    place = make_place(file.c_str(), std::atoi(line.c_str() + colon + 1));
    found = true;
  }
}
}  // namespace

Place make_place(const char* file, int line) {
  Place place{};
  // Of a long path the end tells more.
  const std::size_t length = std::strlen(file), room = sizeof place.file - 1;
  std::strcpy(place.file, length > room ? file + (length - room) : file);
  place.line = line;
  return place;
}

std::map<const void*, Place> find_places(std::vector<const void*> pcs, bool in_ops) {
  std::map<const void*, Place> places;
  std::map<std::string, std::vector<std::pair<std::uintptr_t, const void*>>> modules;
  std::sort(pcs.begin(), pcs.end());
  pcs.erase(std::unique(pcs.begin(), pcs.end()), pcs.end());
  for (const void* pc : pcs) {
    Dl_info info{};
    link_map* map = nullptr;
    const auto at = reinterpret_cast<std::uintptr_t>(pc);
    if (!pc || dladdr1(pc, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map) continue;
    const std::uintptr_t offset = at - map->l_addr;
    char text[100];
    std::snprintf(text, sizeof text, "%.70s+0x%" PRIxPTR, info.dli_fname, offset);
    places[pc] = make_place(text, 0);
    char self[4096];
    std::string file = info.dli_fname;
    if (map->l_name[0] == '\0')  // the program itself, by a name that may be relative to another folder
      if (const ssize_t n = readlink("/proc/self/exe", self, sizeof self); n > 0)
        file.assign(self, static_cast<std::size_t>(n));
    modules[file].emplace_back(offset - 1, pc);  // the call, not what comes after it
  }
  for (const auto& [module, addresses] : modules) ask(module, addresses, in_ops, places);
  return places;
}

}  // namespace rooftile::emulated
