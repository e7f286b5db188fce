// Recurrent layers. The input terms of all steps are one matrix product; a scan follows, each step of which multiplies
// the previous state by the recurrent weights and computes the gates elementwise.
//
// Sequences of different lengths are joined: the input terms are one product of the steps of all of them, and a step of
// the scan computes those sequences that have not ended. They are the first ones in the order of falling lengths, so
// that their states are rows of one product.
#include <algorithm>
#include <optional>

#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/product.h"
#include "runtime/reference/recurrent.h"
#include "support/function_ref.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

using Assignment = loop::Builder::Assignment;
using runtime::reference::GateFunction;
using runtime::reference::GateKind;

enum class Cell { kPlain, kGru, kLstm };
constexpr int64_t gates_of(Cell cell) { return cell == Cell::kPlain ? 1 : cell == Cell::kGru ? 3 : 4; }

// The rows `from` up to `from + count` of one direction's weights [D, rows, columns]: [count, columns].
LazyTensor rows_of(const OperatorCall& op, const LazyTensor& w, int64_t direction, int64_t from, int64_t count) {
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

// The activation function of a gate, as in the reference kernel.
Expr activation(const GateFunction& function, const Expr& x) {
  const double alpha = function.alpha, beta = function.beta;
  switch (function.kind) {
    case GateKind::kSigmoid: return sigmoid(x);
    case GateKind::kTanh: return tanh(x);
    case GateKind::kRelu: return maximum(x, like(x, 0));
    case GateKind::kAffine: return alpha * x + beta;
    case GateKind::kLeakyRelu: return select(below(x, 0), alpha * x, x);
    case GateKind::kThresholdedRelu: return select(above(x, alpha), x, like(x, 0));
    case GateKind::kScaledTanh: return alpha * tanh(beta * x);
    case GateKind::kHardSigmoid: return maximum(minimum(alpha * x + beta, like(x, 1)), like(x, 0));
    case GateKind::kElu: return select(below(x, 0), alpha * expm1(x), x);
    case GateKind::kSoftsign: return x / (1.0 + absolute(x));
    case GateKind::kSoftplus: return maximum(x, like(x, 0)) + log1p(exponential(-absolute(x)));
  }
  return x;
}

// Sequences of different lengths, by tables of the loop function.
struct Sequences {
  Symbol lengths;
  Symbol offsets, sequences;  // where the steps of all follow each other: the first of each, and whose they are
  // Of several sequences: the longest first, where each of them is in this order, and at each step the number of those
  // that include it.
  struct Order {
    Symbol sequences, positions, active;
  };
  std::optional<Order> order;
};

// Nothing on a GPU, whose kernels have no tables: there all sequences run to the last step.
Expected<std::optional<Sequences>> joined_sequences(const OperatorCall& op, const LazyTensor& lengths) {
  if (op.emit.machine().threads > 0) return std::nullopt;
  const auto name = op.emit.as_sizes(lengths);
  if (!name) return error("the lengths must be an argument of the kernel, or a constant");
  loop::Builder& builder = op.emit.builder();
  const Dim steps = op.arg(0).dims[0], batch = op.arg(0).dims[1];
  const loop::Range rows{"sequence", batch};
  const auto table = [&](loop::Table::Kind kind, std::string_view base) {
    return builder.table(kind, rows, op.context().apply(*name, {builder.index(rows.name)}), op.emit.unique(base),
                         steps);
  };
  Sequences sequences{.lengths = *name,
                      .offsets = table(loop::Table::Kind::kOffsets, "offsets"),
                      .sequences = table(loop::Table::Kind::kRows, "sequence"),
                      .order = std::nullopt};
  if (batch.constant() != 1)
    sequences.order = {.sequences = table(loop::Table::Kind::kDescending, "longest"),
                       .positions = table(loop::Table::Kind::kPositions, "position"),
                       .active = table(loop::Table::Kind::kCounts, "active")};
  return sequences;
}

// One direction of a layer: its states in the order of the steps, after the initial state: [T + 1, N, H]. Joined
// sequences are in their order, and each begins at the first step, in a backward direction with its last one.
class Direction {
 public:
  Direction(const OperatorCall& op, Cell cell, int64_t direction, bool backward, std::vector<GateFunction> functions,
            std::optional<LazyTensor> lengths, std::optional<Sequences> joined)
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
        joined_(joined),
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

  // The state after the step that reads row t of x, and the final states.
  Expr state(Dim t, Dim n, Dim i) const {
    const Expr h = h_.at({backward_ ? context_.subtract(end(n), t) : next(t), position(n), i});
    return lengths_ ? select(is_active(t, n), h, like(h, 0)) : h;
  }
  Expr last(Dim n, Dim i) const { return h_.at({end(n), position(n), i}); }
  Expr last_cell(Dim n, Dim i) const { return c_.at({end(n), position(n), i}); }

 private:
  // A matrix of recurrent weights: rows from `from` on.
  struct Weights {
    std::string name;
    int64_t from = 0, rows = 0;
    LazyTensor w;
  };

  void plain() {
    const Weights weights = gates("gates", 0, 1);
    steps([&](Dim t) {
      const LazyTensor g = product(t, weights, before(t));
      assign("state", t, h_, [&](const Dims& at) { return gate_function(0, g.at(at)); });
    });
  }

  void lstm() {  // gates in, out, forget, cell
    const Weights weights = gates("gates", 0, 4);
    steps([&](Dim t) {
      const LazyTensor g = product(t, weights, before(t));
      assign("cell", t, c_, [&](const Dims& at) {
        const Expr before = c_.at({t, at[0], at[1]}),
                   in = gate_function(0, with_peephole(gate(g, 0, at), 0, at[1], before));
        const Expr forget = op_.integer("input_forget") == 1
                                ? 1.0 - in
                                : gate_function(0, with_peephole(gate(g, 2, at), 2, at[1], before));
        return forget * before + in * gate_function(1, gate(g, 3, at));
      });
      assign("state", t, h_, [&](const Dims& at) {
        const Expr cell = c_.at({next(t), at[0], at[1]});
        return gate_function(0, with_peephole(gate(g, 1, at), 1, at[1], cell)) * activation(functions_[2], cell);
      });
    });
  }

  void gru() {  // gates update, reset, hidden
    const Weights gate_weights = gates("gates", 0, 2), hidden_weights = gates("hidden", 2, 1);
    steps([&](Dim t) {
      const LazyTensor g = product(t, gate_weights, before(t));
      const ElementFunction reset = [&](const Dims& at) { return gate_function(0, gate(g, 1, at)); };
      const auto mix = [&](const ElementFunction& candidate) {
        assign("state", t, h_, [&](const Dims& at) {
          const Expr update = gate_function(0, gate(g, 0, at));
          return (1.0 - update) * gate_function(1, candidate(at)) + update * before(t)(at);
        });
      };
      if (reset_after()) {
        const LazyTensor sum = product(t, hidden_weights, before(t));
        mix([&](const Dims& at) {
          const Dim hidden_row = row(2, at[1]);
          return input(t, at[0], hidden_row) + biases(hidden_row) + reset(at) * (sum.at(at) + bias(hidden_row, true));
        });
      } else {
        const BufferId reset_state =
            builder().temporary(op_.emit.unique("reset_state"), {{"", batch_}, {"", op_.dim(hidden_)}}, op_.dtype());
        builder().stage("reset_state", {{"", rows_at(t)}, {"", op_.dim(hidden_)}}, {}, [&](const Dims& at) {
          return Assignment{reset_state, at, reset(at) * before(t)(at), nullptr};
        });
        const LazyTensor sum =
            product(t, hidden_weights, [&](const Dims& at) { return builder().load(reset_state, at); });
        mix([&](const Dims& at) { return sum.at(at); });
      }
    });
  }

  loop::Builder& builder() const { return op_.emit.builder(); }
  bool reset_after() const { return cell_ == Cell::kGru && op_.integer("reset_after") == 1; }
  Dim next(Dim t) const { return context_.add(t, context_.dim(1)); }
  // The rows of the states are sequences: how many a step has, the sequence of a row, and the row of a sequence.
  const Sequences::Order* order() const { return joined_ && joined_->order ? &*joined_->order : nullptr; }
  Dim rows_at(Dim t) const { return order() ? context_.apply(order()->active, {t}) : batch_; }
  Dim sequence(Dim i) const { return order() ? context_.apply(order()->sequences, {i}) : i; }
  Dim position(Dim n) const { return order() ? context_.apply(order()->positions, {n}) : n; }
  // The number of steps of the sequence n.
  Dim end(Dim n) const { return joined_ ? context_.apply(joined_->lengths, {n}) : steps_; }
  Dim row_of_x(Dim t, Dim n) const {
    return backward_ ? context_.subtract(context_.subtract(end(n), context_.dim(1)), t) : t;
  }
  // The input term of a row of a step.
  Expr input(Dim t, Dim i, Dim row) const {
    const Dim n = sequence(i), x = row_of_x(t, n);
    return inputs_.at(joined_ ? Dims{context_.add(context_.apply(joined_->offsets, {n}), x), row} : Dims{x, n, row});
  }
  Dim row(int64_t gate, Dim unit) const { return context_.add(context_.dim(gate * hidden_), unit); }
  Expr gate(const LazyTensor& gates, int64_t i, const Dims& at) const { return gates.at({at[0], row(i, at[1])}); }
  // The activation function of the gate, applied to the clipped argument.
  Expr gate_function(size_t function, const Expr& x) const {
    const double clip = op_.real("clip");
    return activation(functions_[function], clip > 0 ? minimum(maximum(x, like(x, -clip)), like(x, clip)) : x);
  }
  // Adds the peephole term of the cell, if there are peepholes; their weights are stored after the biases.
  Expr with_peephole(const Expr& gate, int64_t index, Dim unit, const Expr& cell) const {
    if (!peepholes_) return gate;
    return gate +
           op_.arg(3).at({context_.dim(direction_), context_.add(context_.dim((8 + index) * hidden_), unit)}) * cell;
  }
  // Whether the sequence n includes the step that reads row t of x.
  Expr is_active(Dim t, Dim n) const { return less(loop::index_value(t), lengths_->at({n})); }
  ElementFunction before(Dim t) const {
    return [this, t](const Dims& at) { return h_.at({t, at[0], at[1]}); };
  }

  // The bias of w, or the recurrent bias, which is stored after it.
  Expr bias(Dim row, bool recurrent) const {
    const Dim second = context_.add(context_.dim(gates_of(cell_) * hidden_), row);
    return op_.arg(3).at({context_.dim(direction_), recurrent ? second : row});
  }
  // The biases that do not depend on the state. Where the reset gate is applied after the product, it scales the
  // recurrent bias of the hidden gate too, which is excluded here.
  Expr biases(Dim row) const {
    const Expr sum = bias(row, false) + bias(row, true);
    if (!reset_after()) return sum;
    return select(less(loop::index_value(row), loop::index_value(context_.dim(2 * hidden_))), sum, bias(row, false));
  }

  // x w of all steps: [T, N, rows], of joined sequences [sum of the lengths, rows].
  LazyTensor product_of_inputs() const {
    const Dim rows = op_.dim(gates_of(cell_) * hidden_);
    const LazyTensor w = op_.emit.stored("w", rows_of(op_, op_.arg(1), direction_, 0, *rows.constant()));
    if (joined_) {
      const LazyTensor x = joined_inputs();
      return multiply(op_, "inputs",
                      {.batch = {},
                       .rows = x.dims[0],
                       .columns = rows,
                       .terms = {x.dims[1]},
                       .term =
                           [w, x](const Dims&, Dim step, const Dims& k, Dim row) {
                             return x.at({step, k[0]}) * w.at({row, k[0]});
                           },
                       .panels = w,
                       .dims = {x.dims[0], rows},
                       .result_index = [](const Dims& at) { return at; }});
    }
    return multiply(op_, "inputs",
                    {.batch = {batch_},
                     .rows = steps_,
                     .columns = rows,
                     .terms = {op_.arg(0).dims[2]},
                     .term =
                         [w, x = op_.arg(0)](const Dims& sequence, Dim t, const Dims& k, Dim row) {
                           return x.at({t, sequence[0], k[0]}) * w.at({row, k[0]});
                         },
                     .panels = w,
                     .dims = {steps_, batch_, rows},
                     .result_index =
                         [](const Dims& at) {
                           return Dims{at[1], at[0], at[2]};
                         }});
  }

  // The rows of x of all sequences, one after another: [sum of the lengths, I].
  LazyTensor joined_inputs() const {
    const LazyTensor& x = op_.arg(0);
    const Dims dims{context_.apply(joined_->offsets, {batch_}), x.dims[2]};
    const BufferId to = builder().temporary(op_.emit.unique("steps"), {{"", dims[0]}, {"", dims[1]}}, op_.dtype());
    builder().compute(to, [&](const Dims& at) {
      const Dim n = context_.apply(joined_->sequences, {at[0]});
      return x.at({context_.subtract(at[0], context_.apply(joined_->offsets, {n})), n, at[1]});
    });
    return op_.emit.from_buffer(to, dims, op_.dtype());
  }

  LazyTensor states(std::string_view name, const LazyTensor& first) const {
    const Dims dims{next(steps_), batch_, op_.dim(hidden_)};
    const BufferId buffer =
        builder().temporary(op_.emit.unique(name), {{"", dims[0]}, {"", dims[1]}, {"", dims[2]}}, op_.dtype());
    builder().stage("first", {{"", batch_}, {"", op_.dim(hidden_)}}, {}, [&](const Dims& at) {
      return Assignment{buffer,
                        {context_.dim(0), at[0], at[1]},
                        first.at({context_.dim(direction_), sequence(at[0]), at[1]}),
                        nullptr};
    });
    return op_.emit.from_buffer(buffer, dims, op_.dtype());
  }

  // The recurrent weights of `count` gates.
  Weights gates(std::string_view name, int64_t from, int64_t count) const {
    const int64_t rows = count * hidden_;
    return {std::string(name), from * hidden_, rows,
            op_.emit.stored("weights", rows_of(op_, op_.arg(2), direction_, from * hidden_, rows))};
  }

  void steps(FunctionRef<void(Dim t)> body) const {
    std::vector<BufferId> states{*h_.buffer};
    if (cell_ == Cell::kLstm) states.push_back(*c_.buffer);
    // One sequence ends with its last step.
    const bool is_one = joined_ && !order();
    builder().scan({"t", is_one ? context_.apply(joined_->offsets, {batch_}) : steps_}, states, body);
  }

  // [N, rows] of one step: the recurrent weights times the state, plus the input terms.
  LazyTensor product(Dim t, const Weights& weights, const ElementFunction& state) const {
    const Dims dims{batch_, op_.dim(weights.rows)};
    const BufferId to = builder().temporary(op_.emit.unique(weights.name), {{"", dims[0]}, {"", dims[1]}}, op_.dtype());
    const Product product{.batch = {},
                          .rows = rows_at(t),
                          .columns = dims[1],
                          .terms = {op_.dim(hidden_)},
                          .term =
                              [&](const Dims&, Dim n, const Dims& k, Dim row) {
                                return state({n, k[0]}) * weights.w.at({row, k[0]});
                              },
                          .panels = weights.w};
    const bool excludes_inputs = reset_after() && weights.from > 0;
    const TileResult result{to, [&](const Dims& at, const Expr& sum) {
                              if (excludes_inputs) return sum;
                              const Dim row = context_.add(context_.dim(weights.from), at[1]);
                              return input(t, at[0], row) + biases(row) + sum;
                            }};
    for (Stmt& nest :
         product_loops(op_.emit, op_.emit.unique("step"), product, op_.dtype(), op_.emit.operator_index(), {result}))
      builder().add(std::move(nest));
    return op_.emit.from_buffer(to, dims, op_.dtype());
  }

  void assign(std::string_view name, Dim t, const LazyTensor& to, const ElementFunction& value) const {
    builder().stage(name, {{"", rows_at(t)}, {"", op_.dim(hidden_)}}, {}, [&](const Dims& at) {
      Expr next_state = value(at);
      if (lengths_ && !joined_)
        next_state = select(is_active(row_of_x(t, at[0]), at[0]), next_state, to.at({t, at[0], at[1]}));
      return Assignment{*to.buffer, {next(t), at[0], at[1]}, std::move(next_state), nullptr};
    });
  }

  const OperatorCall& op_;
  Context& context_;
  Cell cell_;
  int64_t direction_;
  bool backward_;
  Dim steps_, batch_;
  int64_t hidden_;
  std::vector<GateFunction> functions_;  // f, g, h
  std::optional<LazyTensor> lengths_;    // of the sequences, where they differ
  std::optional<Sequences> joined_;      // likewise
  bool peepholes_;
  LazyTensor inputs_, h_, c_;
};

template <Cell cell, bool ragged = false>
LoweredResults recurrent(const OperatorCall& op) {
  if (!op.arg(2).dims[2].constant()) return error("the size of the state must be constant");
  const std::string& direction = op.text("direction");
  std::vector<Direction> directions;
  directions.reserve(2);
  const bool bidirectional = direction == "bidirectional";
  TENON_TRY_ASSIGN(functions, runtime::reference::gate_functions(op.attrs, gates_of(cell), bidirectional ? 2 : 1));
  const auto middle = functions->begin() + runtime::reference::functions_of(gates_of(cell));
  std::optional<LazyTensor> lengths;
  std::optional<Sequences> joined;
  if (ragged) {
    lengths = op.arg(cell == Cell::kLstm ? 6 : 5);
    TENON_TRY_ASSIGN(sequences, joined_sequences(op, *lengths));
    joined = *sequences;
  }
  directions.emplace_back(op, cell, 0, direction == "reverse", std::vector(functions->begin(), middle), lengths,
                          joined);
  if (bidirectional) directions.emplace_back(op, cell, 1, true, std::vector(middle, functions->end()), lengths, joined);
  // The element of the direction d.
  const auto select_direction = [&directions](Dim d, FunctionRef<Expr(const Direction&)> element) {
    const Expr first = element(directions[0]);
    return directions.size() == 1 ? first
                                  : select(is_equal(loop::index_value(d), loop::integer_literal(DType::kI64, 0)), first,
                                           element(directions[1]));
  };
  // The results are stored, since `directions` does not outlive this function.
  std::vector<LazyTensor> results;
  results.push_back(op.emit.stored("y", op.emit.expression(op.results[0]->dims, op.dtype(), [&](const Dims& at) {
    return select_direction(at[1], [&](const Direction& one_way) { return one_way.state(at[0], at[2], at[3]); });
  })));
  results.push_back(op.emit.stored("h_last", op.emit.expression(op.results[1]->dims, op.dtype(), [&](const Dims& at) {
    return select_direction(at[0], [&](const Direction& one_way) { return one_way.last(at[1], at[2]); });
  })));
  if (cell == Cell::kLstm) {
    results.push_back(op.emit.stored("c_last", op.emit.expression(op.results[2]->dims, op.dtype(), [&](const Dims& at) {
      return select_direction(at[0], [&](const Direction& one_way) { return one_way.last_cell(at[1], at[2]); });
    })));
  }
  return results;
}

}  // namespace

std::span<const Lowering> recurrent_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kRnn, recurrent<Cell::kPlain>},           {ops::kGru, recurrent<Cell::kGru>},
      {ops::kLstm, recurrent<Cell::kLstm>},           {ops::kRnnRagged, recurrent<Cell::kPlain, true>},
      {ops::kGruRagged, recurrent<Cell::kGru, true>}, {ops::kLstmRagged, recurrent<Cell::kLstm, true>}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
