// The options of a device's URI: values, limits and errors.
#include "driver/uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace tenon::driver {
namespace {

using testing::HasSubstr;

Options parse(std::string_view target) { return Options::parse("x:" + std::string(target), target).value(); }

TEST(Options, ReadsNameAndValues) {
  Options options = parse("tiny?memory=64M&latency=60&race=off&trace=/tmp/x.vcd");
  EXPECT_EQ(options.name(), "tiny");
  EXPECT_EQ(options.bytes("memory", 1, 0, UINT64_MAX), 64u << 20);
  EXPECT_EQ(options.integer("latency", 1, 0, 100), 60u);
  EXPECT_EQ(options.integer("absent", 17, 0, 100), 17u);
  EXPECT_FALSE(options.flag("race", true));
  EXPECT_EQ(options.text("trace", ""), "/tmp/x.vcd");
  EXPECT_TRUE(options.finish());
}

TEST(Options, AnUnknownKeyListsTheSupportedKeys) {
  Options options = parse("tiny?latencey=60");
  options.integer("latency", 1, 0, 100);
  options.flag("race", true);
  const auto status = options.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().str(),
            "x:tiny?latencey=60: error: there is no option latencey\n  help: expected one of latency, race");
  EXPECT_EQ(status.error().fault, Fault::kUsage);
}

TEST(Options, IntegersOutsideTheirLimitsAreNamed) {
  for (const char* value : {"101", "-1", "1x", "", "99999999999999999999", "1K"}) {
    Options options = parse("tiny?latency=" + std::string(value));
    options.integer("latency", 1, 0, 100);
    const auto status = options.finish();
    ASSERT_FALSE(status) << value;
    EXPECT_EQ(status.error().what, "option latency is \"" + std::string(value) + "\", must be an integer in [0, 100]");
  }
}

TEST(Options, SizesThatWrapAreErrors) {
  Options options = parse("tiny?memory=99999999999999G");
  options.bytes("memory", 1, 0, UINT64_MAX);
  EXPECT_FALSE(options.finish());
}

TEST(Options, TheFirstOfSeveralErrorsIsReported) {
  Options options = parse("tiny?race=maybe&latency=x");
  options.flag("race", true);
  options.integer("latency", 1, 0, 100);
  EXPECT_EQ(options.finish().error().what, "option race is \"maybe\", must be on or off");
  Options order = parse("tiny?writes=first");
  EXPECT_EQ(order.one_of("writes", std::array<std::string_view, 2>{"address", "data"}, 1), 1u);
  EXPECT_EQ(order.finish().error().what, "option writes is \"first\", must be one of address, data");
}

TEST(Options, MalformedItemsAreErrors) {
  for (const char* target : {"tiny?race", "tiny?=1"}) {
    const auto options = Options::parse("x:", target);
    ASSERT_FALSE(options) << target;
    EXPECT_THAT(options.error().what, HasSubstr("is not KEY=VALUE"));
  }
  EXPECT_THAT(Options::parse("x:", "tiny?a=1&a=2").error().what, HasSubstr("option a is given twice"));
}

}  // namespace
}  // namespace tenon::driver
