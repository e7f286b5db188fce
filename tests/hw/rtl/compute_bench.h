// Drives the Verilated module `compute`: a queue for every port, random gaps between the items, one step() a cycle.
// Collects the writes on the trace ports and the cycle of each done.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "tests/hw/rtl/compute_model.h"

class Vcompute;
class VerilatedContext;

namespace tenon::rtl_test {

struct LoadItem {
  spec::Memory memory = spec::Memory::kInp;
  uint32_t unit = 0;
  std::vector<uint8_t> bytes;
  bool sign_extended = false;
};
struct StoreItem {
  bool from_acc = false;
  uint32_t address = 0;
};
struct StoreResult {
  StoreItem item;
  std::vector<uint8_t> bytes;
};
struct Done {
  uint64_t cycle = 0;
  uint8_t error = 0;
};

class Bench {
 public:
  Bench(const spec::Config& config, uint64_t seed);
  ~Bench();

  void reset();
  void step();
  // Steps until all queues are empty and every command is answered. False if `limit` cycles do not suffice, or if an
  // engine reports an error.
  bool run(uint64_t limit = 1'000'000);

  // The chance in percent that a port holds its next item back in a cycle.
  int gap_percent = 0;

  std::deque<LoadItem> loads;  // all scratchpads; inp, wgt and the others advance independently
  std::deque<StoreItem> stores;
  std::deque<GemmCommand> gemm;
  std::deque<AluCommand> alu;
  std::deque<RqCommand> rq;

  std::vector<Write> acc_writes, out_writes, inp_writes;  // those of inp by RQ
  std::vector<StoreResult> store_results;
  std::vector<Done> gemm_done, alu_done, rq_done;
  uint64_t cycle = 0;
  uint64_t active_cycles = 0;
  uint64_t longest_refusal = 0;  // cycles for which a store asked for one element

 private:
  bool may_present();  // a port may present its next item
  void drive_loads();

  spec::Config config_;
  std::mt19937_64 random_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vcompute> dut_;
  std::deque<LoadItem> inp_, wgt_, ldm_;
  size_t issued_gemm_ = 0, issued_alu_ = 0, issued_rq_ = 0;
  uint64_t refusals_ = 0;  // of the store at the front
  bool gemm_valid_ = false, alu_valid_ = false, rq_valid_ = false, store_valid_ = false, read_pending_ = false;
  StoreItem read_;
};

}  // namespace tenon::rtl_test
