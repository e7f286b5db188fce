// The text form of a module, written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <unordered_set>

#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kMaxInline = 8;  // elements of a constant in the text

std::string number(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // a float stays one
  return text;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return out + "\"";
}

std::string attribute(const Attr& attr) {
  struct Visitor {
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return number(value); }
    std::string operator()(const std::string& value) const { return quote(value); }
    std::string operator()(const std::vector<int64_t>& values) const {
      return fmt::format("[{}]", fmt::join(values, ", "));
    }
    std::string operator()(const std::vector<double>& values) const {
      std::vector<std::string> parts;
      for (double value : values) parts.push_back(number(value));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    }
  };
  return std::visit(Visitor{}, attr);
}

// Names of a function's variables: what people called them, made unique; their numbers otherwise.
std::vector<std::string> local_names(const Context& context, const Function& function) {
  std::vector<std::string> names;
  std::unordered_set<std::string> used;
  for (size_t i = 0; i < function.vars.size(); ++i) {
    std::string name;
    for (const char c : context.name(function.vars[i].name)) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      if (plain) name += c;
      else if (!name.empty() && name.back() != '_') name += '_';
    }
    // A number alone is the name of an unnamed variable.
    if (name.find_first_not_of("0123456789") == std::string::npos) name = fmt::format("{}", i);
    if (used.contains(name)) name += fmt::format("_{}", i);
    while (used.contains(name)) name += '_';
    used.insert(name);
    names.push_back(name);
  }
  return names;
}

class FunctionPrinter {
 public:
  // `module`: for spans; none where a value is shown in a message.
  FunctionPrinter(const Context& context, const Function& function, const Module* module, const PrintOptions& options)
      : context_(context),
        function_(function),
        module_(module),
        options_(options),
        names_(local_names(context, function)) {}

  std::string value(const Value& value, size_t indent) const { return std::visit(Visitor{*this, indent}, value); }

  std::string print(Symbol name) const {
    std::string text;
    if (!function_.target.empty() || !function_.composite.empty()) {
      std::vector<std::string> marks;
      if (!function_.target.empty()) marks.push_back("target = " + quote(function_.target));
      if (!function_.composite.empty()) marks.push_back("composite = " + quote(function_.composite));
      text += fmt::format("#[{}]\n", fmt::join(marks, ", "));
    }
    text += fmt::format("def @{}{}{} -> {} ", context_.name(name), variables(context_, function_.dims, function_.types),
                        params(function_.params), context_.str(function_.result));
    return text + block(function_.body, 0) + "\n";
  }

  // [n, A], or nothing.
  static std::string variables(const Context& context, const std::vector<Symbol>& dims,
                               const std::vector<Symbol>& types) {
    std::vector<std::string_view> names;
    for (Symbol dim : dims) names.push_back(context.name(dim));
    for (Symbol type : types) names.push_back(context.name(type));
    return names.empty() ? "" : fmt::format("[{}]", fmt::join(names, ", "));
  }

 private:
  std::string atom(const Atom& atom) const {
    if (auto* var = std::get_if<VarId>(&atom)) return "%" + names_[index(*var)];
    if (auto* symbol = std::get_if<Symbol>(&atom)) return fmt::format("@{}", context_.name(*symbol));
    return fmt::format("${}", index(std::get<ConstId>(atom)));
  }
  std::string atoms(const Atoms& list) const {
    std::string text;
    for (const Atom& next : list) text += (text.empty() ? "" : ", ") + atom(next);
    return text;
  }
  std::string params(const std::vector<VarId>& list) const {
    std::vector<std::string> texts;
    for (VarId param : list) texts.push_back(fmt::format("{}: {}", atom(param), context_.str(function_.type(param))));
    return fmt::format("({})", fmt::join(texts, ", "));
  }

  // A module's blocks are printed; in a message they are three dots.
  std::string block(const Block& block, size_t indent) const {
    if (!module_) return "{ ... }";
    const std::string space(indent + 2, ' ');
    std::string text = "{\n";
    for (const Binding& binding : block.bindings) {
      const VarInfo& info = function_.info(binding.var);
      // A cast says its type itself, and the dims in it are in scope only behind it.
      const bool cast = std::holds_alternative<Cast>(binding.value);
      text += fmt::format("{}let {}{} = {};", space, atom(binding.var), cast ? "" : ": " + context_.str(info.type),
                          value(binding.value, indent + 2));
      if (options_.spans && index(info.span) != 0) text += "  // " + module_->span(info.span).str();
      text += '\n';
    }
    return fmt::format("{}{}{}\n{}}}", text, space, atom(block.result), std::string(indent, ' '));
  }

  std::string pattern(const MatchPattern& pattern) const {
    auto list = [this](const std::vector<MatchPattern>& patterns) {
      std::vector<std::string> parts;
      for (const MatchPattern& next : patterns) parts.push_back(this->pattern(next));
      return fmt::format("{}", fmt::join(parts, ", "));
    };
    struct PatternVisitor {
      const FunctionPrinter& self;
      decltype(list)& all;
      std::string operator()(const AnyPattern&) const { return "_"; }
      std::string operator()(const BindPattern& x) const { return self.atom(x.var); }
      std::string operator()(const ConstructPattern& x) const {
        return fmt::format("{}{}", self.context_.name(x.constructor),
                           x.fields.empty() ? "" : "(" + all(x.fields) + ")");
      }
      std::string operator()(const TuplePattern& x) const {
        return fmt::format("({}{})", all(x.fields), x.fields.size() == 1 ? "," : "");
      }
    };
    return std::visit(PatternVisitor{*this, list}, pattern.form);
  }

  struct Visitor {
    const FunctionPrinter& self;
    size_t indent;

    std::string operator()(const Apply& apply) const {
      std::string text = fmt::format("{}({}", apply.op->name, self.atoms(apply.args));
      bool first = apply.args.empty();
      for (const AttrSpec& spec : apply.op->attributes) {
        auto found = apply.attrs.find(spec.name);
        if (found == apply.attrs.end() || found->second == spec.default_value) continue;
        text += fmt::format("{}{}={}", first ? "" : ", ", spec.name, attribute(found->second));
        first = false;
      }
      return text + ")";
    }
    std::string operator()(const Call& call) const {
      return fmt::format("{}({})", self.atom(call.callee), self.atoms(call.args));
    }
    std::string operator()(const Tuple& tuple) const {
      return fmt::format("({}{})", self.atoms(tuple.fields), tuple.fields.size() == 1 ? "," : "");
    }
    std::string operator()(const Project& project) const {
      return fmt::format("{}.{}", self.atom(project.tuple), project.index);
    }
    std::string operator()(const Construct& construct) const {
      return fmt::format("{}{}", self.context_.name(construct.constructor),
                         construct.fields.empty() ? "" : "(" + self.atoms(construct.fields) + ")");
    }
    std::string operator()(const Lambda& lambda) const {
      return fmt::format("fn {} -> {} {}", self.params(lambda.params), self.context_.str(lambda.result),
                         self.block(lambda.body[0], indent));
    }
    std::string operator()(const If& branch) const {
      return fmt::format("if ({}) {} else {}", self.atom(branch.condition), self.block(branch.arms[0], indent),
                         self.block(branch.arms[1], indent));
    }
    std::string operator()(const Case& match) const {
      std::string text = fmt::format("match {} {{", self.atom(match.subject));
      if (!self.module_) return text + " ... }";
      for (const Arm& arm : match.arms) {
        const std::string body =
            arm.block.bindings.empty() ? self.atom(arm.block.result) : self.block(arm.block, indent + 2);
        text += fmt::format("\n{}{} => {},", std::string(indent + 2, ' '), self.pattern(arm.pattern), body);
      }
      return fmt::format("{}\n{}}}", text, std::string(indent, ' '));
    }
    std::string operator()(const Cast& cast) const {
      return fmt::format("match_cast{}({}, {})", variables(self.context_, cast.fresh, {}), self.atom(cast.value),
                         self.context_.str(cast.type));
    }
    std::string operator()(const MakeReference& make) const { return fmt::format("ref({})", self.atom(make.value)); }
    std::string operator()(const ReadReference& read) const {
      return fmt::format("read({})", self.atom(read.reference));
    }
    std::string operator()(const WriteReference& write) const {
      return fmt::format("write({}, {})", self.atom(write.reference), self.atom(write.value));
    }
  };

  const Context& context_;
  const Function& function_;
  const Module* module_;
  PrintOptions options_;
  std::vector<std::string> names_;
};

std::string type_list(const Context& context, const std::vector<Type>& types) {
  std::vector<std::string> parts;
  for (Type type : types) parts.push_back(context.str(type));
  return fmt::format("({})", fmt::join(parts, ", "));
}

std::string print(const Context& context, Symbol name, const Adt& adt) {
  std::vector<std::string> parts;
  for (const Constructor& constructor : adt.constructors) {
    parts.push_back(fmt::format("{}{}", context.name(constructor.name),
                                constructor.fields.empty() ? "" : type_list(context, constructor.fields)));
  }
  return fmt::format("type {}{} {{ {} }}\n", context.name(name), FunctionPrinter::variables(context, {}, adt.params),
                     fmt::join(parts, ", "));
}

std::string print(const Context& context, Symbol name, const Library& library) {
  return fmt::format("extern @{}{}{} -> {} = {};\n", context.name(name),
                     FunctionPrinter::variables(context, library.dims, library.types),
                     type_list(context, library.params), context.str(library.result), quote(library.symbol));
}

// The elements of a small constant; nothing where the text would not give the same bits (not a number).
std::optional<std::string> elements(const runtime::Tensor& tensor) {
  std::vector<std::string> parts;
  bool exact = true;
  auto write = [&]<class T>(T) {
    for (const T value : tensor.data<T>()) {
      if constexpr (std::is_floating_point_v<T>) {
        exact &= !std::isnan(value);
        std::string text = std::isinf(value) ? number(value) : fmt::format("{}", value);
        parts.push_back(std::move(text));
      } else {
        parts.push_back(fmt::format("{}", static_cast<int64_t>(value)));
      }
    }
  };
  switch (tensor.dtype()) {
    case DType::kBool: write(bool{}); break;
    case DType::kI8: write(int8_t{}); break;
    case DType::kU8: write(uint8_t{}); break;
    case DType::kI16: write(int16_t{}); break;
    case DType::kU16: write(uint16_t{}); break;
    case DType::kI32: write(int32_t{}); break;
    case DType::kI64: write(int64_t{}); break;
    case DType::kF32: write(float{}); break;
    case DType::kF64: write(double{}); break;
  }
  if (!exact) return std::nullopt;
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string constant_type(const runtime::Tensor& tensor) {
  return fmt::format("Tensor[({}{}), {}]", fmt::join(tensor.shape(), ", "), tensor.shape().size() == 1 ? "," : "",
                     runtime::name(tensor.dtype()));
}

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

Text print(const Context& context, const Module& module, const PrintOptions& options) {
  Text out;
  std::string constants;
  for (size_t i = 0; options.constants && i < module.constants.size(); ++i) {
    const runtime::Tensor& tensor = module.constants[i];
    std::optional<std::string> text;
    if (tensor.size() <= kMaxInline) text = elements(tensor);
    if (!text) {
      out.side.resize((out.side.size() + 7) / 8 * 8);
      text = fmt::format("side({})", out.side.size());
      out.side.insert(out.side.end(), tensor.bytes().begin(), tensor.bytes().end());
    }
    constants += fmt::format("const ${}: {} = {};\n", i, constant_type(tensor), *text);
  }
  out.text = "#[version = \"1\"";
  if (!out.side.empty()) {
    out.text += fmt::format(", side_bytes = {}, side_checksum = \"{:016x}\"", out.side.size(), checksum(out.side));
  }
  out.text += "]\n" + constants;
  auto by_name = [&](const auto& map) {
    std::map<std::string_view, Symbol> names;
    for (const auto& [name, value] : map) names.emplace(context.name(name), name);
    return names;
  };
  for (const auto& [text, name] : by_name(module.adts)) out.text += "\n" + print(context, name, module.adts.at(name));
  for (const auto& [text, name] : by_name(module.globals)) {
    const Global& global = module.globals.at(name);
    auto* function = std::get_if<Function>(&global);
    out.text += "\n" + (function ? FunctionPrinter(context, *function, &module, options).print(name)
                                 : print(context, name, std::get<Library>(global)));
  }
  return out;
}

std::string print(const Context& context, const Module& module, Symbol name, const Function& function,
                  const PrintOptions& options) {
  return FunctionPrinter(context, function, &module, options).print(name);
}

std::string print(const Context& context, const Function& function, const Value& value) {
  return FunctionPrinter(context, function, nullptr, {}).value(value, 0);
}

}  // namespace tenon::compiler
