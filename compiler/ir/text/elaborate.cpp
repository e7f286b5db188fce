// Inference over a draft, in three steps: a walk that unifies the types of bindings in order, the bindings whose
// operands were not resolved in the walk, and the insertion of the checks, erasures and openings of sizes between the
// bindings.
#include "compiler/ir/text/elaborate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/ir/verifier.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

class Elaborator {
 public:
  Elaborator(Context& context, const Module& module, Draft& draft, const InferOptions& options,
             FunctionRef<size_t(SpanId)> offset)
      : context_(context),
        module_(module),
        draft_(draft),
        function_(draft.function),
        solver_(draft.solver),
        rules_(context, module, draft.function, draft.solver),
        options_(options),
        offset_(offset) {
    for (Symbol dim : function_.dims) used_.insert(dim);
    for_each_binding(function_.body, [&](const Binding& binding) {
      if (auto* cast = std::get_if<Cast>(&binding.value)) used_.insert(cast->fresh.begin(), cast->fresh.end());
    });
  }

  size_t at() const { return at_; }  // the offset of the error

  Status run() {
    link(function_.body);
    link_result(function_.body.result, function_.result);
    TENON_TRY(block(function_.body, function_.result));
    const size_t result_at = at_;
    if (!function_.result) {
      TENON_TRY_ASSIGN(found, rules_.atom(function_.body.result));
      function_.result = *found;
    }
    TENON_TRY_ASSIGN(found, rules_.atom(function_.body.result));
    if (!solver_.pass(function_.result, *found)) return wrong_result(*found);
    for (const Draft::Alias& alias : draft_.aliases) {
      TENON_TRY_ASSIGN(type, rules_.atom(alias.atom));
      at_ = alias.offset;
      TENON_TRY(declared_as(alias.name, alias.type, *type));
    }
    TENON_TRY(resolve_pending());
    for (const auto& [binding, from, to] : calls_) {
      at_ = offset_(function_.info(binding->var).span);
      TENON_TRY(rules_.check_determined(from, to, options_.strict_shapes));
      call_of(binding->value)->types = rules_.explicit_types(from, to);
    }
    TENON_TRY(complete());
    for_each_type(function_, [&](Type& type) { type = solver_.resolve(type); });
    TENON_TRY(checks());  // before the result, which wrong operands make wrong
    at_ = result_at;
    TENON_TRY(finish_result());
    insert(function_.body);
    drop_annotations();
    renumber();
    if (auto finding = check(context_, module_, function_)) {
      at_ = offset_(finding->span);
      return error(std::move(finding->what), "", std::move(finding->help));
    }
    return {};
  }

 private:
  std::string text(Type type) { return context_.str(solver_.resolve(type)); }
  std::string_view name(VarId var) const { return context_.name(function_.info(var).name); }

  Status declared_as(std::string_view name, Type declared, Type found) {
    if (solver_.unify(declared, found)) return {};
    return error(fmt::format("%{} is declared {}, but is {}", name, text(declared), text(found)));
  }
  std::unexpected<Diagnostic> wrong_result(Type found) {
    return error(fmt::format("the function returns {}, but its result is {}", text(function_.result), text(found)));
  }

  // `wanted`: the required type of the block's result, if it is resolved; a `?` in it erases the size of the result.
  Status block(Block& block, Type wanted) {
    ++depth_;
    std::vector<Binding*> expanded;  // that wait for the next binding, whose type determines theirs
    for (Binding& next : block.bindings) {
      if (draft_.expanded.contains(next.var)) {
        TENON_TRY(declare(next));
        expanded.push_back(&next);
        continue;
      }
      const bool last = block.result == Atom{next.var};
      TENON_TRY(binding(next, last ? wanted : Type{}));
      for (Binding* waiting : std::exchange(expanded, {})) TENON_TRY(expansion(*waiting));
    }
    for (Binding* waiting : expanded) TENON_TRY(expansion(*waiting));
    --depth_;
    at_ = draft_.results[results_++];
    return {};
  }

  // The blocks of arms and closures: the type of their result contains no size from inside the block, and has a `?`
  // where `wanted` has one.
  Status inner(Block& inner_block, Type wanted) {
    TENON_TRY(block(inner_block, wanted));
    return leave(inner_block, wanted);
  }
  // The block of a closure: where the type of its result fits the declared one, it stays as it is, as that of a
  // function.
  Status closure(Block& inner_block, Type declared) {
    TENON_TRY(block(inner_block, declared));
    if (solver_.is_resolved(declared)) {
      TENON_TRY_ASSIGN(found, rules_.atom(inner_block.result));
      if (solver_.is_resolved(*found) && solver_.fit(declared, *found) == Answer::kYes) return {};
    }
    return leave(inner_block, declared);
  }
  Status leave(Block& inner_block, Type wanted) {
    TENON_TRY_ASSIGN(found, rules_.atom(inner_block.result));
    if (!solver_.is_resolved(*found)) return {};
    Type to = *found;
    if (wanted && solver_.is_resolved(wanted) && has_erased(wanted)) {
      if (!solver_.pass(wanted, *found)) {
        return error(fmt::format("the result must be {}, found {}", text(wanted), text(*found)));
      }
      to = wanted;
    }
    to = context_.map_sizes(to, [&](Dim dim) {
      bool leaves = false;
      for_each_variable(dim, [&](Symbol variable) {
        auto scope = dim_depths_.find(variable);
        leaves |= scope != dim_depths_.end() && scope->second > depth_;
      });
      return leaves ? context_.erased() : dim;
    });
    if (to != *found) inner_block.result = cast(tails_[&inner_block], inner_block.result, to);
    return {};
  }

  Status binding(Binding& binding, Type wanted) {
    Value& value = binding.value;
    const Type declared = solver_.resolve(function_.type(binding.var));
    if (has_erased(declared)) wanted = declared;
    if (auto* lambda = std::get_if<Lambda>(&value)) {  // the type of the variable is visible in the body
      TENON_TRY(declare(binding));
      wanted = solver_.resolve(lambda->result);
    }
    if (auto* match = std::get_if<Case>(&value)) {  // the types of the patterns' variables are visible in the arms
      at_ = offset_(function_.info(binding.var).span);
      TENON_TRY_ASSIGN(subject, rules_.atom(match->subject));
      for (const Arm& arm : match->arms) TENON_TRY(rules_.pattern(arm.pattern, *subject));
    }
    if (auto* cast = std::get_if<Cast>(&value)) {
      for (Symbol fresh : cast->fresh) dim_depths_[fresh] = depth_;
    }
    Status status;
    const bool is_closure = std::holds_alternative<Lambda>(value);
    for_each_block(value, [&](Block& next) {
      if (status) status = is_closure ? closure(next, wanted) : inner(next, wanted);
    });
    TENON_TRY(status);
    return bound(binding);
  }

  // Gives the variable of a closure the type of the closure.
  Status declare(const Binding& binding) {
    const auto& lambda = std::get<Lambda>(binding.value);
    std::vector<Type> params;
    for (VarId param : lambda.params) params.push_back(function_.type(param));
    return unify_declared(binding.var, function_.type(binding.var),
                          context_.function(std::move(params), lambda.result));
  }

  // A closure that calls a polymorphic global, after the binding that uses it.
  Status expansion(Binding& binding) {
    auto& lambda = std::get<Lambda>(binding.value);
    ++depth_;
    TENON_TRY(bound(lambda.body[0].bindings[0]));
    --depth_;
    TENON_TRY(leave(lambda.body[0], solver_.resolve(lambda.result)));
    return bound(binding);
  }

  // Before the walk: a constructed value whose type is declared somewhere else, by an annotation, a parameter or a
  // result, has this type from the beginning. So the elements of a List[Tensor[(?,), f32]] may differ in their sizes.
  // A contradiction is reported by the walk.
  void link(const Block& block) {
    for (const Binding& binding : block.bindings) {
      if (auto* construct = std::get_if<Construct>(&binding.value)) link(binding.var, *construct);
      if (const Call* call = call_of(binding.value)) {
        const std::vector<Type> params = rules_.declared_types(binding.value);
        for (size_t i = 0; i < std::min(params.size(), call->args.size()); ++i) {
          if (params[i] && !params[i].node->variables) link_result(call->args[i], params[i]);
        }
      }
      for_each_block(binding.value, [&](const Block& next) {
        link(next);
        auto* result = std::get_if<VarId>(&next.result);
        if (std::holds_alternative<Lambda>(binding.value) || !result || !constructed_.contains(*result)) return;
        constructed_.insert(binding.var);
        link_result(next.result, function_.type(binding.var));
      });
    }
  }
  void link(VarId var, const Construct& construct) {
    const auto decl = module_.constructor(construct.constructor);
    if (!decl || decl->adt->params.size() != construct.types.size()) return;
    constructed_.insert(var);
    solver_.unify(function_.type(var), context_.adt(decl->name, construct.types));
    std::map<Symbol, Type> values;
    for (size_t i = 0; i < construct.types.size(); ++i) values.emplace(decl->adt->params[i], construct.types[i]);
    const std::vector<Type>& fields = decl->constructor().fields;
    for (size_t i = 0; i < std::min(fields.size(), construct.fields.size()); ++i)
      link_result(construct.fields[i], context_.substitute(fields[i], {}, values));
  }
  void link_result(const Atom& atom, Type type) {
    auto* var = std::get_if<VarId>(&atom);
    if (!var || !type || !constructed_.contains(*var) || !(type.adt() || type.unknown())) return;
    solver_.unify(function_.type(*var), type);
  }

  // Unifies the binding's type with the type of its value, or makes the binding pending.
  Status bound(Binding& binding) {
    at_ = offset_(function_.info(binding.var).span);
    open_operands(binding.value);
    std::vector<Passed> passed;
    const size_t instantiated = rules_.instantiated();
    TENON_TRY_ASSIGN(found, rules_.value(binding.value, &passed, function_.type(binding.var)));
    if (rules_.instantiated() > instantiated) calls_.push_back({&binding, instantiated, rules_.instantiated()});
    if (!*found) {
      pending_.push_back(&binding);
      return {};
    }
    for (Passed& next : passed) passed_.push_back({&binding, std::move(next)});
    return unify_declared(binding.var, function_.type(binding.var), **found);
  }
  Status unify_declared(VarId var, Type declared, Type found) {
    auto annotation = draft_.annotated.find(static_cast<uint32_t>(var));
    at_ = annotation == draft_.annotated.end() ? offset_(function_.info(var).span) : annotation->second;
    return declared_as(name(var), declared, found);
  }

  // Opens the `?` in the types of operands, except where the use requires no name for the size.
  void open_operands(Value& value) {
    if (auto* apply = std::get_if<Apply>(&value)) {
      for (Atom& arg : apply->args) open(arg);
      return;
    }
    const std::vector<Type> wanted = rules_.declared_types(value);
    size_t i = 0;
    auto open_next = [&](Atom& atom) {
      if (i < wanted.size()) {
        const auto found = rules_.atom(atom);
        if (found && !erases(wanted[i], *found)) open(atom);
      }
      ++i;
    };
    if (Call* call = call_of(value)) {
      for (Atom& arg : call->args) open_next(arg);
    } else if (auto* construct = std::get_if<Construct>(&value)) {
      for (Atom& field : construct->fields) open_next(field);
    }
  }
  // Whether `wanted` has a `?` wherever `found` has one; a type variable accepts any type.
  static bool erases(Type wanted, Type found) {
    if (wanted.variable() || wanted.unknown()) return true;
    const TensorType *a = wanted.tensor(), *b = found.tensor();
    if (a && b) {
      return a->dims.size() == b->dims.size() &&
             std::ranges::equal(a->dims, b->dims, [](Dim x, Dim y) { return x.erased() || !y.erased(); });
    }
    const TupleType *x = wanted.tuple(), *y = found.tuple();
    if (x && y) return std::ranges::equal(x->fields, y->fields, erases);
    return !has_erased(found);
  }

  void open(Atom& atom) {
    auto* var = std::get_if<VarId>(&atom);
    const auto found = rules_.atom(atom);
    if (!var || !found || !has_erased(*found)) return;
    if (auto existing = opened_.find(*var); existing != opened_.end()) {
      atom = existing->second;
      return;
    }
    Cast cast{atom, {}, {}};
    cast.type = context_.map_sizes(*found, [&](Dim dim) {
      if (!dim.erased()) return dim;
      cast.fresh.push_back(context_.fresh_dim(used_));
      return context_.dim(cast.fresh.back());
    });
    const VarId opened = variable(*var, cast.type);
    // The new variable has the scope of the variable that it opens, which is this block or an outer block.
    for (Symbol fresh : cast.fresh) dim_depths_[fresh] = depth_of(*var);
    opened_.emplace(*var, opened);
    openings_[*var].push_back({opened, std::move(cast)});
    atom = opened;
  }
  // The depth of the block that a variable is bound in.
  int depth_of(VarId wanted) {
    if (var_depths_.empty()) {
      var_depths_.assign(function_.vars.size(), 1);
      record_depths(function_.body, 1);
    }
    return index(wanted) < var_depths_.size() ? var_depths_[index(wanted)] : depth_;
  }
  void record_depths(const Block& block, int depth) {
    auto record = [&](VarId var, int at) { var_depths_[index(var)] = at; };
    for (const Binding& binding : block.bindings) {
      record(binding.var, depth);
      if (auto* lambda = std::get_if<Lambda>(&binding.value)) {
        for (VarId param : lambda->params) record(param, depth + 1);
      }
      if (auto* match = std::get_if<Case>(&binding.value)) {
        for (const Arm& arm : match->arms) for_each_variable(arm.pattern, [&](VarId var) { record(var, depth + 1); });
      }
      for_each_block(binding.value, [&](const Block& next) { record_depths(next, depth + 1); });
    }
  }

  VarId variable(VarId like, Type type) {
    const VarInfo info = function_.info(like);
    function_.vars.push_back({type, info.name, info.span});
    return static_cast<VarId>(function_.vars.size() - 1);
  }
  // Appends a cast of `atom` to `type` to `bindings`.
  VarId cast(std::vector<Binding>& bindings, Atom atom, Type type) {
    auto* var = std::get_if<VarId>(&atom);
    const VarId result = var ? variable(*var, type) : static_cast<VarId>(function_.vars.size());
    if (!var) function_.vars.push_back({type, Symbol{}, SpanId{}});
    bindings.push_back({result, Cast{atom, type, {}}});
    return result;
  }
  // The type of `found` after a check against `wanted`: `wanted`, with the size of `found` in place of each `?`.
  Type checked_type(Type wanted, Type found) {
    if (const TensorType* a = wanted.tensor(), *b = found.tensor(); a && b) {
      Dims dims = a->dims;
      for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i].erased()) dims[i] = b->dims[i];
      }
      return context_.tensor(std::move(dims), a->dtype);
    }
    const TupleType *x = wanted.tuple(), *y = found.tuple();
    if (!x || !y) return wanted;
    std::vector<Type> fields;
    for (size_t i = 0; i < x->fields.size(); ++i) fields.push_back(checked_type(x->fields[i], y->fields[i]));
    return context_.tuple(std::move(fields));
  }

  // Infers the pending bindings until none is left or no unknown can be solved.
  Status resolve_pending() {
    while (true) {
      if (!solver_.retry()) {
        at_ = 0;
        return error("the sizes of the function contradict each other");
      }
      const size_t solved = solver_.solved();
      std::vector<Binding*> bindings = std::move(pending_);
      pending_.clear();
      for (Binding* binding : bindings) TENON_TRY(bound(*binding));
      if (pending_.empty()) break;
      if (pending_.size() != bindings.size() || solver_.solved() != solved) continue;
      if (!solver_.divide_pending()) return unresolved();
    }
    bool holds = solver_.retry();
    while (holds && solver_.divide_pending()) holds = solver_.retry();
    if (holds) return {};
    at_ = 0;
    return error("the sizes of the function contradict each other");
  }
  Status unresolved() {
    const Binding& first = *pending_.front();
    at_ = offset_(function_.info(first.var).span);
    std::string unknown = "an operand";
    for_each_operand(first.value, [&](const Atom& atom) {
      auto* var = std::get_if<VarId>(&atom);
      if (var && !solver_.is_resolved(solver_.resolve(function_.type(*var)))) unknown = fmt::format("%{}", name(*var));
    });
    return error(fmt::format("the type of {} cannot be inferred", unknown), "",
                 "annotate it, as %x: Tensor[(4,), f32]");
  }

  Status complete() {
    function_.result = solver_.resolve(function_.result);
    for (const VarInfo& info : function_.vars) {
      const Type type = solver_.resolve(info.type);
      if (solver_.is_resolved(type)) continue;
      at_ = offset_(info.span);
      return error(fmt::format("the type is not determined: it is {} so far", context_.str(type)), "",
                   "annotate it, as let %x: TYPE = ...");
    }
    return {};
  }

  // Gives the function's result its declared type.
  Status finish_result() {
    Block& body = function_.body;
    TENON_TRY_ASSIGN(found, rules_.atom(body.result));
    if (!draft_.declared) {  // the sizes that are not dims of the function are erased
      function_.result = context_.map_sizes(*found, [&](Dim dim) {
        bool leaves = false;
        for_each_variable(
            dim, [&](Symbol name) { leaves |= std::ranges::find(function_.dims, name) == function_.dims.end(); });
        return leaves ? context_.erased() : dim;
      });
    }
    const Answer answer = solver_.fit(function_.result, *found);
    if (answer == Answer::kYes) return {};
    if (answer == Answer::kNo) return wrong_result(*found);
    if (options_.strict_shapes) {
      return error(fmt::format("the function returns {}, and it is not proved that its result is: {}",
                               text(function_.result), text(*found)));
    }
    body.result = cast(tails_[&body], body.result, checked_type(function_.result, *found));
    return {};
  }

  // Adds a match_cast before each binding with an operand that is not proved to fit.
  Status checks() {
    for (auto& [binding, passed] : passed_) {
      at_ = offset_(function_.info(binding->var).span);
      passed.wanted = solver_.resolve(passed.wanted);
      Atom& operand = passed_operand(binding->value, passed);
      TENON_TRY_ASSIGN(found, rules_.atom(operand));
      TENON_TRY_ASSIGN(fits, rules_.fits(passed, *found, options_.strict_shapes));
      if (*fits) continue;
      auto* lambda = std::get_if<Lambda>(&binding->value);
      auto& insertions = lambda ? tails_[&lambda->body[0]] : before_[binding];
      operand = cast(insertions, operand, checked_type(passed.wanted, *found));
      function_.vars.back().span = function_.info(binding->var).span;  // a check that fails is located at the use
    }
    return {};
  }

  // Inserts the new bindings into the blocks.
  void insert(Block& block, const std::vector<VarId>& first = {}) {
    std::vector<Binding> bindings = std::move(block.bindings);
    const auto tail = tails_.find(&block);
    std::vector<Binding> new_bindings;
    auto open_after = [&](VarId var) {
      auto found = openings_.find(var);
      if (found == openings_.end()) return;
      for (Binding& opening : found->second) new_bindings.push_back(std::move(opening));
    };
    for (VarId var : first) open_after(var);
    for (Binding& binding : bindings) {
      if (auto found = before_.find(&binding); found != before_.end()) {
        for (Binding& check : found->second) new_bindings.push_back(std::move(check));
      }
      if (auto* match = std::get_if<Case>(&binding.value)) {
        for (Arm& arm : match->arms) {
          std::vector<VarId> vars;
          for_each_variable(arm.pattern, [&](VarId var) { vars.push_back(var); });
          insert(arm.block, vars);
        }
      } else {
        auto* lambda = std::get_if<Lambda>(&binding.value);
        for_each_block(binding.value,
                       [&](Block& next) { insert(next, lambda ? lambda->params : std::vector<VarId>{}); });
      }
      const VarId var = binding.var;
      new_bindings.push_back(std::move(binding));
      open_after(var);
    }
    if (tail != tails_.end()) {
      for (Binding& next : tail->second) {
        const VarId var = next.var;
        new_bindings.push_back(std::move(next));
        open_after(var);
      }
    }
    block.bindings = std::move(new_bindings);
  }

  // Removes the casts of annotations that equal the types of their values.
  void drop_annotations() {
    std::map<VarId, Atom> same;
    for_each_binding(function_.body, [&](const Binding& binding) {
      if (std::ranges::find(draft_.erasing, binding.var) == draft_.erasing.end()) return;
      const auto& cast = std::get<Cast>(binding.value);
      const auto found = rules_.atom(cast.value);
      if (found && *found == cast.type) same.emplace(binding.var, cast.value);
    });
    if (same.empty()) return;
    for_each_use(function_.body, [&](Atom& atom) {
      for (auto* var = std::get_if<VarId>(&atom); var && same.contains(*var); var = std::get_if<VarId>(&atom)) {
        atom = Atom(same.at(*var));
      }
    });
    drop(function_.body, same);
  }
  static void drop(Block& block, const std::map<VarId, Atom>& same) {
    std::erase_if(block.bindings, [&](const Binding& binding) { return same.contains(binding.var); });
    for (Binding& binding : block.bindings) {
      for_each_block(binding.value, [&](Block& next) { drop(next, same); });
    }
  }

  // Renumbers the variables in the order in which the parser creates them, so that a module that is printed and parsed
  // again has the same names.
  void renumber() {
    std::vector<VarInfo> vars;
    std::map<VarId, VarId> renamed;
    auto assign_id = [&](VarId& var) {
      const auto id = static_cast<VarId>(vars.size());
      vars.push_back(function_.info(var));
      renamed.emplace(var, id);
      var = id;
    };
    for (VarId& param : function_.params) assign_id(param);
    renumber(function_.body, assign_id);
    for_each_use(function_.body, [&](Atom& atom) {
      if (auto* var = std::get_if<VarId>(&atom)) atom = Atom(renamed.at(*var));
    });
    function_.vars = std::move(vars);
  }
  static void renumber(Block& block, FunctionRef<void(VarId&)> assign_id) {
    for (Binding& binding : block.bindings) {
      auto* lambda = std::get_if<Lambda>(&binding.value);
      if (lambda) {
        assign_id(binding.var);
        for (VarId& param : lambda->params) assign_id(param);
      }
      if (auto* match = std::get_if<Case>(&binding.value)) {
        for (Arm& arm : match->arms) {
          for_each_variable(arm.pattern, assign_id);
          renumber(arm.block, assign_id);
        }
      } else {
        for_each_block(binding.value, [&](Block& next) { renumber(next, assign_id); });
      }
      if (!lambda) assign_id(binding.var);
    }
  }

  Context& context_;
  const Module& module_;
  Draft& draft_;
  Function& function_;
  Solver& solver_;
  Rules rules_;
  const InferOptions& options_;
  FunctionRef<size_t(SpanId)> offset_;
  std::set<VarId> constructed_;  // the variables of constructed values
  std::vector<Binding*> pending_;
  std::vector<std::pair<Binding*, Passed>> passed_;
  struct Instance {
    Binding* binding;
    size_t from, to;
  };
  std::vector<Instance> calls_;
  // The bindings that are inserted at the end. No block changes before, so the addresses of blocks and bindings are
  // stable.
  std::map<const Block*, std::vector<Binding>> tails_;
  std::map<const Binding*, std::vector<Binding>> before_;
  std::map<VarId, std::vector<Binding>> openings_;
  std::map<VarId, VarId> opened_;
  std::map<Symbol, int> dim_depths_;  // for dims that casts bind: the depth of the block of their scope
  std::vector<int> var_depths_;       // for variables: the depth of the block of their binding
  std::set<Symbol> used_;
  int depth_ = 0;
  size_t results_ = 0;
  size_t at_ = 0;
};

}  // namespace

Expected<Function> elaborate(Context& context, const Module& module, Draft draft, const InferOptions& options,
                             const Source& source, FunctionRef<size_t(SpanId)> offset) {
  Elaborator elaborator(context, module, draft, options, offset);
  Status status = elaborator.run();
  if (!status) return source.error_at(elaborator.at(), status.error().what, status.error().help);
  return std::move(draft.function);
}

}  // namespace tenon::compiler
