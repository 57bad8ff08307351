#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "rooftile/harness/check/check.h"

namespace rooftile::cli {

/// Where long work stands, with the time left, on standard error; silent where that is no terminal. Its line
/// is gone when it is.
class ProgressBar {
 public:
  explicit ProgressBar(std::string stage);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// For work that cannot say how far it is.
  void say(std::string_view what);
  void update(const harness::Progress& progress);

 private:
  void draw(const std::string& line);

  std::string stage_;
  bool shown_;
  bool drawn_ = false;
  std::int64_t begun_ns_;
  std::int64_t drawn_ns_ = 0;
};

/// The bar's line, `columns` wide at most: "checking  [####......]  40%  1:05 left  softmax tile f16".
std::string progress_line(std::string_view stage, const harness::Progress& progress, double seconds,
                          int columns);

}  // namespace rooftile::cli
