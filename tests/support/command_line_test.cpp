#include "support/command_line.h"

#include <gmock/gmock.h>

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Values {
  std::string model, output = "a.tnx";
  std::vector<std::string> shapes;
  int64_t count = 3;
  double share = 1;
  bool quiet = false;
};

Status parse(Values& values, std::vector<std::string> arguments) {
  Options options("tool run", "runs");
  options.argument(values.model, "MODEL", "a model");
  options.option(values.output, "-o,--output", "FILE", "a file");
  options.repeated(values.shapes, "--shapes", "NAME=SIZE", "sizes");
  options.option(values.count, "-n,--count", "N", "how often", {1, 1000});
  options.option(values.share, "--share", "P", "how much", {.least = 0, .most = 1, .above = true});
  options.flag(values.quiet, "-q,--quiet", "no progress");
  const auto parsed = options.parse(std::move(arguments));
  return parsed ? Status() : std::unexpected(parsed.error());
}

std::string message(std::vector<std::string> arguments) {
  Values values;
  const Status status = parse(values, std::move(arguments));
  if (status) return "";
  EXPECT_EQ(status.error().fault, Fault::kUsage);
  return status.error().str();
}

TEST(CommandLine, SetsVariables) {
  Values values;
  ASSERT_TRUE(parse(values, {"m.onnx", "-n", "0x10", "--share=0.5", "--shapes", "N=1", "--shapes", "M=-2", "-q"}));
  EXPECT_EQ(values.model, "m.onnx");
  EXPECT_EQ(values.output, "a.tnx");
  EXPECT_EQ(values.count, 16);
  EXPECT_EQ(values.share, 0.5);
  EXPECT_EQ(values.shapes, (std::vector<std::string>{"N=1", "M=-2"}));
  EXPECT_TRUE(values.quiet);
}

TEST(CommandLine, NumbersAreWithinTheirBounds) {
  EXPECT_THAT(message({"m", "-n", "0"}),
              StartsWith("tool run: error: --count is '0', must be an integer from 1 to 1000"));
  EXPECT_THAT(message({"m", "--count", "99999999999999999999"}), HasSubstr("must be an integer from 1 to 1000"));
  EXPECT_THAT(message({"m", "-n", "-5"}), HasSubstr("--count is '-5'"));
  EXPECT_THAT(message({"m", "-n", "1.5"}), HasSubstr("--count is '1.5'"));
  EXPECT_THAT(message({"m", "--share", "nan"}), HasSubstr("--share is 'nan', must be a number above 0 and at most 1"));
  EXPECT_THAT(message({"m", "--share", "0"}), HasSubstr("--share is '0'"));
}

TEST(CommandLine, AMisspelledOptionIsNamedAndCorrected) {
  EXPECT_EQ(
      message({"m", "--shape", "N=1"}),
      "tool run: error: there is no option --shape\n  help: did you mean --shapes? tool run --help shows the options");
  EXPECT_THAT(message({"--shape", "N=1", "m"}), HasSubstr("there is no option --shape\n"));
  EXPECT_THAT(message({"--outptu=x"}), HasSubstr("there is no option --outptu\n  help: did you mean --output?"));
  EXPECT_THAT(message({"m", "--zzzzzzzz"}), HasSubstr("there is no option --zzzzzzzz\n  help: tool run --help"));
  EXPECT_THAT(message({"m", "-z"}), HasSubstr("there is no option -z"));
}

TEST(CommandLine, UnexpectedArgumentsAreInTheirOrder) {
  EXPECT_THAT(message({"m", "first", "second\x1b", "third"}),
              HasSubstr("unexpected arguments 'first', 'second\\x1b', 'third'"));
  EXPECT_THAT(message({"m", "first"}), HasSubstr("unexpected argument 'first'\n"));
  EXPECT_THAT(message({}), HasSubstr("MODEL is required"));
}

TEST(CommandLine, ArgumentsAfterTwoDashesAreNoOptions) {
  EXPECT_EQ(message({"--", "-m"}), message({"m"}));
  EXPECT_THAT(message({"--", "m", "first"}), HasSubstr("unexpected argument 'first'\n"));
  EXPECT_THAT(message({"--"}), HasSubstr("MODEL is required"));
}

}  // namespace
}  // namespace tenon
