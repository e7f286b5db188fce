// Frames and the model of the bridge: what a damaged or malicious line can cause.
#include "driver/serial/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "driver/serial/bridge.h"
#include "driver/serial/emulator.h"
#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "tests/seed.h"

namespace tenon::driver::serial {
namespace {

namespace wire = spec::serial;
using wire::Operation;
using wire::Result;

std::vector<Bytes> frames_of(std::span<const uint8_t> bytes, Deframer& deframer) {
  std::vector<Bytes> frames;
  for (const uint8_t byte : bytes) {
    if (auto frame = deframer.push(byte)) frames.push_back(std::move(*frame));
  }
  return frames;
}

struct BridgeTest : testing::Test {
  BridgeTest() {
    sim::BehavioralOptions options;
    options.memory_bytes = wire::memory_end(kMemory);
    auto simulator = sim::make_behavioral(spec::load_config("tiny").value(), options).value();
    memory = simulator->memory();
    bridge = std::make_unique<Bridge>(std::move(simulator), kMemory);
  }

  std::vector<Response> send(std::span<const uint8_t> bytes) {
    Bytes sent;
    bridge->receive(bytes, sent);
    std::vector<Response> responses;
    for (const Bytes& frame : frames_of(sent, deframer)) responses.push_back(decode_response(frame).value());
    return responses;
  }
  Response ask(const Request& request) {
    const auto responses = send(encode(request));
    EXPECT_EQ(responses.size(), 1u);
    return responses.empty() ? Response{} : responses[0];
  }

  static constexpr uint64_t kMemory = 8192;
  static constexpr uint32_t kBase = wire::memory_base(kMemory);
  std::span<std::byte> memory;
  std::unique_ptr<Bridge> bridge;
  Deframer deframer;
};

TEST(Frame, EveryByteSurvivesTheFraming) {
  Bytes all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
  Deframer deframer;
  const Bytes encoded = encode(Response{.sequence = wire::kEnd, .result = Result::kDone, .data = all});
  const auto frames = frames_of(encoded, deframer);
  ASSERT_EQ(frames.size(), 1u);
  const auto response = decode_response(frames[0]);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->sequence, wire::kEnd);
  EXPECT_EQ(response->data, all);
}

TEST(Frame, TheResidueIsThatOfTheCrcRegister) {
  Bytes bytes = {1, 2, 3, 4, 5};
  append_word(bytes, crc(bytes));
  EXPECT_EQ(~crc(bytes), wire::kCrcResidue);
}

TEST(Frame, ALongRunWithoutEndIsDamagedAndTheNextFrameIsRead) {
  Deframer deframer;
  EXPECT_TRUE(frames_of(Bytes(10 * Deframer::kMaxFrame, 7), deframer).empty());
  const Bytes good = encode(Response{.sequence = 3, .result = Result::kDone, .data = Bytes(4)});
  const auto frames = frames_of(good, deframer);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_TRUE(frames[0].empty());
  EXPECT_TRUE(decode_response(frames[1]));
}

TEST_F(BridgeTest, ARegisterRequestIsExecutedOnceHoweverOftenItArrives) {
  ask({.operation = Operation::kHello, .sequence = 9});
  const Request write{
      .operation = Operation::kWriteRegister, .sequence = 10, .address = spec::reg::kCount, .data = 0x12345678};
  EXPECT_EQ(ask(write).result, Result::kDone);
  Request other = write;
  other.data = 1;  // the same number: a repetition, whatever it says
  EXPECT_EQ(ask(other).result, Result::kDone);
  const Request read{.operation = Operation::kReadRegister, .sequence = 11, .address = spec::reg::kCount};
  EXPECT_EQ(load_word(ask(read).data), 0x12345678u);
  EXPECT_EQ(load_word(ask(read).data), 0x12345678u);
  EXPECT_EQ(bridge->executed(), 3u);
}

TEST_F(BridgeTest, RequestsOutsideTheDeviceAreRefused) {
  const uint32_t end = wire::memory_end(kMemory);
  const auto result = [&](Operation operation, uint32_t address, uint32_t words) {
    return ask({.operation = operation, .sequence = 1, .address = address, .data = words}).result;
  };
  EXPECT_EQ(result(Operation::kReadRegister, spec::kRegisterSpaceBytes, 0), Result::kRange);
  EXPECT_EQ(result(Operation::kWriteRegister, 2, 0), Result::kRange);
  EXPECT_EQ(result(Operation::kReadMemory, kBase, 0), Result::kRange);
  EXPECT_EQ(result(Operation::kReadMemory, kBase, wire::kMaxWords + 1), Result::kRange);
  EXPECT_EQ(result(Operation::kReadMemory, kBase - 4, 1), Result::kRange);
  EXPECT_EQ(result(Operation::kReadMemory, end - 4, 2), Result::kRange);
  EXPECT_EQ(result(Operation::kReadMemory, end - 4, 1), Result::kDone);
  EXPECT_EQ(result(static_cast<Operation>(wire::kOperations), 0, 0), Result::kUnsupported);
}

// 10^5 damaged frames: each has an error, none is executed, and a good frame after each is answered.
TEST_F(BridgeTest, DamagedFramesAreNeverExecutedAndTheLineGoesOn) {
  std::mt19937_64 random(test_seed(20));
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  Bytes payload(16 * wire::kWordBytes);
  const auto before = std::vector<std::byte>(memory.begin(), memory.end());
  for (int i = 0; i < 100'000; ++i) {
    for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random());
    const bool writes = random() % 4 == 0;
    Bytes frame = encode({.operation = writes ? Operation::kWriteMemory : Operation::kWriteRegister,
                          .sequence = static_cast<uint8_t>(random()),
                          .address = writes ? kBase : spec::reg::kCount,
                          .data = writes ? 16 : static_cast<uint32_t>(random()),
                          .payload = writes ? std::span<const uint8_t>(payload) : std::span<const uint8_t>()});
    // The framing bytes stay: a lost one joins two frames, which EmulatedSerialTest has.
    const size_t at = 2 + below(frame.size() - 3);
    const auto position = frame.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 4) {
      case 0: *position ^= static_cast<uint8_t>(1u << below(8)); break;
      case 1: frame.erase(position); break;
      case 2: frame.insert(position, static_cast<uint8_t>(random())); break;
      case 3:
        frame.resize(1 + below(64));
        for (uint8_t& byte : frame) byte = static_cast<uint8_t>(random());
        frame.push_back(wire::kEnd);
        break;
    }
    const uint64_t executed = bridge->executed();
    for (const Response& response : send(frame)) ASSERT_NE(response.result, Result::kDone) << i;
    ASSERT_EQ(bridge->executed(), executed) << i;
    const auto sequence = static_cast<uint8_t>(random());
    const Response hello = ask({.operation = Operation::kHello, .sequence = sequence});
    ASSERT_EQ(hello.sequence, sequence) << i;
    ASSERT_EQ(load_word(hello.data) >> 16, wire::kMagic) << i;
  }
  EXPECT_TRUE(std::ranges::equal(memory, before));
}

}  // namespace
}  // namespace tenon::driver::serial
