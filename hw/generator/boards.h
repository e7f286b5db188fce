// The boards that Vitis builds for, with the facts that a recipe requires.
#pragma once

#include <span>
#include <string_view>

namespace tenon::generator {

struct Board {
  std::string_view name;
  std::string_view doc;
  std::string_view part;
  std::string_view platform;  // Vitis platform; the environment's PLATFORM overrides it
  std::string_view memory;    // memory that units are connected to; empty: Vitis selects it
  int clock_mhz;              // requested clock, unless the user gives another
  int max_units;
  bool embedded;  // a system on chip, whose processor is the host
};

std::span<const Board> boards();
const Board* find_board(std::string_view name);  // nullptr: unknown

}  // namespace tenon::generator
