// One walk through the function, which collects at each statement the facts that loops, guards and conditions imply.
#include "compiler/loop/safety.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/coverage.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/tables.h"

namespace tenon::compiler::loop {
namespace {

// The limits of one function's proofs; beyond them an obligation counts as unproven.
constexpr size_t kMaxQuestions = 20'000, kMaxWrites = 12;

class SafetyProver {
 public:
  // `sizes_only`: whether elements that are sizes are inside, and nothing else.
  SafetyProver(TypeContext& context, const Function& function, bool sizes_only)
      : context_(context),
        prover_(context, function.bounds, row_functions(context, function)),
        function_(function),
        sizes_only_(sizes_only) {}

  UnprovenObligations run() {
    for (BufferId param : function_.params) sizes_of(param);
    for (BufferId result : function_.results) sizes_of(result);
    for (const Table& table : function_.tables) {
      dim(table.count);
      if (table.limit.node) dim(table.limit);
      const size_t outer_facts = facts_.size();
      values_[table.var] = context_.dim(fresh());
      assume_inside(values_.at(table.var), current(table.count));
      dim(table.width);
      unproven_.data |= !holds(current(table.width));
      values_.erase(table.var);
      facts_.resize(outer_facts);
    }
    statements(function_.body);
    for (BufferId result : function_.results) {
      const size_t outer_facts = facts_.size();
      if (!is_written(result, any_element(result)))
        unproven(
            fmt::format("it is not proved that every element of {} is written", local(result)),
            "a stage whose axes are the indices of its store, each of the axis's whole size, writes every element");
      facts_.resize(outer_facts);
    }
    return std::move(unproven_);
  }

 private:
  std::string local(BufferId id) const { return fmt::format("%{}", context_.name(function_.buffer(id).name)); }
  void unproven(std::string finding, std::string help) {
    if (unproven_.program || (sizes_only_ && !in_size_)) return;
    std::string where = fmt::format("@{}", context_.name(function_.name));
    if (stage_) where += fmt::format(", stage '{}'", context_.name(stage_->name));
    unproven_.program = Diagnostic{std::move(finding), std::move(where), std::move(help)};
  }

  // --- Facts ---

  // A dim of the function over the walk's variables, which are unique.
  Dim current(Dim dim) { return context_.substitute(dim, values_); }
  Dim minus_one(Dim dim) { return context_.subtract(dim, context_.dim(1)); }
  // A question that was asked with these facts before is free: an expression of thousands of terms asks few.
  bool holds(Dim at_least_0) {
    const auto known = answers_.find({facts_, at_least_0});
    if (known != answers_.end()) return known->second;
    const bool answer = ++questions_ < kMaxQuestions && prover_.implied(facts_, at_least_0);
    return answers_.emplace(std::pair{facts_, at_least_0}, answer).first->second;
  }
  void assume_inside(Dim index, Dim extent) {
    for (const Table& table : function_.tables) {  // the row ends before the last one does
      if (table.kind != Table::Kind::kOffsets || table.count != extent || index.constant()) continue;
      const Dim end =
          context_.add(context_.apply(table.name, {index}), context_.substitute(table.width, {{table.var, index}}));
      facts_.push_back(context_.subtract(context_.apply(table.name, {extent}), end));
    }
    facts_.push_back(minus_one(context_.subtract(extent, index)));
    facts_.push_back(index);
  }
  // A unique variable: no name in a text contains a space.
  Symbol fresh() { return context_.symbol(fmt::format("at {}", next_variable_++)); }

  // Adds the facts of a condition that holds (`yes`) or does not hold.
  void assume(const Expr& condition, bool yes) {
    const auto* form = std::get_if<Binary>(&condition->form);
    if (const auto* negated = std::get_if<Unary>(&condition->form); negated && negated->op == UnaryOp::kNot)
      return assume(negated->value, !yes);
    if (!form) return;
    if (form->op == (yes ? BinaryOp::kAnd : BinaryOp::kOr)) {
      assume(form->left, yes), assume(form->right, yes);
      return;
    }
    const auto left = index_of(form->left), right = index_of(form->right);
    if (!left || !right) return;
    const Dim up = context_.subtract(*right, *left), down = context_.subtract(*left, *right);
    if (form->op == BinaryOp::kLess) facts_.push_back(yes ? minus_one(up) : down);
    if (form->op == BinaryOp::kLessEqual) facts_.push_back(yes ? up : minus_one(down));
    if (form->op == BinaryOp::kEqual && yes) facts_.push_back(up), facts_.push_back(down);
  }
  // The value as a dim, if it is an index or a constant.
  std::optional<Dim> index_of(const Expr& expr) {
    if (const auto* index = std::get_if<IndexValue>(&expr->form)) return current(index->value);
    const auto* literal = std::get_if<Literal>(&expr->form);
    if (literal && expr->dtype == DType::kI64) return context_.dim(literal->integer);
    return std::nullopt;
  }
  // Runs `inside` under the condition, or its negation; facts and writes from there do not hold afterwards.
  void where(const Expr& condition, bool yes, auto&& inside) {
    const size_t outer_facts = facts_.size();
    const auto outer_writes = writes_;
    assume(condition, yes);
    inside();
    facts_.resize(outer_facts);
    writes_ = outer_writes;
  }

  // --- Sizes and elements ---

  void dim(Dim dim) {
    for (const DimTerm& term : dim.node->terms) {
      for (const DimAtom* factor : term.factors) {
        for (Dim arg : factor->args) this->dim(arg);
        if (factor->kind == DimAtom::Kind::kFloorDivide) unproven_.data |= !holds(minus_one(current(factor->args[1])));
        if (factor->kind != DimAtom::Kind::kApply) continue;
        unproven_.data = true;  // an element that is a size may have any value
        if (const Table* table = function_.table(factor->name)) {
          inside(*table, factor->args[0]);
          continue;
        }
        const auto param = std::ranges::find_if(function_.params,
                                                [&](BufferId id) { return function_.buffer(id).name == factor->name; });
        Dims element;
        for (Dim arg : factor->args) element.push_back(current(arg));
        const Dims sizes = extents(*param, element);
        in_size_ = true;
        for (size_t axis = 0; axis < element.size(); ++axis)
          inside(*param, factor->args, axis, element[axis], sizes[axis]);
        in_size_ = false;
      }
    }
  }
  // The number of elements of the table's rows.
  Dim total(const Table& table) {
    for (const Table& other : function_.tables)
      if (other.kind == Table::Kind::kOffsets && describe_equal_rows(context_, other, table))
        return context_.apply(other.name, {current(table.count)});
    return context_.invalid();  // not known
  }
  void inside(const Table& table, Dim shown) {
    const Dim index = current(shown), count = current(table.count);
    const bool is_order = table.kind == Table::Kind::kDescending || table.kind == Table::Kind::kPositions;
    const Dim size = is_order                              ? count
                     : table.kind == Table::Kind::kCounts  ? current(table.limit)
                     : table.kind == Table::Kind::kOffsets ? context_.add(count, context_.dim(1))
                                                           : total(table);
    if (holds(index) && holds(minus_one(context_.subtract(size, index)))) return;
    in_size_ = true;
    unproven(fmt::format("it is not proved that {}({}) is inside of the table", context_.name(table.name),
                         context_.str(shown)),
             "");
    in_size_ = false;
  }
  void inside(BufferId id, const Dims& shown, size_t axis, Dim index, Dim extent) {
    if (sizes_only_ && !in_size_) return;
    if (holds(index) && holds(minus_one(context_.subtract(extent, index)))) return;
    unproven(fmt::format("it is not proved that {}{} is inside: its axis {} has {} elements", local(id),
                         bracketed(shown), axis, context_.str(function_.buffer(id).axes[axis].extent)),
             "add a condition: select(index(i) < index(n), %x[i], f32(0)); or use a checked index: (let p in (n) = "
             "i64(%at[i]); %x[p])");
  }
  std::string bracketed(const Dims& dims) const {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + context_.str(dims[i]);
    return text + "]";
  }
  // The extents of a buffer at these indices; an extent of a ragged buffer depends on preceding indices.
  Dims extents(BufferId id, const Dims& element) {
    std::map<Symbol, Dim> values = declared_in_[id];
    Dims sizes;
    for (size_t axis = 0; axis < element.size(); ++axis) {
      const BufferAxis& declared = function_.buffer(id).axes[axis];
      sizes.push_back(context_.substitute(declared.extent, values));
      if (declared.var != Symbol{}) values[declared.var] = element[axis];
    }
    return sizes;
  }
  void sizes_of(BufferId id) {
    declared_in_[id] = values_;
    const size_t outer_facts = facts_.size();
    const std::map<Symbol, Dim> values = values_;
    for (const BufferAxis& axis : function_.buffer(id).axes) {
      dim(axis.extent);
      unproven_.data |= !holds(current(axis.extent));
      if (axis.var == Symbol{}) continue;
      const Dim index = context_.dim(fresh());
      assume_inside(index, current(axis.extent));
      values_[axis.var] = index;
    }
    values_ = values;
    facts_.resize(outer_facts);
  }
  // Indices that represent an arbitrary element; their bounds are added to the facts.
  Dims any_element(BufferId id) {
    Dims element;
    for (size_t axis = 0; axis < function_.buffer(id).rank(); ++axis) element.push_back(context_.dim(fresh()));
    const Dims sizes = extents(id, element);
    for (size_t axis = 0; axis < element.size(); ++axis) assume_inside(element[axis], sizes[axis]);
    return element;
  }

  bool is_written(BufferId id, const Dims& element) {
    if (sizes_only_ || std::ranges::find(function_.params, id) != function_.params.end()) return true;
    std::vector<Dims> alternatives;
    const auto add = [&](const ElementWrite& write, size_t shared) {
      if (auto conditions = write_conditions(context_, function_.tables, write, shared, element))
        alternatives.push_back(std::move(*conditions));
    };
    for (const ElementWrite& write : writes_[id]) {
      const auto differ = std::ranges::mismatch(write.loops, loops_, {}, &EnclosingLoop::var, &EnclosingLoop::var);
      add(write, static_cast<size_t>(differ.in1 - write.loops.begin()));
    }
    for (const auto& [write, shared] : earlier_) add(write, shared);
    if (alternatives.size() > kMaxWrites || (questions_ += 100) > kMaxQuestions) return false;
    return any_alternative_holds(context_, prover_, facts_, std::move(alternatives));
  }
  // Checks an access to an element, or to each element of a block.
  void access(const Access& access) {
    for (Dim index : access.indices) dim(index);
    const size_t outer_facts = facts_.size(), outer_loops = loops_.size();
    Dims element;
    for (size_t axis = 0; axis < access.indices.size(); ++axis) {
      Dim index = current(access.indices[axis]);
      if (access.size(axis) > 1) {
        const Symbol within = fresh();
        loops_.push_back({within, context_.dim(access.size(axis))});
        assume_inside(context_.dim(within), context_.dim(access.size(axis)));
        index = context_.add(index, context_.dim(within));
      }
      element.push_back(index);
    }
    const Dims sizes = extents(access.buffer, element);
    for (size_t axis = 0; axis < element.size(); ++axis)
      inside(access.buffer, access.indices, axis, element[axis], sizes[axis]);
    if (access.writes) {
      writes_[access.buffer].push_back({element, loops_, guards_});
    } else {
      earlier_.clear();
      if (stage_) find_earlier(access);
      if (!is_written(access.buffer, element))
        unproven(fmt::format("it is not proved that {}{} is written before it is read", local(access.buffer),
                             bracketed(access.indices)),
                 "write the whole buffer in an earlier stage, or the start value of a reduction in `init`");
    }
    earlier_.clear();
    facts_.resize(outer_facts);
    loops_.resize(outer_loops);
  }
  // Collects the writes of earlier points of a scan.
  void find_earlier(const Access& read) {
    for (const Access& write : stage_writes_) {
      if (write.buffer != read.buffer || !reads_earlier(*stage_, write, read)) continue;
      const auto loop = loop_of_scan(write, read);
      if (!loop) continue;
      Dims element;
      for (Dim index : write.indices) element.push_back(current(index));
      earlier_.emplace_back(ElementWrite{element, loops_, guards_}, *loop);
    }
  }
  // The index in loops_ of the loop whose earlier iterations have written the element that is read.
  std::optional<size_t> loop_of_scan(const Access& write, const Access& read) {
    for (const Axis& axis : stage_->axes) {
      const auto to = offset_index(write.indices, axis.var), from = offset_index(read.indices, axis.var);
      if (axis.kind != AxisKind::kScan || !to) continue;
      if (!from || from->position != to->position || from->offset > to->offset) return std::nullopt;
      if (from->offset == to->offset) continue;  // decided by the next axis
      for (size_t i = 0; i < loops_.size(); ++i)
        if (values_.at(axis.var) == context_.dim(loops_[i].var)) return i;
      return std::nullopt;
    }
    return std::nullopt;
  }

  // --- Expressions ---

  void expression(const Expr& expr) {
    std::visit([&](const auto& form) { this->form(*expr, form); }, expr->form);
  }
  void form(const ExprNode&, const Literal&) {}
  void form(const ExprNode&, const IndexValue& form) { dim(form.value); }
  void form(const ExprNode&, const Load& form) { access({form.buffer, false, form.indices, {}}); }
  void form(const ExprNode&, const Unary& form) { expression(form.value); }
  void form(const ExprNode& node, const Binary& form) {
    expression(form.left);
    if (form.op == BinaryOp::kAnd || form.op == BinaryOp::kOr)
      return where(form.left, form.op == BinaryOp::kAnd, [&] { expression(form.right); });
    expression(form.right);
    const bool integer = !is_float(node.dtype) && node.dtype != DType::kBool;
    const auto* divisor = std::get_if<Literal>(&form.right->form);
    const bool divides = form.op == BinaryOp::kDivide || form.op == BinaryOp::kRemainder;
    unproven_.data |= integer && divides && (!divisor || divisor->integer == 0);
  }
  void form(const ExprNode&, const Select& form) {
    expression(form.condition);
    where(form.condition, true, [&] { expression(form.then); });
    where(form.condition, false, [&] { expression(form.otherwise); });
  }
  void form(const ExprNode& node, const Convert& form) {
    expression(form.value);
    unproven_.data |= is_float(form.value->dtype) && !is_float(node.dtype);
  }
  void form(const ExprNode&, const LetIndex& form) {
    bound(form.var, form.extent, form.value, [&] { expression(form.body); });
  }
  void bound(Symbol var, Dim extent, const Expr& value, auto&& inside) {
    dim(extent);
    expression(value);
    const size_t outer_facts = facts_.size();
    const Dim size = current(extent);
    const auto index = index_of(value);
    if (index && holds(*index) && holds(minus_one(context_.subtract(size, *index)))) {
      const auto hidden = std::exchange(values_[var], *index);
      inside();
      values_[var] = hidden;
    } else {
      unproven_.data = true;
      const Symbol variable = fresh();
      const auto hidden = std::exchange(values_[var], context_.dim(variable));
      loops_.push_back({variable, size, true});
      assume_inside(context_.dim(variable), size);
      inside();
      loops_.pop_back();
      values_[var] = hidden;
    }
    if (values_[var].node == nullptr) values_.erase(var);
    facts_.resize(outer_facts);
  }

  // --- Statements ---

  void statements(const Body& body) {
    for (const Stmt& stmt : body) std::visit([&](const auto& form) { statement(form); }, stmt.form);
  }
  void statement(const For& loop) {
    dim(loop.extent);
    const Symbol variable = fresh();
    const size_t outer_facts = facts_.size();
    const Dim extent = current(loop.extent);
    loops_.push_back({variable, extent});
    assume_inside(context_.dim(variable), extent);
    values_[loop.var] = context_.dim(variable);
    statements(loop.body);
    values_.erase(loop.var);
    facts_.resize(outer_facts);
    loops_.pop_back();
  }
  void statement(const Let& let) {
    bound(let.var, let.extent, let.value, [&] { statements(let.body); });
  }
  void statement(const If& branch) {
    expression(branch.condition);
    where(branch.condition, true, [&] { statements(branch.then); });
    where(branch.condition, false, [&] { statements(branch.otherwise); });
  }
  void statement(const Alloc& alloc) {
    sizes_of(alloc.buffer);
    statements(alloc.body);
    writes_.erase(alloc.buffer);
  }
  void statement(const Barrier&) {}
  void statement(const Commit&) {}
  void statement(const Wait&) {}
  void statement(const CallLibrary& call) {
    unproven_.library = true;
    for (BufferId input : call.inputs) {
      const size_t outer_facts = facts_.size();
      if (!is_written(input, any_element(input)))
        unproven(fmt::format("it is not proved that {} is written completely before it is passed", local(input)), "");
      facts_.resize(outer_facts);
    }
    for (BufferId output : call.outputs) {
      ElementWrite whole{{}, loops_, {}};
      for (size_t axis = 0; axis < function_.buffer(output).rank(); ++axis)
        whole.indices.push_back(context_.dim(fresh()));
      const Dims sizes = extents(output, whole.indices);
      for (size_t axis = 0; axis < sizes.size(); ++axis)
        whole.loops.push_back({*whole.indices[axis].variable(), sizes[axis]});
      writes_[output].push_back(std::move(whole));
    }
  }
  void statement(const Store& store) {
    expression(store.value);
    access({store.buffer, true, store.indices, {}});
  }
  void statement(const Intrinsic& call) {
    unproven_.data = true;  // the declaration is not examined
    for_each_direct_access(Stmt{call}, [&](const Access& operand) {
      const bool output =
          std::ranges::any_of(call.outputs, [&](const Operand& o) { return o.buffer == operand.buffer; });
      if (operand.writes || !output) return access(operand);
      // An instruction may, but need not, read its outputs: they are only checked to be inside their buffers.
      const auto outer_writes = writes_;
      Access bounds_only = operand;
      bounds_only.writes = true;
      access(bounds_only);
      writes_ = outer_writes;
    });
  }
  void statement(const Stage& stage) {
    stage_ = &stage;
    stage_writes_.clear();
    for_each_access(stage, [&](const Access& access) {
      if (access.writes) stage_writes_.push_back(access);
    });
    const size_t outer_facts = facts_.size();
    for (const Guard& guard : stage.where) {
      dim(guard.left), dim(guard.right);
      facts_.push_back(minus_one(context_.subtract(current(guard.right), current(guard.left))));
      guards_.emplace_back(current(guard.left), current(guard.right));
    }
    std::map<Symbol, Dim> axes;
    for (const Axis& axis : stage.axes) {
      dim(axis.value);
      axes[axis.var] = current(axis.value);
    }
    const std::map<Symbol, Dim> loops = std::exchange(values_, std::move(axes));
    for (const Axis& axis : stage.axes) {
      dim(axis.extent);
      const Dim value = values_.at(axis.var), extent = current(axis.extent);
      if (!sizes_only_ && (!holds(value) || !holds(minus_one(context_.subtract(extent, value)))))
        unproven(
            fmt::format("it is not proved that the axis '{}' stays in 0 .. {} - 1", context_.name(axis.var),
                        context_.str(axis.extent)),
            fmt::format("add a guard: where ({}) below ({})", context_.str(axis.value), context_.str(axis.extent)));
      assume_inside(value, extent);
    }
    if (!stage.init.empty()) {
      if (!sizes_only_ && !begins(stage))
        unproven("it is not proved that the reduction begins where all of its axes are 0", "");
      statements(stage.init);
    }
    statements(stage.body);
    values_ = loops;
    guards_.clear();
    facts_.resize(outer_facts);
    stage_ = nullptr;
  }
  // Whether `init` runs before all other points of its reduction: its axes begin at 0 and their values come from loops
  // that feed no other axis.
  bool begins(const Stage& stage) {
    std::set<Symbol> reduction, others;
    for (const Axis& axis : stage.axes) {
      for_each_variable(values_.at(axis.var),
                        [&](Symbol var) { (axis.kind == AxisKind::kReduce ? reduction : others).insert(var); });
    }
    std::map<Symbol, Dim> first;
    for (Symbol var : reduction) {
      if (others.contains(var)) return false;
      if (std::ranges::find(loops_, var, &EnclosingLoop::var) != loops_.end()) first[var] = context_.dim(0);
    }
    for (const Axis& axis : stage.axes) {
      if (axis.kind == AxisKind::kReduce && context_.substitute(values_.at(axis.var), first).constant() != 0)
        return false;
    }
    return std::ranges::all_of(guards_, [&](const auto& guard) {
      const auto& [left, right] = guard;
      bool reduces = false;
      for (Dim side : {left, right}) for_each_variable(side, [&](Symbol var) { reduces |= reduction.contains(var); });
      return !reduces || std::ranges::any_of(stage.axes, [&](const Axis& axis) {
        return axis.kind == AxisKind::kReduce && left == values_.at(axis.var) && right == current(axis.extent);
      });
    });
  }

  TypeContext& context_;
  const DimProver prover_;
  const Function& function_;
  const bool sizes_only_;
  bool in_size_ = false;  // the element that is asked about is a size
  UnprovenObligations unproven_;
  const Stage* stage_ = nullptr;
  std::vector<Access> stage_writes_;  // the writes of stage_
  uint32_t next_variable_ = 0;
  size_t questions_ = 0;
  std::map<std::pair<Dims, Dim>, bool> answers_;
  Dims facts_;                                             // each >= 0
  std::map<Symbol, Dim> values_;                           // of the variables in scope, over those in loops_
  std::vector<EnclosingLoop> loops_;                       // and computed indices
  std::vector<std::pair<Dim, Dim>> guards_;                // guards of the stage
  std::map<BufferId, std::map<Symbol, Dim>> declared_in_;  // the variables in scope of a buffer's declaration
  std::map<BufferId, std::vector<ElementWrite>> writes_;   // so far
  std::vector<std::pair<ElementWrite, size_t>> earlier_;   // by earlier points of a scan, and the scan's loop
};

}  // namespace

UnprovenObligations unproven_obligations(TypeContext& context, const Function& function) {
  return SafetyProver(context, function, false).run();
}

Status sizes_are_inside(TypeContext& context, const Function& function) {
  bool has_tables = false;  // of sizes
  for (const Buffer& buffer : function.buffers) has_tables |= packed_axes(buffer) > 0;
  if (!has_tables) return {};
  UnprovenObligations unproven = SafetyProver(context, function, true).run();
  if (!unproven.program) return {};
  return std::unexpected(std::move(*unproven.program));
}

}  // namespace tenon::compiler::loop
