// ONNX models for tests, node by node.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/onnx.pb.h"

namespace tenon::compiler::test {

inline void add_names(auto* field, const std::vector<std::string>& names) {
  for (const std::string& name : names) *field->Add() = name;
}

inline ::onnx::AttributeProto& add_attribute(auto& owner, const std::string& name,
                                             ::onnx::AttributeProto::AttributeType type) {
  ::onnx::AttributeProto& attr = *owner.add_attribute();
  attr.set_name(name);
  attr.set_type(type);
  return attr;
}
inline void set_int(::onnx::NodeProto& node, const std::string& name, int64_t value) {
  add_attribute(node, name, ::onnx::AttributeProto::INT).set_i(value);
}
inline ::onnx::GraphProto& set_graph(::onnx::NodeProto& node, const std::string& name) {
  return *add_attribute(node, name, ::onnx::AttributeProto::GRAPH).mutable_g();
}

// To a graph or a function.
inline ::onnx::NodeProto& add_node(auto& owner, const std::string& op, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs, const std::string& domain = "") {
  ::onnx::NodeProto& node = *owner.add_node();
  node.set_op_type(op);
  node.set_domain(domain);
  node.set_name(op + "_of_" + (outputs.empty() ? "" : outputs[0]));
  add_names(node.mutable_input(), inputs);
  add_names(node.mutable_output(), outputs);
  return node;
}

inline void set_type(::onnx::ValueInfoProto& value, const std::string& name, const std::vector<int64_t>& shape,
                     int type = ::onnx::TensorProto::FLOAT) {
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  auto& dims = *tensor.mutable_shape();
  for (const int64_t size : shape) dims.add_dim()->set_dim_value(size);
}

inline ::onnx::ModelProto model_of(int64_t opset, std::initializer_list<std::string> domains = {}) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(opset);
  for (const std::string& domain : domains) {
    auto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(1);
  }
  model.mutable_graph()->set_name("graph");
  return model;
}

inline void add_input(::onnx::ModelProto& model, const std::string& name, const std::vector<int64_t>& shape,
                      int type = ::onnx::TensorProto::FLOAT) {
  set_type(*model.mutable_graph()->add_input(), name, shape, type);
}
inline void add_outputs(::onnx::ModelProto& model, const std::vector<std::string>& names) {
  for (const std::string& name : names) model.mutable_graph()->add_output()->set_name(name);
}
inline void add_ints(::onnx::ModelProto& model, const std::string& name, const std::vector<int64_t>& shape,
                     const std::vector<int64_t>& values) {
  ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::INT64);
  for (const int64_t size : shape) tensor.add_dims(size);
  for (const int64_t value : values) tensor.add_int64_data(value);
}

}  // namespace tenon::compiler::test
