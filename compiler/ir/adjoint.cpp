// The derivation of adjoint types and their declarations.
#include "compiler/ir/adjoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr std::string_view kSuffix = "Adjoint";

// Whether the type of an adjoint has this name.
bool is_adjoint(const Context& context, Symbol name) { return context.name(name).ends_with(kSuffix); }

// Whether a value of the type has a part of floats. `params`: what a type variable is taken to be.
class Floats {
 public:
  Floats(Context& context, const Module& module, bool params) : context_(context), module_(module), params_(params) {}

  bool operator()(Type type) {
    if (const TensorType* tensor = type.tensor()) return runtime::kReals.contains(tensor->dtype);
    if (const TupleType* tuple = type.tuple()) {
      // A part that was looked at before had none; nested tuples may share their parts.
      return tuples_.insert(type).second && std::ranges::any_of(tuple->fields, std::ref(*this));
    }
    if (type.variable()) return params_;
    const AdtType* adt = type.adt();
    if (!adt || seen_.size() > kMaxTypes || !seen_.insert(type).second) return false;
    const auto found = module_.adts.find(adt->name);
    if (found == module_.adts.end()) return false;
    std::map<Symbol, Type> args;
    for (size_t i = 0; i < std::min(adt->args.size(), found->second.params.size()); ++i)
      args.emplace(found->second.params[i], adt->args[i]);
    return std::ranges::any_of(found->second.constructors, [&](const Constructor& constructor) {
      return std::ranges::any_of(constructor.fields,
                                 [&](Type field) { return (*this)(context_.substitute(field, {}, args)); });
    });
  }

 private:
  static constexpr size_t kMaxTypes = 1000;  // a type whose arguments grow, as T[(A, A)] in T[A], ends here
  Context& context_;
  const Module& module_;
  bool params_;
  std::set<Type> seen_, tuples_;
};

// Whether the defined type has an adjoint of its own; its parameters are taken to be floats.
bool declares_adjoint(Context& context, const Module& module, Symbol name) {
  const auto found = module.adts.find(name);
  if (found == module.adts.end()) return false;
  std::vector<Type> params;
  for (const Symbol param : found->second.params) params.push_back(context.type_variable(param));
  return Floats(context, module, true)(context.adt(name, params));
}

}  // namespace

Symbol adjoint_name(Context& context, Symbol name) {
  if (is_adjoint(context, name)) return name;
  return context.symbol(fmt::format("{}{}", context.name(name), kSuffix));
}

Symbol zero_name(Context& context, Symbol adt) {
  std::string_view name = context.name(adt);
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  return context.symbol(fmt::format("{}Zero", name));
}

Type adjoint_type(Context& context, const Module& module, Type type) {
  if (const TensorType* tensor = type.tensor()) return runtime::kReals.contains(tensor->dtype) ? type : context.unit();
  if (type.variable()) return type;
  if (const TupleType* tuple = type.tuple()) {
    std::vector<Type> fields;
    for (const Type field : tuple->fields) fields.push_back(adjoint_type(context, module, field));
    return context.tuple(std::move(fields));
  }
  const AdtType* adt = type.adt();
  if (!adt || !declares_adjoint(context, module, adt->name)) return context.unit();
  std::vector<Type> args;
  for (const Type arg : adt->args) args.push_back(adjoint_type(context, module, arg));
  return context.adt(adjoint_name(context, adt->name), std::move(args));
}

bool has_adjoint(Context& context, const Module& module, Type type) { return Floats(context, module, false)(type); }

Status declare_adjoint(Context& context, Module& module, Symbol adt) {
  const Symbol name = adjoint_name(context, adt);
  if (module.adts.contains(name) || !declares_adjoint(context, module, adt)) return {};
  const Adt& decl = module.adts.at(adt);
  Adt adjoint{decl.params, {}};
  std::vector<Symbol> inner;
  for (const Constructor& constructor : decl.constructors) {
    Constructor next{adjoint_name(context, constructor.name), {}};
    for (const Type field : constructor.fields) {
      next.fields.push_back(adjoint_type(context, module, field));
      for_each_part(field, [&](Type part) {
        if (part.adt()) inner.push_back(part.adt()->name);
      });
    }
    adjoint.constructors.push_back(std::move(next));
  }
  adjoint.constructors.push_back({zero_name(context, adt), {}});
  for (const Constructor& constructor : adjoint.constructors) {
    if (!module.constructor(constructor.name)) continue;
    return error(fmt::format("the adjoint of {} needs a constructor {}, which another type has", context.name(adt),
                             context.name(constructor.name)),
                 "", "rename the constructor of the other type");
  }
  module.adts.emplace(name, std::move(adjoint));
  for (const Symbol next : inner) TENON_TRY(declare_adjoint(context, module, next));
  return {};
}

Status declare_adjoints(Context& context, Module& module) {
  std::vector<Symbol> names;
  for (const auto& [name, adt] : module.adts) names.push_back(name);
  for (const Symbol name : names) TENON_TRY(declare_adjoint(context, module, name));
  return {};
}

}  // namespace tenon::compiler
