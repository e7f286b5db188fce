// The interface of the converters to one node that is imported.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <unordered_map>

#include "compiler/frontend/onnx/model.h"
#include "compiler/ir/builder.h"
#include "runtime/reference/support.h"
#include "support/try.h"

namespace tenon::compiler::onnx {

using Names = std::unordered_map<std::string, Atom>;  // tensors by their names in the model

// A graph that is being imported, or the body of a function: its names and the versions of the operator sets.
struct Scope {
  Names names;
  const Opsets* opsets = nullptr;
};

// What the nodes of a model share while they are imported.
class GraphImport {
 public:
  explicit GraphImport(Builder& builder) : builder_(builder) {}
  virtual ~GraphImport() = default;

  Builder& builder() { return builder_; }
  Context& context() { return builder_.context(); }

  // Appends the nodes of a graph inside `scope`, with `inputs` as its inputs, and returns its outputs. The names of the
  // graph are forgotten afterwards.
  virtual Expected<Atoms> graph(const Graph& graph, const Atoms& inputs, Scope& scope) = 0;

  // The value under names for its erased sizes, which operators require of their arguments.
  Expected<Atom> open_sizes(Atom value, std::string_view name = {});
  void use_dim(Symbol name) { dims_.insert(name); }
  const std::set<Symbol>& dims() const { return dims_; }

  // The elements of a small vector of integers, as far as they are known (sizes.h).
  std::optional<Dims> sizes(const Atom& atom) const;
  void set_sizes(const Atom& atom, Dims sizes);
  // Forgets what is known of the variables from this one on, which will have other bindings.
  void forget(size_t variables);

 private:
  Builder& builder_;
  std::set<Symbol> dims_;        // all names of dims so far
  std::map<VarId, Dims> sizes_;  // by variable: the elements
};

class NodeImport {
 public:
  NodeImport(GraphImport& import, const Node& node, Scope& scope)
      : import_(import), builder_(import.builder()), node_(node), scope_(scope), names_(scope.names) {
    const auto opset = scope.opsets->find(node.domain);
    if (opset != scope.opsets->end()) opset_ = opset->second;
  }

  // The version of the operator set that the node is from; the newest where the model does not state it.
  int64_t opset() const { return opset_; }
  const Node& node() const { return node_; }
  Builder& builder() { return builder_; }
  Context& context() { return builder_.context(); }
  GraphImport& import() { return import_; }
  Scope& scope() { return scope_; }

  size_t inputs() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  Expected<Atom> input(size_t i) const;
  // The type of an input; tensors only.
  Expected<TensorType> type(size_t i) const;
  // An input that must be a constant; `what` names its purpose in the message.
  Expected<runtime::Tensor> constant(size_t i, std::string_view what) const;
  Expected<std::vector<int64_t>> integers(size_t i, std::string_view what) const;

  bool has(const std::string& attr) const { return find(attr) != node_.attrs.end(); }
  Expected<int64_t> integer(const std::string& attr, std::optional<int64_t> fallback = {}) const;
  Expected<double> real(const std::string& attr, std::optional<double> fallback = {}) const;
  Expected<std::string> string(const std::string& attr, const std::string& fallback) const;
  Expected<std::vector<int64_t>> list(const std::string& attr, std::optional<std::vector<int64_t>> fallback = {}) const;

  Expected<std::vector<double>> reals(const std::string& attr, std::vector<double> fallback) const;
  Expected<std::vector<std::string>> strings(const std::string& attr) const;  // empty where the attribute is omitted
  Expected<const Graph*> graph(const std::string& attr) const;
  const ValueType* type_attr(const std::string& attr) const;  // nullptr where the attribute is omitted
  // The float attributes with these names that the node has.
  Expected<Attrs> reals_given(std::initializer_list<const char*> names) const;
  // All inputs.
  Expected<Atoms> all_inputs() const;

  // Binds an application of the operator, or folds it where it is shape arithmetic (integers from constants).
  Expected<Atom> apply(OperatorId op, const Atoms& args, Attrs attrs = {}, ComputedAttrs computed = {});
  Expected<Atom> apply(OperatorId op, std::initializer_list<size_t> inputs, Attrs attrs = {});
  // `value` of a dtype, as a scalar.
  Atom scalar(double value, DType dtype);
  Expected<Atom> constant(runtime::Tensor tensor) { return builder_.constant(std::move(tensor)); }
  // Zeros: a constant, or where they are many a broadcast one, since sizes of inputs are only stated by the model.
  Expected<Atom> zeros(DType dtype, const std::vector<int64_t>& shape);
  const runtime::Tensor* constant_tensor(const Atom& atom) const;  // nullptr where the atom is not a constant

  // An attribute that the converter has not read would be ignored silently: it is an error.
  Status no_other_attributes() const;

  Status result(size_t output, Atom atom);
  Status result(Expected<Atom> atom);    // of output 0
  Status results(Expected<Atom> tuple);  // its fields are the outputs that the node has

  std::unexpected<Diagnostic> fail(std::string what, std::string help = {}) const;

 private:
  // Looks up an attribute and records that the converter has read it.
  std::map<std::string, Attribute>::const_iterator find(const std::string& attr) const {
    read_attrs_.insert(attr);
    return node_.attrs.find(attr);
  }

  std::optional<Dims> known_sizes(const Apply& apply, const TensorType& result) const;

  GraphImport& import_;
  Builder& builder_;
  const Node& node_;
  Scope& scope_;
  Names& names_;
  int64_t opset_ = INT64_MAX;
  mutable std::set<std::string> read_attrs_;
};

struct Converter {
  std::string_view op;  // with its domain where that is not the standard one, as "com.microsoft.Gelu"
  size_t min_inputs, max_inputs;
  Status (*convert)(NodeImport&);
};
// One table per file.
std::span<const Converter> attention_converters();
std::span<const Converter> attention_variant_converters();
std::span<const Converter> control_converters();
std::span<const Converter> elementwise_converters();
std::span<const Converter> image_converters();
std::span<const Converter> index_converters();
std::span<const Converter> layer_converters();
std::span<const Converter> loss_converters();
std::span<const Converter> matmul_nbits_converters();
std::span<const Converter> microsoft_converters();
std::span<const Converter> microsoft_fused_converters();
std::span<const Converter> ml_converters();
std::span<const Converter> quantize_converters();
std::span<const Converter> recurrent_converters();
std::span<const Converter> reduce_converters();
std::span<const Converter> sequence_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> signal_converters();
std::span<const Converter> vision_converters();

// The dtype with this TensorProto.DataType; nothing where it is not supported.
std::optional<DType> dtype_of_id(int64_t data_type);
// The convolution of x and w with the node's attributes. `padded`, if given, pads x with a value other than zero.
class Integers;
using Padding =
    std::function<Expected<Atom>(Atom x, const Integers& before, const Integers& after)>;  // one element per dim of x
Expected<Atom> convolution(NodeImport& node, Atom x, Atom w, const Padding& padded = nullptr);

// The average pool of x, which has the shape of input 0, with the node's attributes.
Expected<Atom> average_pool(NodeImport& node, Atom x);
// The LSTM of the node's inputs but w and r, which are given as ONNX's LSTM has them.
Status import_lstm(NodeImport& node, Atom w, Atom r);

// The converter of a node with `inputs` inputs that becomes one operator without attributes.
template <OperatorId op, size_t inputs = 1>
Status convert_plain(NodeImport& node) {
  Atoms args;
  for (size_t i = 0; i < inputs; ++i) {
    TENON_TRY_ASSIGN(arg, node.input(i));
    args.push_back(*arg);
  }
  return node.result(node.apply(op, std::move(args)));
}

}  // namespace tenon::compiler::onnx
