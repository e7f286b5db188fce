// One node on its way into the module: what the converters of operators work with.
#pragma once

#include <initializer_list>
#include <set>
#include <unordered_map>

#include "compiler/frontend/onnx_model.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/try.h"

namespace tenon::compiler {

using OnnxNames = std::unordered_map<std::string, Atom>;  // tensors by their names in the model

class NodeImport {
 public:
  NodeImport(Builder& builder, const OnnxNode& node, int64_t opset, OnnxNames& names)
      : builder_(builder), node_(node), opset_(opset), names_(names) {}

  int64_t opset() const { return opset_; }
  const OnnxNode& node() const { return node_; }
  Builder& builder() { return builder_; }

  size_t inputs() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  Expected<Atom> input(size_t i) const;
  // The type of an input; tensors only.
  Expected<TensorType> type(size_t i) const;
  // An input that must be known at compile time; what it is for goes into the message.
  Expected<runtime::Tensor> constant(size_t i, std::string_view what) const;
  Expected<std::vector<int64_t>> integers(size_t i, std::string_view what) const;

  bool has(const std::string& attr) const { return find(attr) != node_.attrs.end(); }
  Expected<int64_t> integer(const std::string& attr, std::optional<int64_t> fallback = {}) const;
  Expected<double> real(const std::string& attr, std::optional<double> fallback = {}) const;
  Expected<std::string> string(const std::string& attr, const std::string& fallback) const;
  Expected<std::vector<int64_t>> list(const std::string& attr, std::optional<std::vector<int64_t>> fallback = {}) const;

  // Binds an operator; shape arithmetic (integers from constants) is carried out instead.
  Expected<Atom> apply(std::string_view op, Atoms args, Attrs attrs = {});
  Expected<Atom> constant(runtime::Tensor tensor) { return builder_.constant(std::move(tensor)); }
  const runtime::Tensor* known(const Atom& atom) const;  // the constant behind it, or nullptr

  // An attribute that the converter has not asked for changes a result that nobody notices: it is an error.
  Status no_other_attributes() const;

  Status result(size_t output, Atom atom);
  Status result(Expected<Atom> atom);  // of output 0

  std::unexpected<Diagnostic> fail(std::string what, std::string help = {}) const;

 private:
  // Asks for an attribute; all that is asked for is known.
  std::map<std::string, OnnxAttr>::const_iterator find(const std::string& attr) const {
    asked_.insert(attr);
    return node_.attrs.find(attr);
  }

  Builder& builder_;
  const OnnxNode& node_;
  int64_t opset_;
  OnnxNames& names_;
  mutable std::set<std::string> asked_;
};

struct OnnxConverter {
  std::string_view op;
  size_t min_inputs, max_inputs;
  Status (*convert)(NodeImport&);
};
// Two tables, because one file would be long.
std::span<const OnnxConverter> onnx_compute_converters();
std::span<const OnnxConverter> onnx_shape_converters();

}  // namespace tenon::compiler
