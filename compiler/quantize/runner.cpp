#include "compiler/quantize/runner.h"

#include "compiler/ir/interpreter.h"

namespace tenon::compiler {

Runner interpreter(const Context& context) {
  return [&context](const Module& module, Symbol entry) -> Expected<RunFunction> {
    return [&context, &module, entry](std::span<const runtime::Tensor> inputs) {
      return interpret(context, module, entry, inputs);
    };
  };
}

}  // namespace tenon::compiler
