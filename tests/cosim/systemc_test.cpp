// The SystemC platform: equal to the behavioral simulator write by write, close to the cycle model, one for each
// process, and with equal results by DMI, by transactions and with the RTL in it.
#include "sim/systemc/platform.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "driver/accelerator.h"
#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "sim/fuzz/campaign.h"
#include "sim/lockstep/lockstep.h"
#include "sim/vta/vta_program.h"
#include "support/try.h"

extern "C" int sc_main(int, char**) { return 1; }  // libsystemc requires this symbol

namespace tenon::sim {
namespace {

namespace reg = spec::reg;
using testing::HasSubstr;

constexpr uint64_t kMemory = 8 << 20;

uint64_t counter(Simulator& s, uint32_t offset) {
  return s.read_register(offset) | uint64_t{s.read_register(offset + 4)} << 32;
}

struct SystemcFuzz : testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(SystemcFuzz, EqualsBehavioralAtEveryWrite) {
  const auto [name, dmi] = GetParam();
  const auto config = spec::load_config(name).value();
  const auto runner = [&](const fuzz::Program& program) -> Status {
    TENON_TRY_ASSIGN(tested, make_systemc(config, {.memory_bytes = kMemory, .dmi = dmi}));
    TENON_TRY_ASSIGN(reference, make_behavioral(config, {.memory_bytes = kMemory}));
    TENON_TRY_ASSIGN(both, Lockstep::make({"SystemC", std::move(*tested)}, {"behavioral", std::move(*reference)}));
    return fuzz::run(**both, program, 4'000'000);
  };
  const auto result = fuzz::campaign(config, {.count = 60, .shrink_budget = 200}, runner);
  fmt::print("{}: {} programs, {} instructions\n", name, result.programs, result.instructions);
  EXPECT_FALSE(result.failure) << result.failure->report;
}

INSTANTIATE_TEST_SUITE_P(Configurations, SystemcFuzz,
                         testing::Combine(testing::Values("tiny", "default"), testing::Bool()));

TEST(Systemc, VtaProgramsLeaveTheirMemoryInAboutTheCyclesOfTheModel) {
  const auto config = spec::load_config("default").value();
  double sum = 0;
  int programs = 0;
  for (const char* name : {"conv_C2", "conv_C10", "gemm_16x16x16_b16_vt1", "gemm_128x128x128_b64_vt2",
                           "gemm_1x1024x1024_b256_vt2", "vadd_4x64", "vadd_16x1024", "vmul_4x64"}) {
    const auto program = vta::read_program(std::string(TENON_SOURCE_DIR "/tests/vta/") + name + ".bin");
    ASSERT_TRUE(program) << program.error().str();
    std::array<uint64_t, 2> cycles{}, beats{};
    for (const int i : {0, 1}) {
      auto simulator =
          i == 0 ? make_systemc(config, {.memory_bytes = kMemory}) : make_behavioral(config, {.memory_bytes = kMemory});
      ASSERT_TRUE(simulator) << simulator.error().str();
      const auto status = vta::run(**simulator, *program);
      ASSERT_TRUE(status) << status.error().str();
      cycles[i] = counter(**simulator, reg::kCycles);
      beats[i] = counter(**simulator, reg::kWriteBeats);
    }
    const double error = 100 * (static_cast<double>(cycles[0]) / static_cast<double>(cycles[1]) - 1);
    fmt::print("{:<28}{:>10} cycles in the model,{:>10} in SystemC, {:+6.2f} %\n", name, cycles[1], cycles[0], error);
    EXPECT_EQ(beats[0], beats[1]) << name;
    sum += std::abs(error), ++programs;
  }
  EXPECT_LT(sum / programs, 10);
}

TEST(Systemc, ASecondDeviceIsRefusedWhileTheFirstIsOpen) {
  const auto config = spec::load_config("tiny").value();
  const auto first = make_systemc(config, {.memory_bytes = kMemory});
  ASSERT_TRUE(first) << first.error().str();
  const auto second = make_systemc(config, {.memory_bytes = kMemory});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().str(), HasSubstr("this process has a systemc: device open already"));
  EXPECT_THAT(second.error().help, HasSubstr("SystemC supports one simulation per process; use another process"));
}

TEST(Systemc, TheSameDeviceOpensAgainAsNewAndAnotherDoesNot) {
  const auto config = spec::load_config("tiny").value();
  {
    const auto first = make_systemc(config, {.memory_bytes = kMemory});
    ASSERT_TRUE(first) << first.error().str();
    (*first)->memory()[100] = std::byte{7};
    (*first)->write_register(reg::kCount, 5);
  }
  {
    const auto again = make_systemc(config, {.memory_bytes = kMemory});
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ((*again)->memory()[100], std::byte{0});
    EXPECT_EQ((*again)->read_register(reg::kCount), 0u);
  }
  const auto other = make_systemc(config, {.memory_bytes = 2 * kMemory});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().what,
              HasSubstr("this process supports only its first systemc: device: configuration tiny"));
}

TEST(Systemc, TheRtlNeedsDmi) {
  const auto device =
      make_systemc(spec::load_config("tiny").value(), {.model = SystemcOptions::Model::kRtl, .dmi = false});
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().str(), HasSubstr("the Verilated RTL requires DMI"));
}

TEST(Systemc, TheProcessorWaitsByInterruptIfSoftwareEnablesIt) {
  const auto simulator = make_systemc(spec::load_config("tiny").value(), {.memory_bytes = kMemory});
  ASSERT_TRUE(simulator) << simulator.error().str();
  Simulator& s = **simulator;
  s.write_register(reg::kGlobalInterruptEnable, 1);
  s.write_register(reg::kInterruptEnable, 1);
  s.write_register(reg::kInstructions, 0x1000);
  for (int i = 0; i < 3; ++i) {  // the acknowledgement lowers the line, else the second wait would not end
    s.write_register(reg::kControl, spec::kApStart);
    EXPECT_FALSE(s.advance(1'000'000));
    EXPECT_EQ(s.read_register(reg::kInterruptStatus), 1u);
    s.write_register(reg::kInterruptStatus, 1);
    EXPECT_EQ(s.read_register(reg::kControl) & spec::kApDone, spec::kApDone);
  }
}

TEST(SystemcUri, AnUnknownModelIsNamed) {
  const auto device = driver::open("systemc:tiny?model=netlist");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().str(), HasSubstr("option model is \"netlist\", must be tlm or rtl"));
}

}  // namespace
}  // namespace tenon::sim
