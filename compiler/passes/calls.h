// Calls of global functions, as the passes that copy bodies into callers need them.
#pragma once

#include <map>
#include <set>

#include "compiler/ir/module.h"
#include "support/function_ref.h"

namespace tenon::compiler {

// The bindings of a block and of its nested blocks, and the depth of the nested blocks.
size_t count_bindings(const Block& block);
size_t depth_of(const Block& block);

// The depth of nested blocks that a pass may produce: far below the reader's limit.
inline constexpr size_t kMaxBlockDepth = 60;

// Visits each call of a global function in a function, and each use of one as a value.
void for_each_callee(const Function& function, FunctionRef<void(Symbol)> visit);

// The functions in bottom-up order of the call graph, and the recursive ones.
struct CallOrder {
  std::vector<Symbol> order;
  std::map<Symbol, size_t> sites;  // calls and uses of a function
  std::set<Symbol> recursive;      // on a cycle of calls, or between two
};
CallOrder call_order(const Module& module);

}  // namespace tenon::compiler
