// VTA's programs run unmodified, with the final memory of VTA's functional simulator.
#include <gtest/gtest.h>

#include <cstring>

#include "sim/behavioral/behavioral.h"
#include "sim/behavioral/kernels.h"
#include "sim/vta/vta_program.h"

namespace tenon::sim {
namespace {

const std::filesystem::path kPrograms = TENON_SOURCE_DIR "/tests/vta";

std::vector<std::string> programs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kPrograms))
    if (entry.path().extension() == ".bin") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

class VtaPrograms : public testing::TestWithParam<std::string> {};

TEST_P(VtaPrograms, leave_the_expected_memory_with_the_race_detector_on) {
  const auto program = vta::read_program(kPrograms / (GetParam() + ".bin"));
  ASSERT_TRUE(program) << program.error().str();
  for (const KernelSet* kernels : kernel_sets()) {
    if (!kernels->supported()) continue;
    const auto config = spec::load_config("default");
    ASSERT_TRUE(config) << config.error().str();
    auto simulator =
        make_behavioral(*config, {.memory_bytes = program->memory_bytes, .kernels = std::string(kernels->name)});
    ASSERT_TRUE(simulator) << simulator.error().str();
    const auto status = vta::run(**simulator, *program);
    EXPECT_TRUE(status) << kernels->name << ": " << status.error().str();
  }
}

INSTANTIATE_TEST_SUITE_P(All, VtaPrograms, testing::ValuesIn(programs()), [](const auto& info) { return info.param; });

TEST(VtaProgramFile, a_wrong_magic_is_an_error) {
  const std::vector<std::byte> bytes(64);
  const auto program = vta::parse_program(bytes, "x.bin");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().str(),
            "x.bin: error: not a VTAC0001 file: the first eight bytes must be \"VTAC0001\" in a header of 32");
}

TEST(VtaProgramFile, a_truncated_file_is_an_error_at_every_length) {
  std::vector<std::byte> bytes(32 + 16 + 4);
  std::memcpy(bytes.data(), "VTAC0001", 8);
  const auto put = [&](size_t at, uint32_t v) { std::memcpy(bytes.data() + at, &v, 4); };
  put(16, 4096), put(20, 1), put(32 + 4, 4);
  ASSERT_TRUE(vta::parse_program(bytes, "x.bin"));
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(vta::parse_program(std::span(bytes).first(n), "x.bin")) << n;
  put(32, 4096);  // a record outside memory
  const auto outside = vta::parse_program(bytes, "x.bin");
  ASSERT_FALSE(outside);
  EXPECT_NE(outside.error().what.find("are outside its memory"), std::string::npos);
}

TEST(VtaProgramFile, memory_that_differs_is_named_byte_by_byte) {
  auto program = vta::read_program(kPrograms / "vadd_4x64.bin");
  ASSERT_TRUE(program);
  program->after.front().data[5] ^= std::byte{1};
  auto simulator = make_behavioral(*spec::load_config("default"), {.memory_bytes = program->memory_bytes});
  const auto status = vta::run(**simulator, *program);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().what.find(": expected 0x"), std::string::npos) << status.error().str();
}

}  // namespace
}  // namespace tenon::sim
