// The Accelerator over a simulator: buffers, registers, and limits in simulated time.
#include "driver/simulated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/driver/scripted_simulator.h"

namespace tenon::driver {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

struct SimulatedTest : testing::Test {
  SimulatedTest() {
    auto owned = std::make_unique<ScriptedSimulator>(spec::load_config("tiny").value(), 1 << 20);
    simulator = owned.get();
    accelerator = make_simulated("scripted:tiny", std::move(owned), false);
  }
  ScriptedSimulator* simulator;
  std::unique_ptr<Accelerator> accelerator;
};

TEST_F(SimulatedTest, BuffersKeepTheirContents) {
  const Buffer a = accelerator->allocate(100).value(), b = accelerator->allocate(100).value();
  const std::vector<std::byte> ones(100, std::byte{1}), twos(50, std::byte{2});
  ASSERT_TRUE(accelerator->write(a, 0, ones));
  ASSERT_TRUE(accelerator->write(b, 50, twos));
  std::vector<std::byte> back(100);
  ASSERT_TRUE(accelerator->read(a, 0, back));
  EXPECT_EQ(back, ones);
  EXPECT_EQ(a.address % 64, 0u);
}

TEST_F(SimulatedTest, AccessBeyondABufferIsAnError) {
  const Buffer a = accelerator->allocate(100).value();
  std::vector<std::byte> data(10);
  EXPECT_TRUE(accelerator->write(a, 90, data));
  const auto status = accelerator->write(a, 91, data);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(),
              HasSubstr("scripted:tiny: error: write of bytes [91, 101) of a buffer of 100 bytes"));
  EXPECT_FALSE(accelerator->read(a, UINT64_MAX, data));
}

TEST_F(SimulatedTest, AFreedBufferCannotBeUsed) {
  const Buffer a = accelerator->allocate(100).value();
  accelerator->free(a);
  std::vector<std::byte> data(10);
  const auto status = accelerator->read(a, 0, data);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("read of a buffer that is not alive"));
}

TEST_F(SimulatedTest, ASecondFreeEndsTheProgramWithAMessage) {
  const Buffer a = accelerator->allocate(100).value();
  accelerator->free(a);
  EXPECT_DEATH(accelerator->free(a), "freed twice, or never allocated");
}

TEST_F(SimulatedTest, RegistersOutsideTheMapAreErrors) {
  EXPECT_FALSE(accelerator->read_register(0x1000));
  const auto status = accelerator->write_register(0x11, 0);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("register offset 0x11 must be a multiple of 4 below 0x1000"));
}

TEST_F(SimulatedTest, TheLimitCountsSimulatedTime) {
  simulator->cycles = 1000;
  ASSERT_TRUE(accelerator->write_register(spec::reg::kControl, spec::kApStart));
  EXPECT_FALSE(accelerator->wait_idle(9us).value());
  EXPECT_EQ(simulator->advanced, 900u);
  EXPECT_TRUE(accelerator->wait_idle(1us).value());
}

TEST_F(SimulatedTest, NoTimePassesInALimitOfZero) {
  simulator->cycles = 1;
  EXPECT_TRUE(accelerator->wait_idle(0s).value());
  ASSERT_TRUE(accelerator->write_register(spec::reg::kControl, spec::kApStart));
  EXPECT_FALSE(accelerator->wait_idle(0s).value());
  EXPECT_FALSE(accelerator->wait_idle(-1s).value());
  EXPECT_EQ(simulator->advanced, 0u);
}

}  // namespace
}  // namespace tenon::driver
