// The primitive tensorize: replaces a loop nest by a declared instruction.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/loop/expr.h"
#include "compiler/loop/instructions.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/region.h"
#include "compiler/loop/text.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// One assignment in loops of constant sizes.
struct Nest {
  std::vector<const For*> loops;
  const Stage* stage = nullptr;
  const Store* store = nullptr;
};

// The nest that starts at a statement, or the reason why the statement is not such a nest; `subject` names it in
// messages.
Expected<Nest> nest_of(const TypeContext& context, const Stmt& stmt, std::string_view subject) {
  Nest nest;
  const Stmt* inner = &stmt;
  while (const auto* loop = std::get_if<For>(&inner->form)) {
    if (!loop->extent.constant())
      return error(fmt::format("the size of '{}' in {} is not a constant", context.name(loop->var), subject));
    if (loop->body.size() != 1)
      return error(
          fmt::format("the loop '{}' in {} contains more than one statement", context.name(loop->var), subject));
    nest.loops.push_back(loop);
    inner = &loop->body.front();
  }
  nest.stage = std::get_if<Stage>(&inner->form);
  if (!nest.stage) return error(fmt::format("{} is not a single stage in loops", subject));
  if (!nest.stage->init.empty())
    return error(fmt::format("the stage '{}' has an init", context.name(nest.stage->name)), {},
                 "separate it with split_init");
  nest.store = nest.stage->body.size() == 1 ? std::get_if<Store>(&nest.stage->body[0].form) : nullptr;
  if (!nest.store)
    return error(fmt::format("the stage '{}' is more than one assignment", context.name(nest.stage->name)));
  return nest;
}

std::map<Symbol, Dim> axis_values(const Stage& stage) {
  std::map<Symbol, Dim> values;
  for (const Axis& axis : stage.axes) values[axis.var] = axis.value;
  return values;
}

// Compares the nest with the declared one, whose loops correspond to loops of the nest.
class Matcher {
 public:
  // `around`: the loops around the nest and in it.
  Matcher(TypeContext& context, const Function& function, const Nest& nest, const Function& declared, const Nest& other,
          const std::vector<const For*>& around)
      : context_(context), function_(function), nest_(nest), declared_(declared), other_(other) {
    for (const For* loop : nest.loops) zero_[loop->var] = context.dim(0);
    for (const For* loop : around) {
      const auto extent = loop->extent.constant();
      bounds_[loop->var] = {0, extent ? std::optional(*extent - 1) : std::nullopt};
    }
    over_ = axis_values(*nest.stage);
  }

  // loops[i] of the nest corresponds to loop i of the declaration.
  bool match(const std::vector<const For*>& loops) {
    operands_.clear(), matched_ = 0, mismatch_.clear();
    std::map<Symbol, Dim> renamed;
    for (size_t i = 0; i < loops.size(); ++i) renamed[other_.loops[i]->var] = context_.dim(loops[i]->var);
    renamed_.clear();
    for (const auto& [axis, value] : axis_values(*other_.stage)) renamed_[axis] = context_.substitute(value, renamed);
    const Expr mine = load(function_, nest_.store->buffer, nest_.store->indices);
    const Expr theirs = load(declared_, other_.store->buffer, other_.store->indices);
    return same(mine, theirs) && same(nest_.store->value, other_.store->value);
  }
  size_t matched() const { return matched_; }
  const std::string& mismatch() const { return mismatch_; }
  // The block for each operand of the declaration, over the axes of the stage.
  const std::map<BufferId, Operand>& operands() const { return operands_; }

 private:
  bool fail(const Expr& mine, const Expr& theirs) {
    if (mismatch_.empty())
      mismatch_ =
          fmt::format("found {} where it has {}", print(context_, function_, mine), print(context_, declared_, theirs));
    return false;
  }
  bool same(const Expr& mine, const Expr& theirs) {
    if (mine->dtype != theirs->dtype || mine->form.index() != theirs->form.index()) return fail(mine, theirs);
    ++matched_;
    return std::visit(
        [&](const auto& form) {
          return same(form, std::get<std::remove_cvref_t<decltype(form)>>(theirs->form), mine, theirs);
        },
        mine->form);
  }
  bool same(const Literal&, const Literal&, const Expr& mine, const Expr& theirs) {
    return equal(mine, theirs) || fail(mine, theirs);
  }
  bool same(const IndexValue& a, const IndexValue& b, const Expr& mine, const Expr& theirs) {
    return context_.substitute(a.value, over_) == context_.substitute(b.value, renamed_) || fail(mine, theirs);
  }
  bool same(const Unary& a, const Unary& b, const Expr& mine, const Expr& theirs) {
    return (a.op == b.op || fail(mine, theirs)) && same(a.value, b.value);
  }
  bool same(const Binary& a, const Binary& b, const Expr& mine, const Expr& theirs) {
    if (a.op != b.op) return fail(mine, theirs);
    const auto operands = operands_;
    if (same(a.left, b.left) && same(a.right, b.right)) return true;
    const bool commutes =
        a.op == BinaryOp::kAdd || a.op == BinaryOp::kMultiply || a.op == BinaryOp::kMin || a.op == BinaryOp::kMax;
    if (!commutes) return false;
    const auto [first, count] = std::pair{mismatch_, matched_};
    operands_ = operands;
    if (same(a.left, b.right) && same(a.right, b.left)) {
      mismatch_.clear();
      return true;
    }
    mismatch_ = first, matched_ = count;
    return false;
  }
  bool same(const Select& a, const Select& b, const Expr&, const Expr&) {
    return same(a.condition, b.condition) && same(a.then, b.then) && same(a.otherwise, b.otherwise);
  }
  bool same(const Convert& a, const Convert& b, const Expr&, const Expr&) { return same(a.value, b.value); }
  bool same(const LetIndex&, const LetIndex&, const Expr& mine, const Expr& theirs) { return fail(mine, theirs); }
  bool same(const Load& a, const Load& b, const Expr& mine, const Expr& theirs) {
    // The part of an index that depends on the loops of the nest is an index of the operand, in the same order.
    Operand operand{.buffer = a.buffer, .parts = {}};
    size_t next = 0;
    for (Dim index : a.indices) {
      const Dim over = context_.substitute(index, over_), begin = context_.substitute(over, zero_);
      const Dim inner = context_.subtract(over, begin);
      Part part{.begin = index, .size = 0};
      if (!equals(inner, context_.dim(0))) {
        if (next == b.indices.size() || !equals(inner, context_.substitute(b.indices[next], renamed_)))
          return fail(mine, theirs);
        part.size = *declared_.buffer(b.buffer).axes[next].extent.constant();
        ++next;
      }
      operand.parts.push_back(part);
    }
    if (next != b.indices.size()) return fail(mine, theirs);
    const auto [found, added] = operands_.try_emplace(b.buffer, operand);
    return added || (found->second.buffer == operand.buffer && found->second.parts == operand.parts) ||
           fail(mine, theirs);
  }

  // In all iterations of the loops.
  bool equals(Dim a, Dim b) const { return a == b || DimProver(context_, bounds_).equal(a, b) == Answer::kYes; }

  TypeContext& context_;
  const Function& function_;
  const Nest& nest_;
  const Function& declared_;
  const Nest& other_;
  DimBounds bounds_;
  std::map<Symbol, Dim> zero_, over_, renamed_;
  std::map<BufferId, Operand> operands_;
  size_t matched_ = 0;
  std::string mismatch_;  // the first one
};

// The declaration's operands, matched with the loops in some order.
Expected<std::map<BufferId, Operand>> match(TypeContext& context, const Function& function, const Nest& nest,
                                            const Function& declared, const Nest& other,
                                            const std::vector<const For*>& around) {
  const std::string name(context.name(declared.name));
  auto sizes = [](const Nest& loop_nest) {
    std::vector<int64_t> list;
    for (const For* loop : loop_nest.loops) list.push_back(*loop->extent.constant());
    return list;
  };
  std::vector<size_t> order(nest.loops.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Matcher matcher(context, function, nest, declared, other, around);
  bool fits = false;
  size_t most = 0;
  std::string mismatch;
  if (sizes(nest).size() == sizes(other).size()) {
    do {
      std::vector<const For*> loops;
      bool same = true;
      for (size_t i = 0; i < order.size(); ++i) {
        loops.push_back(nest.loops[order[i]]);
        same &= loops.back()->extent == other.loops[i]->extent;
      }
      if (!same) continue;
      fits = true;
      if (matcher.match(loops)) return matcher.operands();
      if (mismatch.empty() || matcher.matched() > most) most = matcher.matched(), mismatch = matcher.mismatch();
    } while (std::ranges::next_permutation(order).found);
  }
  if (!fits)
    return error(fmt::format("the loops have ({}) iterations, those of the instruction '{}' ({})",
                             fmt::join(sizes(nest), ", "), name, fmt::join(sizes(other), ", ")));
  return error(fmt::format("the nest does not match the instruction '{}': {}", name, mismatch));
}

// The number of consecutive values that the loops give the axis in each of their runs; nullopt where they do not.
std::optional<int64_t> block_size(TypeContext& context, const Nest& nest, Dim value) {
  std::vector<std::pair<int64_t, int64_t>> digits;  // stride and extent
  for (const For* loop : nest.loops) {
    if (!mentions({&value, 1}, loop->var)) continue;
    const auto linear = context.linear_in(loop->var, value);
    const auto stride = linear ? linear->first.constant() : std::nullopt;
    if (!stride) return std::nullopt;
    digits.emplace_back(*stride, *loop->extent.constant());
  }
  std::ranges::sort(digits);
  int64_t size = 1;
  for (const auto& [stride, extent] : digits) {
    if (stride != size) return std::nullopt;
    size *= extent;
  }
  return size;
}

// Changes the axes that the loops of the nest feed to count blocks.
Status count_blocks(TypeContext& context, Stage& stage, const Nest& nest, std::map<Symbol, Dim>& begins) {
  std::map<Symbol, Dim> zero;
  for (const For* loop : nest.loops) zero[loop->var] = context.dim(0);
  for (Axis& axis : stage.axes) {
    const Dim outer = context.substitute(axis.value, zero);
    if (outer == axis.value) continue;
    if (axis.kind == AxisKind::kScan || axis.kind == AxisKind::kGiven)
      return error(
          fmt::format("'{}' of the nest is not a spatial or reduction axis of the stage", context.name(axis.var)));
    const auto values = block_size(context, nest, axis.value);
    const Dim size = context.dim(values.value_or(1));
    const auto block = context.divide(outer, size);
    if (!values || !block)
      return error(fmt::format("'{}' does not start at multiples of {}", context.name(axis.var), context.str(size)));
    const Dim extent = context.substitute(axis.extent, begins);
    if (DimProver(context).divides(size, extent) != Answer::kYes)
      return error(fmt::format("the size {} of '{}' may not be a multiple of {}", context.str(extent),
                               context.name(axis.var), context.str(size)),
                   {}, "pad it first");
    axis.extent = context.floor_divide(extent, size);
    axis.value = *block;
    begins[axis.var] = context.multiply(size, context.dim(axis.var));
  }
  return {};
}

// Whether the step allows what the instruction does.
Status check_exactness(const Function& declared, const std::string& shown, bool allows_inexact) {
  if (declared.inexact > 0 && !allows_inexact)
    return error(
        fmt::format("{} adds in an unspecified order, with a relative error of up to {}", shown, declared.inexact), {},
        "add the argument inexact to allow it");
  if (declared.inexact == 0 && allows_inexact) return error(shown + " is exact", {}, "omit the argument inexact");
  return {};
}

}  // namespace

Expected<Function> tensorize(TypeContext& context, Function function, Symbol stage, Symbol loop, Symbol intrinsic,
                             bool allows_inexact) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(step, find_loop(context, *path, loop));
  Function declared;
  if (const Function* existing = function.intrinsic(intrinsic)) {
    declared = *existing;
  } else {
    TENON_TRY_ASSIGN(found, instruction(context, context.name(intrinsic)));
    declared = std::move(*found);
  }
  const std::string shown = fmt::format("the instruction '{}'", context.name(intrinsic));
  TENON_TRY(check_exactness(declared, shown, allows_inexact));
  if (declared.body.size() != 1) return error(shown + " is not a single stage in loops");
  TENON_TRY_ASSIGN(other, nest_of(context, declared.body.front(), shown));
  Stmt& outermost = path->steps[*step].stmt();
  TENON_TRY_ASSIGN(nest, nest_of(context, outermost, fmt::format("the loop '{}'", context.name(loop))));
  for (const Guard& guard : nest->stage->where) {
    const Dim both[] = {guard.left, guard.right};
    for (const For* inner : nest->loops)
      if (mentions(both, inner->var))
        return error(fmt::format("a guard of the stage mentions '{}'", context.name(inner->var)), {}, "pad it first");
  }
  TENON_TRY_ASSIGN(operands, match(context, function, *nest, declared, *other, all_loops(*path)));
  Stage block = *nest->stage;
  std::map<Symbol, Dim> begins;
  TENON_TRY(count_blocks(context, block, *nest, begins));
  Intrinsic call{.name = intrinsic, .inputs = {}, .outputs = {}, .inexact = allows_inexact};
  for (const auto& [list, to] :
       {std::pair{&declared.params, &call.inputs}, std::pair{&declared.results, &call.outputs}}) {
    for (BufferId id : *list) {
      const auto found = operands->find(id);
      if (found == operands->end())
        return error(fmt::format("{} does not use its operand %{}", shown, context.name(declared.buffer(id).name)));
      Operand operand = found->second;
      for (Part& part : operand.parts) part.begin = context.substitute(part.begin, begins);
      to->push_back(std::move(operand));
    }
  }
  block.body.clear();
  block.body.push_back({std::move(call)});
  outermost = Stmt{std::move(block)};
  if (!function.intrinsic(intrinsic)) function.intrinsics.push_back(std::move(declared));
  return function;
}

}  // namespace tenon::compiler::loop
