#pragma once

namespace rooftile {

/// What a call came to: success, or one sentence that names what was wrong and what was seen.
/// The text is held inline, so a Status never allocates; success writes one byte and costs nothing.
class [[nodiscard]] Status {
 public:
  static constexpr int kCapacity = 1000;

  Status() noexcept { text_[0] = '\0'; }

  /// printf's format and arguments; a longer sentence is cut and ends in "...".
  [[gnu::format(printf, 1, 2)]] static Status error(const char* format, ...) noexcept;

  explicit operator bool() const noexcept { return text_[0] == '\0'; }
  bool ok() const noexcept { return text_[0] == '\0'; }
  /// The sentence; empty on success.
  const char* message() const noexcept { return text_; }

 private:
  char text_[kCapacity];
};

}  // namespace rooftile
