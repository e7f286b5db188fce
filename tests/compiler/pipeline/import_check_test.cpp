// The support of a model's operators per target, known before anything is compiled.
#include "compiler/pipeline/import_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::compiler {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kModelFolder = TENON_SOURCE_DIR "/tests/models/";

ImportCheck check(const char* model, bool accelerator) {
  std::vector<AcceleratorOptions> accelerators;
  if (accelerator) accelerators.push_back({*spec::load_config("default")});
  auto found = check_import(std::string(kModelFolder) + model, {{"N", 1}}, accelerators);
  EXPECT_TRUE(found) << found.error().str();
  return std::move(*found);
}

TEST(ImportCheck, CountsTheTargetsOfAFloatModelAsIfItWereCalibrated) {
  const ImportCheck report = check("resnet8_digits.onnx", true);
  EXPECT_TRUE(report.assumes_calibration);
  EXPECT_GT(report.targets.at("Conv").accelerator, 0u);
  EXPECT_EQ(report.targets.at("Conv").native, 0u);
  const std::string table = text(report);
  EXPECT_THAT(table, HasSubstr("not on the accelerator because"));
  EXPECT_THAT(table, HasSubstr("after --calibrate only"));
}

TEST(ImportCheck, CountsTheKernelsOfTheCpu) {
  const ImportCheck report = check("resnet8_digits.onnx", false);
  EXPECT_FALSE(report.assumes_calibration);
  EXPECT_EQ(report.targets.at("Conv").accelerator, 0u);
  EXPECT_GT(report.targets.at("Conv").native, 0u);
  EXPECT_EQ(report.targets.at("Conv").reference, 0u);
  EXPECT_THAT(text(report), Not(HasSubstr("--calibrate")));
}

TEST(ImportCheck, AModelThatComesQuantizedHasTheLayersThatItIsCompiledTo) {
  const ImportCheck report = check("resnet8_digits_int8_qdq.onnx", true);
  EXPECT_FALSE(report.assumes_calibration);
  for (const char* op : {"Conv", "Add", "Gemm", "GlobalAveragePool"}) {
    EXPECT_GT(report.targets.at(op).accelerator, 0u) << op;
    EXPECT_EQ(report.targets.at(op).native, 0u) << op;
  }
}

TEST(ImportCheck, AFileThatIsMissingIsAnError) {
  const auto found = check_import("/nonexistent.onnx", {}, {});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().str(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace tenon::compiler
