// A behavioral simulator with programs in assembly, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"

namespace tenon::sim::testing {

class Machine {
 public:
  static constexpr uint64_t kStream = 0x8000;

  explicit Machine(const spec::Config& config, BehavioralOptions options = {.memory_bytes = 1 << 16}) : isa(config) {
    auto made = make_behavioral(config, options);
    EXPECT_TRUE(made) << made.error().str();
    simulator = std::move(*made);
    for (size_t i = 0; i < kStream; ++i) simulator->memory()[i] = static_cast<std::byte>(i * 7 + i / 256);
  }
  static Machine tiny() { return Machine(*spec::load_config("tiny")); }

  void write64(uint32_t offset, uint64_t value) {
    simulator->write_register(offset, static_cast<uint32_t>(value));
    simulator->write_register(offset + 4, static_cast<uint32_t>(value >> 32));
  }
  uint64_t read64(uint32_t offset) {
    return simulator->read_register(offset) | uint64_t{simulator->read_register(offset + 4)} << 32;
  }

  // Runs the slots and returns the stop code.
  spec::StopCode run(const std::vector<spec::Slot>& slots, spec::Profile profile, uint64_t address = kStream) {
    const auto memory = simulator->memory();
    if (address < memory.size() && !slots.empty()) {
      std::memcpy(memory.data() + address, slots.data(), std::min<size_t>(slots.size() * 16, memory.size() - address));
    }
    write64(spec::reg::kInstructions, address);
    simulator->write_register(spec::reg::kCount, static_cast<uint32_t>(slots.size()));
    simulator->write_register(spec::reg::kMode, profile == spec::Profile::kNative ? 1 : 0);
    simulator->write_register(spec::reg::kControl, spec::kApStart);
    for (int i = 0; i < 100000 && simulator->advance(1000); ++i) {
    }
    return code();
  }
  spec::StopCode run(std::string_view text, uint64_t address = kStream) {
    const auto program = isa.assemble_all(text, "test");
    EXPECT_TRUE(program) << program.error().str();
    std::vector<spec::Slot> slots;
    for (const auto& i : *program) {
      const auto status = isa.encode(i, slots);
      EXPECT_TRUE(status) << status.error().str();
    }
    return run(slots, program->empty() ? spec::Profile::kNative : spec::profile_of(program->front()), address);
  }
  spec::StopCode code() { return static_cast<spec::StopCode>(simulator->read_register(spec::reg::kStatus) & 0xff); }
  uint32_t index() { return simulator->read_register(spec::reg::kErrorIndex); }
  std::string why() { return simulator->explain(); }
  // Counter (producer, consumer).
  unsigned tokens(spec::Engine producer, spec::Engine consumer) {
    const uint32_t i = 7 * static_cast<uint32_t>(producer) + static_cast<uint32_t>(consumer);
    return simulator->read_register(spec::reg::kTokens + i / 4 * 4) >> (i % 4 * 8) & 0xff;
  }

  const spec::Isa isa;
  std::unique_ptr<Simulator> simulator;
};

}  // namespace tenon::sim::testing
