#include "tests/hw/rtl/dma_bench.h"

#include <fmt/format.h>

#include <cstring>

#include "Vdma_bench.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace tenon::rtl_test {
namespace {

template <typename Port>
std::vector<uint8_t> get_bytes(const Port& port, size_t size) {
  std::vector<uint8_t> bytes(size);
  std::memcpy(bytes.data(), &port, size);
  return bytes;
}

}  // namespace

DmaBench::DmaBench(const spec::Config& config, uint64_t seed)
    : memory(1 << 16),
      source(static_cast<size_t>(config.depth(spec::Memory::kAcc) * config.block_out)),
      config_(config),
      isa_(config),
      random_(seed),
      context_(std::make_unique<VerilatedContext>()),
      dut_(std::make_unique<Vdma_bench>(context_.get())) {
  for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random_());
  for (uint8_t& byte : source) byte = static_cast<uint8_t>(random_());
  dut_->st_gnt_i = 0;
  dut_->rst_ni = 0;
  for (int i = 0; i < 3; ++i) {
    dut_->clk_i = 0;
    dut_->eval();
    dut_->clk_i = 1;
    dut_->eval();
  }
  dut_->rst_ni = 1;
}

DmaBench::~DmaBench() { dut_->final(); }

bool DmaBench::stall() { return stall_percent != 0 && static_cast<int>(random_() % 100) < stall_percent; }

void DmaBench::check_burst(uint64_t address, int beats, const char* which) {
  const uint64_t bytes = static_cast<uint64_t>(beats) * static_cast<uint64_t>(config_.axi_bytes());
  const auto report = [&](std::string_view text) {
    violations.push_back(fmt::format("{} of {} beats at {:#x}: {}", which, beats, address, text));
  };
  if (address % static_cast<uint64_t>(config_.axi_bytes()) != 0) report("not aligned to a beat");
  if (address / 4096 != (address + bytes - 1) / 4096) report("crosses 4 KiB");
  if (beats > config_.max_burst_beats) report("longer than the longest burst");
  if (address + bytes > memory.size()) report("outside memory");
}

std::string DmaBench::issue(const spec::Instruction& instruction, uint32_t index, uint64_t base) {
  std::vector<spec::Slot> slots;
  if (auto status = isa_.encode(instruction, slots); !status) return status.error().what;
  const bool native = spec::profile_of(instruction) == spec::Profile::kNative;
  slots.resize(2);
  std::memcpy(&dut_->insn_i, slots.data(), 32);
  dut_->native_i = native;
  dut_->index_i = index;
  dut_->base_addr_i = base;
  for (int i = 0; i < 3; ++i) step();
  dut_->eval();
  if (dut_->empty_o) return "empty";
  if (dut_->range_o) return "range";
  int engine = 1;
  if (const auto* m = std::get_if<spec::native::Move>(&instruction))
    engine = m->function == 4 ? 2 : m->function <= 1 ? 0 : 1;
  if (const auto* l = std::get_if<spec::base::Load>(&instruction))
    engine = l->memory_type == 1 || l->memory_type == 2 ? 0 : 1;
  if (std::holds_alternative<spec::base::Store>(instruction)) engine = 2;
  for (int i = 0;; ++i) {
    if (i > 200000) return "the engine is never ready";
    dut_->start_i = static_cast<uint8_t>(1 << engine);
    dut_->clk_i = 0;
    dut_->eval();
    const bool ready = dut_->ready_o >> engine & 1;
    step();
    dut_->start_i = 0;
    if (ready) return "";
  }
}

bool DmaBench::bad(uint64_t address) const {
  return bad_address >= address && bad_address < address + static_cast<uint64_t>(config_.axi_bytes());
}

void DmaBench::write(const Beat& beat) {
  Burst& burst = writes_.front();
  for (uint64_t j = 0; j < beat.data.size(); ++j) {
    if (beat.strobe >> j & 1) memory.at(burst.address + j) = beat.data[j];
  }
  write_error_ = write_error_ || bad(burst.address);
  burst.address += beat.data.size();
  if ((--burst.beats == 0) != beat.last) violations.push_back("WLAST is wrong");
  if (burst.beats > 0) return;
  writes_.pop_front();
  responses_.push_back(cycle + static_cast<uint64_t>(latency));
  response_errors_.push_back(write_error_);
  write_error_ = false;
}

void DmaBench::step() {
  const auto beat = static_cast<uint64_t>(config_.axi_bytes());
  // The answers of memory in this cycle.
  dut_->arready_i = !stall();
  dut_->awready_i = !stall() && (!data_first || bursts_ahead_ > 0);
  dut_->wready_i = !stall();
  dut_->rvalid_i = 0;
  if (!reads_.empty() && reads_.front().ready <= cycle && !stall()) {
    Burst& burst = reads_.front();
    dut_->rvalid_i = 1;
    dut_->rid_i = static_cast<uint8_t>(burst.id);
    dut_->rerror_i = bad(burst.address);
    std::memset(&dut_->rdata_i, 0, sizeof(dut_->rdata_i));
    if (burst.address + beat <= memory.size()) std::memcpy(&dut_->rdata_i, &memory[burst.address], beat);
    burst.address += beat;
    ++read_beats;
    if (--burst.beats == 0) reads_.pop_front();
  }
  dut_->bvalid_i = 0;
  if (!responses_.empty() && responses_.front() <= cycle && !stall()) {
    dut_->bvalid_i = 1;
    dut_->berror_i = response_errors_.front();
    responses_.pop_front();
    response_errors_.pop_front();
  }
  dut_->clk_i = 0;
  dut_->eval();
  dut_->st_gnt_i = dut_->st_req_o && !stall();
  dut_->eval();

  // The events of this clock edge.
  if (held_ && (!dut_->arvalid_o || dut_->araddr_o != held_address_))
    violations.push_back("a read address changes while it waits");
  held_ = dut_->arvalid_o && !dut_->arready_i;
  held_address_ = dut_->araddr_o;
  if (dut_->arvalid_o && dut_->arready_i) {
    check_burst(dut_->araddr_o, dut_->arlen_o + 1, "read");
    reads_.push_back({dut_->araddr_o, dut_->arlen_o + 1, dut_->arid_o, cycle + static_cast<uint64_t>(latency)});
  }
  if (dut_->awvalid_o && dut_->awready_i) {
    check_burst(dut_->awaddr_o, dut_->awlen_o + 1, "write");
    writes_.push_back({dut_->awaddr_o, dut_->awlen_o + 1, 0, 0});
  }
  if (dut_->wvalid_o && dut_->wready_i) {
    ++write_beats;
    beats_.push_back({get_bytes(dut_->wdata_o, beat), dut_->wstrb_o, static_cast<bool>(dut_->wlast_o)});
    bursts_ahead_ += beats_.back().last;
  }
  for (; !beats_.empty() && !writes_.empty(); beats_.pop_front()) {
    bursts_ahead_ -= beats_.front().last;
    write(beats_.front());
  }
  std::vector<uint8_t> read;
  if (dut_->st_req_o && dut_->st_gnt_i) {
    const auto offset = static_cast<size_t>(dut_->st_addr_o) * static_cast<size_t>(config_.block_out);
    read.assign(source.begin() + static_cast<std::ptrdiff_t>(offset),
                source.begin() + static_cast<std::ptrdiff_t>(offset) + config_.block_out);
  }
  const auto in = static_cast<size_t>(config_.block_in);
  if (dut_->inp_we_o) {
    // LDI and LDW are the same module; the index of the scratchpad is not on its port.
    writes.push_back({dut_->inp_index_o, -1, dut_->inp_unit_o, get_bytes(dut_->inp_data_o, in)});
  }
  if (dut_->ldm_we_o) {
    const size_t bytes = dut_->ldm_mem_o == 0 ? 4 : static_cast<size_t>(config_.block_out);
    writes.push_back({dut_->ldm_index_o, dut_->ldm_mem_o, dut_->ldm_unit_o, get_bytes(dut_->ldm_data_o, bytes)});
  }
  for (int e = 0; e < 3; ++e) {
    if (dut_->done_o >> e & 1) dones.push_back({e, static_cast<bool>(dut_->error_o >> e & 1)});
  }
  dut_->clk_i = 1;
  dut_->eval();
  if (!read.empty()) std::memcpy(&dut_->st_rdata_i, read.data(), read.size());
  ++cycle;
}

bool DmaBench::wait(size_t count) {
  for (uint64_t end = cycle + 1'000'000; dones.size() < count;) {
    if (cycle >= end) return false;
    step();
  }
  return true;
}

bool DmaBench::halt_and_clear() {
  dut_->halt_i = 1;
  int idle_cycles = 0;
  for (uint64_t end = cycle + 100'000; idle_cycles < 2;) {
    if (cycle >= end) return false;
    step();
    idle_cycles = dut_->idle_o ? idle_cycles + 1 : 0;
  }
  const bool outstanding = !reads_.empty() || !writes_.empty() || !beats_.empty() || !responses_.empty();
  if (outstanding) violations.push_back("idle, though a transfer is outstanding");
  dut_->clear_i = 1;
  step();
  dut_->clear_i = 0;
  dut_->halt_i = 0;
  step();
  dones.clear();
  writes.clear();
  return true;
}

}  // namespace tenon::rtl_test
