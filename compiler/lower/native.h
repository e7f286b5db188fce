// The native kernels of an executable: made one by one, compiled together. Equal kernels are compiled once: a network
// repeats its layers, whose weights are operands.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/kernels/kernels.h"
#include "compiler/lower/lower.h"
#include "runtime/native/native.h"

namespace tenon::compiler {

// One operator of a function as a function of its own, and the atoms of the first function that are its arguments.
struct SingleOperator {
  Function function;
  Atoms args;
};
SingleOperator single_operator(Context& context, const Function& function, const Binding& binding);

// A loop function that only calls the library function. An error if a parameter or result is not a tensor.
Expected<loop::Function> calling_function(Context& context, Symbol name, const Library& library);

class NativeKernels {
 public:
  NativeKernels(Context& context, const Module& module, const CpuOptions& options);

  struct Entry {
    uint32_t kernel = 0;
    std::string name, knobs;                 // knobs: the settings that options.knobs has for the operators
    std::vector<kernels::Operand> operands;  // indices of arguments, and constants
    Atoms args;                              // of operator_kernel(): the arguments
  };
  // The kernel of a fused group; the error explains why it has none.
  Expected<Entry> group(std::string_view name, const Function& group);
  // The kernel of one operator. Operators that only give a tensor another shape have none: their reference kernels copy
  // nothing.
  Expected<Entry> operator_kernel(const Function& function, const Binding& binding);

  // The kernel of a loop function of the module, scheduled if it has no schedule of its own; the error explains why it
  // has none.
  Expected<Entry> loops(const loop::Function& function);

  // The kernel of a step of a region; returns its index.
  uint32_t step(std::string_view name, BoundStep step);

  // Compiles all kernels; nothing if there are none.
  Expected<std::optional<runtime::NativeCode>> compile();
  // The same for GPUs, where all kernels are steps of regions; their functions get names of PTX.
  Expected<std::optional<runtime::NativeCode>> compile_for_gpu();
  const std::vector<loop::Function>& functions() const { return functions_; }
  // An error where a step of the options' schedules was refused, or where one of them is for no kernel that was made.
  Status check_schedules() const;
  // Records what another target's kernels compute, and which of the options' schedules they have.
  void add_scheduled(const BoundKernels& kernels);

 private:
  using Variants = std::map<std::string, loop::Function>;  // by level
  Entry add(std::string_view name, loop::Function function, std::vector<kernels::Operand> operands,
            Variants variants = {});
  Variants variants(const Function& group, kernels::KernelFunction& kernel);
  const kernels::KnobLookup& knobs_of(const Machine& machine) const;
  // The loops of a group for a machine, scheduled.
  Expected<kernels::KernelFunction> scheduled(const Function& group, const Machine& machine);
  const schedules::UserSchedule* own_schedule(const Function& group, const Machine& machine) const;
  bool has_equal_knobs(const kernels::KernelFunction& kernel, const Machine& a, const Machine& b) const;

  Context& context_;
  const Module& module_;
  const CpuOptions& options_;
  std::vector<const Machine*> machines_;  // of the levels, the best first
  std::map<std::string, uint32_t> ids_;   // of kernels, by the text of their functions, which have one name there
  std::vector<loop::Function> functions_;
  std::vector<Variants> variants_;    // by function
  std::map<std::string, int> names_;  // the number of kernels that have the name
  std::set<std::string> computed_;    // operators and values that kernels compute
  std::set<const schedules::UserSchedule*> used_;
  std::optional<Diagnostic> refused_;  // of the first step of the options' schedules that was
};

}  // namespace tenon::compiler
