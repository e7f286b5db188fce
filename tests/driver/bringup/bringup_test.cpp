// Reproducers: written, read, damaged; the self-test on every configuration; the recorder and the debugger.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "driver/bringup/debugger.h"
#include "driver/bringup/programs.h"
#include "driver/bringup/recorder.h"
#include "driver/bringup/replay.h"
#include "driver/bringup/selftest.h"
#include "tests/seed.h"

namespace tenon::driver {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Bringup : testing::Test {
  Bringup() {
    std::string name = (fs::temp_directory_path() / "tenon-XXXXXX").string();
    scratch = mkdtemp(name.data());
    setenv("TENON_DRIVER_PATH", FAULTY_DRIVERS, 1);
  }
  ~Bringup() override { fs::remove_all(scratch); }

  static Reproducer a_reproducer() {
    Reproducer reproducer = gemm(spec::load_config("tiny").value(), spec::Profile::kNative, 7);
    reproducer.version = "test";
    reproducer.device = "behavioral:tiny";
    reproducer.reported = "a \"reason\"\n with lines";
    return reproducer;
  }
  fs::path scratch;
};

TEST_F(Bringup, ASavedReproducerLoadsUnchanged) {
  const Reproducer reproducer = a_reproducer();
  ASSERT_TRUE(save_reproducer(reproducer, scratch / "b"));
  const auto read = load_reproducer(scratch / "b");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->config, reproducer.config);
  EXPECT_EQ(read->memory, reproducer.memory);
  EXPECT_EQ(read->expected, reproducer.expected);
  EXPECT_EQ(read->reported, reproducer.reported);
  EXPECT_EQ(read->seed, 7u);
  ASSERT_EQ(read->launches.size(), 1u);
  EXPECT_EQ(read->launches[0].bases, reproducer.launches[0].bases);
}

// A reproducer with arbitrary damage is an error with a message, or runs.
TEST_F(Bringup, DamagedReproducersAreErrorsOrRun) {
  ASSERT_TRUE(save_reproducer(a_reproducer(), scratch / "b"));
  std::ifstream stream(scratch / "b" / "reproducer.json");
  const std::string good((std::istreambuf_iterator<char>(stream)), {});
  std::mt19937_64 random(test_seed(1));
  int refused = 0;
  auto device = open("behavioral:tiny?memory=1M").value();
  for (int i = 0; i < 800; ++i) {
    std::string text = good;
    const size_t at = random() % text.size();
    switch (random() % 4) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text.erase(at, random() % 20); break;
      case 2: text.insert(at, std::to_string(random())); break;
      default: text[at] = "0123456789-[]{}\""[random() % 16]; break;
    }
    std::ofstream(scratch / "b" / "reproducer.json") << text;
    auto read = load_reproducer(scratch / "b");
    if (!read) {
      ++refused;
      EXPECT_FALSE(read.error().what.empty());
    } else if (read->memory_bytes <= 1 << 20) {
      read->limit = std::chrono::milliseconds(1);
      (void)replay(*device, *read);
    }
  }
  EXPECT_GT(refused, 300);
}

TEST_F(Bringup, TheSelftestPassesOnEveryConfiguration) {
  for (const std::string& name : spec::named_configs()) {
    auto device = open("behavioral:" + name);
    ASSERT_TRUE(device) << device.error().str();
    for (uint64_t seed = 1; seed < 4; ++seed) {
      for (const Check& check : selftest(**device, {.memory_bytes = 1 << 16, .seed = seed})) {
        EXPECT_TRUE(check.passed) << name << ": " << check.name << ": " << check.failure;
        EXPECT_FALSE(check.figure.empty()) << check.name;
      }
    }
  }
}

// A launch that was recorded on one device replays on another, at other addresses.
TEST_F(Bringup, ARecordedLaunchReplays) {
  auto device = open("behavioral:tiny?memory=1M").value();
  Recorder recorder(*device);
  for (const Check& check : selftest(recorder, {.memory_bytes = 1 << 12, .seed = 5})) EXPECT_TRUE(check.passed);
  ASSERT_TRUE(recorder.reproducer());
  EXPECT_GT(recorder.launches(), 3u);
  Reproducer reproducer = *recorder.reproducer();
  auto other = open("behavioral:tiny?memory=1M").value();
  const auto found = replay(*other, reproducer);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(*found, "");
  reproducer.expected.push_back({"nothing", reproducer.launches[0].bases[3], std::vector<std::byte>(16)});
  const auto wrong = replay(*other, reproducer);
  ASSERT_TRUE(wrong);
  EXPECT_THAT(*wrong, HasSubstr("nothing: byte"));
}

// The launches of two devices are counted together, and the last one is that of the device which had it.
TEST_F(Bringup, RecordersOfTwoDevicesKeepTheLastLaunchOfAll) {
  auto tiny = open("behavioral:tiny?memory=1M").value();
  auto other = open("behavioral:default?memory=1M").value();
  const std::array<Accelerator*, 2> devices{tiny.get(), other.get()};
  const auto launch = [](Accelerator& on) {
    const Buffer stream = on.allocate(64, 64).value();
    EXPECT_TRUE(start(on, {.profile = spec::Profile::kNative, .instructions = stream.address, .count = 1}));
    EXPECT_TRUE(on.wait_idle(std::chrono::seconds(1)));
  };
  Recorders recorders(devices);
  EXPECT_EQ(recorders.recorder(), nullptr);
  for (const size_t device : {0, 1, 0}) launch(*recorders.accelerators()[device]);
  EXPECT_EQ(recorders.launches(), 3u);
  EXPECT_EQ(recorders.recorder()->reproducer()->config.name, "tiny");
  launch(*recorders.accelerators()[1]);
  EXPECT_EQ(recorders.recorder()->reproducer()->config.name, "default");
  Recorders second(devices, 1);
  for (const size_t device : {0, 1, 0}) launch(*second.accelerators()[device]);
  EXPECT_EQ(second.recorder()->reproducer()->config.name, "default");
  EXPECT_EQ(second.recorder()->recorded(), 1u);
}

// A board with its memory at 256 GiB, which ignores launches.
class HighMemory final : public Accelerator {
 public:
  static constexpr uint64_t kBase = uint64_t{256} << 30;
  explicit HighMemory(Accelerator& inner) : inner_(inner) {}
  const Info& info() const override { return inner_.info(); }
  Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment) override {
    auto buffer = inner_.allocate(bytes, alignment);
    if (buffer) buffer->address += kBase;
    return buffer;
  }
  void free(const Buffer& buffer) override { inner_.free(low(buffer)); }
  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    return inner_.write(low(buffer), offset, data);
  }
  Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    return inner_.read(low(buffer), offset, data);
  }
  Expected<uint32_t> read_register(uint32_t offset) override { return inner_.read_register(offset); }
  Status write_register(uint32_t, uint32_t) override { return {}; }
  Expected<bool> wait_idle(std::chrono::nanoseconds) override { return true; }

 private:
  static Buffer low(Buffer buffer) { return {buffer.address - kBase, buffer.size}; }
  Accelerator& inner_;
};

// The reproducer of a board with memory at any address must fit into a simulator's memory.
TEST_F(Bringup, ARecordedReproducerHasLowAddressesAndTheLimitOfItsWait) {
  auto device = open("behavioral:tiny?memory=1M").value();
  HighMemory board(*device);
  Recorder recorder(board);
  const Buffer stream = recorder.allocate(64, 64).value(), data = recorder.allocate(4096, 4096).value();
  ASSERT_GE(stream.address, HighMemory::kBase);
  Launch launch{.profile = spec::Profile::kNative, .instructions = stream.address, .count = 2};
  launch.bases = {data.address, data.address + 100, data.address + 4096, 0, 7};  // three of them in no buffer
  ASSERT_TRUE(start(recorder, launch));
  ASSERT_TRUE(recorder.wait_idle(std::chrono::milliseconds(3)));
  ASSERT_TRUE(recorder.wait_idle(std::chrono::milliseconds(5)));  // of a reset
  const Reproducer& reproducer = *recorder.reproducer();
  const uint64_t low = stream.address - reproducer.launches[0].instructions;
  EXPECT_EQ(reproducer.launches[0].instructions, 4096u);
  const std::array<uint64_t, spec::kBases> bases = {data.address - low, data.address + 100 - low, data.address + 4096,
                                                    0, 7};
  EXPECT_EQ(reproducer.launches[0].bases, bases);
  EXPECT_EQ(reproducer.memory_bytes, data.address - low + 4096);
  EXPECT_EQ(reproducer.limit, std::chrono::milliseconds(3));
}

TEST_F(Bringup, ADeviceThatCannotRunTheReproducerIsAnError) {
  auto device = open("behavioral:default").value();
  const auto other = replay(*device, a_reproducer());
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().what, HasSubstr("the reproducer is for configuration tiny, the device has default"));
  auto small = open("behavioral:tiny?memory=8K").value();
  Reproducer large = a_reproducer();
  large.memory_bytes = 16 << 10;
  const auto found = replay(*small, large);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().what, HasSubstr("bytes of memory, the reproducer requires"));
}

TEST_F(Bringup, AFaultIsDetectedAndItsReproducerReproducesIt) {
  auto device = open("faulty:tiny?fault=mac");
  ASSERT_TRUE(device) << device.error().str();
  int failed = 0;
  for (const Check& check : selftest(**device)) {
    if (check.passed) continue;
    ++failed;
    ASSERT_TRUE(check.reproducer) << check.name;
    const auto again = replay(**open("faulty:tiny?fault=mac"), *check.reproducer);
    ASSERT_TRUE(again);
    EXPECT_THAT(*again, HasSubstr("gemm: byte 5"));
    EXPECT_EQ(*replay(**open("behavioral:tiny"), *check.reproducer), "");
  }
  EXPECT_EQ(failed, 2);
}

TEST_F(Bringup, TheDebuggerAnswersAnyLine) {
  auto device = open("behavioral:tiny").value();
  auto machine = Machine::create(*device, a_reproducer());
  ASSERT_TRUE(machine) << machine.error().str();
  Debugger debugger(**machine);
  std::mt19937_64 random(test_seed(2));
  constexpr std::string_view kWords[] = {
      "step",  "continue", "break", "watch",  "print", "list",   "queues",  "tokens",
      "acc",   "dram",     "uop",   "par",    "0",     "3",      "-1",      "0xffffffffffffffff",
      "ldi",   "ldi->st",  "->",    "delete", "1",     "cycles", "restart", "counters",
      "99999", "info",     "where", ""};
  for (int i = 0; i < 2000; ++i) {
    std::string line;
    for (uint64_t n = random() % 5; n > 0; --n) line += std::string(kWords[random() % std::size(kWords)]) + " ";
    const auto answer = debugger.run(line);
    EXPECT_TRUE(answer || !answer.error().what.empty());
  }
}

}  // namespace
}  // namespace tenon::driver
