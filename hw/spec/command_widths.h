// The widths of a command's fields in the RTL.
//
// Semantics: a configuration needs less of these than the instructions have bits for. A command outside its scratchpad
// is never started, so the base profile's transfers have no more units, rows and bytes than the largest scratchpad; the
// native profile's go by the instruction's fields.
#pragma once

#include "hw/spec/config.h"

namespace tenon::spec {

struct CommandWidths {
  int slot = 32;    // the index of a slot, and the count
  int unit = 23;    // of a transfer: the first unit,
  int row = 17;     // rows,
  int vector = 24;  // vectors of a row,
  int total = 21;   // units,
  int length = 32;  // bytes of a row,
  int left = 18;    // and, signed, the padding before it
  int end = 34;     // and its end
  int ahead = 20;   // signed, from the window's first byte to a vector's
  int step = 32;    // the bytes between rows: no more than addresses have
  int loop = 16;    // an index that loops advance: of a scratchpad, plus a factor and a micro-op
  int uop = 15;     // a micro-op's index, plus one
};
CommandWidths command_widths(const Config& config);

}  // namespace tenon::spec
