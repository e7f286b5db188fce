// The transport uio: beyond the conformance suite: the board's files, the bitstream, the mapped window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "driver/accelerator.h"
#include "driver/uio/files.h"
#include "support/try.h"
#include "tests/driver/uio/emulated_zynq.h"

namespace tenon::driver {
namespace {

namespace fs = std::filesystem;
namespace reg = spec::reg;
using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::AllOf;
using testing::HasSubstr;

void put(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

std::string get(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string fault(std::string_view uri) {
  const auto opened = open(uri);
  return opened ? "opened" : opened.error().str();
}

uio::EmulatorOptions tiny() {
  return {.root = {}, .config = spec::load_config("tiny").value(), .memory_bytes = 1 << 20};
}

// A board of plain files, as the kernel provides them, with a mapped window and without an interrupt.
struct MappedBoard {
  static constexpr uint32_t kOffset = 0x800;  // of the registers in their page

  MappedBoard() {
    const fs::path& root = scratch.path();
    put(root / "sys/class/uio/uio3/name", "tenon\n");
    put(root / "sys/class/uio/uio3/maps/map0/size", "0x00001000\n");
    put(root / "sys/class/uio/uio3/maps/map0/offset", "0x800\n");
    put(root / "sys/class/u-dma-buf/udmabuf0/phys_addr", "0x30000000\n");
    put(root / "sys/class/u-dma-buf/udmabuf0/size", "65536\n");
    put(root / "sys/class/u-dma-buf/udmabuf0/sync_for_cpu", "");
    put(root / "sys/class/u-dma-buf/udmabuf0/sync_for_device", "");
    put(root / "dev/udmabuf0", std::string(65536, '\0'));
    put(root / "dev/uio3", std::string(kOffset + spec::kRegisterSpaceBytes, '\0'));
    const uint64_t hash = spec::hash(spec::load_config("tiny").value());
    set(reg::kVersion, uint32_t{spec::kIsaVersion} << 16 | spec::kRegisterMapVersion);
    set(reg::kConfigHash, static_cast<uint32_t>(hash));
    set(reg::kConfigHash + 4, static_cast<uint32_t>(hash >> 32));
  }
  void set(uint32_t offset, uint32_t value) const {
    std::fstream file(scratch.path() / "dev/uio3", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kOffset + offset).write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  uint32_t word(uint32_t offset) const {
    uint32_t value = 0;
    std::memcpy(&value, get(scratch.path() / "dev/uio3").data() + kOffset + offset, sizeof value);
    return value;
  }
  std::string attribute(const char* name) const { return get(scratch.path() / "sys/class/u-dma-buf/udmabuf0" / name); }
  std::string uri() const { return fmt::format("uio:?root={}", scratch.path().string()); }
  Scratch scratch;
};

TEST(Uio, TheMappedWindowIsReadAndWrittenByWords) {
  const MappedBoard board;
  auto device = open(board.uri());
  ASSERT_TRUE(device) << device.error().str();
  EXPECT_EQ((*device)->info().config.name, "tiny");
  EXPECT_FALSE((*device)->info().simulated);
  EXPECT_EQ(board.word(reg::kCommand), spec::kSoftReset | spec::kTokenClear);  // the reset of open()
  ASSERT_TRUE((*device)->write_register(reg::kBase0 + 4, 0x89abcdef));
  EXPECT_EQ(board.word(reg::kBase0 + 4), 0x89abcdefu);
  EXPECT_EQ(board.word(reg::kBase0), 0u);
  board.set(reg::kErrorIndex, 77);
  EXPECT_EQ((*device)->read_register(reg::kErrorIndex).value(), 77u);
}

TEST(Uio, WithoutAnInterruptTheStatusIsPolledUntilTheLimit) {
  const MappedBoard board;
  auto device = open(board.uri());
  ASSERT_TRUE(device) << device.error().str();
  EXPECT_TRUE((*device)->wait_idle(1ms).value());
  board.set(reg::kStatus, spec::kStatusBusy);
  EXPECT_FALSE((*device)->wait_idle(1ms).value());
}

TEST(Uio, EachTransferSynchronizesTheLinesOfItsRange) {
  const MappedBoard board;
  auto device = open(board.uri());
  ASSERT_TRUE(device) << device.error().str();
  const Buffer first = (*device)->allocate(1).value(), second = (*device)->allocate(200).value();
  EXPECT_EQ(first.address, 0x3000'0000u);
  EXPECT_EQ(second.address, 0x3000'0040u);
  const std::vector<std::byte> data(70, std::byte{'x'});
  ASSERT_TRUE((*device)->write(second, 60, data));  // bytes [124, 194) of the memory
  EXPECT_EQ(board.attribute("sync_for_device"), "0x00000040000000c5");
  EXPECT_EQ(get(board.scratch.path() / "dev/udmabuf0").substr(123, 72), "\0"s + std::string(70, 'x') + "\0"s);
  std::vector<std::byte> found(64);
  ASSERT_TRUE((*device)->read(second, 0, found));
  EXPECT_EQ(board.attribute("sync_for_cpu"), "0x0000004000000049");
}

TEST(Uio, CoherentMemoryIsNotSynchronized) {
  const MappedBoard board;
  put(board.scratch.path() / "sys/class/u-dma-buf/udmabuf0/dma_coherent", "1\n");
  auto device = open(board.uri());
  ASSERT_TRUE(device) << device.error().str();
  const Buffer buffer = (*device)->allocate(64).value();
  ASSERT_TRUE((*device)->write(buffer, 0, std::vector<std::byte>(64)));
  EXPECT_EQ(board.attribute("sync_for_device"), "");
}

TEST(Uio, MissingPartsOfTheBoardAreNamed) {
  const MappedBoard board;
  const fs::path& root = board.scratch.path();
  EXPECT_THAT(fault("uio:other?root=" + root.string()),
              AllOf(HasSubstr("no UIO device is called \"other\"; uio3 is \"tenon\""), HasSubstr("tenon hw overlay")));
  EXPECT_THAT(fault("uio:/dev/uio7?root=" + root.string()), HasSubstr("the UIO device uio7 does not exist"));
  EXPECT_EQ(fault("uio:/dev/uio3?root=" + root.string()), "opened");
  EXPECT_THAT(fault(board.uri() + "&memory=udmabuf9"), HasSubstr("u-dma-buf has no device udmabuf9"));
  EXPECT_THAT(fault(board.uri() + "&bitstream=x.bin"), HasSubstr("the kernel has no FPGA manager"));
  EXPECT_THAT(fault(board.uri() + "&colour=red"), HasSubstr("there is no option colour"));
  EXPECT_THAT(fault("uio:?root=" + (root / "missing").string()), HasSubstr("u-dma-buf has no device udmabuf0"));
  put(root / "sys/class/u-dma-buf/udmabuf0/size", "5000000000\n");
  EXPECT_THAT(fault(board.uri()), HasSubstr("the memory has 5000000000 bytes, must be a multiple of 64 below 4 GiB"));
  put(root / "sys/class/u-dma-buf/udmabuf0/size", "much\n");
  EXPECT_THAT(fault(board.uri()), HasSubstr("\"much\" is not an integer"));
  put(root / "sys/class/u-dma-buf/udmabuf0/size", "65536\n");
  put(root / "sys/class/uio/uio3/maps/map0/size", "0x100\n");
  EXPECT_THAT(fault(board.uri()), HasSubstr("the window has 256 bytes at offset 0x800"));
  put(root / "sys/class/uio/uio3/maps/map0/size", "0x1000\n");
  fs::remove(root / "dev/uio3");
  EXPECT_THAT(fault(board.uri()), AllOf(HasSubstr("dev/uio3"), HasSubstr("cannot open: No such file")));
}

TEST(Uio, AWindowWithoutAnAcceleratorIsAnError) {
  const MappedBoard board;
  board.set(reg::kVersion, 0xdeadbeef);
  EXPECT_THAT(fault(board.uri()), AllOf(HasSubstr("its version register reads 0xdeadbeef"), HasSubstr("?bitstream=")));
  board.set(reg::kVersion, uint32_t{spec::kIsaVersion} << 16 | spec::kRegisterMapVersion);
  board.set(reg::kConfigHash, 1);
  EXPECT_THAT(fault(board.uri()),
              AllOf(HasSubstr("no named configuration has the device's hash"), HasSubstr("config=")));
}

TEST(Uio, TheBusyMessageNamesTheClient) {
  const MappedBoard board;
  const auto first = open(board.uri());
  ASSERT_TRUE(first) << first.error().str();
  // A machine whose /proc/locks is empty cannot name the process.
  const std::string client = get("/proc/locks").empty() ? "another client" : fmt::format("process {}", getpid());
  EXPECT_THAT(fault(board.uri()), HasSubstr("the device is busy: " + client));
}

TEST(Uio, TheFpgaManagerLoadsABitstreamOrNamesItsError) {
  uio::EmulatorOptions options = tiny();
  options.empty = true;
  const EmulatedZynq board(options);
  const fs::path state = board.root() / "sys/class/fpga_manager/fpga0/state";
  const fs::path good = board.root() / "good.bit.bin", bad = board.root() / "bad.bit.bin";
  put(good, spec::to_json(options.config));
  put(bad, "not for this FPGA");
  EXPECT_THAT(fault(board.uri()), HasSubstr("its version register reads 0x00000000"));
  EXPECT_THAT(fault(board.uri() + "&bitstream=missing.bin"), HasSubstr("the bitstream does not exist"));
  EXPECT_THAT(fault(board.uri() + "&bitstream=" + bad.string()),
              AllOf(HasSubstr("its state is \"write error\""), HasSubstr("bootgen")));
  // A partial bitstream requires a loaded design.
  EXPECT_THAT(fault(board.uri() + "&partial=on&bitstream=" + good.string()), HasSubstr("\"write error\""));
  EXPECT_EQ(fault(board.uri() + "&bitstream=" + good.string()), "opened");
  EXPECT_EQ(get(state), "operating\n");
  EXPECT_EQ(get(board.root() / "lib/firmware/good.bit.bin"), get(good));
  EXPECT_EQ(fault(board.uri() + "&partial=on&bitstream=" + good.string()), "opened");
  // Another design, and a client that expects the first.
  put(good, spec::to_json(spec::load_config("wide-8x16").value()));
  EXPECT_THAT(fault(board.uri() + "&config=tiny&bitstream=" + good.string()), HasSubstr("block_in: 8 here, 4 there"));
  EXPECT_EQ(open(board.uri()).value()->info().config.name, "wide-8x16");
}

TEST(Uio, AConfigurationWithoutANameIsGivenAsAFile) {
  uio::EmulatorOptions options = tiny();
  options.config.queue_depth *= 2;
  const EmulatedZynq board(options);
  EXPECT_THAT(fault(board.uri()), HasSubstr("no named configuration has the device's hash"));
  put(board.root() / "mine.json", spec::to_json(options.config));
  EXPECT_EQ(fault(board.uri() + "&config=" + (board.root() / "mine.json").string()), "opened");
}

// Runs `instructions` instructions that only synchronize; many of them keep the accelerator busy for a while.
Status run(Accelerator& accelerator, int instructions, std::chrono::nanoseconds limit) {
  const spec::Isa isa(accelerator.info().config);
  std::string text;
  for (int i = 0; i < instructions; ++i) text += "sync engine=0\n";
  std::vector<spec::Slot> slots;
  const auto program = isa.assemble_all(text, "test").value();
  for (const auto& instruction : program) (void)isa.encode(instruction, slots);
  const Buffer stream = accelerator.allocate(slots.size() * spec::kSlotBytes).value();
  TENON_TRY(accelerator.write(stream, 0, std::as_bytes(std::span(slots))));
  auto status = start(accelerator, {.instructions = stream.address, .count = static_cast<uint32_t>(slots.size())});
  if (status) status = finish(accelerator, limit);
  accelerator.free(stream);
  return status;
}

TEST(Uio, TheInterruptEndsTheWaitForAnAcceleratorThatRunsFreely) {
  uio::EmulatorOptions options = tiny();
  options.own_clock = true;
  const EmulatedZynq board(options);
  auto device = open(board.uri());
  ASSERT_TRUE(device) << device.error().str();
  for (int i = 0; i < 20; ++i) {
    const auto status = run(**device, i % 2 ? 3000 : 1, 60s);
    ASSERT_TRUE(status) << status.error().str();
    EXPECT_EQ((*device)->read_register(reg::kInterruptStatus).value(), 0u);  // acknowledged
  }
}

TEST(Uio, AMissingInterruptCostsTimeOnly) {
  uio::EmulatorOptions options = tiny();
  options.own_clock = true;
  options.interrupt = false;
  const EmulatedZynq board(options);
  auto device = open(board.uri());
  ASSERT_TRUE(device) << device.error().str();
  for (int i = 0; i < 3; ++i) {
    const auto status = run(**device, 3000, 600s);
    ASSERT_TRUE(status) << status.error().str();
  }
}

TEST(Uio, ABoardThatHasEndedIsAnError) {
  EmulatedZynq board(tiny());
  auto device = open(board.uri());
  ASSERT_TRUE(device) << device.error().str();
  const Buffer buffer = (*device)->allocate(64).value();
  board.kill();
  EXPECT_THAT((*device)->read_register(reg::kStatus).error().what, HasSubstr("does not answer any more"));
  EXPECT_THAT((*device)->wait_idle(1s).error().what, HasSubstr("does not answer any more"));
  EXPECT_THAT((*device)->write(buffer, 0, std::vector<std::byte>(64)).error().str(),
              AllOf(HasSubstr("sync_for_device"), HasSubstr("start it again")));
  device->reset();
  EXPECT_THAT(fault(board.uri()), HasSubstr("cannot connect: Connection refused"));
}

}  // namespace
}  // namespace tenon::driver
