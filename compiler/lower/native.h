// The native kernels of an executable: made one by one, compiled together. Equal ones are one: a network repeats its
// layers, whose weights are operands.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/kernels/kernels.h"
#include "compiler/lower/lower.h"
#include "runtime/native/native.h"

namespace tenon::compiler {

// One operator of a function as a function of its own, and what its parameters are there.
struct Alone {
  Function function;
  Atoms args;
};
Alone operator_alone(Context& context, const Function& function, const Binding& binding);

// A function of a library as a loop function that does nothing else than to call it. An error where it takes or gives
// something else than tensors.
Expected<loop::Function> calling(Context& context, Symbol name, const Library& library);

class NativeKernels {
 public:
  NativeKernels(Context& context, const Module& module, const CpuOptions& options)
      : context_(context), module_(module), options_(options) {}

  struct Entry {
    uint32_t kernel = 0;
    std::string name, choice;                // choice: what options.choices knew
    std::vector<kernels::Operand> operands;  // numbers of arguments, and constants
    Atoms args;                              // of one(): what the arguments are
  };
  // A fused group; an error says why it has no kernel.
  Expected<Entry> group(std::string_view name, const Function& group);
  // One operator alone. Those that only give a tensor another shape have none: their reference kernels copy nothing.
  Expected<Entry> one(const Function& function, const Binding& binding);

  // A loop function of the module, scheduled where it has no schedule of its own; an error says why it has no kernel.
  Expected<Entry> loops(const loop::Function& function);

  // All that were made; nothing where there are none.
  Expected<std::optional<runtime::NativeCode>> compile();

 private:
  using Variants = std::map<std::string, loop::Function>;  // by level
  Entry add(std::string_view name, loop::Function function, std::vector<kernels::Operand> operands,
            Variants variants = {});
  Variants variants(const Function& group, const kernels::Kernel& kernel, const loop::Function& scheduled);

  Context& context_;
  const Module& module_;
  const CpuOptions& options_;
  std::map<std::string, uint32_t> known_;  // by the text of the function, whose name is its number
  std::vector<loop::Function> functions_;
  std::vector<Variants> variants_;  // of each
  std::map<std::string, int> names_;
};

}  // namespace tenon::compiler
