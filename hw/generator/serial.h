// The design of a board with a serial line (hw/serial) around the accelerator of one configuration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::generator {

struct SerialDesign {
  int clocks_per_bit = 12;       // at least 4
  uint64_t memory_bytes = 8192;  // a power of two within the limits of hw/spec/serial.h
  bool sdram = false;            // the memory is an SDRAM of 16 data pins, else on the chip
  int clock_mhz = 25;            // of an SDRAM
};

// serial_pkg.sv: the design's parameters and the facts of hw/spec/serial.h.
std::string serial_package_text(const SerialDesign& design);

// Writes into `directory` what generate() writes, then serial_pkg.sv and the sources of hw/serial, all of them in
// files.f; the top module is serial_top, or with a power-on reset board_top, or board_top_sdram. Returns the files
// written.
Expected<std::vector<std::filesystem::path>> generate_serial(const spec::Config& config, const SerialDesign& design,
                                                             const std::filesystem::path& directory);

}  // namespace tenon::generator
