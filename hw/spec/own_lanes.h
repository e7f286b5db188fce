// The steps of the tensor core for windows of own lanes (`own` of mac, isa.h): what hw/rtl/own_steps.sv does, for the
// cycle model and for the estimates of the compiler.
#pragma once

#include <cstdint>

namespace tenon::spec {

// A row of outputs of a command with own lanes.
struct OwnRow {
  int64_t rows = 1, columns = 1;  // of the window
  int64_t row_distance = 1;       // vectors of inp from row to row of the window
  int64_t moves = 1;  // columns by which the window moves from output to output; 0: by no whole number of them
  int64_t outputs = 1;
};

// The steps of a row. A column of a window enters in a step, and of a window that has columns in common with the one
// before, since it moves by one or by two, only those that it has not; a step takes a cycle more for each time that a
// bank of inp is read again. `passes` is 2 where two lanes share their input (packed_products), else 1.
int64_t own_row_steps(const OwnRow& row, int64_t passes);

}  // namespace tenon::spec
