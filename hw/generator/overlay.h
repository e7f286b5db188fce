// The device tree overlay for an accelerator on a Zynq, which the kernel requires before the transport uio: works.
#pragma once

#include <cstdint>
#include <string>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::generator {

enum class Family : uint8_t { kZynq7000, kZynqMp };

struct OverlayOptions {
  Family family = Family::kZynq7000;
  uint64_t address = 0;    // bus address of the registers; 0: the first that Vivado assigns
  uint32_t interrupt = 0;  // shared peripheral interrupt, as in the device tree; 0: of the PL's first line
  uint32_t clock_mhz = 100;
  uint64_t memory_bytes = uint64_t{64} << 20;
  std::string firmware = "tenon.bit.bin";  // in /lib/firmware
};

// The first bus address that Vivado gives to registers in the PL.
uint64_t register_address(Family family);

// The source of an overlay (.dtso): firmware, clock, a UIO device "tenon", a u-dma-buf "udmabuf0".
Expected<std::string> overlay_text(const spec::Config& config, const OverlayOptions& options);

}  // namespace tenon::generator
