// What the functions of one executable share while they are lowered: kernels, constants, types, indices of functions.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/lower/constants.h"
#include "compiler/lower/gpu_region.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/native.h"

namespace tenon::compiler {

class ProgramLowering {
 public:
  ProgramLowering(Context& context, const Module& module, std::span<const Target> targets, const LowerOptions& options,
                  runtime::Executable& out)
      : context(context),
        module(module),
        targets(targets),
        options(options),
        natives(context, module, options.cpu),
        gpu_kernels(context, module, options.cpu),
        out(out) {}

  // Lowers the entry, and all functions that it uses. `consumed`: the module, whose constants may be freed.
  Status run(Symbol entry, Module* consumed = nullptr);
  // After the kernel of a function has been made.
  void made_kernel(const Function& function);

  uint32_t add_function();
  // The index of the callee of a direct call: one word for each parameter and each hidden size.
  uint32_t callee(Symbol name);
  // The index of the function of a global as a value: one word for each parameter.
  Expected<uint32_t> value(Symbol name);
  uint32_t constant(const runtime::Tensor& tensor);
  uint32_t type(Symbol name);
  // Adds the defined types in the type, and those in their fields: a caller may give values of them.
  void add_types(Type type);
  // Whether a run of many instances may put calls of the function off.
  bool is_unit(Symbol name) const;
  // Whether the function is a straight line that is small enough to be lowered at each call.
  bool inlines(Symbol name, const Function& function);

  Context& context;
  const Module& module;
  const std::span<const Target> targets;
  const LowerOptions& options;
  // The code of a CallNative until all kernels are compiled.
  static constexpr uint32_t kCpuCode = 0, kGpuCode = 1;
  NativeKernels natives, gpu_kernels;
  std::vector<GpuRegion> gpu_regions;  // the kernels of kGpuCode, whose steps are gpu_kernels
  runtime::Executable& out;
  std::vector<uint64_t> accelerators;  // by program of `out`: the hash of its configuration

 private:
  Status lower_functions();  // those that were added
  // Lowers the functions of units that the module calls, and adds the units.
  Status add_units();
  Status compile_kernels();
  void plan_memory_of_all();  // the memory plans of all functions

  struct Work {
    const Function* function;
    std::string name;
    bool is_value;
    uint32_t index;
  };

  std::map<Symbol, uint32_t> callees_, values_, types_;
  std::map<Symbol, bool> inlines_;
  std::map<Symbol, size_t> copies_;  // of a function that is lowered at its calls
  std::deque<Function> made_;        // functions that call a global, for its use as a value
  std::vector<Work> work_;
  Module* consumed_ = nullptr;
  std::optional<LoweredConstants> uses_;                         // of a consumed module
  std::unordered_map<size_t, std::vector<uint32_t>> constants_;  // by their bytes' hash
};

}  // namespace tenon::compiler
