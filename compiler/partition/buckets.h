// Buckets: functions of fixed sizes for the parts of a model whose sizes are unknown until it runs, since a generator
// of code for fixed sizes (an accelerator's) supports no others. Which one computes is chosen by the sizes of each run;
// at all other sizes, the operators stay with the CPU. (Nimble, Shen et al. 2021, section 4.5, dispatches kernels so.)
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/partition/target.h"

namespace tenon::compiler {

// A part of a function that has buckets.
struct Bucketed {
  Symbol name{};         // of the function of all sizes
  std::string target;    // for which the functions of fixed sizes are made
  size_t operators = 0;  // in it
  // The sizes of each bucket by the names in the function, in the order in which they are tried.
  std::vector<std::string> sizes;
  // Whether a bucket computes all smaller sizes too: the operands are padded up to its rows, and the rows of the
  // padding are cut off from the results.
  bool pads = false;
  // Rows beyond the largest copy are computed by several calls.
  bool any_rows = false;
};

// Outlines the neighbouring operators of the entry that a target supports at the sizes of the first bucket and not at
// unknown ones. They are replaced by a chain of `if` over the sizes, each arm of which calls a copy of the function
// whose sizes are bound. The meaning of the module does not change, and partition() finds the copies as functions of
// known sizes.
//
// A bucket gives sizes to the unknown sizes of the entry, which has all that are named. Where it leaves a size of an
// operand open, the part has no copy for it.
Expected<std::vector<Bucketed>> make_buckets(Context& context, Module& module, Symbol entry,
                                             std::span<const Target> targets, std::span<const DimValues> buckets);

// The same for a function whose first axes are rows that are independent of each other, `joined_axes` of them, and
// which is called with the rows of all instances of a batch along the last of these axes (Function::joined_axes): its
// parts are computed by programs of as many rows as fit, and at most the last 15 rows of a call are padding.
Expected<std::vector<Bucketed>> make_row_programs(Context& context, Module& module, Symbol unit,
                                                  std::span<const Target> targets);

// For people: a line for each part, or that there is none.
std::string report(const Context& context, std::span<const Bucketed> parts);

}  // namespace tenon::compiler
