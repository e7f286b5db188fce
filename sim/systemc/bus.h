// The platform's interconnect and memory: TLM-2.0 targets with b_transport, DMI and debug access.
//
// Semantics: addresses below kControlBase select memory, the register space from there on the accelerator; every other
// address is answered with TLM_ADDRESS_ERROR_RESPONSE, as AXI answers DECERR. A transaction's delay is annotated, never
// waited for.
#pragma once

#include <cstddef>
#include <span>

#include "sim/systemc/time.h"

namespace tenon::sim::systemc {

inline constexpr uint64_t kControlBase = uint64_t{1} << 40;

class Memory final : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<Memory> socket;

  // `bytes` outlives the module. Without DMI every access is a transaction.
  Memory(const sc_core::sc_module_name& name, std::span<std::byte> bytes, bool dmi);

 private:
  bool inside(const tlm::tlm_generic_payload& payload) const;
  void transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  bool direct(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi);
  unsigned debug(tlm::tlm_generic_payload& payload);

  std::span<std::byte> bytes_;
  bool dmi_;
};

class Interconnect final : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<Interconnect> from_cpu, from_accelerator;
  tlm_utils::simple_initiator_socket<Interconnect> to_memory, to_control;

  explicit Interconnect(const sc_core::sc_module_name& name);

 private:
  using Out = tlm_utils::simple_initiator_socket<Interconnect>;
  Out* route(uint64_t& address);  // makes the address relative to the target; nullptr: no target
  void transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  bool direct(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi);
  unsigned debug(tlm::tlm_generic_payload& payload);
  void invalidate(sc_dt::uint64 begin, sc_dt::uint64 end);
};

}  // namespace tenon::sim::systemc
