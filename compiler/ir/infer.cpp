// The typing rules, one for each kind of value.
#include "compiler/ir/infer.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/operator.h"
#include "compiler/ir/patterns.h"
#include "compiler/ir/try.h"

namespace tenon::compiler {

Status Rules::same(std::string_view what, Type wanted, Type found) {
  if (solver_.unify(wanted, found)) return {};
  return error(fmt::format("{} must be {}, found {}", what, text(wanted), text(found)));
}

Expected<Type> Rules::atom(const Atom& atom) {
  if (auto* var = std::get_if<VarId>(&atom)) return solver_.resolve(function_.type(*var));
  if (auto* constant = std::get_if<ConstId>(&atom)) return context_.type_of(module_.constant(*constant));
  const Symbol name = std::get<Symbol>(atom);
  auto signature = [&](const auto& dims, const auto& types, std::vector<Type> params, Type result) -> Expected<Type> {
    if (dims.empty() && types.empty()) return context_.function(std::move(params), result);
    return error(fmt::format("@{} works for many sizes or types, so it is no value by itself", context_.name(name)), "",
                 "wrap it: fn (%x: TYPE) { @f(%x) }");
  };
  if (const Function* function = module_.function(name)) {
    std::vector<Type> params;
    for (VarId param : function->params) params.push_back(function->type(param));
    return signature(function->dims, function->types, std::move(params), function->result);
  }
  if (const Library* library = module_.library(name)) {
    return signature(library->dims, library->types, library->params, library->result);
  }
  return error(fmt::format("there is no function @{}", context_.name(name)));
}

Expected<std::vector<Type>> Rules::types_of(const Atoms& atoms) {
  std::vector<Type> types;
  types.reserve(atoms.size());
  for (const Atom& next : atoms) {
    TENON_TAKE(type, atom(next));
    types.push_back(*type);
  }
  return types;
}

// The callee's type with fresh unknowns for its variables.
Expected<Rules::Signature> Rules::instantiate(Symbol callee) {
  Signature signature;
  const std::vector<Symbol>*dims = nullptr, *types = nullptr;
  if (const Function* function = module_.function(callee)) {
    dims = &function->dims, types = &function->types;
    for (VarId param : function->params) signature.params.push_back(function->type(param));
    signature.result = function->result;
  } else if (const Library* library = module_.library(callee)) {
    dims = &library->dims, types = &library->types;
    signature.params = library->params;
    signature.result = library->result;
  } else {
    return error(fmt::format("there is no function @{}", context_.name(callee)));
  }
  if (dims->empty() && types->empty()) return signature;
  std::map<Symbol, Dim> dim_values;
  std::map<Symbol, Type> type_values;
  for (Symbol name : *dims) {
    const Dim dim = solver_.fresh_dim();
    dim_values.emplace(name, dim);
    opened_.push_back({callee, name, dim, std::nullopt});
  }
  for (Symbol name : *types) {
    const Type type = solver_.fresh_type();
    type_values.emplace(name, type);
    opened_.push_back({callee, name, std::nullopt, type});
  }
  for (Type& param : signature.params) param = context_.substitute(param, dim_values, type_values);
  signature.result = context_.substitute(signature.result, dim_values, type_values);
  return signature;
}

Expected<Type> Rules::call(std::string_view name, const Signature& signature, const Atoms& args) {
  TENON_TAKE(types, types_of(args));
  if (types->size() != signature.params.size()) {
    return error(fmt::format("{} takes {} arguments, found {}", name, signature.params.size(), types->size()));
  }
  for (size_t i = 0; i < types->size(); ++i) {
    TENON_TRY(same(fmt::format("{}: argument {}", name, i), signature.params[i], (*types)[i]));
  }
  return solver_.resolve(signature.result);
}

// The types of a constructor's fields, with `types` for the parameters of its type.
Expected<std::vector<Type>> Rules::field_types(const Module::ConstructorPlace& place, const std::vector<Type>& types,
                                               size_t found) {
  const Constructor& constructor = place.constructor();
  if (constructor.fields.size() != found) {
    return error(fmt::format("{} has {} field{}, found {}", context_.name(constructor.name), constructor.fields.size(),
                             constructor.fields.size() == 1 ? "" : "s", found));
  }
  if (types.size() != place.adt->params.size()) {
    return error(fmt::format("{} takes {} type arguments, found {}", context_.name(place.name),
                             place.adt->params.size(), types.size()));
  }
  std::map<Symbol, Type> values;
  for (size_t i = 0; i < types.size(); ++i) values.emplace(place.adt->params[i], types[i]);
  std::vector<Type> fields;
  for (Type field : constructor.fields) fields.push_back(context_.substitute(field, {}, values));
  return fields;
}

Status Rules::pattern(const MatchPattern& pattern, Type subject) {
  auto all = [&](const std::vector<MatchPattern>& patterns, const std::vector<Type>& types) -> Status {
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (Status status = this->pattern(patterns[i], types[i]); !status) return status;
    }
    return {};
  };
  struct PatternVisitor {
    Rules& self;
    Type subject;
    decltype(all)& each;
    Status operator()(const AnyPattern&) const { return {}; }
    Status operator()(const BindPattern& x) const {
      const std::string_view name = self.context_.name(self.function_.info(x.var).name);
      return self.same(fmt::format("%{}", name), self.function_.type(x.var), subject);
    }
    Status operator()(const ConstructPattern& x) const {
      const auto place = self.module_.constructor(x.constructor);
      if (!place) return error(fmt::format("there is no constructor {}", self.context_.name(x.constructor)));
      std::vector<Type> types;
      for (size_t i = 0; i < place->adt->params.size(); ++i) types.push_back(self.solver_.fresh_type());
      TENON_TAKE(fields, self.field_types(*place, types, x.fields.size()));
      TENON_TRY(self.same("what is matched", self.context_.adt(place->name, types), subject));
      return each(x.fields, *fields);
    }
    Status operator()(const TuplePattern& x) const {
      std::vector<Type> types;
      for (size_t i = 0; i < x.fields.size(); ++i) types.push_back(self.solver_.fresh_type());
      TENON_TRY(self.same("what is matched", self.context_.tuple(types), subject));
      return each(x.fields, types);
    }
  };
  return std::visit(PatternVisitor{*this, subject, all}, pattern.form);
}

struct Rules::Visitor {
  using Result = Expected<std::optional<Type>>;
  Rules& self;

  Context& context() const { return self.context_; }

  Result operator()(const Apply& apply) const {
    TENON_TAKE(types, self.types_of(apply.args));
    for (Type type : *types) {
      if (!self.solver_.known(type)) return std::nullopt;
    }
    TENON_TAKE(type, infer_apply(context(), *apply.op, apply.attrs, *types));
    return *type;
  }
  Result operator()(const Call& call) const {
    if (auto* symbol = std::get_if<Symbol>(&call.callee)) {
      TENON_TAKE(signature, self.instantiate(*symbol));
      TENON_TAKE(result, self.call(fmt::format("@{}", context().name(*symbol)), *signature, call.args));
      return *result;
    }
    TENON_TAKE(callee, self.atom(call.callee));
    if (callee->unknown()) {
      TENON_TAKE(types, self.types_of(call.args));
      const Type result = self.solver_.fresh_type();
      if (!self.solver_.unify(*callee, context().function(*types, result))) {
        return error("the callee would take itself as an argument");
      }
      return result;
    }
    const FunctionType* type = callee->function();
    if (!type) return error(fmt::format("only a function can be called, found {}", self.text(*callee)));
    TENON_TAKE(result, self.call("the closure", {type->params, type->result}, call.args));
    return *result;
  }
  Result operator()(const Tuple& tuple) const {
    TENON_TAKE(types, self.types_of(tuple.fields));
    return context().tuple(std::move(*types));
  }
  Result operator()(const Project& project) const {
    TENON_TAKE(type, self.atom(project.tuple));
    if (type->unknown()) return std::nullopt;
    const TupleType* tuple = type->tuple();
    if (!tuple || project.index >= tuple->fields.size()) {
      return error(fmt::format("there is no field {} in {}", project.index, self.text(*type)));
    }
    return tuple->fields[project.index];
  }
  Result operator()(const Construct& construct) const {
    const auto place = self.module_.constructor(construct.constructor);
    if (!place) return error(fmt::format("there is no constructor {}", context().name(construct.constructor)));
    TENON_TAKE(fields, self.field_types(*place, construct.types, construct.fields.size()));
    TENON_TAKE(found, self.types_of(construct.fields));
    for (size_t i = 0; i < found->size(); ++i) {
      TENON_TRY(
          self.same(fmt::format("{}: field {}", context().name(construct.constructor), i), (*fields)[i], (*found)[i]));
    }
    return self.solver_.resolve(context().adt(place->name, construct.types));
  }
  Result operator()(const Lambda& lambda) const {
    std::vector<Type> params;
    for (VarId param : lambda.params) params.push_back(self.solver_.resolve(self.function_.type(param)));
    TENON_TAKE(found, self.atom(lambda.body[0].result));
    TENON_TRY(self.same("the closure's result", lambda.result, *found));
    return context().function(std::move(params), self.solver_.resolve(lambda.result));
  }
  Result operator()(const If& branch) const {
    TENON_TAKE(condition, self.atom(branch.condition));
    TENON_TRY(self.same("the condition", context().tensor(Dims{}, DType::kBool), *condition));
    TENON_TAKE(yes, self.atom(branch.arms[0].result));
    TENON_TAKE(no, self.atom(branch.arms[1].result));
    TENON_TRY(self.same("the second arm", *yes, *no));
    return self.solver_.resolve(*yes);
  }
  Result operator()(const Case& match) const {
    TENON_TAKE(subject, self.atom(match.subject));
    std::optional<Type> result;
    for (const Arm& arm : match.arms) {
      TENON_TRY(self.pattern(arm.pattern, *subject));
      TENON_TAKE(type, self.atom(arm.block.result));
      if (!result) result = *type;
      TENON_TRY(self.same("each arm", *result, *type));
    }
    TENON_TAKE(missing, uncovered(context(), self.module_, match.arms));
    if (*missing) {
      return error(fmt::format("no arm takes {}", **missing), "", "add an arm for it, or _ for all that are left");
    }
    if (!result) return error("a match needs an arm");
    return self.solver_.resolve(*result);
  }
  Result operator()(const Cast& cast) const {
    TENON_TAKE(found, self.atom(cast.value));
    if (!self.solver_.known(*found)) return std::nullopt;
    if (!castable(*found, cast.type)) {
      return error(
          fmt::format("{} can never be {}: a match_cast changes sizes only", self.text(*found), self.text(cast.type)));
    }
    return cast.type;
  }
  Result operator()(const MakeReference& make) const {
    TENON_TAKE(type, self.atom(make.value));
    return context().reference(*type);
  }
  Result operator()(const ReadReference& read) const {
    TENON_TAKE(type, self.atom(read.reference));
    const Type value = self.solver_.fresh_type();
    TENON_TRY(self.same("what is read", context().reference(value), *type));
    return self.solver_.resolve(value);
  }
  Result operator()(const WriteReference& write) const {
    TENON_TAKE(type, self.atom(write.reference));
    TENON_TAKE(value, self.atom(write.value));
    TENON_TRY(self.same("what is written to", context().reference(*value), *type));
    return context().unit();
  }

  static bool castable(Type from, Type to) {
    if (from == to) return true;
    if (const TensorType* a = from.tensor(), *b = to.tensor(); a && b) {
      if (a->dtype != b->dtype || a->dims.size() != b->dims.size()) return false;
      for (size_t i = 0; i < a->dims.size(); ++i) {
        const auto x = a->dims[i].constant(), y = b->dims[i].constant();
        if (x && y && *x != *y) return false;
      }
      return true;
    }
    const TupleType *a = from.tuple(), *b = to.tuple();
    return a && b && std::ranges::equal(a->fields, b->fields, castable);
  }
};

Expected<std::optional<Type>> Rules::value(const Value& value) {
  context_.visit();
  return std::visit(Visitor{*this}, value);
}

Status Rules::decided() {
  for (const Open& open : opened_) {
    if (open.dim ? solver_.known(solver_.resolve(*open.dim)) : solver_.known(solver_.resolve(*open.type))) continue;
    return error(
        fmt::format("@{}: no argument decides its {} {}", context_.name(open.callee), open.dim ? "dim" : "type",
                    context_.name(open.name)),
        "",
        open.dim ? "give it a parameter that has this dim alone as a size" : "give it a parameter whose type has it");
  }
  return {};
}

Expected<Type> infer_value(Context& context, const Module& module, const Function& function, const Value& value) {
  Solver solver(context);
  Rules rules(context, module, function, solver);
  TENON_TAKE(type, rules.value(value));
  if (!solver.retry()) return error("a size would have two values");
  TENON_TRY(rules.decided());
  if (!*type) return error("an operand has no known type");
  const Type resolved = solver.resolve(**type);
  if (solver.open() > 0 || !solver.known(resolved)) return error("a size or a type is not decided");
  return resolved;
}

Expected<Type> infer_atom(Context& context, const Module& module, const Function& function, const Atom& atom) {
  Solver solver(context);
  return Rules(context, module, function, solver).atom(atom);
}

}  // namespace tenon::compiler
