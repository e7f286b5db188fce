// Scan of opset 8, which has a batch: each of its sequences is scanned for itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "compiler/frontend/onnx.h"
#include "compiler/ir/interpreter.h"
#include "tests/compiler/frontend/onnx/build_model.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace test;

// Sums of the rows of x [batch, rows, 2] so far, from `initial` [batch, 2] on.
::onnx::ModelProto model_of_sums(const std::string& lengths, const std::vector<int64_t>& directions) {
  ::onnx::ModelProto model = model_of(8);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  add_input(model, "lengths", {2}, ::onnx::TensorProto::INT64);
  add_input(model, "initial", {2, 2});
  add_input(model, "x", {2, 3, 2});
  ::onnx::NodeProto& scan = add_node(graph, "Scan", {lengths, "initial", "x"}, {"last", "all"});
  set_int(scan, "num_scan_inputs", 1);
  auto& attr = add_attribute(scan, "directions", ::onnx::AttributeProto::INTS);
  for (const int64_t direction : directions) attr.add_ints(direction);
  ::onnx::GraphProto& body = set_graph(scan, "body");
  body.set_name("body");
  for (const char* name : {"so_far", "row"}) body.add_input()->set_name(name);
  add_node(body, "Add", {"so_far", "row"}, {"sum"});
  add_node(body, "Identity", {"sum"}, {"element"});
  for (const char* name : {"sum", "element"}) body.add_output()->set_name(name);
  add_outputs(model, {"last", "all"});
  return model;
}

Expected<std::vector<Tensor>> sums_of(const ::onnx::ModelProto& model) {
  Context context;
  const std::string bytes = model.SerializeAsString();
  auto module = import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "m.onnx"});
  if (!module) return std::unexpected(std::move(module.error()));
  const std::vector<float> initial{0, 0, 100, 100}, x{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60};
  const std::vector<int64_t> lengths{3, 3};
  return interpret(context, *module, context.symbol("main"),
                   std::vector{Tensor::of<int64_t>({2}, lengths), Tensor::of<float>({2, 2}, initial),
                               Tensor::of<float>({2, 3, 2}, x)});
}

TEST(ScanOfABatch, EachSequenceHasItsOwnState) {
  const auto results = sums_of(model_of_sums("", {0}));
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ((*results)[1].shape(), (runtime::Shape{2, 3, 2}));
  const auto last = (*results)[0].data<float>(), all = (*results)[1].data<float>();
  EXPECT_THAT(std::vector(last.begin(), last.end()), ElementsAre(6, 60, 115, 250));
  EXPECT_THAT(std::vector(all.begin(), all.end()), ElementsAre(1, 10, 3, 30, 6, 60, 104, 140, 109, 190, 115, 250));
}

TEST(ScanOfABatch, ItsInputsMayBeReadFromTheirEnd) {
  const auto results = sums_of(model_of_sums("", {1}));
  ASSERT_TRUE(results) << results.error().str();
  const auto all = (*results)[1].data<float>();
  EXPECT_THAT(std::vector(all.begin(), all.end()), ElementsAre(3, 30, 5, 50, 6, 60, 106, 160, 111, 210, 115, 250));
}

TEST(ScanOfABatch, LengthsAndBatchesOfUnknownSizeAreErrors) {
  const auto with_lengths = sums_of(model_of_sums("lengths", {0}));
  ASSERT_FALSE(with_lengths);
  EXPECT_THAT(with_lengths.error().str(), HasSubstr("Scan with sequence_lens is not supported"));
  ::onnx::ModelProto model = model_of_sums("", {0});
  for (const int input : {1, 2}) {
    auto& type = *model.mutable_graph()->mutable_input(input)->mutable_type()->mutable_tensor_type();
    type.mutable_shape()->mutable_dim(0)->set_dim_param("N");
  }
  const auto unknown = sums_of(model);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().str(),
              HasSubstr("the states and scanned inputs of opset 8 require the same constant batch"));
}

TEST(ScanOfABatch, StatesHaveABatchAxis) {
  ::onnx::ModelProto model = model_of_sums("", {0});
  model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->mutable_shape()->clear_dim();
  const auto results = sums_of(model);
  ASSERT_FALSE(results);
  EXPECT_THAT(results.error().str(), HasSubstr("the states and scanned inputs of opset 8 require a batch axis"));
}

}  // namespace
}  // namespace tenon::compiler
