// tenon ops: the operators of the language.
#include <fmt/format.h>

#include <map>

#include "compiler/cli/command.h"
#include "compiler/ir/context.h"
#include "compiler/ir/operator_reference.h"
#include "compiler/kernels/kernels.h"
#include "support/json.h"
#include "support/suggest.h"

namespace tenon::cli {
namespace {

using compiler::Operator;

void add(Json& json, const Operator& op) {
  json.begin_object().field("name", op.name).field("family", op.family).field("documentation", op.documentation);
  json.field("fusion", std::string(compiler::name(op.pattern))).key("inputs").begin_array();
  for (const compiler::Input& input : op.inputs) {
    json.begin_object().field("name", input.name).field("dtypes", compiler::dtypes_text(op, input)).end();
  }
  json.end().key("attributes").begin_array();
  for (const compiler::AttrSpec& spec : op.attributes) {
    json.begin_object().field("name", spec.name).field("type", std::string(compiler::name(spec.kind)));
    json.field("default", compiler::default_text(spec)).field("documentation", spec.documentation).end();
  }
  json.end().end();
}

struct Ops {
  std::vector<std::string> names;
  bool json = false, markdown = false;

  Status run() const {
    compiler::Context context;
    std::vector<const Operator*> chosen;
    for (const std::string& name : names) {
      const Operator* op = context.find_operator(name);
      if (!op) {
        std::vector<std::string_view> names;
        for (const Operator* other : context.operators()) names.push_back(other->name);
        const std::string nearest = suggest(name, names);
        return error(fmt::format("there is no operator {}", name), "tenon ops",
                     nearest.empty() ? "tenon ops lists them all" : nearest, Fault::kUsage);
      }
      chosen.push_back(op);
    }
    if (markdown) {
      if (json || !names.empty()) return error("--markdown is the whole page", "tenon ops", "", Fault::kUsage);
      print_stdout("{}", operator_reference(context));
      return {};
    }
    if (json) {
      Json out;
      out.begin_array();
      for (const Operator* op : names.empty() ? context.operators() : chosen) add(out, *op);
      print_stdout("{}", out.end().str());
      return {};
    }
    for (size_t i = 0; i < chosen.size(); ++i) {
      print_stdout("{}{}on the CPU: {}\n", i ? "\n" : "", describe(*chosen[i]),
                   compiler::kernels::lowered(chosen[i]->id) ? "native kernels" : "its reference kernel alone");
    }
    if (names.empty()) list(context);
    return {};
  }

  static void list(const compiler::Context& context) {
    std::map<std::string, std::vector<const Operator*>> families;
    for (const Operator* op : context.operators()) families[op->family].push_back(op);
    for (const auto& [family, operators] : families) {
      print_stdout("{}\n", family);
      for (const Operator* op : operators) {
        print_stdout("  {:<22}{:<25}{}\n", op->name, compiler::name(op->pattern), op->documentation);
      }
    }
    print_stdout("{} operators; tenon ops NAME explains one\n", context.operators().size());
  }
};

}  // namespace

Action list_operators(Options& options) {
  auto command = std::make_shared<Ops>();
  options.option(command->names, "NAME", "", "operators to explain; none: list all");
  options.flag(command->json, "--json", "print JSON");
  options.flag(command->markdown, "--markdown", "print the reference page, compiler/ir/operators/REFERENCE.md");
  options.footer("Example: tenon ops conv2d softmax");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
