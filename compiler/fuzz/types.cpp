#include "compiler/fuzz/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/dtype.h"

namespace tenon::compiler::fuzz {
namespace {

template <class T>
bool contains(const std::vector<T>& list, const T& value) {
  return std::ranges::find(list, value) != list.end();
}

bool match_dim(Context& context, const std::vector<Symbol>& names, Dim pattern, Dim dim, Substitution& substitution) {
  if (const auto variable = pattern.variable(); variable && contains(names, *variable)) {
    return substitution.dims.emplace(*variable, dim).first->second == dim;
  }
  std::vector<Symbol> used;
  variables(pattern, used);
  for (Symbol name : used) {
    if (contains(names, name) && !substitution.dims.contains(name)) return false;
  }
  return context.substitute(pattern, substitution.dims) == dim;
}

}  // namespace

bool is_float(DType dtype) { return runtime::kReals.contains(dtype); }

void variables(Dim dim, std::vector<Symbol>& found) {
  for_each_variable(dim, [&](Symbol variable) {
    if (!contains(found, variable)) found.push_back(variable);
  });
}

void variables(Type type, std::vector<Symbol>& dims, std::vector<Symbol>& types) {
  auto visit_all = [&](const std::vector<Type>& parts) {
    for (Type part : parts) variables(part, dims, types);
  };
  if (auto* tensor = type.tensor()) {
    for (Dim dim : tensor->dims) variables(dim, dims);
  } else if (auto* tuple = type.tuple()) {
    visit_all(tuple->fields);
  } else if (auto* function = type.function()) {
    visit_all(function->params);
    variables(function->result, dims, types);
  } else if (auto* adt = type.adt()) {
    visit_all(adt->args);
  } else if (auto* reference = type.reference()) {
    variables(reference->value, dims, types);
  } else if (auto* variable = type.variable()) {
    if (!contains(types, variable->name)) types.push_back(variable->name);
  }
}

bool match(Context& context, const std::vector<Symbol>& dims, const std::vector<Symbol>& types, Type pattern, Type type,
           Substitution& substitution) {
  auto match_all = [&](const std::vector<Type>& a, const std::vector<Type>& b) {
    return std::ranges::equal(a, b, [&](Type x, Type y) { return match(context, dims, types, x, y, substitution); });
  };
  if (auto* variable = pattern.variable(); variable && contains(types, variable->name)) {
    return substitution.types.emplace(variable->name, type).first->second == type;
  }
  if (pattern == type && dims.empty() && types.empty()) return true;
  if (auto* a = pattern.tensor(), *b = type.tensor(); a && b) {
    return a->dtype == b->dtype && std::ranges::equal(a->dims, b->dims, [&](Dim x, Dim y) {
             return match_dim(context, dims, x, y, substitution);
           });
  }
  if (auto* a = pattern.tuple(), *b = type.tuple(); a && b) return match_all(a->fields, b->fields);
  if (auto* a = pattern.function(), *b = type.function(); a && b) {
    return match_all(a->params, b->params) && match(context, dims, types, a->result, b->result, substitution);
  }
  if (auto* a = pattern.adt(), *b = type.adt(); a && b) return a->name == b->name && match_all(a->args, b->args);
  if (auto* a = pattern.reference(), *b = type.reference(); a && b) {
    return match(context, dims, types, a->value, b->value, substitution);
  }
  return pattern == type;
}

Types::Types(Context& context, Random& random, Module& module, const Options& options)
    : context_(context), random_(random), module_(module), derivable_(options.derivable) {
  floats_ = options.floats ? *options.floats : random_.chance(60) ? DType::kF64 : DType::kF32;
  const DType odd =
      random_.of({DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI8, DType::kU8, DType::kU32, DType::kU64});
  dtypes_.insert(dtypes_.end(), 9, floats_);
  dtypes_.insert(dtypes_.end(), 4, DType::kI32);
  dtypes_.insert(dtypes_.end(), 3, DType::kI64);
  dtypes_.insert(dtypes_.end(), 2, odd);
  dtypes_.push_back(DType::kBool);
  if (random_.chance(10) && !derivable_) dtypes_.push_back(floats_ == DType::kF32 ? DType::kF64 : DType::kF32);
  sizes_ = {1, random_.between(2, 3), random_.between(3, 5)};
  if (random_.chance(8)) sizes_.push_back(0);
  if (random_.chance(8)) sizes_.push_back(random_.between(6, kLargestSize));
}

int64_t Types::size() { return sizes_[random_.between(0, static_cast<int64_t>(sizes_.size()) - 1)]; }
DType Types::dtype() { return dtypes_[random_.between(0, static_cast<int64_t>(dtypes_.size()) - 1)]; }

Dim Types::dim(const std::vector<Symbol>& variables) {
  if (variables.empty() || random_.chance(55)) return context_.dim(size());
  auto variable = [&] {
    return context_.dim(variables[random_.between(0, static_cast<int64_t>(variables.size()) - 1)]);
  };
  // One draw a statement: the evaluation order of arguments is unspecified.
  const int64_t form = random_.between(0, 12);
  const Dim first = variable();
  if (form < 7) return first;
  const Dim constant = context_.dim(random_.between(2, 4));
  switch (form) {
    case 7: return context_.multiply(constant, first);
    case 8: return context_.add(first, constant);
    case 9: return context_.floor_divide(context_.add(first, context_.dim(1)), constant);
    case 10: return context_.modulo(first, constant);
    default: break;
  }
  const Dim second = variable();
  if (form == 11) return random_.chance(50) ? context_.add(first, second) : context_.multiply(first, second);
  return random_.chance(50) ? context_.minimum({first, constant}) : context_.maximum({first, second});
}

Type Types::tensor(const std::vector<Symbol>& dims) {
  const int64_t draw = random_.between(0, 99);
  const int64_t rank = draw < 30 ? 0 : draw < 58 ? 1 : draw < 84 ? 2 : draw < 93 ? 3 : 4;
  Dims list;
  for (int64_t i = 0; i < rank; ++i) list.push_back(dim(dims));
  return context_.tensor(std::move(list), dtype());
}

Type Types::tensor(DType dtype) {
  Type type = tensor();
  return context_.tensor(type.tensor()->dims, dtype);
}

Type Types::erase_some(Type type) {
  return context_.map_sizes(type, [&](Dim dim) { return random_.chance(50) ? context_.erased() : dim; });
}
Type Types::with_sizes(Type type) {
  return context_.map_sizes(type, [&](Dim dim) { return dim.erased() ? context_.dim(size()) : dim; });
}

Type Types::any(const Wish& wish) {
  const int64_t draw = wish.depth <= 0 ? 0 : random_.between(0, 99);
  Wish inner = wish;
  --inner.depth;
  if (!wish.types.empty() && random_.chance(35)) {
    return context_.type_variable(wish.types[random_.between(0, static_cast<int64_t>(wish.types.size()) - 1)]);
  }
  if (draw < 60 || (defined_.empty() && draw < 82)) {
    const Type made = tensor(wish.dims);
    return wish.erased && random_.chance(40) ? erase_some(made) : made;
  }
  if (draw < 82) {
    const Symbol name = defined_[random_.between(0, static_cast<int64_t>(defined_.size()) - 1)];
    std::vector<Type> args;
    for (size_t i = 0; i < module_.adts.at(name).params.size(); ++i) args.push_back(any(inner));
    const Type type = context_.adt(name, std::move(args));
    return !wish.data || is_data(type) ? type : tensor(wish.dims);
  }
  if (draw < 90 || wish.data) {
    std::vector<Type> fields;
    for (int64_t i = random_.between(0, 3); i > 0; --i) fields.push_back(any(inner));
    return context_.tuple(std::move(fields));
  }
  if (draw < 96) {
    std::vector<Type> params;
    for (int64_t i = random_.between(0, 2); i > 0; --i) params.push_back(any(inner));
    return context_.function(std::move(params), any(inner));
  }
  return context_.reference(any(inner));
}

void Types::define(std::string_view name, const std::vector<std::string_view>& params,
                   std::vector<std::pair<std::string, std::vector<Type>>> constructors) {
  Adt adt;
  for (std::string_view param : params) adt.params.push_back(context_.symbol(param));
  for (auto& [constructor, fields] : constructors) {
    adt.constructors.push_back({context_.symbol(constructor), std::move(fields)});
  }
  const Symbol symbol = context_.symbol(name);
  module_.adts.emplace(symbol, std::move(adt));
  defined_.push_back(symbol);
}

void Types::define() {
  const Type a = context_.type_variable(context_.symbol("A")), b = context_.type_variable(context_.symbol("B"));
  if (random_.chance(60)) define("List", {"A"}, {{"Cons", {a, of("List", {a})}}, {"Nil", {}}});
  if (random_.chance(35)) {
    define("Tree", {"A"}, {{"Node", {of("Tree", {a}), a, of("Tree", {a})}}, {"Leaf", {}}});
  }
  if (random_.chance(35)) define("Option", {"A"}, {{"Some", {a}}, {"None", {}}});
  if (random_.chance(20)) define("Either", {"A", "B"}, {{"Left", {a}}, {"Right", {b}}});
  if (contains(defined_, context_.symbol("List")) && random_.chance(20)) {
    define("Rose", {"A"}, {{"Rose", {a, of("List", {of("Rose", {a})})}}});
  }
  if (random_.chance(10)) {  // each calls for the other
    define("Even", {"A"}, {{"Zero", {}}, {"Odd1", {a, of("Odd", {a})}}});
    define("Odd", {"A"}, {{"Even1", {a, of("Even", {a})}}});
  }
  if (random_.chance(8)) define("Nest", {"A"}, {{"Tip", {a}}, {"Twice", {of("Nest", {context_.tuple({a, a})})}}});
  if (random_.chance(15)) define("Code", {"A", "B"}, {{"Code", {context_.function({a}, b)}}});
  if (random_.chance(12)) define("Cell", {"A"}, {{"Cell", {context_.reference(a), a}}});
  for (int i = static_cast<int>(random_.between(0, 2)); i > 0; --i) define_random(i);
}

void Types::define_random(int index) {
  const std::string name = fmt::format("T{}", index);
  std::vector<std::string_view> params;
  std::vector<Type> self;
  for (std::string_view param : {"A", "B"}) {
    if (random_.chance(60)) continue;
    params.push_back(param);
    self.push_back(context_.type_variable(context_.symbol(param)));
  }
  const Type me = of(name, self);
  Wish wish{.depth = 1, .data = true};
  for (std::string_view param : params) wish.types.push_back(context_.symbol(param));
  std::vector<std::pair<std::string, std::vector<Type>>> constructors;
  for (int64_t i = 0, count = random_.between(1, 4); i < count; ++i) {
    std::vector<Type> fields;
    for (int64_t j = random_.between(0, 3); j > 0; --j) {
      fields.push_back(i > 0 && random_.chance(25) ? me : any(wish));
    }
    constructors.emplace_back(fmt::format("C{}_{}", index, i), std::move(fields));
  }
  define(name, params, std::move(constructors));
}

bool Types::is_data(Type type) const {
  std::vector<Symbol> visited;
  return is_data(type, visited);
}

bool Types::is_data(Type type, std::vector<Symbol>& visited) const {
  auto all_allowed = [&](const std::vector<Type>& parts) {
    return std::ranges::all_of(parts, [&](Type part) { return is_data(part, visited); });
  };
  if (type.function() || type.reference()) return false;
  if (auto* tuple = type.tuple()) return all_allowed(tuple->fields);
  auto* adt = type.adt();
  if (!adt) return true;
  if (!all_allowed(adt->args)) return false;
  if (contains(visited, adt->name)) return true;
  visited.push_back(adt->name);
  auto found = module_.adts.find(adt->name);
  return found == module_.adts.end() || std::ranges::all_of(found->second.constructors, [&](const Constructor& next) {
           return all_allowed(next.fields);
         });
}

std::vector<Type> Types::fields(const AdtType& adt, const Constructor& constructor) const {
  std::map<Symbol, Type> values;
  const Adt& definition = module_.adts.at(adt.name);
  for (size_t i = 0; i < adt.args.size(); ++i) values.emplace(definition.params[i], adt.args[i]);
  std::vector<Type> fields;
  for (Type field : constructor.fields) fields.push_back(context_.substitute(field, {}, values));
  return fields;
}

const Constructor& Types::smallest(const AdtType& adt) const {
  // The first constructor of all but the lists and trees is not recursive; of lists and trees the last is not.
  const Adt& definition = module_.adts.at(adt.name);
  const Constructor& last = definition.constructors.back();
  return last.fields.empty() ? last : definition.constructors.front();
}

runtime::Tensor Types::constant(DType dtype, const runtime::Shape& shape) {
  runtime::Tensor tensor(dtype, shape);
  auto fill = [&]<class T>(T) {
    for (T& value : tensor.data<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        value = random_.chance(50);
      } else if constexpr (runtime::is_real<T>) {
        value = static_cast<T>(static_cast<double>(random_.between(-128, 128)) / 64);
      } else {
        const int64_t low = std::is_signed_v<T> ? -6 : 0;
        value = static_cast<T>(random_.between(low, 8));
        if (random_.chance(3)) value = std::numeric_limits<T>::max();
        if (random_.chance(2)) value = std::numeric_limits<T>::min();
      }
    }
  };
  runtime::with_dtype<runtime::kAnyDType>(dtype, fill);
  return tensor;
}

}  // namespace tenon::compiler::fuzz
