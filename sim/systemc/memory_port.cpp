#include "sim/systemc/memory_port.h"

#include <cstring>

#include "sim/timing/transfer_plan.h"

namespace tenon::sim::systemc {

MemoryPort::MemoryPort() : socket("memory") {
  socket.register_invalidate_direct_mem_ptr(this, &MemoryPort::invalidate);
}

std::byte* MemoryPort::direct(uint64_t address, uint64_t bytes, bool write) {
  if (!dmi_ && ask_) {
    tlm::tlm_generic_payload payload;
    payload.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(address);
    tlm::tlm_dmi dmi;
    if (socket->get_direct_mem_ptr(payload, dmi)) dmi_ = dmi;
    ask_ = false;
  }
  if (!dmi_ || !(write ? dmi_->is_write_allowed() : dmi_->is_read_allowed())) return nullptr;
  if (address < dmi_->get_start_address() || address + bytes < address ||
      address + bytes - 1 > dmi_->get_end_address()) {
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(dmi_->get_dmi_ptr()) + (address - dmi_->get_start_address());
}

bool MemoryPort::move(tlm::tlm_command command, uint64_t address, std::byte* data, uint64_t bytes) {
  if (bytes == 0) return true;
  const bool write = command == tlm::TLM_WRITE_COMMAND;
  if (std::byte* at = direct(address, bytes, write)) {
    std::memcpy(write ? at : data, write ? data : at, bytes);
    return true;
  }
  // A transaction stays inside one 4 KiB block, as an AXI burst does.
  constexpr uint64_t kBlock = timing::kBurstBoundary;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t length = std::min(bytes - done, kBlock - (address + done) % kBlock);
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(address + done);
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(data + done));
    payload.set_data_length(static_cast<unsigned>(length));
    payload.set_streaming_width(static_cast<unsigned>(length));
    payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(payload, delay);
    ++transactions_;
    if (!payload.is_response_ok()) return false;
    ask_ = payload.is_dmi_allowed();
    done += length;
  }
  return true;
}

void MemoryPort::invalidate(sc_dt::uint64, sc_dt::uint64) {
  dmi_.reset();
  ask_ = true;
}

}  // namespace tenon::sim::systemc
