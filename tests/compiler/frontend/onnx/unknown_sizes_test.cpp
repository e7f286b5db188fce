// Models whose sizes are not known when they are imported give the results of those whose sizes are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/frontend/onnx.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/verifier.h"
#include "tests/compiler/frontend/onnx/build_model.h"

namespace tenon::compiler {
namespace {

using namespace test;  // NOLINT
using runtime::Tensor;
using testing::ElementsAre;

Tensor first_result(const ::onnx::ModelProto& model, const std::vector<Tensor>& inputs) {
  Context context;
  const std::string bytes = model.SerializeAsString();
  auto module = import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "m.onnx", .shapes = {}});
  EXPECT_TRUE(module) << module.error().str();
  if (!module) return Tensor(DType::kF32, {0});
  EXPECT_TRUE(verify(context, *module)) << verify(context, *module).error().str();
  auto results = interpret(context, *module, context.symbol("main"), inputs);
  EXPECT_TRUE(results) << results.error().str();
  return results ? results->front() : Tensor(DType::kF32, {0});
}
void forget_size(::onnx::ModelProto& model, int input, int axis, const std::string& name) {
  auto& type = *model.mutable_graph()->mutable_input(input)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->mutable_dim(axis)->set_dim_param(name);
}
Tensor counting(const runtime::Shape& shape) {
  Tensor tensor(DType::kF32, shape);
  for (size_t i = 0; i < tensor.data<float>().size(); ++i) tensor.data<float>()[i] = static_cast<float>(i % 7) / 4;
  return tensor;
}
std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.data<float>();
  return {values.begin(), values.end()};
}
void add_floats(::onnx::ModelProto& model, const std::string& name, const std::vector<int64_t>& shape,
                const std::vector<float>& values) {
  ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  for (const int64_t size : shape) tensor.add_dims(size);
  for (const float value : values) tensor.add_float_data(value);
}
// The model, then the same with unknown sizes.
void expect_same(::onnx::ModelProto model, const std::vector<Tensor>& inputs,
                 const std::vector<std::tuple<int, int, std::string>>& unknown) {
  const Tensor expected = first_result(model, inputs);
  EXPECT_GT(expected.size(), 0);
  for (const auto& [input, axis, name] : unknown) forget_size(model, input, axis, name);
  const Tensor found = first_result(model, inputs);
  EXPECT_EQ(found.shape(), expected.shape());
  EXPECT_EQ(values_of(found), values_of(expected));
}

TEST(UnknownSizes, ResizeByAFraction) {
  ::onnx::ModelProto model = model_of(13);
  add_input(model, "x", {1, 1, 5, 3});
  add_floats(model, "scales", {4}, {1, 1, 0.6f, 2});
  add_node(*model.mutable_graph(), "Resize", {"x", "", "scales"}, {"y"});
  add_outputs(model, {"y"});
  expect_same(model, {counting({1, 1, 5, 3})}, {{0, 2, "H"}, {0, 3, "W"}});
}

// As exporters write it: scales and region are there, and empty.
TEST(UnknownSizes, ResizeToSizesThatAreComputed) {
  ::onnx::ModelProto model = model_of(13);
  auto& graph = *model.mutable_graph();
  add_input(model, "x", {1, 2, 4, 3});
  add_floats(model, "empty", {0}, {});
  for (const auto& [name, value] : {std::pair{"zero", 0}, {"two", 2}, {"four", 4}}) add_ints(model, name, {1}, {value});
  add_node(graph, "Shape", {"x"}, {"shape"});
  add_node(graph, "Slice", {"shape", "zero", "two", "zero"}, {"outer"});
  add_node(graph, "Slice", {"shape", "two", "four", "zero"}, {"inner"});
  add_node(graph, "Mul", {"inner", "two"}, {"doubled"});
  set_int(add_node(graph, "Concat", {"outer", "doubled"}, {"sizes"}), "axis", 0);
  add_node(graph, "Resize", {"x", "empty", "empty", "sizes"}, {"y"});
  add_outputs(model, {"y"});
  expect_same(model, {counting({1, 2, 4, 3})}, {{0, 2, "H"}, {0, 3, "W"}});
}

TEST(UnknownSizes, AttentionToEarlierTokens) {
  ::onnx::ModelProto model = model_of(23);
  for (const char* name : {"q", "k", "v"}) add_input(model, name, {2, 2, 4, 8});
  set_int(add_node(*model.mutable_graph(), "Attention", {"q", "k", "v"}, {"y"}), "is_causal", 1);
  add_outputs(model, {"y"});
  const Tensor x = counting({2, 2, 4, 8});
  std::vector<std::tuple<int, int, std::string>> unknown;
  for (int i = 0; i < 3; ++i) unknown.insert(unknown.end(), {{i, 0, "B"}, {i, 2, "S"}});
  expect_same(model, {x, x, x}, unknown);
}

TEST(UnknownSizes, RecurrentLayersWithoutAnInitialState) {
  ::onnx::ModelProto model = model_of(14);
  add_input(model, "x", {3, 2, 2});
  add_floats(model, "w", {1, 2, 2}, {0.5f, -1, 1, 0.25f});
  add_floats(model, "r", {1, 2, 2}, {0.25f, 0.5f, -0.5f, 1});
  set_int(add_node(*model.mutable_graph(), "RNN", {"x", "w", "r"}, {"y"}), "hidden_size", 2);
  add_outputs(model, {"y"});
  expect_same(model, {counting({3, 2, 2})}, {{0, 0, "T"}, {0, 1, "B"}});
}

TEST(Integers, AreResizedAsFloatsAndTruncated) {
  ::onnx::ModelProto model = model_of(13);
  add_input(model, "x", {1, 1, 1, 3}, ::onnx::TensorProto::UINT8);
  add_floats(model, "scales", {4}, {1, 1, 1, 2});
  add_node(*model.mutable_graph(), "Resize", {"x", "", "scales"}, {"y"});
  add_outputs(model, {"y"});
  const Tensor y = first_result(model, {Tensor::of<uint8_t>({1, 1, 1, 3}, std::vector<uint8_t>{3, 255, 128})});
  const auto values = y.data<uint8_t>();
  EXPECT_THAT(std::vector<int>(values.begin(), values.end()), ElementsAre(3, 3, 255, 255, 128, 128));
  auto& mode = add_attribute(*model.mutable_graph()->mutable_node(0), "mode", ::onnx::AttributeProto::STRING);
  mode.set_s("linear");
  const Tensor linear = first_result(model, {Tensor::of<uint8_t>({1, 1, 1, 3}, std::vector<uint8_t>{3, 255, 128})});
  const auto between = linear.data<uint8_t>();
  EXPECT_THAT(std::vector<int>(between.begin(), between.end()), ElementsAre(3, 66, 192, 223, 159, 128));
}

std::string refusal(const ::onnx::ModelProto& model) {
  Context context;
  const std::string bytes = model.SerializeAsString();
  const auto module = import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "m.onnx", .shapes = {}});
  return module ? "imported" : module.error().str();
}

TEST(ImpossibleSizes, HaveNoCount) {
  ::onnx::ModelProto model = model_of(13);
  add_input(model, "x", {int64_t{1} << 40, int64_t{1} << 40});
  add_node(*model.mutable_graph(), "Size", {"x"}, {"y"});
  add_outputs(model, {"y"});
  EXPECT_THAT(refusal(model), testing::HasSubstr("x has the impossible shape (1099511627776, 1099511627776)"));
}

TEST(BlocksOfATable, AreChecked) {
  ::onnx::ModelProto model = model_of(21, {"com.microsoft"});
  add_ints(model, "table", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  add_ints(model, "indices", {1}, {0});
  add_floats(model, "scales", {2}, {1, 2});
  add_node(*model.mutable_graph(), "GatherBlockQuantized", {"table", "indices", "scales"}, {"y"}, "com.microsoft");
  add_outputs(model, {"y"});
  EXPECT_THAT(refusal(model), testing::HasSubstr("4 bits in i64 are not supported"));
  auto& table = *model.mutable_graph()->mutable_initializer(0);
  table.clear_int64_data();
  table.set_data_type(::onnx::TensorProto::UINT8);
  table.set_raw_data("12345678");
  EXPECT_THAT(refusal(model), testing::HasSubstr("scales and zero points must be 1 to a row"));
}

}  // namespace
}  // namespace tenon::compiler
