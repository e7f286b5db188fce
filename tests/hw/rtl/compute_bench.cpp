#include "tests/hw/rtl/compute_bench.h"

#include <algorithm>
#include <cstring>

#include "Vcompute.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace tenon::rtl_test {
namespace {

using spec::Memory;

// Verilator's ports are little-endian memory, whatever their width.
template <typename Port>
void set_bytes(Port& port, const void* data, size_t size) {
  std::memset(&port, 0, sizeof(port));
  std::memcpy(&port, data, std::min(size, sizeof(port)));
}
template <typename Port>
std::vector<uint8_t> get_bytes(const Port& port, size_t size) {
  std::vector<uint8_t> bytes(size);
  std::memcpy(bytes.data(), &port, size);
  return bytes;
}

// A packed struct, built from its last member up.
class Packed {
 public:
  Packed& add(uint64_t value, int width) {
    for (int i = 0; i < width; ++i, ++bit_) {
      if (value >> i & 1) bytes_[bit_ / 8] |= static_cast<uint8_t>(1u << (bit_ % 8));
    }
    return *this;
  }
  const void* data() const { return bytes_; }
  size_t size() const { return (bit_ + 7) / 8; }

 private:
  uint8_t bytes_[64] = {};
  size_t bit_ = 0;
};

// What decode adds to a command with own lanes.
struct OwnCommand {
  uint32_t columns = 0, steps = 0, reads = 0;
  bool by_two = false, overlaps = false;
};
OwnCommand own_of(const GemmCommand& c, bool packed) {
  OwnCommand own;
  if (!c.own) return own;
  const bool by_one = c.src_x == c.src_r2;
  own.by_two = !by_one && c.src_x == 2 * c.src_r2;
  own.overlaps = (by_one && c.r2 > 1) || (own.by_two && c.r2 > 2);
  if (c.x > 0) own.columns = (c.x - 1) * (own.by_two ? 2 : 1) + c.r2;
  for (uint32_t row = 0; row < c.r1; ++row) {  // rows of one bank
    uint32_t same = 0;
    for (uint32_t other = 0; other < c.r1; ++other) same += (row * c.src_r1 - other * c.src_r1) % 4 == 0 ? 1 : 0;
    own.reads = std::max(own.reads, same);
  }
  own.steps = c.r1 == 0 ? 0 : own.reads + (packed ? 1 : 0);
  return own;
}

Packed pack(const GemmCommand& c, bool packed) {
  Packed p;
  for (uint32_t v : {c.wgt_x, c.wgt_y, c.wgt_r2, c.wgt_r1, c.wgt_r0, c.src_x, c.src_y, c.src_r2, c.src_r1, c.src_r0,
                     c.dst_x, c.dst_y, c.wgt_base, c.src_base, c.dst_base})
    p.add(v, 14);
  p.add(c.uop_end, 15).add(c.uop_begin, 14).add(c.x, 14).add(c.y, 14).add(c.r2, 10).add(c.r1, 10).add(c.r0, 10);
  const OwnCommand own = own_of(c, packed);
  p.add(own.columns, 12).add(own.steps, 3).add(own.reads, 2).add(own.by_two, 1).add(own.overlaps, 1).add(c.own, 1);
  return p.add(c.first, 1).add(c.reset, 1).add(c.is_base, 1).add(c.index, 32);
}

Packed pack(const AluCommand& c) {
  Packed p;
  p.add(c.src_x, 14).add(c.src_y, 14).add(c.dst_x, 14).add(c.dst_y, 14);
  p.add(c.uop_end, 15).add(c.uop_begin, 14).add(c.x, 14).add(c.y, 14);
  return p.add(static_cast<uint16_t>(c.imm), 16).add(c.use_imm, 1).add(static_cast<uint64_t>(c.op), 3).add(c.index, 32);
}

Packed pack(const RqCommand& c) {
  const spec::LayerParameters& l = c.layer;
  Packed p;
  p.add(c.win_carry, 1)
      .add(c.win_pitch, 12)
      .add(c.win_cols, 3)
      .add(c.win_rows, 3)
      .add(c.to_inp, 1)
      .add(l.r_shift, 5)
      .add(l.r_multiplier, 16)
      .add(static_cast<uint8_t>(l.r_zero), 8)
      .add(c.res_pitch, 12);
  p.add(c.res_base, 14).add(static_cast<uint8_t>(l.hi), 8).add(static_cast<uint8_t>(l.lo), 8);
  p.add(static_cast<uint8_t>(l.zero), 8).add(static_cast<uint16_t>(l.v_hi), 12).add(static_cast<uint16_t>(l.v_lo), 12);
  p.add(c.par_base, 12).add(c.out_pitch, 12).add(c.out_base, 14).add(c.acc_step, 12).add(c.acc_pitch, 12);
  return p.add(c.acc_base, 14).add(c.cols, 10).add(c.rows, 10).add(l.residual, 1).add(c.index, 32);
}

uint8_t memory_code(const LoadItem& item) { return item.sign_extended ? 7 : static_cast<uint8_t>(item.memory); }

}  // namespace

Bench::Bench(const spec::Config& config, uint64_t seed)
    : config_(config),
      random_(seed),
      context_(std::make_unique<VerilatedContext>()),
      dut_(std::make_unique<Vcompute>(context_.get())) {
  context_->randReset(2);
  reset();
}

Bench::~Bench() { dut_->final(); }

void Bench::reset() {
  loads.clear(), inp_.clear(), wgt_.clear(), ldm_.clear(), stores.clear(), gemm.clear(), alu.clear(), rq.clear();
  gemm_done.clear(), alu_done.clear(), rq_done.clear();
  issued_gemm_ = issued_alu_ = issued_rq_ = 0;
  gemm_valid_ = alu_valid_ = rq_valid_ = store_valid_ = read_pending_ = false;
  dut_->inp_we_i = dut_->wgt_we_i = dut_->ldm_we_i = dut_->st_req_i = 0;
  dut_->gemm_valid_i = dut_->alu_valid_i = dut_->rq_valid_i = 0;
  dut_->rst_ni = 0;
  for (int i = 0; i < 4; ++i) {
    dut_->clk_i = 0;
    dut_->eval();
    dut_->clk_i = 1;
    dut_->eval();
  }
  dut_->rst_ni = 1;
}

bool Bench::may_present() { return gap_percent == 0 || static_cast<int>(random_() % 100) >= gap_percent; }

void Bench::drive_loads() {
  for (; !loads.empty(); loads.pop_front()) {
    const Memory memory = loads.front().memory;
    (memory == Memory::kInp ? inp_ : memory == Memory::kWgt ? wgt_ : ldm_).push_back(loads.front());
  }
  dut_->inp_we_i = !inp_.empty() && may_present();
  if (dut_->inp_we_i) {
    dut_->inp_unit_i = inp_.front().unit;
    set_bytes(dut_->inp_wdata_i, inp_.front().bytes.data(), inp_.front().bytes.size());
    inp_.pop_front();
  }
  dut_->wgt_we_i = !wgt_.empty() && may_present();
  if (dut_->wgt_we_i) {
    dut_->wgt_unit_i = wgt_.front().unit;
    set_bytes(dut_->wgt_wdata_i, wgt_.front().bytes.data(), wgt_.front().bytes.size());
    wgt_.pop_front();
  }
  dut_->ldm_we_i = !ldm_.empty() && may_present();
  if (dut_->ldm_we_i) {
    dut_->ldm_mem_i = memory_code(ldm_.front());
    dut_->ldm_unit_i = ldm_.front().unit;
    set_bytes(dut_->ldm_wdata_i, ldm_.front().bytes.data(), ldm_.front().bytes.size());
    ldm_.pop_front();
  }
}

void Bench::step() {
  drive_loads();
  // A request stays valid until the engine takes it.
  gemm_valid_ = !gemm.empty() && (gemm_valid_ || may_present());
  alu_valid_ = !alu.empty() && (alu_valid_ || may_present());
  // The sequencer has two commands in flight.
  rq_valid_ = !rq.empty() && (rq_valid_ || (may_present() && issued_rq_ < rq_done.size() + 2));
  store_valid_ = !stores.empty() && (store_valid_ || may_present());
  dut_->gemm_valid_i = gemm_valid_;
  dut_->alu_valid_i = alu_valid_;
  dut_->rq_valid_i = rq_valid_;
  dut_->st_req_i = store_valid_;
  if (gemm_valid_) {
    const Packed command = pack(gemm.front(), config_.packed_products);
    set_bytes(dut_->gemm_cmd_i, command.data(), command.size());
  }
  if (alu_valid_) set_bytes(dut_->alu_cmd_i, pack(alu.front()).data(), pack(alu.front()).size());
  if (rq_valid_) set_bytes(dut_->rq_cmd_i, pack(rq.front()).data(), pack(rq.front()).size());
  if (store_valid_) {
    dut_->st_acc_i = stores.front().from_acc;
    dut_->st_addr_i = static_cast<uint16_t>(stores.front().address);
  }
  dut_->clk_i = 0;
  dut_->eval();

  const size_t lanes = config_.block_out;
  if (read_pending_) store_results.push_back({read_, get_bytes(dut_->st_rdata_o, lanes)});
  read_pending_ = store_valid_ && dut_->st_gnt_o;
  refusals_ = store_valid_ && !read_pending_ ? refusals_ + 1 : 0;
  longest_refusal = std::max(longest_refusal, refusals_);
  if (read_pending_) {
    read_ = stores.front();
    stores.pop_front();
    store_valid_ = false;
  }
  if (dut_->trace_acc_valid_o) {
    Write write{dut_->trace_acc_index_o, dut_->trace_acc_addr_o, std::vector<int32_t>(lanes)};
    std::memcpy(write.lanes.data(), &dut_->trace_acc_data_o, lanes * 4);
    acc_writes.push_back(write);
  }
  if (dut_->trace_out_valid_o) {
    Write write{dut_->trace_out_index_o, dut_->trace_out_addr_o, {}};
    for (uint8_t byte : get_bytes(dut_->trace_out_data_o, lanes)) write.lanes.push_back(static_cast<int8_t>(byte));
    out_writes.push_back(write);
  }
  if (dut_->trace_inp_valid_o) {
    Write write{dut_->trace_inp_index_o, dut_->trace_inp_addr_o, {}};
    for (uint8_t byte : get_bytes(dut_->trace_inp_data_o, config_.block_in))
      write.lanes.push_back(static_cast<int8_t>(byte));
    inp_writes.push_back(write);
  }
  active_cycles += dut_->gemm_active_o;
  if (dut_->gemm_done_o) gemm_done.push_back({cycle, dut_->gemm_error_o});
  if (dut_->alu_done_o) alu_done.push_back({cycle, dut_->alu_error_o});
  if (dut_->rq_done_o) rq_done.push_back({cycle, dut_->rq_error_o});
  if (gemm_valid_ && dut_->gemm_ready_o) gemm.pop_front(), ++issued_gemm_, gemm_valid_ = false;
  if (alu_valid_ && dut_->alu_ready_o) alu.pop_front(), ++issued_alu_, alu_valid_ = false;
  if (rq_valid_ && dut_->rq_ready_o) rq.pop_front(), ++issued_rq_, rq_valid_ = false;

  dut_->clk_i = 1;
  dut_->eval();
  ++cycle;
}

bool Bench::run(uint64_t limit) {
  for (uint64_t end = cycle + limit; cycle < end;) {
    step();
    for (const auto* done : {&gemm_done, &alu_done, &rq_done}) {
      if (!done->empty() && done->back().error != 0) return false;
    }
    if (loads.empty() && inp_.empty() && wgt_.empty() && ldm_.empty() && stores.empty() && !read_pending_ &&
        gemm.empty() && alu.empty() && rq.empty() && gemm_done.size() == issued_gemm_ &&
        alu_done.size() == issued_alu_ && rq_done.size() == issued_rq_) {
      step();  // the last load reaches its memory
      return true;
    }
  }
  return false;
}

}  // namespace tenon::rtl_test
