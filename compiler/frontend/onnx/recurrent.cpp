// Converters of ONNX's recurrent layers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "compiler/frontend/onnx/expression.h"
#include "compiler/frontend/onnx/sizes.h"
#include "runtime/reference/recurrent.h"

namespace tenon::compiler::onnx {
namespace {

using runtime::reference::GateKind;

// ONNX's names of the activation functions (case-insensitive) and their defaults of alpha and beta: those of the
// operators with these names. Two of the names are no longer operators.
struct LocalFunction {
  std::string_view name;
  GateKind kind;
  std::optional<double> alpha = {}, beta = {};
};
constexpr LocalFunction kFunctions[] = {{"sigmoid", GateKind::kSigmoid},
                                        {"tanh", GateKind::kTanh},
                                        {"relu", GateKind::kRelu},
                                        {"affine", GateKind::kAffine},
                                        {"leakyrelu", GateKind::kLeakyRelu, 0.01},
                                        {"thresholdedrelu", GateKind::kThresholdedRelu, 1.0},
                                        {"scaledtanh", GateKind::kScaledTanh},
                                        {"hardsigmoid", GateKind::kHardSigmoid, 0.2, 0.5},
                                        {"elu", GateKind::kElu, 1.0},
                                        {"softsign", GateKind::kSoftsign},
                                        {"softplus", GateKind::kSoftplus}};

// The activations as attributes. alpha and beta are lists from which each function with such a parameter takes the
// next.
Expected<Attrs> activations(NodeImport& node, size_t count) {
  TENON_TRY_ASSIGN(given, node.strings("activations"));
  TENON_TRY_ASSIGN(alphas, node.reals("activation_alpha", {}));
  TENON_TRY_ASSIGN(betas, node.reals("activation_beta", {}));
  if (given->empty()) return Attrs{};
  if (given->size() != count) return node.fail(fmt::format("expected {} activations, found {}", count, given->size()));
  std::string names;
  std::vector<double> alpha, beta;
  size_t next_alpha = 0, next_beta = 0;
  for (std::string name : *given) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* known = std::ranges::find(kFunctions, name, &LocalFunction::name);
    if (known == std::end(kFunctions))
      return node.fail(fmt::format("the activations [{}] are not supported", fmt::join(*given, ", ")),
                       "the functions are Relu, Tanh, Sigmoid, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, "
                       "HardSigmoid, Elu, Softsign and Softplus");
    const auto* own =
        std::ranges::find(runtime::reference::kGateNames, known->kind, &runtime::reference::GateName::kind);
    const auto number = [&](bool has, const std::vector<double>& list, size_t& next,
                            const std::optional<double>& usual) {
      if (!has) return std::optional(0.0);
      return next < list.size() ? std::optional(list[next++]) : usual;
    };
    const auto a = number(own->alpha, *alphas, next_alpha, known->alpha),
               b = number(own->beta, *betas, next_beta, known->beta);
    if (!a || !b)
      return node.fail(fmt::format("the activation {} has no activation_{}", name, a ? "beta" : "alpha"),
                       "it has no default");
    names += (names.empty() ? "" : ",") + std::string(own->name);
    alpha.push_back(*a), beta.push_back(*b);
  }
  return Attrs{{"activations", names}, {"alpha", alpha}, {"beta", beta}};
}

// ONNX's inputs are x, w, r, b, lengths, h, c, p. In layout 1 the batch is the first axis of x, y and the states.
template <OperatorId op, OperatorId ragged, int gates>
Status recurrent_layer(NodeImport& node, Atom w_atom, Atom r_atom) {
  constexpr bool kCell = gates == 4;
  TENON_TRY_ASSIGN(x, node.type(0));
  const TensorType* r = node.builder().tensor_type(r_atom);
  if (!r) return node.fail("r is not a tensor");
  TENON_TRY_ASSIGN(direction, node.string("direction", "forward"));
  TENON_TRY_ASSIGN(layout, node.integer("layout", 0));
  TENON_TRY_ASSIGN(clip, node.real("clip", 0.0));
  // Sizes of the weights that only the attributes state.
  if (node.has("hidden_size") && r->rank() == 3) {
    TENON_TRY_ASSIGN(hidden, node.integer("hidden_size"));
    constexpr int64_t kMostHidden = int64_t{1} << 24;
    if (*hidden < 1 || *hidden > kMostHidden)
      return node.fail(fmt::format("hidden_size is {}, must be 1 to {}", *hidden, kMostHidden));
    const auto sizes = [&](const TensorType& type, int64_t rows) {
      Dims dims = type.dims;
      const int64_t given[] = {*direction == "bidirectional" ? 2 : 1, rows, *hidden};
      for (size_t i = 0; i < (rows == 0 ? 2 : 3); ++i) {
        if (!dims[i].constant()) dims[i] = node.context().dim(i == 1 ? gates * *hidden : given[i]);
      }
      return dims;
    };
    NodeFormula f(node);
    const TensorType* w = node.builder().tensor_type(w_atom);
    r_atom = f.checked(f.term(r_atom), sizes(*r, 1)).atom();
    if (w && w->rank() == 3) w_atom = f.checked(f.term(w_atom), sizes(*w, 0)).atom();
    TENON_TRY(f.status());
    r = node.builder().tensor_type(r_atom);
  }
  const bool batch_first = *layout == 1;
  if (*layout != 0 && *layout != 1) return node.fail("layout must be 0 or 1");
  if (!(*clip >= 0)) return node.fail("clip must not be negative");
  const auto shape = r->shape();
  if (x->rank() != 3 || !shape || shape->size() != 3) {
    return node.fail("x must have 3 dims, and r 3 whose sizes are known");
  }
  const int64_t directions = (*shape)[0], hidden = (*shape)[2];
  TENON_TRY_ASSIGN(stated, node.integer("hidden_size", hidden));
  if (*stated != hidden) return node.fail(fmt::format("hidden_size is {}, r has {}", *stated, hidden));
  const auto zeros = [&](std::vector<int64_t> size) { return node.zeros(x->dtype, size); };
  const auto initial_state = [&]() -> Expected<Atom> {  // zeros, also of a batch of unknown size
    const Dim batch = x->dims[batch_first ? 0 : 1];
    if (const auto size = batch.constant()) return zeros({directions, *size, hidden});
    Context& context = node.context();
    OperatorAttributes full({{"value", 0.0}, {"dtype", std::string(runtime::name(x->dtype))}});
    full.set("shape", Integers(3, Dims{context.dim(directions), batch, context.dim(hidden)}, std::nullopt));
    return full.apply(node, ops::kFull, {});
  };
  const auto transposed = [&](Expected<Atom> atom, std::vector<int64_t> order) -> Expected<Atom> {
    if (!atom || !batch_first) return atom;
    return node.apply(ops::kTranspose, Atoms{*atom}, {{"axes", std::move(order)}});
  };
  Atoms args;
  TENON_TRY_ASSIGN(x_atom, transposed(node.input(0), {1, 0, 2}));
  args.insert(args.end(), {*x_atom, w_atom, r_atom});
  TENON_TRY_ASSIGN(bias, node.has_input(3) ? node.input(3) : zeros({directions, 2 * gates * hidden}));
  args.push_back(*bias);
  if (kCell && node.has_input(7)) {
    TENON_TRY_ASSIGN(given, node.input(7));
    NodeFormula f(node);
    Context& context = node.context();
    const Atom peepholes_atom = f.checked(f.term(*given), {context.dim(directions), context.dim(3 * hidden)}).atom();
    args.back() = f.checked(f.term(args.back()), {context.dim(directions), context.dim(2 * gates * hidden)}).atom();
    TENON_TRY(f.status());
    const Expected<Atom> peepholes = peepholes_atom;
    TENON_TRY_ASSIGN(both, node.apply(ops::kConcat, Atoms{args.back(), *peepholes}, {{"axis", int64_t{1}}}));
    args.back() = *both;
  }
  for (size_t i = 5; i < (kCell ? 7 : 6); ++i) {
    TENON_TRY_ASSIGN(state, node.has_input(i) ? transposed(node.input(i), {1, 0, 2}) : initial_state());
    args.push_back(*state);
  }
  OperatorId layer = op;
  if (node.has_input(4)) {
    TENON_TRY_ASSIGN(lengths, node.input(4));
    const runtime::Tensor* known = node.constant_tensor(*lengths);
    const auto steps = x->dims[batch_first ? 1 : 0].constant();
    bool whole = known && steps && known->dtype() == DType::kI32;
    if (whole) {
      for (const int32_t length : known->data<int32_t>()) whole &= length == *steps;
    }
    if (!whole) {
      TENON_TRY_ASSIGN(wide, node.apply(ops::kCast, Atoms{*lengths}, {{"dtype", std::string("i64")}}));
      args.push_back(*wide);
      layer = ragged;
    }
  }
  TENON_TRY_ASSIGN(attrs, activations(node, static_cast<size_t>(runtime::reference::functions_of(gates) * directions)));
  attrs->emplace("direction", *direction);
  attrs->emplace("clip", *clip);
  if (kCell) {
    TENON_TRY_ASSIGN(coupled, node.integer("input_forget", 0));
    attrs->emplace("input_forget", *coupled);
  }
  if (gates == 3) {
    TENON_TRY_ASSIGN(after, node.integer("linear_before_reset", 0));
    attrs->emplace("reset_after", *after);
  }
  auto all = node.apply(layer, args, std::move(*attrs));
  if (!batch_first) return node.results(std::move(all));
  if (!all) return std::unexpected(std::move(all.error()));
  for (uint32_t i = 0; i < (kCell ? 3 : 2); ++i) {
    TENON_TRY_ASSIGN(field, node.builder().project(*all, i));
    TENON_TRY_ASSIGN(result,
                     transposed(*field, i == 0 ? std::vector<int64_t>{2, 0, 1, 3} : std::vector<int64_t>{1, 0, 2}));
    TENON_TRY(node.result(i, *result));
  }
  return {};
}

template <OperatorId op, OperatorId ragged, int gates>
Status recurrent(NodeImport& node) {
  TENON_TRY_ASSIGN(w, node.input(1));
  TENON_TRY_ASSIGN(r, node.input(2));
  return recurrent_layer<op, ragged, gates>(node, *w, *r);
}

}  // namespace

Status import_lstm(NodeImport& node, Atom w, Atom r) {
  return recurrent_layer<ops::kLstm, ops::kLstmRagged, 4>(node, w, r);
}

std::span<const Converter> recurrent_converters() {
  static constexpr Converter kTable[] = {
      {"GRU", 3, 6, recurrent<ops::kGru, ops::kGruRagged, 3>},
      {"LSTM", 3, 8, recurrent<ops::kLstm, ops::kLstmRagged, 4>},
      {"RNN", 3, 6, recurrent<ops::kRnn, ops::kRnnRagged, 1>},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
