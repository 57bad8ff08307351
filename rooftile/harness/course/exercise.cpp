#include "rooftile/harness/course/exercise.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rooftile/harness/course/exercise_functions.h"

namespace rooftile::harness {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

Exercise read_exercise(const fs::path& folder) {
  const fs::path file = folder / "exercise.json";
  try {
    std::ifstream stream(file);
    const json j = json::parse(stream);
    Exercise e;
    e.name = folder.filename().string();
    e.folder = folder.string();
    e.title = j.at("title");
    e.lesson = j.at("lesson");
    e.task = j.at("task");
    e.function = j.at("function");
    e.variant = find_exercise_spec(e.function) ? "" : j.at("variant");
    e.on_gpu = j.at("device") == "gpu";
    e.extension = e.on_gpu ? ".cu" : ".h";
    e.oracle = j.value("oracle", "");
    e.dtype = j.value("dtype", "");
    e.minutes = j.at("minutes");
    e.hints = j.at("hints").get<std::vector<std::string>>();
    e.likely = j.at("likely").get<std::map<std::string, std::string>>();
    e.set = j.value("set", std::map<std::string, double>{});
    for (const json& first : j.value("first", json::array())) {
      Case& c = e.first.emplace_back();
      c.shape = (first.is_array() ? first : first.at("shape")).get<Shape>();
      if (first.is_array()) continue;
      c.parameters = first.value("with", c.parameters);
      c.in_place = first.value("in_place", false);
    }
    e.whole = j.value("whole", std::int64_t{1});
    if (const auto t = j.find("traffic"); t != j.end()) {
      e.traffic.shapes = t->value("shapes", std::vector<Shape>{});
      e.traffic.of_stated = t->value("of_stated", 0.0);
      e.traffic.banks = t->value("banks", false);
      e.traffic.shared = t->value("shared", std::int64_t{-1});
      e.traffic.lanes = t->value("lanes", 0.0);
      e.traffic.reads = t->value("reads", 0.0);
    }
    if (e.hints.size() != 3)
      throw std::runtime_error(fmt::format("{} hints, there must be 3", e.hints.size()));
    return e;
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{}: is no exercise: {}", file.string(), error.what()));
  }
}

}  // namespace

std::vector<Exercise> find_exercises(const std::string& root) {
  std::vector<Exercise> exercises;
  std::error_code error;
  for (const auto& op : fs::directory_iterator(fs::path(root) / "rooftile/ops", error))
    for (const auto& folder : fs::directory_iterator(op.path() / "exercise", error))
      if (fs::exists(folder.path() / "exercise.json")) exercises.push_back(read_exercise(folder.path()));
  // A build by -DROOFTILE_OPS lacks some functions.
  std::erase_if(exercises,
                [](const Exercise& e) { return !find_spec(e.function) && !find_exercise_spec(e.function); });
  const auto key = [](const Exercise& e) { return std::pair(e.lesson, e.name); };
  std::sort(exercises.begin(), exercises.end(),
            [&](const Exercise& a, const Exercise& b) { return key(a) < key(b); });
  return exercises;
}

}  // namespace rooftile::harness
