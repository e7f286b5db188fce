// One node on its way into the module: what the converters of operators work with.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <unordered_map>

#include "compiler/frontend/onnx_model.h"
#include "compiler/ir/builder.h"
#include "runtime/reference/support.h"
#include "support/try.h"

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

  Expected<std::vector<double>> reals(const std::string& attr, std::vector<double> fallback) const;
  Expected<std::vector<std::string>> strings(const std::string& attr) const;  // none where it is left out
  // The float attributes of these names, as far as the node has them.
  Expected<Attrs> reals_given(std::initializer_list<const char*> names) const;
  // All inputs.
  Expected<Atoms> all_inputs() const;

  // Binds an operator; shape arithmetic (integers from constants) is carried out instead.
  Expected<Atom> apply(std::string_view op, const Atoms& args, Attrs attrs = {});
  Expected<Atom> apply(std::string_view op, std::initializer_list<size_t> inputs, Attrs attrs = {});
  // `value` of a dtype, as a scalar.
  Atom scalar(double value, DType dtype);
  Expected<Atom> constant(runtime::Tensor tensor) { return builder_.constant(std::move(tensor)); }
  const runtime::Tensor* known(const Atom& atom) const;  // the constant behind it, or nullptr

  // An attribute that the converter has not asked for changes a result that nobody notices: it is an error.
  Status no_other_attributes() const;

  Status result(size_t output, Atom atom);
  Status result(Expected<Atom> atom);    // of output 0
  Status results(Expected<Atom> tuple);  // its fields are the outputs, as far as the node has them

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
// A table a file.
std::span<const OnnxConverter> onnx_elementwise_converters();
std::span<const OnnxConverter> onnx_image_converters();
std::span<const OnnxConverter> onnx_index_converters();
std::span<const OnnxConverter> onnx_layer_converters();
std::span<const OnnxConverter> onnx_quantize_converters();
std::span<const OnnxConverter> onnx_recurrent_converters();
std::span<const OnnxConverter> onnx_reduce_converters();
std::span<const OnnxConverter> onnx_shape_converters();

// ONNX's number of a dtype; nothing where we lack it.
std::optional<DType> onnx_dtype(int64_t number);
// The convolution of x and w under the node's attributes. Where `padded` is given it pads x, with something else than
// zeros.
using OnnxPadding = std::function<Expected<Atom>(Atom x, std::vector<int64_t> before,
                                                 std::vector<int64_t> after)>;  // a spatial dim each
Expected<Atom> onnx_convolution(NodeImport& node, Atom x, Atom w, const OnnxPadding& padded = nullptr);

// The converter of a node that has `inputs` inputs and becomes one operator, attributes aside.
template <runtime::reference::Name op, size_t inputs = 1>
Status convert_plain(NodeImport& node) {
  Atoms args;
  for (size_t i = 0; i < inputs; ++i) {
    TENON_TRY_ASSIGN(arg, node.input(i));
    args.push_back(*arg);
  }
  return node.result(node.apply(op.view(), std::move(args)));
}

}  // namespace tenon::compiler
