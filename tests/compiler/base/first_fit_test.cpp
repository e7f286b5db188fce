#include "compiler/base/first_fit.h"

#include <gtest/gtest.h>

#include "support/random.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

TEST(FirstFit, ReusesMemoryAfterALiveRangeEnds) {
  // A chain: each buffer is live until the next one exists.
  const LiveBuffer chain[] = {{0, 1, 64}, {1, 2, 64}, {2, 3, 64}, {3, 4, 64}};
  const ArenaPlan plan = first_fit(chain);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 64, 0, 64}));
  EXPECT_EQ(plan.bytes, 128);
  EXPECT_EQ(plan.peak, 128);
  EXPECT_EQ(plan.total, 256);
}

TEST(FirstFit, TheLargestIsPlacedFirstAndGapsAreFilled) {
  const LiveBuffer buffers[] = {{0, 3, 64}, {0, 1, 256}, {2, 3, 128}, {1, 2, 128}};
  const ArenaPlan plan = first_fit(buffers);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{384, 0, 0, 256}));
  EXPECT_EQ(plan.bytes, 448);
}

TEST(FirstFit, NoBuffersTakeNothing) {
  const ArenaPlan plan = first_fit({});
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(plan.peak, 0);
}

TEST(FirstFit, BuffersThatAreLiveAtOnceAreDisjoint) {
  Random random(test_seed(11));
  int64_t bytes = 0, peaks = 0;
  for (int64_t round = 0; round < rounds(300); ++round) {
    std::vector<LiveBuffer> buffers(static_cast<size_t>(random.between(1, 40)));
    for (LiveBuffer& buffer : buffers) {
      buffer.first = static_cast<uint32_t>(random.between(0, 30));
      buffer.last = buffer.first + static_cast<uint32_t>(random.size(20) - 1);
      buffer.bytes = aligned_bytes(random.size(5000));
    }
    const ArenaPlan plan = first_fit(buffers);
    ASSERT_LE(plan.peak, plan.bytes);
    ASSERT_LE(plan.bytes, plan.total);
    for (size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(plan.offsets[i] % kMemoryAlignment, 0);
      ASSERT_LE(plan.offsets[i] + buffers[i].bytes, plan.bytes);
      for (size_t k = 0; k < i; ++k) {
        const bool both_live = buffers[i].first <= buffers[k].last && buffers[k].first <= buffers[i].last;
        const bool disjoint = plan.offsets[i] + buffers[i].bytes <= plan.offsets[k] ||
                              plan.offsets[k] + buffers[k].bytes <= plan.offsets[i];
        ASSERT_TRUE(!both_live || disjoint) << "buffers " << k << " and " << i;
      }
    }
    bytes += plan.bytes, peaks += plan.peak;
  }
  EXPECT_LT(bytes, peaks * 12 / 10) << "first fit by decreasing size is near the bound";
}

}  // namespace
}  // namespace tenon::compiler
