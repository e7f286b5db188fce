// The partitioned model as a graph for people: one node an operator or composite, coloured by where it runs.
#pragma once

#include "compiler/ir/module.h"
#include "runtime/executable/executable.h"

namespace tenon::compiler {

runtime::Graph make_graph(const Context& context, const Module& module, const Function& function);

}  // namespace tenon::compiler
