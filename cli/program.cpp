#include "cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cli/failure.h"
#include "cli/file_descriptor.h"

namespace rooftile::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool can_run(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

std::vector<std::filesystem::path> folders_of_path() {
  std::vector<std::filesystem::path> folders;
  const std::string path = variable("PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) folders.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return folders;
}

}  // namespace

ProgramOutput run_program(const std::vector<std::string>& words, bool errors, const std::string& folder) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("{}: cannot be run: {}", words[0], reason(errno));
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  if (errors)
    posix_spawn_file_actions_adddup2(&actions, to.get(), STDERR_FILENO);
  else
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  to.close();
  if (error != 0) fail("{}: cannot be run: {}", words[0], reason(error));
  ProgramOutput output;
  char piece[1 << 16];
  while (true) {
    const ssize_t got = ::read(from.get(), piece, sizeof piece);
    if (got > 0) output.text.append(piece, static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

std::string find_on_path(const std::string& name) {
  for (const std::filesystem::path& folder : folders_of_path())
    if (can_run(folder / name)) return (folder / name).string();
  return {};
}

std::string find_cuda_tool(const std::string& name, const std::string& folder) {
  namespace fs = std::filesystem;
  if (!folder.empty()) {
    const fs::path file = fs::path(folder) / name;
    if (!can_run(file))
      fail("{}: no such program; --tools names the folder of the CUDA toolkit's programs", file.string());
    return file.string();
  }
  std::vector<fs::path> folders;
  if (const std::string named = variable("ROOFTILE_CUDA_TOOLS"); !named.empty()) folders.emplace_back(named);
  for (const fs::path& one : folders_of_path()) folders.push_back(one);
  if (const std::string home = variable("CUDA_HOME"); !home.empty())
    folders.push_back(fs::path(home) / "bin");
  folders.emplace_back("/usr/local/cuda/bin");
  for (const fs::path& candidate : folders)
    if (can_run(candidate / name)) return (candidate / name).string();
  // Nsight Compute installs itself beside the toolkit, a folder for each version.
  std::string newest;
  std::error_code error;
  for (const auto& version : fs::directory_iterator("/opt/nvidia/nsight-compute", error))
    if (can_run(version.path() / name)) newest = std::max(newest, (version.path() / name).string());
  return newest;
}

std::string own_path() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail("this command's own path cannot be found: {}", error.message());
  return path.string();
}

}  // namespace rooftile::cli
