// The boards that Vitis builds for: what a recipe has to know of each.
#pragma once

#include <span>
#include <string_view>

namespace tenon::generator {

struct Board {
  std::string_view name;
  std::string_view doc;
  std::string_view part;
  std::string_view platform;  // of Vitis; the environment's PLATFORM overrides it
  std::string_view memory;    // that units are connected to; empty: Vitis chooses
  int clock_mhz;              // asked for, unless the user says another
  int most_units;
  bool embedded;  // a system on chip, whose processor is the host
};

std::span<const Board> boards();
const Board* find_board(std::string_view name);  // nullptr: unknown

}  // namespace tenon::generator
