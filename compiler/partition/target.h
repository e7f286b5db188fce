// Target: the record by which a user brings a code generator. No other part of the compiler depends on its name.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/loop/loop.h"
#include "compiler/partition/costs.h"
#include "compiler/partition/match.h"
#include "runtime/accelerator_program.h"
#include "runtime/attrs.h"
#include "runtime/tensor.h"

namespace tenon::compiler {

// A kernel of a library that the runtime opens (runtime/library).
struct LibraryCall {
  std::string kernel;  // "dnnl.conv2d"
  runtime::Attrs attrs;
  std::vector<std::variant<size_t, runtime::Tensor>> operands;  // indices of the region's parameters, and constants
};

// A loop function of a region on a GPU, whose outermost nests are launches.
struct BoundStep {
  loop::Function function;
  std::vector<std::variant<size_t, runtime::Tensor>> operands;  // of its parameters: values by index, and constants
};
// The kernels of a region on a GPU, in their order. Its values are its parameters and then the results of each step.
struct BoundKernels {
  bool emulated = true;  // compiled for the CPU; else for the GPU
  std::vector<BoundStep> steps;
  std::vector<size_t> results;  // of the region: values
  // What the kernels compute, by the names of operators and values, and the indices of the user's schedules that they
  // have instead of the target's.
  std::vector<std::string> computed = {};
  std::vector<size_t> schedules = {};
};

// The code that a generator makes for a region; a new kind of kernel is one more alternative. The runtime runs each
// kind.
using RegionKernel = std::variant<runtime::AcceleratorProgram, LibraryCall, BoundKernels>;

// One row of a target's table: earlier rows win.
struct TargetPattern {
  std::string composite;  // "accel.conv2d"
  GraphPattern pattern;
  // Returns an error that says why the target does not support this match. May be empty: all matches are supported. The
  // answer depends on operators, attributes and types, and of constants on their types and, up to kComparedBytes
  // (function_key.h), on their elements: for equal functions it is asked once.
  std::function<Status(Context&, const Module&, const Function&, const Match&)> accepts;
  // Whether row i of the result, along its outermost axis, depends on row i of each operand that is no constant, and on
  // no other: then fewer rows than a function of fixed sizes has are computed with rows of padding (buckets.h).
  bool rows = false;
  // Whether the row is for results of this target alone: the first operand is that of another composite. So are
  // operators that compute nothing, which would only move data to the target and back.
  bool of_own_results = false;
};

// The layout in which a value crosses a region's boundary, in the notation of layout_transform ("NCHW16c"), and the
// plain layout of the same axes ("NCHW"). Both empty: the value is not transformed.
struct BoundaryLayout {
  std::string plain, stored;
};
struct Boundary {
  std::vector<BoundaryLayout> params;
  std::vector<BoundaryLayout> results;  // of each tensor: a result that is a tuple has one for each field
};

// A composite of a region that is priced.
struct RegionLayer {
  const Function* composite = nullptr;
  // By parameter: the index of the layer of the region whose result is the argument, or -1: it is from outside.
  std::vector<int> args;
};

struct Target {
  std::string name;
  std::string documentation;
  std::vector<TargetPattern> patterns;
  // Whether its patterns are of integer layers: a float model with samples is quantized in canonical layers, and the
  // requantizations of a model that comes quantized become integer ones.
  bool integer_layers = false;
  // Returns an error that says why the code generator does not support this region (before layouts are added at its
  // boundary). Regions grow only while it succeeds; a single composite must fit. May be empty: all regions are
  // supported.
  std::function<Status(Context&, const Module&, const Function& region)> fits;
  // The time of a composite as a region of its own, without the launch and the copies of its values, in seconds, by the
  // figures of a costs file; it depends on what `accepts` may depend on. An error where the file lacks an entry. May be
  // empty: the price follows from the entries gmacs_f32, gmacs_i8 and memory_gbytes of the target.
  std::function<Expected<Price>(Context&, const Module&, const Function& composite, const Costs&)> cost;
  // The same of a whole region, in the order of its composites: layers may overlap, so that it takes less than their
  // sum. May be empty: it is the sum.
  std::function<Expected<Price>(Context&, const Module&, std::span<const RegionLayer>, const Costs&)> region_cost;
  // The layouts that a region requires of its values; empty: no value is transformed. A region is a function whose body
  // calls composite functions (Function::composite) of this target, and nothing else.
  std::function<Expected<Boundary>(Context&, const Module&, const Function& region)> boundary;
  // Code for a region. Its parameters and results have the boundary's layouts: the body begins with a layout_transform
  // to the plain layout for each parameter in another layout, and ends with one for each such result, so the function
  // keeps its meaning for an interpreter; the code generator reads these as the layouts of its buffers.
  std::function<Expected<RegionKernel>(Context&, const Module&, Symbol name, const Function& region)> generate;
  // Of foreign code: what has failed in it, after which the target supports nothing more; nullopt while nothing has.
  // May be empty: nothing fails but by the errors above.
  std::function<std::optional<Diagnostic>()> failure;
};

// What has failed in the target's code generator, or nullopt.
inline std::optional<Diagnostic> failure_of(const Target& target) {
  return target.failure ? target.failure() : std::nullopt;
}

}  // namespace tenon::compiler
