// The printer and the recursive-descent reader of patterns.
#include "compiler/partition/pattern_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "compiler/base/cursor.h"
#include "compiler/ir/context.h"
#include "compiler/ir/literal.h"
#include "compiler/ir/operator.h"
#include "support/suggest.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Kind = GraphPattern::Kind;

constexpr size_t kMaxPatternNodes = 500;  // which a matcher's recursion and a reader of messages can bear

constexpr std::array<std::string_view, 6> kRelations{"==", "!=", "<", "<=", ">", ">="};  // by SizeRelation

std::string text(const SizePattern& size) {
  if (size.size) return fmt::format("{}", *size.size);
  return size.name.empty() ? "_" : size.name;
}

std::string text(const TypePattern& type) {
  std::string result = type.dtype ? std::string(runtime::name(*type.dtype)) : "tensor";
  std::vector<std::string> parts;
  if (type.sizes) {
    for (const SizePattern& size : *type.sizes) parts.push_back(text(size));
    result += fmt::format("({})", fmt::join(parts, ", "));
  }
  parts.clear();
  for (const SizeCondition& condition : type.conditions) {
    parts.push_back(fmt::format("{} {} {}", condition.name, kRelations[static_cast<size_t>(condition.relation)],
                                text(condition.bound)));
  }
  if (!parts.empty()) result += fmt::format(" where {}", fmt::join(parts, " and "));
  return result;
}

std::string operands(std::span<const GraphPattern> parts) {
  std::vector<std::string> texts;
  for (const GraphPattern& part : parts) texts.push_back(to_string(part));
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::string operation(const GraphPattern& pattern) {
  std::string result(name(pattern.op));
  if (pattern.commutative) result += "~";
  if (pattern.kind == Kind::kOptional) result += "?";
  std::vector<std::string> attrs;
  for (const AttrPattern& attr : pattern.attrs) {
    std::vector<std::string> values;
    for (const Attr& value : attr.values) values.push_back(attribute(value));
    attrs.push_back(values.size() == 1 ? fmt::format("{}={}", attr.name, values[0])
                                       : fmt::format("{} in {{{}}}", attr.name, fmt::join(values, ", ")));
  }
  if (!attrs.empty()) result += fmt::format("[{}]", fmt::join(attrs, ", "));
  return pattern.any_operands ? result : result + operands(pattern.parts);
}

// FORM of the grammar, in parentheses where the pattern is more than that.
std::string form(const GraphPattern& pattern);

// A VALUE without the name; empty where the name alone says it.
std::string value(const GraphPattern& pattern) {
  const bool plain = pattern.kind == Kind::kAny && (!pattern.name.empty() || pattern.type);
  if (!pattern.type && plain) return {};
  GraphPattern bare = pattern;
  bare.name.clear();
  bare.type.reset();
  if (!pattern.type) return form(bare);
  return plain ? text(*pattern.type) : fmt::format("{}: {}", form(bare), text(*pattern.type));
}

std::string alternative(const GraphPattern& pattern) {
  const std::string described = value(pattern);
  if (pattern.name.empty()) return described;
  return fmt::format("%{}{}{}", pattern.name, described.empty() ? "" : ": ", described);
}

std::string form(const GraphPattern& pattern) {
  if (!pattern.name.empty() || pattern.type) return fmt::format("({})", alternative(pattern));
  switch (pattern.kind) {
    case Kind::kAny: return "_";
    case Kind::kConstant: return "const";
    case Kind::kOp:
    case Kind::kOptional: return operation(pattern);
    case Kind::kEither: return fmt::format("({})", to_string(pattern));
    case Kind::kPath: return "path" + operands(pattern.parts);
    case Kind::kTuple:
      return pattern.parts.size() == 1 ? fmt::format("({},)", to_string(pattern.parts[0])) : operands(pattern.parts);
    case Kind::kField: return fmt::format("{}.{}", form(pattern.parts[0]), pattern.field);
    case Kind::kBranch: return "if" + operands(pattern.parts);
    case Kind::kFunction: {
      const std::span<const GraphPattern> parts(pattern.parts);
      return "fn" + operands(parts.first(1)) + (pattern.any_operands ? "" : operands(parts.subspan(1)));
    }
  }
  return {};
}

class PatternReader {
 public:
  PatternReader(const Context& context, Cursor& cursor) : context_(context), cursor_(cursor) {}

  Expected<GraphPattern> run() {
    const size_t start = cursor_.offset();
    TENON_TRY_ASSIGN(read, pattern(0));
    if (cursor_.peek().kind != Tok::kEnd) return cursor_.fail("expected '|' or the end of the pattern");
    if (!is_operation(*read)) {
      return cursor_.error_at(start, "a pattern must be of an operation, which its match begins with",
                              "as relu(_): a value alone is an operand of one");
    }
    for (const auto& [offset, name] : conditions_) {
      if (!sizes_.contains(name)) {
        return cursor_.error_at(offset, fmt::format("no size of the pattern is named '{}'", name),
                                fmt::format("name it in a type, as f32({})", name));
      }
    }
    return read;
  }

 private:
  static bool is_operation(const GraphPattern& pattern) {
    if (pattern.kind == Kind::kEither) return std::ranges::any_of(pattern.parts, is_operation);
    return pattern.kind != Kind::kAny && pattern.kind != Kind::kConstant;
  }

  Expected<GraphPattern> pattern(int depth) {
    if (depth > kMaxNesting) return cursor_.fail("the pattern is nested too deeply");
    std::vector<GraphPattern> alternatives;
    do {
      TENON_TRY_ASSIGN(read, alternative(depth));
      alternatives.push_back(*std::move(read));
    } while (cursor_.accept("|"));
    return either(std::move(alternatives));
  }

  Expected<GraphPattern> alternative(int depth) {
    if (++nodes_ > kMaxPatternNodes) {
      return cursor_.fail(fmt::format("a pattern has at most {} values", kMaxPatternNodes));
    }
    if (cursor_.peek().kind != Tok::kLocal) return value(depth);
    const size_t at = cursor_.offset();
    const std::string name = cursor_.peek().text;
    cursor_.skip();
    if (in_step_) {
      return cursor_.error_at(at, fmt::format("%{} cannot be named: the steps of a path are many values", name));
    }
    if (!cursor_.accept(":")) return named(name, any());
    TENON_TRY_ASSIGN(read, value(depth));
    if (!read->name.empty()) return cursor_.error_at(at, fmt::format("%{} is %{} too", name, read->name));
    return named(name, *std::move(read));
  }

  bool at_type() const {
    const Token& token = cursor_.peek();
    return token.kind == Tok::kName && (token.text == "tensor" || runtime::parse_dtype(token.text).has_value());
  }

  Expected<GraphPattern> value(int depth) {
    if (at_type()) {
      TENON_TRY_ASSIGN(read, type());
      return typed(any(), *std::move(read));
    }
    TENON_TRY_ASSIGN(read, form(depth));
    while (cursor_.accept(".")) {
      const size_t at = cursor_.offset();
      TENON_TRY_ASSIGN(field_index, cursor_.integer());
      if (*field_index < 0 || *field_index > 1'000'000) return cursor_.error_at(at, "expected the index of a field");
      read = field(*std::move(read), static_cast<uint32_t>(*field_index));
    }
    const size_t at = cursor_.offset();
    if (!cursor_.accept(":")) return read;
    if (!at_type()) return cursor_.fail("expected a type, as i8 or tensor(n, 4)");
    TENON_TRY_ASSIGN(restricted, type());
    if (read->type) return cursor_.error_at(at, "the value has two types");
    return typed(*std::move(read), *std::move(restricted));
  }

  Expected<GraphPattern> form(int depth) {
    if (cursor_.is("(")) return parenthesized(depth);
    if (cursor_.peek().kind != Tok::kName) {
      return cursor_.fail("expected a pattern: an operator, '_', 'const', a %name, a type, or '('");
    }
    if (cursor_.accept_name("_")) return any();
    if (cursor_.accept_name("const")) return constant();
    if (cursor_.is_name("path")) return three(Kind::kPath, depth);
    if (cursor_.is_name("if")) return three(Kind::kBranch, depth);
    if (cursor_.is_name("fn")) return call(depth);
    return operation(depth);
  }

  Expected<std::vector<GraphPattern>> list(int depth) {
    std::vector<GraphPattern> parts;
    TENON_TRY(cursor_.expect("("));
    TENON_TRY(cursor_.list(")", [&]() -> Status {
      TENON_TRY_ASSIGN(read, pattern(depth + 1));
      parts.push_back(*std::move(read));
      return {};
    }));
    return parts;
  }

  Expected<GraphPattern> parenthesized(int depth) {
    const size_t begin = cursor_.at();
    TENON_TRY_ASSIGN(parts, list(depth));
    // The comma after a single field tells a tuple from a group: it is the token before the parenthesis.
    const size_t end = cursor_.at();
    cursor_.go(end - 2);
    const bool comma = cursor_.is(",");
    cursor_.go(end);
    if (parts->size() == 1 && !comma && end > begin + 2) return std::move(parts->front());
    return tuple(*std::move(parts));
  }

  // path(START, STEP, END) or if(CONDITION, THEN, ELSE)
  Expected<GraphPattern> three(Kind kind, int depth) {
    const size_t at = cursor_.offset();
    const std::string word = cursor_.peek().text;
    cursor_.skip();
    TENON_TRY(cursor_.expect("("));
    GraphPattern result{.kind = kind};
    for (int i = 0; i < 3; ++i) {
      if (i > 0 && !cursor_.accept(",")) {
        return cursor_.error_at(at, fmt::format("'{}' has 3 parts, found {}", word, i),
                                kind == Kind::kPath ? "path(START, STEP, END)" : "if(CONDITION, THEN, ELSE)");
      }
      const bool outside = in_step_;
      in_step_ |= kind == Kind::kPath && i == 1;
      TENON_TRY_ASSIGN(part, pattern(depth + 1));
      in_step_ = outside;
      result.parts.push_back(*std::move(part));
    }
    TENON_TRY(cursor_.expect(")"));
    return result;
  }

  Expected<GraphPattern> call(int depth) {
    const size_t at = cursor_.offset();
    cursor_.skip();
    TENON_TRY_ASSIGN(result, list(depth));
    if (result->size() != 1) {
      return cursor_.error_at(at, fmt::format("'fn' has 1 part, its result, found {}", result->size()),
                              "the arguments of the call follow, as fn(relu(_))(%x)");
    }
    if (!cursor_.is("(")) return function(std::move(result->front()));
    TENON_TRY_ASSIGN(args, list(depth));
    return function(std::move(result->front()), *std::move(args));
  }

  Expected<GraphPattern> operation(int depth) {
    const size_t at = cursor_.offset();
    const std::string word = cursor_.peek().text;
    const OperatorId id = find_operator_id(word);
    if (id == OperatorId::kAdded) {
      std::vector<std::string_view> names(kOperatorNames.begin(), kOperatorNames.end());
      names.insert(names.end(), {"path", "if", "fn", "const", "tensor"});
      return cursor_.error_at(at, fmt::format("there is no operator '{}'", word), suggest(word, names));
    }
    cursor_.skip();
    const Operator& known = *context_.find_operator(word);
    GraphPattern result = op(id);
    result.commutative = cursor_.accept("~");
    if (cursor_.accept("?")) result.kind = Kind::kOptional;
    if (cursor_.accept("[")) {
      TENON_TRY(cursor_.list("]", [&] { return attr(known, result); }));
    }
    if (cursor_.is("(")) {
      TENON_TRY_ASSIGN(parts, list(depth));
      result.parts = *std::move(parts);
      result.any_operands = false;
    }
    if (!known.variadic() && result.parts.size() > known.inputs.size()) {
      return cursor_.error_at(at, fmt::format("{} has at most {} operand{}, found {}", word, known.inputs.size(),
                                              known.inputs.size() == 1 ? "" : "s", result.parts.size()));
    }
    if (result.parts.empty() && (result.kind == Kind::kOptional || result.commutative)) {
      return cursor_.error_at(at, fmt::format("'{}' requires the patterns of its operands", word),
                              result.commutative ? "as add~(%x, _)" : "as relu?(_)");
    }
    return result;
  }

  Status attr(const Operator& known, GraphPattern& result) {
    const size_t at = cursor_.offset();
    TENON_TRY_ASSIGN(word, cursor_.take(Tok::kName, "the name of an attribute"));
    const AttrSpec* spec = known.attribute(*word);
    if (!spec) {
      std::vector<std::string_view> names;
      for (const AttrSpec& each : known.attributes) names.push_back(each.name);
      return cursor_.error_at(at, fmt::format("{} has no attribute '{}'", known.name, *word), suggest(*word, names));
    }
    AttrPattern read{.name = *word, .values = {}};
    const auto one = [&]() -> Status {
      const size_t value_at = cursor_.offset();
      TENON_TRY_ASSIGN(value, cursor_.attribute());
      if (!fits(*spec, *value)) {
        return cursor_.error_at(
            value_at, fmt::format("{} is of the kind {}, which {} is not", *word, name(spec->kind), attribute(*value)));
      }
      read.values.push_back(*std::move(value));
      return {};
    };
    if (cursor_.accept_name("in")) {
      TENON_TRY(cursor_.expect("{"));
      TENON_TRY(cursor_.list("}", one));
      if (read.values.empty()) return cursor_.error_at(at, fmt::format("{} is in no set without values", *word));
    } else {
      if (!cursor_.accept("=")) return cursor_.fail("expected '=' or 'in'");
      TENON_TRY(one());
    }
    result.attrs.push_back(std::move(read));
    return {};
  }

  // Whether an attribute of this kind can equal the value, or each of its numbers can. A NaN equals nothing.
  static bool fits(const AttrSpec& spec, const Attr& value) {
    if (!(value == value)) return false;
    const bool is_string = std::holds_alternative<std::string>(value);
    const bool is_list = value.index() > Attr(std::string()).index();
    switch (spec.kind) {
      case AttrKind::kString: return is_string;
      case AttrKind::kInt:
      case AttrKind::kFloat: return !is_string && !is_list;
      case AttrKind::kInts:
      case AttrKind::kFloats: return !is_string;
    }
    return false;
  }

  Expected<TypePattern> type() {
    TypePattern result;
    if (!cursor_.accept_name("tensor")) {
      TENON_TRY_ASSIGN(word, cursor_.take(Tok::kName, "a dtype"));
      TENON_TRY_ASSIGN(dtype, runtime::parse_dtype(*word));
      result.dtype = *dtype;
    }
    if (cursor_.accept("(")) {
      result.sizes.emplace();
      TENON_TRY(cursor_.list(")", [&]() -> Status {
        if (cursor_.accept_name("_")) {
          result.sizes->emplace_back();
          return {};
        }
        TENON_TRY_ASSIGN(read, size());
        sizes_.insert(read->name);
        result.sizes->push_back(*std::move(read));
        return {};
      }));
    }
    if (!cursor_.accept_name("where")) return result;
    do {
      conditions_.emplace_back(cursor_.offset(), cursor_.peek().text);
      TENON_TRY_ASSIGN(word, cursor_.take(Tok::kName, "the name of a size"));
      const auto relation = std::ranges::find_if(kRelations, [&](std::string_view each) { return cursor_.is(each); });
      if (relation == kRelations.end()) return cursor_.fail("expected '==', '!=', '<', '<=', '>' or '>='");
      cursor_.skip();
      const size_t at = cursor_.offset();
      TENON_TRY_ASSIGN(bound, size());
      if (!bound->name.empty()) conditions_.emplace_back(at, bound->name);
      result.conditions.push_back({*word, static_cast<SizeRelation>(relation - kRelations.begin()), *std::move(bound)});
    } while (cursor_.accept_name("and"));
    return result;
  }

  Expected<SizePattern> size() {
    if (cursor_.peek().kind == Tok::kName) {
      TENON_TRY_ASSIGN(word, cursor_.take(Tok::kName, "a size"));
      return SizePattern{.size = {}, .name = *word};
    }
    if (cursor_.peek().kind != Tok::kInteger) return cursor_.fail("expected a size: a number, a name or '_'");
    TENON_TRY_ASSIGN(number, cursor_.integer());
    return SizePattern{.size = *number, .name = {}};
  }

  const Context& context_;
  Cursor& cursor_;
  size_t nodes_ = 0;
  bool in_step_ = false;
  std::set<std::string> sizes_;                             // the named ones
  std::vector<std::pair<size_t, std::string>> conditions_;  // names that they use, and their offsets
};

}  // namespace

std::string to_string(const GraphPattern& pattern) {
  if (pattern.kind != Kind::kEither || !pattern.name.empty() || pattern.type) return alternative(pattern);
  std::vector<std::string> texts;
  for (const GraphPattern& part : pattern.parts) {
    texts.push_back(part.kind == Kind::kEither && part.name.empty() && !part.type ? form(part) : alternative(part));
  }
  return fmt::format("{}", fmt::join(texts, " | "));
}

Expected<GraphPattern> read_pattern(const Context& context, std::string_view text, std::string_view source) {
  const Source origin(text, source);
  TENON_TRY_ASSIGN(tokens, tokenize(origin));
  Cursor cursor(origin, *std::move(tokens));
  return PatternReader(context, cursor).run();
}

}  // namespace tenon::compiler
