// The ranges of bytes that a transfer accesses.
#include "sim/timing/dma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/random.h"
#include "tests/seed.h"

namespace tenon::sim {
namespace {

// The smallest range with all ranges of all rows.
Range hull_of_rows(const Dma& dma) {
  std::vector<Range> ranges;
  for (int64_t y = 0; y < dma.rows; ++y) append_row_ranges(dma, y, ranges);
  if (ranges.empty()) return {};
  Range hull = ranges[0];
  for (const Range& range : ranges) hull = {std::min(hull.begin, range.begin), std::max(hull.end, range.end)};
  return hull;
}

TEST(Dma, TheBoundingRangeIsTheHullOfTheRangesOfAllRows) {
  Random random(test_seed(20));
  int empty = 0;
  for (int i = 0; i < 20000; ++i) {
    Dma dma;
    dma.vector_bytes = 16;
    dma.valid = random.between(1, 16);
    dma.rows = random.between(0, 4);
    dma.vectors = random.between(0, 5);
    dma.address = 4096;
    dma.x_step = random.between(0, 40);
    dma.row_bytes = random.between(1, 80);
    dma.y_step = random.between(dma.row_bytes, 100);
    dma.left = random.between(-40, 90);
    dma.top = random.between(-2, 3);
    dma.source_rows = random.between(0, 4);
    const Range hull = hull_of_rows(dma), bounds = bounding_range(dma);
    empty += hull == Range{};
    ASSERT_EQ(bounds, hull) << "x_step " << dma.x_step << ", valid " << dma.valid << ", left " << dma.left
                            << ", row_bytes " << dma.row_bytes << ", vectors " << dma.vectors << ": [" << bounds.begin
                            << ", " << bounds.end << ") is not [" << hull.begin << ", " << hull.end << ")";
  }
  EXPECT_GT(empty, 1000);
  EXPECT_LT(empty, 19000);
}

// A store whose vectors are all in the padding around a row: one byte of each of five vectors with a stride of 16.
TEST(Dma, VectorsThatMissTheRowHaveNoBytes) {
  Dma dma;
  dma.vector_bytes = 16, dma.rows = 1, dma.vectors = 5, dma.x_step = 16, dma.valid = 1;
  dma.left = 51, dma.row_bytes = 11, dma.source_rows = 2;
  EXPECT_EQ(bounding_range(dma), Range{});
}

}  // namespace
}  // namespace tenon::sim
