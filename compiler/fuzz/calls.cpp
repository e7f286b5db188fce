// Calls of functions, by name and by value, and recursion.
#include <algorithm>

#include "compiler/fuzz/body.h"

namespace tenon::compiler::fuzz {

Body::Made Body::fuel() {
  if (less_ && may_recur_ && random_.chance(20)) return less_;
  return builder_.constant<int32_t>({}, {static_cast<int32_t>(random_.between(0, kMaxFuel))});
}

Body::Made Body::call(const Callee& callee, std::optional<Type> result, int depth) {
  const bool inside = std::ranges::any_of(group, [&](const Callee& next) { return next.atom == callee.atom; });
  if (cost_ + callee.cost > limit || (inside && (!may_recur_ || recursions_ >= 2))) return std::nullopt;
  Substitution substitution;
  if (inside) {  // one instance for all types
    for (Symbol name : callee.types) substitution.types.emplace(name, context_.type_variable(name));
  }
  if (result && !fuzz::match(context_, callee.dims, callee.types, callee.result, *result, substitution))
    return std::nullopt;
  Atoms args;
  for (size_t i = 0; i < callee.params.size(); ++i) {
    const Type param = callee.params[i];
    if (callee.fuel == i) {
      const Made given = inside ? less_ : fuel();
      if (!given) return std::nullopt;
      args.push_back(*given);
      continue;
    }
    auto fits = [&](const Local& next) {
      Substitution copy = substitution;
      return !next.fuel && fuzz::match(context_, callee.dims, callee.types, param, next.type, copy);
    };
    const bool subject = inside && callee.subject == i;
    const Local* found = any([&](const Local& next) { return (next.smaller || !subject) && fits(next); });
    if (subject && !found) return std::nullopt;
    if (found && (subject || random_.chance(75))) {
      args.push_back(found->atom);
      if (!fuzz::match(context_, callee.dims, callee.types, param, found->type, substitution)) return std::nullopt;
      continue;
    }
    std::vector<Symbol> dims, types;
    variables(param, dims, types);
    for (Symbol name : dims) {
      if (std::ranges::find(callee.dims, name) != callee.dims.end()) {
        substitution.dims.try_emplace(name, context_.dim(types_.size()));
      }
    }
    for (Symbol name : types) {
      if (std::ranges::find(callee.types, name) == callee.types.end() || substitution.types.contains(name)) continue;
      substitution.types.emplace(name, some_type());
    }
    const Made made = value(context_.substitute(param, substitution.dims, substitution.types), depth - 1);
    if (!made) return std::nullopt;
    args.push_back(*made);
  }
  cost_ += callee.cost;
  if (inside) ++recursions_;
  std::vector<Type> given;
  for (Symbol name : explicit_type_params({callee.dims, callee.types, {}, callee.params, callee.result})) {
    given.push_back(substitution.types.try_emplace(name, some_type()).first->second);
  }
  return bind(Call{callee.atom, std::move(args), std::move(given)}, random_.chance(20) ? "call" : "");
}

Body::Made Body::call_value(const Local& callee, int depth) {
  const FunctionType& type = *callee.type.function();
  int64_t cost = call_cost(callee.type);
  if (auto* var = std::get_if<VarId>(&callee.atom)) {
    if (auto found = call_costs_.find(static_cast<uint32_t>(*var)); found != call_costs_.end()) cost = found->second;
  }
  if (cost_ + cost > limit) return std::nullopt;
  Atoms args;
  for (Type param : type.params) {
    const Made made = value(param, depth - 1);
    if (!made) return std::nullopt;
    args.push_back(*made);
  }
  cost_ += cost;
  return bind(Call{callee.atom, std::move(args)});
}

std::optional<Atom> Body::by_fuel(Atom fuel, Type result, int64_t count) {
  const Made positive = apply(ops::kRelu, {fuel});
  const Made more = positive ? apply(ops::kCast, {*positive}, {{"dtype", std::string("bool")}}) : std::nullopt;
  if (!more) return std::nullopt;
  If value{*more, {}};
  const size_t outer_size = scope_.size();
  builder_.open();
  less_ = apply(ops::kSubtract, {fuel, builder_.constant<int32_t>({}, {1})});
  may_recur_ = less_.has_value();
  if (less_) add({.atom = *less_, .type = type_of(*less_), .fuel = true});
  statements(count);
  Made made;
  for (int attempt = 0; attempt < 4 && recursions_ == 0;
       ++attempt) {  // the body must contain at least one recursive call
    const Callee callee = group[random_.between(0, static_cast<int64_t>(group.size()) - 1)];
    made = add_result(call(callee, std::nullopt, 1));
  }
  if (!made || type_of(*made) != result || random_.chance(50)) made = this->value(result, 2);
  may_recur_ = false;
  less_ = std::nullopt;
  Block block = builder_.close(made ? *made : Atom{});
  scope_.resize(outer_size);
  if (!made) return std::nullopt;
  value.arms.push_back(std::move(block));
  auto otherwise = this->block(result, count / 2);
  if (!otherwise) return std::nullopt;
  value.arms.push_back(std::move(*otherwise));
  if (random_.chance(20)) {  // the other way round, by a comparison with zero
    const Made swapped = value_of_not(*more);
    if (swapped) {
      value.condition = *swapped;
      std::swap(value.arms[0], value.arms[1]);
    }
  }
  return bind(std::move(value));
}

// Not a, as 1 - a; nothing where an operator refuses the type.
Body::Made Body::value_of_not(Atom a) {
  const Made integer = apply(ops::kCast, {a}, {{"dtype", std::string("i32")}});
  const Made other = integer ? apply(ops::kSubtract, {builder_.constant<int32_t>({}, {1}), *integer}) : std::nullopt;
  return other ? apply(ops::kCast, {*other}, {{"dtype", std::string("bool")}}) : std::nullopt;
}

std::optional<Atom> Body::by_structure(const Local& subject, Type result) { return match(subject, result, 3, true); }

// A closure that calls itself, applied immediately.
bool Body::any_recursion() {
  if (may_recur_ || exhausted()) return false;
  const Type integer = types_.scalar(DType::kI32), carried = some_type(), result = some_type();
  if (!constructible(result)) return false;
  const Type type = context_.function({integer, carried}, result);
  const VarId self = builder_.declare(type, fresh("loop"));
  const VarId counter = builder_.declare(integer, "fuel"), state = builder_.declare(carried, "state");
  const std::vector<Callee> group_before = std::move(group);
  const int64_t cost = cost_, limit_before = limit, recursions = recursions_;
  group = {Callee{
      .atom = self, .dims = {}, .types = {}, .params = {integer, carried}, .result = result, .fuel = 0, .subject = {}}};
  cost_ = 0, limit = std::min<int64_t>(limit / 20, 60), recursions_ = 0;
  const size_t outer_size = scope_.size();
  add({.atom = state, .type = carried});
  builder_.open();
  const Made made = by_fuel(counter, result, random_.between(0, 3));
  Block body = builder_.close(made ? *made : Atom{});
  scope_.resize(outer_size);
  const int64_t cost_of_call = (cost_ + 1) * (recursions_ > 1 ? 16 : 4);
  group = group_before;
  cost_ = cost, limit = limit_before, recursions_ = recursions;
  if (!made) return false;
  Lambda lambda{{counter, state}, result, {}};
  lambda.body.push_back(std::move(body));
  if (!builder_.bind_to(self, std::move(lambda))) return false;
  for (int64_t i = random_.between(1, 2); i > 0 && cost_ + cost_of_call < limit; --i) {
    const Made steps = fuel(), start = value(carried, 1);
    if (!start) continue;
    cost_ += cost_of_call;
    add_result(bind(Call{self, {*steps, *start}}));
  }
  return true;
}

}  // namespace tenon::compiler::fuzz
