// The recursive-descent parser of expressions and blocks, with operator precedence for infix operators.
#include "compiler/ir/text/expression_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "compiler/ir/adjoint.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text/constant_reader.h"
#include "compiler/ir/text/infix.h"
#include "compiler/ir/text/keywords.h"
#include "support/suggest.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kMaxParams = 1 << 20;  // of a function that is differentiated

}  // namespace

Block ExpressionReader::leave(const Visible& outside, Atom result, size_t result_at) {
  hide(outside.names);
  scope_.dims.resize(outside.dims);
  draft_.results.push_back(result_at);
  Block block = std::move(open_.back());
  open_.pop_back();
  block.result = result;
  return block;
}

VarId ExpressionReader::variable(size_t offset, Type type, std::string_view name) {
  const auto id = static_cast<VarId>(function_.vars.size());
  // Digits alone are how the printer refers to a variable without a name.
  const bool has_name = name.find_first_not_of("0123456789") != std::string_view::npos;
  function_.vars.push_back({type, context_.symbol(has_name ? name : ""), span_(offset)});
  return id;
}

Status ExpressionReader::define(size_t offset, const std::string& name, Atom atom, size_t list) {
  for (size_t i = list; i < names_.size(); ++i) {
    if (names_[i].name == name) return cursor_.error_at(offset, fmt::format("%{} is defined twice", name));
  }
  const auto [known, is_new] = locals_.try_emplace(name, atom);
  names_.push_back({name, is_new ? std::nullopt : std::optional(known->second)});
  known->second = atom;
  return {};
}

void ExpressionReader::hide(size_t first) {
  for (; names_.size() > first; names_.pop_back()) {
    const Named& last = names_.back();
    if (last.shadowed) locals_[last.name] = *last.shadowed;
    else locals_.erase(last.name);
  }
}

Atom ExpressionReader::bind(size_t offset, Value value, std::string_view name) {
  const VarId var = variable(offset, draft_.solver.fresh_type(), name);
  open_.back().bindings.push_back({var, std::move(value)});
  return var;
}

Expected<Block> ExpressionReader::block(int depth) {
  if (depth > kMaxNesting) return cursor_.fail("nested too deeply");
  const Visible outside = enter();
  TENON_TRY(cursor_.expect("{"));
  TENON_TRY(statements(depth));
  const size_t offset = cursor_.offset();
  Atom result;
  while (true) {
    TENON_TRY_ASSIGN(value, expression("", depth));
    result = *value;
    if (!cursor_.accept(";")) break;
    TENON_TRY(statements(depth));
  }
  TENON_TRY(cursor_.expect("}"));
  return leave(outside, result, offset);
}

Status ExpressionReader::statements(int depth) {
  while (cursor_.accept_name("let")) TENON_TRY(let(depth));
  return {};
}

Status ExpressionReader::let(int depth) {
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(name, cursor_.take(Tok::kLocal, "a variable, as %x"));
  std::optional<Type> wanted;
  if (cursor_.accept(":")) {
    TENON_TRY_ASSIGN(type, types_.type(scope_));
    wanted = *type;
  }
  TENON_TRY(cursor_.expect("="));
  const size_t before = open_.back().bindings.size(), names = names_.size();
  TENON_TRY_ASSIGN(value, expression(*name, depth));
  if (wanted) {
    auto* var = std::get_if<VarId>(&*value);
    const bool fresh = var && open_.back().bindings.size() > before && open_.back().bindings.back().var == *var;
    const Value* made = fresh ? &open_.back().bindings.back().value : nullptr;
    const bool arms = made && (std::holds_alternative<If>(*made) || std::holds_alternative<Case>(*made));
    if (has_erased(*wanted) && !arms) {  // the annotation erases sizes of the value
      value = bind(offset, Cast{*value, *wanted, {}}, *name);
      draft_.erasing.push_back(std::get<VarId>(*value));
    } else if (fresh && function_.type(*var).unknown()) {
      function_.vars[index(*var)].type = *wanted;
      draft_.annotated.emplace(static_cast<uint32_t>(*var), offset);
    } else {
      draft_.aliases.push_back({*value, *wanted, offset, *name});
    }
  }
  TENON_TRY(cursor_.expect(";"));
  if (names_.size() == names) return define(offset, *name, *value);
  locals_[*name] = *value;  // a lambda has defined it already; a lambda that is called at once names the result
  return {};
}

ExpressionReader::Result ExpressionReader::expression(std::string_view name, int depth, int precedence) {
  if (depth > kMaxNesting) return cursor_.fail("nested too deeply");
  const size_t variables = function_.vars.size();
  TENON_TRY_ASSIGN(left, operand(name, depth));
  while (cursor_.peek().kind == Tok::kPunct) {
    const Infix* infix = find_infix(cursor_.peek().text);
    if (!infix || infix->precedence <= precedence) break;
    const size_t offset = cursor_.offset();
    const Operator* op = &context_.op(infix->op);
    cursor_.skip();
    TENON_TRY_ASSIGN(right, expression("", depth + 1, infix->precedence));
    auto attrs = complete_attrs(*op, {});
    if (!attrs) return cursor_.error_at(offset, attrs.error().what, attrs.error().help);
    unname(*left, variables);
    left = bind(offset, Apply{op, std::move(*attrs), {*left, *right}}, name);
  }
  return left;
}

// Removes the name of an inner binding: the name of a let belongs to the outermost binding.
void ExpressionReader::unname(const Atom& inner, size_t variables) {
  auto* var = std::get_if<VarId>(&inner);
  if (var && index(*var) >= variables) function_.vars[index(*var)].name = context_.symbol("");
}

ExpressionReader::Result ExpressionReader::operand(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  const size_t variables = function_.vars.size();
  TENON_TRY_ASSIGN(atom, primary(name, depth));
  while (true) {
    if (cursor_.accept(".")) {
      TENON_TRY_ASSIGN(field, cursor_.integer());
      if (*field < 0 || *field > UINT32_MAX) return cursor_.error_at(offset, "the index of the field is out of range");
      unname(*atom, variables);
      atom = bind(offset, Project{*atom, static_cast<uint32_t>(*field)}, name);
    } else if (cursor_.is("(") || (cursor_.is("[") && std::holds_alternative<Symbol>(*atom))) {
      std::vector<Type> types;
      if (cursor_.accept("[")) {
        TENON_TRY(cursor_.list("]", [&]() -> Status {
          TENON_TRY_ASSIGN(type, types_.type(scope_));
          types.push_back(*type);
          return {};
        }));
        if (!cursor_.is("(")) return cursor_.fail("expected the arguments of the call, as @f[TYPE](%x)");
      }
      TENON_TRY_ASSIGN(args, arguments(nullptr, nullptr, depth));
      unname(*atom, variables);
      atom = bind(offset, Call{*atom, std::move(*args), std::move(types)}, name);
    } else {
      return atom;
    }
  }
}

std::unexpected<Diagnostic> ExpressionReader::unknown(std::string what, std::string_view wrong,
                                                      const std::vector<std::string_view>& candidates,
                                                      std::string_view sigil) const {
  return cursor_.error_at(cursor_.offset(), std::move(what), suggest(wrong, candidates, sigil));
}

ExpressionReader::Result ExpressionReader::primary(std::string_view name, int depth) {
  const Token token = cursor_.peek();
  switch (token.kind) {
    case Tok::kLocal: {
      auto found = locals_.find(token.text);
      if (found == locals_.end()) {
        std::vector<std::string_view> candidates;
        for (const auto& [name, atom] : locals_) candidates.push_back(name);
        return unknown(fmt::format("there is no variable %{}", token.text), token.text, candidates, "%");
      }
      cursor_.skip();
      return found->second;
    }
    case Tok::kConstant: {
      auto found = constants_.find(token.text);
      if (found == constants_.end()) {
        std::vector<std::string_view> candidates;
        for (const auto& [name, id] : constants_) candidates.push_back(name);
        return unknown(fmt::format("there is no constant ${}", token.text), token.text, candidates, "$");
      }
      cursor_.skip();
      return found->second;
    }
    case Tok::kGlobal: {
      const Symbol callee = context_.symbol(token.text);
      if (!module_.globals.contains(callee)) {
        std::vector<std::string_view> candidates;
        for (const auto& [name, global] : module_.globals) candidates.push_back(context_.name(name));
        return unknown(fmt::format("there is no function @{}", token.text), token.text, candidates, "@");
      }
      cursor_.skip();
      if (cursor_.is("(") || cursor_.is("[")) return callee;
      return global_value(token.offset, callee);
    }
    case Tok::kName: return word(name, depth);
    case Tok::kInteger:
    case Tok::kFloat: return literal();
    case Tok::kPunct: {
      if (token.text == "(") return tuple(name, depth);
      if (token.text == "-") return negation(name, depth);
      break;
    }
    case Tok::kEnd:
    case Tok::kString:
    case Tok::kComment: break;
  }
  return cursor_.fail("expected an expression");
}

ExpressionReader::Result ExpressionReader::word(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  const std::string text = cursor_.peek().text;
  if (text == "fn") return lambda(name, depth);
  if (text == "if") return branch(name, depth);
  if (text == "match") return match(name, depth);
  if (text == "match_cast") return cast(name, depth);
  if (text == "true" || text == "false") {
    cursor_.skip();
    return module_.add_constant(runtime::Tensor::of<bool>({}, std::array{text == "true"}));
  }
  if (text == "ref" || text == "read" || text == "write") {
    cursor_.skip();
    TENON_TRY_ASSIGN(args, arguments(nullptr, nullptr, depth));
    const size_t wanted = text == "write" ? 2 : 1;
    if (args->size() != wanted) {
      return cursor_.error_at(
          offset, fmt::format("{} takes {} argument{}, found {}", text, wanted, wanted == 1 ? "" : "s", args->size()));
    }
    if (text == "ref") return bind(offset, MakeReference{(*args)[0]}, name);
    if (text == "read") return bind(offset, ReadReference{(*args)[0]}, name);
    return bind(offset, WriteReference{(*args)[0], (*args)[1]}, name);
  }
  if ((text == "gradient" || text == "pullback") && cursor_.is("(", 1)) return gradient(name, depth);
  if (text == "size" && cursor_.is("(", 1)) {  // of a dim: size(4*n)
    cursor_.skip(2);
    TENON_TRY_ASSIGN(dim, types_.dim(scope_));
    TENON_TRY(cursor_.expect(")"));
    return bind(offset, DimValue{*dim}, name);
  }
  if (module_.constructor(context_.symbol(text))) return construct(name, depth);
  if (at_scalar(cursor_)) return literal();  // inff32
  if (is_dim(text) && !cursor_.is("(", 1)) {
    cursor_.skip();
    return bind(offset, DimValue{context_.dim(context_.symbol(text))}, name);
  }
  return operation(name, depth);
}

Atom ExpressionReader::global_value(size_t offset, Symbol name) {
  const Signature signature = signature_of(context_, module_.globals.at(name));
  if (signature.dims.empty() && signature.types.empty()) return name;
  const VarId self = variable(offset, draft_.solver.fresh_type(), "");
  Lambda lambda;
  Call call{name, {}, {}};
  for (size_t i = 0; i < signature.params.size(); ++i) {
    lambda.params.push_back(variable(offset, draft_.solver.fresh_type(), ""));
    call.args.emplace_back(lambda.params.back());
  }
  lambda.result = draft_.solver.fresh_type();
  const VarId result = variable(offset, draft_.solver.fresh_type(), "");
  Block body;
  body.bindings.push_back({result, std::move(call)});
  body.result = result;
  lambda.body.push_back(std::move(body));
  open_.back().bindings.push_back({self, std::move(lambda)});
  draft_.expanded.insert(self);
  return self;
}

// gradient(@f, wrt=[0, 2])(%x, ...): without wrt, by all parameters that have a part of floats. Without arguments, of a
// global, it is the closure that applies it.
ExpressionReader::Result ExpressionReader::gradient(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  Gradient value{{}, {}, cursor_.is_name("pullback") ? Gradient::Kind::kPullback : Gradient::Kind::kGradient};
  cursor_.skip(2);
  if (cursor_.peek().kind == Tok::kGlobal && (cursor_.is(",", 1) || cursor_.is(")", 1))) {
    value.call.callee = context_.symbol(cursor_.peek().text);
    if (!module_.globals.contains(std::get<Symbol>(value.call.callee))) return primary(name, depth);  // the error
    cursor_.skip();
  } else {
    TENON_TRY_ASSIGN(callee, expression("", depth + 1));
    value.call.callee = *callee;
  }
  bool all = true;
  if (cursor_.accept(",")) {
    if (!cursor_.accept_name("wrt")) return cursor_.fail("expected wrt=[...]", "the parameters to differentiate by");
    TENON_TRY(cursor_.expect("="));
    TENON_TRY(cursor_.expect("["));
    all = false;
    TENON_TRY(cursor_.list("]", [&]() -> Status {
      const size_t at = cursor_.offset();
      TENON_TRY_ASSIGN(index, cursor_.integer());
      const bool ascending = value.wrt.empty() || *index > value.wrt.back();
      if (*index < 0 || *index >= kMaxParams || !ascending) {
        return cursor_.error_at(at, fmt::format("wrt: the parameter {} is out of order or out of range", *index),
                                "parameters count from 0, in ascending order");
      }
      value.wrt.push_back(static_cast<uint32_t>(*index));
      return {};
    }));
  }
  TENON_TRY(cursor_.expect(")"));
  const auto* symbol = std::get_if<Symbol>(&value.call.callee);
  std::optional<Signature> signature;
  if (symbol) signature = signature_of(context_, module_.globals.at(*symbol));
  if (all && !signature) return cursor_.error_at(offset, "gradient: state the parameters of a closure, as wrt=[0]");
  if (all) {
    for (uint32_t i = 0; i < signature->params.size(); ++i) {
      if (has_adjoint(context_, module_, signature->params[i])) value.wrt.push_back(i);
    }
  }
  if (!cursor_.is("(") && !cursor_.is("[")) {
    if (!signature) return cursor_.fail("expected the arguments, as gradient(%f, wrt=[0])(%x)");
    return gradient_value(offset, std::move(value), *signature, name);
  }
  if (cursor_.accept("[")) {
    TENON_TRY(cursor_.list("]", [&]() -> Status {
      TENON_TRY_ASSIGN(type, types_.type(scope_));
      value.call.types.push_back(*type);
      return {};
    }));
  }
  TENON_TRY_ASSIGN(args, arguments(nullptr, nullptr, depth));
  value.call.args = std::move(*args);
  return bind(offset, std::move(value), name);
}

// fn(%a, ...) { gradient(@f, wrt=[...])(%a, ...) }
Atom ExpressionReader::gradient_value(size_t offset, Gradient value, const Signature& signature,
                                      std::string_view name) {
  const VarId self = variable(offset, draft_.solver.fresh_type(), name);
  Lambda lambda;
  for (const Type param : signature.params) {
    const bool closed = !param.node->variables;
    lambda.params.push_back(variable(offset, closed ? param : draft_.solver.fresh_type(), ""));
    value.call.args.emplace_back(lambda.params.back());
  }
  lambda.result = draft_.solver.fresh_type();
  const VarId result = variable(offset, draft_.solver.fresh_type(), "");
  Block body;
  body.bindings.push_back({result, std::move(value)});
  body.result = result;
  lambda.body.push_back(std::move(body));
  open_.back().bindings.push_back({self, std::move(lambda)});
  draft_.expanded.insert(self);
  return self;
}

// -0.5f32 is a literal, -%x an application of an operator.
ExpressionReader::Result ExpressionReader::negation(std::string_view name, int depth) {
  if (at_scalar(cursor_)) return literal();
  const size_t offset = cursor_.offset();
  const Operator* op = &context_.op(kNegation);
  cursor_.skip();
  if (depth >= kMaxNesting) return cursor_.fail("nested too deeply");
  TENON_TRY_ASSIGN(value, cursor_.is("-") ? negation("", depth + 1) : operand("", depth + 1));
  return bind(offset, Apply{op, {}, {*value}}, name);
}

ExpressionReader::Result ExpressionReader::literal() {
  TENON_TRY_ASSIGN(tensor, read_scalar(cursor_));
  return module_.add_constant(std::move(*tensor));
}

ExpressionReader::Result ExpressionReader::operation(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  const std::string text = cursor_.peek().text;
  const Operator* op = context_.find_operator(text);
  if (!op) {
    std::vector<std::string_view> candidates = {"ref", "read", "write",    "match",   "match_cast",
                                                "if",  "fn",   "gradient", "pullback"};
    for (const Operator* other : context_.operators()) candidates.push_back(other->name);
    for (const auto& [name, adt] : module_.adts) {
      for (const Constructor& constructor : adt.constructors) candidates.push_back(context_.name(constructor.name));
    }
    const bool capital = text[0] >= 'A' && text[0] <= 'Z';
    return unknown(fmt::format("there is no {} '{}'", capital ? "constructor" : "operator", text), text, candidates);
  }
  cursor_.skip();
  Attrs attrs;
  ComputedAttrs computed;
  TENON_TRY_ASSIGN(args, arguments(op, &attrs, depth, &computed));
  std::vector<std::string_view> names;
  for (const auto& [attr, value] : computed) names.push_back(attr);
  auto complete = complete_attrs(*op, std::move(attrs), names);
  if (!complete) return cursor_.error_at(offset, complete.error().what, complete.error().help);
  Apply apply{op, std::move(*complete), std::move(*args), std::move(computed)};
  settle_attributes(apply);
  return bind(offset, std::move(apply), name);
}

// The value of an attribute that is no constant: dims, as n or [n, 4*m], or an expression; nothing at a constant.
Expected<std::optional<ComputedAttr>> ExpressionReader::computed_attribute(int depth) {
  const auto is_name = [&](size_t ahead) {
    const Token& token = cursor_.peek(ahead);
    return token.kind == Tok::kName && (is_dim(token.text) || token.text == "min" || token.text == "max");
  };
  size_t ahead = 0;
  const bool list = cursor_.is("[");
  bool dims = false;
  while (cursor_.peek(ahead).kind != Tok::kEnd && !cursor_.is(list ? "]" : ",", ahead) &&
         (list || !cursor_.is(")", ahead))) {
    dims |= is_name(ahead++);
  }
  if (list) {
    if (!dims) return std::nullopt;
    cursor_.skip();
    Dims sizes;
    TENON_TRY(cursor_.list("]", [&]() -> Status {
      TENON_TRY_ASSIGN(dim, types_.dim(scope_));
      sizes.push_back(*dim);
      return {};
    }));
    return ComputedAttr(std::move(sizes));
  }
  const Token& first = cursor_.peek();
  if (first.text == "size" && cursor_.is("(", 1)) {
    cursor_.skip(2);
    TENON_TRY_ASSIGN(dim, types_.dim(scope_));
    TENON_TRY(cursor_.expect(")"));
    return ComputedAttr(Dims{*dim});
  }
  if (dims && first.kind != Tok::kLocal && !context_.find_operator(first.text)) {
    TENON_TRY_ASSIGN(dim, types_.dim(scope_));
    return ComputedAttr(Dims{*dim});
  }
  // A number with a dtype, as 2i64, is an operand.
  const bool negative = first.kind == Tok::kPunct && first.text == "-";
  const Token& after = cursor_.peek(negative ? 2 : 1);
  const bool typed = after.kind == Tok::kName && runtime::parse_dtype(after.text);
  const bool number = first.kind == Tok::kInteger || first.kind == Tok::kFloat || negative;
  const bool constant = (number && !typed) || first.kind == Tok::kString ||
                        (first.kind == Tok::kName && is_reserved(first.text) && !cursor_.is("(", 1));
  if (constant) return std::nullopt;
  TENON_TRY_ASSIGN(value, expression("", depth + 1));
  return ComputedAttr(*value);
}

ExpressionReader::Result ExpressionReader::construct(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  Construct value{.constructor = context_.symbol(cursor_.peek().text), .types = {}, .fields = {}};
  cursor_.skip();
  const auto decl = module_.constructor(value.constructor);
  for (size_t i = 0; i < decl->adt->params.size(); ++i) value.types.push_back(draft_.solver.fresh_type());
  if (cursor_.is("(")) {
    TENON_TRY_ASSIGN(fields, arguments(nullptr, nullptr, depth));
    value.fields = std::move(*fields);
  }
  return bind(offset, std::move(value), name);
}

// fn (%x: T, %y) -> T { ... }
ExpressionReader::Result ExpressionReader::lambda(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  cursor_.skip();
  const VarId self = variable(offset, draft_.solver.fresh_type(), name);
  if (!name.empty()) TENON_TRY(define(offset, std::string(name), self));
  Lambda value;
  const size_t names = names_.size();
  TENON_TRY(cursor_.expect("("));
  TENON_TRY(cursor_.list(")", [&]() -> Status {
    const size_t param_at = cursor_.offset();
    TENON_TRY_ASSIGN(param, cursor_.take(Tok::kLocal, "a parameter, as %x"));
    Type type = draft_.solver.fresh_type();
    if (cursor_.accept(":")) {
      TENON_TRY_ASSIGN(annotation, types_.type(scope_));
      type = *annotation;
    }
    value.params.push_back(variable(param_at, type, *param));
    return define(param_at, *param, value.params.back(), names);
  }));
  value.result = draft_.solver.fresh_type();
  if (cursor_.accept("->")) {
    TENON_TRY_ASSIGN(result, types_.type(scope_));
    value.result = *result;
  }
  TENON_TRY_ASSIGN(body, block(depth + 1));
  hide(names);
  value.body.push_back(std::move(*body));
  open_.back().bindings.push_back({self, std::move(value)});
  return self;
}

ExpressionReader::Result ExpressionReader::branch(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  cursor_.skip();
  TENON_TRY_ASSIGN(condition, expression("", depth + 1));
  TENON_TRY_ASSIGN(yes, block(depth + 1));
  if (!cursor_.accept_name("else"))
    return cursor_.fail("expected else", "an if is an expression: both arms must have a value");
  TENON_TRY_ASSIGN(no, block(depth + 1));
  If value{*condition, {}};
  value.arms.push_back(std::move(*yes));
  value.arms.push_back(std::move(*no));
  return bind(offset, std::move(value), name);
}

ExpressionReader::Result ExpressionReader::match(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  cursor_.skip();
  TENON_TRY_ASSIGN(subject, expression("", depth + 1));
  Case value{*subject, {}};
  TENON_TRY(cursor_.expect("{"));
  while (!cursor_.accept("}")) {
    TENON_TRY_ASSIGN(next, arm(depth + 1));
    value.arms.push_back(std::move(*next));
    cursor_.accept(",");
  }
  return bind(offset, std::move(value), name);
}

// PATTERN => { ... }  or  PATTERN => EXPRESSION
Expected<Arm> ExpressionReader::arm(int depth) {
  const size_t names = names_.size();
  TENON_TRY_ASSIGN(pattern, this->pattern(depth, names));
  TENON_TRY(cursor_.expect("=>"));
  TENON_TRY_ASSIGN(block, arm_block(depth));
  hide(names);
  return Arm{std::move(*pattern), std::move(*block)};
}

Expected<Block> ExpressionReader::arm_block(int depth) {
  if (cursor_.is("{")) return block(depth);
  const Visible outside = enter();
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(value, expression("", depth));
  if (!cursor_.is(",") && !cursor_.is("}")) return cursor_.fail("expected ',' or '}' after an arm");
  return leave(outside, *value, offset);
}

Expected<MatchPattern> ExpressionReader::pattern(int depth, size_t list) {
  if (depth > kMaxNesting) return cursor_.fail("nested too deeply");
  const size_t offset = cursor_.offset();
  std::vector<MatchPattern> fields;
  auto field = [&]() -> Status {
    TENON_TRY_ASSIGN(next, pattern(depth + 1, list));
    fields.push_back(std::move(*next));
    return {};
  };
  if (cursor_.accept_name("_")) return MatchPattern{AnyPattern{}};
  if (cursor_.peek().kind == Tok::kLocal) {
    const std::string name = cursor_.peek().text;
    cursor_.skip();
    const VarId var = variable(offset, draft_.solver.fresh_type(), name);
    TENON_TRY(define(offset, name, var, list));
    return MatchPattern{BindPattern{var}};
  }
  if (cursor_.accept("(")) {
    TENON_TRY(cursor_.list(")", field));
    return MatchPattern{TuplePattern{std::move(fields)}};
  }
  TENON_TRY_ASSIGN(text, cursor_.take(Tok::kName, "a pattern, as Cons(%x, _), (%a, %b), %x or _"));
  const Symbol name = context_.symbol(*text);
  const auto decl = module_.constructor(name);
  if (!decl) {
    std::vector<std::string_view> candidates;
    for (const auto& [adt_name, adt] : module_.adts) {
      for (const Constructor& constructor : adt.constructors) candidates.push_back(context_.name(constructor.name));
    }
    return cursor_.error_at(offset, fmt::format("there is no constructor {}", *text), suggest(*text, candidates));
  }
  if (cursor_.accept("(")) TENON_TRY(cursor_.list(")", field));
  if (const size_t wanted = decl->constructor().fields.size(); wanted != fields.size()) {
    return cursor_.error_at(
        offset, fmt::format("{} has {} field{}, found {}", *text, wanted, wanted == 1 ? "" : "s", fields.size()));
  }
  return MatchPattern{ConstructPattern{name, std::move(fields)}};
}

// match_cast[k, ...](EXPRESSION, TYPE): the names are dims that are bound to sizes of the value.
ExpressionReader::Result ExpressionReader::cast(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  cursor_.skip();
  Cast value;
  if (cursor_.accept("[")) {
    TENON_TRY(cursor_.list("]", [&]() -> Status {
      const size_t dim_at = cursor_.offset();
      TENON_TRY_ASSIGN(dim, cursor_.take(Tok::kName, "a dim variable"));
      const Symbol symbol = context_.symbol(*dim);
      if (scope_.declared(symbol) || std::ranges::find(value.fresh, symbol) != value.fresh.end()) {
        return cursor_.error_at(dim_at, fmt::format("the dim {} is in scope already", *dim), "use another name");
      }
      value.fresh.push_back(symbol);
      return {};
    }));
  }
  TENON_TRY(cursor_.expect("("));
  TENON_TRY_ASSIGN(operand, expression("", depth + 1));
  value.value = *operand;
  TENON_TRY(cursor_.expect(","));
  scope_.dims.insert(scope_.dims.end(), value.fresh.begin(), value.fresh.end());
  TENON_TRY_ASSIGN(type, types_.type(scope_));
  value.type = *type;
  TENON_TRY(cursor_.expect(")"));
  return bind(offset, std::move(value), name);
}

ExpressionReader::Result ExpressionReader::tuple(std::string_view name, int depth) {
  const size_t offset = cursor_.offset();
  cursor_.skip();
  Atoms fields;
  bool tuple = cursor_.is(")");
  while (!cursor_.accept(")")) {
    TENON_TRY_ASSIGN(field, expression("", depth + 1));
    fields.push_back(*field);
    if (cursor_.accept(",")) tuple = true;
    else if (!cursor_.is(")")) return cursor_.fail("expected ',' or ')'");
  }
  if (!tuple) return fields[0];
  return bind(offset, Tuple{std::move(fields)}, name);
}

Expected<Atoms> ExpressionReader::arguments(const Operator* op, Attrs* attrs, int depth, ComputedAttrs* computed) {
  Atoms args;
  TENON_TRY(cursor_.expect("("));
  TENON_TRY(cursor_.list(")", [&]() -> Status {
    if (attrs && cursor_.peek().kind == Tok::kName && cursor_.is("=", 1)) {
      const Token key = cursor_.peek();
      if (op && !op->attribute(key.text)) {
        std::vector<std::string_view> candidates;
        for (const AttrSpec& spec : op->attributes) candidates.push_back(spec.name);
        std::string help = suggest(key.text, candidates);
        if (help.empty())
          help = candidates.empty() ? "it has no attributes" : fmt::format("it has {}", fmt::join(candidates, ", "));
        return cursor_.error_at(key.offset, fmt::format("{} has no attribute '{}'", op->name, key.text), help);
      }
      cursor_.skip(2);
      const AttrSpec* spec = op ? op->attribute(key.text) : nullptr;
      const bool is_new = !attrs->contains(key.text) && !computed->contains(key.text);
      std::optional<ComputedAttr> other;
      if (spec && spec->computable) {
        TENON_TRY_ASSIGN(found, computed_attribute(depth));
        other = std::move(*found);
      }
      if (other) {
        computed->emplace(key.text, std::move(*other));
      } else {
        TENON_TRY_ASSIGN(value, cursor_.attribute());
        attrs->emplace(key.text, std::move(*value));
      }
      if (!is_new) {
        return cursor_.error_at(key.offset, fmt::format("attribute '{}' is given twice", key.text));
      }
      return {};
    }
    TENON_TRY_ASSIGN(arg, expression("", depth + 1));
    args.push_back(*arg);
    return {};
  }));
  return args;
}

}  // namespace tenon::compiler
