// Every node that is not supported is found, not the first alone.
#include "compiler/frontend/onnx_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <span>

#include "compiler/frontend/onnx/onnx.pb.h"
#include "support/file.h"

namespace tenon::compiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void floats(::onnx::ValueInfoProto* value, const char* name) {
  value->set_name(name);
  auto& type = *value->mutable_type()->mutable_tensor_type();
  type.set_elem_type(::onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_value(4);
}

void node(::onnx::GraphProto& graph, const char* op, const char* from, const char* to) {
  auto* one = graph.add_node();
  one->set_op_type(op), one->set_name(std::string("/") + to);
  one->add_input(from), one->add_output(to);
}

// x -> Foo -> a -> Relu -> b -> Bar -> c; Tanh(x) -> d is supported in any case.
::onnx::ModelProto with_two_unknown() {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  floats(graph.add_input(), "x");
  node(graph, "Foo", "x", "a");
  node(graph, "Relu", "a", "b");
  node(graph, "Bar", "b", "c");
  node(graph, "Tanh", "x", "d");
  floats(graph.add_output(), "c");
  floats(graph.add_output(), "d");
  return model;
}

Expected<OnnxCheck> checked(const ::onnx::ModelProto& model) {
  const std::filesystem::path file = fmt::format("{}/check_{}.onnx", testing::TempDir(), getpid());
  const std::string bytes = model.SerializeAsString();
  const Status written = write_file(file, std::as_bytes(std::span(bytes)));
  if (!written) return std::unexpected(written.error());
  Context context;
  return check_onnx(context, file);
}

std::vector<std::string> operators(const std::vector<OnnxProblem>& problems) {
  std::vector<std::string> found;
  for (const OnnxProblem& problem : problems) found.push_back(problem.op);
  return found;
}

TEST(OnnxCheck, FindsEveryNodeThatIsNotSupported) {
  const auto check = checked(with_two_unknown());
  ASSERT_TRUE(check) << check.error().str();
  EXPECT_THAT(operators(check->problems), ElementsAre("Foo", "Bar"));
  EXPECT_THAT(check->problems[0].diagnostic.str(),
              HasSubstr(".onnx: Foo '/a': error: the operator Foo is not supported"));
  EXPECT_THAT(operators(check->unexamined), ElementsAre("Relu"));
  EXPECT_EQ(check->unexamined[0].diagnostic.what, "its input 'a' is the result of such a node");
  EXPECT_EQ(check->operators, (std::map<std::string, size_t>{{"Bar", 1}, {"Foo", 1}, {"Relu", 1}, {"Tanh", 1}}));
  EXPECT_FALSE(check->module);
}

TEST(OnnxCheck, AStatedTypeStandsInForTheResultOfAnUnsupportedNode) {
  ::onnx::ModelProto model = with_two_unknown();
  floats(model.mutable_graph()->add_value_info(), "a");
  auto* attr = model.mutable_graph()->mutable_node(1)->add_attribute();
  attr->set_name("alpha"), attr->set_type(::onnx::AttributeProto::INT), attr->set_i(1);
  const auto check = checked(model);
  ASSERT_TRUE(check) << check.error().str();
  EXPECT_THAT(operators(check->problems), ElementsAre("Foo", "Relu", "Bar"));
  EXPECT_THAT(check->problems[1].diagnostic.str(), HasSubstr("Relu '/b': error: the attribute 'alpha'"));
  EXPECT_TRUE(check->unexamined.empty());
}

TEST(OnnxCheck, AModelWithoutProblemsIsImported) {
  ::onnx::ModelProto model = with_two_unknown();
  model.mutable_graph()->mutable_node(0)->set_op_type("Neg");
  model.mutable_graph()->mutable_node(2)->set_op_type("Abs");
  const auto check = checked(model);
  ASSERT_TRUE(check) << check.error().str();
  EXPECT_TRUE(check->problems.empty());
  EXPECT_TRUE(check->module);
}

// A model of another domain alone; its operator has one name in the table and in the locations.
TEST(OnnxCheck, OperatorsOfOtherDomainsAreNamedWithTheirDomain) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  auto* opset = model.add_opset_import();
  opset->set_domain("ai.onnx.ml"), opset->set_version(3);
  auto& graph = *model.mutable_graph();
  floats(graph.add_input(), "x");
  node(graph, "Binarizer", "x", "y");
  graph.mutable_node(0)->set_domain("ai.onnx.ml");
  floats(graph.add_output(), "y");
  const auto check = checked(model);
  ASSERT_TRUE(check) << check.error().str();
  EXPECT_EQ(check->operators, (std::map<std::string, size_t>{{"ai.onnx.ml.Binarizer", 1}}));
  ASSERT_TRUE(check->module);
  EXPECT_THAT(check->module->spans, testing::Contains(testing::Field(&Span::op, "ai.onnx.ml.Binarizer")));
}

}  // namespace
}  // namespace tenon::compiler
