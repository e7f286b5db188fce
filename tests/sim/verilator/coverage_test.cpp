// Counts of lines: added over many models, by file, and with the line of each point.
#include "sim/verilator/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "sim/verilator/process.h"

namespace tenon::sim {
namespace {

namespace fs = std::filesystem;

struct CoverageTest : testing::Test {
  CoverageTest() { fs::create_directories(directory); }
  ~CoverageTest() override { fs::remove_all(directory); }

  // A file as a model writes it, with the counts of four points of the RTL, of which two are on one line.
  static void write(const fs::path& file, int first, int second, int third, int fourth) {
    const auto point = [](std::string_view source, int line, std::string_view kind, int count) {
      return std::string("C '\1f\2").append(source) + "\1l\2" + std::to_string(line) + "\1n\2" +
             (kind == "else" ? "9" : "3") + "\1page\2v_line/x\1o\2" + std::string(kind) + "\1S\2" +
             std::to_string(line) + "\1h\2TOP' " + std::to_string(count) + "\n";
    };
    std::ofstream(file) << "# SystemC::Coverage-3\n"
                        << point("alu.sv", 20, "if", first) << point("alu.sv", 20, "else", second)
                        << point("alu.sv", 25, "block", third) << point("rq.sv", 30, "block", fourth);
  }

  fs::path directory = fs::temp_directory_path() / ("tenon-coverage-test-" + std::to_string(getpid()));
};

TEST_F(CoverageTest, AddsTheCountsOfModelsAndNamesLinesWithoutAny) {
  if (!find_program("verilator_coverage")) GTEST_SKIP() << "verilator_coverage is not installed";
  LineCoverage coverage(directory);
  for (int i = 0; i < 100; ++i) write(coverage.next(), i == 1, 0, 0, i == 99 ? 5 : 0);
  EXPECT_LT(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 40);
  const auto files = coverage.annotate();
  ASSERT_TRUE(files) << files.error().str();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].file, "alu.sv");
  EXPECT_EQ((*files)[0].points, 3);
  EXPECT_EQ((*files)[0].reached, 1);
  EXPECT_THAT((*files)[0].missing, testing::ElementsAre(20, 25));
  EXPECT_EQ((*files)[1].file, "rq.sv");
  EXPECT_EQ((*files)[1].points, 1);
  EXPECT_EQ((*files)[1].reached, 1);
  EXPECT_THAT((*files)[1].missing, testing::IsEmpty());
}

TEST_F(CoverageTest, AFailureOfTheToolIsAnErrorWithItsLog) {
  LineCoverage coverage(directory);
  write(coverage.next(), 1, 1, 1, 1);
  const std::string path = std::getenv("PATH");
  setenv("PATH", directory.c_str(), 1);
  const auto files = coverage.annotate();
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().what, "verilator_coverage ends with status 127");
  EXPECT_THAT(files.error().where, testing::HasSubstr("log.txt"));
}

TEST_F(CoverageTest, AModelThatHasNotWrittenItsCountsIsNamed) {
  LineCoverage coverage(directory);
  const fs::path first = coverage.next();
  write(first, 1, 1, 1, 1);
  const fs::path second = coverage.next();
  const auto files = coverage.annotate();
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().what, "a model has not written its counts");
  EXPECT_EQ(files.error().where, second.string());
}

}  // namespace
}  // namespace tenon::sim
