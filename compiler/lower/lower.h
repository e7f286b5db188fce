// Lowering: from a partitioned module to the executable that the runtime runs.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernels/knob.h"
#include "compiler/partition/target.h"
#include "compiler/schedules/user_schedule.h"
#include "runtime/executable/executable.h"

namespace tenon::compiler {

// How operators on the CPU are computed.
struct CpuOptions {
  bool native = true;                    // native kernels for operators that have one; else reference kernels only
  std::string triple = {};               // of the machine that runs the code; empty: this machine's
  std::vector<std::string> levels = {};  // of the processor, that code is generated for; empty: all of the architecture
  kernels::KnobLookup knobs = {};        // measured knob settings of operators; empty: the cost model decides
  // Settings for one level, instead of `knobs`.
  std::map<std::string, kernels::KnobLookup> level_knobs = {};
  // Steps of a user for kernels, instead of the templates': each must be for a kernel that is made, and be accepted.
  std::vector<schedules::UserSchedule> schedules = {};
  // Loop functions and functions of libraries are CallKernel with their names, as "@f", which the session's kernel
  // lookup must have: for comparisons with an evaluator.
  bool external = false;
  // Functions of the virtual machine become native code too, beside their instructions.
  bool ahead_of_time = false;
  bool contract = true;  // a multiplication and an addition may become one operation with one rounding
};

// How one operator is computed on the CPU.
struct CpuPlacement {
  SpanId span{};
  std::string op;
  std::string kernel;  // the native kernel that has the operator; empty: its reference kernel
  std::string knobs;   // settings that CpuOptions::knobs has for the operators of that kernel
  std::string reason;  // why it is the reference kernel
  bool interpreted =
      false;  // a native kernel is wanted and there is none: the interpreter's kernel computes it, slowly
};

struct LowerOptions {
  std::string name;                                        // of the executable
  std::vector<std::pair<std::string, std::string>> facts;  // free rows: the source model, how it was quantized
  CpuOptions cpu = {};
  std::vector<CpuPlacement>* placements = nullptr;  // receives the placement of each operator on the CPU
  // Receives the functions that are bound to a GPU: those of its code, whose launches have their names, or of native
  // kernels of their names, where it is emulated.
  std::vector<loop::Function>* gpu_functions = nullptr;
  // Receives the functions of native kernels, which have their names.
  std::vector<loop::Function>* cpu_functions = nullptr;
  // Functions whose calls a run of many instances may put off (runtime::Unit), and of which each is a function of its
  // own in the executable. One that has a value that is no tensor is called at once.
  std::vector<Symbol> units = {};
};

// Lowers function `entry` of `module`, and every function that it uses: fused groups and operators become native
// kernels, or calls of reference kernels if they have none; regions become kernels of their targets by
// Target::generate; control flow, data types, closures and references become instructions of the machine. Sizes may be
// symbolic: the code checks them where it takes inputs. The memory plan of the entry is one of the result's facts,
// "memory".
Expected<runtime::Executable> lower(Context& context, const Module& module, Symbol entry,
                                    std::span<const Target> targets, const LowerOptions& options);
// The same, and frees each constant of the module as soon as the kernel is made that alone uses it.
Expected<runtime::Executable> lower(Context& context, Module&& module, Symbol entry, std::span<const Target> targets,
                                    const LowerOptions& options);

}  // namespace tenon::compiler
