#include "driver/remote/refusals.h"

#include <gmock/gmock.h>

#include <vector>

namespace tenon::driver::remote {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kPeer[] = "ipv4:10.0.0.7:53412", kSameAddress[] = "ipv4:10.0.0.7:9", kOther[] = "ipv4:10.0.0.8:9";

TEST(Refusals, AreLoggedWithPeerAndCount) {
  Refusals refusals;
  testing::internal::CaptureStderr();
  refusals.add(kPeer, "a wrong token");
  refusals.add("ipv4:10.0.0.7:9\x1b[2J", "no token");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(log,
            "refused a client at ipv4:10.0.0.7:53412: a wrong token (1 from this address)\n"
            "refused a client at ipv4:10.0.0.7:9\\x1b[2J: no token (2 from this address)\n");
}

TEST(Refusals, AfterTheTenthAreLate) {
  Refusals refusals;
  for (uint64_t i = 0; i < Refusals::kPrompt; ++i) {
    EXPECT_EQ(refusals.add(kPeer, "no token"), nullptr) << i;
  }
  EXPECT_EQ(refusals.add(kOther, "no token"), nullptr) << "another address has a count of its own";
  const auto late = refusals.add(kSameAddress, "no token");
  ASSERT_NE(late, nullptr);
  EXPECT_GT(late->delay.count(), 0);
  refusals.forget(kPeer);
  EXPECT_EQ(refusals.add(kPeer, "no token"), nullptr) << "the address had the token";
}

TEST(Refusals, ThatAreLateAreFew) {
  Refusals refusals;
  for (uint64_t i = 0; i < Refusals::kPrompt; ++i) refusals.add(kPeer, "no token");
  std::vector<std::unique_ptr<Refusals::Late>> late;
  for (uint64_t i = 0; i < Refusals::kMostDelayed; ++i) {
    EXPECT_FALSE(refusals.is_crowded(kPeer)) << i;
    late.push_back(refusals.add(kPeer, "no token"));
  }
  EXPECT_TRUE(refusals.is_crowded(kSameAddress));
  EXPECT_FALSE(refusals.is_crowded(kOther));
  late.pop_back();
  EXPECT_FALSE(refusals.is_crowded(kPeer));
}

}  // namespace
}  // namespace tenon::driver::remote
