// RQ commands that overlap are done in order.
#include <gtest/gtest.h>

#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "sim/timing/model.h"

namespace tenon::sim {
namespace {

TEST(Timing, AnRqWhoseResultsGoToOutIsDoneAfterOneWhoseResultsWaitForInp) {
  const spec::Config config = *spec::load_config("tiny");
  spec::native::Requantize to_inp;
  to_inp.rows = 1;
  to_inp.cols = 1;
  to_inp.to_inp = 1;
  spec::native::Requantize to_out = to_inp;
  to_out.to_inp = 0;
  const std::vector<spec::Decoded> stream = {{to_inp, 0}, {to_out, 1}, {spec::native::Finish{}, 2}};
  std::vector<uint64_t> ends;
  for (const Interval& interval : timing::run(config, {}, stream, true, {.rq_to_inp = 40}).timeline) {
    if (interval.kind == Interval::Kind::kBusy && interval.instruction < 2) ends.push_back(interval.end);
  }
  ASSERT_EQ(ends.size(), 2);
  EXPECT_EQ(ends[1], ends[0] + 1);
}

}  // namespace
}  // namespace tenon::sim
