// Walks through the function once, with what is known of the variables at each place: loops, guards and conditions.
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

namespace tenon::compiler::loop {
namespace {

// What asks for more is not proved.
constexpr size_t kMaxQuestions = 20'000, kMaxWrites = 12;

class Walk {
 public:
  Walk(TypeContext& context, const Function& function)
      : context_(context), prover_(context, function.bounds), function_(function) {}

  Doubts run() {
    for (BufferId param : function_.params) sizes_of(param);
    for (BufferId result : function_.results) sizes_of(result);
    statements(function_.body);
    for (BufferId result : function_.results) {
      const size_t known = facts_.size();
      if (!is_written(result, any_element(result)))
        doubt(fmt::format("it is not proved that every element of {} is written", local(result)),
              "a stage whose axes are the indices of what it writes, over whole sizes, writes every element");
      facts_.resize(known);
    }
    return std::move(doubts_);
  }

 private:
  std::string local(BufferId id) const { return fmt::format("%{}", context_.name(function_.buffer(id).name)); }
  void doubt(std::string what, std::string help) {
    if (doubts_.program) return;
    std::string place = fmt::format("@{}", context_.name(function_.name));
    if (stage_) place += fmt::format(", stage '{}'", context_.name(stage_->name));
    doubts_.program = Diagnostic{std::move(what), std::move(place), std::move(help)};
  }

  // --- What is known ---

  // A dim of the text, over variables that are different everywhere.
  Dim now(Dim dim) { return context_.substitute(dim, values_); }
  Dim minus_one(Dim dim) { return context_.subtract(dim, context_.dim(1)); }
  bool holds(Dim at_least_0) { return ++questions_ < kMaxQuestions && prover_.implied(facts_, at_least_0); }
  void assume_inside(Dim index, Dim extent) {
    facts_.push_back(minus_one(context_.subtract(extent, index)));
    facts_.push_back(index);
  }
  Symbol fresh() { return context_.symbol(fmt::format("at {}", number_++)); }  // no name in a text has a space

  // The condition, or that it does not hold.
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
  // The value as a dim, where it is an index or a number.
  std::optional<Dim> index_of(const Expr& expr) {
    if (const auto* index = std::get_if<IndexValue>(&expr->form)) return now(index->value);
    const auto* number = std::get_if<Literal>(&expr->form);
    if (number && expr->dtype == DType::kI64) return context_.dim(number->integer);
    return std::nullopt;
  }
  // Runs `inside` where the condition is as said; what it writes counts there alone.
  void where(const Expr& condition, bool yes, auto&& inside) {
    const size_t known = facts_.size();
    const auto written = written_;
    assume(condition, yes);
    inside();
    facts_.resize(known);
    written_ = written;
  }

  // --- Sizes and elements ---

  void dim(Dim dim) {
    for (const DimTerm& term : dim.node->terms) {
      for (const DimAtom* factor : term.factors) {
        for (Dim arg : factor->args) this->dim(arg);
        if (factor->kind == DimAtom::Kind::kFloorDivide) doubts_.data |= !holds(minus_one(now(factor->args[1])));
        if (factor->kind != DimAtom::Kind::kApply) continue;
        doubts_.data = true;  // lengths may be anything
        const auto param = std::ranges::find_if(function_.params,
                                                [&](BufferId id) { return function_.buffer(id).name == factor->name; });
        Dims at;
        for (Dim arg : factor->args) at.push_back(now(arg));
        const Dims sizes = extents(*param, at);
        for (size_t axis = 0; axis < at.size(); ++axis) inside(*param, factor->args, axis, at[axis], sizes[axis]);
      }
    }
  }
  void inside(BufferId id, const Dims& shown, size_t axis, Dim index, Dim extent) {
    if (holds(index) && holds(minus_one(context_.subtract(extent, index)))) return;
    doubt(fmt::format("it is not proved that {}{} is inside: its axis {} has {} elements", local(id), bracketed(shown),
                      axis, context_.str(function_.buffer(id).axes[axis].extent)),
          "ask before: select(index(i) < index(n), %x[i], f32(0)); or take an index that is checked: (let p in (n) = "
          "i64(%at[i]); %x[p])");
  }
  std::string bracketed(const Dims& dims) const {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + context_.str(dims[i]);
    return text + "]";
  }
  // The extents of a buffer at these indices: those of a ragged one depend on the indices before.
  Dims extents(BufferId id, const Dims& at) {
    std::map<Symbol, Dim> values = made_in_[id];
    Dims all;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const BufferAxis& one = function_.buffer(id).axes[axis];
      all.push_back(context_.substitute(one.extent, values));
      if (one.var != Symbol{}) values[one.var] = at[axis];
    }
    return all;
  }
  void sizes_of(BufferId id) {
    made_in_[id] = values_;
    const size_t known = facts_.size();
    const std::map<Symbol, Dim> values = values_;
    for (const BufferAxis& axis : function_.buffer(id).axes) {
      dim(axis.extent);
      doubts_.data |= !holds(now(axis.extent));
      if (axis.var == Symbol{}) continue;
      const Dim index = context_.dim(fresh());
      assume_inside(index, now(axis.extent));
      values_[axis.var] = index;
    }
    values_ = values;
    facts_.resize(known);
  }
  // Indices that stand for every element; what is known of them is added to the facts.
  Dims any_element(BufferId id) {
    Dims at;
    for (size_t axis = 0; axis < function_.buffer(id).rank(); ++axis) at.push_back(context_.dim(fresh()));
    const Dims sizes = extents(id, at);
    for (size_t axis = 0; axis < at.size(); ++axis) assume_inside(at[axis], sizes[axis]);
    return at;
  }

  bool is_written(BufferId id, const Dims& at) {
    if (std::ranges::find(function_.params, id) != function_.params.end()) return true;
    std::vector<Dims> alternatives;
    const auto add = [&](const Written& write, size_t shared) {
      if (auto conditions = wrote(context_, write, shared, at)) alternatives.push_back(std::move(*conditions));
    };
    for (const Written& write : written_[id]) {
      const auto differ = std::ranges::mismatch(write.around, around_, {}, &Around::var, &Around::var);
      add(write, static_cast<size_t>(differ.in1 - write.around.begin()));
    }
    for (const auto& [write, shared] : earlier_) add(write, shared);
    if (alternatives.size() > kMaxWrites || (questions_ += 100) > kMaxQuestions) return false;
    return one_holds(context_, prover_, facts_, std::move(alternatives));
  }
  // An element, or each of a block.
  void access(const Access& access) {
    for (Dim index : access.indices) dim(index);
    const size_t known = facts_.size(), loops = around_.size();
    Dims at;
    for (size_t axis = 0; axis < access.indices.size(); ++axis) {
      Dim index = now(access.indices[axis]);
      if (access.size(axis) > 1) {
        const Symbol within = fresh();
        around_.push_back({within, context_.dim(access.size(axis))});
        assume_inside(context_.dim(within), context_.dim(access.size(axis)));
        index = context_.add(index, context_.dim(within));
      }
      at.push_back(index);
    }
    const Dims sizes = extents(access.buffer, at);
    for (size_t axis = 0; axis < at.size(); ++axis) inside(access.buffer, access.indices, axis, at[axis], sizes[axis]);
    if (access.writes) {
      written_[access.buffer].push_back({at, around_, where_});
    } else {
      earlier_.clear();
      if (stage_) find_earlier(access);
      if (!is_written(access.buffer, at))
        doubt(fmt::format("it is not proved that {}{} is written before it is read", local(access.buffer),
                          bracketed(access.indices)),
              "write the whole buffer in a stage before, or what a reduction begins with in `init`");
    }
    earlier_.clear();
    facts_.resize(known);
    around_.resize(loops);
  }
  // What earlier points of a scan have written.
  void find_earlier(const Access& read) {
    for_each_access(*stage_, [&](const Access& write) {
      if (!write.writes || write.buffer != read.buffer || !reads_earlier(*stage_, write, read)) return;
      const auto loop = loop_of_scan(write, read);
      if (!loop) return;
      Dims at;
      for (Dim index : write.indices) at.push_back(now(index));
      earlier_.emplace_back(Written{at, around_, where_}, *loop);
    });
  }
  // The place in around_ of the loop whose earlier iterations have written what is read.
  std::optional<size_t> loop_of_scan(const Access& write, const Access& read) {
    for (const Axis& axis : stage_->axes) {
      const auto to = own_index(write.indices, axis.var), from = own_index(read.indices, axis.var);
      if (axis.kind != AxisKind::kScan || !to) continue;
      if (!from || from->at != to->at || from->offset > to->offset) return std::nullopt;
      if (from->offset == to->offset) continue;  // the next axis decides
      for (size_t i = 0; i < around_.size(); ++i)
        if (values_.at(axis.var) == context_.dim(around_[i].var)) return i;
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
    doubts_.data |= integer && divides && (!divisor || divisor->integer == 0);
  }
  void form(const ExprNode&, const Select& form) {
    expression(form.condition);
    where(form.condition, true, [&] { expression(form.then); });
    where(form.condition, false, [&] { expression(form.otherwise); });
  }
  void form(const ExprNode& node, const Convert& form) {
    expression(form.value);
    doubts_.data |= is_float(form.value->dtype) && !is_float(node.dtype);
  }
  void form(const ExprNode&, const LetIndex& form) {
    bound(form.var, form.extent, form.value, [&] { expression(form.body); });
  }
  void bound(Symbol var, Dim extent, const Expr& value, auto&& inside) {
    dim(extent);
    expression(value);
    const size_t known = facts_.size();
    const Dim size = now(extent);
    const auto index = index_of(value);
    if (index && holds(*index) && holds(minus_one(context_.subtract(size, *index)))) {
      const auto hidden = std::exchange(values_[var], *index);
      inside();
      values_[var] = hidden;
    } else {
      doubts_.data = true;
      const Symbol own = fresh();
      const auto hidden = std::exchange(values_[var], context_.dim(own));
      around_.push_back({own, size, true});
      assume_inside(context_.dim(own), size);
      inside();
      around_.pop_back();
      values_[var] = hidden;
    }
    if (values_[var].node == nullptr) values_.erase(var);
    facts_.resize(known);
  }

  // --- Statements ---

  void statements(const Body& body) {
    for (const Stmt& stmt : body) std::visit([&](const auto& form) { statement(form); }, stmt.form);
  }
  void statement(const For& loop) {
    dim(loop.extent);
    const Symbol own = fresh();
    const size_t known = facts_.size();
    const Dim extent = now(loop.extent);
    around_.push_back({own, extent});
    assume_inside(context_.dim(own), extent);
    values_[loop.var] = context_.dim(own);
    statements(loop.body);
    values_.erase(loop.var);
    facts_.resize(known);
    around_.pop_back();
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
    written_.erase(alloc.buffer);
  }
  void statement(const CallLibrary& call) {
    doubts_.library = true;
    for (BufferId input : call.inputs) {
      const size_t known = facts_.size();
      if (!is_written(input, any_element(input)))
        doubt(fmt::format("it is not proved that {} is written whole before it is passed", local(input)), "");
      facts_.resize(known);
    }
    for (BufferId output : call.outputs) {
      Written all{{}, around_, {}};
      for (size_t axis = 0; axis < function_.buffer(output).rank(); ++axis) all.at.push_back(context_.dim(fresh()));
      const Dims sizes = extents(output, all.at);
      for (size_t axis = 0; axis < sizes.size(); ++axis) all.around.push_back({*all.at[axis].variable(), sizes[axis]});
      written_[output].push_back(std::move(all));
    }
  }
  void statement(const Store& store) {
    expression(store.value);
    access({store.buffer, true, store.indices, {}});
  }
  void statement(const Intrinsic& call) {
    doubts_.data = true;  // its declaration is not looked into
    for_each_own_access(Stmt{call}, [&](const Access& one) {
      const bool output = std::ranges::any_of(call.outputs, [&](const Operand& o) { return o.buffer == one.buffer; });
      if (one.writes || !output) return access(one);
      // It may read what it writes, and need not: only whether it is inside is asked.
      const auto written = written_;
      Access also = one;
      also.writes = true;
      access(also);
      written_ = written;
    });
  }
  void statement(const Stage& stage) {
    stage_ = &stage;
    const size_t known = facts_.size();
    for (const Guard& guard : stage.where) {
      dim(guard.left), dim(guard.right);
      facts_.push_back(minus_one(context_.subtract(now(guard.right), now(guard.left))));
      where_.emplace_back(now(guard.left), now(guard.right));
    }
    std::map<Symbol, Dim> axes;
    for (const Axis& axis : stage.axes) {
      dim(axis.value);
      axes[axis.var] = now(axis.value);
    }
    const std::map<Symbol, Dim> loops = std::exchange(values_, std::move(axes));
    for (const Axis& axis : stage.axes) {
      dim(axis.extent);
      const Dim value = values_.at(axis.var), extent = now(axis.extent);
      if (!holds(value) || !holds(minus_one(context_.subtract(extent, value))))
        doubt(fmt::format("it is not proved that the axis '{}' stays in 0 .. {} - 1", context_.name(axis.var),
                          context_.str(axis.extent)),
              fmt::format("add a guard: where ({}) below ({})", context_.str(axis.value), context_.str(axis.extent)));
      assume_inside(value, extent);
    }
    if (!stage.init.empty()) {
      if (!begins(stage)) doubt("it is not proved that the reduction begins where all of its axes are 0", "");
      statements(stage.init);
    }
    statements(stage.body);
    values_ = loops;
    where_.clear();
    facts_.resize(known);
    stage_ = nullptr;
  }
  // Whether `init` runs before all other points of its reduction: its axes begin at 0 and are told by loops of their
  // own.
  bool begins(const Stage& stage) {
    std::set<Symbol> own, others;
    for (const Axis& axis : stage.axes) {
      for_each_variable(values_.at(axis.var),
                        [&](Symbol var) { (axis.kind == AxisKind::kReduce ? own : others).insert(var); });
    }
    std::map<Symbol, Dim> first;
    for (Symbol var : own) {
      if (others.contains(var)) return false;
      if (std::ranges::find(around_, var, &Around::var) != around_.end()) first[var] = context_.dim(0);
    }
    for (const Axis& axis : stage.axes) {
      if (axis.kind == AxisKind::kReduce && context_.substitute(values_.at(axis.var), first).constant() != 0)
        return false;
    }
    return std::ranges::all_of(where_, [&](const auto& guard) {
      const auto& [left, right] = guard;
      bool reduces = false;
      for (Dim side : {left, right}) for_each_variable(side, [&](Symbol var) { reduces |= own.contains(var); });
      return !reduces || std::ranges::any_of(stage.axes, [&](const Axis& axis) {
        return axis.kind == AxisKind::kReduce && left == values_.at(axis.var) && right == now(axis.extent);
      });
    });
  }

  TypeContext& context_;
  const DimProver prover_;
  const Function& function_;
  Doubts doubts_;
  const Stage* stage_ = nullptr;
  uint32_t number_ = 0;
  size_t questions_ = 0;
  Dims facts_;                                         // each >= 0
  std::map<Symbol, Dim> values_;                       // of the variables in sight, over those in around_
  std::vector<Around> around_;                         // loops, and indices that were computed
  std::vector<std::pair<Dim, Dim>> where_;             // guards of the stage
  std::map<BufferId, std::map<Symbol, Dim>> made_in_;  // the variables in sight where a buffer was made
  std::map<BufferId, std::vector<Written>> written_;   // up to here
  std::vector<std::pair<Written, size_t>> earlier_;    // by earlier points of a scan, in these loops of the point
};

}  // namespace

Doubts doubts(TypeContext& context, const Function& function) { return Walk(context, function).run(); }

}  // namespace tenon::compiler::loop
