// The text of an instruction states every field of it: a change of any field is a change of the text.
#include "compiler/lower/listing.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>

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

// Instructions of one kind; each differs from the first in one field.
using Variants = std::vector<Operation>;

const std::vector<Variants>& kinds() {
  static const Size one{{Op::kConstant, 1}}, two{{Op::kConstant, 2}};
  static const std::vector<Variants> kinds{
      {CallKernel{"pad", {{"value", 0.5}}, {1}, {2}}, CallKernel{"slice", {{"value", 0.5}}, {1}, {2}},
       CallKernel{"pad", {{"value", 1.5}}, {1}, {2}}, CallKernel{"pad", {{"axis", 0.5}}, {1}, {2}},
       CallKernel{"pad", {{"value", 0.5}}, {3}, {2}}, CallKernel{"pad", {{"value", 0.5}}, {1}, {3}},
       CallKernel{"pad", {{"value", 0.5}}, {1}, {2}, {{"after"}}},
       CallKernel{"pad", {{"value", 0.5}}, {1}, {2}, {{"before"}}},
       CallKernel{"pad", {{"value", 0.5}}, {1}, {2}, {{"after", ComputedKind::kReals}}},
       CallKernel{"pad", {{"value", 0.5}}, {1}, {2}, {{"after", ComputedKind::kIntegers, 2}}}},
      {CallProgram{0, {1}, {2}}, CallProgram{1, {1}, {2}}, CallProgram{0, {3}, {2}}, CallProgram{0, {1}, {3}}},
      {CallNative{0, 0, {1}, {2}}, CallNative{1, 0, {1}, {2}}, CallNative{0, 1, {1}, {2}}, CallNative{0, 0, {3}, {2}},
       CallNative{0, 0, {1}, {3}}, CallNative{0, 0, {1}, {2}, {{64, 128}}}, CallNative{0, 0, {1}, {2}, {{0, 128}}},
       CallNative{0, 0, {1}, {2}, {{64, 64}}}, CallNative{0, 0, {1}, {2}, {{0, 0}}},
       CallNative{0, 0, {1}, {2}, {{64, 0}}}},
      {CallFunction{0, {1}, {2}}, CallFunction{1, {1}, {2}}, CallFunction{0, {3}, {2}}, CallFunction{0, {1}, {3}}},
      {Move{1, 2}, Move{3, 2}, Move{1, 3}},
      {LoadConstant{1, 0}, LoadConstant{2, 0}, LoadConstant{1, 1}},
      {Jump{1}, Jump{2}},
      {Branch{1, 2}, Branch{3, 2}, Branch{1, 3}},
      {Kill{{1}}, Kill{{2}}, Kill{{1, 2}}},
      {Return{{1}}, Return{{2}}, Return{{1, 2}}},
      {CallClosure{1, {2}, {3}}, CallClosure{4, {2}, {3}}, CallClosure{1, {4}, {3}}, CallClosure{1, {2}, {4}}},
      {TailCall{0, {1}}, TailCall{1, {1}}, TailCall{0, {2}}},
      {TailCallClosure{0, {1}}, TailCallClosure{1, {1}}, TailCallClosure{0, {2}}},
      {ScalarCompute{ScalarOp::kAdd, DType::kI64, 1, 2, 3}, ScalarCompute{ScalarOp::kSubtract, DType::kI64, 1, 2, 3},
       ScalarCompute{ScalarOp::kAdd, DType::kI32, 1, 2, 3}, ScalarCompute{ScalarOp::kAdd, DType::kI64, 4, 2, 3},
       ScalarCompute{ScalarOp::kAdd, DType::kI64, 1, 4, 3}, ScalarCompute{ScalarOp::kAdd, DType::kI64, 1, 2, 4}},
      {BindSize{1, 2, 0, {3}, one, one}, BindSize{4, 2, 0, {3}, one, one}, BindSize{1, 4, 0, {3}, one, one},
       BindSize{1, 2, 1, {3}, one, one}, BindSize{1, 2, 0, {4}, one, one}, BindSize{1, 2, 0, {3}, two, one},
       BindSize{1, 2, 0, {3}, one, two}},
      {ComputeSize{1, {2}, one}, ComputeSize{3, {2}, one}, ComputeSize{1, {3}, one}, ComputeSize{1, {2}, two},
       ComputeSize{1, {2}, {}}},
      {CheckShape{1, DType::kF32, {one}, {2}, {}, false, "x", "y"},
       CheckShape{3, DType::kF32, {one}, {2}, {}, false, "x", "y"},
       CheckShape{1, DType::kI8, {one}, {2}, {}, false, "x", "y"},
       CheckShape{1, DType::kF32, {two}, {2}, {}, false, "x", "y"},
       CheckShape{1, DType::kF32, {one, one}, {2}, {}, false, "x", "y"},
       CheckShape{1, DType::kF32, {one}, {3}, {}, false, "x", "y"},
       CheckShape{1, DType::kF32, {one}, {2}, {2}, false, "x", "y"},
       CheckShape{1, DType::kF32, {one}, {2}, {}, true, "x", "y"},
       CheckShape{1, DType::kF32, {one}, {2}, {}, false, "z", "y"},
       CheckShape{1, DType::kF32, {one}, {2}, {}, false, "x", "z"}},
      {CheckSize{1, 2, 3, "x"}, CheckSize{4, 2, 3, "x"}, CheckSize{1, 1, 3, "x"}, CheckSize{1, 2, 4, "x"},
       CheckSize{1, 2, 3, "y"}},
      {Construct{1, 0, 0, {2}}, Construct{3, 0, 0, {2}}, Construct{1, 1, 0, {2}}, Construct{1, 0, 1, {2}},
       Construct{1, 0, 0, {3}}, Construct{1, kTupleType, 0, {2}}},
      {ReadField{1, 2, 0}, ReadField{3, 2, 0}, ReadField{1, 3, 0}, ReadField{1, 2, 1}},
      {Switch{1, 0, {2, 3}}, Switch{2, 0, {2, 3}}, Switch{1, 1, {2, 3}}, Switch{1, 0, {3, 3}}},
      {MakeClosure{1, 0, {2}}, MakeClosure{3, 0, {2}}, MakeClosure{1, 1, {2}}, MakeClosure{1, 0, {3}}},
      {MakeReference{1, 2}, MakeReference{3, 2}, MakeReference{1, 3}},
      {ReadReference{1, 2}, ReadReference{3, 2}, ReadReference{1, 3}},
      {WriteReference{1, 2}, WriteReference{3, 2}, WriteReference{1, 3}},
      {StartProgram{0, {1}}, StartProgram{1, {1}}, StartProgram{0, {2}}, StartProgram{0, {1, 2}}},
      {StartNative{0, 0, {1}}, StartNative{1, 0, {1}}, StartNative{0, 1, {1}}, StartNative{0, 0, {2}}},
  };
  return kinds;
}

TEST(Listing, EveryFieldIsInTheText) {
  const Executable e = executable();
  std::set<std::string> texts;
  std::set<size_t> alternatives;
  size_t count = 0;
  for (const Variants& variants : kinds()) {
    alternatives.insert(variants[0].index());
    for (const Operation& operation : variants) {
      const std::string text = text_of(e, operation);
      EXPECT_TRUE(texts.insert(text).second) << "two instructions are: " << text;
      ++count;
    }
  }
  EXPECT_EQ(alternatives.size(), std::variant_size_v<Operation>);
  EXPECT_GT(count, 3 * alternatives.size());
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
