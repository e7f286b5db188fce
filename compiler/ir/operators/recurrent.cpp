// Recurrent layers over a sequence x [T, N, I], with the weights as ONNX lays them out; D is 2 where the layer goes
// both ways, else 1, H the size of the state.
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

template <int gates, bool cell>
Expected<Type> recurrent(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 3));
  TENON_TRY(check_rank(in, 2, "r", 3));
  TENON_TRY(check_string(in, "direction", {"forward", "reverse", "bidirectional"}));
  if (gates == 3) TENON_TRY(check_int(in, "reset_after", 0, 1));
  Context& context = in.context;
  const DType dtype = in.arg(0).dtype;
  const Dims& x = in.arg(0).dims;
  const Dim directions = context.dim(string_attr(in.attrs, "direction") == "bidirectional" ? 2 : 1);
  const Dim hidden = in.arg(2).dims[2], rows = context.multiply(context.dim(gates), hidden);
  const Type state = context.tensor(Dims{directions, x[1], hidden}, dtype);
  const Type wanted[] = {in.args[0],
                         context.tensor(Dims{directions, rows, x[2]}, dtype),
                         context.tensor(Dims{directions, rows, hidden}, dtype),
                         context.tensor(Dims{directions, context.multiply(context.dim(2), rows)}, dtype),
                         state,
                         state};
  static constexpr std::string_view kNames[] = {"x", "w", "r", "b", "h", "c"};
  for (size_t i = 1; i < in.args.size(); ++i) {
    TENON_TRY(require_type(in, i, kNames[i], wanted[i]));
  }
  std::vector<Type> fields{context.tensor(Dims{x[0], directions, x[1], hidden}, dtype), state};
  if (cell) fields.push_back(state);
  return context.tuple(std::move(fields));
}

template <int gates>
Operator layer(std::string name, std::string documentation) {
  constexpr bool kCell = gates == 4;
  const Input x{"x", runtime::kReals};
  std::vector<Input> inputs{x, Input::same("w"), Input::same("r"), Input::same("b"), Input::same("h")};
  if (kCell) inputs.push_back(Input::same("c"));
  std::vector<AttrSpec> attributes{
      {"direction", AttrKind::kString, std::string("forward"), "forward, reverse or bidirectional"}};
  if (gates == 3) {
    attributes.push_back(
        {"reset_after", AttrKind::kInt, int64_t{0}, "1: the reset gate acts behind the product with r"});
  }
  documentation += fmt::format(
      " x [T, N, I], w [D, {0}H, I], r [D, {0}H, H], b [D, {1}H] (of w, then of r), first state h{2} [D, N, H]: all "
      "states [T, D, N, H] and the last{3} [D, N, H].",
      gates == 1 ? "" : std::to_string(gates), 2 * gates, kCell ? " and c" : "", kCell ? " h and c" : "");
  return {std::move(name),       std::move(documentation), std::move(inputs),
          std::move(attributes), recurrent<gates, kCell>,  Pattern::kOpaque};
}

}  // namespace

std::vector<Operator> recurrent_operators() {
  return {
      layer<1>("rnn", "A recurrent layer, h = tanh(w x + r h + b)."),
      layer<3>("gru", "Gated recurrent units, gates update, reset, hidden."),
      layer<4>("lstm", "Long short-term memory, gates input, output, forget, cell."),
  };
}

}  // namespace tenon::compiler
