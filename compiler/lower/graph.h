// The partitioned model as a graph for the report: one node for each operator or composite, with the device that runs
// it.
#pragma once

#include "compiler/ir/module.h"
#include "runtime/executable/executable.h"

namespace tenon::compiler {

runtime::Graph make_graph(const Context& context, const Module& module, const Function& function);

}  // namespace tenon::compiler
