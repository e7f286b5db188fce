// Values of a wanted type: locals in scope, computed values, or constructed ones.
#include <algorithm>

#include "compiler/fuzz/body.h"

namespace tenon::compiler::fuzz {

std::optional<Atom> Body::value(Type type, int depth) {
  auto from_scope = [&]() -> Made {
    const Local* local = any([&](const Local& next) { return next.type == type && !next.fuel; });
    if (!local) return std::nullopt;
    return local->atom;
  };
  const bool quick = depth <= 0 || exhausted();
  if (quick || random_.chance(50)) {
    if (Made found = from_scope()) return found;
  }
  for (int attempt = 0; !quick && attempt < 2; ++attempt) {
    // The operator may have another result dtype, as i32 for the product of two i8.
    if (Made made = compute(type, depth - 1); made && type_of(*made) == type) return made;
  }
  if (Made found = from_scope()) return found;
  return construct(type, depth);
}

Body::Made Body::construct(Type type, int depth) {
  auto values = [&](const std::vector<Type>& types) -> std::optional<Atoms> {
    Atoms atoms;
    for (Type next : types) {
      const Made made = value(next, depth - 1);
      if (!made) return std::nullopt;
      atoms.push_back(*made);
    }
    return atoms;
  };
  if (!constructible(type)) return std::nullopt;
  if (auto* tensor = type.tensor()) {
    if (has_erased(type)) {
      const Made made = value(types_.with_sizes(type), depth - 1);
      return made ? bind(Cast{*made, type, {}}) : std::nullopt;
    }
    const auto shape = tensor->shape();
    if (!shape) return std::nullopt;
    return constant(tensor->dtype, *shape);
  }
  if (auto* tuple = type.tuple()) {
    auto fields = values(tuple->fields);
    if (!fields) return std::nullopt;
    return bind(Tuple{std::move(*fields)});
  }
  if (auto* adt = type.adt()) {
    const auto& constructors = builder_.module().adts.at(adt->name).constructors;
    const Constructor* constructor = &types_.smallest(*adt);
    if (depth > 0 && !exhausted()) {
      const Constructor& other = constructors[random_.between(0, static_cast<int64_t>(constructors.size()) - 1)];
      if (std::ranges::all_of(types_.fields(*adt, other), [&](Type next) { return constructible(next); })) {
        constructor = &other;
      }
    }
    const Symbol name = constructor->name;
    auto fields = values(types_.fields(*adt, *constructor));
    if (!fields) return std::nullopt;
    return bind(Construct{name, adt->args, std::move(*fields)});
  }
  if (auto* function = type.function()) return lambda(*function, depth);
  if (auto* reference = type.reference()) {
    const Made content = value(reference->value, depth - 1);
    if (!content) return std::nullopt;
    return bind(MakeReference{*content});
  }
  return std::nullopt;
}

Body::Made Body::compute(Type type, int depth) {
  if (!options_.control) return type.tensor() ? tensor_by_operator(type, depth) : std::nullopt;
  const int64_t draw = random_.between(0, 99);
  if (type.tensor() && draw < 45) return tensor_by_operator(type, depth);
  if (draw < 55) {
    std::vector<const Callee*> fitting;
    const auto& from = may_recur_ && !group.empty() && random_.chance(50) ? group : callees;
    for (const Callee& callee : from) {
      Substitution substitution;
      if (fuzz::match(context_, callee.dims, callee.types, callee.result, type, substitution))
        fitting.push_back(&callee);
    }
    if (fitting.empty()) return std::nullopt;
    const Callee callee = *fitting[random_.between(0, static_cast<int64_t>(fitting.size()) - 1)];
    return call(callee, type, depth);
  }
  if (draw < 62) {
    const Local* closure =
        any([&](const Local& next) { return next.type.function() && next.type.function()->result == type; });
    if (!closure) return std::nullopt;
    const Local copy = *closure;
    return call_value(copy, depth);
  }
  if (draw < 68) {
    const Local* tuple = any([&](const Local& next) {
      return next.type.tuple() && std::ranges::find(next.type.tuple()->fields, type) != next.type.tuple()->fields.end();
    });
    if (!tuple) return std::nullopt;
    const auto& fields = tuple->type.tuple()->fields;
    return bind(Project{tuple->atom, static_cast<uint32_t>(std::ranges::find(fields, type) - fields.begin())});
  }
  if (draw < 74) {
    const Local* cell =
        any([&](const Local& next) { return next.type.reference() && next.type.reference()->value == type; });
    if (!cell) return std::nullopt;
    return bind(ReadReference{cell->atom});
  }
  if (draw < 82) return branch(type, depth);
  if (draw < 90) {
    const Local* subject = any([](const Local& next) { return next.type.adt() != nullptr; });
    if (!subject) return std::nullopt;
    const Local copy = *subject;
    return match(copy, type, depth);
  }
  if (draw < 94) {  // a closure that is applied immediately
    if (!constructible(type)) return std::nullopt;
    const Type param = some_type();
    const Made closure = lambda(FunctionType{{param}, type}, depth);
    const Made argument = closure ? value(param, depth) : std::nullopt;
    if (!argument) return std::nullopt;
    return bind(Call{*closure, {*argument}});
  }
  if (draw < 97) {  // into a cell and out again
    const Made content = value(type, depth);
    const Made cell = content ? bind(MakeReference{*content}) : std::nullopt;
    if (!cell) return std::nullopt;
    return bind(ReadReference{*cell});
  }
  return construct(type, depth);
}

// An operator with a result of that type.
Body::Made Body::tensor_by_operator(Type type, int depth) {
  if (has_erased(type)) return std::nullopt;
  const TensorType wanted = *type.tensor();
  const bool real = is_float(wanted.dtype);
  auto like = [&](DType dtype) { return value(context_.tensor(wanted.dims, dtype), depth); };
  const int64_t draw = random_.between(0, 99);
  if (draw < 25) {
    const OperatorId op = real ? random_.of({ops::kTanh, ops::kSigmoid, ops::kRelu, ops::kIdentity}) : ops::kRelu;
    const Made x = value(type, depth);
    return x ? apply(op, {*x}) : std::nullopt;
  }
  if (draw < 60) {
    const OperatorId op = random_.of({ops::kAdd, ops::kSubtract, ops::kMultiply});
    Dims dims = wanted.dims;
    for (Dim& dim : dims) {
      if (random_.chance(20)) dim = context_.dim(1);
    }
    const Made a = value(type, depth), b = value(context_.tensor(dims, wanted.dtype), depth);
    if (!a || !b) return std::nullopt;
    return random_.chance(50) ? apply(op, {*a, *b}) : apply(op, {*b, *a});
  }
  if (draw < 75) {  // integers may become floats, never the other way round
    const Made x = like(real || random_.chance(70) ? DType::kI32 : DType::kI64);
    return x ? apply(ops::kCast, {*x}, {{"dtype", std::string(runtime::name(wanted.dtype))}}) : std::nullopt;
  }
  if (draw < 85 && wanted.dims.size() >= 2) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < wanted.dims.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    for (size_t i = axes.size() - 1; i > 0; --i) std::swap(axes[i], axes[random_.between(0, static_cast<int64_t>(i))]);
    Dims dims(wanted.dims.size());
    for (size_t i = 0; i < axes.size(); ++i) dims[axes[i]] = wanted.dims[i];
    const Made x = value(context_.tensor(dims, wanted.dtype), depth);
    return x ? apply(ops::kTranspose, {*x}, {{"axes", axes}}) : std::nullopt;
  }
  if (draw < 93 && wanted.dims.size() == 2) {
    const Dim inner = context_.dim(types_.size());
    const Made a = value(context_.tensor(Dims{wanted.dims[0], inner}, wanted.dtype), depth);
    const Made b = value(context_.tensor(Dims{inner, wanted.dims[1]}, wanted.dtype), depth);
    return a && b ? apply(ops::kMatmul, {*a, *b}) : std::nullopt;
  }
  if (const auto shape = wanted.shape(); shape && !shape->empty()) {
    const Dims flat{context_.dim(runtime::element_count(*shape))};
    const Made x = value(context_.tensor(flat, wanted.dtype), depth);
    return x ? apply(ops::kReshape, {*x}, {{"shape", *shape}}) : std::nullopt;
  }
  return std::nullopt;
}

Body::Made Body::condition(int depth) {
  const Type wanted = context_.tensor(Dims{}, DType::kBool);
  const Local* local = any([&](const Local& next) { return next.type == wanted; });
  if (local && random_.chance(50)) return local->atom;
  const Type integer = types_.scalar(random_.chance(50) ? DType::kI32 : DType::kI64);
  const Made made = value(integer, depth);
  if (!made) return std::nullopt;
  return apply(ops::kCast, {*made}, {{"dtype", std::string("bool")}});
}

Body::Made Body::branch(Type type, int depth) {
  const Made chosen = condition(depth);
  if (!chosen || !constructible(type)) return std::nullopt;
  If value{*chosen, {}};
  for (int arm = 0; arm < 2; ++arm) {
    auto made = block(type, random_.between(0, 2));
    if (!made) return std::nullopt;
    value.arms.push_back(std::move(*made));
  }
  return bind(std::move(value));
}

Body::Made Body::lambda(const FunctionType& type, int depth, std::string_view name) {
  const Type whole = context_.function(type.params, type.result);
  if (!constructible(whole)) return std::nullopt;
  const VarId self = builder_.declare(whole, name);
  Lambda value{{}, type.result, {}};
  std::vector<Local> locals;
  for (Type param : type.params) {
    value.params.push_back(builder_.declare(param, random_.chance(50) ? fresh("x") : ""));
    locals.push_back({.atom = value.params.back(), .type = param});
  }
  // The body runs where the closure is called; any caller may call it, so it must neither recur nor be expensive.
  const int64_t cost = cost_, limit_before = limit;
  const bool recur = may_recur_;
  cost_ = 0, limit = std::min(limit, call_cost(whole) / 2), may_recur_ = false;
  auto body = block(type.result, depth > 0 ? random_.between(0, 3) : 0, locals);
  const int64_t outer_cost = cost_;
  cost_ = cost, limit = limit_before, may_recur_ = recur;
  if (!body || outer_cost > call_cost(whole)) return std::nullopt;
  value.body.push_back(std::move(*body));
  ++cost_;
  auto made = builder_.bind_to(self, std::move(value));
  if (!made) return std::nullopt;
  call_costs_[static_cast<uint32_t>(self)] = outer_cost + 1;
  return *made;
}

}  // namespace tenon::compiler::fuzz
