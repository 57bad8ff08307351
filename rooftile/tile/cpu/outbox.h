#pragma once
// Rows on their way to memory, past the caches. Written in one burst at a row's end, such stores hold up the
// next row's arithmetic (0.6 of a copy: reading, computing and writing take turns); so a row is written to a
// stage in the cache, and leaves it a few lines at a time while the next row is computed. The stage also lets
// a row that does not begin at a cache line leave in whole lines.
#include <algorithm>

#include "rooftile/core/plugin.h"
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Two stages of half this size stand at the end of a thread's scratch; rows that do not fit are stored
/// directly.
inline constexpr std::int64_t kStageBytes = 64 * 1024;

class Outbox {
 public:
  static constexpr std::int64_t kLine = 64;

  /// `scratch`: the thread's.
  explicit Outbox(std::byte* scratch) : stages_(scratch + kScratchBytes - kStageBytes) {}

  /// Where to write `bytes` that shall go to `to`; null where they do not fit, and the caller stores them
  /// itself.
  ROOFTILE_TILE std::byte* stage(void* to, std::int64_t bytes) {
    // A stage's data begins at its target's place within a line, so that whole lines are aligned in both.
    const std::int64_t shift = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kLine);
    const std::int64_t room = kStageBytes / 2 - next_.filled;
    if (next_.count == kRows || shift + bytes + kLine > room) return nullptr;
    std::byte* from = stages_ + turn_ * (kStageBytes / 2) + next_.filled + shift;
    next_.row[next_.count++] = {from, static_cast<std::byte*>(to), bytes};
    next_.filled += (shift + bytes + kLine - 1) / kLine * kLine;
    return from;
  }

  /// Sends up to `lines` whole lines of the row before this one.
  ROOFTILE_TILE void send(int lines) {
    if (lines_ == 0) {
      if (which_ + 1 >= current_.count) return;
      begin(which_ + 1);
    }
    const int n = lines < lines_ ? lines : lines_;
    for (int i = 0; i < n; ++i) {
      for (int b = 0; b < kLine; b += kVectorBytes)
        stream(to_ + b, load_unaligned<Vec<std::int32_t>>(from_ + b));
      from_ += kLine;
      to_ += kLine;
    }
    lines_ -= n;
  }

  /// The row is complete: what is left of the one before goes, and this one's turn to leave begins.
  [[gnu::noinline]] void turn() {
    finish();
    current_ = next_;
    next_ = {};
    turn_ = 1 - turn_;
    begin(0);
  }

  /// Everything goes.
  [[gnu::noinline]] void flush() {
    turn();
    turn();
    stream_fence();
  }

 private:
  static constexpr int kRows = 2;  // outputs of one program
  struct Part {
    std::byte* from;
    std::byte* to;
    std::int64_t bytes;
  };
  struct Parts {
    Part row[kRows];
    int count = 0;
    std::int64_t filled = 0;
  };

  /// Part `which` begins to leave: its first and last partial line at once, by ordinary stores.
  [[gnu::noinline]] void begin(int which) {
    which_ = which;
    lines_ = 0;
    if (which >= current_.count) return;
    const Part& p = current_.row[which];
    const std::int64_t shift = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p.to) % kLine);
    const std::int64_t head = std::min((kLine - shift) % kLine, p.bytes);
    const std::int64_t lines = (p.bytes - head) / kLine;
    const std::int64_t tail = head + lines * kLine;
    std::memcpy(p.to, p.from, static_cast<std::size_t>(head));
    std::memcpy(p.to + tail, p.from + tail, static_cast<std::size_t>(p.bytes - tail));
    from_ = p.from + head;
    to_ = p.to + head;
    lines_ = static_cast<int>(lines);
  }
  void finish() {
    while (which_ < current_.count) {
      if (lines_ > 0) send(lines_);  // with nothing left it would begin the next part itself
      begin(which_ + 1);
    }
  }

  std::byte* stages_;
  int turn_ = 0;
  Parts next_, current_;
  int which_ = 0;
  int lines_ = 0;  // whole lines left of the part that is leaving
  std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
};

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
