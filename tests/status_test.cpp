#include "rooftile/core/status.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>

namespace rooftile {
namespace {

TEST(Status, DefaultIsSuccess) {
  const Status s;
  EXPECT_TRUE(s);
  EXPECT_TRUE(s.ok());
  EXPECT_STREQ(s.message(), "");
}

TEST(Status, ErrorIsItsSentence) {
  const Status s = Status::error("softmax: x is %dx%d %s", 2, 3, "f16");
  EXPECT_FALSE(s);
  EXPECT_FALSE(s.ok());
  EXPECT_STREQ(s.message(), "softmax: x is 2x3 f16");
  const Status copy = s;
  EXPECT_STREQ(copy.message(), s.message());
}

TEST(Status, HoldsItsTextInline) {
  static_assert(std::is_trivially_copyable_v<Status>);
  static_assert(sizeof(Status) == Status::kCapacity);
}

TEST(Status, LongSentencesAreCutAndSaySo) {
  for (const int length : {Status::kCapacity - 2, Status::kCapacity - 1, Status::kCapacity, 5000}) {
    const std::string text(static_cast<std::size_t>(length), 'x');
    const std::string message = Status::error("%s", text.c_str()).message();
    if (length < Status::kCapacity) {
      EXPECT_EQ(message, text) << length;
    } else {
      EXPECT_EQ(message, text.substr(0, Status::kCapacity - 4) + "...") << length;
    }
  }
}

TEST(Status, AFailureIsNeverEmpty) {
  for (const Status& s : {Status::error("%s", ""), Status::error("%c rest", '\0')}) {
    EXPECT_FALSE(s);
    EXPECT_GT(std::strlen(s.message()), 10u);
  }
}

}  // namespace
}  // namespace rooftile
