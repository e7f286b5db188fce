// The accelerator's memory socket: transfers ranges of bytes by DMI where the target grants it, else by transactions.
#pragma once

#include <cstddef>
#include <optional>

#include "sim/systemc/time.h"

namespace tenon::sim::systemc {

class MemoryPort {
 public:
  MemoryPort();

  tlm_utils::simple_initiator_socket<MemoryPort> socket;

  // Returns whether the target answered OK.
  bool read(uint64_t address, std::byte* data, uint64_t bytes) {
    return move(tlm::TLM_READ_COMMAND, address, data, bytes);
  }
  bool write(uint64_t address, const std::byte* data, uint64_t bytes) {
    return move(tlm::TLM_WRITE_COMMAND, address, const_cast<std::byte*>(data), bytes);
  }
  uint64_t transactions() const { return transactions_; }
  // The memory at the address if the target grants it, or nullptr.
  std::byte* direct(uint64_t address, uint64_t bytes, bool write);

 private:
  bool move(tlm::tlm_command command, uint64_t address, std::byte* data, uint64_t bytes);
  void invalidate(sc_dt::uint64 begin, sc_dt::uint64 end);

  std::optional<tlm::tlm_dmi> dmi_;
  bool ask_ = true;  // whether to request DMI; after a refusal, later responses hint whether to request it again
  uint64_t transactions_ = 0;
};

}  // namespace tenon::sim::systemc
