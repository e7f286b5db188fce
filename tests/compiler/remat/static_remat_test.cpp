// Plans of memory: frontiers of steps, orders of functions, and code within a budget.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>

#include "compiler/fuzz/campaign.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/remat/chain.h"
#include "compiler/remat/plan.h"
#include "compiler/remat/rematerialize.h"
#include "runtime/remat/linear.h"
#include "runtime/vm/session.h"
#include "support/random.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using runtime::remat::StepLog;
using testing::HasSubstr;

// The call that makes each tensor; the number of calls for constants.
std::vector<uint32_t> producers(const StepLog& log) {
  std::vector<uint32_t> made(log.bytes.size(), static_cast<uint32_t>(log.calls.size()));
  const std::vector<uint32_t> first = log.first_results();
  for (uint32_t i = 0; i < log.calls.size(); ++i)
    std::ranges::fill(std::span(made).subspan(first[i], log.calls[i].results.size()), i);
  return made;
}

// Whether each call comes after what it reads, and none is left out.
bool is_order(const StepLog& log, std::span<const uint32_t> order) {
  const std::vector<uint32_t> made = producers(log);
  std::vector<bool> done(log.calls.size() + 1, false);
  done.back() = true;
  for (const uint32_t call : order) {
    for (const uint32_t arg : log.calls[call].args)
      if (!done[made[arg]]) return false;
    done[call] = true;
  }
  return std::ranges::all_of(done, std::identity());
}

TEST(Frontier, OfALinearNetworkTradesTimeForMemory) {
  constexpr int64_t kLayers = 256;
  const StepLog log = runtime::remat::linear_network(kLayers);
  const std::vector<RematPlan> frontier = find_frontier(log, {.budgets = 16, .effort = 0});
  ASSERT_GT(frontier.size(), 7);
  EXPECT_EQ(frontier.front().peak, kLayers);
  EXPECT_EQ(frontier.front().cost, log.cost());
  for (size_t i = 0; i < frontier.size(); ++i) {
    EXPECT_TRUE(is_order(log, frontier[i].order)) << i;
    const RematPlan again = measure(log, frontier[i].order);
    EXPECT_EQ(std::pair(again.peak, again.cost), std::pair(frontier[i].peak, frontier[i].cost));
    if (i == 0) continue;
    EXPECT_LT(frontier[i].peak, frontier[i - 1].peak);
    EXPECT_GE(frontier[i].cost, frontier[i - 1].cost);
  }
  // Chen et al. (2016): within 2 sqrt N tensors, one more forward pass.
  const RematPlan* plan = within(frontier, 2 * 16 + 4);
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->cost, log.cost() + kLayers);
  EXPECT_EQ(within(frontier, 2), nullptr);
}

// The least cost of a chain by a search over all states: what is stored of each stage (0: nothing, 1: what it passes,
// 2: what it saves), what the last forward step passed without being stored, and the last stage with a backward pass to
// come. What is stored remains until the backward pass that reads it.
std::optional<int64_t> least_cost(const std::vector<ChainStage>& chain, int64_t memory) {
  struct State {
    std::vector<int> stored;
    int passed = -1, last = 0;
    auto operator<=>(const State&) const = default;
  };
  const auto n = static_cast<int>(chain.size());
  std::map<State, int64_t> known;
  std::priority_queue<std::pair<int64_t, State>, std::vector<std::pair<int64_t, State>>, std::greater<>> open;
  const auto add_state = [&](int64_t cost, const State& state) {
    const auto [found, is_new] = known.try_emplace(state, cost);
    if (!is_new && found->second <= cost) return;
    found->second = cost;
    open.emplace(cost, state);
  };
  add_state(0, {std::vector<int>(chain.size(), 0), -1, n - 1});
  while (!open.empty()) {
    const auto [cost, state] = open.top();
    open.pop();
    if (known.at(state) < cost) continue;
    if (state.last < 0) return cost;
    int64_t stored = 0;
    for (int i = 0; i < n; ++i)
      stored += state.stored[i] == 0 ? 0 : state.stored[i] == 1 ? chain[i].passed : chain[i].saved;
    const auto is_stored = [&](int stage) { return stage < 0 || state.stored[stage] > 0; };
    const int64_t left = chain[state.last].left;
    for (int i = 0; i <= state.last; ++i) {
      if (state.stored[i] == 2 || (!is_stored(i - 1) && state.passed != i - 1)) continue;
      const int64_t reads = is_stored(i - 1) ? 0 : chain[i - 1].passed;
      if (stored + left + reads + chain[i].forward_peak <= memory) {
        State next = state;
        next.passed = i;
        add_state(cost + chain[i].forward, next);
        next.stored[i] = 1;
        next.passed = -1;
        add_state(cost + chain[i].forward, next);
      }
      if (is_stored(i - 1) && state.stored[i] == 0 && stored + left + chain[i].saving_peak <= memory) {
        State next = state;
        next.stored[i] = 2;
        next.passed = -1;
        add_state(cost + chain[i].forward, next);
      }
    }
    const int at = state.last;
    if (state.stored[at] != 2 || !is_stored(at - 1) || stored + chain[at].backward_peak > memory) continue;
    State next = state;
    next.stored[at] = 0;
    if (at > 0 && next.stored[at - 1] == 1) next.stored[at - 1] = 0;
    next.passed = -1;
    next.last = at - 1;
    add_state(cost + chain[at].backward, next);
  }
  return std::nullopt;
}

// The cost of the steps; nothing where one lacks what it reads or needs more memory.
std::optional<int64_t> replayed(const std::vector<ChainStage>& chain, const std::vector<ChainStep>& steps,
                                int64_t memory) {
  std::vector<int> stored(chain.size(), 0);  // as in least_cost
  auto last = static_cast<int64_t>(chain.size()) - 1;
  int64_t cost = 0;
  for (size_t at = 0; at < steps.size(); ++at) {
    const size_t i = steps[at].stage;
    const ChainStage& stage = chain[i];
    int64_t bytes = 0;
    for (size_t k = 0; k < chain.size(); ++k)
      bytes += stored[k] == 0 ? 0 : stored[k] == 1 ? chain[k].passed : chain[k].saved;
    if (i > 0 && stored[i - 1] == 0) return std::nullopt;
    if (steps[at].kind == ChainStep::Kind::kBackward) {
      if (std::cmp_not_equal(i, last) || stored[i] != 2 || bytes + stage.backward_peak > memory) return std::nullopt;
      stored[i] = 0;
      if (i > 0 && stored[i - 1] == 1) stored[i - 1] = 0;
      --last;
      cost += stage.backward;
      continue;
    }
    const bool saves = steps[at].kind == ChainStep::Kind::kSave;
    const int64_t left = chain[static_cast<size_t>(last)].left;
    if (bytes + left + (saves ? stage.saving_peak : stage.forward_peak) > memory) return std::nullopt;
    stored[i] = saves ? 2 : 1;
    // What the stage before passed is stored as long as a step reads it before it is passed again.
    bool is_read = i == 0;
    for (size_t next = at + 1; next < steps.size() && !is_read; ++next) {
      if (steps[next].stage == i - 1 && steps[next].kind != ChainStep::Kind::kBackward) break;
      is_read = steps[next].stage == i;
    }
    if (!saves && !is_read && stored[i - 1] == 1) stored[i - 1] = 0;
    cost += stage.forward;
  }
  return last < 0 ? std::optional(cost) : std::nullopt;
}

TEST(Chain, CostsWhatAnExhaustiveSearchFinds) {
  Random random(test_seed(7));
  int plans = 0, repeated = 0;
  for (int64_t round = 0; round < rounds(1000); ++round) {
    const int64_t n = round % 200 == 0 ? 10 : random.between(1, 6);
    std::vector<ChainStage> chain;
    int64_t all = 0, cost = 0, left = 0;
    for (int64_t i = 0; i < n; ++i) {
      ChainStage stage{
          .forward = random.between(1, 5), .backward = random.between(1, 9), .passed = random.between(1, 4)};
      stage.saved = stage.passed + random.between(0, 6);
      stage.forward_peak = stage.passed + random.between(0, 3);
      stage.saving_peak = std::max(stage.saved, stage.forward_peak);
      stage.backward_peak = random.between(0, 4);
      all += stage.saved;
      cost += stage.forward + stage.backward;
      chain.push_back(stage);
    }
    for (int64_t i = n; i-- > 0;) {
      chain[i].left = left;
      left += random.between(0, 2);
      chain[i].backward_peak += left;
    }
    const int64_t memory = random.between(1, all + left + 4);
    const std::optional<int64_t> found = ChainPlans(chain, memory, memory).cost(memory);
    EXPECT_EQ(found, least_cost(chain, memory)) << "round " << round;
    // In coarse units a plan costs no less, and is within the memory, too.
    const ChainPlans coarse(chain, memory, std::max<int64_t>(1, memory / 3));
    if (const std::optional<int64_t> least = coarse.cost(memory)) {
      EXPECT_TRUE(found && *least >= *found);
      EXPECT_EQ(replayed(chain, coarse.steps(memory), memory), least) << "round " << round;
    }
    if (found) EXPECT_EQ(replayed(chain, ChainPlans(chain, memory, memory).steps(memory), memory), found);
    plans += found.has_value();
    repeated += found && *found > cost;
  }
  EXPECT_GT(plans, rounds(1000) / 4);
  EXPECT_GT(repeated, rounds(1000) / 20);
}

TEST(Chain, StepsAreThoseOfTheCost) {
  std::vector<ChainStage> chain(
      40, {.forward = 2, .backward = 3, .passed = 1, .saved = 4, .forward_peak = 1, .saving_peak = 4});
  const ChainPlans plans(chain, 160, 160);
  EXPECT_EQ(plans.cost(160), 40 * 5);
  for (int64_t memory = 4; memory <= 160; ++memory) {
    const std::optional<int64_t> wanted = plans.cost(memory);
    if (!wanted) continue;
    int64_t cost = 0;
    for (const ChainStep& step : plans.steps(memory)) cost += step.kind == ChainStep::Kind::kBackward ? 3 : 2;
    EXPECT_EQ(cost, *wanted) << memory;
  }
  EXPECT_EQ(plans.cost(3), std::nullopt);
}

TEST(Frontier, OfALongLinearNetworkIsAChain) {
  constexpr int64_t kLayers = 1000;
  const StepLog log = runtime::remat::linear_network(kLayers);
  const std::vector<RematPlan> frontier = find_frontier(log, {.max_replayed_calls = 0});
  for (const RematPlan& plan : frontier) EXPECT_TRUE(is_order(log, plan.order));
  const RematPlan* plan = within(frontier, 2 * 31 + 4);
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->cost, log.cost() + kLayers);
  // A layer that cannot be computed again is kept.
  StepLog kept = log;
  const std::vector<uint32_t> first = log.first_results();
  kept.events.push_back({StepLog::Kind::kKeep, first[500]});
  const std::vector<RematPlan> with_kept = find_frontier(kept, {.max_replayed_calls = 0});
  EXPECT_GT(with_kept.size(), 5);
  for (const RematPlan& one : with_kept) {
    EXPECT_TRUE(is_order(kept, one.order));
    EXPECT_EQ(std::ranges::count(one.order, 500U), 1);
  }
}

TEST(Frontier, OfStepsWithoutAnInside) {
  StepLog one;
  one.bytes = {4, 8};
  one.calls = {{"a", {0}, {{8, std::nullopt}}, 3, 0}};
  one.events = {{StepLog::Kind::kConstant, 0}, {StepLog::Kind::kCall, 0}};
  one.results = {1};
  ASSERT_EQ(find_frontier(one).size(), 1);
  EXPECT_EQ(find_frontier(one)[0].peak, 12);
  StepLog log = runtime::remat::linear_network(8);
  log.calls[0].own_bytes = 100;  // the most memory is at the first call
  EXPECT_EQ(find_frontier(log, {.max_replayed_calls = 0})[0].cost, log.cost());
}

// Steps with skip connections, views, calls of several results, and results that are read never, once and often.
StepLog random_step(Random& random) {
  StepLog log;
  log.bytes.push_back(random.between(1, 9));
  log.events.push_back({StepLog::Kind::kConstant, 0});
  const int64_t layers = random.between(1, 60);
  const auto add = [&](std::vector<uint32_t> args, int64_t results) {
    StepLog::Call call{"f", std::move(args), {}, random.between(0, 9), random.chance(20) ? random.between(0, 20) : 0};
    for (int64_t k = 0; k < results; ++k) {
      const bool is_view = random.chance(10);
      call.results.push_back({is_view ? 0 : random.between(0, 9), is_view ? std::optional<uint32_t>(0) : std::nullopt});
      log.bytes.push_back(call.results.back().bytes);
    }
    log.events.push_back({StepLog::Kind::kCall, static_cast<uint32_t>(log.calls.size())});
    log.calls.push_back(std::move(call));
    if (random.chance(3)) log.events.push_back({StepLog::Kind::kKeep, static_cast<uint32_t>(log.bytes.size() - 1)});
  };
  const auto any = [&] { return static_cast<uint32_t>(random.between(0, std::ssize(log.bytes) - 1)); };
  for (int64_t i = 0; i < layers; ++i) {
    const auto last = static_cast<uint32_t>(log.bytes.size() - 1);
    add(random.chance(20) ? std::vector<uint32_t>{last, any()} : std::vector<uint32_t>{last}, random.between(1, 3));
  }
  const auto forward = static_cast<uint32_t>(log.bytes.size());
  for (uint32_t i = forward; i-- > 1;) add({static_cast<uint32_t>(log.bytes.size() - 1), i}, 1);
  log.results = {static_cast<uint32_t>(log.bytes.size() - 1), any()};
  if (log.results[0] == log.results[1]) log.results.pop_back();
  return log;
}

TEST(Frontier, OfRandomStepsHasOrders) {
  Random random(test_seed(11));
  size_t plans = 0;
  for (int64_t round = 0; round < rounds(300); ++round) {
    const StepLog log = random_step(random);
    const std::vector<RematPlan> frontier = find_frontier(log, {.max_replayed_calls = 0});
    EXPECT_EQ(frontier[0].cost, log.cost());
    plans += frontier.size();
    std::vector<bool> kept(log.calls.size(), false);
    const std::vector<uint32_t> made = producers(log);
    for (const StepLog::Event& event : log.events)
      if (event.kind == StepLog::Kind::kKeep) kept[made[event.index]] = true;
    for (const RematPlan& plan : frontier) {
      EXPECT_TRUE(is_order(log, plan.order)) << "round " << round;
      for (uint32_t call = 0; call < log.calls.size(); ++call)
        if (kept[call]) EXPECT_EQ(std::ranges::count(plan.order, call), 1) << "round " << round;
    }
  }
  EXPECT_GT(plans, static_cast<size_t>(3 * rounds(300)));
}

TEST(Frontier, CountsWhatKernelsTake) {
  StepLog log = runtime::remat::linear_network(16);
  const int64_t peak = find_frontier(log).front().peak;
  log.calls[15].own_bytes = 5;  // where all layers are resident
  const std::vector<RematPlan> frontier = find_frontier(log);
  EXPECT_EQ(frontier.front().peak, peak + 5);
  EXPECT_LT(frontier.back().peak, peak);
}

TEST(Measure, FreesAfterTheLastUseAndHoldsViewsAndResults) {
  StepLog log;
  log.bytes = {10, 4, 4, 7, 2};
  log.calls = {{"a", {0}, {{4, std::nullopt}}, 3, 0},
               {"view", {1}, {{0, 0}}, 1, 0},
               {"b", {2}, {{7, std::nullopt}}, 5, 0},
               {"c", {3}, {{2, std::nullopt}}, 1, 0}};
  log.events = {{StepLog::Kind::kConstant, 0}};
  for (uint32_t i = 0; i < 4; ++i) log.events.push_back({StepLog::Kind::kCall, i});
  log.results = {4};
  const std::vector<uint32_t> plain{0, 1, 2, 3}, twice{0, 1, 2, 0, 1, 3};
  EXPECT_EQ(measure(log, plain).peak, 10 + 4 + 7);
  EXPECT_EQ(measure(log, plain).cost, 10);
  EXPECT_EQ(measure(log, twice).cost, 14);
  EXPECT_THAT(without_unread(log, twice), testing::ElementsAreArray(plain));
}

// The module with @main in an order that computes much again, at random positions.
Expected<Module> with_repeated_calls(Context& context, Module module, uint64_t seed, int64_t& repeated) {
  Function* main = module.function(context.symbol("main"));
  const auto step = main ? function_log(context, module, *main) : Expected<FunctionLog>(FunctionLog());
  if (!main || !step) return module;
  const std::vector<uint32_t> made = producers(step->log);
  Random random(seed);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < step->log.calls.size(); ++i) {
    for (const uint32_t arg : step->log.calls[i].args) {
      if (made[arg] >= i || !step->repeatable[made[arg]] || !random.chance(50)) continue;
      order.push_back(made[arg]);
      ++repeated;
    }
    order.push_back(i);
  }
  *main = rematerialized(*main, *step, order);
  return module;
}

TEST(Rematerialized, ComputesTheSameInRandomOrders) {
  int64_t repeated = 0;
  uint64_t seed = 1;
  fuzz::CampaignOptions options;
  options.seed = 160'000;
  options.count = rounds(40);
  options.directory = testing::TempDir() + "static_remat_test";
  options.oracle = {.passes = {{"repeat", "Repeats calls.",
                                [&](Context& context, Module module) {
                                  return with_repeated_calls(context, std::move(module), seed++, repeated);
                                }}},
                    .pipeline = false,
                    .text = false,
                    .batch = false,
                    .mutants = 0};
  const auto result = fuzz::campaign(options);
  EXPECT_FALSE(result.failure) << result.failure->report;
  EXPECT_GT(repeated, kSanitized ? 0 : 40);
}

// The loss of a chain of layers and its gradient.
Model chain_of_layers(int layers) {
  std::string text = "#[version = \"1\"]\ndef @loss(%w: Tensor[(32, 32), f32], %x0: Tensor[(64, 32), f32]) {\n";
  for (int i = 0; i < layers; ++i) {
    text += fmt::format("  let %y{0} = dense(%x{0}, %w); let %x{1} = tanh(%y{0});\n", i, i + 1);
  }
  text += fmt::format("  mean(%x{} * %x{})\n}}\ndef @main(%w: Tensor[(32, 32), f32], %x: Tensor[(64, 32), f32]) {{\n",
                      layers, layers) +
          "  let %both = gradient(@loss, wrt=[0])(%w, %x); let %all = %both.1; (%both.0, %all.0)\n}\n";
  Model model{.context = std::make_unique<Context>(), .module = {}, .entry = {}, .name = "chain"};
  auto module = parse(*model.context, text);
  EXPECT_TRUE(module) << module.error().str() << text;
  model.entry = model.context->symbol("main");
  auto simple = run_passes(*model.context, std::move(*module), standard_passes());
  EXPECT_TRUE(simple) << simple.error().str();
  model.module = std::move(*simple);
  return model;
}

std::vector<Tensor> run(const runtime::Executable& code) {
  Random random(7);
  std::vector<Tensor> inputs;
  for (const int64_t rows : {32, 64}) {
    Tensor& input = inputs.emplace_back(runtime::DType::kF32, runtime::Shape{rows, 32});
    for (float& value : input.data<float>()) value = static_cast<float>(random.between(-100, 100)) / 400;
  }
  auto session = runtime::Session::create(code, {});
  EXPECT_TRUE(session) << session.error().str();
  auto results = session->run(inputs);
  EXPECT_TRUE(results) << results.error().str();
  return results ? std::move(*results) : std::vector<Tensor>();
}

TEST(CompileWithinABudget, KeepsTheBitsAndTheBytes) {
  const Model model = chain_of_layers(24);
  CompileOptions options;
  options.budget = 0;
  const auto plain = compile(model, options);
  ASSERT_TRUE(plain) << plain.error().str();
  const std::vector<RematPlan>& frontier = plain->memory->frontier;
  ASSERT_GT(frontier.size(), 3);
  const std::vector<Tensor> expected = run(plain->executable);
  int64_t arena = INT64_MAX;
  for (const size_t at : {frontier.size() / 3, frontier.size() * 2 / 3}) {
    options.budget = frontier[at].peak * 11 / 10;
    const auto planned = compile(model, options);
    ASSERT_TRUE(planned) << planned.error().str();
    ASSERT_TRUE(planned->memory->bound);
    EXPECT_LE(*planned->memory->bound, *options.budget);
    EXPECT_GT(planned->memory->chosen, 0);
    const auto bytes = static_cast<int64_t>(planned->executable.main().arena_bytes);
    EXPECT_LT(bytes, arena);
    arena = bytes;
    EXPECT_EQ(run(planned->executable), expected);
  }
}

TEST(CompileWithinABudget, SaysWhatTheLeastIs) {
  const Model model = chain_of_layers(4);
  CompileOptions options;
  options.budget = 1000;
  const auto refused = compile(model, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("no plan was found within 1000 bytes of tensors"));
  EXPECT_THAT(refused.error().str(), HasSubstr("is the least; '"));
  options.budget_required = false;
  EXPECT_TRUE(compile(model, options));
}

TEST(FunctionLog, NeedsBoundsOfSizes) {
  Context context;
  auto module = parse(context, "#[version = \"1\"]\ndef @main[n](%x: Tensor[(n,), f32]) { tanh(%x) }\n");
  ASSERT_TRUE(module) << module.error().str();
  const auto log = function_log(context, *module, *module->function(context.symbol("main")));
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().str(), HasSubstr("'x' is Tensor[(n,), f32]: a plan of memory needs bounds of all sizes"));
  EXPECT_THAT(log.error().str(), HasSubstr("--shapes"));
}

}  // namespace
}  // namespace tenon::compiler
