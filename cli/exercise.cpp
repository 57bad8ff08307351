// The exercises of the course: a start file to copy, a judge that builds it alone, hints and a solution.
#include "rooftile/harness/course/exercise.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/table.h"
#include "rooftile/core/queue.h"

namespace rooftile::cli {
namespace {

namespace fs = std::filesystem;
using harness::Exercise;

/// Where learners' files go, in the folder in which the command runs.
const char* const kFolder = "exercises";
const char* const kProgress = "exercises/progress.json";

/// The checkout that this command was built in, the one that it runs in, or what was installed with it.
std::string root_folder() {
  std::vector<std::string> folders = source_folders();
  folders.push_back(fs::path(own_path()).parent_path() / "../share/rooftile");
  for (const std::string& folder : folders)
    if (fs::exists(fs::path(folder) / "rooftile/exercise/plugin.h"))
      return fs::absolute(folder).lexically_normal();
  fail(
      "exercise: there are no exercises around {}: run the command in a checkout's folder, or install it "
      "with "
      "share/rooftile beside bin",
      own_path());
}

/// The checked device that GPU exercises are linked with.
std::string device_library(const std::string& root) {
  const std::string built =
      (fs::path(own_path()).parent_path() / "../lib/librooftile-exercise.a").lexically_normal();
  if (fs::exists(built)) return built;
  const std::string installed = root + "/librooftile-exercise.a";
  if (!fs::exists(installed)) fail("{}: is missing; build it with `make build`", built);
  return installed;
}

const Exercise& find(const std::vector<Exercise>& all, const std::string& name) {
  std::vector<std::string> names;
  for (const Exercise& e : all) {
    if (e.name == name) return e;
    names.push_back(e.name);
  }
  refuse("no exercise \"{}\"{}; `rooftile exercise list` shows them", name, suggestion(name, names));
}

std::string text_of(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) fail("{}: cannot be read", path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

nlohmann::json read_progress() {
  std::ifstream stream(kProgress);
  nlohmann::json progress = nlohmann::json::parse(stream, nullptr, false);
  return progress.is_object() ? progress : nlohmann::json::object();
}
/// What is kept of one exercise; a file that somebody damaged says nothing.
nlohmann::json kept(const nlohmann::json& progress, const Exercise& e) {
  const auto it = progress.find(e.name);
  return it != progress.end() && it->is_object() ? *it : nlohmann::json::object();
}
bool is_solved(const nlohmann::json& progress, const Exercise& e) {
  const nlohmann::json mine = kept(progress, e);
  return mine.contains("solved") && mine["solved"] == true;
}
std::size_t number(const nlohmann::json& mine, const char* key) {
  return mine.contains(key) && mine[key].is_number_unsigned() ? mine[key].get<std::size_t>() : 0;
}

void write_progress(const nlohmann::json& progress) {
  fs::create_directories(kFolder);
  write_destination(kProgress, progress.dump(2) + "\n");
}

std::string own_file(const Exercise& e) { return fmt::format("{}/{}{}", kFolder, e.name, e.extension); }

int list(const std::vector<Exercise>& all) {
  const nlohmann::json progress = read_progress();
  Table table({"exercise", "what", ">minutes", "lesson", "state"});
  for (const Exercise& e : all) {
    table.add({e.name, e.title, std::to_string(e.minutes), e.lesson,
               is_solved(progress, e)    ? "solved"
               : fs::exists(own_file(e)) ? "begun"
                                         : "-"});
  }
  print_text(table.text());
  return kOk;
}

int start(const Exercise& e) {
  const std::string file = own_file(e);
  if (fs::exists(file)) fail("{}: is there already; move it away to begin anew", file);
  fs::create_directories(kFolder);
  write_destination(file, text_of(e.file("start")));
  say("{}: {}\n\nYour file is {}. Edit it, then:\n  rooftile exercise check {}\n", e.name, e.task, file,
      e.name);
  return kOk;
}

int hint(const Exercise& e) {
  nlohmann::json progress = read_progress();
  nlohmann::json mine = kept(progress, e);
  const std::size_t given = std::min(number(mine, "hints"), e.hints.size() - 1);
  say("hint {} of {}: {}\n", given + 1, e.hints.size(), e.hints[given]);
  if (given + 1 == e.hints.size()) say("`rooftile exercise solution {}` prints a solution.\n", e.name);
  mine["hints"] = given + 1;
  progress[e.name] = mine;
  write_progress(progress);
  return kOk;
}

int progress(const std::vector<Exercise>& all) {
  const nlohmann::json done = read_progress();
  std::size_t solved = 0;
  for (const Exercise& e : all) solved += is_solved(done, e);
  say("{} of {} exercises solved\n", solved, all.size());
  for (const Exercise& e : all) {
    if (is_solved(done, e)) continue;
    say("next: {}, {} ({})\n", e.name, e.title, e.lesson);
    break;
  }
  return kOk;
}

std::vector<std::string> cpu_flags(const std::string& isa) {
  std::vector<std::string> flags = {"-O2"};
  if (isa == "avx2" || isa == "avx512")
    for (const char* flag : {"-mavx2", "-mfma", "-mf16c", "-mbmi2"}) flags.emplace_back(flag);
  if (isa == "avx512")
    for (const char* flag : {"-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl"})
      flags.emplace_back(flag);
  return flags;
}

std::string cpu_isa() { return Queue::cpu({.threads = 1}).isa(); }
std::string backend_of(const Exercise& e) { return e.on_gpu ? "emulated-checked" : "cpu-" + cpu_isa(); }

std::vector<std::string> gpu_flags(const std::string& compiler) {
  std::vector<std::string> flags = {"-O1", "-gdwarf-4", "-g1", "-fsanitize=thread",
                                    "-fno-optimize-sibling-calls"};
  if (compiler.find("clang") != std::string::npos)
    for (const char* flag : {"-mllvm", "-tsan-distinguish-volatile"}) flags.emplace_back(flag);
  else
    for (const char* flag : {"-fno-tree-sra", "--param=tsan-distinguish-volatile=1"})
      flags.emplace_back(flag);
  return flags;
}

/// The first error that the compiler has with the learner's file, with its line; what is missing at its end
/// shows in the file behind.
std::string first_error(const std::string& text, const std::string& file) {
  const std::string name = fs::path(file).filename().string() + ":";
  std::string other;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find("error:") == std::string::npos) continue;
    if (const std::size_t at = line.find(name); at < line.find("error:")) return line.substr(at);
    if (other.empty()) other = line;
  }
  return fmt::format(
      "{} (at the end of {} a ; or a }} may be missing, or a name is not what the exercise calls)",
      other.empty() ? text.substr(0, text.find('\n')) : other, name.substr(0, name.size() - 1));
}

/// The compiler, and what it is told of every file.
std::vector<std::string> compiler_words(const Exercise& e) {
  const char* named = std::getenv("CXX");
  const std::string compiler = named && *named ? named : "g++";
  std::vector<std::string> words = {compiler,
                                    "-std=c++20",
                                    "-fPIC",
                                    "-fvisibility=hidden",
                                    "-fno-tree-vectorize",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-w",
                                    "-fdiagnostics-color=never",
                                    "-fmax-errors=1"};
  for (const std::string& flag : e.on_gpu ? gpu_flags(compiler) : cpu_flags(cpu_isa())) words.push_back(flag);
  return words;
}

/// The system's headers, which take half of what it takes to compile an answer.
std::string header_file(const Exercise& e) {
  return fs::absolute(fmt::format("{}/.build/{}.h", kFolder, backend_of(e))).string();
}
/// Precompiles them, once for all exercises of a folder: for g++, whose next check includes them so. Another
/// g++ than this one then reads the headers themselves.
void precompile_headers(const Exercise& e) {
  std::vector<std::string> words = compiler_words(e);
  const std::string header = header_file(e), precompiled = header + ".gch",
                    own = fmt::format("{}.{}", precompiled, getpid());
  if (fs::exists(precompiled) || fs::path(words.front()).filename().string().rfind("g++", 0) != 0) return;
  write_destination(header,
                    "#include <algorithm>\n#include <array>\n#include <atomic>\n#include <cmath>\n"
                    "#include <cstring>\n#include <memory>\n#include <mutex>\n#include <span>\n"
                    "#include <vector>\n");
  for (const char* word : {"-x", "c++-header", header.c_str(), "-o", own.c_str()}) words.emplace_back(word);
  std::error_code none;
  if (run_program(words).code == 0)
    fs::rename(own, precompiled, none);  // whole at once: checks run side by side
}

/// Compiles `file` into a plug-in of its own in `folder`; a sentence where it is no C++.
std::string build(const Exercise& e, const std::string& root, const std::string& file,
                  const std::string& folder) {
  fs::create_directories(folder);
  const std::string backend = backend_of(e), object = folder + "/exercise.o",
                    plugin = fmt::format("{}/rooftile-{}.so", folder, backend);
  std::vector<std::string> words = compiler_words(e);
  const std::string compiler = words.front();
  if (fs::exists(header_file(e) + ".gch"))
    for (const std::string& word : {std::string("-include"), header_file(e)}) words.push_back(word);
  for (const std::string& word : {"-I" + root, fmt::format("-ffile-prefix-map={}/=", root),
                                  fmt::format("-DROOFTILE_EXERCISE=\"{}\"", fs::absolute(file).string()),
                                  fmt::format("-DROOFTILE_BACKEND=\"{}\"", backend)})
    words.push_back(word);
  if (e.on_gpu)
    for (const std::string& word :
         {std::string("-DROOFTILE_EMULATED=1"), fmt::format("-I{}/rooftile/backend/emulated/include", root)})
      words.push_back(word);
  for (const std::string& word : {std::string("-c"), e.folder + "/plugin.cpp", std::string("-o"), object})
    words.push_back(word);
  const ProgramOutput compiled = run_program(words);
  if (compiled.code != 0) return first_error(compiled.text, file);
  words = {compiler, "-shared", "-o", plugin, object};
  if (e.on_gpu) {
    for (const std::string& word :
         {device_library(root), std::string("-pthread"), std::string("-ldl"),
          fmt::format("-Wl,--version-script={}/rooftile/exercise/exercise.map", root)})
      words.push_back(word);
  }
  const ProgramOutput linked = run_program(words);
  return linked.code == 0 ? "" : first_error(linked.text, file);
}

int check(const Exercise& e, const std::string& root, const ExerciseArguments& arguments) {
  const std::string file = arguments.file.empty() ? own_file(e) : arguments.file;
  if (!fs::exists(file))
    fail("{}: there is no such file; `rooftile exercise start {}` makes one", file, e.name);
  const auto begin = std::chrono::steady_clock::now();
  const std::string folder = fs::absolute(fmt::format("{}/.build/{}", kFolder, e.name)).string();
  fs::remove_all(folder);
  harness::Verdict verdict;
  if (const std::string error = build(e, root, file, folder); !error.empty())
    verdict = {false, "compile", "your file does not compile: " + error};
  else
    verdict = harness::judge(e, folder, {root, ".", "/"});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  say("{} {}: {} ({:.1f} s)\n", e.name, verdict.ok ? "solved" : fmt::format("[{}]", verdict.kind),
      verdict.sentence, seconds);
  if (arguments.file.empty()) {
    nlohmann::json progress = read_progress();
    nlohmann::json mine = kept(progress, e);
    mine["tries"] = number(mine, "tries") + 1;
    if (verdict.ok) mine["solved"] = true;
    progress[e.name] = mine;
    write_progress(progress);
  }
  if (!verdict.ok) say("`rooftile exercise hint {}` gives the next of {} hints.\n", e.name, e.hints.size());
  precompile_headers(e);  // the learner reads the verdict
  return verdict.ok ? kOk : kFailedCheck;
}

}  // namespace

int exercise(const ExerciseArguments& arguments) {
  const std::string root = root_folder();
  const std::vector<Exercise> all = harness::find_exercises(root);
  if (arguments.what == "list") return list(all);
  if (arguments.what == "progress") return progress(all);
  const Exercise& e = find(all, arguments.name);
  if (arguments.what == "start") return start(e);
  if (arguments.what == "hint") return hint(e);
  if (arguments.what == "check") return check(e, root, arguments);
  print_text(text_of(e.file("solution")));
  return kOk;
}

}  // namespace rooftile::cli
