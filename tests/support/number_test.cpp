#include "support/number.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Number, IsTheWholeText) {
  EXPECT_EQ(parse_number<int64_t>("-12"), -12);
  EXPECT_EQ(parse_number<int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_number<uint64_t>("0xff"), 255u);
  EXPECT_EQ(parse_number<uint64_t>("007"), 7u);
  EXPECT_EQ(parse_number<double>("1e3"), 1000.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "-", "0x", "0x-1", "1.5", "99999999999999999999", "1e3"}) {
    EXPECT_FALSE(parse_number<int64_t>(text)) << text;
    EXPECT_FALSE(parse_number<uint64_t>(text)) << text;
  }
  EXPECT_FALSE(parse_number<uint64_t>("-1"));
  for (const char* text : {"", "inf", "nan", "1e999", "1,5", "0x1", "1 "})
    EXPECT_FALSE(parse_number<double>(text)) << text;
}

TEST(Number, OutOfBoundsIsWrongUsage) {
  const auto message = [](auto number) { return number ? "a number" : number.error().what; };
  const Bounds<int64_t> sizes{0, INT32_MAX};
  EXPECT_EQ(*read_number("N", "2147483647", sizes), INT32_MAX);
  const auto huge = read_number("N", "99999999999999999999", sizes);
  EXPECT_EQ(huge.error().what, "N is '99999999999999999999', must be an integer from 0 to 2147483647");
  EXPECT_EQ(huge.error().fault, Fault::kUsage);
  EXPECT_EQ(message(read_number("N", "-1", sizes)), "N is '-1', must be an integer from 0 to 2147483647");
  EXPECT_EQ(message(read_number<int64_t>("N", "0", {.least = 1})), "N is '0', must be an integer of at least 1");
  EXPECT_EQ(message(read_number<uint64_t>("N", "-1", {})), "N is '-1', must be an integer of at least 0");
  EXPECT_EQ(message(read_number<double>("P", "0", {.least = 0, .most = 1, .above = true})),
            "P is '0', must be a number above 0 and at most 1");
  EXPECT_EQ(message(read_number<double>("P", "nan", {})), "P is 'nan', must be a number");
  EXPECT_EQ(*read_number<double>("P", "1", {.least = 0, .most = 1, .above = true}), 1);
}

TEST(Number, OfBytesHasAUnit) {
  EXPECT_EQ(read_bytes("B", "4096"), 4096u);
  EXPECT_EQ(read_bytes("B", "64MiB"), uint64_t{64} << 20);
  EXPECT_EQ(read_bytes("B", "1.5 GiB"), uint64_t{3} << 29);
  EXPECT_EQ(read_bytes("B", "12KiB"), 12288u);
  EXPECT_EQ(read_bytes("B", "7B"), 7u);
  for (const char* text : {"", "MiB", "-1", "0", "0.5", "nan", "1e300", "64 MB", "64MiBMiB", "1  KiB"}) {
    const auto read = read_bytes("B", text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().fault, Fault::kUsage);
    EXPECT_EQ(read.error().what,
              std::string("B is '") + text + "', must be a number of bytes, as 4096, 64MiB or 1.5GiB");
  }
}

}  // namespace
}  // namespace tenon
