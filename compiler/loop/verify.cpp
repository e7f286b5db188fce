#include "compiler/loop/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

class Verifier {
 public:
  Verifier(const TypeContext& context, const Function& function) : context_(context), function_(function) {}

  // The stage that is being checked, if any.
  Symbol stage() const { return stage_ ? stage_->name : Symbol{}; }

  Status run() {
    if (function_.inexact > 0) TENON_TRY(sums_of_floats());
    scope_ = function_.dims;
    std::set<Symbol> names;
    for (const Buffer& buffer : function_.buffers) {
      if (!names.insert(buffer.name).second)
        return fail(fmt::format("two buffers have the name %{}", name(buffer.name)));
    }
    for (BufferId param : function_.params) {
      TENON_TRY(declare(param));
      functions_.insert(function_.buffer(param).name);
      read_only_.insert(param);
    }
    for (BufferId result : function_.results) TENON_TRY(declare(result));
    for (const Function& intrinsic : function_.intrinsics) TENON_TRY(declaration(intrinsic));
    for (const Table& table : function_.tables) {
      if (!names.insert(table.name).second)
        return fail(fmt::format("the table '{}' has the name of a buffer or of another table", name(table.name)));
      TENON_TRY(dim(table.count));
      scope_.push_back(table.var);
      TENON_TRY(dim(table.width));
      scope_.pop_back();
      if (table.kind == Table::Kind::kCounts && !table.limit.node)
        return fail(fmt::format("the table '{}' has no limit", name(table.name)));
      if (table.limit.node) TENON_TRY(dim(table.limit));
    }
    for (const Table& table : function_.tables) tables_.insert(table.name);
    return statements(function_.body);
  }

 private:
  std::string_view name(Symbol symbol) const { return context_.name(symbol); }
  std::string local(BufferId id) const { return fmt::format("%{}", name(function_.buffer(id).name)); }
  std::unexpected<Diagnostic> fail(std::string finding, std::string help = {}) const {
    const std::string where = stage_ ? fmt::format("@{}, stage '{}'", name(function_.name), name(stage_->name))
                                     : fmt::format("@{}", name(function_.name));
    return error(std::move(finding), where, std::move(help));
  }

  // --- Sizes and buffers ---

  Status dim(Dim dim) {
    if (!dim.valid()) return fail(fmt::format("'{}' is not a valid size", context_.str(dim)));
    for (const DimTerm& term : dim.node->terms) {
      for (const DimAtom* factor : term.factors) TENON_TRY(atom(*factor));
    }
    return {};
  }
  Status atom(const DimAtom& atom) {
    if (atom.kind == DimAtom::Kind::kVariable && std::ranges::find(scope_, atom.name) == scope_.end())
      return fail(fmt::format("'{}' is not in scope", name(atom.name)));
    if (atom.kind == DimAtom::Kind::kApply && tables_.contains(atom.name)) {
      if (atom.args.size() != 1)
        return fail(fmt::format("the table '{}' has one index, {} are given", name(atom.name), atom.args.size()));
    } else if (atom.kind == DimAtom::Kind::kApply) {
      const auto param =
          std::ranges::find_if(function_.params, [&](BufferId id) { return function_.buffer(id).name == atom.name; });
      if (!functions_.contains(atom.name) || function_.buffer(*param).rank() != atom.args.size() ||
          is_float(function_.buffer(*param).dtype))
        return fail(
            fmt::format("'{}' is not a parameter of {} axes with integer elements", name(atom.name), atom.args.size()));
    }
    for (Dim arg : atom.args) TENON_TRY(dim(arg));
    return {};
  }
  Status declare(BufferId id) {
    const size_t outer_variables = scope_.size();
    for (const BufferAxis& axis : function_.buffer(id).axes) {
      TENON_TRY(dim(axis.extent));
      if (axis.extent.constant().value_or(0) < 0)
        return fail(fmt::format("{} has an axis of negative size", local(id)));
      if (axis.var != Symbol{}) scope_.push_back(axis.var);
    }
    scope_.resize(outer_variables);
    declared_at_[id] = outer_variables;
    if (!in_scope_.insert(id).second) return fail(fmt::format("{} is declared twice", local(id)));
    return {};
  }
  // Elements of different indices are at different addresses: an axis is rotated by one that is not rotated itself.
  Status swizzled(BufferId id) const {
    const Buffer& buffer = function_.buffer(id);
    for (const Swizzle& swizzle : buffer.swizzles) {
      if (std::max(swizzle.axis, swizzle.by) >= buffer.rank() || swizzle.axis == swizzle.by || swizzle.divisor < 1)
        return fail(fmt::format("{} has a swizzle that is not of an axis by another one and a divisor", local(id)));
      if (std::ranges::count(buffer.swizzles, swizzle.axis, &Swizzle::axis) > 1 ||
          std::ranges::find(buffer.swizzles, swizzle.by, &Swizzle::axis) != buffer.swizzles.end())
        return fail(fmt::format("{} has a swizzle of the axis {} by {}, one of which another swizzle rotates",
                                local(id), swizzle.axis, swizzle.by));
      if (!buffer.axes[swizzle.axis].extent.constant())
        return fail(
            fmt::format("{} has a swizzle of the axis {}, whose size is not a constant", local(id), swizzle.axis));
    }
    return {};
  }
  // Whether an axis is constant during the buffer's live range: then its other points access other buffers.
  bool fixed(const Axis& axis, BufferId id) const {
    bool constant = true;
    for_each_variable(axis.value, [&](Symbol var) {
      const auto found = std::ranges::find(outside_, var);
      constant &= found != outside_.end() && static_cast<size_t>(found - outside_.begin()) < declared_at_.at(id);
    });
    return constant;
  }
  Status use(BufferId id) {
    if (index(id) >= function_.buffers.size()) return fail("a buffer does not belong to the function");
    if (!in_scope_.contains(id)) return fail(fmt::format("{} is not in scope", local(id)));
    return {};
  }
  Status element(BufferId id, const Dims& indices) {
    TENON_TRY(use(id));
    if (indices.size() != function_.buffer(id).rank())
      return fail(
          fmt::format("{} has {} axes, {} indices are given", local(id), function_.buffer(id).rank(), indices.size()));
    for (Dim index : indices) TENON_TRY(dim(index));
    return {};
  }

  // --- Instructions ---

  Status declaration(const Function& intrinsic) {
    const std::string shown = fmt::format("the instruction '{}'", name(intrinsic.name));
    if (function_.intrinsic(intrinsic.name) != &intrinsic) return fail(shown + " is declared twice");
    if (!intrinsic.intrinsics.empty()) return fail(shown + " declares others");
    for (const std::vector<BufferId>& list : {intrinsic.params, intrinsic.results}) {
      for (BufferId id : list) {
        for (const BufferAxis& axis : intrinsic.buffer(id).axes)
          if (axis.extent.constant().value_or(0) < 1)
            return fail(fmt::format("{} has an operand %{} whose sizes are not positive constants", shown,
                                    name(intrinsic.buffer(id).name)));
      }
    }
    return Verifier(context_, intrinsic).run();
  }
  // What is inexact adds products of floats to its results, and does nothing else: to no other has its bound a meaning.
  Status sums_of_floats() const {
    bool adds = function_.inexact < 1;
    for_each_statement(function_.body, [&](const Stmt& stmt) {
      const auto* store = std::get_if<Store>(&stmt.form);
      if (!store) {
        adds &= std::holds_alternative<For>(stmt.form) || std::holds_alternative<Stage>(stmt.form);
        return;
      }
      const auto* sum = std::get_if<Binary>(&store->value->form);
      const auto* before = sum && sum->op == BinaryOp::kAdd ? std::get_if<Load>(&sum->left->form) : nullptr;
      const auto* product = before ? std::get_if<Binary>(&sum->right->form) : nullptr;
      adds &= product && product->op == BinaryOp::kMultiply && is_float(store->value->dtype) &&
              before->buffer == store->buffer && before->indices == store->indices;
    });
    if (adds) return {};
    return fail(fmt::format("@{} is inexact, but not a sum of products of floats", name(function_.name)));
  }
  Status statement(const Intrinsic& call) {
    if (!stage_) return fail(fmt::format("the instruction '{}' is outside of every stage", name(call.name)));
    const Function* declared = function_.intrinsic(call.name);
    if (!declared) return fail(fmt::format("no instruction '{}' is declared", name(call.name)));
    if (call.inputs.size() != declared->params.size() || call.outputs.size() != declared->results.size())
      return fail(fmt::format("the instruction '{}' requires {} operands and {} results", name(call.name),
                              declared->params.size(), declared->results.size()));
    if (call.inexact != (declared->inexact > 0))
      return fail(fmt::format("the instruction '{}' is {}", name(call.name),
                              call.inexact ? "exact, but used as inexact" : "inexact, but not used as such"),
                  "both its declaration and each of its uses must say so");
    for (size_t i = 0; i < call.inputs.size(); ++i)
      TENON_TRY(operand(call.inputs[i], declared->buffer(declared->params[i])));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      TENON_TRY(operand(call.outputs[i], declared->buffer(declared->results[i])));
      if (read_only_.contains(call.outputs[i].buffer))
        return fail(fmt::format("the parameter {} is written", local(call.outputs[i].buffer)));
    }
    return {};
  }
  Status operand(const Operand& operand, const Buffer& declared) {
    Dims begins;
    std::vector<int64_t> sizes;
    for (const Part& part : operand.parts) {
      begins.push_back(part.begin);
      if (part.size > 0) sizes.push_back(part.size);
    }
    TENON_TRY(element(operand.buffer, begins));
    const bool fits = std::ranges::equal(
        sizes, declared.axes, [](int64_t size, const BufferAxis& axis) { return axis.extent.constant() == size; });
    if (!fits || function_.buffer(operand.buffer).dtype != declared.dtype)
      return fail(
          fmt::format("a block of {} does not fit the operand %{}", local(operand.buffer), name(declared.name)));
    return {};
  }

  // --- Expressions ---

  Status expression(const Expr& expr) {
    return std::visit([&](const auto& form) { return expression(*expr, form); }, expr->form);
  }
  Status expression(const ExprNode&, const Literal&) { return {}; }
  Status expression(const ExprNode&, const IndexValue& form) { return dim(form.value); }
  Status expression(const ExprNode& node, const Load& form) {
    TENON_TRY(element(form.buffer, form.indices));
    if (node.dtype != function_.buffer(form.buffer).dtype)
      return fail(fmt::format("a load of {} has another type", local(form.buffer)));
    return {};
  }
  Status expression(const ExprNode&, const Unary& form) { return expression(form.value); }
  Status expression(const ExprNode&, const Binary& form) {
    TENON_TRY(expression(form.left));
    return expression(form.right);
  }
  Status expression(const ExprNode&, const Select& form) {
    TENON_TRY(expression(form.condition));
    TENON_TRY(expression(form.then));
    return expression(form.otherwise);
  }
  Status expression(const ExprNode& node, const Convert& form) {
    if (!is_convertible(form.value->dtype, node.dtype))
      return fail(
          fmt::format("{} does not convert to {}", runtime::name(form.value->dtype), runtime::name(node.dtype)));
    return expression(form.value);
  }
  Status expression(const ExprNode&, const LetIndex& form) {
    TENON_TRY(dim(form.extent));
    TENON_TRY(expression(form.value));
    scope_.push_back(form.var);
    TENON_TRY(expression(form.body));
    scope_.pop_back();
    return {};
  }

  // --- Statements ---

  Status statements(const Body& body) {
    for (const Stmt& stmt : body) {
      if (++depth_ > 1000) return fail("statements are nested too deeply");
      TENON_TRY(std::visit([&](const auto& form) { return statement(form); }, stmt.form));
      --depth_;
    }
    return {};
  }
  Status with(Symbol var, const Body& body) {
    scope_.push_back(var);
    TENON_TRY(statements(body));
    scope_.pop_back();
    return {};
  }
  Status statement(const For& loop) {
    if (stage_) return fail("a loop is inside a stage", "put the loop around the stage, whose points it visits");
    TENON_TRY(dim(loop.extent));
    if (std::ranges::find(scope_, loop.var) != scope_.end())
      return fail(fmt::format("the loop '{}' hides another variable of this name", name(loop.var)));
    const For* const outer = divergent_;
    if (binds_thread(loop.kind) && !divergent_) divergent_ = &loop;
    TENON_TRY(with(loop.var, loop.body));
    divergent_ = outer;
    return {};
  }
  Status statement(const Let& let) {
    TENON_TRY(dim(let.extent));
    TENON_TRY(expression(let.value));
    ++num_conditions_;
    TENON_TRY(with(let.var, let.body));
    --num_conditions_;
    return {};
  }
  Status statement(const If& branch) {
    TENON_TRY(expression(branch.condition));
    ++num_conditions_;
    TENON_TRY(statements(branch.then));
    TENON_TRY(statements(branch.otherwise));
    --num_conditions_;
    return {};
  }
  Status statement(const Barrier&) { return of_block("barrier"); }
  Status statement(const Commit&) { return of_block("commit"); }
  Status statement(const Wait& wait) {
    if (wait.groups < 0) return fail("a wait is for a negative number of groups");
    return of_block("wait");
  }
  // A statement that all threads of a block execute.
  Status of_block(std::string_view kind) {
    const std::string_view help = "all threads of a block must execute it: put it between the loops over threads";
    if (divergent_)
      return fail(fmt::format("a {} is inside the loop '{}' over threads", kind, name(divergent_->var)),
                  std::string(help));
    if (stage_) return fail(fmt::format("a {} is inside a stage", kind), std::string(help));
    if (num_conditions_ > 0)
      return fail(fmt::format("a {} depends on data, by an 'if' or a 'let' around it", kind), std::string(help));
    return {};
  }
  Status statement(const Alloc& alloc) {
    if (stage_) return fail("a buffer is allocated inside a stage");
    TENON_TRY(declare(alloc.buffer));
    TENON_TRY(swizzled(alloc.buffer));
    if (alloc.scope == Scope::kShared) shared_.insert(alloc.buffer);
    else if (alloc.scope != Scope::kHeap) registers_.insert(alloc.buffer);
    TENON_TRY(statements(alloc.body));
    in_scope_.erase(alloc.buffer);
    return {};
  }
  Status statement(const CallLibrary& call) {
    if (stage_) return fail("a library is called inside a stage");
    for (BufferId input : call.inputs) TENON_TRY(use(input));
    for (BufferId output : call.outputs) {
      TENON_TRY(use(output));
      if (read_only_.contains(output)) return fail(fmt::format("the parameter {} is written", local(output)));
    }
    return {};
  }
  Status statement(const Store& store) {
    if (!stage_) return fail(fmt::format("{} is written outside of every stage", local(store.buffer)));
    TENON_TRY(element(store.buffer, store.indices));
    if (read_only_.contains(store.buffer)) return fail(fmt::format("the parameter {} is written", local(store.buffer)));
    if (store.value->dtype != function_.buffer(store.buffer).dtype)
      return fail(fmt::format("{} has elements of {}, the value is {}", local(store.buffer),
                              runtime::name(function_.buffer(store.buffer).dtype), runtime::name(store.value->dtype)));
    TENON_TRY(expression(store.value));
    return {};
  }
  Status statement(const Stage& stage) {
    if (stage_) return fail(fmt::format("the stage '{}' is inside another stage", name(stage.name)));
    if (!stages_.insert(stage.name).second) return fail(fmt::format("two stages have the name '{}'", name(stage.name)));
    stage_ = &stage;
    for (const Guard& guard : stage.where) {
      TENON_TRY(dim(guard.left));
      TENON_TRY(dim(guard.right));
    }
    for (const Axis& axis : stage.axes) TENON_TRY(dim(axis.value));
    outside_ = std::exchange(scope_, function_.dims);
    for (const Axis& axis : stage.axes) {
      TENON_TRY(dim(axis.extent));
      if (std::ranges::find(scope_, axis.var) != scope_.end())
        return fail(fmt::format("the axis '{}' hides another variable of this name", name(axis.var)));
      scope_.push_back(axis.var);
    }
    TENON_TRY(statements(stage.init));
    Status status;
    for_each_access(stage.init, [&](const Access& access) {
      for (const Axis& axis : stage.axes) {
        if (axis.kind == AxisKind::kReduce && access.writes && mentions(access.indices, axis.var))
          status = fail(fmt::format("init depends on the reduction axis '{}'", name(axis.var)));
      }
    });
    TENON_TRY(status);
    TENON_TRY(statements(stage.body));
    TENON_TRY(independent(stage));
    if (stage.async) TENON_TRY(asynchronous(stage));
    scope_ = std::exchange(outside_, {});
    stage_ = nullptr;
    return {};
  }

  // An asynchronous stage copies single elements of memory, or zeros, to shared memory.
  Status asynchronous(const Stage& stage) const {
    const auto* store =
        stage.body.size() == 1 && stage.init.empty() ? std::get_if<Store>(&stage.body[0].form) : nullptr;
    if (!store || !shared_.contains(store->buffer))
      return fail("an asynchronous stage must be one assignment to shared memory");
    const auto copied = copied_element(store->value);
    if (!copied) return fail("an asynchronous stage must copy an element, or zeros where it does not");
    const Load* load = copied->element;
    if (shared_.contains(load->buffer) || registers_.contains(load->buffer))
      return fail(
          fmt::format("an asynchronous stage copies {}, which is not in the GPU's memory", local(load->buffer)));
    return {};
  }

  // Checks that points that differ in a spatial or scan axis write different elements, and read no elements that other
  // points write, except those of earlier points of a scan.
  Status independent(const Stage& stage) {
    std::vector<Access> reads, writes;
    for_each_access(stage, [&](const Access& access) { (access.writes ? writes : reads).push_back(access); });
    for (const Access& write : writes) {
      const std::string shown = local(write.buffer);
      for (const Axis& axis : stage.axes) {
        if (axis.kind == AxisKind::kReduce && mentions(write.indices, axis.var))
          return fail(fmt::format("{} is written at the reduction axis '{}'", shown, name(axis.var)));
        const bool points = axis.kind == AxisKind::kSpatial || axis.kind == AxisKind::kScan;
        if (!points || fixed(axis, write.buffer)) continue;
        const auto position =
            distinguishing_index(stage, write, axis.var, [&](const Axis& other) { return fixed(other, write.buffer); });
        if (!position)
          return fail(fmt::format("no index of the store to {} is determined by the axis '{}'", shown, name(axis.var)),
                      "an axis whose points all write one element must be a reduction");
        for (const Access& read : reads) {
          if (read.buffer != write.buffer || reads_earlier(stage, write, read)) continue;
          if (read.indices[*position] != write.indices[*position] || read.size(*position) != write.size(*position))
            return fail(fmt::format("{} is read at {} where '{}' writes it at {}", shown, context_.str(read.indices),
                                    name(axis.var), context_.str(write.indices)),
                        "an axis whose points read elements that earlier points wrote must be a scan");
        }
      }
    }
    return {};
  }

  const TypeContext& context_;
  const Function& function_;
  const Stage* stage_ = nullptr;                                  // the stage that is being checked
  std::vector<Symbol> scope_;                                     // variables that sizes and indices may mention
  std::vector<Symbol> outside_;                                   // scope_ outside the stage
  std::map<BufferId, size_t> declared_at_;                        // number of variables in scope at the declaration
  std::set<Symbol> functions_;                                    // parameters that sizes may apply
  std::set<Symbol> tables_;                                       // likewise, tables that are declared already
  std::set<BufferId> in_scope_, read_only_, shared_, registers_;  // registers_: and on the stack
  std::set<Symbol> stages_;
  const For* divergent_ = nullptr;  // the outermost loop over threads around the statement
  int num_conditions_ = 0;          // around the statement
  int depth_ = 0;
};

}  // namespace

Status verify(const TypeContext& context, const Function& function, Symbol* stage) {
  Verifier verifier(context, function);
  Status status = verifier.run();
  if (!status && stage) *stage = verifier.stage();
  return status;
}

}  // namespace tenon::compiler::loop
