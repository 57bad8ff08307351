#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/table.h"
#include "rooftile/harness/bench/timing.h"

namespace rooftile::cli {
namespace {

constexpr int kCells = 24;
constexpr std::int64_t kBetweenDrawings = 100'000'000;  // ns

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
}

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string clock(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(std::clamp(seconds, 0.0, 359'999.0)));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return hours ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
               : fmt::format("{}:{:02}", minutes, whole % 60);
}

}  // namespace

std::string progress_line(std::string_view stage, const harness::Progress& progress, double seconds,
                          int columns) {
  const double total = static_cast<double>(std::max<std::int64_t>(progress.total, 1));
  const double share = std::clamp(static_cast<double>(progress.done) / total, 0.0, 1.0);
  const int full = static_cast<int>(share * kCells);
  std::string line =
      fmt::format("{}  [{:#<{}}{:.<{}}] {:3.0f}%", stage, "", full, "", kCells - full, 100 * share);
  // The first second says too little about the rest.
  if (seconds > 1 && share > 0) line += fmt::format("  {} left", clock(seconds * (1 - share) / share));
  line += "  " + progress.what;
  return cut(line, columns - 1);
}

ProgressBar::ProgressBar(std::string stage)
    : stage_(std::move(stage)), shown_(is_terminal()), begun_ns_(harness::now_ns()) {}

ProgressBar::~ProgressBar() {
  if (drawn_) draw("");
}

void ProgressBar::say(std::string_view what) {
  if (shown_) draw(cut(fmt::format("{}  {}", stage_, what), terminal_columns() - 1));
}

void ProgressBar::update(const harness::Progress& progress) {
  if (!shown_) return;
  const std::int64_t now = harness::now_ns();
  if (drawn_ && now - drawn_ns_ < kBetweenDrawings) return;
  drawn_ns_ = now;
  draw(progress_line(stage_, progress, static_cast<double>(now - begun_ns_) * 1e-9, terminal_columns()));
}

void ProgressBar::draw(const std::string& line) {
  const std::string text = "\r" + line + "\x1b[K";
  drawn_ = ::write(STDERR_FILENO, text.data(), text.size()) >= 0 && !line.empty();
}

}  // namespace rooftile::cli
