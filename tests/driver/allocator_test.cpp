// The allocator of device memory: placement, alignment, and errors.
#include "driver/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/seed.h"

namespace tenon::driver {
namespace {

using testing::HasSubstr;

TEST(Allocator, FillsTheFirstHoleThatFits) {
  Allocator allocator(1 << 20);
  const uint64_t a = *allocator.allocate(100, 64);
  const uint64_t b = *allocator.allocate(1000, 64);
  const uint64_t c = *allocator.allocate(100, 64);
  EXPECT_EQ(a, Allocator::kFirstAddress);
  EXPECT_LT(b, c);
  ASSERT_TRUE(allocator.release(b, 1000));
  EXPECT_EQ(*allocator.allocate(900, 64), b);
}

TEST(Allocator, MergesAdjacentHoles) {
  Allocator allocator(Allocator::kFirstAddress + 3 * 64);
  const uint64_t a = *allocator.allocate(64, 64), b = *allocator.allocate(64, 64), c = *allocator.allocate(64, 64);
  ASSERT_FALSE(allocator.allocate(1, 1));
  ASSERT_TRUE(allocator.release(a, 64));
  ASSERT_TRUE(allocator.release(c, 64));
  ASSERT_TRUE(allocator.release(b, 64));
  EXPECT_EQ(*allocator.allocate(192, 64), a);
}

TEST(Allocator, RandomBlocksNeverOverlapAndKeepTheirAlignment) {
  const uint64_t size = 1 << 16;
  Allocator allocator(size);
  std::mt19937_64 random(test_seed(7));
  std::vector<std::pair<uint64_t, uint64_t>> live;
  uint64_t used = 0;
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    if (random() % 5 < 2 && !live.empty()) {
      const size_t k = random() % live.size();
      ASSERT_TRUE(allocator.release(live[k].first, live[k].second));
      used -= live[k].second;
      live.erase(live.begin() + static_cast<ptrdiff_t>(k));
      continue;
    }
    const uint64_t bytes = 1 + random() % 3000, alignment = uint64_t{1} << random() % 13;
    const auto address = allocator.allocate(bytes, alignment);
    if (!address) {
      ++refused;
      continue;
    }
    EXPECT_EQ(*address % alignment, 0u);
    EXPECT_LE(*address + bytes, size);
    for (const auto& [other, length] : live) EXPECT_TRUE(*address + bytes <= other || other + length <= *address);
    live.emplace_back(*address, bytes);
    used += bytes;
    EXPECT_EQ(allocator.used(), used);
  }
  EXPECT_GT(refused, 0);
}

TEST(Allocator, ASecondFreeIsNamed) {
  Allocator allocator(1 << 20);
  const uint64_t a = *allocator.allocate(100, 64);
  ASSERT_TRUE(allocator.release(a, 100));
  const auto status = allocator.release(a, 100);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().str(), HasSubstr("no live buffer has address 0x1000 and 100 bytes: freed twice"));
}

TEST(Allocator, FreeingPartOfABlockIsAnErrorAndChangesNothing) {
  Allocator allocator(1 << 20);
  const uint64_t a = *allocator.allocate(100, 64);
  EXPECT_FALSE(allocator.release(a, 50));
  EXPECT_FALSE(allocator.release(a + 50, 50));
  EXPECT_TRUE(allocator.contains(a, 100));
}

TEST(Allocator, TheErrorNamesTheFreeMemory) {
  Allocator allocator(Allocator::kFirstAddress + 1000);
  ASSERT_TRUE(allocator.allocate(600, 1));
  const auto address = allocator.allocate(500, 1);
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().str(),
              HasSubstr("no room for 500 bytes aligned to 1: 600 of 5096 bytes are in use, the largest hole has 400"));
  EXPECT_THAT(address.error().help, HasSubstr("?memory="));
}

TEST(Allocator, SizesThatWouldWrapAreErrors) {
  Allocator allocator(1 << 20);
  EXPECT_FALSE(allocator.allocate(UINT64_MAX, 1));
  EXPECT_FALSE(allocator.allocate(UINT64_MAX - 4095, 4096));
  EXPECT_FALSE(allocator.allocate(1, uint64_t{1} << 63));
  EXPECT_FALSE(allocator.allocate(0, 1));
  EXPECT_FALSE(allocator.allocate(1, 3));
}

}  // namespace
}  // namespace tenon::driver
