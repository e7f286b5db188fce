// The function printer; the formatter (format.h) lays out its output.
#include "compiler/ir/text/function_printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "compiler/ir/literal.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/result_names.h"
#include "compiler/ir/text/infix.h"
#include "compiler/ir/text/keywords.h"

namespace tenon::compiler {
namespace {

constexpr size_t kMaxNested = 60, kMaxNestedClosure = 90;  // the columns of a nested expression

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20; }, ' ');
  return text;
}

// The printed names of a function's variables: their own names, made unique, or their ids. Parameters and results come
// first, so that they keep their names.
std::vector<std::string> local_names(const Context& context, const Function& function,
                                     const std::vector<bool>& results) {
  std::vector<std::string> names(function.vars.size());
  std::unordered_set<std::string> used;
  const auto assign = [&](size_t i) {
    std::string name;
    for (const char c : context.name(function.vars[i].name)) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      if (plain) name += c;
      else if (!name.empty() && name.back() != '_') name += '_';
    }
    // A name of digits only is the name of an unnamed variable.
    if (name.find_first_not_of("0123456789") == std::string::npos) name = fmt::format("{}", i);
    if (used.contains(name)) name += fmt::format("_{}", i);
    while (used.contains(name)) name += '_';
    used.insert(name);
    names[i] = name;
  };
  for (VarId param : function.params) {
    if (index(param) < names.size()) assign(index(param));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (results[i] && names[i].empty()) assign(i);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) assign(i);
  }
  return names;
}

// The type variables and dim variables of a type, and whether one of its sizes is `?`.
struct Names {
  std::set<Symbol> symbols;
  bool erased = false;

  void add(Type type) {
    for_each_part(type, [this](Type part) {
      if (const TypeVariable* variable = part.variable()) symbols.insert(variable->name);
      if (!part.tensor()) return;
      for (Dim dim : part.tensor()->dims) {
        erased |= dim.erased();
        for_each_variable(dim, [&](Symbol name) { symbols.insert(name); });
      }
    });
  }
};
Names names_in(Type type) {
  Names names;
  names.add(type);
  return names;
}

bool uses(const Block& block, VarId wanted) {
  bool found = false;
  for_each_use(block, [&](const Atom& atom) { found |= atom == Atom{wanted}; });
  return found;
}

}  // namespace

FunctionPrinter::FunctionPrinter(const Context& context, const Function& function, const Module* module,
                                 const PrintOptions& options, const std::vector<uint32_t>* constants)
    : context_(context),
      function_(function),
      module_(module),
      options_(options),
      constants_(constants),
      results_(named_results(context, function)),
      names_(local_names(context, function, results_)),
      uses_(module ? use_counts(function) : std::vector<uint32_t>()) {}

std::string FunctionPrinter::print(Symbol name) {
  std::string text;
  std::vector<std::string> annotations;
  const auto annotate = [&](std::string_view key, std::string_view value) {
    annotations.push_back(fmt::format("{} = {}", key, quote(std::string(value))));
  };
  if (!function_.target.empty()) annotate("target", function_.target);
  if (!function_.composite.empty()) annotate("composite", function_.composite);
  if (function_.batched) annotate("batched", context_.name(*function_.batched));
  if (function_.gradient) annotate("gradient", context_.name(*function_.gradient));
  if (function_.joined_axes > 0) annotations.push_back(fmt::format("joined_axes = {}", function_.joined_axes));
  if (!annotations.empty()) text += fmt::format("#[{}]\n", fmt::join(annotations, ", "));
  // The inference finds a result type that is too large to be written, unless the function is recursive.
  const bool written = function_.result.node->size <= TypeNode::kMaxWritten;
  text += fmt::format("def @{}{}{} {}", context_.name(name),
                      variables(context_, function_.dims, function_.types, function_.bounds), params(function_.params),
                      written ? fmt::format("-> {} ", context_.str(function_.result)) : "");
  return text + braces(function_.body).text + "\n";
}

std::string FunctionPrinter::print(const Value& value) { return this->value(value, {}, {}).text; }

std::string FunctionPrinter::variables(const Context& context, const std::vector<Symbol>& dims,
                                       const std::vector<Symbol>& types, const DimBounds& bounds) {
  std::vector<std::string> names;
  for (Symbol dim : dims) {
    auto found = bounds.find(dim);
    names.push_back(std::string(context.name(dim)) + (found == bounds.end() ? "" : " in " + str(found->second)));
  }
  for (Symbol type : types) names.emplace_back(context.name(type));
  return names.empty() ? "" : fmt::format("[{}]", fmt::join(names, ", "));
}

std::string FunctionPrinter::atom(const Atom& atom) const {
  if (auto* var = std::get_if<VarId>(&atom)) return fmt::format("%{}", names_[index(*var)]);
  if (auto* symbol = std::get_if<Symbol>(&atom)) return fmt::format("@{}", context_.name(*symbol));
  const ConstId id = std::get<ConstId>(atom);
  if (module_) {
    if (auto text = literal(module_->constant(id))) return *text;
  }
  return fmt::format("${}", constants_ ? (*constants_)[index(id)] : index(id));
}

std::string FunctionPrinter::params(const std::vector<VarId>& list) const {
  std::vector<std::string> texts;
  for (VarId param : list) texts.push_back(fmt::format("{}: {}", atom(param), context_.str(function_.type(param))));
  return fmt::format("({})", fmt::join(texts, ", "));
}

FunctionPrinter::Statements FunctionPrinter::statements(const Block& block) {
  std::string text;
  std::vector<Waiting> waiting;
  auto flush = [&] {
    for (const Waiting& ready : waiting) text += statement(ready);
    waiting.clear();
  };
  for (const Binding& binding : block.bindings) {
    std::vector<Waiting> inside = take_operands(binding, waiting);
    Text found = value(binding.value, binding.var, std::move(inside));
    const bool result = &binding == &block.bindings.back() && block.result == Atom{binding.var};
    const bool wait = may_wait(binding, found, result);
    waiting.push_back({&binding, std::move(found)});
    if (!wait) flush();
  }
  Text result{atom(block.result), kHighestPrecedence, true, false};
  if (!waiting.empty() && block.result == Atom{waiting.back().binding->var}) {
    result = std::move(waiting.back().text);
    result.text += origin(waiting.back().binding->var);
    waiting.pop_back();
  }
  flush();
  return {std::move(text), std::move(result)};
}

// Blocks of a module are printed in full; in a message they are abbreviated to three dots.
FunctionPrinter::Text FunctionPrinter::braces(const Block& block) {
  if (!module_) return {"{ ... }", kHighestPrecedence, true, false};
  Statements body = statements(block);
  return {fmt::format("{{ {}{} }}", body.text, body.result.text), kHighestPrecedence, body.result.inferable,
          !body.text.empty() || body.result.open};
}

// Takes the last of the waiting bindings that are operands of this one, in the order of the operands.
std::vector<FunctionPrinter::Waiting> FunctionPrinter::take_operands(const Binding& consumer,
                                                                     std::vector<Waiting>& waiting) const {
  std::vector<Atom> operands;
  for_each_operand(consumer.value, [&](const Atom& atom) { operands.push_back(atom); });
  size_t count = 0, position = operands.size();
  while (count < waiting.size()) {
    const Waiting& next = waiting[waiting.size() - 1 - count];
    while (position > 0 && operands[position - 1] != Atom{next.binding->var}) --position;
    if (position == 0 || !may_nest(consumer, --position, next, waiting)) break;
    ++count;
  }
  const auto first = waiting.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<Waiting> taken(std::make_move_iterator(first), std::make_move_iterator(waiting.end()));
  waiting.erase(first, waiting.end());
  return taken;
}

bool FunctionPrinter::may_nest(const Binding& consumer, size_t operand, const Waiting& nested,
                               const std::vector<Waiting>& waiting) const {
  // The operand of an attribute has a name: an expression of dims would be read as dims.
  if (auto* apply = std::get_if<Apply>(&consumer.value); apply && operand >= apply->args.size()) return false;
  // A line names the origin of a single binding.
  if (!origin(nested.binding->var).empty() && origin(nested.binding->var) != origin(consumer.var)) return false;
  if (nested.text.open) {  // at most one closure of several lines is allowed among the arguments of a call
    auto* call = std::get_if<Call>(&consumer.value);
    if (!call || !std::holds_alternative<Lambda>(nested.binding->value) || call->callee == Atom{nested.binding->var}) {
      return false;
    }
    for (const Waiting& other : waiting) {
      const bool argument = std::ranges::find(call->args, Atom{other.binding->var}) != call->args.end();
      if (argument && other.text.open && &other != &nested) return false;
    }
  }
  return nested.text.inferable || determines_type(consumer.value, operand, waiting);
}

// Whether the operand's type follows from the consumer's other operands.
bool FunctionPrinter::determines_type(const Value& consumer, size_t operand,
                                      const std::vector<Waiting>& waiting) const {
  if (auto* construct = std::get_if<Construct>(&consumer)) {
    const auto decl = module_->constructor(construct->constructor);
    const std::vector<Type>& fields = decl->constructor().fields;
    const Names wanted = names_in(fields[operand]);
    Names determined;
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto waits =
          std::ranges::find_if(waiting, [&](const Waiting& x) { return Atom{x.binding->var} == construct->fields[i]; });
      if (i != operand && (waits == waiting.end() || waits->text.inferable)) determined.add(fields[i]);
    }
    return std::ranges::includes(determined.symbols, wanted.symbols);
  }
  if (const Call* call = call_of(consumer)) {
    auto* symbol = std::get_if<Symbol>(&call->callee);
    if (!symbol) return operand > 0;
    if (module_->loop_function(*symbol)) return true;  // its parameters are tensors
    const Function* callee = module_->function(*symbol);
    return names_in(callee ? callee->type(callee->params[operand]) : module_->library(*symbol)->params[operand])
        .symbols.empty();
  }
  return std::holds_alternative<WriteReference>(consumer) && operand == 1;
}

// `result`: the binding is the result of its block, where every expression is allowed.
bool FunctionPrinter::may_wait(const Binding& binding, const Text& text, bool result) const {
  if (results_[index(binding.var)]) return false;
  // An annotation with `?` is less specific than the inferred type, so it must be printed.
  if (uses_[index(binding.var)] != 1 || names_in(function_.type(binding.var)).erased) return false;
  if (auto* lambda = std::get_if<Lambda>(&binding.value)) {
    if (uses(lambda->body[0], binding.var)) return false;
    return result || text.open || text.text.size() <= kMaxNestedClosure;
  }
  if (result) return true;
  if (std::holds_alternative<If>(binding.value) || std::holds_alternative<Case>(binding.value)) return false;
  auto* cast = std::get_if<Cast>(&binding.value);
  return !(cast && !cast->fresh.empty()) && !text.open && text.text.size() <= kMaxNested;
}

std::string FunctionPrinter::statement(const Waiting& ready) const {
  const auto& [binding, text] = ready;
  const bool effect =
      std::holds_alternative<Call>(binding->value) || std::holds_alternative<WriteReference>(binding->value);
  std::string line = text.text;
  if (uses_[index(binding->var)] != 0 || !effect || !text.inferable) {
    // A cast contains its type, and the dims in this type are in scope only after the cast.
    const bool cast = std::holds_alternative<Cast>(binding->value);
    const std::string type = cast ? "" : fmt::format(": {}", context_.str(function_.type(binding->var)));
    line = fmt::format("let {}{} = {}", atom(binding->var), type, line);
  }
  return fmt::format("{};{} ", line, origin(binding->var));
}

// The origin of a variable as a comment, where the options request it and the variable has a span.
std::string FunctionPrinter::origin(VarId var) const {
  const SpanId span = function_.info(var).span;
  return options_.spans && index(span) != 0 ? "  // " + one_line(module_->span(span).str()) + "\n" : "";
}

std::string FunctionPrinter::pattern(const MatchPattern& pattern) const {
  auto list = [this](const std::vector<MatchPattern>& patterns) {
    std::vector<std::string> parts;
    for (const MatchPattern& next : patterns) parts.push_back(this->pattern(next));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  struct PatternVisitor {
    const FunctionPrinter& self;
    decltype(list)& join_patterns;
    std::string operator()(const AnyPattern&) const { return "_"; }
    std::string operator()(const BindPattern& x) const { return self.atom(x.var); }
    std::string operator()(const ConstructPattern& x) const {
      return fmt::format("{}{}", self.context_.name(x.constructor),
                         x.fields.empty() ? "" : "(" + join_patterns(x.fields) + ")");
    }
    std::string operator()(const TuplePattern& x) const {
      return fmt::format("({}{})", join_patterns(x.fields), x.fields.size() == 1 ? "," : "");
    }
  };
  return std::visit(PatternVisitor{*this, list}, pattern.form);
}

struct FunctionPrinter::Visitor {
  FunctionPrinter& self;
  std::optional<VarId> var;     // the variable that is bound to the value
  std::vector<Waiting> inside;  // the nested operands, in their order

  // The operand, in parentheses where its precedence is lower than required.
  std::string operand(const Atom& atom, int precedence = kNoPrecedence) {
    if (inside.empty() || Atom{inside.front().binding->var} != atom) return self.atom(atom);
    Text text = std::move(inside.front().text);
    inside.erase(inside.begin());
    open |= text.open;
    return text.precedence < precedence ? fmt::format("({})", text.text) : text.text;
  }
  std::string operands(const Atoms& list) {
    std::string text;
    for (const Atom& next : list) {
      if (!text.empty()) text += ", ";
      text += operand(next);
    }
    return text;
  }
  Text whole(std::string text) const { return {std::move(text), kHighestPrecedence, true, open}; }
  std::string braces(const Block& block) {
    Text text = self.braces(block);
    inferable &= text.inferable;
    open |= text.open;
    return std::move(text.text);
  }

  Text operator()(const Apply& apply) {
    if (const Infix* infix = infix_of(apply.op->id);
        infix && apply.args.size() == 2 && apply.attrs.empty() && self.module_) {
      const std::string left = operand(apply.args[0], infix->precedence);
      const std::string right = operand(apply.args[1], infix->precedence + 1);
      return {fmt::format("{} {} {}", left, infix->sign, right), infix->precedence, true, open};
    }
    std::string text = fmt::format("{}({}", apply.op->name, operands(apply.args));
    bool first = apply.args.empty();
    for (const AttrSpec& spec : apply.op->attributes) {
      auto found = apply.attrs.find(spec.name);
      if (found == apply.attrs.end()) continue;
      if (spec.default_value && same_attr(found->second, *spec.default_value)) continue;
      text += fmt::format("{}{}={}", first ? "" : ", ", spec.name, attribute(found->second));
      first = false;
    }
    // In the order of for_each_operand(), in which nested operands are bound.
    for (const auto& [name, attr] : apply.computed) {
      text += fmt::format("{}{}={}", first ? "" : ", ", name, computed(*apply.op->attribute(name), attr));
      first = false;
    }
    return whole(text + ")");
  }
  std::string computed(const AttrSpec& spec, const ComputedAttr& attr) {
    if (auto* value = std::get_if<Atom>(&attr)) return operand(*value);
    std::vector<std::string> dims;
    for (const Dim dim : std::get<Dims>(attr)) dims.push_back(self.context_.str(dim));
    if (spec.kind != AttrKind::kInt) return fmt::format("[{}]", fmt::join(dims, ", "));
    // Outside of brackets, % and // are no operators, and a name that is an operator's begins a call of it.
    const bool divides = dims[0].find("//") != std::string::npos || dims[0].find('%') != std::string::npos;
    const std::string_view first = std::string_view(dims[0]).substr(0, dims[0].find_first_of(" (*+-"));
    return divides || self.context_.find_operator(first) ? fmt::format("size({})", dims[0]) : dims[0];
  }
  Text operator()(const DimValue& value) {
    const std::string text = self.context_.str(value.dim);
    bool plain = false;  // a name that the reader cannot take for anything else
    for_each_variable(value.dim, [&](Symbol name) {
      plain =
          self.context_.name(name) == text && !is_reserved(text) && !(self.module_ && self.module_->constructor(name));
    });
    return whole(plain ? text : fmt::format("size({})", text));
  }
  Text operator()(const Call& call) {
    const std::string callee = operand(call.callee, kHighestPrecedence);
    std::vector<std::string> types;
    for (Type type : call.types) types.push_back(self.context_.str(type));
    const std::string type_args = types.empty() ? "" : fmt::format("[{}]", fmt::join(types, ", "));
    return whole(fmt::format("{}{}({})", callee, type_args, operands(call.args)));
  }
  Text operator()(const Gradient& gradient) {
    const Call& call = gradient.call;
    const std::string callee = operand(call.callee, kHighestPrecedence);
    std::vector<std::string> types;
    for (Type type : call.types) types.push_back(self.context_.str(type));
    const std::string type_args = types.empty() ? "" : fmt::format("[{}]", fmt::join(types, ", "));
    return whole(fmt::format("{}({}, wrt=[{}]){}({})", word(gradient.kind), callee, fmt::join(gradient.wrt, ", "),
                             type_args, operands(call.args)));
  }
  Text operator()(const Tuple& tuple) {
    return whole(fmt::format("({}{})", operands(tuple.fields), tuple.fields.size() == 1 ? "," : ""));
  }
  Text operator()(const Project& project) {
    return whole(fmt::format("{}.{}", operand(project.tuple, kHighestPrecedence), project.index));
  }
  Text operator()(const Construct& construct) {
    if (const auto decl = self.module_ ? self.module_->constructor(construct.constructor) : std::nullopt) {
      Names determined;
      for (size_t i = 0; i < construct.fields.size(); ++i) {
        const auto nested =
            std::ranges::find_if(inside, [&](const Waiting& x) { return Atom{x.binding->var} == construct.fields[i]; });
        if (nested == inside.end() || nested->text.inferable) determined.add(decl->constructor().fields[i]);
      }
      inferable =
          std::ranges::all_of(decl->adt->params, [&](Symbol param) { return determined.symbols.contains(param); });
    }
    const std::string fields = construct.fields.empty() ? "" : fmt::format("({})", operands(construct.fields));
    Text text = whole(std::string(self.context_.name(construct.constructor)) + fields);
    text.inferable = inferable;
    return text;
  }
  Text operator()(const Lambda& lambda) {
    const std::string body = braces(lambda.body[0]);
    auto* result = std::get_if<VarId>(&lambda.body[0].result);
    // The type of the result is omitted where the body determines it.
    inferable &= result && self.function_.type(*result) == lambda.result && !(var && uses(lambda.body[0], *var));
    const std::string type = inferable ? "" : fmt::format("-> {} ", self.context_.str(lambda.result));
    return {fmt::format("fn{} {}{}", self.params(lambda.params), type, body), kNoPrecedence, true, open};
  }
  Text operator()(const If& branch) {
    const std::string condition = operand(branch.condition);
    const std::string yes = braces(branch.arms[0]), no = braces(branch.arms[1]);
    return {fmt::format("if ({}) {} else {}", condition, yes, no), kNoPrecedence, inferable, open};
  }
  Text operator()(const Case& match) {
    std::string text = fmt::format("match {} {{", operand(match.subject, kNoPrecedence + 1));
    if (!self.module_) return {text + " ... }", kNoPrecedence, true, false};
    for (const Arm& arm : match.arms) {
      Statements statements = self.statements(arm.block);
      inferable &= statements.result.inferable;
      const std::string body = statements.text.empty()
                                   ? statements.result.text
                                   : fmt::format("{{ {}{} }}", statements.text, statements.result.text);
      text += fmt::format(" {} => {},", self.pattern(arm.pattern), body);
    }
    return {text + " }", kNoPrecedence, inferable, true};
  }
  Text operator()(const Cast& cast) {
    return whole(fmt::format("match_cast{}({}, {})", variables(self.context_, cast.fresh, {}), operand(cast.value),
                             self.context_.str(cast.type)));
  }
  Text operator()(const MakeReference& make) { return whole(fmt::format("ref({})", operand(make.value))); }
  Text operator()(const ReadReference& read) { return whole(fmt::format("read({})", operand(read.reference))); }
  Text operator()(const WriteReference& write) {
    const std::string reference = operand(write.reference);
    return whole(fmt::format("write({}, {})", reference, operand(write.value)));
  }

  bool inferable = true, open = false;  // of the text so far
};

FunctionPrinter::Text FunctionPrinter::value(const Value& value, std::optional<VarId> self,
                                             std::vector<Waiting> inside) {
  return std::visit(Visitor{*this, self, std::move(inside)}, value);
}

}  // namespace tenon::compiler
