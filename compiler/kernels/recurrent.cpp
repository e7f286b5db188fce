// Recurrent layers. What a step takes from its input is one matrix product for all steps; then a scan, whose step is
// the product of the state before it with the recurrent weights, and the gates element by element.
#include <algorithm>
#include <optional>

#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/pack.h"
#include "runtime/reference/recurrent.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;
using Assignment = loop::Builder::Assignment;
using runtime::reference::GateFunction;
using runtime::reference::GateKind;

enum class Cell { kPlain, kGru, kLstm };
constexpr int64_t gates_of(Cell cell) { return cell == Cell::kPlain ? 1 : cell == Cell::kGru ? 3 : 4; }

// The weights of one direction, [D, rows, columns], from some row on: [count, columns].
Value rows_of(const Operation& op, const Value& w, int64_t direction, int64_t from, int64_t count) {
  const Dims dims{op.dim(count), w.dims[2]};
  if (!w.constant) {
    Context& context = op.context();
    return op.emit.expression(dims, w.dtype, [=, &context](const Dims& at) {
      return w.at({context.dim(direction), context.add(at[0], context.dim(from)), at[1]});
    });
  }
  const runtime::Shape& shape = w.constant->shape();
  Tensor part(w.dtype, {count, shape[2]});
  const auto row = static_cast<size_t>(shape[2]) * static_cast<size_t>(runtime::bytes(w.dtype));
  const auto begin = static_cast<size_t>(direction * shape[1] + from) * row;
  std::ranges::copy(w.constant->bytes().subspan(begin, part.bytes().size()), part.bytes().begin());
  return op.emit.constant(part);
}

// As the reference kernel has it.
Expr passed(const GateFunction& function, const Expr& x) {
  const double alpha = function.alpha, beta = function.beta;
  switch (function.kind) {
    case GateKind::kSigmoid: return sigmoid(x);
    case GateKind::kTanh: return hyperbolic_tangent(x);
    case GateKind::kRelu: return larger(x, like(x, 0));
    case GateKind::kAffine: return alpha * x + beta;
    case GateKind::kLeakyRelu: return choose(below(x, 0), alpha * x, x);
    case GateKind::kThresholdedRelu: return choose(above(x, alpha), x, like(x, 0));
    case GateKind::kScaledTanh: return alpha * hyperbolic_tangent(beta * x);
    case GateKind::kHardSigmoid: return larger(like(x, 0), smaller(like(x, 1), alpha * x + beta));
    case GateKind::kElu: return choose(below(x, 0), alpha * exponential_less_1(x), x);
    case GateKind::kSoftsign: return x / (1.0 + absolute(x));
    case GateKind::kSoftplus: return larger(x, like(x, 0)) + logarithm_of_1_and(exponential(-absolute(x)));
  }
  return x;
}

// One direction of a layer: its states, in the order of its steps, the first one in front: [T + 1, N, H].
class Direction {
 public:
  Direction(const Operation& op, Cell cell, int64_t direction, bool backward, std::vector<GateFunction> functions,
            std::optional<Value> lengths)
      : op_(op),
        context_(op.context()),
        cell_(cell),
        direction_(direction),
        backward_(backward),
        steps_(op.arg(0).dims[0]),
        batch_(op.arg(0).dims[1]),
        hidden_(*op.arg(2).dims[2].constant()),
        functions_(std::move(functions)),
        lengths_(std::move(lengths)),
        peepholes_(cell == Cell::kLstm && op.arg(3).dims[1].constant() == 11 * hidden_) {
    inputs_ = product_of_inputs();
    op_.emit.flush();
    h_ = states("h", op_.arg(4));
    switch (cell_) {
      case Cell::kPlain: plain(); break;
      case Cell::kGru: gru(); break;
      case Cell::kLstm:
        c_ = states("c", op_.arg(5));
        lstm();
        break;
    }
  }

  // The state behind the step that reads x's row t, and the last one.
  Expr state(Dim t, Dim n, Dim i) const {
    const Expr h = h_.at({backward_ ? context_.subtract(steps_, t) : context_.add(t, context_.dim(1)), n, i});
    return lengths_ ? choose(is_inside(t, n), h, like(h, 0)) : h;
  }
  Expr last(Dim n, Dim i) const { return h_.at({steps_, n, i}); }
  Expr last_cell(Dim n, Dim i) const { return c_.at({steps_, n, i}); }

 private:
  // A matrix of recurrent weights as the steps' product reads it; made before the steps are.
  struct Weights {
    std::string name;
    int64_t from = 0, rows = 0;
    TileShape shape;
    Value packed;
  };

  void plain() {
    const Weights weights = gates("gates", 0, 1);
    steps([&](Dim t) {
      const Value g = product(t, weights, before(t));
      assign("state", t, h_, [&](const Dims& at) { return through(0, g.at(at)); });
    });
  }

  void lstm() {  // gates in, out, forget, cell
    const Weights weights = gates("gates", 0, 4);
    steps([&](Dim t) {
      const Value g = product(t, weights, before(t));
      assign("cell", t, c_, [&](const Dims& at) {
        const Expr before = c_.at({t, at[0], at[1]}), in = through(0, seen(gate(g, 0, at), 0, at[1], before));
        const Expr forget =
            op_.integer("input_forget") == 1 ? 1.0 - in : through(0, seen(gate(g, 2, at), 2, at[1], before));
        return forget * before + in * through(1, gate(g, 3, at));
      });
      assign("state", t, h_, [&](const Dims& at) {
        const Expr cell = c_.at({next(t), at[0], at[1]});
        return through(0, seen(gate(g, 1, at), 1, at[1], cell)) * passed(functions_[2], cell);
      });
    });
  }

  void gru() {  // gates update, reset, hidden
    const Weights both = gates("gates", 0, 2), own = gates("own", 2, 1);
    steps([&](Dim t) {
      const Value g = product(t, both, before(t));
      const Element reset = [&](const Dims& at) { return through(0, gate(g, 1, at)); };
      const auto mix = [&](const Element& candidate) {
        assign("state", t, h_, [&](const Dims& at) {
          const Expr update = through(0, gate(g, 0, at));
          return (1.0 - update) * through(1, candidate(at)) + update * before(t)(at);
        });
      };
      if (reset_after()) {
        const Value sum = product(t, own, before(t));
        mix([&](const Dims& at) {
          const Dim own_row = row(2, at[1]);
          return inputs_.at({row_of_x(t), at[0], own_row}) + biases(own_row) +
                 reset(at) * (sum.at(at) + bias(own_row, true));
        });
      } else {
        const BufferId kept =
            builder().temporary(op_.emit.unique("kept"), {{"", batch_}, {"", op_.dim(hidden_)}}, op_.dtype());
        builder().compute(kept, [&](const Dims& at) { return reset(at) * before(t)(at); });
        const Value sum = product(t, own, [&](const Dims& at) { return builder().load(kept, at); });
        mix([&](const Dims& at) { return sum.at(at); });
      }
    });
  }

  loop::Builder& builder() const { return op_.emit.builder(); }
  bool reset_after() const { return cell_ == Cell::kGru && op_.integer("reset_after") == 1; }
  Dim next(Dim t) const { return context_.add(t, context_.dim(1)); }
  Dim row_of_x(Dim t) const { return backward_ ? context_.subtract(context_.subtract(steps_, context_.dim(1)), t) : t; }
  Dim row(int64_t gate, Dim unit) const { return context_.add(context_.dim(gate * hidden_), unit); }
  Expr gate(const Value& gates, int64_t i, const Dims& at) const { return gates.at({at[0], row(i, at[1])}); }
  // The function of the gate, of what is clipped first.
  Expr through(size_t function, const Expr& x) const {
    const double clip = op_.real("clip");
    return passed(functions_[function], clip > 0 ? smaller(larger(x, like(x, -clip)), like(x, clip)) : x);
  }
  // With what the gate sees of the cell, where there are peepholes: their weights lie behind the biases.
  Expr seen(const Expr& gate, int64_t which, Dim unit, const Expr& cell) const {
    if (!peepholes_) return gate;
    return gate +
           op_.arg(3).at({context_.dim(direction_), context_.add(context_.dim((8 + which) * hidden_), unit)}) * cell;
  }
  // Whether the sequence has the step that reads row t of x.
  Expr is_inside(Dim t, Dim n) const { return less(loop::index_value(t), lengths_->at({n})); }
  Element before(Dim t) const {
    return [this, t](const Dims& at) { return h_.at({t, at[0], at[1]}); };
  }

  // Of w, and behind those of r.
  Expr bias(Dim row, bool recurrent) const {
    const Dim second = context_.add(context_.dim(gates_of(cell_) * hidden_), row);
    return op_.arg(3).at({context_.dim(direction_), recurrent ? second : row});
  }
  // What is added whatever the state is; where the reset gate acts behind the product, it acts on r's own bias too.
  Expr biases(Dim row) const {
    const Expr sum = bias(row, false) + bias(row, true);
    if (!reset_after()) return sum;
    return choose(less(loop::index_value(row), loop::index_value(context_.dim(2 * hidden_))), sum, bias(row, false));
  }

  // x w + b of all steps: [T, N, rows].
  Value product_of_inputs() const {
    const int64_t rows = gates_of(cell_) * hidden_, vector = lanes_of(op_.dtype());
    const TileShape shape = choose_tile(steps_.constant().value_or(0), rows, vector, {.rows = true});
    const Value w = pack(op_.emit, rows_of(op_, op_.arg(1), direction_, 0, rows), 0, shape.vectors * vector);
    Tiles tiles{.axes = {{TileAxis::Role::kOuter, batch_, 1},
                         {TileAxis::Role::kLanes, op_.dim(rows), shape.vectors * vector},
                         {TileAxis::Role::kRows, steps_, shape.rows}},
                .over = {op_.arg(0).dims[2]},
                .term =
                    [w, x = op_.arg(0)](const std::vector<TileIndex>& at, const Dims& k) {
                      return x.at({at[2].index, at[0].index, k[0]}) * w.at({at[1].block, k[0], at[1].inner});
                    },
                .place =
                    [](const Dims& at) {
                      return Dims{at[2], at[0], at[1]};
                    }};
    const Dims dims{steps_, batch_, op_.dim(rows)};
    return op_.emit.contract("inputs", dims, op_.dtype(), std::move(tiles));
  }

  Value states(std::string_view name, const Value& first) const {
    const Dims dims{next(steps_), batch_, op_.dim(hidden_)};
    const BufferId buffer =
        builder().temporary(op_.emit.unique(name), {{"", dims[0]}, {"", dims[1]}, {"", dims[2]}}, op_.dtype());
    builder().stage("first", {{"", batch_}, {"", op_.dim(hidden_)}}, {}, [&](const Dims& at) {
      return Assignment{
          buffer, {context_.dim(0), at[0], at[1]}, first.at({context_.dim(direction_), at[0], at[1]}), nullptr};
    });
    return op_.emit.from_buffer(buffer, dims, op_.dtype());
  }

  // The rows of `count` gates. One sequence reads each weight once a step: as many sums side by side as hide how long
  // one takes, since more rows than one there are not.
  Weights gates(std::string_view name, int64_t from, int64_t count) const {
    const int64_t rows = count * hidden_, vector = lanes_of(op_.dtype());
    TileShape shape = choose_tile(batch_.constant().value_or(0), rows, vector, {.rows = true});
    if (batch_.constant() == 1) shape = {.rows = 1, .vectors = 8};
    return {std::string(name), from * hidden_, rows, shape,
            pack(op_.emit, rows_of(op_, op_.arg(2), direction_, from * hidden_, rows), 0, shape.vectors * vector)};
  }

  void steps(const std::function<void(Dim t)>& body) const {
    std::vector<BufferId> states{*h_.buffer};
    if (cell_ == Cell::kLstm) states.push_back(*c_.buffer);
    builder().scan({"t", steps_}, states, body);
  }

  // [N, rows] of one step: r times the state, and what x gives.
  Value product(Dim t, const Weights& weights, const Element& state) const {
    const Dims dims{batch_, op_.dim(weights.rows)};
    const BufferId to = builder().temporary(op_.emit.unique(weights.name), {{"", dims[0]}, {"", dims[1]}}, op_.dtype());
    const int64_t size = weights.shape.vectors * lanes_of(op_.dtype());
    const Tiles tiles{
        .axes = {{TileAxis::Role::kLanes, dims[1], size}, {TileAxis::Role::kRows, batch_, weights.shape.rows}},
        .over = {op_.dim(hidden_)},
        .term =
            [&](const std::vector<TileIndex>& at, const Dims& k) {
              return state({at[1].index, k[0]}) * weights.packed.at({at[0].block, k[0], at[0].inner});
            },
        .place =
            [](const Dims& at) {
              return Dims{at[1], at[0]};
            }};
    const bool alone = reset_after() && weights.from > 0;
    const TileResult result{to, [&](const Dims& at, const Expr& sum) {
                              if (alone) return sum;
                              const Dim row = context_.add(context_.dim(weights.from), at[1]);
                              return inputs_.at({row_of_x(t), at[0], row}) + biases(row) + sum;
                            }};
    for (Stmt& nest : tiled(context_, builder(), op_.emit.unique("step"), tiles, op_.dtype(), {result}))
      builder().add(std::move(nest));
    return op_.emit.from_buffer(to, dims, op_.dtype());
  }

  void assign(std::string_view name, Dim t, const Value& to, const Element& value) const {
    builder().stage(name, {{"", batch_}, {"", op_.dim(hidden_)}}, {}, [&](const Dims& at) {
      Expr made = value(at);
      if (lengths_) made = choose(is_inside(row_of_x(t), at[0]), made, to.at({t, at[0], at[1]}));
      return Assignment{*to.buffer, {next(t), at[0], at[1]}, std::move(made), nullptr};
    });
  }

  const Operation& op_;
  Context& context_;
  Cell cell_;
  int64_t direction_;
  bool backward_;
  Dim steps_, batch_;
  int64_t hidden_;
  std::vector<GateFunction> functions_;  // f, g, h
  std::optional<Value> lengths_;         // of the sequences, where they differ
  bool peepholes_;
  Value inputs_, h_, c_;
};

template <Cell cell, bool ragged = false>
Values recurrent(const Operation& op) {
  if (!op.arg(2).dims[2].constant()) return error("the size of the state is no constant");
  const std::string& direction = op.text("direction");
  std::vector<Direction> directions;
  directions.reserve(2);
  const bool both = direction == "bidirectional";
  TENON_TRY_ASSIGN(functions, runtime::reference::gate_functions(op.attrs, gates_of(cell), both ? 2 : 1));
  const auto middle = functions->begin() + runtime::reference::functions_of(gates_of(cell));
  std::optional<Value> lengths;
  if (ragged) lengths = op.arg(cell == Cell::kLstm ? 6 : 5);
  directions.emplace_back(op, cell, 0, direction == "reverse", std::vector(functions->begin(), middle), lengths);
  if (both) directions.emplace_back(op, cell, 1, true, std::vector(middle, functions->end()), lengths);
  // The element of the direction that the index names.
  const auto of = [&directions](Dim d, const std::function<Expr(const Direction&)>& element) {
    const Expr first = element(directions[0]);
    return directions.size() == 1 ? first
                                  : choose(same(loop::index_value(d), loop::integer_literal(DType::kI64, 0)), first,
                                           element(directions[1]));
  };
  // Stored at once: what computes them does not outlive this.
  std::vector<Value> results;
  results.push_back(op.emit.stored("y", op.emit.expression(op.results[0]->dims, op.dtype(), [&](const Dims& at) {
    return of(at[1], [&](const Direction& one) { return one.state(at[0], at[2], at[3]); });
  })));
  results.push_back(op.emit.stored("h_last", op.emit.expression(op.results[1]->dims, op.dtype(), [&](const Dims& at) {
    return of(at[0], [&](const Direction& one) { return one.last(at[1], at[2]); });
  })));
  if (cell == Cell::kLstm) {
    results.push_back(op.emit.stored("c_last", op.emit.expression(op.results[2]->dims, op.dtype(), [&](const Dims& at) {
      return of(at[0], [&](const Direction& one) { return one.last_cell(at[1], at[2]); });
    })));
  }
  return results;
}

}  // namespace

std::span<const Lowering> recurrent_lowerings() {
  static constexpr Lowering kLowerings[] = {{"rnn", recurrent<Cell::kPlain>},
                                            {"gru", recurrent<Cell::kGru>},
                                            {"lstm", recurrent<Cell::kLstm>},
                                            {"rnn_ragged", recurrent<Cell::kPlain, true>},
                                            {"gru_ragged", recurrent<Cell::kGru, true>},
                                            {"lstm_ragged", recurrent<Cell::kLstm, true>}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
