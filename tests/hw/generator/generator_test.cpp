#include "hw/generator/generator.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace tenon::generator {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// `tenon hw generate --config default -o DIR` writes the pages that are stored beside their source.
TEST(Generator, PagesInTheRepositoryAreUpToDate) {
  EXPECT_EQ(read(TENON_SOURCE_DIR "/hw/spec/isa.md"), isa_page(*spec::load_config("default")));
  EXPECT_EQ(read(TENON_SOURCE_DIR "/hw/spec/registers.md"), register_page());
}

TEST(Generator, PackageHoldsSizesEncodingsAndHash) {
  const std::string text = package_text(*spec::load_config("tiny"));
  for (const char* line : {"localparam int BLOCK_IN = 4;", "localparam int AXI_BITS = 32;",
                           "localparam int UOP_DEPTH = 256;", "    logic [13:0] dst_base;",
                           "localparam logic [2:0] OP_POST = 3'h7;", "localparam logic [11:0] REG_BASE0 = 12'h20;"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(Generator, WritesACompleteDirectory) {
  const auto directory = std::filesystem::path(testing::TempDir()) / "tenon_generate";
  const auto config = *spec::load_config("tiny");
  const auto files = generate(config, directory);
  ASSERT_TRUE(files) << files.error().str();
  EXPECT_EQ(read(directory / "tenon_pkg.sv"), package_text(config));
  EXPECT_EQ(*spec::parse_config(read(directory / "config.json"), "config.json"), config);
  EXPECT_TRUE(std::filesystem::exists(directory / "files.f"));
  for (const SourceText& source : generated_sources(config)) EXPECT_EQ(read(directory / source.file), source.text);
  std::filesystem::remove_all(directory);
}

TEST(Generator, AnUnwritableDirectoryIsAnError) {
  const auto files = generate(*spec::load_config("tiny"), "/proc/nowhere");
  ASSERT_FALSE(files);
  EXPECT_NE(files.error().str().find("/proc/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace tenon::generator
