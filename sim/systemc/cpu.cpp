#include "sim/systemc/cpu.h"

#include <algorithm>
#include <cassert>

#include "hw/spec/registers.h"
#include "sim/systemc/bus.h"

namespace tenon::sim::systemc {
namespace {

constexpr uint64_t kPollCycles = 64;  // between two reads of the status register, where no interrupt is enabled

}  // namespace

Cpu::Cpu(const sc_core::sc_module_name& name) : sc_module(name), socket("socket"), interrupt("interrupt") {
  sc_core::sc_spawn([this] { run(); }, "program");
}

uint32_t Cpu::read(uint32_t offset) {
  offset_ = offset;
  ask(Request::kRead);
  return value_;
}

void Cpu::write(uint32_t offset, uint32_t value) {
  offset_ = offset;
  value_ = value;
  ask(Request::kWrite);
}

bool Cpu::wait_idle(uint64_t cycles) {
  cycles_ = cycles;
  ask(Request::kWait);
  return idle_;
}

// Runs the simulation until run() has served the request and pauses it.
void Cpu::ask(Request request) {
  request_ = request;
  asked_.notify(sc_core::SC_ZERO_TIME);
  sc_core::sc_start();
  assert(request_ == Request::kNone);
}

void Cpu::run() {
  while (true) {
    if (request_ == Request::kNone) sc_core::wait(asked_);
    switch (request_) {
      case Request::kNone: continue;
      case Request::kRead: value_ = access(tlm::TLM_READ_COMMAND, offset_, 0); break;
      case Request::kWrite: access(tlm::TLM_WRITE_COMMAND, offset_, value_); break;
      case Request::kWait: idle_ = wait_for_idle(); break;
    }
    request_ = Request::kNone;
    sc_core::sc_pause();
    sc_core::wait(asked_);
  }
}

uint32_t Cpu::access(tlm::tlm_command command, uint32_t offset, uint32_t value) {
  tlm::tlm_generic_payload payload;
  payload.set_command(command);
  payload.set_address(kControlBase + offset);
  payload.set_data_ptr(reinterpret_cast<unsigned char*>(&value));
  payload.set_data_length(sizeof value);
  payload.set_streaming_width(sizeof value);
  payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  socket->b_transport(payload, delay);
  sc_core::wait(delay);
  return payload.is_response_ok() ? value : 0;  // a register that does not exist reads 0, as in the RTL
}

bool Cpu::interrupt_enabled() {
  return (access(tlm::TLM_READ_COMMAND, spec::reg::kGlobalInterruptEnable, 0) & 1) != 0 &&
         (access(tlm::TLM_READ_COMMAND, spec::reg::kInterruptEnable, 0) & 1) != 0;
}

bool Cpu::wait_for_idle() {
  const uint64_t begin = now_in_cycles();
  const bool by_interrupt = interrupt_enabled();
  while (true) {
    if ((access(tlm::TLM_READ_COMMAND, spec::reg::kStatus, 0) & spec::kStatusBusy) == 0) return true;
    const uint64_t passed = now_in_cycles() - begin;
    if (passed >= cycles_) return false;
    const uint64_t remaining = cycles_ - passed;
    // A line that is high already, from a launch without acknowledgement, has no edge to wait for: then poll.
    if (by_interrupt && !interrupt.read()) sc_core::wait(cycles(remaining), interrupt.posedge_event());
    else sc_core::wait(cycles(std::min(remaining, kPollCycles)));
  }
}

}  // namespace tenon::sim::systemc
