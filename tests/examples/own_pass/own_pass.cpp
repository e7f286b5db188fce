// Runs a pass of its own on a module and prints the result: own_pass FILE.tn. The pass replaces x * 2 by x + x.
#include <cstdio>

#include "compiler/ir/rewrite.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass.h"
#include "compiler/pipeline/pipeline.h"

namespace {

using namespace tenon::compiler;

bool is_two(const Module& module, const Atom& atom) {
  const auto* id = std::get_if<ConstId>(&atom);
  if (!id || module.constant(*id).dtype() != DType::kF32 || !module.constant(*id).shape().empty()) return false;
  return module.constant(*id).data<float>()[0] == 2;
}

tenon::Expected<Module> add_for_double(Context& context, Module module) {
  return rewrite(context, std::move(module),
                 [](Builder& builder, Binding& binding) -> tenon::Expected<std::optional<Atom>> {
                   auto* apply = std::get_if<Apply>(&binding.value);
                   if (!apply || !apply->op->is(ops::kMultiply) || !is_two(builder.module(), apply->args[1]))
                     return std::nullopt;
                   const Atom x = apply->args[0];
                   binding.value = Apply{&builder.context().op(ops::kAdd), {}, {x, x}};
                   return std::nullopt;
                 });
}

int fail(const tenon::Diagnostic& problem) {
  std::fprintf(stderr, "%s\n", problem.str().c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: own_pass FILE.tn\n"), 2;
  auto model = read_model(arguments[1], {});
  if (!model) return fail(model.error());
  const Pass passes[] = {{"add_for_double", "Replaces x * 2 by x + x.", add_for_double}};
  auto result = run_passes(*model->context, std::move(model->module), passes, {});
  if (!result) return fail(result.error());
  std::printf("%s", print(*model->context, *result).text.c_str());
  return 0;
}
