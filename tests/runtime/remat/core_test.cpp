// The core of rematerialization on small steps, whose clocks are computed by hand.
#include "runtime/remat/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/remat/linear.h"
#include "runtime/remat/simulate.h"

namespace tenon::runtime::remat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Records what the core asks for.
class Recorder final : public Host {
 public:
  Status compute(OperatorId op, bool) override {
    computed.push_back(op);
    if (op == refused) return error("the device is gone");
    return {};
  }
  void free(StorageId storage) override { freed.push_back(storage); }

  std::vector<OperatorId> computed;
  std::vector<StorageId> freed;
  OperatorId refused = UINT32_MAX;
};

// A core with a host, and operators of one result.
struct Step {
  explicit Step(CoreOptions options) : core(options, host) {}
  TensorId call(std::vector<TensorId> args, int64_t bytes, int64_t cost) {
    const NewResult result{bytes, std::nullopt};
    const auto results = core.call(args, {&result, 1}, cost);
    EXPECT_TRUE(results) << results.error().str();
    return results ? (*results)[0] : 0;
  }
  TensorId view(TensorId of, int64_t cost) {
    const NewResult result{0, 0};
    const auto results = core.call({&of, 1}, {&result, 1}, cost);
    EXPECT_TRUE(results) << results.error().str();
    return results ? (*results)[0] : 0;
  }
  Recorder host;
  Core core;
};

// Three results a, b and c of 10, 20 and 40 bytes, for 100, 300 and 1000; a is read again until 2000. Room for the
// fourth one costs one of the three. At 2000 the scores are
//   local  a 100 / (10 * 599), b 300 / (20 * 1599), c 1000 / (40 * 599): b, as by last access
//   size   c is the largest
//   msps   a 100 / 10, b 300 / 20, c 1000 / 40: a
int64_t clock_of_three(Policy policy) {
  Step step({.budget = 70, .policy = policy});
  const TensorId a = step.call({}, 10, 100), b = step.call({}, 20, 300), c = step.call({}, 40, 1000);
  step.call({a}, 0, 599);
  EXPECT_EQ(step.core.clock(), 2000);
  step.core.release(step.call({}, 5, 10));
  for (const TensorId tensor : {a, b, c}) EXPECT_TRUE(step.core.pin(tensor));
  EXPECT_EQ(step.core.evictions(), 1);
  return step.core.clock();
}

TEST(Remat, PoliciesChooseByTheirScores) {
  EXPECT_EQ(clock_of_three(Policy::kLocal), 2010 + 300);
  EXPECT_EQ(clock_of_three(Policy::kEq), 2010 + 300);
  EXPECT_EQ(clock_of_three(Policy::kDtr), 2010 + 300);
  EXPECT_EQ(clock_of_three(Policy::kLru), 2010 + 300);
  EXPECT_EQ(clock_of_three(Policy::kSize), 2010 + 1000);
  EXPECT_EQ(clock_of_three(Policy::kMsps), 2010 + 100);
}

// q comes from p, which is evicted by its release: q costs 10, and 1000 more for p. At 1300 the scores are
//   local  q 10 / (10 * 289), s 200 / (10 * 89): q
//   eq     q 1010 / (10 * 289), s as before: s
int64_t clock_with_evicted_parent(Policy policy) {
  Step step({.budget = 30, .policy = policy});
  const TensorId p = step.call({}, 10, 1000), q = step.call({p}, 10, 10);
  step.core.release(p);
  const TensorId s = step.call({}, 10, 200);
  step.call({}, 0, 89);
  EXPECT_EQ(step.core.clock(), 1300);
  step.core.release(step.call({}, 20, 1));
  EXPECT_TRUE(step.core.pin(q));
  EXPECT_TRUE(step.core.pin(s));
  return step.core.clock();
}

TEST(Remat, NeighbourhoodsCount) {
  EXPECT_EQ(clock_with_evicted_parent(Policy::kLocal), 1301 + 1010);
  EXPECT_EQ(clock_with_evicted_parent(Policy::kEq), 1301 + 200);
  EXPECT_EQ(clock_with_evicted_parent(Policy::kDtr), 1301 + 200);
  EXPECT_EQ(clock_with_evicted_parent(Policy::kMsps), 1301 + 200);
}

TEST(Remat, ExactNeighbourhoodsFollowDirections) {
  // a -> b -> d, a -> c -> e with a, b and c released: d's ancestors are b and a, and no longer c, which is no
  // ancestor.
  Step step({.policy = Policy::kDtr});
  const TensorId a = step.call({}, 1, 1), b = step.call({a}, 1, 10), c = step.call({a}, 1, 100);
  const TensorId d = step.call({b}, 1, 1000), e = step.call({c}, 1, 10000);
  for (const TensorId tensor : {a, b, c}) step.core.release(tensor);
  EXPECT_EQ(step.core.ancestors_cost(step.core.storage_of(d)), 11);
  EXPECT_EQ(step.core.ancestors_cost(step.core.storage_of(e)), 101);
  EXPECT_EQ(step.core.descendants_cost(step.core.storage_of(d)), 0);
  // b is computed again, and a for it: nothing above d is evicted any more, and above e only c.
  step.core.retain(b);
  ASSERT_TRUE(step.core.pin(b));
  EXPECT_EQ(step.core.ancestors_cost(step.core.storage_of(d)), 0);
  EXPECT_EQ(step.core.ancestors_cost(step.core.storage_of(e)), 100);
  EXPECT_EQ(step.core.descendants_cost(step.core.storage_of(a)), 100);
}

TEST(Remat, ClassesAreUnitedAndNotSplit) {
  Step step({.policy = Policy::kEq});
  const TensorId a = step.call({}, 1, 1), b = step.call({a}, 1, 10), c = step.call({b}, 1, 100);
  const TensorId d = step.call({c}, 1, 1000);
  for (const TensorId tensor : {a, b, c}) step.core.release(tensor);
  const StorageId of_d = step.core.storage_of(d);
  EXPECT_EQ(step.core.class_cost(of_d), 111);
  // b is resident again and a with it: c's class still has what the union had, less these two.
  step.core.retain(b);
  ASSERT_TRUE(step.core.pin(b));
  EXPECT_EQ(step.core.class_cost(of_d), 100);
}

TEST(Remat, AViewIsDefinedByItsOwnOperatorAgain) {
  Step step({.budget = 10, .policy = Policy::kLocal});
  const TensorId root = step.call({}, 10, 100), view = step.view(root, 5);
  EXPECT_EQ(step.core.cost(step.core.storage_of(view)), 105);
  step.core.release(step.call({}, 10, 1000));  // evicts both
  EXPECT_FALSE(step.core.defined(root));
  EXPECT_FALSE(step.core.defined(view));
  ASSERT_TRUE(step.core.pin(root));
  EXPECT_EQ(step.core.clock(), 1106 + 100);
  EXPECT_FALSE(step.core.defined(view));
  ASSERT_TRUE(step.core.pin(view));
  EXPECT_EQ(step.core.clock(), 1106 + 105);
  EXPECT_EQ(step.core.used(), 10);
}

TEST(Remat, AResultThatIsResidentIsComputedTwice) {
  Step step({.budget = 40, .policy = Policy::kLru});
  const NewResult two[] = {{10, std::nullopt}, {10, std::nullopt}};
  const auto results = step.core.call({}, two, 7);
  ASSERT_TRUE(results);
  const TensorId first = (*results)[0], second = (*results)[1];
  step.core.release(first);
  EXPECT_EQ(step.core.used(), 10);
  step.core.retain(first);
  ASSERT_TRUE(step.core.pin(first));
  EXPECT_EQ(step.core.peak(), 30);  // the second one beside its duplicate
  EXPECT_EQ(step.core.used(), 20);
  EXPECT_TRUE(step.core.defined(second));
}

TEST(Remat, OperandsAreLocked) {
  // The two operands are 20 bytes: there is no room for 11 more, although both are evictable before the call.
  Step step({.budget = 30, .policy = Policy::kLru});
  const TensorId a = step.call({}, 10, 1), b = step.call({}, 10, 1);
  const NewResult result{11, std::nullopt};
  const TensorId args[] = {a, b};
  const auto failed = step.core.call(args, {&result, 1}, 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(step.core.failure(), Failure::kMemory);
  EXPECT_THAT(failed.error().str(),
              HasSubstr("11 bytes are needed, 20 of the budget of 30 bytes are in use, and none of "
                        "them can be evicted"));
  EXPECT_THAT(failed.error().str(), HasSubstr("the budget must be at least 31 bytes here"));
}

TEST(Remat, LimitsEndAStep) {
  const auto pin_again = [](CoreOptions options) {
    Step step(options);
    const TensorId a = step.call({}, 10, 50);
    step.core.release(a);
    step.core.retain(a);
    const Status status = step.core.pin(a);
    EXPECT_FALSE(status);
    return std::pair(step.core.failure(), status ? "" : status.error().str());
  };
  const auto cost = pin_again({.max_extra_cost = 49});
  EXPECT_EQ(cost.first, Failure::kExtraCost);
  EXPECT_THAT(cost.second, HasSubstr("operators that are computed again cost 50, more than the limit of 49"));
  const auto count = pin_again({.max_extra_count = 0});
  EXPECT_EQ(count.first, Failure::kExtraCount);
  EXPECT_THAT(count.second, HasSubstr("1 operators are computed again, more than the limit of 0"));
}

TEST(Remat, AnErrorOfTheHostIsReturned) {
  Step step({});
  step.call({}, 1, 1);
  step.host.refused = 1;
  const NewResult result{1, std::nullopt};
  const auto failed = step.core.call({}, {&result, 1}, 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "the device is gone");
  EXPECT_EQ(step.core.failure(), Failure::kHost);
}

TEST(Remat, TheHostComputesAndFrees) {
  Step step({.policy = Policy::kLru});
  const TensorId a = step.call({}, 1, 1), b = step.call({a}, 1, 1);
  step.core.release(a);
  step.core.release(b);
  step.core.retain(b);
  ASSERT_TRUE(step.core.pin(b));
  EXPECT_THAT(step.host.computed, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(step.host.freed, ElementsAre(step.core.storage_of(a), step.core.storage_of(b)));
}

TEST(Remat, ReleasePromptFreesWhatWasComputedForOthers) {
  for (const auto& [release, used] : {std::pair(Release::kEvict, 20), std::pair(Release::kPrompt, 10)}) {
    Step step({.policy = Policy::kLru, .release = release});
    const TensorId a = step.call({}, 10, 1), b = step.call({a}, 10, 1);
    step.core.release(a);
    step.core.release(b);
    step.core.retain(b);
    ASSERT_TRUE(step.core.pin(b));
    EXPECT_EQ(step.core.used(), used);
  }
}

TEST(Remat, ABanishedStorageIsForgotten) {
  // b cannot be computed again once a is banished: the 10 bytes that are missing cannot be had from it.
  Step step({.budget = 20, .policy = Policy::kLru, .release = Release::kBanish});
  const TensorId a = step.call({}, 10, 1), b = step.call({a}, 10, 1);
  step.core.release(a);
  EXPECT_EQ(step.core.used(), 10);
  const NewResult result{15, std::nullopt};
  EXPECT_FALSE(step.core.call({}, {&result, 1}, 1));
  EXPECT_TRUE(step.core.defined(b));
}

TEST(Remat, BanishingWaitsForEvictedChildren) {
  Step step({.policy = Policy::kLru, .release = Release::kBanish});
  const TensorId a = step.call({}, 10, 1), b = step.call({a}, 10, 1);
  step.core.release(b);
  step.core.release(a);  // nothing needs either
  EXPECT_EQ(step.core.used(), 0);
  // Ids are used again: a step that runs for long does not grow.
  for (int i = 0; i < 1000; ++i) {
    const TensorId x = step.call({}, 10, 1), y = step.call({x}, 10, 1);
    step.core.release(x);
    step.core.release(y);
    EXPECT_LT(std::max(x, y), 4U);
  }
}

// A chain whose last but second storage depends on all before it: 65,536 operators are computed again by one request.
TEST(Remat, ADeepChainIsNoRecursion) {
  constexpr uint32_t kDepth = 65536;
  Step step({.budget = 3, .policy = Policy::kLru});
  std::vector<TensorId> chain = {step.call({}, 1, 1)};
  for (uint32_t i = 1; i < kDepth; ++i) chain.push_back(step.call({chain.back()}, 1, 1));
  const TensorId wanted = chain[kDepth - 4];
  EXPECT_FALSE(step.core.defined(wanted));
  ASSERT_TRUE(step.core.pin(wanted));
  EXPECT_EQ(step.core.extra_count(), kDepth - 3);
  EXPECT_LE(step.core.peak(), 3);
}

TEST(Remat, TheLinearNetworkTakesLinearTime) {
  const auto factor = [](int64_t n, Policy policy) {
    const Replay result =
        replay(linear_network(n),
               {.budget = linear_budget(n), .max_extra_count = 20 * n, .policy = policy, .release = Release::kBanish});
    return static_cast<double>(result.operators) / static_cast<double>(2 * n);
  };
  for (int64_t n = 1; n <= 2048; n *= 2) {
    EXPECT_LE(factor(n, Policy::kEq), 1.6) << n;
    EXPECT_LE(factor(n, Policy::kDtr), 1.6) << n;
  }
  EXPECT_LE(factor(65536, Policy::kEq), 1.8);
  EXPECT_LE(factor(65536, Policy::kDtr), 1.8);
  EXPECT_GT(factor(64, Policy::kLocal), 2);
  EXPECT_GT(factor(1024, Policy::kLru), 10);
}

TEST(Remat, PoliciesHaveNames) {
  for (const Policy policy : kPolicies) EXPECT_EQ(*find_policy(name(policy)), policy);
  const auto wrong = find_policy("lur");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().fault, Fault::kUsage);
  EXPECT_THAT(wrong.error().str(), HasSubstr("no policy is called \"lur\""));
  EXPECT_THAT(wrong.error().str(), HasSubstr("did you mean lru?"));
}

}  // namespace
}  // namespace tenon::runtime::remat
