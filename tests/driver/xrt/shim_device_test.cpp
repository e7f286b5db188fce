// The emulated device from several threads at once, as XRT's own threads use it, under the sanitizers: XRT itself
// cannot be built with them.
#include "driver/xrt/shim/device.h"

#include <ert.h>
#include <gtest/gtest.h>
#include <xrt.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "hw/spec/arguments.h"
#include "hw/spec/registers.h"

namespace tenon::driver::shim {
namespace {

namespace reg = spec::reg;

constexpr uint32_t kBytes = 160;  // 40 elements of four lanes

struct ShimDevice : testing::Test {
  ShimDevice() : device(Device::Model::kBehavioral) { EXPECT_TRUE(device.load(file(2))); }

  static std::vector<std::byte> file(int units) {
    Xclbin xclbin =
        make_xclbin(spec::load_config("tiny").value(), {.units = units, .memory_bytes = 1 << 20, .bitstream = {}});
    return to_bytes(xclbin);
  }
  // LOAD of 40 accumulators from bytes with a token to the store, STORE of them, FINISH: a copy.
  static std::vector<uint64_t> copy_program() {
    const uint64_t size = 1ull | 40ull << 16 | 40ull << 32;
    return {0ull | 1ull << 6 | 5ull << 7, size, 1ull | 1ull << 3 | 4ull << 7, size, 3ull, 0ull};
  }
  uint32_t buffer() { return device.allocate(nullptr, 4096, 0); }
  uint64_t address(uint32_t handle) { return device.properties(handle)->address; }

  // A packet that starts the program on the units of the mask.
  uint32_t start(uint32_t code, uint32_t source, uint32_t target, uint32_t mask) {
    const uint32_t handle = device.allocate(nullptr, 4096, XCL_BO_FLAGS_EXECBUF);
    auto& packet = *static_cast<ert_start_kernel_cmd*>(device.map(handle));
    packet.opcode = ERT_START_CU;
    packet.cu_mask = mask;
    packet.count = 1 + (reg::kBase0 + 8 * spec::kBases) / 4;
    const auto put = [&](uint32_t offset, uint64_t value) { std::memcpy(packet.data + offset / 4, &value, 8); };
    put(reg::kInstructions, address(code));
    put(reg::kCount, 3);  // and mode 0
    for (uint32_t i = 0; i < spec::kBases; ++i) {
      put(reg::kBase0 + 8 * i, address(i == spec::kBaseOut ? target : source));
    }
    EXPECT_EQ(device.execute(handle), 0);
    return handle;
  }
  uint32_t finish(uint32_t handle) {
    auto& packet = *static_cast<ert_packet*>(device.map(handle));
    uint64_t seen = 0;
    while (true) {
      const uint32_t state = std::atomic_ref(packet.header).load(std::memory_order_acquire) & 0xf;
      if (state == ERT_CMD_STATE_COMPLETED || state == ERT_CMD_STATE_ERROR) return state;
      device.wait(10, seen);
    }
  }

  Device device;
};

TEST_F(ShimDevice, ThreadsLaunchCopyAndAllocateAtOnce) {
  const auto client = [this](int seed) {
    for (int round = 0; round < 20; ++round) {
      const uint32_t code = buffer(), source = buffer(), target = buffer(), copied = buffer();
      const auto program = copy_program();
      std::memcpy(device.map(code), program.data(), program.size() * 8);
      auto* bytes = static_cast<uint8_t*>(device.map(source));
      for (uint32_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<uint8_t>(seed * 31 + round + 7 * i);
      EXPECT_EQ(device.sync(code, true, 4096, 0), 0);
      EXPECT_EQ(device.sync(source, true, 4096, 0), 0);
      const uint32_t packet = start(code, source, target, 3);
      EXPECT_EQ(finish(packet), uint32_t{ERT_CMD_STATE_COMPLETED});
      EXPECT_EQ(device.copy(copied, target, kBytes, 0, 0), 0);
      EXPECT_EQ(device.sync(copied, false, 4096, 0), 0);
      EXPECT_EQ(std::memcmp(device.map(copied), device.map(source), kBytes), 0) << seed << " " << round;
      for (const uint32_t handle : {code, source, target, copied, packet}) device.free(handle);
    }
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(client, i);
  for (auto& thread : clients) thread.join();
}

TEST_F(ShimDevice, RegistersInterruptsAndClientsFromSeveralThreads) {
  ASSERT_EQ(device.open_context(0, false), 0);
  EXPECT_EQ(device.open_context(0, false), -EBUSY);
  ASSERT_EQ(device.write_register(0, reg::kInterruptEnable, 1), 0);
  ASSERT_EQ(device.write_register(0, reg::kGlobalInterruptEnable, 1), 0);
  EXPECT_FALSE(device.wait_interrupt(0, std::chrono::milliseconds(1)));
  std::atomic<int> seen = 0;
  std::thread waiting([&] {
    for (int i = 0; i < 20; ++i) {
      if (!device.wait_interrupt(0, {})) return;
      ++seen;
      uint32_t pending = 0;
      EXPECT_EQ(device.read_register(0, reg::kInterruptStatus, pending), 0);
      EXPECT_EQ(device.write_register(0, reg::kInterruptStatus, pending), 0);
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(device.write_register(0, reg::kCount, 0), 0);
    EXPECT_EQ(device.write_register(0, reg::kControl, spec::kApStart), 0);
    while (seen == i) std::this_thread::yield();
  }
  waiting.join();
  EXPECT_EQ(device.close_context(0), 0);
}

TEST_F(ShimDevice, ClosingWhileClientsWaitEndsTheWait) {
  std::thread waiting([&] { EXPECT_FALSE(device.wait_interrupt(1, std::chrono::milliseconds(50))); });
  waiting.join();
  EXPECT_TRUE(device.load(file(1)));  // another design, without the units and buffers of the first
  EXPECT_EQ(device.open_context(1, false), -EINVAL);
  EXPECT_FALSE(device.properties(1));
}

TEST_F(ShimDevice, InvalidArgumentsAreErrors) {
  const uint32_t a = buffer();
  EXPECT_EQ(device.sync(a, true, 4097, 0), -EINVAL);
  EXPECT_EQ(device.sync(a, true, UINT64_MAX, 1), -EINVAL);
  EXPECT_EQ(device.copy(a, 999, 1, 0, 0), -EINVAL);
  EXPECT_EQ(device.execute(999), -EINVAL);
  EXPECT_EQ(device.allocate(nullptr, 1 << 21, 0), Device::kNoBuffer);
  EXPECT_EQ(device.allocate(nullptr, SIZE_MAX, 0), Device::kNoBuffer);
  EXPECT_EQ(device.allocate(nullptr, 4096, 7), Device::kNoBuffer);  // memory 7 does not exist
  uint32_t value = 0;
  EXPECT_EQ(device.read_register(9, 0, value), -EINVAL);
  char byte = 0;
  EXPECT_EQ(device.access(1 << 20, &byte, 1, true), -EINVAL);
  auto cut = file(1);
  cut.resize(100);
  EXPECT_FALSE(device.load(cut));
}

}  // namespace
}  // namespace tenon::driver::shim
