// Lowering: from a partitioned module to the executable that the runtime runs.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernels/choice.h"
#include "compiler/partition/target.h"
#include "runtime/executable/executable.h"

namespace tenon::compiler {

// What computes on the CPU.
struct CpuOptions {
  bool native = true;                    // kernels of machine code, where operators have one; else reference kernels
  std::string triple = {};               // of the machine that runs it; empty: this one's
  std::vector<std::string> levels = {};  // of the processor, that code is made for; empty: all of its architecture
  kernels::Choices choices = {};         // how loops are written, where that was measured; empty: by counting
  // The same, of one level alone: code of that level has loops of its own where they take the operands that those of
  // `choices` take, which decide how weights are packed.
  std::map<std::string, kernels::Choices> level_choices = {};
  bool contract = true;  // multiplications and additions in one rounding
};

// How one operator is computed on the CPU.
struct CpuPlacement {
  SpanId span{};
  std::string op;
  std::string kernel;  // the native kernel that it is in; empty: its reference kernel
  std::string choice;  // what CpuOptions::choices knew about the operators of that
  std::string reason;  // why the reference
};

struct LowerOptions {
  std::string name;                                        // of the executable
  std::vector<std::pair<std::string, std::string>> facts;  // free rows: the source model, how it was quantized
  CpuOptions cpu = {};
  std::vector<CpuPlacement>* placements = nullptr;  // takes what became of each operator on the CPU
};

// Lowers function `entry` of `module`: fused groups and operators become native kernels, or calls of reference
// kernels where they have none; regions become kernels of their targets by Target::generate, tuples dissolve. Every
// shape must be static; a symbolic one is an error that says how to bind it.
Expected<runtime::Executable> lower(Context& context, const Module& module, Symbol entry,
                                    std::span<const Target> targets, const LowerOptions& options);

}  // namespace tenon::compiler
