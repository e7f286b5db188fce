// Memory plans: tensors that are live at once never overlap; checked by running random modules and watching which
// tensors each binding would overwrite.
#include "compiler/passes/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/fuzz/generator.h"
#include "compiler/fuzz/inputs.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "support/random.h"
#include "tests/rounds.h"

namespace tenon::compiler {
namespace {

using testing::HasSubstr;

// Runs @main; each planned tensor that is made destroys the tensors whose memory it takes, and no destroyed tensor may
// be read, captured or returned. Tensors are identified by their objects: the plan's live ranges are not used.
class Watch {
 public:
  Watch(Context& context, const Module& module, Symbol main)
      : module_(module), function_(*module.function(main)), plan_(plan_memory(context, module, function_)) {
    for (size_t i = 0; i < plan_.tensors.size(); ++i) of_[plan_.tensors[i].var].push_back(i);
    for_each_binding(function_.body, [&](const Binding& binding) { bindings_[binding.var] = &binding; });
  }

  Observer observer() {
    return [this](const Function& function, VarId var, const RunValue& value) {
      const auto bound = bindings_.find(var);
      if (&function != &function_ || bound == bindings_.end()) return;
      const Binding& binding = *bound->second;
      // The operand of an if or a match was read before its arms, which have run by now.
      const bool arms = std::holds_alternative<If>(binding.value) || std::holds_alternative<Case>(binding.value);
      const bool field = std::holds_alternative<Project>(binding.value);  // reads no other field
      if (field) read(value, index(binding.var));
      for_each_operand(binding.value, [&](const Atom& atom) {
        if (arms || field) return;
        auto* operand = std::get_if<VarId>(&atom);
        auto found = operand ? values_.find(*operand) : values_.end();
        if (found != values_.end()) read(found->second, index(*operand));
      });
      values_[binding.var] = value;
      kept_.push_back(value);  // or another object may get its address
      auto* call = std::get_if<Call>(&binding.value);
      auto* name = call ? std::get_if<Symbol>(&call->callee) : nullptr;
      const Function* callee = name ? module_.function(*name) : nullptr;
      // Another function may return tensors that existed before.
      const bool makes = std::holds_alternative<Apply>(binding.value) || (callee && !callee->composite.empty());
      auto found = of_.find(binding.var);
      if (!makes || found == of_.end()) return;
      std::vector<const RunObject*> parts;
      tensors(value, parts);
      ASSERT_EQ(parts.size(), found->second.size());
      for (size_t i = 0; i < parts.size(); ++i) write(plan_.tensors[found->second[i]], parts[i]);
    };
  }
  void read(const RunValue& value, size_t where) {
    std::vector<const RunObject*> open{value.object.get()};
    std::set<const RunObject*> seen;
    while (!open.empty()) {
      const RunObject* object = open.back();
      open.pop_back();
      if (!object || !seen.insert(object).second) continue;
      if (destroyed_.contains(object) && broken_.empty()) broken_ = "read by variable " + std::to_string(where);
      for (const RunValue& field : object->fields) open.push_back(field.object.get());
    }
  }
  const std::string& broken() const { return broken_; }
  const MemoryPlan& plan() const { return plan_; }
  int64_t writes() const { return writes_; }

 private:
  static void tensors(const RunValue& value, std::vector<const RunObject*>& parts) {
    if (value.tensor()) parts.push_back(value.object.get());
    else if (value.object->kind == RunObject::Kind::kTuple) {
      for (const RunValue& field : value.fields()) tensors(field, parts);
    }
  }
  void write(const PlannedTensor& planned, const RunObject* tensor) {
    // A closure may return a tensor again.
    if (planned.offset == PlannedTensor::kOutside || !written_.insert(tensor).second) return;
    ++writes_;
    if (static_cast<int64_t>(tensor->tensor.bytes().size()) > planned.bytes) broken_ = "larger than planned";
    if (planned.offset + planned.bytes > plan_.arena) broken_ = "beyond the arena";
    for (auto it = memory_.begin(); it != memory_.end();) {
      const auto& [offset, end, other] = *it;
      if (offset < planned.offset + planned.bytes && planned.offset < end) {
        destroyed_.insert(other);
        it = memory_.erase(it);
      } else {
        ++it;
      }
    }
    memory_.emplace_back(planned.offset, planned.offset + planned.bytes, tensor);
  }

  const Module& module_;
  const Function& function_;
  MemoryPlan plan_;
  std::map<VarId, std::vector<size_t>> of_;
  std::map<VarId, const Binding*> bindings_;
  std::map<VarId, RunValue> values_;
  std::vector<RunValue> kept_;
  std::set<const RunObject*> written_, destroyed_;
  std::vector<std::tuple<int64_t, int64_t, const RunObject*>> memory_;
  std::string broken_;
  int64_t writes_ = 0;
};

struct Sums {
  int64_t writes = 0, arena = 0, peak = 0, total = 0;
};

void watch_random(bool control, int count, Sums& sums) {
  for (int seed = 1; seed <= count; ++seed) {
    Context context;
    Module module = fuzz::random_module(context, 7000 + seed, {.control = control});
    if (seed % 2 == 0) {
      auto fused = fuse(context, std::move(module));
      ASSERT_TRUE(fused) << fused.error().str();
      module = std::move(*fused);
    }
    const Symbol main = context.symbol("main");
    Random random(seed);
    const auto inputs = fuzz::random_inputs(context, module, *module.function(main), random);
    ASSERT_TRUE(inputs) << inputs.error().str();
    Libraries libraries;
    for (const char* name : fuzz::kLibraries) {
      libraries[name] = [](std::span<const RunValue> args) -> Expected<RunValue> { return args[0]; };
    }
    Watch watch(context, module, main);
    auto result = interpret(context, module, main, *inputs, watch.observer(), libraries, {.steps = 100'000});
    if (result) watch.read(*result, SIZE_MAX);
    ASSERT_EQ(watch.broken(), "") << "seed " << seed << "\n" << print(context, module).text;
    const MemoryPlan& plan = watch.plan();
    ASSERT_GE(plan.arena, plan.peak);
    ASSERT_LE(plan.arena, plan.total);
    sums.arena += plan.arena, sums.peak += plan.peak, sums.total += plan.total;
    sums.writes += watch.writes();
  }
}

TEST(Memory, TensorsThatAreLiveAtOnceDoNotOverlap) {
  constexpr auto kModules = static_cast<int>(rounds(150));
  Sums sums;
  watch_random(true, kModules, sums);
  watch_random(false, kModules, sums);
  EXPECT_GT(sums.writes, 10 * kModules);
  EXPECT_LT(sums.arena, sums.total);
  EXPECT_LT(sums.arena, sums.peak * 11 / 10);  // first fit by decreasing size is near the bound
}

class Plans : public testing::Test {
 protected:
  MemoryPlan plan(const std::string& text) {
    auto module = parse(context_, "#[version = \"1\"]\n" + text);
    EXPECT_TRUE(module) << module.error().str();
    return module ? plan_memory(context_, *module, *module->function(context_.symbol("main"))) : MemoryPlan{};
  }
  Context context_;
};

TEST_F(Plans, AChainTakesTheMemoryOfTwoTensors) {
  const MemoryPlan chain = plan("def @main(%x: Tensor[(16,), f32]) { relu(tanh(relu(tanh(relu(tanh(%x)))))) }");
  EXPECT_EQ(chain.arena, 128);
  EXPECT_EQ(chain.peak, 128);
  EXPECT_EQ(chain.total, 5 * 64);
  EXPECT_EQ(chain.outside, 64);
  EXPECT_THAT(str(chain),
              HasSubstr("5 tensors in 128 bytes (128 live at once, 320 without reuse); 64 bytes of results"));
}

TEST_F(Plans, ATupleKeepsItsFields) {
  const MemoryPlan kept = plan(R"(def @main(%x: Tensor[(16,), f32]) {
    let %t = (tanh(%x), relu(%x));
    let %a = relu(%x) + tanh(%x);
    relu(%a) * %t.0
  })");
  EXPECT_EQ(kept.tensors[0].last, 9u);  // through the tuple, until the projection is used
  EXPECT_EQ(kept.tensors[1].last, 3u);
}

TEST_F(Plans, BoundsAreTheSizesThatArePlanned) {
  const MemoryPlan bounded = plan("def @main[n in 1..100](%x: Tensor[(n,), f32]) { relu(tanh(%x)) }");
  EXPECT_EQ(bounded.arena, 448);
  EXPECT_EQ(bounded.unknown, 0u);
  const MemoryPlan open = plan("def @main[n](%x: Tensor[(n,), f32]) { relu(tanh(%x)) }");
  EXPECT_EQ(open.arena, 0);
  EXPECT_EQ(open.unknown, 1u);
}

TEST_F(Plans, ArmsShareAndCellsKeep) {
  const MemoryPlan arms = plan(R"(def @main(%c: Tensor[(), bool], %x: Tensor[(16,), f32]) {
    let %y = if (%c) { relu(tanh(%x)) } else { tanh(relu(%x)) };
    relu(%y)
  })");
  EXPECT_LE(arms.arena, 3 * 64);
  const MemoryPlan cell = plan(R"(def @main(%r: Ref[Tensor[(16,), f32]], %x: Tensor[(16,), f32]) {
    write(%r, tanh(%x));
    relu(%x)
  })");
  EXPECT_EQ(cell.arena, 0);
  EXPECT_EQ(cell.outside, 128);
}

}  // namespace
}  // namespace tenon::compiler
