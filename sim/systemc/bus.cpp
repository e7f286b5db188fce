#include "sim/systemc/bus.h"

#include <cstring>

#include "hw/spec/registers.h"

namespace tenon::sim::systemc {

Memory::Memory(const sc_core::sc_module_name& name, std::span<std::byte> bytes, bool dmi)
    : sc_module(name), socket("socket"), bytes_(bytes), dmi_(dmi) {
  socket.register_b_transport(this, &Memory::transport);
  socket.register_get_direct_mem_ptr(this, &Memory::direct);
  socket.register_transport_dbg(this, &Memory::debug);
}

bool Memory::inside(const tlm::tlm_generic_payload& payload) const {
  return payload.get_address() <= bytes_.size() && payload.get_data_length() <= bytes_.size() - payload.get_address();
}

void Memory::transport(tlm::tlm_generic_payload& payload, sc_core::sc_time&) {
  // The initiator models the time of the data: it has the bursts, and sim/timing has the latency of the port.
  if (!inside(payload)) return payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  if (payload.get_byte_enable_ptr() != nullptr) {
    return payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  }
  if (payload.get_streaming_width() < payload.get_data_length()) {
    return payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
  }
  debug(payload);
  payload.set_dmi_allowed(dmi_);
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

bool Memory::direct(tlm::tlm_generic_payload&, tlm::tlm_dmi& dmi) {
  if (!dmi_) return false;
  dmi.set_dmi_ptr(reinterpret_cast<unsigned char*>(bytes_.data()));
  dmi.set_start_address(0);
  dmi.set_end_address(bytes_.size() - 1);
  dmi.allow_read_write();
  return true;
}

unsigned Memory::debug(tlm::tlm_generic_payload& payload) {
  if (!inside(payload)) return 0;
  std::byte* at = bytes_.data() + payload.get_address();
  if (payload.is_read()) std::memcpy(payload.get_data_ptr(), at, payload.get_data_length());
  if (payload.is_write()) std::memcpy(at, payload.get_data_ptr(), payload.get_data_length());
  return payload.get_data_length();
}

Interconnect::Interconnect(const sc_core::sc_module_name& name)
    : sc_module(name),
      from_cpu("from_cpu"),
      from_accelerator("from_accelerator"),
      to_memory("to_memory"),
      to_control("to_control") {
  for (auto* in : {&from_cpu, &from_accelerator}) {
    in->register_b_transport(this, &Interconnect::transport);
    in->register_get_direct_mem_ptr(this, &Interconnect::direct);
    in->register_transport_dbg(this, &Interconnect::debug);
  }
  to_memory.register_invalidate_direct_mem_ptr(this, &Interconnect::invalidate);
}

Interconnect::Out* Interconnect::route(uint64_t& address) {
  if (address < kControlBase) return &to_memory;
  if (address - kControlBase >= spec::kRegisterSpaceBytes) return nullptr;
  address -= kControlBase;
  return &to_control;
}

void Interconnect::transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const uint64_t before = payload.get_address();
  uint64_t address = before;
  Out* out = route(address);
  if (out == nullptr) return payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  payload.set_address(address);
  (*out)->b_transport(payload, delay);
  payload.set_address(before);
}

// Only memory grants DMI, and memory starts at address 0: no address needs translation.
bool Interconnect::direct(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) {
  return payload.get_address() < kControlBase && to_memory->get_direct_mem_ptr(payload, dmi);
}

unsigned Interconnect::debug(tlm::tlm_generic_payload& payload) {
  return payload.get_address() < kControlBase ? to_memory->transport_dbg(payload) : 0;
}

void Interconnect::invalidate(sc_dt::uint64 begin, sc_dt::uint64 end) {
  from_cpu->invalidate_direct_mem_ptr(begin, end);
  from_accelerator->invalidate_direct_mem_ptr(begin, end);
}

}  // namespace tenon::sim::systemc
