// What every loop function holds to.
#pragma once

#include <optional>
#include <span>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// Checked: every variable and buffer is in scope where it is used; parameters are only read; indices are as many as the
// buffer has axes; types agree; names of buffers are different, as are those of a stage's axes and of all stages;
// nothing but a scan reads, at an axis, what other points write; every spatial and scan axis is an index of each
// element that a stage stores, so that points of different values write different elements; a stage with a reduction
// starts it in `init` or adds to what is there. A function that was parsed or scheduled has passed this; what is said
// in a message is where.
Status verify(const Context& context, const Function& function);

// Whether a variable is in one of the dims.
bool mentions(std::span<const Dim> dims, Symbol var);
// Where `var`, plus a number, is an index of its own, and that number.
struct OwnIndex {
  size_t at = 0;
  int64_t offset = 0;
};
std::optional<OwnIndex> own_index(const Dims& indices, Symbol var);
// Whether `load` reads, of what `store` writes, only what earlier points of a scan axis of the stage wrote.
bool reads_earlier(const Stage& stage, const Store& store, const Load& load);

}  // namespace tenon::compiler::loop
