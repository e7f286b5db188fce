// ElementWriter: units of loads are reported as elements.
#include "sim/verilator/elements.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tenon::sim {
namespace {

using spec::Memory;

struct RecordedWrite {
  uint32_t instruction;
  Memory memory;
  uint64_t address;
  std::vector<std::byte> value;
};
struct Recorder final : WriteObserver {
  void on_write(const Write& w) override {
    writes.push_back({w.instruction, w.memory, w.address, {w.value.begin(), w.value.end()}});
  }
  void on_done(uint32_t instruction) override { done.push_back(instruction); }
  std::vector<RecordedWrite> writes;
  std::vector<uint32_t> done;
};

struct ElementWriterTest : testing::Test {
  ElementWriterTest() : config(spec::load_config("tiny").value()), writer(config) { writer.set_observer(&recorder); }
  void unit(Memory memory, uint32_t instruction, uint64_t at, uint8_t value) {
    const std::vector<std::byte> data(static_cast<size_t>(config.unit_bytes(memory)), std::byte{value});
    writer.unit(memory, instruction, at, data.data());
  }
  spec::Config config;
  Recorder recorder;
  ElementWriter writer;
};

TEST_F(ElementWriterTest, AWeightIsReportedOnceWithItsLastUnit) {
  const auto units = static_cast<uint64_t>(config.units_per_element(Memory::kWgt));
  for (uint64_t i = 0; i < 2 * units; ++i) unit(Memory::kWgt, 4, 3 * units + i, static_cast<uint8_t>(i));
  ASSERT_EQ(recorder.writes.size(), 2u);
  EXPECT_EQ(recorder.writes[0].address, 3u);
  EXPECT_EQ(recorder.writes[1].address, 4u);
  EXPECT_EQ(recorder.writes[1].value.size(), static_cast<size_t>(config.element_bytes(Memory::kWgt)));
  EXPECT_EQ(recorder.writes[1].value.back(), std::byte(2 * units - 1));
}

TEST_F(ElementWriterTest, APartialElementIsReportedWhenTheInstructionIsDone) {
  unit(Memory::kPar, 1, 0, 0x11);
  for (uint64_t i = 1; i < 8; ++i) unit(Memory::kPar, 1, i, 0x22);
  recorder.writes.clear();
  unit(Memory::kPar, 2, 1, 0x33);  // the other units of the element stay
  EXPECT_TRUE(recorder.writes.empty());
  writer.done(2);
  ASSERT_EQ(recorder.writes.size(), 1u);
  EXPECT_EQ(recorder.writes[0].instruction, 2u);
  const auto bytes = static_cast<size_t>(config.unit_bytes(Memory::kPar));
  EXPECT_EQ(recorder.writes[0].value[0], std::byte{0x11});
  EXPECT_EQ(recorder.writes[0].value[bytes], std::byte{0x33});
  EXPECT_EQ(recorder.writes[0].value[2 * bytes], std::byte{0x22});
  EXPECT_EQ(recorder.done, (std::vector<uint32_t>{2}));
}

TEST_F(ElementWriterTest, IncompleteElementsOfAnAbortedRunAreNotReported) {
  unit(Memory::kPar, 2, 1, 0x33);
  writer.forget();
  writer.done(2);
  EXPECT_TRUE(recorder.writes.empty());
}

TEST_F(ElementWriterTest, BytesAreSignExtendedIntoAccumulators) {
  const std::vector<std::byte> data = {std::byte{0x80}, std::byte{0x7f}, std::byte{0xff}, std::byte{0}};
  writer.widen(9, 5, data.data());
  ASSERT_EQ(recorder.writes.size(), 1u);
  std::array<int32_t, 4> lanes{};
  ASSERT_EQ(recorder.writes[0].value.size(), sizeof lanes);
  std::memcpy(lanes.data(), recorder.writes[0].value.data(), sizeof lanes);
  EXPECT_EQ(lanes, (std::array<int32_t, 4>{-128, 127, -1, 0}));
  EXPECT_EQ(recorder.writes[0].address, 5u);
}

TEST_F(ElementWriterTest, UnitsOutsideTheScratchpadAreHarmless) {
  unit(Memory::kInp, 1, uint64_t{1} << 31, 1);
  writer.done(1);
  EXPECT_EQ(recorder.done.size(), 1u);
}

}  // namespace
}  // namespace tenon::sim
