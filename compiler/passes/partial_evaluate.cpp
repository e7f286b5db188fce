#include "compiler/passes/partial_evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/instantiate.h"
#include "compiler/ir/result_names.h"
#include "compiler/ir/solver.h"
#include "compiler/passes/calls.h"
#include "compiler/passes/known_references.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// The evaluation of one function body: the atoms, dims and types that its names stand for in the new function.
struct Frame {
  const Function* source = nullptr;
  std::unordered_map<VarId, Atom> atoms;
  Instantiation names;
  bool top = false;  // of the function itself, not of an unfolded body
};

// A closure whose body is known, with what it captures.
struct Closure {
  const Lambda* lambda = nullptr;
  VarId source_var{};  // of the closure itself, which its body may call
  std::shared_ptr<const Frame> captured;
};

// The size of the body of a function or a lambda before the pass.
struct BodyInfo {
  size_t bindings = 0, depth = 0;
};

// What all functions of the module share.
struct Program {
  Context& context;
  Module& module;                           // gets the new functions
  std::map<Symbol, Function> sources = {};  // the functions before the pass
  CallOrder calls = {};
  const Effects& effects;
  const PartialEvaluationLimits& limits;
  size_t fuel = 0;  // for the remaining functions
  std::unordered_map<const Block*, BodyInfo> bodies = {};
  std::unordered_map<const Lambda*, std::vector<VarId>> captures = {};

  const BodyInfo& body(const Block& block) {
    const auto [found, added] = bodies.try_emplace(&block);
    if (added) found->second = {count_bindings(block), depth_of(block)};
    return found->second;
  }
  // The variables that the lambda uses and does not bind.
  const std::vector<VarId>& captured(const Lambda& lambda) {
    const auto [found, added] = captures.try_emplace(&lambda);
    if (!added) return found->second;
    std::unordered_set<VarId> bound(lambda.params.begin(), lambda.params.end()), used;
    for_each_binding(lambda.body[0], [&](const Binding& binding) {
      bound.insert(binding.var);
      if (auto* inner = std::get_if<Lambda>(&binding.value)) bound.insert(inner->params.begin(), inner->params.end());
      if (auto* match = std::get_if<Case>(&binding.value)) {
        for (const Arm& arm : match->arms) for_each_variable(arm.pattern, [&](VarId var) { bound.insert(var); });
      }
    });
    for_each_use(lambda.body[0], [&](const Atom& atom) {
      auto* var = std::get_if<VarId>(&atom);
      if (var && !bound.contains(*var) && used.insert(*var).second) found->second.push_back(*var);
    });
    return found->second;
  }
};

class Evaluator {
 public:
  Evaluator(Program& program, const Function& from)
      : program_(program),
        context_(program.context),
        from_(from),
        builder_(program.context, program.module, result_),
        names_(program.context, from) {}

  Expected<Function> run() {
    const size_t size = count_bindings(from_.body);
    fuel_ = std::min(program_.limits.steps * size + program_.limits.base_steps, program_.fuel);
    plain_fuel_ = 2 * size + 100;
    const size_t before = fuel_;
    Expected<Function> result = whole();
    program_.fuel -= before - fuel_;
    return result;
  }

 private:
  // A body that is being unfolded.
  struct Activation {
    const Block* body;
    size_t branches, lambdas;  // the unknown branches and the lambdas around it
  };
  struct Known {  // the arguments of a call of which something is known, and the body
    const Block* body;
    std::vector<bool> args;
    auto operator<=>(const Known&) const = default;
  };

  Expected<Function> whole() {
    result_.dims = from_.dims;
    result_.bounds = from_.bounds;
    result_.types = from_.types;
    used_dims_.insert(from_.dims.begin(), from_.dims.end());
    Frame frame{&from_, {}, {}, true};
    for (const VarId param : from_.params) {
      const VarInfo& info = from_.info(param);
      builder_.at(info.span);
      frame.atoms[param] = builder_.param(info.type, context_.name(info.name));
    }
    TENON_TRY_ASSIGN(value, block(frame, from_.body));
    builder_.finish(*value);
    // The declared result stays if it is still valid: it may be less specific than the type of the value.
    if (Solver(context_, from_.bounds).fit(from_.result, result_.result) == Answer::kYes) result_.result = from_.result;
    return std::move(result_);
  }

  // --- Names of a frame.

  static void rename(const Frame& frame, Atom& atom) {
    if (auto* var = std::get_if<VarId>(&atom)) atom = frame.atoms.at(*var);
  }
  static Atom renamed(const Frame& frame, Atom atom) {
    rename(frame, atom);
    return atom;
  }
  Type replaced(const Frame& frame, Type type) const {
    if (frame.names.dims.empty() && frame.names.types.empty()) return type;
    return context_.substitute(type, frame.names.dims, frame.names.types);
  }
  Type type_of(const Frame& frame, VarId var) const { return replaced(frame, frame.source->type(var)); }
  VarId declare(Frame& frame, VarId old) {
    const VarInfo& info = frame.source->info(old);
    builder_.at(info.span);
    const VarId var = builder_.declare(type_of(frame, old), context_.name(info.name));
    frame.atoms.insert_or_assign(old, Atom(var));
    return var;
  }
  Symbol fresh(Symbol name) {
    if (used_dims_.insert(name).second) return name;
    for (size_t i = used_dims_.size();; ++i) {
      const Symbol other = context_.symbol(fmt::format("{}_{}", context_.name(name), i));
      if (used_dims_.insert(other).second) return other;
    }
  }

  // The atom with the type that the program had for it: a value whose sizes became known is cast to a type with `?`.
  Expected<Atom> typed(Atom atom, Type wanted) {
    TENON_TRY_ASSIGN(found, builder_.type_of(atom));
    if (*found == wanted) return atom;
    if (!has_erased(wanted) && Solver(context_, result_.bounds).fit(wanted, *found) == Answer::kYes) return atom;
    return builder_.bind(Cast{atom, wanted, {}}, Symbol{});
  }

  // --- Knowledge of the new function's atoms.

  // The Construct or Tuple of an atom; nullptr where it is not known. Valid until the next binding.
  const Value* data_of(const Atom& atom) const {
    auto* var = std::get_if<VarId>(&atom);
    if (!var) return nullptr;
    if (const auto found = matched_.find(*var); found != matched_.end()) return &found->second;
    const Value* value = builder_.value_of(atom);
    return value && (std::holds_alternative<Construct>(*value) || std::holds_alternative<Tuple>(*value)) ? value
                                                                                                         : nullptr;
  }
  std::optional<bool> condition_of(const Atom& atom) const {
    if (const runtime::Tensor* constant = constant_of(builder_.module(), atom)) return constant->data<bool>()[0];
    auto* var = std::get_if<VarId>(&atom);
    const auto found = var ? conditions_.find(*var) : conditions_.end();
    return found == conditions_.end() ? std::nullopt : std::optional(found->second);
  }
  bool is_known(const Atom& atom) const {
    if (const runtime::Tensor* constant = constant_of(builder_.module(), atom)) return constant->shape().empty();
    auto* var = std::get_if<VarId>(&atom);
    if (!var) return true;
    return data_of(atom) || closures_.contains(*var) || references_.find(*var) || conditions_.contains(*var);
  }

  // --- Blocks and bindings.

  Expected<Atom> block(Frame& frame, const Block& block) {
    for (const Binding& old : block.bindings) TENON_TRY(binding(frame, old));
    return renamed(frame, block.result);
  }

  Status binding(Frame& frame, const Binding& old) {
    context_.visit();
    if (!active_.empty() && fuel_ > 0) --fuel_;
    const VarInfo& info = frame.source->info(old.var);
    builder_.at(info.span);
    TENON_TRY_ASSIGN(atom, value(frame, old));
    builder_.at(info.span);
    if (!std::holds_alternative<Lambda>(old.value)) {
      atom = typed(*atom, type_of(frame, old.var));
      if (!atom) return std::unexpected(std::move(atom.error()));
    }
    if (frame.top && names_.contains(old.var)) {
      atom = names_.keep(builder_, *atom, info);
      if (!atom) return std::unexpected(std::move(atom.error()));
    }
    frame.atoms.insert_or_assign(old.var, *atom);
    return {};
  }

  Expected<Atom> value(Frame& frame, const Binding& old) {
    if (auto* node = std::get_if<Lambda>(&old.value)) return lambda(frame, old.var, *node);
    if (auto* node = std::get_if<If>(&old.value)) return branch(frame, old.var, *node);
    if (auto* node = std::get_if<Case>(&old.value)) return match(frame, old.var, *node);
    Value value = old.value;
    for_each_operand(value, [&](Atom& atom) { rename(frame, atom); });
    for_each_dim(value, [&](Dim& dim) { dim = context_.substitute(dim, frame.names.dims); });
    if (auto* construct = std::get_if<Construct>(&value)) {
      for (Type& type : construct->types) type = replaced(frame, type);
    } else if (auto* cast = std::get_if<Cast>(&value)) {
      for (Symbol& name : cast->fresh) {
        const Symbol other = fresh(name);
        if (other != name) frame.names.dims.insert_or_assign(name, context_.dim(other));
        name = other;
      }
      cast->type = replaced(frame, cast->type);
    } else if (auto* gradient = std::get_if<Gradient>(&value)) {
      for (Type& type : gradient->call.types) type = replaced(frame, type);
    } else if (auto* node = std::get_if<Call>(&value)) {
      for (Type& type : node->types) type = replaced(frame, type);
      return call(std::move(*node), frame.source->info(old.var).name, type_of(frame, old.var));
    }
    if (const std::optional<Atom> known = known_value(value)) return *known;
    const Symbol name = frame.source->info(old.var).name;
    TENON_TRY_ASSIGN(atom, builder_.bind(value, name));
    record(value, *atom);
    return *atom;
  }

  // What a value is where its operands are known.
  std::optional<Atom> known_value(const Value& value) {
    if (auto* project = std::get_if<Project>(&value)) {
      const Value* data = data_of(project->tuple);
      if (auto* tuple = data ? std::get_if<Tuple>(data) : nullptr) return tuple->fields[project->index];
    } else if (auto* read = std::get_if<ReadReference>(&value)) {
      auto* var = std::get_if<VarId>(&read->reference);
      if (const Atom* content = var ? references_.find(*var) : nullptr) return *content;
    } else if (auto* apply = std::get_if<Apply>(&value)) {
      constexpr size_t kMaxBytes = 256;  // scalars and small vectors, on which programs branch
      const auto small = [&](const Atom& arg) {
        const runtime::Tensor* constant = constant_of(builder_.module(), arg);
        return constant && constant->bytes().size() <= kMaxBytes;
      };
      if (std::ranges::all_of(apply->args, small)) return fold(builder_, value, kMaxBytes);
    }
    return std::nullopt;
  }
  void record(const Value& value, const Atom& atom) {
    if (auto* make = std::get_if<MakeReference>(&value)) {
      references_.set(std::get<VarId>(atom), make->value);
      made_.insert(std::get<VarId>(atom));
    } else if (auto* write = std::get_if<WriteReference>(&value)) {
      auto* var = std::get_if<VarId>(&write->reference);
      if (var && made_.contains(*var)) references_.set(*var, write->value);
      else references_.forget_all();  // any reference may be this one
    } else if (auto* read = std::get_if<ReadReference>(&value)) {
      auto* var = std::get_if<VarId>(&read->reference);
      if (var && made_.contains(*var)) references_.set(*var, atom);
    }
  }

  // --- Closures.

  Expected<Atom> lambda(Frame& frame, VarId old, const Lambda& lambda) {
    const VarId self = declare(frame, old);
    Lambda copy{lambda.params, replaced(frame, lambda.result), {}};
    for (VarId& param : copy.params) param = declare(frame, param);
    // The references have other contents when the closure is called.
    KnownReferences outside = std::exchange(references_, {});
    ++lambdas_;
    auto body = arm(frame, lambda.body[0]);
    --lambdas_;
    references_ = std::move(outside);
    TENON_TRY(body);
    copy.body.push_back(std::move(*body));
    builder_.at(frame.source->info(old).span);
    TENON_TRY_ASSIGN(bound, builder_.bind_to(self, std::move(copy)));
    auto captured = std::make_shared<Frame>(Frame{frame.source, {}, frame.names, false});
    for (const VarId var : program_.captured(lambda)) captured->atoms.emplace(var, frame.atoms.at(var));
    captured->atoms.insert_or_assign(old, Atom(self));
    closures_.insert_or_assign(self, Closure{&lambda, old, std::move(captured)});
    return *bound;
  }

  // A block that the residual program evaluates under an unknown condition, or later.
  Expected<Block> arm(Frame& frame, const Block& source) {
    builder_.open();
    ++branches_, ++depth_;
    auto result = block(frame, source);
    --branches_, --depth_;
    TENON_TRY(result);
    return builder_.close(*result);
  }

  // --- Branches.

  Expected<Atom> branch(Frame& frame, VarId old, const If& node) {
    const Atom condition = renamed(frame, node.condition);
    if (const auto known = condition_of(condition)) return block(frame, node.arms[*known ? 0 : 1]);
    If copy{condition, {}};
    std::vector<VarId> changed;
    for (const bool taken : {true, false}) {
      const KnownReferences::Checkpoint checkpoint = references_.checkpoint();
      auto* var = std::get_if<VarId>(&condition);
      if (var) conditions_.insert_or_assign(*var, taken);
      auto block = arm(frame, node.arms[taken ? 0 : 1]);
      if (var) conditions_.erase(*var);
      TENON_TRY(block);
      std::ranges::copy(references_.undo(checkpoint), std::back_inserter(changed));
      copy.arms.push_back(std::move(*block));
    }
    return joined(frame, old, std::move(copy), changed);
  }
  Expected<Atom> joined(Frame& frame, VarId old, Value value, const std::vector<VarId>& changed) {
    for (const VarId reference : changed) references_.forget(reference);
    const VarInfo& info = frame.source->info(old);
    builder_.at(info.span);
    return builder_.bind(std::move(value), info.name);
  }

  Expected<Atom> match(Frame& frame, VarId old, const Case& node) {
    const Atom subject = renamed(frame, node.subject);
    for (const Arm& arm : node.arms) {
      std::vector<std::pair<VarId, Atom>> parts;
      const std::optional<bool> matches = matching(arm.pattern, subject, parts);
      if (!matches) break;
      if (!*matches) continue;
      for (const auto& [var, part] : parts) {
        TENON_TRY_ASSIGN(atom, typed(part, type_of(frame, var)));
        frame.atoms.insert_or_assign(var, *atom);
      }
      return block(frame, arm.block);
    }
    Case copy{subject, {}};
    std::vector<VarId> changed;
    for (const Arm& next : node.arms) {
      Arm arm_copy{next.pattern, {}};
      for_each_variable(arm_copy.pattern, [&](VarId& var) { var = declare(frame, var); });
      std::vector<VarId> learned;
      learn(arm_copy.pattern, subject, learned);
      const KnownReferences::Checkpoint checkpoint = references_.checkpoint();
      auto block = arm(frame, next.block);
      for (const VarId var : learned) matched_.erase(var);
      TENON_TRY(block);
      std::ranges::copy(references_.undo(checkpoint), std::back_inserter(changed));
      arm_copy.block = std::move(*block);
      copy.arms.push_back(std::move(arm_copy));
    }
    return joined(frame, old, std::move(copy), changed);
  }
  // Whether the atom matches the pattern, and the parts that the variables of the pattern are; std::nullopt where this
  // is not known.
  std::optional<bool> matching(const MatchPattern& pattern, const Atom& atom,
                               std::vector<std::pair<VarId, Atom>>& parts) const {
    if (std::holds_alternative<AnyPattern>(pattern.form)) return true;
    if (auto* bind = std::get_if<BindPattern>(&pattern.form)) {
      parts.emplace_back(bind->var, atom);
      return true;
    }
    const Value* data = data_of(atom);
    if (!data) return std::nullopt;
    if (auto* tuple = std::get_if<TuplePattern>(&pattern.form))
      return matching(tuple->fields, std::get<Tuple>(*data).fields, parts);
    const auto& wanted = std::get<ConstructPattern>(pattern.form);
    const auto& found = std::get<Construct>(*data);
    if (wanted.constructor != found.constructor) return false;
    return matching(wanted.fields, found.fields, parts);
  }
  std::optional<bool> matching(const std::vector<MatchPattern>& patterns, const Atoms& atoms,
                               std::vector<std::pair<VarId, Atom>>& parts) const {
    bool known = true;
    for (size_t i = 0; i < patterns.size(); ++i) {
      const std::optional<bool> matches = matching(patterns[i], atoms[i], parts);
      if (matches == false) return false;
      known &= matches.has_value();
    }
    return known ? std::optional(true) : std::nullopt;
  }
  // Records what an arm knows of its subject: the constructor, where the pattern names each of its fields.
  void learn(const MatchPattern& pattern, const Atom& atom, std::vector<VarId>& learned) {
    const auto named = [](const MatchPattern& field) { return std::holds_alternative<BindPattern>(field.form); };
    const auto atoms_of = [](const std::vector<MatchPattern>& fields) {
      Atoms atoms;
      for (const MatchPattern& field : fields) atoms.emplace_back(std::get<BindPattern>(field.form).var);
      return atoms;
    };
    auto* var = std::get_if<VarId>(&atom);
    if (!var) return;
    if (auto* tuple = std::get_if<TuplePattern>(&pattern.form)) {
      const Value* data = data_of(atom);
      auto* known = data ? std::get_if<Tuple>(data) : nullptr;
      if (!known) return;
      const Atoms fields = known->fields;
      for (size_t i = 0; i < fields.size(); ++i) learn(tuple->fields[i], fields[i], learned);
    } else if (auto* construct = std::get_if<ConstructPattern>(&pattern.form)) {
      if (!std::ranges::all_of(construct->fields, named) || data_of(atom)) return;
      const Type type = result_.type(*var);
      if (!type.adt()) return;
      matched_.emplace(*var, Construct{construct->constructor, type.adt()->args, atoms_of(construct->fields)});
      learned.push_back(*var);
    }
  }

  // --- Calls.

  Expected<Atom> call(Call call, Symbol name, Type wanted) {
    TENON_TRY_ASSIGN(unfolded, unfold(call, wanted));
    if (*unfolded) return **unfolded;
    auto* symbol = std::get_if<Symbol>(&call.callee);
    if (!symbol || program_.effects.of_function(*symbol) == Effect::kState) references_.forget_all();
    return builder_.bind(std::move(call), name);
  }

  Expected<std::optional<Atom>> unfold(const Call& call, Type wanted) {
    if (auto* symbol = std::get_if<Symbol>(&call.callee)) {
      const auto found = program_.sources.find(*symbol);
      if (found == program_.sources.end()) return std::nullopt;
      const Function& callee = found->second;
      if (!callee.composite.empty() || !callee.target.empty()) return std::nullopt;  // it represents a kernel
      const bool recursive = program_.calls.recursive.contains(*symbol);
      const bool single = program_.calls.sites[*symbol] == 1;
      TENON_TRY_ASSIGN(worthwhile, is_worthwhile(callee.body, call.args, recursive, single));
      if (!*worthwhile) return std::nullopt;
      auto names = instantiate(context_, program_.module, result_, callee, call);
      if (!names || !names->bounds_hold) return std::nullopt;
      Frame frame{&callee, {}, std::move(*names), false};
      return unfold(frame, callee.params, call.args, callee.body, wanted);
    }
    auto* var = std::get_if<VarId>(&call.callee);
    const auto found = var ? closures_.find(*var) : closures_.end();
    if (found == closures_.end()) return std::nullopt;
    const Closure closure = found->second;
    const Block& body = closure.lambda->body[0];
    TENON_TRY_ASSIGN(worthwhile, is_worthwhile(body, call.args, calls_itself(closure), true));
    if (!*worthwhile) return std::nullopt;
    Frame frame = *closure.captured;
    return unfold(frame, closure.lambda->params, call.args, body, wanted);
  }
  bool calls_itself(const Closure& closure) const {
    const std::vector<VarId>& captured = program_.captured(*closure.lambda);
    return std::ranges::find(captured, closure.source_var) != captured.end();
  }

  // Whether the body is to be evaluated in place of the call. An error ends the unfolding that it belongs to.
  Expected<bool> is_worthwhile(const Block& body, const Atoms& args, bool recursive, bool single) {
    const bool informed = std::ranges::any_of(args, [&](const Atom& arg) { return is_known(arg); });
    const BodyInfo& info = program_.body(body);
    if (depth_ > 0 && depth_ + info.depth > kMaxBlockDepth) return false;
    const auto last = std::ranges::find(active_.rbegin(), active_.rend(), &body, &Activation::body);
    const bool exhausted = fuel_ <= info.bindings || active_.size() >= program_.limits.unfolding_depth;
    if (last != active_.rend() && last->lambdas < lambdas_) return false;  // the closure may never be called
    if (last != active_.rend() && last->branches < branches_) {
      return abandon(static_cast<size_t>(active_.rend() - last) - 1);
    }
    if (recursive || last != active_.rend()) {
      if (!exhausted) return informed && !failed_.contains(known(body, args));
      const auto first = std::ranges::find(active_, &body, &Activation::body);
      return first == active_.end() ? Expected<bool>(false) : abandon(static_cast<size_t>(first - active_.begin()));
    }
    if (exhausted) return false;
    if (informed || single) return true;
    if (info.bindings > program_.limits.copied_bindings || info.bindings >= plain_fuel_) return false;
    plain_fuel_ -= info.bindings + 1;
    return true;
  }
  Known known(const Block& body, const Atoms& args) const {
    Known known{&body, {}};
    for (const Atom& arg : args) known.args.push_back(is_known(arg));
    return known;
  }
  Expected<bool> abandon(size_t activation) {
    abandoned_ = activation;
    return error("the unfolding is abandoned");
  }

  Expected<std::optional<Atom>> unfold(Frame& frame, const std::vector<VarId>& params, const Atoms& args,
                                       const Block& body, Type wanted) {
    const Builder::Checkpoint checkpoint = builder_.checkpoint();
    const KnownReferences::Checkpoint references = references_.checkpoint();
    const size_t depth = depth_, branches = branches_, lambdas = lambdas_;
    const SpanId span = builder_.span();
    active_.push_back({&body, branches_, lambdas_});
    Expected<Atom> result = evaluate(frame, params, args, body, wanted);
    active_.pop_back();
    builder_.at(span);
    if (result) return std::optional(*result);
    depth_ = depth, branches_ = branches, lambdas_ = lambdas;
    builder_.rollback(checkpoint);
    references_.undo(references);
    forget_from(static_cast<VarId>(checkpoint.vars));
    if (abandoned_ && *abandoned_ < active_.size()) return std::unexpected(std::move(result.error()));
    abandoned_.reset();
    failed_.insert(known(body, args));
    return std::nullopt;
  }
  Expected<Atom> evaluate(Frame& frame, const std::vector<VarId>& params, const Atoms& args, const Block& body,
                          Type wanted) {
    for (size_t i = 0; i < params.size(); ++i) {
      TENON_TRY_ASSIGN(arg, typed(args[i], type_of(frame, params[i])));
      frame.atoms.insert_or_assign(params[i], *arg);
    }
    TENON_TRY_ASSIGN(result, block(frame, body));
    return typed(*result, wanted);
  }
  // Forgets the variables that a rollback has discarded: their ids are used again.
  void forget_from(VarId var) {
    closures_.erase(closures_.lower_bound(var), closures_.end());
    matched_.erase(matched_.lower_bound(var), matched_.end());
    conditions_.erase(conditions_.lower_bound(var), conditions_.end());
    made_.erase(made_.lower_bound(var), made_.end());
  }

  Program& program_;
  Context& context_;
  const Function& from_;
  Function result_;
  Builder builder_;
  ResultNames names_;
  std::set<Symbol> used_dims_;
  std::map<VarId, Closure> closures_;
  std::map<VarId, Value> matched_;    // subjects of the arms around the current block
  std::map<VarId, bool> conditions_;  // of the arms around the current block
  std::set<VarId> made_;              // references that the function itself makes
  KnownReferences references_;
  std::vector<Activation> active_;
  std::set<Known> failed_;           // recursions that do not end, or that unknown data control
  std::optional<size_t> abandoned_;  // the activation that an error ends; none: the innermost one
  size_t branches_ = 0;              // unknown branches and lambdas around the current block
  size_t lambdas_ = 0;               // of these, the lambdas
  size_t depth_ = 0;                 // of the current block
  size_t fuel_ = 0, plain_fuel_ = 0;
};

// @main first, so that it gets its fuel.
std::vector<Symbol> order_of(Context& context, const Module& module) {
  std::vector<Symbol> order;
  const Symbol main = context.symbol("main");
  if (module.function(main)) order.push_back(main);
  for_each_function(module, [&](Symbol name, const Function&) {
    if (name != main) order.push_back(name);
  });
  return order;
}

}  // namespace

Expected<Module> partial_evaluate(Context& context, Module module, const PartialEvaluationLimits& limits) {
  const Effects effects(context, module);
  Program program{context, module, {}, call_order(module), effects, limits};
  program.fuel = 5 * limits.base_steps;
  for_each_function(module, [&](Symbol name, const Function& function) {
    program.sources.emplace(name, function);
    program.fuel += limits.steps * count_bindings(function.body);
  });
  for (const Symbol name : order_of(context, module)) {
    const Function& source = program.sources.at(name);
    if (!source.composite.empty() || !source.target.empty()) continue;
    Expected<Function> result = Evaluator(program, source).run();
    // With a constant operand an operator may be ill-typed which fails at run time: the function stays as it is.
    if (result) *module.function(name) = std::move(*result);
  }
  TENON_TRY_ASSIGN(live, dead_code(context, std::move(module)));
  return dead_references(context, std::move(*live));
}

Pass partial_evaluate_pass() {
  return {"partial_evaluate", "Evaluates what is known: calls, closures, branches, data, references, recursion.",
          [](Context& context, Module module) { return partial_evaluate(context, std::move(module)); }};
}

}  // namespace tenon::compiler
