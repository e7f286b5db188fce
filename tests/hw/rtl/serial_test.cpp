// The real driver on the pins of the RTL: the Verilated board design, whose serial line is a pseudo-terminal, bit by
// bit; with memory on the chip, and with TENON_SDRAM in an SDRAM, whose model checks its commands and their times.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "driver/accelerator.h"
#include "driver/bringup/programs.h"
#include "driver/bringup/replay.h"
#include "tests/driver/serial/emulated_board.h"
#include "tests/hw/rtl/pins.h"
#include "tests/seed.h"
#include "verilated.h"
#ifdef TENON_SDRAM
#include "Vsdram_board.h"
#else
#include "Vserial_top.h"
#endif

double sc_time_stamp() { return 0; }

namespace tenon::driver {
namespace {

namespace reg = spec::reg;

#ifdef TENON_SDRAM
using Top = Vsdram_board;
constexpr uint32_t kMemoryBytes = 1 << 25;
#else
using Top = Vserial_top;
constexpr uint32_t kMemoryBytes = 1 << 16;
#endif
constexpr int kClocksPerBit = 4;  // this and the memory are generate_rtl's

Expected<std::unique_ptr<serial::Line>> make_pins() {
  return std::make_unique<Pins>(std::make_unique<VerilatedBoard<Top>>(), kClocksPerBit);
}

TEST(SerialPins, TheDriverRunsProductsOnTheDesign) {
  const EmulatedBoard board(make_pins);
  auto accelerator = open(board.uri("&timeout=20000"));
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  const spec::Config& config = (*accelerator)->info().config;
  EXPECT_EQ(config.name, "tiny");
  for (const Reproducer& reproducer :
       {gemm(config, spec::Profile::kBase, test_seed(31)), gemm(config, spec::Profile::kNative, test_seed(32)),
        loopback(config, 8, 1, 33), convolution(config, 8, test_seed(34))}) {
    const auto difference = replay(**accelerator, reproducer);
    ASSERT_TRUE(difference) << difference.error().str();
    EXPECT_EQ(*difference, "");
  }
  EXPECT_GT(read_counters(**accelerator).value().cycles, 0u);
}

TEST(SerialPins, MemoryIsKeptFromItsFirstToItsLastByte) {
  const EmulatedBoard board(make_pins);
  auto accelerator = open(board.uri("&timeout=20000"));
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  const Buffer buffer = (*accelerator)->allocate(kMemoryBytes).value();
  std::mt19937_64 random(test_seed(37));
  constexpr uint64_t kBytes = 403;
  std::map<uint64_t, std::vector<std::byte>> written;
  for (const uint64_t offset : {uint64_t{0}, buffer.size / 4 - 101, buffer.size / 2 - 2, buffer.size - kBytes}) {
    std::vector<std::byte>& data = written[offset];
    data.resize(kBytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random());
    const Status done = (*accelerator)->write(buffer, offset, data);
    ASSERT_TRUE(done) << done.error().str();
  }
  for (const auto& [offset, data] : written) {
    std::vector<std::byte> found(data.size());
    ASSERT_TRUE((*accelerator)->read(buffer, offset, found));
    EXPECT_EQ(found, data) << offset;
  }
}

// What follows is of the bridge alone.
#ifndef TENON_SDRAM
TEST(SerialPins, LostFlippedAndDuplicatedBytesAreRepeated) {
  const EmulatedBoard board(make_pins, {.lost = 500, .flipped = 500, .duplicated = 500, .seed = test_seed(34)});
  auto accelerator = open(board.uri("&timeout=2000"));
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  const Buffer buffer = (*accelerator)->allocate(6001).value();
  std::mt19937_64 random(test_seed(35));
  std::vector<std::byte> data(buffer.size), found(buffer.size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  const Status written = (*accelerator)->write(buffer, 0, data);
  ASSERT_TRUE(written) << written.error().str();
  ASSERT_TRUE((*accelerator)->read(buffer, 0, found));
  EXPECT_EQ(found, data);
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE((*accelerator)->write_register(reg::kCount, i * 0x01c0db01));
    ASSERT_EQ((*accelerator)->read_register(reg::kCount).value(), i * 0x01c0db01);
  }
}

// The design and the model of the bridge answer the same bytes, whatever the line carries.
TEST(SerialPins, DamagedFramesHaveTheResultsOfTheModel) {
  Pins pins(std::make_unique<VerilatedBoard<Top>>(), kClocksPerBit);
  auto model = serial::make_bridge(spec::load_config("tiny").value(), kMemoryBytes).value();
  std::mt19937_64 random(test_seed(36));
  serial::Deframer deframers[2];
  for (int i = 0; i < 500; ++i) {
    const auto operation = static_cast<spec::serial::Operation>(random() % 6);
    const bool memory = operation >= spec::serial::Operation::kReadMemory;
    serial::Bytes payload(operation == spec::serial::Operation::kWriteMemory ? 8 : 0);
    for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random());
    uint32_t address = memory ? kMemoryBytes + 4 * static_cast<uint32_t>(random() % 64) : reg::kCount;
    if (random() % 8 == 0) address ^= 1u << random() % 32;
    if (!memory && address != reg::kCount) address = 0xfffffff0;  // the simulators differ in other registers
    if (memory && random() % 2 == 0 && payload.empty()) address = kMemoryBytes;
    serial::Bytes frame = serial::encode(serial::Request{.operation = operation,
                                                         .sequence = static_cast<uint8_t>(random() % 4),
                                                         .address = address,
                                                         .data = memory ? 2 : static_cast<uint32_t>(random()),
                                                         .payload = payload});
    if (random() % 3 == 0) {
      uint8_t& byte = frame[2 + random() % (frame.size() - 3)];
      const auto flipped = static_cast<uint8_t>(byte ^ 1u << random() % 8);
      if (flipped != spec::serial::kEnd) byte = flipped;  // the design drops a second frame while it answers the first
    }
    std::vector<std::vector<serial::Response>> answers;
    serial::Line* const lines[] = {&pins, model.get()};
    for (size_t line = 0; line < 2; ++line) {
      serial::Bytes sent;
      lines[line]->receive(frame, sent);
      answers.emplace_back();
      for (const uint8_t byte : sent) {
        if (const auto contents = deframers[line].push(byte)) {
          answers.back().push_back(serial::decode_response(*contents).value());
        }
      }
    }
    ASSERT_EQ(answers[0].size(), answers[1].size()) << i;
    for (size_t k = 0; k < answers[0].size(); ++k) {
      ASSERT_EQ(answers[0][k].result, answers[1][k].result) << i;
      if (answers[0][k].result != spec::serial::Result::kDone) continue;
      ASSERT_EQ(answers[0][k].sequence, answers[1][k].sequence) << i;
      // A register request that repeats a hello has its identification, in which the model has a bit of its own.
      const auto& data = answers[1][k].data;
      const bool identifies = serial::load_word(data) >> 16 == spec::serial::kMagic;
      if (operation == spec::serial::Operation::kReadRegister && !identifies) {
        ASSERT_EQ(answers[0][k].data, data) << i;
      }
    }
  }
}
#endif

}  // namespace
}  // namespace tenon::driver
