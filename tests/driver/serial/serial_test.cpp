// The transport serial: beyond the conformance suite: lines with faults, dead and foreign devices, and small memories.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "driver/accelerator.h"
#include "driver/bringup/programs.h"
#include "driver/bringup/replay.h"
#include "driver/serial/link.h"
#include "support/clock.h"
#include "support/random.h"
#include "tests/driver/serial/emulated_board.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::driver {
namespace {

namespace reg = spec::reg;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

std::string serial_fault(const std::string& uri) {
  const auto opened = open(uri);
  return opened ? "opened" : opened.error().str();
}

// A device that answers each byte in a way of its own.
class Foreign final : public serial::Line {
 public:
  explicit Foreign(std::string answer) : answer_(std::move(answer)) {}
  void receive(std::span<const uint8_t>, serial::Bytes& sent) override {
    sent.insert(sent.end(), answer_.begin(), answer_.end());
  }

 private:
  std::string answer_;
};

auto foreign(std::string answer) {
  return [=]() -> Expected<std::unique_ptr<serial::Line>> { return std::make_unique<Foreign>(answer); };
}

// The responses of all sequence numbers, of which one fits.
std::string identifications(uint32_t word) {
  std::string answers;
  for (int sequence = 0; sequence < 256; ++sequence) {
    serial::Response response{
        .sequence = static_cast<uint8_t>(sequence), .result = spec::serial::Result::kDone, .data = {}};
    serial::append_word(response.data, word);
    const serial::Bytes frame = serial::encode(response);
    answers.append(frame.begin(), frame.end());
  }
  return answers;
}

std::vector<std::byte> random_bytes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Serial, ALineThatLosesFlipsAndDuplicatesBytesGivesEveryRegisterAndEveryByte) {
  const EmulatedBoard board(bridge_of("tiny", 1 << 16),
                            {.lost = 1000, .flipped = 1000, .duplicated = 1000, .seed = test_seed(20)});
  auto accelerator = open(board.uri("&timeout=50"));
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  const auto data = random_bytes(20'001, 7);
  const Buffer buffer = (*accelerator)->allocate(data.size()).value();
  const Status written = (*accelerator)->write(buffer, 0, data);
  ASSERT_TRUE(written) << written.error().str();
  std::vector<std::byte> found(data.size());
  const Status read = (*accelerator)->read(buffer, 0, found);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(found, data);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE((*accelerator)->write_register(reg::kCount, i * 0x01c0db01));
    ASSERT_EQ((*accelerator)->read_register(reg::kCount).value(), i * 0x01c0db01);
  }
}

TEST(Serial, ADeadLineIsAnErrorWithTheBaudRate) {
  const EmulatedBoard board(foreign(""));
  EXPECT_THAT(serial_fault(board.uri("&timeout=5")),
              AllOf(HasSubstr("the device does not answer: 12 attempts of 0.005 s each at 1000000 baud, no byte has"),
                    HasSubstr("help: check the cable and that the board has a bitstream of Tenon")));
}

TEST(Serial, AForeignDeviceIsShownByItsBytes) {
  const EmulatedBoard board(foreign("login: "));
  EXPECT_THAT(serial_fault(board.uri("&timeout=5")),
              ContainsRegex("the device speaks something else: [0-9]+ bytes have arrived at 1000000 baud, no frame of "
                            "Tenon; the last ones are .*6c 6f 67 69 6e 3a 20"));
}

TEST(Serial, AnEchoIsNotTakenForAnAnswer) {
  class Echo final : public serial::Line {
    void receive(std::span<const uint8_t> bytes, serial::Bytes& sent) override {
      sent.insert(sent.end(), bytes.begin(), bytes.end());
    }
  };
  const EmulatedBoard board([]() -> Expected<std::unique_ptr<serial::Line>> { return std::make_unique<Echo>(); });
  EXPECT_THAT(serial_fault(board.uri("&timeout=5")), HasSubstr("the device does"));
}

TEST(Serial, ABridgeOfAnotherVersionIsRefused) {
  // The responses of 256 sequence numbers, of which one fits.
  const EmulatedBoard board(foreign(identifications(0x544e020d)));
  EXPECT_THAT(serial_fault(board.uri()), HasSubstr("the device's bridge is not supported: it identifies itself as "
                                                   "0x544e020d, must be 0x544e in the upper half and version 1"));
}

TEST(Serial, AMemoryOfAnImpossibleSizeIsRefused) {
  const EmulatedBoard board(foreign(identifications(0x544e0105)));
  EXPECT_THAT(serial_fault(board.uri()),
              HasSubstr("the device reports a memory of 2^5 bytes, must be 4096 to 1073741824 bytes"));
}

TEST(Serial, ABoardThatIsUnpluggedIsAnErrorAtOnce) {
  EmulatedBoard board(bridge_of("tiny", 1 << 16));
  auto accelerator = open(board.uri());
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  board.kill();
  const auto read = (*accelerator)->read_register(reg::kStatus);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().what, ContainsRegex("the serial port /dev/pts/[0-9]+ is gone: "));
}

TEST(Serial, ABoardKilledAtARandomMomentIsAnErrorAndTheNextRunIsRight) {
  const Reproducer reproducer = gemm(spec::load_config("tiny").value(), spec::Profile::kNative, test_seed(22));
  Random random(test_seed(23));
  for (int64_t i = 0; i < rounds(100); ++i) {
    EmulatedBoard board(bridge_of("tiny", 1 << 16));
    const auto accelerator = open(board.uri("&timeout=500"));
    ASSERT_TRUE(accelerator) << accelerator.error().str();
    const auto right = replay(**accelerator, reproducer);
    ASSERT_TRUE(right) << right.error().str();
    EXPECT_EQ(*right, "");

    const Stopwatch stopwatch;
    std::thread killer([&, delay = std::chrono::microseconds(random.between(0, 30'000))] {
      std::this_thread::sleep_for(delay);
      board.kill();
    });
    auto last = replay(**accelerator, reproducer);
    while (last && last->empty()) last = replay(**accelerator, reproducer);
    killer.join();
    // The failure of a launch is what replay() has found, all others are its own.
    const std::string said = last ? *last : last.error().str();
    ASSERT_THAT(said, ContainsRegex("the serial port /dev/pts/[0-9]+ is gone: ")) << "round " << i;
    EXPECT_LT(stopwatch.seconds(), 10) << "round " << i;
  }
}

TEST(Serial, ABufferThatDoesNotFitIsRefusedWithBothByteCounts) {
  const EmulatedBoard board(bridge_of("tiny", 8192));
  auto accelerator = open(board.uri());
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  EXPECT_TRUE((*accelerator)->allocate(8192));
  const auto refused = (*accelerator)->allocate(8200);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(),
              AllOf(HasSubstr("no room for 8200 bytes"), HasSubstr("8192 of 8192 bytes are in use"),
                    HasSubstr("the board's memory is 8192 bytes: use a smaller model")));
}

TEST(Serial, UnalignedBytesKeepTheirNeighbours) {
  const EmulatedBoard board(bridge_of("tiny", 8192));
  auto accelerator = open(board.uri());
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  const Buffer buffer = (*accelerator)->allocate(64, 4).value();
  for (size_t begin = 0; begin < 5; ++begin) {
    for (size_t size = 1; size < 10; ++size) {
      auto wanted = random_bytes(64, begin * 16 + size);
      ASSERT_TRUE((*accelerator)->write(buffer, 0, wanted));
      const auto part = random_bytes(size, 99);
      ASSERT_TRUE((*accelerator)->write(buffer, begin, part));
      std::ranges::copy(part, wanted.begin() + static_cast<std::ptrdiff_t>(begin));
      std::vector<std::byte> found(64), some(size);
      ASSERT_TRUE((*accelerator)->read(buffer, 0, found));
      ASSERT_EQ(found, wanted) << begin << ' ' << size;
      ASSERT_TRUE((*accelerator)->read(buffer, begin, some));
      ASSERT_EQ(some, part);
    }
  }
}

TEST(Serial, WrongUrisAreErrors) {
  EXPECT_THAT(serial_fault("serial:"), HasSubstr("the URI names no serial port"));
  EXPECT_THAT(serial_fault("serial:/nowhere/tty"),
              HasSubstr("cannot open the serial port /nowhere/tty: No such file or directory"));
  EXPECT_THAT(serial_fault("serial:/dev/null"), HasSubstr("/dev/null is not a serial port: "));
  EXPECT_THAT(serial_fault("serial:/dev/ttyX?baud=1"), HasSubstr("baud"));
}

TEST(Serial, AConfigurationThatNoNameHasMustBeNamed) {
  const EmulatedBoard board([]() -> Expected<std::unique_ptr<serial::Line>> {
    auto config = spec::load_config("tiny").value();
    config.queue_depth *= 2;
    return serial::make_bridge(config, 8192);
  });
  EXPECT_THAT(serial_fault(board.uri()), ContainsRegex("no named configuration has the device's hash [0-9a-f]{16}"));
}

}  // namespace
}  // namespace tenon::driver
