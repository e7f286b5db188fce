// The final values that each instruction of a launch has written, collected from the writes of one simulator.
//
// Scratchpad elements are logged whole; DRAM is logged in blocks of 64 bytes with a bit for each byte written, so that
// two simulators that split the same bytes into different writes have the same record.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/simulator.h"

namespace tenon::sim {

class WriteLog final : public WriteObserver {
 public:
  static constexpr uint64_t kBlock = 64;

  struct Location {
    spec::Memory memory = spec::Memory::kDram;
    uint64_t address = 0;  // index of an element, or of a DRAM block
    bool operator==(const Location&) const = default;
    auto operator<=>(const Location&) const = default;
  };
  struct Value {
    uint64_t written = 0;  // DRAM: a bit for each byte
    uint32_t offset = 0, size = 0;
  };
  struct Record {
    std::unordered_map<uint64_t, Value> values;  // by key()
    std::vector<std::byte> bytes;
    std::span<const std::byte> of(const Value& value) const {
      return std::span(bytes).subspan(value.offset, value.size);
    }
  };

  static uint64_t key(Location location) { return static_cast<uint64_t>(location.memory) << 56 | location.address; }
  static Location location(uint64_t key) {
    return {static_cast<spec::Memory>(key >> 56), key & ((uint64_t{1} << 56) - 1)};
  }

  void on_write(const Write& write) override;
  void on_done(uint32_t instruction) override;

  void clear();
  void forward_to(WriteObserver* observer) { observer_ = observer; }  // a second observer of the writes; nullptr: none

  std::unordered_map<uint32_t, Record>& open() { return open_; }  // not done yet
  std::unordered_map<uint32_t, Record>& done() { return done_; }
  std::vector<uint32_t>& newly_done() { return newly_done_; }

 private:
  Value& value(Record& record, Location location, uint32_t size);

  std::unordered_map<uint32_t, Record> open_, done_;
  std::vector<uint32_t> newly_done_;
  WriteObserver* observer_ = nullptr;
};

}  // namespace tenon::sim
