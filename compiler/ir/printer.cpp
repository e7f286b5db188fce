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
  FunctionPrinter(const Context& context, const Function& function)
      : context_(context), function_(function), names_(local_names(context, function)) {}

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
  std::string value(const Value& value) const {
    struct Visitor {
      const FunctionPrinter& self;
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
    };
    return std::visit(Visitor{*this}, value);
  }

  std::string print(const Module& module, Symbol name, const PrintOptions& options) const {
    std::string text;
    if (!function_.target.empty() || !function_.composite.empty()) {
      std::vector<std::string> marks;
      if (!function_.target.empty()) marks.push_back("target = " + quote(function_.target));
      if (!function_.composite.empty()) marks.push_back("composite = " + quote(function_.composite));
      text += fmt::format("#[{}]\n", fmt::join(marks, ", "));
    }
    text += fmt::format("def @{}", context_.name(name));
    if (!function_.dims.empty()) {
      std::vector<std::string_view> dims;
      for (Symbol dim : function_.dims) dims.push_back(context_.name(dim));
      text += fmt::format("[{}]", fmt::join(dims, ", "));
    }
    std::vector<std::string> params;
    for (VarId param : function_.params) {
      params.push_back(fmt::format("{}: {}", atom(param), context_.str(function_.type(param))));
    }
    text += fmt::format("({}) -> {} {{\n", fmt::join(params, ", "), context_.str(function_.result));
    for (const Binding& binding : function_.body.bindings) {
      const VarInfo& info = function_.info(binding.var);
      text += fmt::format("  let {}: {} = {};", atom(binding.var), context_.str(info.type), value(binding.value));
      if (options.spans && index(info.span) != 0) text += "  // " + module.span(info.span).str();
      text += '\n';
    }
    return text + fmt::format("  {}\n}}\n", atom(function_.body.result));
  }

 private:
  const Context& context_;
  const Function& function_;
  std::vector<std::string> names_;
};

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
  std::map<std::string_view, Symbol> by_name;
  for (const auto& [name, global] : module.globals) by_name.emplace(context.name(name), name);
  for (const auto& [text, name] : by_name) {
    const Function& function = std::get<Function>(module.globals.at(name));
    out.text += "\n" + FunctionPrinter(context, function).print(module, name, options);
  }
  return out;
}

std::string print(const Context& context, const Module& module, Symbol name, const Function& function,
                  const PrintOptions& options) {
  return FunctionPrinter(context, function).print(module, name, options);
}

std::string print(const Context& context, const Function& function, const Value& value) {
  return FunctionPrinter(context, function).value(value);
}

}  // namespace tenon::compiler
