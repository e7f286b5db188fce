// The elements that the statements of a stage read and write, as indices over its axes.
#pragma once

#include <optional>
#include <span>

#include "compiler/loop/loop.h"
#include "support/function_ref.h"

namespace tenon::compiler::loop {

// An access to an element, or to the block of elements that is an instruction's operand.
struct Access {
  BufferId buffer{};
  bool writes = false;
  Dims indices;                // of the element, or of the block's first element
  std::vector<int64_t> sizes;  // of a block; empty: one element

  int64_t size(size_t axis) const { return sizes.empty() ? 1 : sizes[axis]; }
};
// Visits the accesses of the statement itself, without those of nested statements. An instruction may read its outputs:
// each of them is visited as a read and as a write.
void for_each_direct_access(const Stmt& stmt, FunctionRef<void(const Access&)> visit);
// Visits the accesses of init and body, in the order of the statements.
void for_each_access(const Stage& stage, FunctionRef<void(const Access&)> visit);
void for_each_access(const Body& body, FunctionRef<void(const Access&)> visit);

// Whether one of the dims contains the variable.
bool mentions(std::span<const Dim> dims, Symbol var);

// An index that is a variable plus a constant; in a folded buffer, the remainder of this sum.
struct OffsetIndex {
  size_t position = 0;  // in the list of indices
  int64_t offset = 0;
  int64_t fold = 0;  // (var + offset) % fold; 0: var + offset
};
// The first of the indices that is `var` plus a constant. A remainder whose quotient is an index as well, or digits of
// it, is a digit of the variable (the step `layout`) and no folded index.
std::optional<OffsetIndex> offset_index(const Dims& indices, Symbol var);

// The position of an index of a written element that differs whenever `var`, an axis of the stage, differs: an index
// that is this axis alone, or a mixed-radix sum of axes such as 32*o + i. Axes for which `fixed` holds and axes that
// other indices determine are assumed to be constant. A folded index determines only a scan axis, whose order says
// which of the index's values is meant.
std::optional<size_t> distinguishing_index(const Stage& stage, const Access& write, Symbol var,
                                           FunctionRef<bool(const Axis&)> fixed);

// Whether `read` accesses, of the elements that `write` writes, only those that earlier points of a scan axis wrote.
bool reads_earlier(const Stage& stage, const Access& write, const Access& read);

}  // namespace tenon::compiler::loop
