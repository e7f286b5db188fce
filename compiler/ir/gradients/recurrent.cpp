// Gradients of recurrent layers, by the formula of a cell at each step.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/gradients/formula.h"
#include "runtime/reference/recurrent.h"
#include "support/try.h"

namespace tenon::compiler::gradients {
namespace {

using runtime::reference::GateFunction, runtime::reference::GateKind;

Term gate_value(const GateFunction& function, const Term& x) {
  Formula& formula = x.formula();
  const auto unary = [&](OperatorId op, Attrs attrs = {}) { return formula.apply(op, {x}, std::move(attrs)); };
  const Attrs alpha{{"alpha", function.alpha}};
  switch (function.kind) {
    case GateKind::kSigmoid: return sigmoid(x);
    case GateKind::kTanh: return tanh(x);
    case GateKind::kRelu: return unary(ops::kRelu);
    case GateKind::kAffine: return x * function.alpha + function.beta;
    case GateKind::kLeakyRelu: return unary(ops::kLeakyRelu, alpha);
    case GateKind::kThresholdedRelu: return unary(ops::kThresholdedRelu, alpha);
    case GateKind::kScaledTanh: return tanh(x * function.beta) * function.alpha;
    case GateKind::kHardSigmoid: return unary(ops::kHardSigmoid, {{"alpha", function.alpha}, {"beta", function.beta}});
    case GateKind::kElu: return unary(ops::kElu, alpha);
    case GateKind::kSoftsign: return unary(ops::kSoftsign);
    case GateKind::kSoftplus: return unary(ops::kSoftplus);
  }
  return x;
}

// One direction of a layer with 1, 3 or 4 gates.
class Direction {
 public:
  Direction(GradientBuilder& g, const OperatorFormula& layer, int64_t gates, int64_t index,
            std::vector<GateFunction> functions)
      : g_(g),
        gates_(gates),
        functions_(std::move(functions)),
        clip_(float_attr(g, "clip")),
        hidden_(layer.arg(4).dims()[2]),
        r_(at(layer.arg(2), index)),
        h(at(layer.arg(4), index)),
        c(gates == 4 ? std::optional(at(layer.arg(5), index)) : std::nullopt) {
    Context& context = g.builder().context();
    const Term b = at(layer.arg(3), index).expand_dims({0});
    const Dim rows = context.multiply(context.dim(gates), hidden_), two = context.dim(2);
    rb_ = part(b, 1, rows, rows);
    // The products with x of all steps at once.
    wx_ = einsum("tni,gi->tng", layer.arg(0), at(layer.arg(1), index)) + part(b, 1, context.dim(0), rows);
    if (g.ok() && b.dims()[1] != context.multiply(two, rows))
      peepholes_ = part(b, 1, context.multiply(two, rows), context.multiply(context.dim(3), hidden_));
  }

  // Replaces h, and c of an LSTM.
  void step(int64_t t) {
    const Term wx = wx_->slice(0, t, t + 1).squeeze({0});
    const Term rh = product(r_) + *rb_;
    if (gates_ == 1) {
      h = gate(0, wx + rh);
    } else if (gates_ == 4) {  // gates in, out, forget, cell
      const auto seen = [&](const Term& sum, int64_t which, const Term& cell) {
        return peepholes_ ? sum + of_gate(*peepholes_, which) * cell : sum;
      };
      const Term in = gate(0, seen(of_gate(wx, 0) + of_gate(rh, 0), 0, *c));
      const Term forget =
          int_attr(g_, "input_forget") == 1 ? 1 - in : gate(0, seen(of_gate(wx, 2) + of_gate(rh, 2), 2, *c));
      c = forget * *c + in * gate(1, of_gate(wx, 3) + of_gate(rh, 3));
      const Term out = gate(0, seen(of_gate(wx, 1) + of_gate(rh, 1), 1, *c));
      h = out * gate_value(functions_[2], *c);
    } else {  // gates update, reset, hidden
      const Term reset = gate(0, of_gate(wx, 1) + of_gate(rh, 1)), update = gate(0, of_gate(wx, 0) + of_gate(rh, 0));
      Term candidate = reset * of_gate(rh, 2);
      if (int_attr(g_, "reset_after") == 0) {
        const Term weights = part(r_, 0, times_hidden(2), hidden_);
        candidate = einsum("nk,mk->nm", reset * h, weights) + of_gate(*rb_, 2);
      }
      h = (1 - update) * gate(1, of_gate(wx, 2) + candidate) + update * h;
    }
  }

 private:
  Term at(const Term& x, int64_t index) { return x.slice(0, index, index + 1).squeeze({0}); }
  Term product(const Term& weights) { return einsum("nk,mk->nm", h, weights); }
  Dim times_hidden(int64_t count) {
    Context& context = g_.builder().context();
    return context.multiply(context.dim(count), hidden_);
  }
  Term of_gate(const Term& x, int64_t which) { return part(x, 1, times_hidden(which), hidden_); }
  Term gate(size_t function, const Term& x) {
    const Term bounded = clip_ > 0 ? g_.apply(ops::kClip, {x}, {{"min", -clip_}, {"max", clip_}}) : x;
    return gate_value(functions_[function], bounded);
  }

  GradientBuilder& g_;
  int64_t gates_;
  std::vector<GateFunction> functions_;
  double clip_;
  Dim hidden_;
  Term r_;
  std::optional<Term> wx_, rb_, peepholes_;

 public:
  Term h;
  std::optional<Term> c;
};

template <int64_t gates, bool ragged>
Status recurrent(GradientBuilder& g) {
  const OperatorFormula layer(g);
  if (!g.ok()) return g.status();
  const auto steps = layer.arg(0).size(0);
  if (!steps) {
    g.fail(fmt::format("the gradient of {} requires a constant number of steps, found {}", g.op().name,
                       g.builder().context().str(layer.arg(0).dims()[0])),
           "bind the size, or write the layer as a function that calls itself with the next step");
    return g.status();
  }
  const std::string& direction = string_attr(g, "direction");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  TENON_TRY_ASSIGN(functions, runtime::reference::gate_functions(g.attrs(), gates, directions));
  const auto count = static_cast<ptrdiff_t>(runtime::reference::functions_of(gates));
  std::vector<std::vector<Term>> states(static_cast<size_t>(*steps), std::vector<Term>());  // by step and direction
  std::vector<Term> last, cells;
  for (int64_t d = 0; d < directions; ++d) {
    const auto begin = functions->begin() + d * count;
    Direction one(g, layer, gates, d, {begin, begin + count});
    for (int64_t i = 0; i < *steps; ++i) {
      const int64_t t = direction == "reverse" || d == 1 ? *steps - 1 - i : i;
      const Term before = one.h;
      const auto cell_before = one.c;
      one.step(t);
      if (!ragged) {
        states[static_cast<size_t>(t)].push_back(one.h);
        continue;
      }
      // Sequences that have ended keep their state and have zeros as results.
      const Term lengths = layer.arg(g.num_args() - 1);
      const Term goes_on = less(g.scalar(static_cast<double>(t), lengths.dtype()), lengths).expand_dims({1});
      states[static_cast<size_t>(t)].push_back(keep_where(goes_on, one.h));
      one.h = select(goes_on, one.h, before);
      if (one.c) one.c = select(goes_on, *one.c, *cell_before);
    }
    last.push_back(one.h);
    if (one.c) cells.push_back(*one.c);
  }
  const auto stacked = [&](const std::vector<Term>& terms) {
    return g.apply(ops::kStack, terms, {{"axis", int64_t{0}}});
  };
  std::vector<Term> all;
  for (const std::vector<Term>& of_step : states) all.push_back(stacked(of_step));
  std::vector<std::optional<Term>> results{std::nullopt, stacked(last)};
  if (!all.empty()) results[0] = stacked(all);
  if (!cells.empty()) results.emplace_back(stacked(cells));
  return layer.differentiate(results);
}

constexpr std::string_view kSteps = "the number of steps must be a constant";

constexpr GradientRow kRecurrent[] = {
    {ops::kRnn, recurrent<1, false>, kSteps},      {ops::kGru, recurrent<3, false>, kSteps},
    {ops::kLstm, recurrent<4, false>, kSteps},     {ops::kRnnRagged, recurrent<1, true>, kSteps},
    {ops::kGruRagged, recurrent<3, true>, kSteps}, {ops::kLstmRagged, recurrent<4, true>, kSteps},
};

}  // namespace

std::span<const GradientRow> recurrent_gradients() { return kRecurrent; }

}  // namespace tenon::compiler::gradients
