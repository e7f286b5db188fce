// Queries of modules: lookups, copies, uses and types.
#include "compiler/ir/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "compiler/ir/operator.h"

namespace tenon::compiler {
namespace {

template <class T>
const T& attr_of(const Attrs& attrs, std::string_view name) {
  auto found = attrs.find(name);
  assert(found != attrs.end() && std::holds_alternative<T>(found->second));
  return std::get<T>(found->second);
}

}  // namespace

std::string Span::str() const {
  std::string text = file;
  if (line > 0) text += fmt::format("{}{}:{}", text.empty() ? "" : ":", line, column);
  if (!op.empty() || !node.empty()) {
    text += fmt::format("{}{}{}'{}'", text.empty() ? "" : ": ", op, op.empty() ? "" : " ", node);
  }
  return text;
}

const Function* Module::function(Symbol name) const {
  auto found = globals.find(name);
  return found == globals.end() ? nullptr : std::get_if<Function>(&found->second);
}
Function* Module::function(Symbol name) {
  auto found = globals.find(name);
  return found == globals.end() ? nullptr : std::get_if<Function>(&found->second);
}

const Library* Module::library(Symbol name) const {
  auto found = globals.find(name);
  return found == globals.end() ? nullptr : std::get_if<Library>(&found->second);
}

const loop::Function* Module::loop_function(Symbol name) const {
  auto found = globals.find(name);
  return found == globals.end() ? nullptr : std::get_if<loop::Function>(&found->second);
}

std::optional<Module::ConstructorDecl> Module::constructor(Symbol wanted) const {
  for (const auto& [name, adt] : adts) {
    for (size_t i = 0; i < adt.constructors.size(); ++i) {
      if (adt.constructors[i].name == wanted) return ConstructorDecl{name, &adt, i};
    }
  }
  return std::nullopt;
}

ConstId Module::add_constant(runtime::Tensor tensor) {
  constants.push_back(std::move(tensor));
  return static_cast<ConstId>(constants.size() - 1);
}

SpanId Module::add_span(Span span) {
  spans.push_back(std::move(span));
  return static_cast<SpanId>(spans.size() - 1);
}

Module clone(const Module& module) { return module; }

std::vector<uint32_t> use_counts(const Function& function) {
  std::vector<uint32_t> counts(function.vars.size(), 0);
  for_each_use(function.body, [&](const Atom& atom) {
    if (auto* var = std::get_if<VarId>(&atom)) ++counts[index(*var)];
  });
  return counts;
}

void rename_global(Module& module, Symbol from, Symbol to) {
  auto node = module.globals.extract(from);
  node.key() = to;
  module.globals.insert(std::move(node));
  const auto replace = [&](Symbol& symbol) {
    if (symbol == from) symbol = to;
  };
  for_each_function(module, [&](Symbol, Function& function) {
    if (function.batched) replace(*function.batched);
    if (function.gradient) replace(*function.gradient);
    for_each_binding(function.body, [&](Binding& binding) {
      Call* call = call_of(binding.value);
      if (auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr) replace(*symbol);
    });
    for_each_use(function.body, [&](Atom& atom) {
      if (auto* symbol = std::get_if<Symbol>(&atom)) replace(*symbol);
    });
  });
}

void for_each_type(Function& function, FunctionRef<void(Type&)> visit) {
  visit(function.result);
  for (VarInfo& info : function.vars) visit(info.type);
  for_each_binding(function.body, [&](Binding& binding) {
    if (auto* lambda = std::get_if<Lambda>(&binding.value)) visit(lambda->result);
    if (auto* cast = std::get_if<Cast>(&binding.value)) visit(cast->type);
    if (Call* call = call_of(binding.value)) {
      for (Type& type : call->types) visit(type);
    }
    if (auto* construct = std::get_if<Construct>(&binding.value)) {
      for (Type& type : construct->types) visit(type);
    }
  });
}

runtime::ComputedKind computed_kind(const Apply& apply, std::string_view attr) {
  using runtime::ComputedKind;
  const AttrSpec* spec = apply.op->attribute(attr);
  assert(spec && spec->computable);
  switch (spec->kind) {
    case AttrKind::kInt: return ComputedKind::kInteger;
    case AttrKind::kInts: return ComputedKind::kIntegers;
    case AttrKind::kFloat: return ComputedKind::kReal;
    case AttrKind::kFloats:
    case AttrKind::kString: break;
  }
  return ComputedKind::kReals;
}

void settle_attributes(Apply& apply) {
  std::erase_if(apply.computed, [&](const auto& entry) {
    const auto& [name, attr] = entry;
    const auto* dims = std::get_if<Dims>(&attr);
    if (!dims || !std::ranges::all_of(*dims, [](Dim dim) { return dim.constant().has_value(); })) return false;
    std::vector<int64_t> values;
    for (const Dim dim : *dims) values.push_back(*dim.constant());
    const AttrSpec* spec = apply.op->attribute(name);
    if (spec && spec->kind == AttrKind::kInt && values.size() == 1) apply.attrs.insert_or_assign(name, values[0]);
    else apply.attrs.insert_or_assign(name, std::move(values));
    return true;
  });
}

void substitute(Context& context, Function& function, const std::map<Symbol, Dim>& dims,
                const std::map<Symbol, Type>& types) {
  for_each_type(function, [&](Type& type) { type = context.substitute(type, dims, types); });
  for_each_binding(function.body, [&](Binding& binding) {
    for_each_dim(binding.value, [&](Dim& dim) { dim = context.substitute(dim, dims); });
    if (auto* apply = std::get_if<Apply>(&binding.value)) settle_attributes(*apply);
  });
}

bool first_order(const Module& module, const Function& function) {
  std::vector<const Function*> open{&function}, seen{&function};
  while (!open.empty()) {
    const Function& next = *open.back();
    open.pop_back();
    auto tensors = [](Type type, auto& self) -> bool {
      const TupleType* tuple = type.tuple();
      return type.tensor() || (tuple && std::ranges::all_of(tuple->fields, [&](Type f) { return self(f, self); }));
    };
    for (const VarInfo& info : next.vars) {
      if (!tensors(info.type, tensors)) return false;
    }
    for (const Binding& binding : next.body.bindings) {
      if (std::holds_alternative<Apply>(binding.value) || std::holds_alternative<Tuple>(binding.value) ||
          std::holds_alternative<Project>(binding.value) || std::holds_alternative<DimValue>(binding.value)) {
        continue;
      }
      auto* call = std::get_if<Call>(&binding.value);
      auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
      if (symbol && (module.loop_function(*symbol) || module.library(*symbol))) continue;
      const Function* callee = symbol ? module.function(*symbol) : nullptr;
      if (!callee || callee == &function) return false;
      if (std::ranges::find(seen, callee) == seen.end()) open.push_back(callee), seen.push_back(callee);
    }
  }
  return true;
}

Call* call_of(Value& value) {
  if (auto* gradient = std::get_if<Gradient>(&value)) return &gradient->call;
  return std::get_if<Call>(&value);
}
const Call* call_of(const Value& value) {
  if (auto* gradient = std::get_if<Gradient>(&value)) return &gradient->call;
  return std::get_if<Call>(&value);
}

int64_t int_attr(const Attrs& attrs, std::string_view name) { return attr_of<int64_t>(attrs, name); }
double float_attr(const Attrs& attrs, std::string_view name) { return attr_of<double>(attrs, name); }
const std::string& string_attr(const Attrs& attrs, std::string_view name) { return attr_of<std::string>(attrs, name); }
const std::vector<int64_t>& ints_attr(const Attrs& attrs, std::string_view name) {
  return attr_of<std::vector<int64_t>>(attrs, name);
}
const std::vector<double>& floats_attr(const Attrs& attrs, std::string_view name) {
  return attr_of<std::vector<double>>(attrs, name);
}

}  // namespace tenon::compiler
