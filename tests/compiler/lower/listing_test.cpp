// The text of an instruction states every operand of it: a change of any operand is a change of the text.
#include "compiler/lower/listing.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// In the namespace of the instructions: some operations of the language have the same names.
namespace tenon::runtime {
namespace {

using compiler::text_of;
using Op = SizeStep::Op;

Executable executable() {
  Executable e;
  e.functions = {{.name = "main"}, {.name = "step"}};
  e.types = {{"List", {{"Cons", 2}, {"Nil", 0}}}, {"Tree", {{"Cons", 2}}}};
  e.constants = {Tensor(DType::kF32, {2}), Tensor(DType::kF32, {2})};
  e.programs.resize(2);
  e.programs[0].name = "first", e.programs[1].name = "second";
  e.natives.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    for (const char* name : {"dense", "relu"}) e.natives[i].kernels.emplace_back().name = fmt::format("{}{}", name, i);
  }
  return e;
}

// The values of an operand: the first one, and others, which the text must tell from it and from each other.
std::vector<uint32_t> values_of(uint32_t) { return {0, 1}; }
std::vector<std::vector<uint32_t>> values_of(const std::vector<uint32_t>&) { return {{1}, {0}, {1, 1}}; }
std::vector<uint64_t> values_of(uint64_t) { return {0, 1, uint64_t{1} << 32}; }
std::vector<int64_t> values_of(int64_t) { return {0, 1, int64_t{1} << 32}; }
std::vector<bool> values_of(bool) { return {false, true}; }
std::vector<std::string> values_of(const std::string&) { return {"x", "y"}; }
std::vector<DType> values_of(DType) { return {DType::kF32, DType::kI8}; }
std::vector<ScalarOp> values_of(ScalarOp) { return {ScalarOp::kAdd, ScalarOp::kSubtract}; }
std::vector<Size> values_of(const Size&) { return {{{Op::kConstant, 1}}, {{Op::kConstant, 2}}, {}}; }
std::vector<std::vector<Size>> values_of(const std::vector<Size>&) {
  const Size one{{Op::kConstant, 1}}, two{{Op::kConstant, 2}};
  return {{one}, {two}, {one, one}};
}
std::vector<Attrs> values_of(const Attrs&) { return {{{"value", 0.5}}, {{"value", 1.5}}, {{"axis", 0.5}}}; }
std::vector<std::vector<ArenaSlot>> values_of(const std::vector<ArenaSlot>&) {
  return {{}, {{64, 128}}, {{0, 128}}, {{64, 64}}, {{0, 0}}, {{64, 0}}};
}
std::vector<std::vector<ComputedAttr>> values_of(const std::vector<ComputedAttr>&) {
  return {{}, {{"after"}}, {{"before"}}, {{"after", ComputedKind::kReals}}, {{"after", ComputedKind::kIntegers, 2}}};
}

TEST(Listing, EveryOperandIsInTheText) {
  const Executable e = executable();
  std::set<std::string> texts;
  const auto expect_new = [&](const Operation& operation) {
    const std::string text = text_of(e, operation);
    EXPECT_TRUE(texts.insert(text).second) << "two instructions are: " << text;
  };
  const auto vary = [&]<class O>(O operation) {
    operation.operands(operation, [](auto& operand, Role, std::string_view) { operand = values_of(operand)[0]; });
    expect_new(operation);
    operation.operands(operation, [&](auto& operand, Role, std::string_view) {
      const auto values = values_of(operand);
      for (size_t i = 1; i < values.size(); ++i) {
        operand = values[i];
        expect_new(operation);
      }
      operand = values[0];
    });
  };
  [&]<size_t... i>(std::index_sequence<i...>) { (vary(std::variant_alternative_t<i, Operation>()), ...); }
  (std::make_index_sequence<kOpcodes>());
  EXPECT_GT(texts.size(), 3 * kOpcodes);
}

TEST(Listing, InstructionsAreReadable) {
  const Executable e = executable();
  EXPECT_EQ(text_of(e, CallKernel{"pad", {{"value", 0.5}}, {0, 1}, {2}, {{"after"}}}),
            "r2 = kernel pad(r0, r1) {value=0.5, after: integers of 1 operands}");
  EXPECT_EQ(text_of(e, CallNative{1, 0, {1}, {2}, {{64, 128}}}), "r2 = native dense1(r1) at 64+128");
  EXPECT_EQ(text_of(e, CallFunction{1, {1}, {}}), "call @step(r1)");
  EXPECT_EQ(text_of(e, BindSize{1, 2, 0, {}, {{Op::kConstant, 2}}, {{Op::kConstant, 1}}}),
            "r1 = n where axis 0 of r2 is 2 * n + 1");
  EXPECT_EQ(text_of(e, CheckShape{1, DType::kF32, {{{Op::kDim, 0}}}, {2}, {3}, true, "x", "y"}),
            "check r1 is f32 (r2) of (r2), known (r3), strictly, else \"x is ..., must be y\"");
  EXPECT_EQ(text_of(e, Construct{1, 0, 1, {}}), "r1 = List.Nil()");
  EXPECT_EQ(text_of(e, Construct{1, kTupleType, 0, {2, 3}}), "r1 = (r2, r3)");
  EXPECT_EQ(text_of(e, LoadConstant{1, 1}), "r1 = constant 1: f32 (2,)");
  EXPECT_EQ(text_of(e, Append{1, 2, 3, 1, 64}), "r1 = append r2, r3 along 1, room for 64");
}

TEST(Listing, SizesAreExpressions) {
  const std::vector<std::string> names{"n", "m"};
  const SizeStep n{Op::kDim, 0}, m{Op::kDim, 1}, four{Op::kConstant, 4}, add{Op::kAdd}, times{Op::kMultiply};
  EXPECT_EQ(text_of({four, n, times, m, add}, names), "(4 * n) + m");
  EXPECT_EQ(text_of({four, n, m, add, times}, names), "4 * (n + m)");
  EXPECT_EQ(text_of({n, four, {Op::kMax}, four, {Op::kFloorDivide}}, names), "max(n, 4) // 4");
  EXPECT_EQ(text_of({{Op::kDim, 2}}, names), "d2");
  EXPECT_EQ(text_of({{Op::kIndex, 0}, {Op::kElement, 1}}, names), "p1(i0)");
  EXPECT_EQ(text_of(Size{}, names), "?");
}

}  // namespace
}  // namespace tenon::runtime
