#include "hw/spec/own_lanes.h"

#include "hw/spec/config.h"

namespace tenon::spec {

int64_t own_row_steps(const OwnRow& row, int64_t passes) {
  const bool overlaps = (row.moves == 1 || row.moves == 2) && row.moves < row.columns;
  const int64_t enter = overlaps ? (row.outputs - 1) * row.moves + row.columns : row.outputs * row.columns;
  const int64_t banks = row.row_distance % kInputBanks;
  const int64_t reads = row.rows == 1 || banks % 2 != 0 ? 1 : banks == 0 ? row.rows : (row.rows + 1) / 2;
  return enter * (reads - 1 + passes);
}

}  // namespace tenon::spec
