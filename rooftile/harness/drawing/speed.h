// Speed against size: the pictures of `rooftile bench --plot`, of `rooftile plot` and of the lessons.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rooftile::drawing {

struct SpeedPoint {
  double bytes, us, p5_us, p95_us;  ///< moved by a call, and its time; p5_us and p95_us: 0 where not known
  std::string shape;
};
struct SpeedLine {
  std::string name;
  std::size_t place;  ///< its colour and mark: one in all pictures of a record
  std::vector<SpeedPoint> points;
};
/// What a copy reaches in a cache, or in memory; `bytes`: where it ends, 0 for memory.
struct SpeedLevel {
  std::string name;
  double bytes, gbs;
};
struct SpeedChart {
  std::string name;      ///< for files: "softmax_f32_1_thread"
  std::string title;     ///< "softmax, f32, one thread"
  std::string measured;  ///< "AMD EPYC, 2026-11-21, avx512"
  std::vector<SpeedLine> lines;
  std::vector<SpeedPoint> copy;  ///< of the same bytes, in the same run
  std::vector<SpeedLevel> levels;
};
struct Picture {
  std::string svg, alternative;
};

/// GB/s against the bytes that a call moves, both logarithmic: a line for each of the chart's, one for the
/// copy, and the caches' and the memory's roofs.
Picture draw(const SpeedChart& chart);

/// The results of a record that belong to a series of sizes: "group": "sweep".
nlohmann::json series_of(const nlohmann::json& record);

/// A chart for each function, dtype and number of threads of `results`, which are of `record`, where it has
/// two sizes or more. A line is what one "series" of results says, or one baseline ("peers").
std::vector<SpeedChart> speed_charts(const nlohmann::json& record, const nlohmann::json& results);

}  // namespace rooftile::drawing
