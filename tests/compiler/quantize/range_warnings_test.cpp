#include "compiler/quantize/range_warnings.h"

#include <gmock/gmock.h>

#include "compiler/ir/builder.h"

namespace tenon::compiler {
namespace {

using runtime::DType;
using runtime::Tensor;
using testing::HasSubstr;

class RangeWarningsTest : public testing::Test {
 protected:
  RangeWarningsTest() {
    const Atom x = builder_.param(context_.tensor(runtime::Shape{1, 4}, DType::kF32), "x");
    const Atom y = builder_.param(context_.tensor(runtime::Shape{1, 4}, DType::kF32), "y");
    builder_.finish(*builder_.apply("add", {x, y}));
    module_.globals.emplace(main_, std::move(function_));
  }
  void add_sample(std::vector<float> x, std::vector<float> y) {
    Tensor a(DType::kF32, {1, 4}), b(DType::kF32, {1, 4});
    std::ranges::copy(x, a.data<float>().begin());
    std::ranges::copy(y, b.data<float>().begin());
    samples_.push_back({a, b});
  }
  std::string warnings() {
    const auto ranges = calibrate(context_, module_, main_, samples_);
    EXPECT_TRUE(ranges) << ranges.error().str();
    const auto found = range_warnings(context_, module_, main_, samples_, *ranges);
    return found ? *found : found.error().str();
  }

  Context context_;
  Module module_;
  Function function_;
  Builder builder_{context_, module_, function_};
  Symbol main_ = context_.symbol("main");
  Samples samples_;
};

TEST_F(RangeWarningsTest, GoodSamplesRaiseNone) {
  for (int i = 0; i < 8; ++i) add_sample({0, 1, -1.0F * static_cast<float>(i), 2}, {3, 0, 1, -2});
  EXPECT_EQ(warnings(), "");
}

TEST_F(RangeWarningsTest, ZerosAreNoRange) {
  for (int i = 0; i < 8; ++i) add_sample({0, 0, 0, 0}, {0, 0, 0, 0});
  EXPECT_EQ(warnings(),
            "calibration: error: each value of the model was 0 in all samples, so that there is no range to "
            "quantize by\n  help: give data like the data that the model will see");
}

TEST_F(RangeWarningsTest, AnInputOfOneValueIsNamed) {
  for (int i = 0; i < 8; ++i) add_sample({0, 1, -1.0F * static_cast<float>(i), 2}, {0.5, 0.5, 0.5, 0.5});
  EXPECT_EQ(warnings(), "warning: %y was 0.5 in all samples, whose range is no scale for other values\n");
}

TEST_F(RangeWarningsTest, EqualAndFewSamplesAreNamed) {
  for (int i = 0; i < 5; ++i) add_sample({0, 1, 2, 3}, {3, 0, 1, -2});
  EXPECT_EQ(warnings(), "warning: all 5 samples of the calibration are equal\n");
  samples_.resize(1);
  EXPECT_EQ(warnings(), "warning: the calibration has 1 sample: some tens show the ranges of rare values too\n");
}

TEST_F(RangeWarningsTest, AnOutlierIsNamed) {
  for (int i = 0; i < 8; ++i) add_sample({0, 1, -1.0F * static_cast<float>(i), 2}, {3, 0, 1, -2});
  add_sample({0, 1, 50'000, 2}, {3, 0, 1, -2});
  EXPECT_THAT(warnings(),
              HasSubstr("warning: one element, 50000, takes most of the range -7 .. 50000 of %x: all others are "
                        "-7 .. 2\n"));
  samples_.pop_back();
  add_sample({0, -50'000, 1, 2}, {3, 0, 1, -2});
  EXPECT_THAT(warnings(), HasSubstr("one element, -50000, takes most of the range -50000 .. 2 of %x"));
}

}  // namespace
}  // namespace tenon::compiler
