// Lowering: from a partitioned module to the executable that the runtime runs.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/partition/target.h"
#include "runtime/executable/executable.h"

namespace tenon::compiler {

struct LowerOptions {
  std::string name;                                        // of the executable
  std::vector<std::pair<std::string, std::string>> facts;  // free rows: the source model, how it was quantized
};

// Lowers function `entry` of `module`: operators become calls of reference kernels, regions become kernels of their
// targets by Target::generate, tuples dissolve. Every shape must be static; a symbolic one is an error that says how to
// bind it.
Expected<runtime::Executable> lower(Context& context, const Module& module, Symbol entry,
                                    std::span<const Target> targets, const LowerOptions& options);

}  // namespace tenon::compiler
