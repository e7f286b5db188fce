// What the statements of a stage read and write, and where: as indices over its axes.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// An element, or the block of them that an instruction takes.
struct Access {
  BufferId buffer{};
  bool writes = false;
  Dims indices;                // where a block begins
  std::vector<int64_t> sizes;  // of a block; empty: one element

  int64_t size(size_t at) const { return sizes.empty() ? 1 : sizes[at]; }
};
// Of the statement itself, none of those inside it. What an instruction writes it may also read: both are visited.
void for_each_own_access(const Stmt& stmt, const std::function<void(const Access&)>& visit);
// Of init and body, in the order of the statements.
void for_each_access(const Stage& stage, const std::function<void(const Access&)>& visit);
void for_each_access(const Body& body, const std::function<void(const Access&)>& visit);

// Whether a variable is in one of the dims.
bool mentions(std::span<const Dim> dims, Symbol var);

// Where `var`, plus a number, is an index of its own, and that number. In a folded buffer the index is that remainder.
struct OwnIndex {
  size_t at = 0;
  int64_t offset = 0;
  int64_t fold = 0;  // (var + offset) % fold; 0: var + offset
};
std::optional<OwnIndex> own_index(const Dims& indices, Symbol var);

// The index of a written element that is another one wherever `var`, an axis of the stage, is: its own, or one such as
// 32*o + i of axes that fill it as digits. What does not change meanwhile: axes for which `fixed` holds, and those that
// other indices tell. An index that is folded is told apart for a scan alone, whose order says which of its values is
// meant.
std::optional<size_t> telling_index(const Stage& stage, const Access& write, Symbol var,
                                    const std::function<bool(const Axis&)>& fixed);

// Whether `read` takes, of what `write` makes, only what earlier points of a scan axis of the stage made.
bool reads_earlier(const Stage& stage, const Access& write, const Access& read);

}  // namespace tenon::compiler::loop
