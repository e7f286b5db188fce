#include "compiler/loop/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/loop/expr.h"
#include "compiler/loop/in_flight.h"
#include "compiler/loop/races.h"
#include "compiler/loop/scalar.h"
#include "compiler/loop/state.h"
#include "runtime/native/functions.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

class Evaluator {
 public:
  Evaluator(const TypeContext& context, const Function& function, const EvaluateOptions& options)
      : state_(context, function, options.max_bytes), races_(state_), in_flight_(state_), options_(options) {}

  Expected<std::vector<Tensor>> run(std::span<const Tensor> params) {
    TENON_TRY(state_.bind(params));
    for (BufferId result : state_.function().results) TENON_TRY(state_.allocate(result));
    TENON_TRY(run(state_.function().body));
    std::vector<Tensor> results;
    for (BufferId result : state_.function().results) {
      const Storage& storage = state_.storage(result);
      if (std::ranges::find(storage.written, false) != storage.written.end())
        return state_.fail(fmt::format("{} was not written completely", state_.name(result)));
      results.push_back(storage.data);
    }
    return results;
  }

 private:
  Status step() {
    if (++steps_ > options_.max_steps) return state_.fail(fmt::format("more than {} steps", options_.max_steps));
    return {};
  }

  // --- Values ---

  Expected<Scalar> evaluate(const Expr& expr) {
    TENON_TRY(step());
    return std::visit([&](const auto& form) { return evaluate(*expr, form); }, expr->form);
  }
  Expected<Scalar> evaluate(const ExprNode&, const Literal& form) {
    return Scalar{.real = form.real, .integer = form.integer};
  }
  Expected<Scalar> evaluate(const ExprNode&, const IndexValue& form) {
    TENON_TRY_ASSIGN(index, state_.value(form.value));
    return Scalar{.integer = *index};
  }
  Expected<Scalar> evaluate(const ExprNode&, const Load& form) {
    TENON_TRY_ASSIGN(offset, state_.offset(form.buffer, form.indices));
    const Storage& storage = state_.storage(form.buffer);
    TENON_TRY(in_flight_.read(form.buffer, *offset));
    if (!storage.written[static_cast<size_t>(*offset)])
      return state_.fail(fmt::format("{} is read before it is written, at {}", state_.name(form.buffer),
                                     state_.context().str(form.indices)));
    TENON_TRY(reads(form.buffer, *offset));
    return read(storage.data, *offset);
  }
  Expected<Scalar> evaluate(const ExprNode&, const Unary& form) {
    TENON_TRY_ASSIGN(operand, evaluate(form.value));
    return located(apply(form.op, form.value->dtype, *operand));
  }
  Expected<Scalar> evaluate(const ExprNode&, const Binary& form) {
    TENON_TRY_ASSIGN(left, evaluate(form.left));
    if ((form.op == BinaryOp::kAnd && left->integer == 0) || (form.op == BinaryOp::kOr && left->integer != 0))
      return left;
    TENON_TRY_ASSIGN(right, evaluate(form.right));
    return located(apply(form.op, form.left->dtype, *left, *right));
  }
  Expected<Scalar> evaluate(const ExprNode&, const Select& form) {
    TENON_TRY_ASSIGN(condition, evaluate(form.condition));
    return evaluate(condition->integer != 0 ? form.then : form.otherwise);
  }
  Expected<Scalar> evaluate(const ExprNode& node, const Convert& form) {
    TENON_TRY_ASSIGN(operand, evaluate(form.value));
    return located(convert(form.value->dtype, node.dtype, *operand));
  }
  Expected<Scalar> evaluate(const ExprNode&, const LetIndex& form) {
    TENON_TRY_ASSIGN(index, bound_index(form.value, form.extent));
    const Binding binding(state_.variables(), form.var, *index);
    return evaluate(form.body);
  }
  Expected<Scalar> located(Expected<Scalar> scalar) const {
    if (!scalar) return state_.fail(scalar.error().what);
    return scalar;
  }
  Expected<int64_t> bound_index(const Expr& expr, Dim extent) {
    TENON_TRY_ASSIGN(index, evaluate(expr));
    TENON_TRY_ASSIGN(size, state_.value(extent));
    if (index->integer < 0 || index->integer >= *size)
      return state_.fail(fmt::format("the index {} is not in 0 .. {}", index->integer, *size - 1));
    return index->integer;
  }

  // --- Statements ---

  Status run(const Body& body) {
    for (const Stmt& stmt : body) {
      TENON_TRY(step());
      TENON_TRY(std::visit([&](const auto& form) { return run(form); }, stmt.form));
    }
    return {};
  }
  Status run(const For& loop) {
    TENON_TRY_ASSIGN(extent, state_.value(loop.extent));
    const bool is_bound = binds_thread(loop.kind) || binds_block(loop.kind);
    for (int64_t step = 0; step < *extent; ++step) {
      const int64_t i = is_bound ? in_order(step, *extent) : step;
      const Binding binding(state_.variables(), loop.var, i);
      if (is_bound) races_.enter(loop.kind, i);
      TENON_TRY(run(loop.body));
      if (is_bound) races_.leave(loop.kind);
    }
    if (is_bound) races_.end_of_loop();
    return {};
  }
  Status run(const Barrier&) {
    races_.barrier();
    return {};
  }
  Status run(const Commit&) {
    in_flight_.commit();
    return {};
  }
  Status run(const Wait& wait) {
    for (const InFlight::Copy& copy : in_flight_.wait(wait.groups)) {
      TENON_TRY(races_.write_of(copy.thread, copy.to, copy.to_element));
      state_.storage(copy.to).written[static_cast<size_t>(copy.to_element)] = true;
    }
    return {};
  }
  Status reads(BufferId buffer, int64_t element) {
    TENON_TRY(in_flight_.read(buffer, element));
    return races_.read(buffer, element);
  }
  Status writes(BufferId buffer, int64_t element) {
    TENON_TRY(in_flight_.write(buffer, element));
    return races_.write(buffer, element);
  }
  // A copy may end at any time before its group is waited for: it is a write of this phase, and of that of the wait.
  Status begin_copy(const Store& store) {
    const CopiedElement copied = *copied_element(store.value);
    const Load& load = *copied.element;
    bool copies = true;
    for (const Expr& each : copied.conditions) {
      if (!copies) break;
      TENON_TRY_ASSIGN(condition, evaluate(each));
      copies = condition->integer != 0;
    }
    TENON_TRY_ASSIGN(scalar, evaluate(store.value));
    TENON_TRY_ASSIGN(to, state_.offset(store.buffer, store.indices));
    InFlight::Copy copy{.to = store.buffer, .from = load.buffer, .to_element = *to, .thread = races_.thread()};
    if (copies) {
      TENON_TRY_ASSIGN(from, state_.offset(load.buffer, load.indices));
      copy.from_element = *from;
    }
    TENON_TRY(writes(store.buffer, *to));
    Storage& storage = state_.storage(store.buffer);
    write(storage.data, *to, *scalar);
    storage.written[static_cast<size_t>(*to)] = false;
    in_flight_.begin(copy, copies);
    return {};
  }
  // The thread or block that is executed at this step.
  int64_t in_order(int64_t step, int64_t extent) const {
    switch (options_.threads) {
      case ThreadOrder::kForward: return step;
      case ThreadOrder::kBackward: return extent - 1 - step;
      case ThreadOrder::kShuffled: break;
    }
    int64_t factor = 7919;  // a prime
    while (extent % factor == 0) factor += 2;
    return std::gcd(factor, extent) == 1 ? (step * factor + 13) % extent : step;
  }
  Status run(const Stage& stage) {
    for (const Guard& guard : stage.where) {
      TENON_TRY_ASSIGN(left, state_.value(guard.left));
      TENON_TRY_ASSIGN(right, state_.value(guard.right));
      if (*left >= *right) return {};
    }
    point_.clear();
    for (const Axis& axis : stage.axes) {
      TENON_TRY_ASSIGN(value, state_.value(axis.value));
      point_.push_back(*value);
    }
    bool first = true;
    const Binding binding(state_.variables());
    for (size_t i = 0; i < stage.axes.size(); ++i) {
      const Axis& axis = stage.axes[i];
      state_.variables().bind(axis.var, point_[i]);
      TENON_TRY_ASSIGN(extent, state_.value(axis.extent));
      if (point_[i] < 0 || point_[i] >= *extent)
        return state_.fail(fmt::format("axis '{}' of stage '{}' is {}, not in 0 .. {}", state_.context().name(axis.var),
                                       state_.context().name(stage.name), point_[i], *extent - 1));
      first &= axis.kind != AxisKind::kReduce || point_[i] == 0;
    }
    if (stage.async) return begin_copy(std::get<Store>(stage.body.front().form));
    if (first) TENON_TRY(run(stage.init));
    return run(stage.body);
  }
  Status run(const Store& store) {
    TENON_TRY_ASSIGN(scalar, evaluate(store.value));
    TENON_TRY_ASSIGN(offset, state_.offset(store.buffer, store.indices));
    Storage& storage = state_.storage(store.buffer);
    TENON_TRY(writes(store.buffer, *offset));
    write(storage.data, *offset, *scalar);
    storage.written[static_cast<size_t>(*offset)] = true;
    return {};
  }
  Status run(const If& branch) {
    TENON_TRY_ASSIGN(condition, evaluate(branch.condition));
    return run(condition->integer != 0 ? branch.then : branch.otherwise);
  }
  Status run(const Let& let) {
    TENON_TRY_ASSIGN(index, bound_index(let.value, let.extent));
    const Binding binding(state_.variables(), let.var, *index);
    return run(let.body);
  }
  Status run(const Alloc& alloc) {
    TENON_TRY(state_.allocate(alloc.buffer));
    races_.reset(alloc.buffer);
    if (alloc.scope == Scope::kRegisters) races_.declare_registers(alloc.buffer);
    TENON_TRY(run(alloc.body));
    return in_flight_.release(alloc.buffer);
  }
  Status run(const CallLibrary& call) {
    const std::string symbol(state_.context().name(call.symbol));
    const auto given = options_.libraries.find(symbol);
    const runtime::LibraryFunction* opened = nullptr;
    if (given == options_.libraries.end()) {
      auto found = runtime::find_function(symbol);
      if (!found) {
        found.error().where = "@" + std::string(state_.context().name(state_.function().name));
        return std::unexpected(std::move(found.error()));
      }
      opened = *found;
    }
    std::vector<Tensor> inputs, outputs;
    for (BufferId input : call.inputs) {
      const Storage& storage = state_.storage(input);
      if (std::ranges::find(storage.written, false) != storage.written.end())
        return state_.fail(
            fmt::format("{} is passed to '{}' before it is written completely", state_.name(input), symbol));
      inputs.push_back(storage.data);
    }
    for (BufferId output : call.outputs) outputs.push_back(state_.storage(output).data);
    TENON_TRY(opened ? runtime::call_function(*opened, inputs, outputs, runtime::ThreadPool::of_process())
                     : given->second(inputs, outputs));
    for (BufferId output : call.outputs) {
      Storage& storage = state_.storage(output);
      storage.written.assign(storage.written.size(), true);
    }
    return {};
  }

  // The offsets of a block's elements, in the order of its tensor.
  Expected<std::vector<int64_t>> offsets_of(const Operand& operand) {
    Indices begin, element;
    for (const Part& part : operand.parts) {
      TENON_TRY_ASSIGN(index, state_.value(part.begin));
      begin.push_back(*index);
    }
    element = begin;
    std::vector<int64_t> result;
    while (true) {
      TENON_TRY(step());
      TENON_TRY_ASSIGN(offset, state_.offset(operand.buffer, element));
      result.push_back(*offset);
      size_t axis = element.size();
      while (axis > 0 && ++element[axis - 1] >= begin[axis - 1] + std::max<int64_t>(operand.parts[axis - 1].size, 1)) {
        element[axis - 1] = begin[axis - 1];
        --axis;
      }
      if (axis == 0) return result;
    }
  }
  // Executes the instruction's declaration on copies of the blocks.
  Status run(const Intrinsic& call) {
    Evaluator inner(state_.context(), *state_.function().intrinsic(call.name), options_);
    const Function& declared = inner.state_.function();
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Storage& storage = state_.storage(call.inputs[i].buffer);
      TENON_TRY_ASSIGN(from, offsets_of(call.inputs[i]));
      runtime::Shape shape;
      for (const BufferAxis& axis : declared.buffer(declared.params[i]).axes) shape.push_back(*axis.extent.constant());
      Tensor block(storage.data.dtype(), std::move(shape));
      for (size_t k = 0; k < from->size(); ++k) {
        if (!storage.written[static_cast<size_t>((*from)[k])])
          return state_.fail(fmt::format("{} is read by '{}' before it is written", state_.name(call.inputs[i].buffer),
                                         state_.context().name(call.name)));
        TENON_TRY(reads(call.inputs[i].buffer, (*from)[k]));
        write(block, static_cast<int64_t>(k), read(storage.data, (*from)[k]));
      }
      inputs.push_back(std::move(block));
    }
    TENON_TRY(inner.state_.bind(inputs));
    inner.steps_ = steps_;
    std::vector<std::vector<int64_t>> outputs;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const Storage& storage = state_.storage(call.outputs[i].buffer);
      TENON_TRY_ASSIGN(to, offsets_of(call.outputs[i]));
      TENON_TRY(inner.state_.allocate(declared.results[i]));
      Storage& block = inner.state_.storage(declared.results[i]);
      for (size_t k = 0; k < to->size(); ++k) {
        write(block.data, static_cast<int64_t>(k), read(storage.data, (*to)[k]));
        block.written[k] = storage.written[static_cast<size_t>((*to)[k])];
      }
      outputs.push_back(std::move(*to));
    }
    TENON_TRY(inner.run(declared.body));
    steps_ = inner.steps_;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      Storage& storage = state_.storage(call.outputs[i].buffer);
      const Storage& block = inner.state_.storage(declared.results[i]);
      for (size_t k = 0; k < outputs[i].size(); ++k) {
        TENON_TRY(writes(call.outputs[i].buffer, outputs[i][k]));
        write(storage.data, outputs[i][k], read(block.data, static_cast<int64_t>(k)));
        storage.written[static_cast<size_t>(outputs[i][k])] = block.written[k];
      }
    }
    return {};
  }

  State state_;
  RaceChecker races_;
  InFlight in_flight_;
  const EvaluateOptions& options_;
  uint64_t steps_ = 0;
  Indices point_;  // of the stage that begins
};

}  // namespace

Expected<std::vector<Tensor>> evaluate(const TypeContext& context, const Function& function,
                                       std::span<const Tensor> params, const EvaluateOptions& options) {
  return Evaluator(context, function, options).run(params);
}

}  // namespace tenon::compiler::loop
