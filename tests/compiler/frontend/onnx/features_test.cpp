// Features of ONNX beside its operators: functions, sparse tensors, sequences, metadata.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "compiler/frontend/onnx.h"
#include "compiler/frontend/onnx/model.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/verifier.h"
#include "support/file.h"
#include "support/function_ref.h"
#include "tests/compiler/frontend/onnx/build_model.h"

namespace tenon::compiler {
namespace {

using namespace test;  // NOLINT
using runtime::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

// The results of the model, or what is wrong.
Expected<std::vector<Tensor>> results_of(const ::onnx::ModelProto& model, const std::vector<Tensor>& inputs,
                                         const std::map<std::string, int64_t>& shapes = {}) {
  Context context;
  const std::string bytes = model.SerializeAsString();
  auto module = import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "m.onnx", .shapes = shapes});
  if (!module) return std::unexpected(module.error());
  if (const Status status = verify(context, *module); !status) return std::unexpected(status.error());
  return interpret(context, *module, context.symbol("main"), inputs);
}
std::string message(const ::onnx::ModelProto& model) {
  const auto results = results_of(model, {});
  return results ? "no error" : results.error().str();
}
std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.data<float>();
  return {values.begin(), values.end()};
}
Tensor vector_of(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

void add_function(::onnx::ModelProto& model, const std::string& overload, const std::string& op) {
  ::onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("my"), function.set_name("f"), function.set_overload(overload);
  function.add_opset_import()->set_version(18);
  add_names(function.mutable_input(), {"x"});
  add_names(function.mutable_output(), {"y"});
  add_node(function, op, {"x"}, {"y"});
}

TEST(Functions, OverloadsOfANameAreDifferentFunctions) {
  ::onnx::ModelProto model = model_of(18, {"my"});
  add_function(model, "one", "Neg");
  add_function(model, "two", "Exp");
  add_input(model, "x", {2});
  add_node(*model.mutable_graph(), "f", {"x"}, {"a"}, "my").set_overload("one");
  add_node(*model.mutable_graph(), "f", {"x"}, {"b"}, "my").set_overload("two");
  add_outputs(model, {"a", "b"});
  const auto results = results_of(model, {vector_of({0, 1})});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_THAT(floats((*results)[0]), ElementsAre(0, -1));
  EXPECT_THAT(floats((*results)[1]), ElementsAre(1, testing::FloatNear(2.7182818f, 1e-6f)));
  model.mutable_graph()->mutable_node(0)->set_overload("three");
  EXPECT_THAT(message(model), HasSubstr("the operator my.f is not supported"));
}

// --- Sparse tensors ---

void set_sparse(::onnx::SparseTensorProto& sparse, const std::vector<int64_t>& shape,
                const std::vector<int64_t>& indices, bool linear) {
  sparse.mutable_values()->set_name("w");
  sparse.mutable_values()->set_data_type(::onnx::TensorProto::FLOAT);
  const auto count = static_cast<int64_t>(linear ? indices.size() : indices.size() / shape.size());
  sparse.mutable_values()->add_dims(count);
  for (int64_t i = 0; i < count; ++i) sparse.mutable_values()->add_float_data(static_cast<float>(i + 1));
  ::onnx::TensorProto& at = *sparse.mutable_indices();
  at.set_data_type(::onnx::TensorProto::INT64);
  at.add_dims(count);
  if (!linear) at.add_dims(static_cast<int64_t>(shape.size()));
  for (const int64_t index : indices) at.add_int64_data(index);
  for (const int64_t size : shape) sparse.add_dims(size);
}
::onnx::ModelProto sparse_model(const std::vector<int64_t>& shape, const std::vector<int64_t>& indices, bool linear) {
  ::onnx::ModelProto model = model_of(13);
  add_input(model, "x", {1});
  set_sparse(*model.mutable_graph()->add_sparse_initializer(), shape, indices, linear);
  add_node(*model.mutable_graph(), "Mul", {"x", "w"}, {"y"});
  add_outputs(model, {"y"});
  return model;
}

TEST(SparseTensors, BecomeDense) {
  for (const auto& model : {sparse_model({2, 3}, {1, 5}, true), sparse_model({2, 3}, {0, 1, 1, 2}, false)}) {
    const auto results = results_of(model, {vector_of({2})});
    ASSERT_TRUE(results) << results.error().str();
    EXPECT_EQ((*results)[0].shape(), (runtime::Shape{2, 3}));
    EXPECT_THAT(floats((*results)[0]), ElementsAre(0, 2, 0, 0, 0, 4));
  }
  ::onnx::ModelProto constant = model_of(13);
  ::onnx::NodeProto& node = add_node(*constant.mutable_graph(), "Constant", {}, {"y"});
  set_sparse(*add_attribute(node, "sparse_value", ::onnx::AttributeProto::SPARSE_TENSOR).mutable_sparse_tensor(), {3},
             {2}, true);
  add_outputs(constant, {"y"});
  const auto results = results_of(constant, {});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_THAT(floats((*results)[0]), ElementsAre(0, 0, 1));
}

TEST(SparseTensors, WhatIsWrongIsNamed) {
  EXPECT_THAT(message(sparse_model({2, 3}, {6}, true)), HasSubstr("initializer 'w' has the value 0 outside of (2, 3)"));
  EXPECT_THAT(message(sparse_model({2, 3}, {-1}, true)), HasSubstr("outside of (2, 3)"));
  EXPECT_THAT(message(sparse_model({2, 3}, {0, 0, 1, 3}, false)), HasSubstr("has the value 1 outside of (2, 3)"));
  EXPECT_THAT(message(sparse_model({1 << 30, 1 << 30}, {0}, true)),
              HasSubstr("of which 67108864 elements are supported"));
  EXPECT_THAT(message(sparse_model({-2, 3}, {0}, true)), HasSubstr("is a sparse tensor (-2, 3)"));
  ::onnx::ModelProto model = sparse_model({2, 3}, {1, 5}, true);
  model.mutable_graph()->mutable_sparse_initializer(0)->mutable_indices()->set_dims(0, 1);
  model.mutable_graph()->mutable_sparse_initializer(0)->mutable_indices()->add_dims(2);
  EXPECT_THAT(message(model), HasSubstr("2 values at indices i64 (1, 2), must be i64 (2,) or (2, 2)"));
}

// --- Sequences ---

TEST(Sequences, OfKnownLengthsAreResolved) {
  ::onnx::ModelProto model = model_of(18);
  auto& graph = *model.mutable_graph();
  add_input(model, "x", {2, 3});
  for (const auto& [name, value] : {std::pair{"first", 0}, {"last", -1}}) add_ints(model, name, {}, {value});
  add_ints(model, "two", {}, {2});
  auto& split = add_node(graph, "SplitToSequence", {"x"}, {"columns"});
  set_int(split, "axis", 1), set_int(split, "keepdims", 0);
  add_node(graph, "SequenceAt", {"columns", "last"}, {"c"});
  add_node(graph, "SequenceInsert", {"columns", "c", "first"}, {"four"});
  add_node(graph, "SequenceErase", {"four", "two"}, {"three"});
  auto& map = add_node(graph, "SequenceMap", {"three", "c"}, {"sums"});
  auto& body = set_graph(map, "body");
  body.set_name("body");
  body.add_input()->set_name("a"), body.add_input()->set_name("b");
  add_node(body, "Add", {"a", "b"}, {"sum"});
  body.add_output()->set_name("sum");
  auto& join = add_node(graph, "ConcatFromSequence", {"sums"}, {"y"});
  set_int(join, "axis", 1), set_int(join, "new_axis", 1);
  add_node(graph, "SequenceLength", {"sums"}, {"n"});
  auto& uneven = add_node(graph, "SplitToSequence", {"x", "two"}, {"parts"});
  set_int(uneven, "axis", 1);
  add_node(graph, "SequenceAt", {"parts", "last"}, {"tail"});
  add_outputs(model, {"y", "n", "tail"});
  const auto results = results_of(model, {Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ((*results)[0].shape(), (runtime::Shape{2, 3}));
  EXPECT_THAT(floats((*results)[0]), ElementsAre(6, 4, 6, 12, 10, 12));  // columns 3, 1, 3, each plus 3
  EXPECT_EQ((*results)[1].data<int64_t>()[0], 3);
  EXPECT_EQ((*results)[2].shape(), (runtime::Shape{2, 1}));
  EXPECT_THAT(floats((*results)[2]), ElementsAre(3, 6));
}

TEST(Sequences, WhatIsWrongIsNamed) {
  const auto broken = [](FunctionRef<void(::onnx::ModelProto&, ::onnx::GraphProto&)> change) {
    ::onnx::ModelProto model = model_of(18);
    add_input(model, "x", {2, 3});
    add_ints(model, "five", {}, {5});
    change(model, *model.mutable_graph());
    add_outputs(model, {"y"});
    return message(model);
  };
  EXPECT_THAT(broken([](auto&, auto& graph) {
                add_node(graph, "SequenceConstruct", {"x"}, {"s"});
                add_node(graph, "SequenceAt", {"s", "five"}, {"y"});
              }),
              HasSubstr("SequenceAt 'SequenceAt_of_y': error: the position 5 is outside of a sequence of 1"));
  EXPECT_THAT(broken([](auto&, auto& graph) { add_node(graph, "SequenceLength", {"x"}, {"y"}); }),
              HasSubstr("a sequence is required, found a tensor"));
  EXPECT_THAT(broken([](auto&, auto& graph) {
                add_node(graph, "SequenceEmpty", {}, {"s"});
                set_int(add_node(graph, "ConcatFromSequence", {"s"}, {"y"}), "axis", 0);
              }),
              HasSubstr("the sequence is empty"));
  EXPECT_THAT(
      broken([](auto& model, auto& graph) {
        set_type(*graph.add_input(), "at", {});
        graph.mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::INT64);
        add_node(graph, "SequenceConstruct", {"x", "five"}, {"s"});
        add_node(graph, "SequenceAt", {"s", "at"}, {"y"});
        (void)model;
      }),
      HasSubstr("the elements of the sequence have different ranks or types"));
  ::onnx::ModelProto model = model_of(18);
  model.mutable_graph()->add_input()->set_name("s");
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(1);
  add_node(*model.mutable_graph(), "SequenceLength", {"s"}, {"y"});
  add_outputs(model, {"y"});
  EXPECT_THAT(message(model), HasSubstr("m.onnx: error: input 's' is a sequence, whose length must be known"));
  EXPECT_THAT(message(model), HasSubstr("--shapes s=2 makes it the inputs s.0 and s.1"));
}

// A model of x, N rows of two, and of a position: its rows as a sequence.
::onnx::ModelProto rows_model() {
  ::onnx::ModelProto model = model_of(18);
  auto& graph = *model.mutable_graph();
  add_input(model, "x", {0, 2});
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
  set_type(*graph.add_input(), "at", {});
  graph.mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::INT64);
  set_int(add_node(graph, "SplitToSequence", {"x"}, {"rows"}), "keepdims", 0);
  return model;
}
std::vector<Tensor> rows_inputs(int64_t rows, int64_t at) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) values.insert(values.end(), {static_cast<float>(i), static_cast<float>(10 * i)});
  return {Tensor::of<float>({rows, 2}, values), Tensor::of<int64_t>({}, std::vector<int64_t>{at})};
}

TEST(Sequences, OfComputedLengthsAreLists) {
  ::onnx::ModelProto model = rows_model();
  auto& graph = *model.mutable_graph();
  add_node(graph, "SequenceAt", {"rows", "at"}, {"row"});
  add_node(graph, "SequenceErase", {"rows", "at"}, {"fewer"});
  add_node(graph, "SequenceErase", {"fewer"}, {"without_last"});
  add_node(graph, "SequenceInsert", {"without_last", "row", "at"}, {"with"});
  add_node(graph, "SequenceInsert", {"with", "row"}, {"more"});
  auto& map = add_node(graph, "SequenceMap", {"more", "row"}, {"sums"});
  auto& body = set_graph(map, "body");
  body.set_name("body");
  body.add_input()->set_name("a"), body.add_input()->set_name("b");
  add_node(body, "Add", {"a", "b"}, {"sum"});
  body.add_output()->set_name("sum");
  set_int(add_node(graph, "ConcatFromSequence", {"sums"}, {"flat"}), "axis", -1);
  auto& join = add_node(graph, "ConcatFromSequence", {"sums"}, {"y"});
  set_int(join, "axis", 0), set_int(join, "new_axis", 1);
  add_node(graph, "SequenceLength", {"sums"}, {"n"});
  add_outputs(model, {"y", "n", "flat"});
  // Of four rows, row 1 and the last one are erased; row 1 is inserted at 1, and appended; each is added to row 1. With
  // -2 it is row 2, which is inserted as the first one.
  const std::map<int64_t, std::vector<float>> expected{{1, {1, 10, 2, 20, 3, 30, 2, 20}},
                                                       {-2, {4, 40, 2, 20, 3, 30, 4, 40}}};
  for (const auto& [at, values] : expected) {
    const auto results = results_of(model, rows_inputs(4, at));
    ASSERT_TRUE(results) << results.error().str();
    EXPECT_EQ((*results)[0].shape(), (runtime::Shape{4, 2}));
    EXPECT_EQ((*results)[1].data<int64_t>()[0], 4);
    EXPECT_EQ(floats((*results)[0]), values);
    EXPECT_EQ(floats((*results)[2]), floats((*results)[0]));
  }
  for (const int64_t outside : {4, -5}) {
    const auto results = results_of(model, rows_inputs(4, outside));
    ASSERT_FALSE(results);
    EXPECT_THAT(results.error().what, HasSubstr("gather: the index 4 is not in -4 .. 3"));
  }
}

TEST(Sequences, OfDifferentLengthsInBranchesAndIterationsAreLists) {
  ::onnx::ModelProto model = rows_model();
  auto& graph = *model.mutable_graph();
  add_ints(model, "zero", {}, {0});
  add_ints(model, "three", {}, {3});
  add_node(graph, "SequenceAt", {"rows", "zero"}, {"row"});
  add_node(graph, "Greater", {"at", "zero"}, {"more"});
  auto& branch = add_node(graph, "If", {"more"}, {"s"});
  auto& then_branch = set_graph(branch, "then_branch");
  add_node(then_branch, "SequenceConstruct", {"row", "row"}, {"two"});
  then_branch.add_output()->set_name("two");
  auto& else_branch = set_graph(branch, "else_branch");
  add_node(else_branch, "SequenceEmpty", {}, {"none"});
  else_branch.add_output()->set_name("none");
  auto& loop = add_node(graph, "Loop", {"three", "", "s"}, {"t"});
  auto& body = set_graph(loop, "body");
  for (const char* name : {"i", "go", "so_far"}) body.add_input()->set_name(name);
  add_node(body, "Identity", {"go"}, {"on"});
  add_node(body, "SequenceInsert", {"so_far", "row"}, {"longer"});
  for (const char* name : {"on", "longer"}) body.add_output()->set_name(name);
  add_node(graph, "SequenceLength", {"t"}, {"n"});
  add_outputs(model, {"n"});
  for (const int64_t at : {0, 1}) {
    const auto results = results_of(model, rows_inputs(2, at));
    ASSERT_TRUE(results) << results.error().str();
    EXPECT_EQ((*results)[0].data<int64_t>()[0], at ? 5 : 3);
  }
}

// The attribute "type" of a node, which is added.
::onnx::TypeProto& add_type(::onnx::NodeProto& node) {
  ::onnx::AttributeProto& attr = *node.add_attribute();
  attr.set_name("type"), attr.set_type(::onnx::AttributeProto::TYPE_PROTO);
  return *attr.mutable_tp();
}

// An optional value of x's type that a branch leaves out, where `at` is 0.
::onnx::ModelProto optional_model() {
  ::onnx::ModelProto model = rows_model();
  auto& graph = *model.mutable_graph();
  add_ints(model, "zero", {}, {0});
  add_node(graph, "Greater", {"at", "zero"}, {"more"});
  auto& branch = add_node(graph, "If", {"more"}, {"o"});
  auto& then_branch = set_graph(branch, "then_branch");
  add_node(then_branch, "Optional", {"x"}, {"present"});
  then_branch.add_output()->set_name("present");
  auto& else_branch = set_graph(branch, "else_branch");
  add_type(add_node(else_branch, "Optional", {}, {"absent"})) = graph.input(0).type();
  else_branch.add_output()->set_name("absent");
  add_node(graph, "OptionalHasElement", {"o"}, {"has"});
  return model;
}

TEST(Optionals, ThatABranchLeavesOutAreKnownAtRunTime) {
  ::onnx::ModelProto model = optional_model();
  auto& graph = *model.mutable_graph();
  auto& selection = add_node(graph, "If", {"has"}, {"y"});
  auto& then_branch = set_graph(selection, "then_branch");
  add_node(then_branch, "OptionalGetElement", {"o"}, {"value"});
  then_branch.add_output()->set_name("value");
  auto& else_branch = set_graph(selection, "else_branch");
  add_node(else_branch, "Neg", {"x"}, {"negative"});
  else_branch.add_output()->set_name("negative");
  add_outputs(model, {"has", "y"});
  for (const int64_t at : {0, 1}) {
    const auto results = results_of(model, rows_inputs(2, at));
    ASSERT_TRUE(results) << results.error().str();
    EXPECT_EQ((*results)[0].data<bool>()[0], at == 1);
    EXPECT_EQ(floats((*results)[1]),
              at ? std::vector<float>({0, 0, 1, 10}) : std::vector<float>({-0.f, -0.f, -1, -10}));
  }
}

TEST(Optionals, ReadingAnAbsentOneIsAnError) {
  ::onnx::ModelProto model = optional_model();
  add_node(*model.mutable_graph(), "OptionalGetElement", {"o"}, {"y"});
  add_outputs(model, {"y"});
  const auto present = results_of(model, rows_inputs(2, 1));
  ASSERT_TRUE(present) << present.error().str();
  EXPECT_THAT(floats((*present)[0]), ElementsAre(0, 0, 1, 10));
  const auto absent = results_of(model, rows_inputs(2, 0));
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().what, HasSubstr("gather: the index 0"));
}

// The first iteration gets no value, each later one that of the one before.
TEST(Optionals, AreCarriedFromOneIterationToTheNext) {
  ::onnx::ModelProto model = rows_model();
  auto& graph = *model.mutable_graph();
  ::onnx::TypeProto& type = add_type(add_node(graph, "Optional", {}, {"first"}));
  *type.mutable_sequence_type()->mutable_elem_type() = graph.input(0).type();
  auto& loop = add_node(graph, "Loop", {"at", "", "first"}, {"last", "seen"});
  auto& body = set_graph(loop, "body");
  for (const char* name : {"i", "go", "before"}) body.add_input()->set_name(name);
  add_node(body, "Identity", {"go"}, {"on"});
  add_node(body, "OptionalHasElement", {"before"}, {"is_there"});
  add_node(body, "SequenceConstruct", {"x", "x"}, {"two"});
  add_node(body, "Optional", {"two"}, {"next"});
  for (const char* name : {"on", "next", "is_there"}) body.add_output()->set_name(name);
  add_node(graph, "OptionalHasElement", {"last"}, {"has"});
  add_outputs(model, {"has", "seen"});
  for (const int64_t count : {0, 3}) {
    const auto results = results_of(model, rows_inputs(2, count));
    ASSERT_TRUE(results) << results.error().str();
    EXPECT_EQ((*results)[0].data<bool>()[0], count > 0);
    const auto seen = (*results)[1].data<bool>();
    ASSERT_EQ(static_cast<int64_t>(seen.size()), count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i > 0);
  }
}

TEST(Optionals, ThatAreInputsAreStatedToBeAbsent) {
  ::onnx::ModelProto model = model_of(18);
  auto& graph = *model.mutable_graph();
  add_input(model, "x", {2});
  graph.add_input()->set_name("o");
  *graph.mutable_input(1)->mutable_type()->mutable_optional_type()->mutable_elem_type() = graph.input(0).type();
  add_node(graph, "OptionalHasElement", {"o"}, {"y"});
  add_outputs(model, {"y"});
  const auto absent = results_of(model, {vector_of({1, 2})}, {{"o.present", 0}});
  ASSERT_TRUE(absent) << absent.error().str();
  EXPECT_FALSE((*absent)[0].data<bool>()[0]);
  const auto present = results_of(model, {vector_of({1, 2}), vector_of({1, 2})});
  ASSERT_TRUE(present) << present.error().str();
  EXPECT_TRUE((*present)[0].data<bool>()[0]);
  const auto wrong = results_of(model, {}, {{"o.present", 2}});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().str(), HasSubstr("o.present=2, must be 0 to 1"));
}

TEST(Optionals, WithoutAValueHaveAType) {
  ::onnx::ModelProto model = model_of(18);
  add_node(*model.mutable_graph(), "Optional", {}, {"o"});
  add_node(*model.mutable_graph(), "OptionalHasElement", {"o"}, {"y"});
  add_outputs(model, {"y"});
  EXPECT_THAT(message(model), HasSubstr("an absent optional value requires its type as the attribute 'type'"));
  add_type(*model.mutable_graph()->mutable_node(0)).mutable_tensor_type()->set_elem_type(1);
  EXPECT_THAT(message(model), HasSubstr("the rank of an absent optional value is not known"));
}

TEST(Inputs, WithoutAShapeHaveTheStatedRank) {
  ::onnx::ModelProto model = model_of(18);
  auto& graph = *model.mutable_graph();
  graph.add_input()->set_name("x");
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  graph.add_input()->set_name("s");
  *graph.mutable_input(1)->mutable_type()->mutable_sequence_type()->mutable_elem_type() = graph.input(0).type();
  add_node(graph, "SequenceInsert", {"s", "x"}, {"t"});
  set_int(add_node(graph, "ConcatFromSequence", {"t"}, {"y"}), "axis", 0);
  add_outputs(model, {"y"});
  EXPECT_THAT(message(model), HasSubstr("--shapes x.rank=2 makes it a matrix"));
  const auto results =
      results_of(model, {vector_of({1}), vector_of({2, 3}), vector_of({})}, {{"x.rank", 1}, {"s", 2}, {"s.rank", 1}});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_THAT(floats((*results)[0]), ElementsAre(2, 3, 1));
}

TEST(Sequences, PartsMustBeTheWholeAndAnEmptyListHasNoConcatenation) {
  ::onnx::ModelProto model = rows_model();
  auto& graph = *model.mutable_graph();
  set_type(*graph.add_input(), "sizes", {2});
  graph.mutable_input(2)->mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::INT64);
  add_node(graph, "SplitToSequence", {"x", "sizes"}, {"parts"});
  set_int(add_node(graph, "ConcatFromSequence", {"parts"}, {"y"}), "axis", 0);
  set_int(add_node(graph, "ConcatFromSequence", {"rows"}, {"z"}), "axis", 0);
  add_outputs(model, {"y", "z"});
  const auto run = [&](int64_t rows, std::vector<int64_t> sizes) {
    std::vector<Tensor> inputs = rows_inputs(rows, 0);
    inputs.push_back(Tensor::of<int64_t>({2}, sizes));
    return results_of(model, inputs);
  };
  const auto whole = run(3, {1, 2});
  ASSERT_TRUE(whole) << whole.error().str();
  EXPECT_THAT(floats((*whole)[0]), ElementsAre(0, 0, 1, 10, 2, 20));
  EXPECT_FALSE(run(3, {1, 1}));
  EXPECT_FALSE(run(3, {2, 2}));
  EXPECT_FALSE(run(0, {0, 0}));
}

TEST(Sequences, OfInputsAndOutputsAreTensorsByTheirIndex) {
  ::onnx::ModelProto model = model_of(18);
  ::onnx::ValueInfoProto& input = *model.mutable_graph()->add_input();
  input.set_name("s");
  ::onnx::ValueInfoProto element;
  set_type(element, "", {0});
  element.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
  *input.mutable_type()->mutable_sequence_type()->mutable_elem_type() = element.type();
  add_input(model, "x", {1});
  add_node(*model.mutable_graph(), "SequenceInsert", {"s", "x"}, {"t"});
  add_outputs(model, {"t"});
  Context context;
  const std::string bytes = model.SerializeAsString();
  auto module = import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "m.onnx", .shapes = {{"s", 2}}});
  ASSERT_TRUE(module) << module.error().str();
  ASSERT_TRUE(verify(context, *module)) << verify(context, *module).error().str();
  const Function& main = *module->function(context.symbol("main"));
  ASSERT_EQ(main.params.size(), 3u);
  EXPECT_EQ(context.name(main.info(main.params[1]).name), "s.1");
  EXPECT_EQ(context.str(main.result), "(Tensor[(N_0,), f32], Tensor[(N_1,), f32], Tensor[(1,), f32])");
  const auto results = interpret(context, *module, context.symbol("main"),
                                 std::vector{vector_of({1, 2}), vector_of({3}), vector_of({4})});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_THAT(floats((*results)[1]), ElementsAre(3));
  EXPECT_THAT(floats((*results)[2]), ElementsAre(4));
}

TEST(Metadata, IsReadByName) {
  ::onnx::ModelProto model = model_of(18);
  auto& entry = *model.add_metadata_props();
  entry.set_key("character"), entry.set_value("a\nb");
  const auto file = std::filesystem::temp_directory_path() / ("metadata" + std::to_string(getpid()) + ".onnx");
  ASSERT_TRUE(write_file(file, std::string_view(model.SerializeAsString())));
  const auto metadata = onnx::read_metadata(file);
  std::filesystem::remove(file);
  ASSERT_TRUE(metadata) << metadata.error().str();
  EXPECT_EQ(*metadata, (std::map<std::string, std::string>{{"character", "a\nb"}}));
  EXPECT_FALSE(onnx::read_metadata("none.onnx"));
}

}  // namespace
}  // namespace tenon::compiler
