// The forward pass of a function: its own code, with branches and calls that also return tapes.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/gradient/cells.h"
#include "compiler/gradient/reverse.h"
#include "compiler/ir/adjoint.h"
#include "support/try.h"

namespace tenon::compiler::gradient {
namespace {

// The function with a variable for each part of a value that a pattern passes over, where the adjoint of the part is a
// zero of a size that only the part tells.
class NamedWildcards {
 public:
  NamedWildcards(Context& context, const Module& module, Function& function)
      : context_(context), module_(module), function_(function) {
    for_each_binding(function.body, [&](Binding& binding) {
      auto* match = std::get_if<Case>(&binding.value);
      auto* subject = match ? std::get_if<VarId>(&match->subject) : nullptr;
      if (!subject) return;
      for (Arm& arm : match->arms) {
        if (!std::holds_alternative<AnyPattern>(arm.pattern.form)) pattern(arm.pattern, function_.type(*subject));
      }
    });
  }

 private:
  void pattern(MatchPattern& pattern, Type subject) {
    if (std::holds_alternative<AnyPattern>(pattern.form) && has_erased(subject)) {
      pattern.form = BindPattern{static_cast<VarId>(function_.vars.size())};
      function_.vars.push_back({subject, Symbol{}, SpanId{}});
    } else if (auto* construct = std::get_if<ConstructPattern>(&pattern.form)) {
      const std::vector<Type> types = field_types(context_, module_, construct->constructor, subject);
      for (size_t i = 0; i < types.size(); ++i) this->pattern(construct->fields[i], types[i]);
    } else if (auto* tuple = std::get_if<TuplePattern>(&pattern.form)) {
      for (size_t i = 0; i < tuple->fields.size(); ++i) this->pattern(tuple->fields[i], subject.tuple()->fields[i]);
    }
  }

  Context& context_;
  const Module& module_;
  Function& function_;
};

Function with_named_wildcards(Context& context, const Module& module, Function function) {
  NamedWildcards(context, module, function);
  return function;
}

}  // namespace

std::vector<Type> field_types(Context& context, const Module& module, Symbol constructor, Type type) {
  const auto decl = module.constructor(constructor);
  std::map<Symbol, Type> args;
  for (size_t i = 0; i < decl->adt->params.size(); ++i) args.emplace(decl->adt->params[i], type.adt()->args[i]);
  std::vector<Type> types;
  for (const Type field : decl->constructor().fields) types.push_back(context.substitute(field, {}, args));
  return types;
}

Reverse::Reverse(Context& context, Module& module, Tables& tables, PassesOfCallees& callees, Symbol name,
                 const std::vector<bool>& active)
    : context_(context),
      module_(module),
      tables_(tables),
      callees_(callees),
      name_(name),
      from_(with_named_wildcards(context, module, *module.function(name))),
      wrt_(active),
      active_(tables.activity.variables(name, active)),
      builder_(context, module, out_),
      adjoints_(builder_, tables.adders, tables.dims) {
  active_.resize(from_.vars.size());
  out_.dims = from_.dims;
  out_.bounds = from_.bounds;
  for (const VarId param : from_.params) {
    at(param);
    renamed_.emplace(param, builder_.param(type(param), context_.name(from_.info(param).name)));
  }
}

bool Reverse::active(const Atom& atom) const {
  const auto* var = std::get_if<VarId>(&atom);
  return var && active_[index(*var)];
}

// Whether the value is a call that may use or make a reference to floats, or a branch with one.
bool Reverse::has_effects(const Binding& binding) const {
  const Value& value = binding.value;
  if (auto* call = std::get_if<Call>(&value)) {
    const auto is_cell = [&](VarId var) { return has_reference_to_floats(context_, module_, type(var)); };
    return is_cell(binding.var) || std::ranges::any_of(call->args, [&](const Atom& arg) {
             const auto* var = std::get_if<VarId>(&arg);
             return var && is_cell(*var);
           });
  }
  bool found = false;
  if (std::holds_alternative<If>(value) || std::holds_alternative<Case>(value)) {
    for_each_block(value, [&](const Block& block) {
      for (const Binding& inner : block.bindings) found |= has_effects(inner);
    });
  }
  return found;
}

Atom Reverse::renamed(const Atom& atom) const {
  const auto* var = std::get_if<VarId>(&atom);
  return var ? renamed_.at(*var) : atom;
}

VarId Reverse::declare(VarId old) {
  at(old);
  const VarId var = builder_.declare(type(old), context_.name(from_.info(old).name));
  renamed_.insert_or_assign(old, var);
  return var;
}

Expected<Block> Reverse::copy(const Block& block) {
  builder_.open();
  for (const Binding& binding : block.bindings) TENON_TRY(copy(binding));
  return builder_.close(renamed(block.result));
}

// A binding that no derivative passes through.
Status Reverse::copy(const Binding& old) {
  context_.visit();
  Value value = old.value;
  for_each_operand(value, [&](Atom& atom) { rename(atom); });
  auto* lambda = std::get_if<Lambda>(&value);
  std::optional<VarId> self;
  if (lambda) {
    self = declare(old.var);
    for (VarId& param : lambda->params) param = declare(param);
  }
  if (auto* match = std::get_if<Case>(&value)) {
    for (Arm& arm : match->arms) for_each_variable(arm.pattern, [&](VarId& var) { var = declare(var); });
  }
  Status status;
  for_each_block(value, [&](Block& block) {
    if (!status) return;
    auto copied = copy(Block(block));
    if (copied) block = std::move(*copied);
    else status = std::unexpected(std::move(copied.error()));
  });
  TENON_TRY(status);
  at(old.var);
  const Symbol name = from_.info(old.var).name;
  TENON_TRY_ASSIGN(atom, self ? builder_.bind_to(*self, std::move(value)) : builder_.bind(std::move(value), name));
  renamed_.insert_or_assign(old.var, *atom);
  return {};
}

Status Reverse::forward(const Block& block, std::vector<Record>& records) {
  for (const Binding& binding : block.bindings) {
    const bool effects = has_effects(binding);
    if (!active_[index(binding.var)] && !effects) {
      TENON_TRY(copy(binding));
      continue;
    }
    Record record{&binding, {}, {}, {}, {}, {}, effects, {}};
    const auto* call = std::get_if<Call>(&binding.value);
    const auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const Function* function = callee ? module_.function(*callee) : nullptr;
    if (function && function->gradient) {
      record.gradient = function->gradient;
      TENON_TRY(copy(binding));
    } else if (function) {
      TENON_TRY(forward_call(binding, record));
    } else if (std::holds_alternative<If>(binding.value) || std::holds_alternative<Case>(binding.value)) {
      TENON_TRY(forward_branch(binding, record));
    } else {
      TENON_TRY(copy(binding));
    }
    record.value = renamed(binding.var);
    records.push_back(std::move(record));
  }
  return {};
}

Status Reverse::forward_call(const Binding& binding, Record& record) {
  const auto& call = std::get<Call>(binding.value);
  for (const Atom& arg : call.args) record.active.push_back(active(arg));
  TENON_TRY_ASSIGN(passes, callees_.passes(std::get<Symbol>(call.callee), record.active));
  Atoms args;
  for (const Atom& arg : call.args) args.push_back(renamed(arg));
  at(binding.var);
  TENON_TRY_ASSIGN(pair, builder_.bind(Call{passes->forward, std::move(args), call.types}, Symbol{}));
  TENON_TRY_ASSIGN(value, builder_.project(*pair, 0, context_.name(from_.info(binding.var).name)));
  TENON_TRY_ASSIGN(tape, builder_.project(*pair, 1));
  renamed_.insert_or_assign(binding.var, *value);
  record.tape = *tape;
  record.callee = std::move(*passes);
  return {};
}

// The block of an arm, whose result is a pair of the arm's result and a tape.
Expected<Block> Reverse::forward_arm(const Block& block, ForwardArm& arm) {
  builder_.open();
  TENON_TRY(forward(block, arm.records));
  TENON_TRY_ASSIGN(tape, builder_.bind(Construct{arm.constructor, {}, {}}, Symbol{}));
  arm.construct = std::get<VarId>(*tape);
  TENON_TRY_ASSIGN(pair, builder_.tuple({renamed(block.result), *tape}));
  arm.result = block.result;
  Block copied = builder_.close(*pair);
  for (const Binding& binding : copied.bindings) {
    arm.vars.insert(binding.var);
    if (auto* cast = std::get_if<Cast>(&binding.value)) arm.dims.insert(cast->fresh.begin(), cast->fresh.end());
  }
  return copied;
}

Status Reverse::forward_branch(const Binding& binding, Record& record) {
  const auto* branch = std::get_if<If>(&binding.value);
  const auto* match = std::get_if<Case>(&binding.value);
  const size_t count = branch ? branch->arms.size() : match->arms.size();
  const TapeType tape = declare_tape(context_, module_, context_.name(name_), count);
  record.arms.resize(count);
  Value value;
  if (branch) {
    If copied{renamed(branch->condition), {}};
    for (size_t i = 0; i < count; ++i) {
      record.arms[i].constructor = tape.constructors[i];
      TENON_TRY_ASSIGN(block, forward_arm(branch->arms[i], record.arms[i]));
      copied.arms.push_back(std::move(*block));
    }
    value = std::move(copied);
  } else {
    Case copied{renamed(match->subject), {}};
    for (size_t i = 0; i < count; ++i) {
      ForwardArm& arm = record.arms[i];
      arm.constructor = tape.constructors[i];
      arm.pattern = &match->arms[i].pattern;
      MatchPattern pattern = match->arms[i].pattern;
      for_each_variable(pattern, [&](VarId& var) { var = declare(var); });
      TENON_TRY_ASSIGN(block, forward_arm(match->arms[i].block, arm));
      for_each_variable(std::as_const(pattern), [&](VarId var) { arm.vars.insert(var); });
      copied.arms.push_back({std::move(pattern), std::move(*block)});
    }
    value = std::move(copied);
  }
  at(binding.var);
  TENON_TRY_ASSIGN(pair, builder_.bind(std::move(value), Symbol{}));
  TENON_TRY_ASSIGN(result, builder_.project(*pair, 0, context_.name(from_.info(binding.var).name)));
  TENON_TRY_ASSIGN(tape_value, builder_.project(*pair, 1));
  renamed_.insert_or_assign(binding.var, *result);
  record.tape = *tape_value;
  return {};
}

// Fills in the fields of the tapes, which are known when the backward pass has been written.
void Reverse::set_fields(Block& block) {
  std::vector<Binding> bindings;
  for (Binding& binding : block.bindings) {
    for_each_block(binding.value, [&](Block& inner) { set_fields(inner); });
    if (const auto found = fields_.find(binding.var); found != fields_.end()) {
      std::ranges::copy(found->second.bindings, std::back_inserter(bindings));
      std::get<Construct>(binding.value).fields = found->second.fields;
    }
    bindings.push_back(std::move(binding));
  }
  block.bindings = std::move(bindings);
}

}  // namespace tenon::compiler::gradient
