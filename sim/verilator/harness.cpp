// The harness of a Verilated `tenon`: clock and reset, the AXI4 memory, AXI4-Lite register access, the trace ports. The
// harness is compiled together with the model into one shared object; see abi.h.
//
// Time: outputs are sampled while the clock is low and all signals have settled, then come the rising edge, the
// memory's edge and the falling edge with the new inputs. So every signal between the two sides is registered on one
// side.
//
// No register uses the falling edge, and AXI has no combinational path from a slave's outputs to a master's. So the new
// inputs must settle only where signals are observed before the next rising edge, which settles them itself: by
// observers, the VCD file, AXI4-Lite. Otherwise one evaluation per cycle suffices.
#include <verilated.h>
#ifdef TENON_VCD
#include <verilated_vcd_c.h>
#endif
#if VM_COVERAGE
#include <verilated_cov.h>
#endif

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "Vtenon.h"
#include "Vtenon___024root.h"
#include "abi.h"
#include "axi_memory.h"

namespace {

using tenon::sim::AxiMemory;
using tenon::sim::AxiMemoryOptions;

constexpr int kEngines = TENON_ENGINES;
constexpr int kRegisterTimeout = 10000;  // cycles

thread_local std::string* current_failure = nullptr;  // of the model that runs, for Verilator's hooks

// Makes a model the thread's current model for the lifetime of the object. Verilator's functions without a context use
// the thread's context, which is that of the model that was created last, even when this model is destroyed already.
struct Running {
  Running(VerilatedContext& context, std::string& failure) {
    Verilated::threadContextp(&context);
    current_failure = &failure;
  }
  ~Running() { current_failure = nullptr; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

// Sets the model's previous clock value to low, without an evaluation. Returns false where this version of Verilator
// has an unknown name for the previous value.
template <class Model>
bool forget_edge(Model& model) {
  if constexpr (requires { model.rootp->__Vtrigrprev__TOP__clk_i; }) {  // 5.006
    model.rootp->__Vtrigrprev__TOP__clk_i = 0;
    return true;
  } else if constexpr (requires { model.rootp->__Vtrigprevexpr___TOP__clk_i__0; }) {  // from 5.018 on
    model.rootp->__Vtrigprevexpr___TOP__clk_i__0 = 0;
    return true;
  } else {
    return false;
  }
}

// A port of any width as bytes: Verilator stores them as little-endian words.
template <class Port>
const uint8_t* bytes_of(const Port& port) {
  return reinterpret_cast<const uint8_t*>(&port);
}
template <class Port>
void copy_to(Port& port, const uint8_t* bytes, size_t count) {
  static_assert(std::is_trivially_copyable_v<Port>);
  std::memcpy(&port, bytes, count);
}

}  // namespace

struct tenon_rtl {
  explicit tenon_rtl(const tenon_rtl_options& options)
      : top_((context_.randReset(2), context_.randSeed(static_cast<int>(options.seed & 0x7fffffff) + 1), &context_)),
        memory_(AxiMemoryOptions{
            options.memory, options.memory_bytes, kBeatBytes, options.read_latency, options.write_latency,
            options.outstanding, options.max_beats, options.stall_percent, options.interleave != 0, options.seed,
            static_cast<tenon::sim::WriteOrder>(options.write_order), options.late_ready != 0, options.read_error}),
        stall_percent_(options.stall_percent),
        random_(options.seed * 2 + 1),
        coverage_path_(options.coverage_path != nullptr ? options.coverage_path : "") {
    memory_.on_write([this](uint32_t tag, uint64_t address, const uint8_t* data, uint32_t bytes) {
      if (observer_.dram != nullptr) observer_.dram(observer_.context, tag, address, data, bytes);
    });
    const Running running(context_, failure_);
#ifdef TENON_VCD
    if (options.trace_path != nullptr) {
      context_.traceEverOn(true);
      vcd_ = std::make_unique<VerilatedVcdC>();
      top_.trace(vcd_.get(), 99);
      vcd_->open(options.trace_path);
    }
#endif
    top_.clk_i = 0;
    top_.s_axi_control_awvalid = top_.s_axi_control_wvalid = top_.s_axi_control_arvalid = 0;
    top_.s_axi_control_bready = top_.s_axi_control_rready = 1;
    drive();
    // Resets are asynchronous: only an edge of the reset takes effect, and registers start with random contents.
    top_.rst_ni = 1;
    eval();
    top_.rst_ni = 0;
    eval();
    for (int i = 0; i < 8; ++i) cycle();
    top_.rst_ni = 1;
    eval();
    for (int i = 0; i < 4; ++i) cycle();
  }

  ~tenon_rtl() {
    const Running running(context_, failure_);  // also for the destructors of the members
    top_.final();
#ifdef TENON_VCD
    if (vcd_) vcd_->close();
#endif
#if VM_COVERAGE
    if (!coverage_path_.empty()) context_.coveragep()->write(coverage_path_.c_str());
#endif
  }

  void observe(const tenon_rtl_observer* observer) {
    observer_ = observer != nullptr ? *observer : tenon_rtl_observer{};
    observed_ = observer_.write != nullptr || observer_.dram != nullptr || observer_.done != nullptr ||
                observer_.interval != nullptr;
    for (auto& instructions : in_flight_) instructions.clear();
    waiting_ = 0;
    const Running running(context_, failure_);
    eval();  // settles the signals that the next cycle observes
  }

  // A register access gives its address and its data, and takes the answer, some cycles late where the memory stalls.
  uint32_t read_register(uint32_t offset) {
    const Running running(context_, failure_);
    uint32_t value = 0;
    bool addressed = false, answered = false;
    for (int i = 0; i < kRegisterTimeout && !answered; ++i) {
      if (!addressed && !top_.s_axi_control_arvalid && !stall()) {
        top_.s_axi_control_araddr = offset;
        raise(top_.s_axi_control_arvalid, "ARVALID");
      }
      top_.s_axi_control_rready = !stall();
      eval();
      const bool accepted = top_.s_axi_control_arvalid && top_.s_axi_control_arready;
      if (top_.s_axi_control_rvalid && !addressed) fail("AXI4-Lite: RVALID comes before the read's address");
      answered = top_.s_axi_control_rvalid && top_.s_axi_control_rready;
      if (answered) value = top_.s_axi_control_rdata;
      cycle();
      if (accepted) top_.s_axi_control_arvalid = 0;
      addressed = addressed || accepted;
      if (!failure_.empty()) return 0;
    }
    if (!answered) fail("the register read of offset " + std::to_string(offset) + " is not answered");
    return value;
  }

  // Where the memory stalls, half of the arguments are written in two parts by strobes, with other bytes between them.
  void write_register(uint32_t offset, uint32_t value) {
    const Running running(context_, failure_);
    const bool argument = offset >= 0x10 && offset < 0x80;
    if (stall_percent_ == 0 || !argument || next_random() % 2 == 0) return write_bytes(offset, value, 0xf);
    const uint32_t strobes = 1 + next_random() % 14, other = next_random();
    uint32_t mask = 0;
    for (uint32_t i = 0; i < 4; ++i) mask |= (strobes >> i & 1) != 0 ? 0xffu << 8 * i : 0;
    write_bytes(offset, (value & mask) | (other & ~mask), strobes);
    write_bytes(offset, (value & ~mask) | (other & mask), strobes ^ 0xf);
  }

  void step(uint64_t cycles) {
    const Running running(context_, failure_);
    for (uint64_t i = 0; i < cycles && failure_.empty(); ++i) cycle();
  }

  uint64_t cycles() const { return cycles_; }
  uint32_t interrupt() const { return top_.interrupt_o; }
  const char* failure() const { return failure_.c_str(); }
  void counts(tenon_rtl_counts& counts) const {
    counts = counts_;
    const tenon::sim::AxiTraffic& traffic = memory_.traffic();
    counts.read_beats = traffic.read_beats;
    counts.write_beats = traffic.write_beats;
    counts.read_bursts = traffic.read_bursts;
    counts.write_bursts = traffic.write_bursts;
  }

 private:
  static constexpr uint32_t kBeatBytes = TENON_AXI_BYTES;

  void write_bytes(uint32_t offset, uint32_t value, uint32_t strobes) {
    bool addressed = false, written = false, answered = false;
    for (int i = 0; i < kRegisterTimeout && !answered; ++i) {
      if (!addressed && !top_.s_axi_control_awvalid && !stall()) {
        top_.s_axi_control_awaddr = offset;
        raise(top_.s_axi_control_awvalid, "AWVALID");
      }
      if (!written && !top_.s_axi_control_wvalid && !stall()) {
        top_.s_axi_control_wdata = value;
        top_.s_axi_control_wstrb = strobes;
        raise(top_.s_axi_control_wvalid, "WVALID");
      }
      top_.s_axi_control_bready = !stall();
      eval();
      const bool aw = top_.s_axi_control_awvalid && top_.s_axi_control_awready;
      const bool w = top_.s_axi_control_wvalid && top_.s_axi_control_wready;
      if (top_.s_axi_control_bvalid && !(addressed && written)) fail("AXI4-Lite: BVALID comes before the write");
      answered = top_.s_axi_control_bvalid && top_.s_axi_control_bready;
      cycle();
      if (aw) top_.s_axi_control_awvalid = 0;
      if (w) top_.s_axi_control_wvalid = 0;
      addressed = addressed || aw;
      written = written || w;
      if (!failure_.empty()) return;
    }
    if (!answered) fail("the register write of offset " + std::to_string(offset) + " is not answered");
  }

  void fail(const std::string& failure) {
    if (failure_.empty()) failure_ = failure;
  }

  void eval() { top_.eval(); }

  // Of AXI4-Lite; by a generator of its own, so that register accesses leave the memory's stalls as they are.
  bool stall() { return stall_percent_ != 0 && next_random() % 100 < stall_percent_; }
  uint32_t next_random() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(random_ >> 33);
  }

  // Raises a valid of AXI4-Lite. AXI forbids combinational paths from inputs to outputs, so that no output may change.
  template <class Port>
  void raise(Port& valid, const char* name) {
    const auto outputs = [this] {
      return std::array<uint32_t, 6>{top_.s_axi_control_awready, top_.s_axi_control_wready, top_.s_axi_control_arready,
                                     top_.s_axi_control_bvalid,  top_.s_axi_control_rvalid, top_.s_axi_control_rdata};
    };
    eval();
    const auto before = outputs();
    valid = 1;
    eval();
    if (outputs() != before) fail(std::string("AXI4-Lite: an output depends on ") + name + " in the same cycle");
  }

  void dump(uint64_t half) {
#ifdef TENON_VCD
    if (vcd_) vcd_->dump(cycles_ * 10 + half * 5);
#else
    (void)half;
#endif
  }

  void cycle() {
    AxiMemory::Inputs& in = inputs_;
    in.ar.valid = top_.m_axi_gmem_arvalid;
    if (in.ar.valid) {
      in.ar = {true,
               top_.m_axi_gmem_araddr,
               top_.m_axi_gmem_arlen,
               top_.m_axi_gmem_arsize,
               top_.m_axi_gmem_arburst,
               top_.m_axi_gmem_arid};
    }
    in.aw.valid = top_.m_axi_gmem_awvalid;
    if (in.aw.valid) {
      in.aw = {true,
               top_.m_axi_gmem_awaddr,
               top_.m_axi_gmem_awlen,
               top_.m_axi_gmem_awsize,
               top_.m_axi_gmem_awburst,
               top_.m_axi_gmem_awid};
    }
    in.w.valid = top_.m_axi_gmem_wvalid;
    if (in.w.valid) {
      in.w.last = top_.m_axi_gmem_wlast;
      in.w.strobe = top_.m_axi_gmem_wstrb;
      in.w.tag = top_.trace_st_index_o;
      std::memcpy(in.w.bytes.data(), bytes_of(top_.m_axi_gmem_wdata), kBeatBytes);
    }
    in.r_ready = top_.m_axi_gmem_rready;
    in.b_ready = top_.m_axi_gmem_bready;
    if (observed_ && top_.rst_ni) report_trace();
    if (!top_.rst_ni && (in.ar.valid || in.aw.valid || in.w.valid)) fail("AXI: a valid is high in reset");

    dump(0);
    top_.clk_i = 1;
    eval();
    dump(1);
    memory_.clock(in);
    if (!memory_.failure().empty()) fail(memory_.failure());
    drive();
    top_.clk_i = 0;
    if (!forget_edge(top_) || needs_settled_signals()) eval();
    ++cycles_;
  }

  bool needs_settled_signals() const {
#ifdef TENON_VCD
    if (vcd_) return true;
#endif
    return observed_;
  }

  void drive() {
    const AxiMemory::Outputs& out = memory_.outputs();
    top_.m_axi_gmem_arready = out.ar_ready;
    top_.m_axi_gmem_awready = out.aw_ready;
    top_.m_axi_gmem_wready = out.w_ready;
    top_.m_axi_gmem_rvalid = out.r_valid;
    if (out.r_valid) {
      top_.m_axi_gmem_rlast = out.r_last;
      top_.m_axi_gmem_rresp = out.r_resp;
      top_.m_axi_gmem_rid = out.r_id;
      copy_to(top_.m_axi_gmem_rdata, out.r_bytes.data(), kBeatBytes);
    }
    top_.m_axi_gmem_bvalid = out.b_valid;
    top_.m_axi_gmem_bresp = out.b_resp;
    top_.m_axi_gmem_bid = out.b_id;
  }

  void write(uint32_t kind, uint32_t instruction, uint64_t address, const uint8_t* data) {
    observer_.write(observer_.context, kind, instruction, address, data);
  }

  // Reports the events of the trace ports at the next edge. Writes come first: an instruction may be done in the cycle
  // of its last write.
  void report_trace() {
    for (uint32_t e = 0; e < kEngines; ++e) {
      counts_.busy[e] += top_.trace_busy_o >> e & 1;
      counts_.waiting[e] += top_.trace_wait_o >> e & 1;
    }
    if (observer_.write != nullptr) {
      if (top_.trace_ldi_valid_o)
        write(TENON_RTL_INP, top_.trace_ldi_index_o, top_.trace_ldi_unit_o, bytes_of(top_.trace_ldi_data_o));
      if (top_.trace_ldw_valid_o)
        write(TENON_RTL_WGT, top_.trace_ldw_index_o, top_.trace_ldw_unit_o, bytes_of(top_.trace_ldw_data_o));
      if (top_.trace_ldm_valid_o)
        write(top_.trace_ldm_mem_o, top_.trace_ldm_index_o, top_.trace_ldm_unit_o, bytes_of(top_.trace_ldm_data_o));
      if (top_.trace_acc_valid_o)
        write(TENON_RTL_ACC_ELEMENT, top_.trace_acc_index_o, top_.trace_acc_addr_o, bytes_of(top_.trace_acc_data_o));
      if (top_.trace_out_valid_o)
        write(TENON_RTL_OUT_ELEMENT, top_.trace_out_index_o, top_.trace_out_addr_o, bytes_of(top_.trace_out_data_o));
      if (top_.trace_inp_valid_o)
        write(TENON_RTL_INP, top_.trace_inp_index_o, top_.trace_inp_addr_o, bytes_of(top_.trace_inp_data_o));
    }
    const uint32_t start = top_.trace_start_o, done = top_.trace_done_o, wait = top_.trace_wait_o;
    if ((start | done | (wait ^ waiting_)) == 0) return;
    for (uint32_t e = 0; e < kEngines; ++e) {
      uint32_t index;
      std::memcpy(&index, bytes_of(top_.trace_head_o) + 4 * e, 4);
      if (((wait ^ waiting_) >> e & 1) != 0) {
        if ((wait >> e & 1) != 0) {
          wait_begin_[e] = cycles_;
          wait_index_[e] = index;
        } else {
          interval(e, 1, wait_index_[e], wait_begin_[e]);
        }
      }
      if ((start >> e & 1) != 0) in_flight_[e].push_back({index, cycles_});
      if ((done >> e & 1) != 0 && !in_flight_[e].empty()) {
        const Instruction& finished = in_flight_[e].front();
        interval(e, 0, finished.index, finished.begin);
        if (observer_.done != nullptr) observer_.done(observer_.context, finished.index);
        in_flight_[e].pop_front();
      }
    }
    waiting_ = wait;
  }

  void interval(uint32_t engine, uint32_t kind, uint32_t instruction, uint64_t begin) {
    if (observer_.interval != nullptr) observer_.interval(observer_.context, engine, kind, instruction, begin, cycles_);
  }

  struct Instruction {
    uint32_t index;
    uint64_t begin;
  };

  VerilatedContext context_;
  Vtenon top_;
  AxiMemory memory_;
  AxiMemory::Inputs inputs_;
  tenon_rtl_observer observer_{};
  bool observed_ = false;
  std::deque<Instruction> in_flight_[kEngines];
  uint32_t waiting_ = 0;
  uint64_t wait_begin_[kEngines] = {};
  uint32_t wait_index_[kEngines] = {};
  uint64_t cycles_ = 0;
  tenon_rtl_counts counts_{};  // without the traffic
  const uint32_t stall_percent_;
  uint64_t random_;
  const std::string coverage_path_;
  std::string failure_;
#ifdef TENON_VCD
  std::unique_ptr<VerilatedVcdC> vcd_;
#endif
};

// Verilator's exit hooks ($stop of a failed assertion, fatal errors) end the run, not the process.
void vl_finish(const char*, int, const char*) VL_MT_UNSAFE {}
void vl_stop(const char* file, int line, const char*) VL_MT_UNSAFE {
  if (current_failure != nullptr && current_failure->empty())
    *current_failure = std::string("assertion failed at ") + file + ":" + std::to_string(line);
}
void vl_fatal(const char* file, int line, const char*, const char* message) VL_MT_UNSAFE {
  if (current_failure != nullptr && current_failure->empty())
    *current_failure = std::string(file) + ":" + std::to_string(line) + ": " + message;
}

#ifdef TENON_PROFILE
// An instrumented model gives its counters on request. The definition of the variable keeps the profile runtime from
// writing them to a file of its own name when the process ends.
extern "C" {
int __llvm_profile_runtime = 0;
uint64_t __llvm_profile_get_size_for_buffer(void);
int __llvm_profile_write_buffer(char* buffer);

__attribute__((visibility("default"))) uint64_t tenon_rtl_profile(char* buffer) {
  if (buffer != nullptr && __llvm_profile_write_buffer(buffer) != 0) return 0;
  return __llvm_profile_get_size_for_buffer();
}
}
#endif

extern "C" __attribute__((visibility("default"))) const tenon_rtl_api* tenon_rtl_get() {
  static const tenon_rtl_api api = {
      .abi = TENON_RTL_ABI,
#ifdef TENON_VCD
      .traces = 1,
#else
      .traces = 0,
#endif
      .create = [](const tenon_rtl_options* options) { return new tenon_rtl(*options); },
      .destroy = [](tenon_rtl* rtl) { delete rtl; },
      .observe = [](tenon_rtl* rtl, const tenon_rtl_observer* observer) { rtl->observe(observer); },
      .read_register = [](tenon_rtl* rtl, uint32_t offset) { return rtl->read_register(offset); },
      .write_register = [](tenon_rtl* rtl, uint32_t offset, uint32_t value) { rtl->write_register(offset, value); },
      .step = [](tenon_rtl* rtl, uint64_t cycles) { rtl->step(cycles); },
      .cycles = [](const tenon_rtl* rtl) { return rtl->cycles(); },
      .counts = [](const tenon_rtl* rtl, tenon_rtl_counts* counts) { rtl->counts(*counts); },
      .interrupt = [](const tenon_rtl* rtl) { return rtl->interrupt(); },
      .failure = [](const tenon_rtl* rtl) { return rtl->failure(); },
  };
  return &api;
}
