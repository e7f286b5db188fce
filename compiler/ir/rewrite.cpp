#include "compiler/ir/rewrite.h"

namespace tenon::compiler {

Expected<Function> rewrite(Context& context, Module& module, const Function& function, const Step& step) {
  Function result;
  result.dims = function.dims;
  result.target = function.target;
  result.composite = function.composite;
  Builder builder(context, module, result);
  std::vector<Atom> renamed(function.vars.size(), Atom{VarId{UINT32_MAX}});
  auto rename = [&](Atom& atom) {
    if (auto* var = std::get_if<VarId>(&atom)) atom = renamed[index(*var)];
  };
  for (VarId param : function.params) {
    const VarInfo& info = function.info(param);
    builder.at(info.span);
    renamed[index(param)] = builder.param(info.type, context.name(info.name));
  }
  for (const Binding& old : function.body.bindings) {
    Binding binding = old;
    for_each_operand(binding.value, rename);
    const VarInfo& info = function.info(old.var);
    builder.at(info.span);
    Expected<std::optional<Atom>> replaced = step(builder, binding);
    if (!replaced) return forward_error(replaced);
    if (*replaced) {
      renamed[index(old.var)] = **replaced;
      continue;
    }
    Expected<Atom> kept = builder.bind(std::move(binding.value), info.name);
    if (!kept) return forward_error(kept);
    renamed[index(old.var)] = *kept;
  }
  Atom value = function.body.result;
  rename(value);
  builder.finish(value);
  return result;
}

Expected<Module> rewrite(Context& context, Module module, const Step& step) {
  for (auto& [name, global] : module.globals) {
    Expected<Function> function = rewrite(context, module, std::get<Function>(global), step);
    if (!function) return forward_error(function);
    global = std::move(*function);
  }
  return module;
}

const runtime::Tensor* constant_of(const Module& module, const Atom& atom) {
  auto* constant = std::get_if<ConstId>(&atom);
  return constant ? &module.constant(*constant) : nullptr;
}

}  // namespace tenon::compiler
