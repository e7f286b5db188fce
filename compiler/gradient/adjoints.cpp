#include "compiler/gradient/adjoints.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/adjoint.h"
#include "compiler/ir/term.h"
#include "support/try.h"

namespace tenon::compiler::gradient {

bool Adjoint::zero() const { return !value && std::ranges::all_of(fields, &Adjoint::zero); }

DimNames::DimNames(const Module& module) {
  const auto add = [&](Type type) {
    for_each_part(type, [&](Type part) {
      if (!part.tensor()) return;
      for (const Dim dim : part.tensor()->dims) for_each_variable(dim, [&](Symbol name) { used_.insert(name); });
    });
  };
  for_each_function(module, [&](Symbol, const Function& function) {
    for (const VarInfo& info : function.vars) {
      if (info.type && info.type.node->variables) add(info.type);
    }
    for_each_binding(function.body, [&](const Binding& binding) {
      if (auto* cast = std::get_if<Cast>(&binding.value)) used_.insert(cast->fresh.begin(), cast->fresh.end());
    });
    used_.insert(function.dims.begin(), function.dims.end());
  });
}

Symbol DimNames::fresh(Context& context) {
  while (true) {
    const Symbol name = context.symbol(fmt::format("d{}", next_++));
    if (used_.insert(name).second) return name;
  }
}

Type erased(Context& context, Type type) {
  return context.map_sizes(type, [&](Dim dim) { return dim.constant() ? dim : context.erased(); });
}

Expected<Adjoint> AdjointBuilder::parts(const Atom& atom) {
  TENON_TRY_ASSIGN(type, builder_.type_of(atom));
  const TupleType* tuple = type->tuple();
  if (!tuple) return Adjoint{atom, {}};
  Adjoint result;
  for (uint32_t i = 0; i < tuple->fields.size(); ++i) {
    TENON_TRY_ASSIGN(field, builder_.project(atom, i));
    TENON_TRY_ASSIGN(part, parts(*field));
    result.fields.push_back(std::move(*part));
  }
  return result;
}

Status AdjointBuilder::add(Adjoint& to, const Adjoint& term) {
  if (term.zero()) return {};
  if (to.zero()) {
    to = term;
    return {};
  }
  if (to.value) {
    TENON_TRY_ASSIGN(value, sum(*to.value, *term.value));
    to.value = *value;
    return {};
  }
  for (size_t i = 0; i < to.fields.size(); ++i) TENON_TRY(add(to.fields[i], term.fields[i]));
  return {};
}

Type with_named_sizes(Context& context, Type type, DimNames& dims, std::vector<Symbol>& made) {
  return context.map_sizes(type, [&](Dim dim) {
    if (!dim.erased()) return dim;
    made.push_back(dims.fresh(context));
    return context.dim(made.back());
  });
}

Expected<Atom> opened(Builder& builder, const Atom& atom, DimNames& dims) {
  TENON_TRY_ASSIGN(type, builder.type_of(atom));
  if (!has_erased(*type)) return atom;
  Cast cast{atom, {}, {}};
  cast.type = with_named_sizes(builder.context(), *type, dims, cast.fresh);
  return builder.bind(std::move(cast), Symbol{});
}

Expected<Atom> AdjointBuilder::cast(const Atom& atom, Type type) {
  TENON_TRY_ASSIGN(found, builder_.type_of(atom));
  if (*found == type) return atom;
  return builder_.bind(Cast{atom, type, {}}, Symbol{});
}

Expected<Atom> AdjointBuilder::sum(const Atom& a, const Atom& b) {
  TENON_TRY_ASSIGN(type, builder_.type_of(a));
  TENON_TRY_ASSIGN(other, builder_.type_of(b));
  if (type->tensor()) {
    TENON_TRY_ASSIGN(left, opened(builder_, has_erased(*type) && !has_erased(*other) ? *cast(a, *other) : a, dims_));
    TENON_TRY_ASSIGN(common, builder_.type_of(*left));
    TENON_TRY_ASSIGN(right, cast(b, *common));
    return builder_.apply(ops::kAdd, {*left, *right});
  }
  if (type->tuple()) return a;  // the unit
  TENON_TRY_ASSIGN(adder, adders_.adder(builder_.context(), builder_.module(), *type, dims_));
  return builder_.call(*adder, {a, b});
}

Expected<Atom> AdjointBuilder::zero(Type type, const std::optional<Atom>& primal) {
  Context& context = builder_.context();
  const Type wanted = adjoint_type(context, builder_.module(), type);
  if (const TensorType* tensor = wanted.tensor()) {
    if (has_erased(wanted)) {
      if (!primal) return error("the size of an adjoint of zero is not known", "", "", Fault::kInternal);
      TENON_TRY_ASSIGN(open, opened(builder_, *primal, dims_));
      TENON_TRY_ASSIGN(found, builder_.type_of(*open));
      TENON_TRY_ASSIGN(value, zero(*found, std::nullopt));
      return cast(*value, wanted);
    }
    Formula formula(builder_);
    const Term zeros = formula.full(tensor->dims, 0, tensor->dtype);
    TENON_TRY(formula.status());
    return zeros.atom();
  }
  if (const AdtType* adt = wanted.adt())
    return builder_.bind(Construct{zero_name(context, adt->name), adt->args, {}}, Symbol{});
  const TupleType* tuple = type.tuple();
  if (!tuple) return builder_.tuple({});
  Atoms fields;
  for (uint32_t i = 0; i < tuple->fields.size(); ++i) {
    std::optional<Atom> part;
    if (primal && has_erased(tuple->fields[i])) {
      TENON_TRY_ASSIGN(field, builder_.project(*primal, i));
      part = *field;
    }
    TENON_TRY_ASSIGN(value, zero(tuple->fields[i], part));
    fields.push_back(*value);
  }
  return builder_.tuple(std::move(fields));
}

Expected<Atom> AdjointBuilder::materialize(const Adjoint& adjoint, Type type, const std::optional<Atom>& primal) {
  if (adjoint.zero()) return zero(type, primal);
  if (adjoint.value) return cast(*adjoint.value, adjoint_type(builder_.context(), builder_.module(), type));
  const TupleType* tuple = type.tuple();
  Atoms fields;
  for (uint32_t i = 0; i < tuple->fields.size(); ++i) {
    std::optional<Atom> part;
    if (primal && adjoint.fields[i].zero() && has_erased(tuple->fields[i])) {
      TENON_TRY_ASSIGN(field, builder_.project(*primal, i));
      part = *field;
    }
    TENON_TRY_ASSIGN(value, materialize(adjoint.fields[i], tuple->fields[i], part));
    fields.push_back(*value);
  }
  return builder_.tuple(std::move(fields));
}

// match a { TZero => b, C(x, ...) => match b { TZero => a, C(y, ...) => C(x + y, ...), _ => a }, ... }
Expected<Symbol> AdjointAdders::adder(Context& context, Module& module, Type type, DimNames& names) {
  if (const auto found = adders_.find(type); found != adders_.end()) return found->second;
  const AdtType& adt = *type.adt();
  size_t& open = open_[adt.name];
  if (open >= kMaxNesting) {
    return error(fmt::format("{} has itself with ever larger arguments among its fields, so that its adjoints cannot "
                             "be added",
                             context.name(adt.name)),
                 "", "a derivative needs a type with a finite number of instances");
  }
  ++open;
  Symbol name;
  for (size_t i = adders_.size();; ++i) {
    name = context.symbol(fmt::format("{}.add{}", context.name(adt.name), i));
    if (!module.globals.contains(name)) break;
  }
  adders_.emplace(type, name);
  Function function;
  std::set<Symbol> dims;
  for_each_part(type, [&](Type part) {
    if (!part.tensor()) return;
    for (const Dim dim : part.tensor()->dims) for_each_variable(dim, [&](Symbol variable) { dims.insert(variable); });
  });
  function.dims.assign(dims.begin(), dims.end());
  function.result = type;
  Builder builder(context, module, function);
  AdjointBuilder adjoints(builder, *this, names);
  const Atom a = builder.param(type, "a"), b = builder.param(type, "b");
  module.globals.emplace(name, function);  // its signature, for the calls of itself
  const Adt decl = module.adts.at(adt.name);
  const Symbol zero = zero_name(context, adt.name);
  std::map<Symbol, Type> args;
  for (size_t i = 0; i < decl.params.size(); ++i) args.emplace(decl.params[i], adt.args[i]);
  Case outer{a, {}};
  for (const Constructor& constructor : decl.constructors) {
    const auto pattern = [&](std::string_view prefix, std::vector<VarId>& vars) {
      ConstructPattern made{constructor.name, {}};
      for (const Type field : constructor.fields) {
        vars.push_back(builder.declare(context.substitute(field, {}, args), prefix));
        made.fields.push_back({BindPattern{vars.back()}});
      }
      return MatchPattern{std::move(made)};
    };
    if (constructor.name == zero) {
      outer.arms.push_back({MatchPattern{ConstructPattern{zero, {}}}, Block{{}, b}});
      continue;
    }
    std::vector<VarId> xs, ys;
    MatchPattern left = pattern("x", xs);
    builder.open();
    Case inner{b, {}};
    inner.arms.push_back({MatchPattern{ConstructPattern{zero, {}}}, Block{{}, a}});
    MatchPattern right = pattern("y", ys);
    builder.open();
    Construct construct{constructor.name, adt.args, {}};
    for (size_t i = 0; i < xs.size(); ++i) {
      TENON_TRY_ASSIGN(x, adjoints.parts(xs[i]));
      TENON_TRY_ASSIGN(y, adjoints.parts(ys[i]));
      TENON_TRY(adjoints.add(*x, *y));
      // A tuple's fields are joined again, with the types of the constructor's field.
      TENON_TRY_ASSIGN(value, adjoints.materialize(*x, function.type(xs[i]), xs[i]));
      construct.fields.push_back(*value);
    }
    TENON_TRY_ASSIGN(sum, builder.bind(std::move(construct), Symbol{}));
    inner.arms.push_back({std::move(right), builder.close(*sum)});
    if (decl.constructors.size() > 2) inner.arms.push_back({MatchPattern{AnyPattern{}}, Block{{}, a}});
    TENON_TRY_ASSIGN(joined, builder.bind(std::move(inner), Symbol{}));
    outer.arms.push_back({std::move(left), builder.close(*joined)});
  }
  TENON_TRY_ASSIGN(result, builder.bind(std::move(outer), Symbol{}));
  builder.finish(*result);
  module.globals.insert_or_assign(name, std::move(function));
  --open_[adt.name];
  return name;
}

}  // namespace tenon::compiler::gradient
