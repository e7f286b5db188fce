#include "compiler/fuzz/body.h"

#include <algorithm>
#include <cassert>

#include "compiler/fuzz/operands.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler::fuzz {
namespace {

int64_t order(Type type) {
  auto most = [](const std::vector<Type>& parts) {
    int64_t found = 0;
    for (Type part : parts) found = std::max(found, order(part));
    return found;
  };
  if (auto* function = type.function()) return 1 + std::max(most(function->params), order(function->result));
  if (auto* tuple = type.tuple()) return most(tuple->fields);
  if (auto* adt = type.adt()) return most(adt->args);
  return type.reference() ? order(type.reference()->value) : 0;
}

}  // namespace

int64_t call_cost(Type type) {
  int64_t cost = 15;
  for (int64_t i = std::min<int64_t>(order(type), 5); i > 1; --i) cost *= 4;
  return cost;
}

// A wanted local, the later ones more often.
const Local* Body::any(FunctionRef<bool(const Local&)> wanted) {
  std::vector<const Local*> found;
  for (const Local& local : scope_) {
    if (wanted(local)) found.push_back(&local);
  }
  if (found.empty()) return nullptr;
  const auto count = static_cast<int64_t>(found.size());
  const int64_t first = random_.chance(50) ? std::max<int64_t>(0, count - 6) : 0;
  return found[random_.between(first, count - 1)];
}

bool Body::is_exact(const Atom& atom) const {
  if (std::holds_alternative<ConstId>(atom)) return true;
  return std::ranges::any_of(scope_, [&](const Local& local) { return local.atom == atom && local.exact; });
}

Body::Made Body::bind(Value value, std::string_view name) {
  ++cost_;
  // A value that needs an unproved size would insert a cast, which a graph does not have.
  if (!options_.control && !infer(value)) return std::nullopt;
  auto made = builder_.bind(std::move(value), context_.symbol(name));
  if (!made) return std::nullopt;
  return *made;
}

Body::Made Body::add_result(Made made) {
  if (made && std::holds_alternative<VarId>(*made)) add({.atom = *made, .type = type_of(*made)});
  return made;
}

Body::Made Body::apply(OperatorId op, Atoms args, Attrs attrs) {
  ++cost_;
  auto made = builder_.apply(op, std::move(args), std::move(attrs));
  if (!made) return std::nullopt;
  return *made;
}

void Body::statements(int64_t count) {
  for (int64_t i = 0; i < count && !exhausted(); ++i) statement();
}

bool Body::statement() {
  if (!options_.control) {
    if (random_.chance(92)) return operation();
    return any_data();
  }
  const int64_t draw = random_.between(0, 99);
  if (draw < 40) return operation();
  if (draw < 52) return any_call();
  if (draw < 61) return any_match();
  if (draw < 68) return any_if();
  if (draw < 75) return any_closure();
  if (draw < 83) return any_data();
  if (draw < 91) return any_reference();
  if (draw < 94) return any_cast();
  if (draw < 97) return any_size();
  if (draw < 98) return any_library();
  return any_recursion();
}

// A long chain of elementwise operators, of which kernels are made: each link takes the last one, and maybe another.
bool Body::chain() {
  const Local* first = any(
      [](const Local& next) { return next.type.tensor() && !next.fuel && next.type.tensor()->dtype != DType::kBool; });
  if (!first) return false;
  const Type type = first->type;
  const bool real = is_float(type.tensor()->dtype);
  Atoms links{first->atom};
  for (int64_t i = random_.between(20, 80); i > 0 && !exhausted(); --i) {
    Made made;
    if (random_.chance(50)) {
      // Of a slope of at most 1, so that rounding errors do not grow.
      const OperatorId op = real ? random_.of({ops::kTanh, ops::kSigmoid, ops::kAbs, ops::kRelu, ops::kNegate})
                                 : random_.of({ops::kAbs, ops::kRelu, ops::kNegate});
      made = apply(op, {links.back()});
    } else {
      const OperatorId op = random_.of({ops::kAdd, ops::kSubtract, ops::kMaximum, ops::kMinimum});
      const Atom other = links[static_cast<size_t>(random_.between(0, static_cast<int64_t>(links.size()) - 1))];
      made = apply(op, {links.back(), other});
    }
    if (made && type_of(*made) == type) links.push_back(*made);
  }
  if (links.size() == 1) return false;
  return add_result(links.back()).has_value();
}

bool Body::operation() {
  if (random_.chance(1)) return chain();
  const auto operators = context_.operators();
  for (int attempt = 0; attempt < 4; ++attempt) {
    const Operator& op = *operators[random_.between(0, static_cast<int64_t>(operators.size()) - 1)];
    if (options_.derivable && !op.gradient) continue;
    auto proposal = propose(*this, op);
    if (!proposal) continue;
    const bool exact = op.is(ops::kCast) && !is_float(type_of(proposal->args[0]).tensor()->dtype);
    auto made =
        bind(Apply{&op, std::move(proposal->attrs), std::move(proposal->args)}, random_.chance(20) ? op.name : "");
    if (!made) continue;
    add({.atom = *made, .type = type_of(*made), .exact = exact});
    return true;
  }
  return false;
}

// A type of which the body can make a value.
Type Body::some_type() {
  const Local* local = any([&](const Local& next) { return constructible(next.type) && !next.fuel; });
  if (local && random_.chance(75)) return local->type;
  for (int attempt = 0; options_.control && attempt < 4; ++attempt) {
    const Type type = types_.any({.depth = 2, .erased = true});
    if (constructible(type)) return type;
  }
  return types_.tensor();
}

bool Body::any_data() {
  const int64_t draw = random_.between(0, 2);
  if (draw == 0) {
    Atoms fields;
    for (int64_t i = random_.between(0, 3); i > 0; --i) {
      if (const Local* local = any([](const Local& next) { return !next.fuel; })) fields.push_back(local->atom);
    }
    return add_result(bind(Tuple{std::move(fields)})).has_value();
  }
  if (draw == 1) {
    const Local* tuple = any([](const Local& next) { return next.type.tuple() && !next.type.tuple()->fields.empty(); });
    if (!tuple) return false;
    const auto count = static_cast<int64_t>(tuple->type.tuple()->fields.size());
    return add_result(bind(Project{tuple->atom, static_cast<uint32_t>(random_.between(0, count - 1))})).has_value();
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    const Type type = types_.any({.depth = 2, .erased = true});
    if (type.adt()) return add_result(construct(type, 2)).has_value();
  }
  return false;
}

bool Body::any_call() {
  const int64_t draw = random_.between(0, 99);
  if (may_recur_ && !group.empty() && draw < 50) {
    const Callee callee = group[random_.between(0, static_cast<int64_t>(group.size()) - 1)];
    return add_result(call(callee, std::nullopt, 2)).has_value();
  }
  if (draw < 75 && !callees.empty()) {
    const Callee callee = callees[random_.between(0, static_cast<int64_t>(callees.size()) - 1)];
    return add_result(call(callee, std::nullopt, 2)).has_value();
  }
  const Local* closure = any([](const Local& next) { return next.type.function() != nullptr; });
  if (!closure) return false;
  const Local copy = *closure;
  return add_result(call_value(copy, 2)).has_value();
}

bool Body::any_match() {
  const Local* subject = any(
      [](const Local& next) { return next.type.adt() || (next.type.tuple() && !next.type.tuple()->fields.empty()); });
  if (!subject) return false;
  const Local copy = *subject;
  return add_result(match(copy, some_type(), 2)).has_value();
}

bool Body::any_if() { return add_result(branch(some_type(), 2)).has_value(); }

bool Body::any_closure() {
  Type type;
  if (const Local* closure = any([](const Local& next) { return next.type.function() != nullptr; });
      closure && random_.chance(40)) {
    type = closure->type;
  } else {
    std::vector<Type> params;
    for (int64_t i = random_.between(0, 2); i > 0; --i) params.push_back(some_type());
    type = context_.function(std::move(params), some_type());
  }
  return add_result(lambda(*type.function(), 2, random_.chance(50) ? fresh("fn") : "")).has_value();
}

bool Body::any_reference() {
  const Local* cell = any([](const Local& next) { return next.type.reference() != nullptr; });
  const int64_t draw = random_.between(0, 2);
  if (!cell || draw == 0) {
    const Local* content = any([](const Local& next) { return !next.fuel; });
    if (!content) return false;
    return add_result(bind(MakeReference{content->atom})).has_value();
  }
  const Local copy = *cell;
  if (draw == 1) return add_result(bind(ReadReference{copy.atom})).has_value();
  auto content = value(copy.type.reference()->value, 1);
  return content && bind(WriteReference{copy.atom, *content});
}

// Casts: sizes get names or lose them, the type stays the same, or the cast may fail.
bool Body::any_cast() {
  const Local* local = any([](const Local& next) { return next.type.tensor() && next.type.tensor()->rank() > 0; });
  if (!local) return false;
  const Local copy = *local;
  const TensorType& tensor = *copy.type.tensor();
  Cast cast{copy.atom, copy.type, {}};
  Dims dims = tensor.dims;
  const int64_t draw = random_.between(0, 99);
  for (Dim& dim : dims) {
    if (draw < 60 ? dim.erased() || random_.chance(60) : draw < 68 && dim.erased()) {
      cast.fresh.push_back(context_.symbol(fresh("k")));
      dim = context_.dim(cast.fresh.back());
    } else if (draw >= 68 && draw < 78 && random_.chance(50)) {
      dim = context_.erased();
    } else if (draw >= 82 && draw < 86 && !dim.constant()) {
      dim = context_.dim(types_.size());
    }
  }
  cast.type = context_.tensor(std::move(dims), tensor.dtype);
  return add_result(bind(std::move(cast))).has_value();
}

// A dim as a value, and tensors whose sizes are dims, or a value that is computed.
bool Body::any_size() {
  const Local* local = any(
      [](const Local& next) { return next.type.tensor() && !has_erased(next.type) && !next.type.tensor()->shape(); });
  if (!local) return false;
  const Local like = *local;
  const Dims& dims = like.type.tensor()->dims;
  const Dim dim = dims[random_.between(0, static_cast<int64_t>(dims.size()) - 1)];
  const int64_t draw = random_.between(0, 3);
  if (draw == 0) return add_result(bind(DimValue{dim})).has_value();
  const auto made = [&](OperatorId op, Atoms args, Attrs attrs, ComputedAttrs computed) {
    ++cost_;
    auto value = builder_.apply(op, std::move(args), std::move(attrs), {}, std::move(computed));
    return value ? add_result(*value).has_value() : false;
  };
  if (draw == 1) return made(ops::kFull, {}, {{"dtype", std::string("f32")}}, {{"shape", dims}});
  if (draw == 2)
    return made(ops::kReshape, {like.atom}, {{"zero", int64_t{1}}}, {{"shape", Dims{context_.product(dims)}}});
  const Made count = bind(DimValue{dim});
  return count && made(ops::kArange, {}, {}, {{"count", *count}});
}

bool Body::any_library() {
  if (libraries.empty()) return false;
  const Callee callee = libraries[random_.between(0, static_cast<int64_t>(libraries.size()) - 1)];
  return add_result(call(callee, std::nullopt, 1)).has_value();
}

bool Body::constructible(Type type) const {
  auto in_scope = [&] { return std::ranges::any_of(scope_, [&](const Local& local) { return local.type == type; }); };
  if (auto* tensor = type.tensor()) {
    return std::ranges::all_of(tensor->dims, [](Dim dim) { return dim.erased() || dim.constant(); }) || in_scope();
  }
  auto all_constructible = [&](const std::vector<Type>& parts) {
    return std::ranges::all_of(parts, [&](Type part) { return constructible(part); });
  };
  if (auto* tuple = type.tuple()) return all_constructible(tuple->fields);
  if (auto* adt = type.adt()) return in_scope() || all_constructible(types_.fields(*adt, types_.smallest(*adt)));
  if (auto* function = type.function()) {
    return std::ranges::find(function->params, function->result) != function->params.end() ||
           constructible(function->result);
  }
  if (auto* reference = type.reference()) return in_scope() || constructible(reference->value);
  return in_scope();
}

std::optional<Block> Body::block(Type result, int64_t count, const std::vector<Local>& locals) {
  const size_t outer_size = scope_.size();
  for (const Local& local : locals) add(local);
  builder_.open();
  ++depth_;
  if (depth_ < 5) statements(count);
  // Locals of the block come before those of the enclosing blocks.
  Made made;
  for (size_t i = scope_.size(); i-- > outer_size && !made;) {
    if (scope_[i].type == result && !scope_[i].fuel && random_.chance(70)) made = scope_[i].atom;
  }
  if (!made && depth_ < 4 && !exhausted() && random_.chance(60)) made = compute(result, 1);
  if (made && type_of(*made) != result) made.reset();
  if (!made) made = value(result, depth_ < 4 ? 1 : 0);
  --depth_;
  Block block = builder_.close(made ? *made : Atom{});
  scope_.resize(outer_size);
  if (!made) return std::nullopt;
  return block;
}

}  // namespace tenon::compiler::fuzz
