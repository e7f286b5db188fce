// The typing rules, one rule for each kind of value.
#include "compiler/ir/infer.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/adjoint.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/patterns.h"
#include "support/try.h"

namespace tenon::compiler {

namespace {

constexpr int64_t kMaxComputed = 64;  // numbers of a computed attribute

}  // namespace

Status Rules::require_equal(std::string_view what, Type wanted, Type found) {
  if (solver_.unify(wanted, found)) return {};
  return error(fmt::format("{} must be {}, found {}", what, text(wanted), text(found)));
}

// Adds the equations of the operand; fits() checks the remaining conditions when all types are resolved.
Status Rules::pass(Passed passed, Type found, std::vector<Passed>* passed_list) {
  if (!solver_.pass(passed.wanted, found)) {
    return error(fmt::format("{} must be {}, found {}", passed.what, text(passed.wanted), text(found)));
  }
  if (passed_list) passed_list->push_back(std::move(passed));
  return {};
}

Expected<bool> Rules::fits(const Passed& passed, Type found, bool strict) {
  const Answer answer = solver_.fit(passed.wanted, found);
  if (answer == Answer::kYes) return true;
  if (answer == Answer::kUnknown && !strict) return false;
  return error(fmt::format("{} must be {}, found {}{}", passed.what, text(passed.wanted), text(found),
                           answer == Answer::kNo ? "" : ", and it is not proved that the sizes are equal"),
               "", answer == Answer::kNo ? "" : "check it first, as match_cast(%x, Tensor[(n,), f32]) does");
}

Expected<Type> Rules::atom(const Atom& atom) {
  if (auto* var = std::get_if<VarId>(&atom)) return solver_.resolve(function_.type(*var));
  if (auto* constant = std::get_if<ConstId>(&atom)) return context_.type_of(module_.constant(*constant));
  const Symbol name = std::get<Symbol>(atom);
  const auto found = module_.globals.find(name);
  if (found == module_.globals.end()) return error(fmt::format("there is no function @{}", context_.name(name)));
  Signature signature = signature_of(context_, found->second);
  if (signature.dims.empty() && signature.types.empty())
    return context_.function(std::move(signature.params), signature.result);
  return error(fmt::format("@{} is polymorphic in sizes or types and cannot be used as a value", context_.name(name)),
               "", "wrap it: fn (%x: TYPE) { @f(%x) }");
}

Expected<std::vector<Type>> Rules::types_of(const Atoms& atoms) {
  std::vector<Type> types;
  types.reserve(atoms.size());
  for (const Atom& next : atoms) {
    TENON_TRY_ASSIGN(type, atom(next));
    types.push_back(*type);
  }
  return types;
}

// The callee's signature with fresh unknowns for its variables, except that `types`, if they are stated, replace the
// type variables that no parameter has.
Expected<Signature> Rules::instantiate(Symbol callee, const std::vector<Type>& types) {
  const auto found = module_.globals.find(callee);
  if (found == module_.globals.end()) return error(fmt::format("there is no function @{}", context_.name(callee)));
  Signature signature = signature_of(context_, found->second);
  const std::vector<Symbol> explicit_params = explicit_type_params(signature);
  if (!types.empty() && types.size() != explicit_params.size()) {
    return error(
        fmt::format("@{} takes {} types, found {}", context_.name(callee), explicit_params.size(), types.size()), "",
        "the arguments determine all other types");
  }
  if (signature.dims.empty() && signature.types.empty()) return signature;
  std::map<Symbol, Dim> dim_values;
  std::map<Symbol, Type> type_values;
  for (Symbol name : signature.dims) {
    const Dim dim = solver_.fresh_dim();
    dim_values.emplace(name, dim);
    auto bound = signature.bounds.find(name);
    instances_.push_back(
        {callee, name, dim, std::nullopt, bound == signature.bounds.end() ? DimRange{} : bound->second, false});
  }
  for (Symbol name : signature.types) {
    const auto param = std::ranges::find(explicit_params, name);
    const bool is_explicit = param != explicit_params.end();
    const Type type = is_explicit && !types.empty() ? types[static_cast<size_t>(param - explicit_params.begin())]
                                                    : solver_.fresh_type();
    type_values.emplace(name, type);
    instances_.push_back({callee, name, std::nullopt, type, {}, is_explicit});
  }
  for (Type& param : signature.params) param = context_.substitute(param, dim_values, type_values);
  signature.result = context_.substitute(signature.result, dim_values, type_values);
  return signature;
}

Expected<Type> Rules::call(std::string_view name, const Signature& signature, const Atoms& args,
                           std::vector<Passed>* passed) {
  TENON_TRY_ASSIGN(types, types_of(args));
  if (types->size() != signature.params.size()) {
    return error(fmt::format("{} takes {} arguments, found {}", name, signature.params.size(), types->size()));
  }
  for (size_t i = 0; i < types->size(); ++i) {
    TENON_TRY(pass({i, signature.params[i], fmt::format("{}: argument {}", name, i)}, (*types)[i], passed));
  }
  return solver_.resolve(signature.result);
}

// The types of a constructor's fields, with `types` as the arguments for the parameters of its type.
Expected<std::vector<Type>> Rules::field_types(const Module::ConstructorDecl& decl, const std::vector<Type>& types,
                                               size_t found) {
  const Constructor& constructor = decl.constructor();
  if (constructor.fields.size() != found) {
    return error(fmt::format("{} has {} field{}, found {}", context_.name(constructor.name), constructor.fields.size(),
                             constructor.fields.size() == 1 ? "" : "s", found));
  }
  if (types.size() != decl.adt->params.size()) {
    return error(fmt::format("{} takes {} type arguments, found {}", context_.name(decl.name), decl.adt->params.size(),
                             types.size()));
  }
  std::map<Symbol, Type> values;
  for (size_t i = 0; i < types.size(); ++i) values.emplace(decl.adt->params[i], types[i]);
  std::vector<Type> fields;
  for (Type field : constructor.fields) fields.push_back(context_.substitute(field, {}, values));
  return fields;
}

Status Rules::pattern(const MatchPattern& pattern, Type subject) {
  auto fields = [&](const std::vector<MatchPattern>& patterns, const std::vector<Type>& types) -> Status {
    for (size_t i = 0; i < patterns.size(); ++i) {
      TENON_TRY(this->pattern(patterns[i], types[i]));
    }
    return {};
  };
  struct PatternVisitor {
    Rules& self;
    Type subject;
    decltype(fields)& match_fields;
    Status operator()(const AnyPattern&) const { return {}; }
    Status operator()(const BindPattern& x) const {
      const std::string_view name = self.context_.name(self.function_.info(x.var).name);
      return self.require_equal(fmt::format("%{}", name), self.function_.type(x.var), subject);
    }
    Status operator()(const ConstructPattern& x) const {
      const auto decl = self.module_.constructor(x.constructor);
      if (!decl) return error(fmt::format("there is no constructor {}", self.context_.name(x.constructor)));
      std::vector<Type> types;
      for (size_t i = 0; i < decl->adt->params.size(); ++i) types.push_back(self.solver_.fresh_type());
      TENON_TRY_ASSIGN(fields, self.field_types(*decl, types, x.fields.size()));
      TENON_TRY(self.require_equal("the matched value", self.context_.adt(decl->name, types), subject));
      return match_fields(x.fields, *fields);
    }
    Status operator()(const TuplePattern& x) const {
      std::vector<Type> types;
      for (size_t i = 0; i < x.fields.size(); ++i) types.push_back(self.solver_.fresh_type());
      TENON_TRY(self.require_equal("the matched value", self.context_.tuple(types), subject));
      return match_fields(x.fields, types);
    }
  };
  return std::visit(PatternVisitor{*this, subject, fields}, pattern.form);
}

std::vector<Type> Rules::declared_types(const Value& value) {
  if (const Call* call = call_of(value)) {
    if (auto* symbol = std::get_if<Symbol>(&call->callee)) {
      const auto found = module_.globals.find(*symbol);
      return found == module_.globals.end() ? std::vector<Type>() : signature_of(context_, found->second).params;
    }
    const auto callee = atom(call->callee);
    return callee && callee->function() ? callee->function()->params : std::vector<Type>{};
  }
  if (auto* construct = std::get_if<Construct>(&value)) {
    const auto decl = module_.constructor(construct->constructor);
    return decl ? decl->constructor().fields : std::vector<Type>{};
  }
  return {};
}

// Unifies the types of an operator's arguments and result by its scheme and its type rule.
Status Rules::unify_scheme(const Apply& apply, std::vector<Type> types, Type result) {
  if (!apply.op->scheme || !apply.computed.empty() || !result || apply.op->inputs.size() > types.size()) return {};
  const auto all_types = [&](auto&& predicate) { return std::ranges::all_of(types, predicate); };
  if (!all_types([](Type type) { return type.unknown() || type.tensor(); })) return {};
  std::vector<Type> found = types;
  const std::function<Dim()> fresh = [this] { return solver_.fresh_dim(); };
  const bool runs = apply.op->scheme({context_, apply.attrs, found, solver_.resolve(result), fresh});
  for (size_t i = 0; i < types.size(); ++i) {
    if (found[i] != types[i])
      TENON_TRY(require_equal(fmt::format("{}: argument {}", apply.op->name, i), found[i], types[i]));
    types[i] = solver_.resolve(types[i]);
  }
  if (!runs || !all_types([](Type type) { return type.tensor() && !has_erased(type); })) return {};
  std::vector<Requirement> required;
  TENON_TRY_ASSIGN(type, infer_apply(context_, *apply.op, apply.attrs, types, solver_.prover(), &required));
  for (const auto& [arg, axis, size] : required) {
    const Dim actual = types[arg].tensor()->dims[axis];
    if (solver_.pass(context_.tensor(Dims{size}, DType::kF32), context_.tensor(Dims{actual}, DType::kF32))) continue;
    return error(fmt::format("{}: size {} of argument {} must be {}, found {}", apply.op->name, axis, arg,
                             context_.str(solver_.resolve(size)), context_.str(solver_.resolve(actual))));
  }
  return require_equal(fmt::format("{}: the result", apply.op->name), result, *type);
}

Expected<std::optional<AttrDims>> Rules::computed_dims(const Apply& apply) {
  AttrDims all;
  for (const auto& [name, attr] : apply.computed) {
    const AttrSpec* spec = apply.op->attribute(name);
    if (!spec || !spec->computable || apply.attrs.find(name) != apply.attrs.end())
      return error(fmt::format("{}: attribute '{}' cannot be computed", apply.op->name, name));
    const bool scalar = spec->kind == AttrKind::kInt || spec->kind == AttrKind::kFloat;
    const bool integral = spec->kind == AttrKind::kInt || spec->kind == AttrKind::kInts;
    const auto wrong = [&](const std::string& found) {
      return error(fmt::format("{}: attribute '{}' must be {} of {}, found {}", apply.op->name, name,
                               scalar ? "a scalar" : "a vector", integral ? "i64" : runtime::kReals.str(), found));
    };
    if (auto* dims = std::get_if<Dims>(&attr)) {
      if (!integral || (scalar && dims->size() != 1)) return wrong(context_.str(*dims));
      for (const Dim dim : *dims) {
        if (!dim.valid()) return error(fmt::format("the size {} has no value", context_.str(dim)));
      }
      all.emplace(name, *dims);
      continue;
    }
    TENON_TRY_ASSIGN(type, atom(std::get<Atom>(attr)));
    if (!solver_.is_resolved(*type)) return std::nullopt;
    const TensorType* tensor = type->tensor();
    const runtime::DTypes allowed = integral ? runtime::DTypes{DType::kI64} : runtime::kReals;
    if (!tensor || !allowed.contains(tensor->dtype) || tensor->rank() != (scalar ? 0 : 1)) return wrong(text(*type));
    const auto count = scalar ? std::optional<int64_t>(1) : tensor->dims[0].constant();
    if (!count || *count > kMaxComputed) {
      return error(fmt::format("{}: the number of values of '{}' must be a constant, at most {}: {}", apply.op->name,
                               name, kMaxComputed, text(*type)));
    }
    all.emplace(name, Dims(static_cast<size_t>(*count), context_.erased()));
  }
  return all;
}

struct Rules::Visitor {
  using Result = Expected<std::optional<Type>>;
  Rules& self;
  std::vector<Passed>* passed;
  Type result;  // as far as it is resolved

  Context& context() const { return self.context_; }

  Result operator()(const Apply& apply) const {
    TENON_TRY_ASSIGN(types, self.types_of(apply.args));
    if (!std::ranges::all_of(*types, [&](Type type) { return self.solver_.is_resolved(type); })) {
      TENON_TRY(self.unify_scheme(apply, std::move(*types), result));
      return std::nullopt;
    }
    TENON_TRY_ASSIGN(computed, self.computed_dims(apply));
    if (!*computed) return std::nullopt;
    std::vector<Requirement> required;
    TENON_TRY_ASSIGN(type, infer_apply(context(), *apply.op, apply.attrs, *types, self.solver_.prover(),
                                       passed ? &required : nullptr, **computed));
    for (size_t i = 0; i < types->size(); ++i) {
      const TensorType& found = *(*types)[i].tensor();
      Dims dims = found.dims;
      for (const Requirement& next : required) {
        if (next.arg != i || dims[next.axis] == next.size) continue;
        if (dims[next.axis] != found.dims[next.axis]) {
          return error(
              fmt::format("{}: argument {} must be {} and {} along axis {}, which a single check cannot establish",
                          apply.op->name, i, context().str(dims[next.axis]), context().str(next.size), next.axis),
              "", "check its sizes first, as match_cast(%x, Tensor[(n,), f32]) does");
        }
        dims[next.axis] = next.size;
      }
      if (dims == found.dims) continue;
      passed->push_back(
          {i, context().tensor(std::move(dims), found.dtype), fmt::format("{}: argument {}", apply.op->name, i)});
    }
    return *type;
  }
  Result operator()(const Call& call) const {
    if (auto* symbol = std::get_if<Symbol>(&call.callee)) {
      TENON_TRY_ASSIGN(signature, self.instantiate(*symbol, call.types));
      TENON_TRY_ASSIGN(result, self.call(fmt::format("@{}", context().name(*symbol)), *signature, call.args, passed));
      return *result;
    }
    TENON_TRY_ASSIGN(callee, self.atom(call.callee));
    if (callee->unknown()) {
      TENON_TRY_ASSIGN(types, self.types_of(call.args));
      const Type result = self.solver_.fresh_type();
      if (!self.solver_.unify(*callee, context().function(*types, result))) {
        return error("the callee would be its own argument");
      }
      return result;
    }
    const FunctionType* type = callee->function();
    if (!call.types.empty()) return error("type arguments require a global function as the callee");
    if (!type) return error(fmt::format("only a function can be called, found {}", self.text(*callee)));
    TENON_TRY_ASSIGN(result, self.call("the closure", {{}, {}, {}, type->params, type->result}, call.args, passed));
    return *result;
  }
  Result operator()(const Gradient& gradient) const {
    const Call& call = gradient.call;
    const std::string_view what = gradient.kind == Gradient::Kind::kPullback ? "pullback" : "gradient";
    if (gradient.wrt.empty()) return error(fmt::format("{}: no parameter to differentiate by", what));
    std::vector<Type> adjoints;
    for (const uint32_t index : gradient.wrt) {
      if (index >= call.args.size()) {
        return error(fmt::format("{}: there is no parameter {}: the function has {}", what, index, call.args.size()),
                     "", "parameters count from 0");
      }
      TENON_TRY_ASSIGN(type, self.atom(call.args[index]));
      if (!self.solver_.is_resolved(*type)) return std::nullopt;
      if (!has_adjoint(context(), self.module_, *type)) {
        return error(fmt::format("{}: parameter {} is {}, which has no part of floats", what, index, self.text(*type)),
                     "", "only values of floats have a derivative: leave the parameter out of wrt");
      }
      adjoints.push_back(adjoint_type(context(), self.module_, *type));
    }
    TENON_TRY_ASSIGN(result, (*this)(call));
    if (!*result) return std::nullopt;
    const Type type = self.solver_.resolve(**result);
    const Type all = context().tuple(std::move(adjoints));
    if (!self.solver_.is_resolved(type)) return std::nullopt;
    if (gradient.kind == Gradient::Kind::kPullback) {
      if (!has_adjoint(context(), self.module_, type))
        return error(fmt::format("pullback: the result is {}, which has no part of floats", self.text(type)));
      return context().tuple({type, context().function({adjoint_type(context(), self.module_, type)}, all)});
    }
    const TensorType* scalar = type.tensor();
    if (!scalar || scalar->rank() != 0 || !runtime::kReals.contains(scalar->dtype)) {
      return error(fmt::format("gradient: the result must be a scalar of floats, found {}", self.text(type)), "",
                   "sum or average it, or use pullback, which takes the adjoint of any result");
    }
    return context().tuple({type, all});
  }
  Result operator()(const DimValue& value) const {
    if (!value.dim.valid()) return error(fmt::format("the size {} has no value", context().str(value.dim)));
    return context().tensor(Dims{}, DType::kI64);
  }
  Result operator()(const Tuple& tuple) const {
    TENON_TRY_ASSIGN(types, self.types_of(tuple.fields));
    return context().tuple(std::move(*types));
  }
  Result operator()(const Project& project) const {
    TENON_TRY_ASSIGN(type, self.atom(project.tuple));
    if (type->unknown()) return std::nullopt;
    const TupleType* tuple = type->tuple();
    if (!tuple || project.index >= tuple->fields.size()) {
      return error(fmt::format("there is no field {} in {}", project.index, self.text(*type)));
    }
    return tuple->fields[project.index];
  }
  Result operator()(const Construct& construct) const {
    const auto decl = self.module_.constructor(construct.constructor);
    if (!decl) return error(fmt::format("there is no constructor {}", context().name(construct.constructor)));
    TENON_TRY_ASSIGN(fields, self.field_types(*decl, construct.types, construct.fields.size()));
    TENON_TRY_ASSIGN(found, self.types_of(construct.fields));
    for (size_t i = 0; i < found->size(); ++i) {
      TENON_TRY(self.pass({i, (*fields)[i], fmt::format("{}: field {}", context().name(construct.constructor), i)},
                          (*found)[i], passed));
    }
    return self.solver_.resolve(context().adt(decl->name, construct.types));
  }
  Result operator()(const Lambda& lambda) const {
    std::vector<Type> params;
    for (VarId param : lambda.params) params.push_back(self.solver_.resolve(self.function_.type(param)));
    TENON_TRY_ASSIGN(found, self.atom(lambda.body[0].result));
    TENON_TRY(self.pass({Passed::kResult, lambda.result, "the closure's result"}, *found, passed));
    return context().function(std::move(params), self.solver_.resolve(lambda.result));
  }
  Result operator()(const If& branch) const {
    TENON_TRY_ASSIGN(condition, self.atom(branch.condition));
    TENON_TRY(self.require_equal("the condition", context().tensor(Dims{}, DType::kBool), *condition));
    TENON_TRY_ASSIGN(yes, self.atom(branch.arms[0].result));
    TENON_TRY_ASSIGN(no, self.atom(branch.arms[1].result));
    TENON_TRY(self.require_equal("the second arm", *yes, *no));
    return self.solver_.resolve(*yes);
  }
  Result operator()(const Case& match) const {
    TENON_TRY_ASSIGN(subject, self.atom(match.subject));
    std::optional<Type> result;
    for (const Arm& arm : match.arms) {
      TENON_TRY(self.pattern(arm.pattern, *subject));
      TENON_TRY_ASSIGN(type, self.atom(arm.block.result));
      if (!result) result = *type;
      TENON_TRY(self.require_equal("each arm", *result, *type));
    }
    TENON_TRY_ASSIGN(missing, uncovered(context(), self.module_, match.arms));
    if (*missing) {
      return error(fmt::format("no arm matches {}", **missing), "",
                   "add an arm for this value, or an arm _ for all remaining values");
    }
    if (!result) return error("a match requires at least one arm");
    return self.solver_.resolve(*result);
  }
  Result operator()(const Cast& cast) const {
    TENON_TRY_ASSIGN(found, self.atom(cast.value));
    if (!self.solver_.is_resolved(*found)) return std::nullopt;
    if (!castable(*found, cast.type)) {
      return error(
          fmt::format("{} can never be {}: a match_cast changes sizes only", self.text(*found), self.text(cast.type)));
    }
    return cast.type;
  }
  Result operator()(const MakeReference& make) const {
    TENON_TRY_ASSIGN(type, self.atom(make.value));
    return context().reference(*type);
  }
  Result operator()(const ReadReference& read) const {
    TENON_TRY_ASSIGN(type, self.atom(read.reference));
    const Type value = self.solver_.fresh_type();
    TENON_TRY(self.require_equal("the reference", context().reference(value), *type));
    return self.solver_.resolve(value);
  }
  Result operator()(const WriteReference& write) const {
    TENON_TRY_ASSIGN(type, self.atom(write.reference));
    TENON_TRY_ASSIGN(value, self.atom(write.value));
    if (const ReferenceType* reference = type->reference()) {
      TENON_TRY(self.pass({0, reference->value, "the written value"}, *value, passed));
    } else {
      TENON_TRY(self.require_equal("the reference", context().reference(*value), *type));
    }
    return context().unit();
  }

  bool castable(Type from, Type to) const {
    TypePairMap<bool> known;
    return castable(from, to, known);
  }
  bool castable(Type from, Type to, TypePairMap<bool>& known) const {
    if (from == to) return true;
    if (const TensorType* a = from.tensor(), *b = to.tensor(); a && b) {
      if (a->dtype != b->dtype || a->dims.size() != b->dims.size()) return false;
      for (size_t i = 0; i < a->dims.size(); ++i) {
        if (self.solver_.prover().equal(a->dims[i], b->dims[i]) == Answer::kNo) return false;
      }
      return true;
    }
    const TupleType *a = from.tuple(), *b = to.tuple();
    if (!a || !b) return false;
    if (const auto found = known.find({from, to}); found != known.end()) return found->second;
    const bool all = std::ranges::equal(a->fields, b->fields, [&](Type x, Type y) { return castable(x, y, known); });
    return known.emplace(std::pair{from, to}, all).first->second;
  }
};

Expected<std::optional<Type>> Rules::value(const Value& value, std::vector<Passed>* passed, Type result) {
  context_.visit();
  TENON_TRY_ASSIGN(type, std::visit(Visitor{*this, passed, result}, value));
  if (*type && (*type)->node->depth > TypeNode::kMaxDepth)
    return error(fmt::format("the type is nested more than {} deep", TypeNode::kMaxDepth));
  return type;
}

Status Rules::check_determined(size_t from, size_t to, bool strict) {
  for (const Instance& instance : std::span(instances_).subspan(from, to - from)) {
    if (instance.dim ? !solver_.is_resolved(solver_.resolve(*instance.dim))
                     : !solver_.is_resolved(solver_.resolve(*instance.type))) {
      const std::string_view callee = context_.name(instance.callee);
      if (instance.explicit_type) {
        return error(fmt::format("@{}: its use does not determine its type {}", callee, context_.name(instance.name)),
                     "", fmt::format("state it, as @{}[Tensor[(4,), f32]](...)", callee));
      }
      return error(fmt::format("@{}: no argument determines its {} {}", callee, instance.dim ? "dim" : "type",
                               context_.name(instance.name)),
                   "",
                   instance.dim ? "give it a parameter in whose sizes this dim appears linearly"
                                : "annotate the argument, as let %x: TYPE = ...");
    }
    if (!instance.dim || instance.bounds == DimRange{}) continue;
    const Dim value = solver_.resolve(*instance.dim);
    Answer inside = Answer::kYes;
    if (instance.bounds.lo) inside = solver_.prover().less_equal(context_.dim(*instance.bounds.lo), value);
    if (instance.bounds.hi)
      inside = std::min(inside, solver_.prover().less_equal(value, context_.dim(*instance.bounds.hi)));
    if (inside == Answer::kYes || (inside == Answer::kUnknown && !strict)) continue;
    return error(fmt::format("@{}: its {} is {}, must be in {}{}", context_.name(instance.callee),
                             context_.name(instance.name), context_.str(value), str(instance.bounds),
                             inside == Answer::kNo ? "" : ", which is not proved"));
  }
  return {};
}

std::vector<Type> Rules::explicit_types(size_t from, size_t to) {
  std::vector<Type> types;
  for (const Instance& instance : std::span(instances_).subspan(from, to - from)) {
    if (instance.explicit_type) types.push_back(solver_.resolve(*instance.type));
  }
  return types;
}

Expected<Type> infer_value(Context& context, const Module& module, const Function& function, const Value& value) {
  Solver solver(context, function.bounds);
  Rules rules(context, module, function, solver);
  std::vector<Passed> passed;
  // The requirements of operators must be proved; operands of other values are checked when all types are resolved.
  TENON_TRY_ASSIGN(type, rules.value(value, std::holds_alternative<Apply>(value) ? nullptr : &passed));
  if (!solver.retry()) return error("a size would have two values");
  TENON_TRY(rules.check_determined(0, rules.instantiated(), false));
  if (!*type) return error("the type of an operand is not resolved");
  const Type resolved = solver.resolve(**type);
  if (solver.pending() > 0 || !solver.is_resolved(resolved)) return error("a size or a type is not determined");
  for (Passed& next : passed) {
    next.wanted = solver.resolve(next.wanted);
    TENON_TRY_ASSIGN(found, rules.atom(passed_operand(value, next)));
    TENON_TRY(rules.fits(next, *found, true));
  }
  return resolved;
}

Expected<Type> infer_checked(Context& context, const Module& module, const Function& function, const Apply& apply,
                             std::vector<Requirement>& required) {
  Solver solver(context, function.bounds);
  Rules rules(context, module, function, solver);
  std::vector<Type> types;
  for (const Atom& arg : apply.args) {
    TENON_TRY_ASSIGN(type, rules.atom(arg));
    types.push_back(*type);
  }
  TENON_TRY_ASSIGN(computed, rules.computed_dims(apply));
  if (!*computed) return error("the type of an operand is not resolved");
  return infer_apply(context, *apply.op, apply.attrs, types, solver.prover(), &required, **computed);
}

Expected<Type> infer_atom(Context& context, const Module& module, const Function& function, const Atom& atom) {
  Solver solver(context);
  return Rules(context, module, function, solver).atom(atom);
}

}  // namespace tenon::compiler
