// A target: the record by which one brings one's own code generator. Nothing else in the compiler knows its name.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/partition/pattern.h"
#include "runtime/accelerator_program.h"
#include "runtime/attrs.h"
#include "runtime/tensor.h"

namespace tenon::compiler {

// A kernel of a library that the runtime opens (runtime/library).
struct LibraryCall {
  std::string kernel;  // "dnnl.conv2d"
  runtime::Attrs attrs;
  std::vector<std::variant<size_t, runtime::Tensor>> operands;  // numbers of the region's parameters, and constants
};

// What a code generator makes of a region; kinds of kernels join here. The runtime knows how to run each.
using Kernel = std::variant<runtime::AcceleratorProgram, LibraryCall>;

// One row of a target's table: earlier rows win.
struct TargetPattern {
  std::string composite;  // "accel.conv2d"
  GraphPattern pattern;
  // Whether the target takes this match; the error says why not. May be empty: takes all.
  std::function<Status(Context&, const Module&, const Function&, const Match&)> accepts;
};

// The layout in which a value crosses a region's border, as layout_transform names it ("NCHW16c"), from the plain
// layout of the same axes ("NCHW"). Both empty: as it is.
struct BorderLayout {
  std::string plain, stored;
};
struct Border {
  std::vector<BorderLayout> params, results;
};

struct Target {
  std::string name;
  std::string documentation;
  std::vector<TargetPattern> patterns;
  // Whether the code generator can take this region (before borders); the error says why not. Regions grow only as long
  // as it says yes; one composite alone must fit. May be empty: takes all.
  std::function<Status(Context&, const Module&, const Function& region)> fits;
  // The layouts in which a region wants its values; empty: all as they are. A region is a function whose body calls
  // composite functions (Function::composite) of this target, and nothing else.
  std::function<Expected<Border>(Context&, const Module&, const Function& region)> border;
  // Code for a region. Its parameters and results have the border's layouts: the body begins with a layout_transform
  // to the plain layout for each parameter that is stored otherwise, and ends with one for each such result, so the
  // function means what it says; the code generator takes these as the layout of its buffers.
  std::function<Expected<Kernel>(Context&, const Module&, Symbol name, const Function& region)> generate;
};

}  // namespace tenon::compiler
