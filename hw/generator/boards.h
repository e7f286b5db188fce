// The boards that Tenon builds for: hw/boards/NAME/board.json, one file a board beside its constraints.
//
// Semantics: every key, limit and name in the file is checked when the board is read; an unknown key is an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::generator {

// What turns RTL into a bitstream.
enum class Flow : uint8_t {
  kIce40,   // yosys, nextpnr-ice40, icepack
  kEcp5,    // yosys, nextpnr-ecp5, ecppack
  kVivado,  // a Vivado project around the processor of a Zynq
  kVitis,   // a kernel for Vitis and XRT
};
std::string_view name(Flow flow);

struct Board {
  std::string name, description;
  Flow flow = Flow::kIce40;
  std::filesystem::path directory;  // of the file
  std::string config;               // configuration, unless the user names another
  int clock_mhz = 0;                // of the oscillator; requested from Vivado and Vitis
  // Cells of the chip; those of Xilinx in RAMB36 and DSP48.
  int64_t luts = 0, registers = 0, multipliers = 0, block_rams = 0;
  // How the bitstream gets onto the board: a command, empty where the transport of `device` loads it; {bitstream} and
  // {port} are replaced.
  std::vector<std::string> flash;
  std::string port;    // for {port}, unless the user names another
  std::string device;  // URI by which the accelerator is identified; {bitstream}, {port} and {config} are replaced
  std::filesystem::path constraints;  // absolute; empty for Vitis, whose platform has them
  // kIce40, kEcp5.
  int baud = 0;
  int64_t memory_bytes = 0;
  bool sdram = false;  // the memory is an SDRAM, else on the chip
  // Options of yosys's synth_ice40 or synth_ecp5, of nextpnr, and of icepack or ecppack.
  std::vector<std::string> yosys, nextpnr, packer;
  // kVivado, kVitis.
  std::string part;
  // kVivado: properties of the block processing_system7, without CONFIG.
  std::vector<std::pair<std::string, std::string>> processor;
  // kVitis.
  std::string platform;  // the environment's PLATFORM overrides it
  std::string memory;    // memory that units are connected to; empty: Vitis selects it
  int max_units = 1;
  bool embedded = false;  // a system on chip, whose processor is the host

  bool open() const { return flow == Flow::kIce40 || flow == Flow::kEcp5; }
  int clocks_per_bit() const { return (clock_mhz * 1'000'000 + baud / 2) / baud; }
};

// The boards of TENON_BOARD_PATH (directories, colon separated) and of Tenon, sorted by name; the first of a name
// counts.
Expected<std::vector<Board>> boards();
Expected<Board> find_board(std::string_view name);
Expected<Board> read_board(const std::filesystem::path& directory);

}  // namespace tenon::generator
