// The printer of modules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>

#include "compiler/ir/literal.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text/format.h"
#include "compiler/ir/text/function_printer.h"
#include "compiler/ir/text/printer.h"
#include "compiler/loop/text.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kMaxInline = 8;  // the most elements of a constant in the text

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
                     FunctionPrinter::variables(context, library.dims, library.types, library.bounds),
                     type_list(context, library.params), context.str(library.result), quote(library.symbol));
}

std::string constant_type(const runtime::Tensor& tensor) {
  return fmt::format("Tensor[({}{}), {}]", fmt::join(tensor.shape(), ", "), tensor.shape().size() == 1 ? "," : "",
                     runtime::name(tensor.dtype()));
}

// The constants that the functions use and that are not printed as literals at their uses.
std::vector<ConstId> named_constants(const Module& module) {
  std::vector<bool> used(module.constants.size(), false);
  for_each_function(module, [&](Symbol, const Function& function) {
    for_each_use(function.body, [&](const Atom& atom) {
      auto* id = std::get_if<ConstId>(&atom);
      if (id) used[index(*id)] = !literal(module.constant(*id));
    });
  });
  std::vector<ConstId> named;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) named.push_back(static_cast<ConstId>(i));
  }
  return named;
}

// The formatted text; printed text has matching brackets, so formatting does not fail.
std::string lay_out(const std::string& text) {
  auto formatted = format(text);
  assert(formatted);
  return std::move(*formatted);
}

}  // namespace

PrintedModule print_parts(const Context& context, const Module& module, const PrintOptions& options) {
  PrintedModule out;
  std::string text;
  const std::vector<ConstId> named = options.constants ? named_constants(module) : std::vector<ConstId>();
  // The indices in the text have no gaps, as the ids have none after the text is parsed.
  std::vector<uint32_t> indices(module.constants.size(), 0);
  for (size_t i = 0; i < named.size(); ++i) indices[index(named[i])] = static_cast<uint32_t>(i);
  for (size_t i = 0; i < named.size(); ++i) {
    const ConstId id = named[i];
    const runtime::Tensor& tensor = module.constant(id);
    std::optional<std::string> values;
    if (tensor.size() <= kMaxInline) values = elements(tensor);
    if (!values) out.side.emplace(fmt::format("{}", i), tensor);
    text += fmt::format("const ${}: {} = {};\n", i, constant_type(tensor), values.value_or("side"));
  }
  auto by_name = [&](const auto& map) {
    std::map<std::string_view, Symbol> names;
    for (const auto& [name, value] : map) names.emplace(context.name(name), name);
    return names;
  };
  for (const auto& [shown, name] : by_name(module.adts)) text += print(context, name, module.adts.at(name));
  for (const auto& [shown, name] : by_name(module.globals)) {
    struct Visitor {
      const Context& context;
      const Module& module;
      const PrintOptions& options;
      const std::vector<uint32_t>* indices;
      Symbol name;
      std::string operator()(const Function& function) const {
        return FunctionPrinter(context, function, &module, options, indices).print(name);
      }
      std::string operator()(const loop::Function& function) const { return loop::print(context, function); }
      std::string operator()(const Library& library) const { return print(context, name, library); }
    };
    text += std::visit(Visitor{context, module, options, options.constants ? &indices : nullptr, name},
                       module.globals.at(name));
  }
  const std::string side = out.side.empty() ? "" : ", side = " + quote(options.side);
  out.text = lay_out(fmt::format("#[version = \"1\"{}]\n\n{}", side, text));
  return out;
}

Text print(const Context& context, const Module& module, const PrintOptions& options) {
  PrintedModule parts = print_parts(context, module, options);
  return {std::move(parts.text), parts.side.empty() ? std::vector<std::byte>() : runtime::to_npz(parts.side)};
}

std::string print(const Context& context, const Module& module, Symbol name, const Function& function,
                  const PrintOptions& options) {
  return lay_out(FunctionPrinter(context, function, &module, options).print(name));
}

std::string print(const Context& context, const Function& function, const Value& value) {
  return FunctionPrinter(context, function, nullptr, {}).print(value);
}

}  // namespace tenon::compiler
