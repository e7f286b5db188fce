// The backward pass of a function: the bindings of the forward pass from the last to the first.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/gradient/reverse.h"
#include "compiler/ir/adjoint.h"
#include "compiler/ir/gradients.h"
#include "support/try.h"

namespace tenon::compiler::gradient {

void Reverse::unsupported(VarId var, std::string what, std::string help) {
  std::string where = module_.span(from_.info(var).span).str();
  if (where.empty()) where = fmt::format("@{}", context_.name(name_));
  tables_.problems.push_back(error(std::move(what), std::move(where), std::move(help)).error());
}

Status Reverse::accumulate(const Atom& atom, const Adjoint& adjoint, Adjoints& adjoints) {
  if (!active(atom)) return {};
  return adjoints_.add(adjoints[std::get<VarId>(atom)], adjoint);
}

Status Reverse::backward(const std::vector<Record>& records, Adjoints& adjoints) {
  for (size_t i = records.size(); i-- > 0;) {
    const Record& record = records[i];
    const auto found = adjoints.find(record.binding->var);
    Adjoint adjoint;
    if (found != adjoints.end()) {
      adjoint = std::move(found->second);
      adjoints.erase(found);
    }
    if (adjoint.zero() && !record.effects) continue;
    context_.visit();
    at(record.binding->var);
    struct Visitor {
      Reverse& self;
      const Record& record;
      const Adjoint& adjoint;
      Adjoints& adjoints;

      VarId var() const { return record.binding->var; }
      Status unsupported(std::string what, std::string help) const {
        self.unsupported(var(), std::move(what), std::move(help));
        return {};
      }
      Status operator()(const Apply&) const { return self.apply(record, adjoint, adjoints); }
      Status operator()(const Call& call) const {
        if (record.gradient) return self.own_gradient(record, adjoint, adjoints);
        if (record.callee) return self.call(record, adjoint, adjoints);
        if (auto* symbol = std::get_if<Symbol>(&call.callee)) {
          return unsupported(fmt::format("@{} has no derivative: it is a {}", self.context_.name(*symbol),
                                         self.module_.library(*symbol) ? "library function" : "loop function"),
                             "write it with operators, or stop the gradient before it");
        }
        return unsupported("the callee is not known where its derivative is needed", "");
      }
      Status operator()(const Tuple& tuple) const {
        for (size_t i = 0; i < tuple.fields.size(); ++i)
          TENON_TRY(self.accumulate(tuple.fields[i], adjoint.fields[i], adjoints));
        return {};
      }
      Status operator()(const Project& project) const {
        const Type type = self.type(std::get<VarId>(project.tuple));
        Adjoint whole{std::nullopt, std::vector<Adjoint>(type.tuple()->fields.size())};
        whole.fields[project.index] = adjoint;
        return self.accumulate(project.tuple, whole, adjoints);
      }
      Status operator()(const Construct&) const { return self.construct(record, adjoint, adjoints); }
      Status operator()(const If&) const { return self.branch(record, adjoint, adjoints); }
      Status operator()(const Case&) const { return self.branch(record, adjoint, adjoints); }
      Status operator()(const Cast& cast) const { return self.accumulate(cast.value, adjoint, adjoints); }
      Status operator()(const Lambda&) const { return {}; }
      Status operator()(const DimValue&) const { return {}; }
      Status operator()(const Gradient&) const {
        return error("a gradient is expanded before the function around it", "", "", Fault::kInternal);
      }
      Status operator()(const MakeReference&) const { return {}; }
      Status operator()(const ReadReference&) const {
        return unsupported("a second derivative of a value that is read from a reference is needed",
                           "pass the value as an argument and a result");
      }
      Status operator()(const WriteReference&) const { return {}; }
    };
    TENON_TRY(std::visit(Visitor{*this, record, adjoint, adjoints}, record.binding->value));
  }
  return {};
}

Status Reverse::apply(const Record& record, const Adjoint& adjoint, Adjoints& adjoints) {
  const auto& old = std::get<Apply>(record.binding->value);
  if (!old.op->gradient) {
    const std::string_view reason = old.op->gradient_note;
    unsupported(record.binding->var,
                fmt::format("{} has no gradient{}{}", old.op->name, reason.empty() ? "" : ": ", reason), "");
    return {};
  }
  for (const auto& [name, value] : old.computed) {
    const auto* operand = std::get_if<Atom>(&value);
    if (!operand || !active(*operand)) continue;
    unsupported(record.binding->var,
                fmt::format("{} has no gradient: its attribute {} is differentiated", old.op->name, name),
                "compute it of values that are not differentiated, or write the operator with others");
    return {};
  }
  Apply apply = old;
  for (Atom& arg : apply.args) rename(arg);
  for (auto& [name, value] : apply.computed) {
    if (auto* operand = std::get_if<Atom>(&value)) rename(*operand);
  }
  std::vector<bool> wanted;
  for (const Atom& arg : old.args) wanted.push_back(active(arg));
  const Type result = type(record.binding->var);
  std::vector<std::optional<Atom>> cotangents;
  const TupleType* tuple = result.tuple();
  for (uint32_t i = 0; tuple && i < tuple->fields.size(); ++i) {
    cotangents.emplace_back();
    if (adjoint.fields[i].zero()) continue;
    TENON_TRY_ASSIGN(field, adjoints_.materialize(adjoint.fields[i], tuple->fields[i], std::nullopt));
    cotangents.back() = *field;
  }
  if (!tuple) {
    TENON_TRY_ASSIGN(cotangent, adjoints_.materialize(adjoint, result, record.value));
    cotangents.emplace_back(*cotangent);
  }
  GradientBuilder rule(builder_, apply, record.value, std::move(cotangents), wanted);
  TENON_TRY(old.op->gradient(rule));
  TENON_TRY(rule.status());
  for (size_t i = 0; i < old.args.size(); ++i) {
    if (rule.adjoint(i)) TENON_TRY(accumulate(old.args[i], Adjoint{rule.adjoint(i)->atom(), {}}, adjoints));
  }
  return {};
}

Status Reverse::call(const Record& record, const Adjoint& adjoint, Adjoints& adjoints) {
  const auto& call = std::get<Call>(record.binding->value);
  TENON_TRY_ASSIGN(cotangent, adjoints_.materialize(adjoint, type(record.binding->var), record.value));
  TENON_TRY_ASSIGN(open, opened(builder_, *cotangent, tables_.dims));
  TENON_TRY_ASSIGN(all, builder_.call(record.callee->backward, {record.tape, *open}));
  uint32_t field = 0;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!record.active[i]) continue;
    TENON_TRY_ASSIGN(value, builder_.project(*all, field++));
    TENON_TRY_ASSIGN(parts, adjoints_.parts(*value));
    TENON_TRY(accumulate(call.args[i], *parts, adjoints));
  }
  return {};
}

// The function of the adjoints, of the arguments, the result and its adjoint.
Status Reverse::own_gradient(const Record& record, const Adjoint& adjoint, Adjoints& adjoints) {
  const auto& call = std::get<Call>(record.binding->value);
  TENON_TRY_ASSIGN(cotangent, adjoints_.materialize(adjoint, type(record.binding->var), record.value));
  Atoms args;
  for (const Atom& arg : call.args) args.push_back(renamed(arg));
  args.push_back(record.value);
  args.push_back(*cotangent);
  TENON_TRY_ASSIGN(all, builder_.call(*record.gradient, std::move(args)));
  for (uint32_t i = 0; i < call.args.size(); ++i) {
    if (!active(call.args[i])) continue;
    TENON_TRY_ASSIGN(value, builder_.project(*all, i));
    const Type wanted = adjoint_type(context_, module_, type(std::get<VarId>(call.args[i])));
    TENON_TRY_ASSIGN(fitting, adjoints_.cast(*value, wanted));
    TENON_TRY_ASSIGN(parts, adjoints_.parts(*fitting));
    TENON_TRY(accumulate(call.args[i], *parts, adjoints));
  }
  return {};
}

// match adjoint { CAdjoint(a, ...) => (a, ...), _ => (zeros) }
Status Reverse::construct(const Record& record, const Adjoint& adjoint, Adjoints& adjoints) {
  const auto& construct = std::get<Construct>(record.binding->value);
  TENON_TRY_ASSIGN(whole, adjoints_.materialize(adjoint, type(record.binding->var), record.value));
  const Type adjoint_of = adjoint_type(context_, module_, type(record.binding->var));
  const Symbol constructor = adjoint_name(context_, construct.constructor);
  const std::vector<Type> types = field_types(context_, module_, constructor, adjoint_of);
  Case match{*whole, {}};
  ConstructPattern pattern{constructor, {}};
  Atoms parts, zeros;
  std::vector<size_t> fields;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!active(construct.fields[i])) {
      pattern.fields.push_back({AnyPattern{}});
      continue;
    }
    fields.push_back(i);
    const VarId var = builder_.declare(types[i], "");
    pattern.fields.push_back({BindPattern{var}});
    parts.emplace_back(var);
  }
  builder_.open();
  TENON_TRY_ASSIGN(found, builder_.tuple(parts));
  match.arms.push_back({MatchPattern{std::move(pattern)}, builder_.close(*found)});
  builder_.open();
  for (const size_t i : fields) {
    const VarId field = std::get<VarId>(construct.fields[i]);
    TENON_TRY_ASSIGN(zero, adjoints_.materialize({}, type(field), renamed(field)));
    TENON_TRY_ASSIGN(fitting, adjoints_.cast(*zero, types[i]));
    zeros.push_back(*fitting);
  }
  TENON_TRY_ASSIGN(none, builder_.tuple(zeros));
  match.arms.push_back({MatchPattern{AnyPattern{}}, builder_.close(*none)});
  TENON_TRY_ASSIGN(all, builder_.bind(std::move(match), Symbol{}));
  for (uint32_t k = 0; k < fields.size(); ++k) {
    TENON_TRY_ASSIGN(value, builder_.project(*all, k));
    TENON_TRY_ASSIGN(part, adjoints_.parts(*value));
    TENON_TRY(accumulate(construct.fields[fields[k]], *part, adjoints));
  }
  return {};
}

// The adjoint of a matched value from those of the pattern's variables.
Expected<Adjoint> Reverse::pattern_adjoint(const MatchPattern& pattern, Type type, Adjoints& adjoints) {
  if (auto* bind = std::get_if<BindPattern>(&pattern.form)) {
    const auto found = adjoints.find(bind->var);
    if (found == adjoints.end()) return Adjoint{};
    Adjoint adjoint = std::move(found->second);
    adjoints.erase(found);
    return adjoint;
  }
  if (auto* tuple = std::get_if<TuplePattern>(&pattern.form)) {
    Adjoint adjoint;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      TENON_TRY_ASSIGN(field, pattern_adjoint(tuple->fields[i], type.tuple()->fields[i], adjoints));
      adjoint.fields.push_back(std::move(*field));
    }
    return adjoint;
  }
  auto* construct = std::get_if<ConstructPattern>(&pattern.form);
  if (!construct) return Adjoint{};
  const Type whole = adjoint_type(context_, module_, type);
  if (!whole.adt()) return Adjoint{};
  const std::vector<Type> types = field_types(context_, module_, construct->constructor, type);
  std::vector<Adjoint> fields;
  for (size_t i = 0; i < types.size(); ++i) {
    TENON_TRY_ASSIGN(field, pattern_adjoint(construct->fields[i], types[i], adjoints));
    fields.push_back(std::move(*field));
  }
  if (std::ranges::all_of(fields, &Adjoint::zero)) return Adjoint{};
  const Symbol constructor = adjoint_name(context_, construct->constructor);
  const std::vector<Type> wanted = field_types(context_, module_, constructor, whole);
  Construct made{constructor, whole.adt()->args, {}};
  for (size_t i = 0; i < types.size(); ++i) {
    auto* bind = std::get_if<BindPattern>(&construct->fields[i].form);
    const std::optional<Atom> primal = bind ? std::optional(renamed(bind->var)) : std::nullopt;
    TENON_TRY_ASSIGN(value, adjoints_.materialize(fields[i], types[i], primal));
    TENON_TRY_ASSIGN(fitting, adjoints_.cast(*value, wanted[i]));
    made.fields.push_back(*fitting);
  }
  TENON_TRY_ASSIGN(value, builder_.bind(std::move(made), Symbol{}));
  return Adjoint{*value, {}};
}

// match tape { Arm(saved, ...) => the adjoints of the variables around the branch that an arm reads, ... }
Status Reverse::branch(const Record& record, const Adjoint& adjoint, Adjoints& adjoints) {
  TENON_TRY_ASSIGN(cotangent, adjoints_.materialize(adjoint, type(record.binding->var), record.value));
  const auto* match = std::get_if<Case>(&record.binding->value);
  struct Side {
    Block block;
    Adjoints adjoints;
  };
  std::vector<Side> sides;
  std::set<VarId> outer;
  for (const ForwardArm& arm : record.arms) {
    Side& side = sides.emplace_back();
    builder_.open();
    TENON_TRY_ASSIGN(parts, adjoints_.parts(*cotangent));
    TENON_TRY(accumulate(arm.result, *parts, side.adjoints));
    TENON_TRY(backward(arm.records, side.adjoints));
    if (match && active(match->subject)) {
      const Type subject = type(std::get<VarId>(match->subject));
      TENON_TRY_ASSIGN(value, pattern_adjoint(*arm.pattern, subject, side.adjoints));
      TENON_TRY(accumulate(match->subject, *value, side.adjoints));
    }
    side.block = builder_.close(Atom{});
    for (const auto& [var, value] : side.adjoints) {
      if (!value.zero()) outer.insert(var);
    }
  }
  if (outer.empty() && !record.effects) return {};
  Case taken{record.tape, {}};
  for (size_t i = 0; i < sides.size(); ++i) {
    Side& side = sides[i];
    const ForwardArm& arm = record.arms[i];
    builder_.open();
    Atoms values;
    for (const VarId var : outer) {
      TENON_TRY_ASSIGN(value, adjoints_.materialize(side.adjoints[var], type(var), renamed(var)));
      values.push_back(*value);
    }
    TENON_TRY_ASSIGN(all, builder_.tuple(std::move(values)));
    Block tail = builder_.close(*all);
    std::ranges::move(tail.bindings, std::back_inserter(side.block.bindings));
    side.block.result = tail.result;
    TENON_TRY_ASSIGN(saved, save(builder_, side.block, {arm.vars, arm.dims, arm.constructor, {}}));
    fields_.emplace(arm.construct, std::move(saved->forward));
    taken.arms.push_back({std::move(saved->pattern), std::move(side.block)});
  }
  TENON_TRY_ASSIGN(all, builder_.bind(std::move(taken), Symbol{}));
  uint32_t field = 0;
  for (const VarId var : outer) {
    TENON_TRY_ASSIGN(value, builder_.project(*all, field++));
    TENON_TRY_ASSIGN(parts, adjoints_.parts(*value));
    TENON_TRY(accumulate(var, *parts, adjoints));
  }
  return {};
}

// The adjoints of the active parameters, of their types.
Expected<Atoms> Reverse::param_adjoints(Adjoints& adjoints) {
  Atoms values;
  for (size_t i = 0; i < from_.params.size(); ++i) {
    if (!wrt_[i]) continue;
    const VarId param = from_.params[i];
    TENON_TRY_ASSIGN(value, adjoints_.materialize(adjoints[param], type(param), renamed(param)));
    values.push_back(*value);
  }
  return values;
}

Expected<Function> Reverse::gradient() {
  std::vector<Record> records;
  TENON_TRY(forward(from_.body, records));
  const Atom result = renamed(from_.body.result);
  Adjoints adjoints;
  TENON_TRY_ASSIGN(scalar, builder_.type_of(result));
  const Atom one = scalar_constant(builder_, 1, scalar->tensor()->dtype);
  TENON_TRY(accumulate(from_.body.result, Adjoint{one, {}}, adjoints));
  TENON_TRY(backward(records, adjoints));
  TENON_TRY_ASSIGN(values, param_adjoints(adjoints));
  TENON_TRY_ASSIGN(all, builder_.tuple(std::move(*values)));
  TENON_TRY_ASSIGN(pair, builder_.tuple({result, *all}));
  builder_.finish(*pair);
  set_fields(out_.body);
  return std::move(out_);
}

Status Reverse::passes(const Passes& passes, Function& forward_pass, Function& backward_pass) {
  std::vector<Record> records;
  TENON_TRY(forward(from_.body, records));
  std::set<VarId> vars(out_.params.begin(), out_.params.end());
  std::set<Symbol> dims(out_.dims.begin(), out_.dims.end());
  for (const Binding& binding : out_.body.bindings) {
    vars.insert(binding.var);
    if (auto* cast = std::get_if<Cast>(&binding.value)) dims.insert(cast->fresh.begin(), cast->fresh.end());
  }

  // The adjoint of the result, as the backward code reads it, and as it is passed.
  TENON_TRY_ASSIGN(result, builder_.type_of(renamed(from_.body.result)));
  const Function& stub = *module_.function(passes.backward);
  const VarId cotangent = builder_.declare(adjoint_type(context_, module_, *result), "cotangent");
  const VarId tape = builder_.declare(passes.tape.type, "tape");
  const VarId passed = builder_.declare(stub.type(stub.params[1]), "passed");
  builder_.open();
  Adjoints adjoints;
  TENON_TRY_ASSIGN(parts, adjoints_.parts(cotangent));
  TENON_TRY(accumulate(from_.body.result, *parts, adjoints));
  TENON_TRY(backward(records, adjoints));
  TENON_TRY_ASSIGN(values, param_adjoints(adjoints));
  for (size_t i = 0; i < values->size(); ++i) {
    const Type wanted = stub.result.tuple()->fields[i];
    TENON_TRY_ASSIGN(value, adjoints_.cast((*values)[i], wanted));
    (*values)[i] = *value;
  }
  TENON_TRY_ASSIGN(all, builder_.tuple(std::move(*values)));
  Block block = builder_.close(*all);
  TENON_TRY_ASSIGN(saved, save(builder_, block, {vars, dims, passes.tape.constructors[0], {{cotangent, passed}}}));

  backward_pass.dims = stub.dims;
  backward_pass.params = {tape, passed};
  Case match{tape, {}};
  match.arms.push_back({std::move(saved->pattern), std::move(block)});
  const VarId taken = builder_.declare(stub.result, "");
  backward_pass.body.bindings.push_back({taken, std::move(match)});
  backward_pass.body.result = taken;
  backward_pass.result = stub.result;

  std::ranges::copy(saved->forward.bindings, std::back_inserter(out_.body.bindings));
  TENON_TRY_ASSIGN(tape_value,
                   builder_.bind(Construct{passes.tape.constructors[0], {}, saved->forward.fields}, Symbol{}));
  TENON_TRY_ASSIGN(pair, builder_.tuple({renamed(from_.body.result), *tape_value}));
  builder_.finish(*pair);
  out_.result = context_.tuple({from_.result, passes.tape.type});
  backward_pass.vars = out_.vars;
  set_fields(out_.body);
  set_fields(backward_pass.body);
  forward_pass = std::move(out_);
  return {};
}

}  // namespace tenon::compiler::gradient
