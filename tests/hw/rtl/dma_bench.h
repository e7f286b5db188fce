// Drives the Verilated module `dma_bench` with transfers and collects the engines' writes. Its memory has random
// latency, stalls and errors, and checks the rules of AXI4. A broken rule is a text in `violations`.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hw/spec/isa.h"

class Vdma_bench;
class VerilatedContext;

namespace tenon::rtl_test {

struct UnitWrite {
  uint32_t instruction = 0;
  int memory = 0;  // tenon_pkg::MEM_*
  uint32_t unit = 0;
  std::vector<uint8_t> bytes;
  bool operator==(const UnitWrite&) const = default;
};

struct DmaDone {
  int engine = 0;  // 0 inp, 1 the other loads, 2 store
  bool error = false;
};

class DmaBench {
 public:
  DmaBench(const spec::Config& config, uint64_t seed);
  ~DmaBench();

  // Issues the instruction to an engine as soon as the engine takes it. Returns "", or "empty" or "range" if the
  // decoder completes the instruction without an engine.
  std::string issue(const spec::Instruction& instruction, uint32_t index, uint64_t base);
  void step();
  // Steps until `dones` has `count` entries; false if that takes too long.
  bool wait(size_t count);
  // A soft reset: no new addresses, wait until no transfer is outstanding, clear. False if that takes too long.
  bool halt_and_clear();

  int stall_percent = 0;
  int latency = 4;
  bool data_first = false;              // a write's address is taken only after the last beat of its data
  uint64_t bad_address = ~uint64_t{0};  // a beat that contains this byte is answered with an error

  std::vector<uint8_t> memory;
  std::vector<uint8_t> source;  // data that stores read: byte `lane` of unit u at u * block_out + lane
  std::vector<UnitWrite> writes;
  std::vector<DmaDone> dones;
  std::vector<std::string> violations;
  uint64_t cycle = 0, read_beats = 0, write_beats = 0;

 private:
  struct Burst {
    uint64_t address = 0;
    int beats = 0, id = 0;
    uint64_t ready = 0;
  };
  struct Beat {
    std::vector<uint8_t> data;
    uint64_t strobe = 0;
    bool last = false;
  };
  bool stall();
  bool bad(uint64_t address) const;
  void write(const Beat& beat);
  void check_burst(uint64_t address, int beats, const char* which);

  spec::Config config_;
  spec::Isa isa_;
  std::mt19937_64 random_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vdma_bench> dut_;
  std::deque<Burst> reads_, writes_;
  std::deque<Beat> beats_;  // whose address has not come
  int bursts_ahead_ = 0;    // last beats among these
  std::deque<uint64_t> responses_;
  std::deque<bool> response_errors_;
  bool write_error_ = false;
  uint64_t held_address_ = 0;  // the read address that waits
  bool held_ = false;
};

// The rule of MOVE and LOAD, from the text of isa.h: the units that a load writes, in order.
std::vector<UnitWrite> expected_writes(const spec::Config& config, const spec::Instruction& instruction, uint32_t index,
                                       uint64_t base, const std::vector<uint8_t>& memory);
// The memory after a store.
void expected_store(const spec::Config& config, const spec::Instruction& instruction, uint64_t base,
                    const std::vector<uint8_t>& source, std::vector<uint8_t>& memory);

}  // namespace tenon::rtl_test
