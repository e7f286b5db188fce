// Recurrent layers over a sequence x [T, N, I], with the weight layouts of ONNX; D is 2 for a bidirectional layer and
// otherwise 1, H is the size of the state.
#include "runtime/reference/recurrent.h"
#include "compiler/ir/operators/rules.h"

namespace tenon::compiler {
namespace {

template <int gates, bool cell, bool ragged>
Expected<Type> recurrent(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 3));
  TENON_TRY(check_rank(in, 2, "r", 3));
  TENON_TRY(check_string(in, "direction", {"forward", "reverse", "bidirectional"}));
  if (gates == 3) TENON_TRY(check_int(in, "reset_after", 0, 1));
  if (gates == 4) TENON_TRY(check_int(in, "input_forget", 0, 1));
  if (!(float_attr(in.attrs, "clip") >= 0)) return error("clip must not be negative");
  TENON_TRY_ASSIGN(functions, runtime::reference::gate_functions(
                                  in.attrs, gates, string_attr(in.attrs, "direction") == "bidirectional" ? 2 : 1));
  Context& context = in.context;
  const DType dtype = in.arg(0).dtype;
  const Dims& x = in.arg(0).dims;
  const Dim directions = context.dim(string_attr(in.attrs, "direction") == "bidirectional" ? 2 : 1);
  const Dim hidden = in.arg(2).dims[2], rows = context.multiply(context.dim(gates), hidden);
  const Type state = context.tensor(Dims{directions, x[1], hidden}, dtype);
  Dim biases = context.multiply(context.dim(2), rows);
  if (const Dim more = context.add(biases, context.multiply(context.dim(3), hidden));
      cell && in.arg(3).rank() == 2 && in.arg(3).dims[1] == more)
    biases = more;
  const Type wanted[] = {in.args[0],
                         context.tensor(Dims{directions, rows, x[2]}, dtype),
                         context.tensor(Dims{directions, rows, hidden}, dtype),
                         context.tensor(Dims{directions, biases}, dtype),
                         state,
                         state};
  static constexpr std::string_view kNames[] = {"x", "w", "r", "b", "h", "c"};
  constexpr size_t kInputs = cell ? 6 : 5;
  for (size_t i = 1; i < kInputs; ++i) {
    TENON_TRY(require_type(in, i, kNames[i], wanted[i]));
  }
  if (ragged) TENON_TRY(require_type(in, kInputs, "lengths", context.tensor(Dims{x[1]}, DType::kI64)));
  std::vector<Type> fields{context.tensor(Dims{x[0], directions, x[1], hidden}, dtype), state};
  if (cell) fields.push_back(state);
  return context.tuple(std::move(fields));
}

template <int gates, bool ragged>
Operator layer(Operator op) {
  constexpr bool kCell = gates == 4;
  op.inputs = {{"x", runtime::kReals}, Input::same("w"), Input::same("r"), Input::same("b"), Input::same("h")};
  if (kCell) op.inputs.push_back(Input::same("c"));
  if (ragged) op.inputs.push_back({"lengths", {DType::kI64}});
  op.attributes = {{"direction", AttrKind::kString, std::string("forward"), "forward, reverse or bidirectional"}};
  if (gates == 3) {
    op.attributes.push_back(
        {"reset_after", AttrKind::kInt, int64_t{0}, "1: the reset gate is applied after the product with r"});
  }
  op.attributes.insert(
      op.attributes.end(),
      {{"activations", AttrKind::kString, std::string(),
        "functions of the gates of each direction, as \"" +
            std::string(gates == 1   ? "relu"
                        : gates == 3 ? "hard_sigmoid,relu"
                                     : "hard_sigmoid,relu,tanh") +
            "\"; empty: " +
            (gates == 1   ? "tanh"
             : gates == 3 ? "sigmoid,tanh"
                          : "sigmoid,tanh,tanh")},
       {"alpha", AttrKind::kFloats, std::vector<double>(), "parameters of the activations that have one"},
       {"beta", AttrKind::kFloats, std::vector<double>(), "parameters of the activations that have one"},
       {"clip", AttrKind::kFloat, 0.0, "bound of the arguments of the gates' functions; 0: none"}});
  if (kCell)
    op.attributes.push_back(
        {"input_forget", AttrKind::kInt, int64_t{0}, "1: the forget gate is 1 minus the input gate"});
  op.documentation += fmt::format(
      " x [T, N, I], w [D, {0}H, I], r [D, {0}H, H], b [D, {1}H] (of w, then of r), initial state h{2} [D, N, H]: all "
      "states [T, D, N, H] and the last{3} [D, N, H].{4}{5}",
      gates == 1 ? "" : std::to_string(gates), 2 * gates, kCell ? " and c" : "", kCell ? " h and c" : "",
      kCell ? " b may be followed by the peephole weights of input, output and forget gate: [D, 11H]." : "",
      ragged ? " Sequence n has lengths[n] steps, 0 to T: later states are 0, and the last one is that at its end."
             : "");
  op.rule = recurrent<gates, kCell, ragged>;
  if (ragged) op.may_fail = depends_on_elements;
  op.continuous = true;
  op.samples = SampleArguments::recurrent(gates);
  return op;
}

}  // namespace

std::vector<Operator> recurrent_operators() {
  return {
      layer<1, false>({.name = "rnn", .documentation = "A recurrent layer, h = tanh(w x + r h + b)."}),
      layer<3, false>({.name = "gru", .documentation = "Gated recurrent units, gates update, reset, hidden."}),
      layer<4, false>({.name = "lstm", .documentation = "Long short-term memory, gates input, output, forget, cell."}),
      layer<1, true>({.name = "rnn_ragged", .documentation = "rnn of sequences that end at different steps."}),
      layer<3, true>({.name = "gru_ragged", .documentation = "gru of sequences that end at different steps."}),
      layer<4, true>({.name = "lstm_ragged", .documentation = "lstm of sequences that end at different steps."}),
  };
}

}  // namespace tenon::compiler
