#pragma once
// What the checks, compiled once for each instruction set, and the test that runs them agree on: plain data,
// so that nothing of one instruction set is linked into another's code.
#include <cstdarg>
#include <cstdio>

struct TileReport {
  void* context;
  void (*fail)(void* context, const char* text);
  bool all_floats;  ///< every one of 2^32 instead of a sample
};

struct TileCheck {
  const char* name;
  void (*run)(const TileReport& report);
};

/// The one symbol of a module of checks: an array that ends in an empty entry.
using TileChecksFunction = const TileCheck* (*)();

namespace {

/// Reports the first few failures of a check, and how many there were.
class Checker {
 public:
  explicit Checker(const TileReport& report) : report_(report) {}
  ~Checker() {
    char text[64];
    std::snprintf(text, sizeof text, "... %ld failures in all", failures_);
    if (failures_ > kShown) report_.fail(report_.context, text);
  }
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  [[gnu::format(printf, 3, 4)]] void expect(bool holds, const char* format, ...) {
    if (holds || ++failures_ > kShown) return;
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    report_.fail(report_.context, text);
  }
  bool failed() const { return failures_ != 0; }

 private:
  static constexpr long kShown = 5;
  const TileReport& report_;
  long failures_ = 0;
};

}  // namespace

// Each file of checks has one list.
extern const TileCheck tile_number_checks[], tile_lane_checks[], tile_memory_checks[], tile_program_checks[];
