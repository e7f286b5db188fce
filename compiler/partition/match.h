// The matches of a pattern (pattern.h) in a block.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/partition/pattern.h"
#include "support/diagnostic.h"
#include "support/function_ref.h"

namespace tenon::compiler {

// The def-use information of one block of a function: the binding that defines each variable, its uses in the block and
// in those inside it, and the last of them.
class DataFlow {
 public:
  DataFlow(const Context& context, const Module& module, const Function& function, const Block& block);
  const Context& context() const { return *context_; }
  const Module& module() const { return *module_; }
  const Function& function() const { return *function_; }
  const Block& block() const { return *block_; }
  // The index of the binding of this block that defines the variable; nullopt for variables of other blocks.
  std::optional<size_t> producer(VarId var) const;
  uint32_t uses(VarId var) const { return uses_[index(var)]; }
  // The last binding of this block that uses the variable, itself or in an inner block; the number of bindings where
  // the variable is the block's result; 0 where it has no use.
  size_t last_use(VarId var) const { return last_uses_[index(var)]; }

 private:
  const Context* context_;
  const Module* module_;
  const Function* function_;
  const Block* block_;
  std::vector<size_t> producers_;
  std::vector<uint32_t> uses_;
  std::vector<size_t> last_uses_;
};

struct Match {
  std::vector<size_t> bindings;          // ascending; the root is the last
  std::map<std::string, Atom> captures;  // by name; the value of a callee's name is one of the callee
  const Apply& apply(const Function& function, OperatorId op) const;  // the first of that operator (asserted)
  const Apply* find(const Function& function, OperatorId op) const;   // nullptr where the match has none
};

// Where an attempt to match went furthest: what the pattern requires there, and what it found.
struct MatchFailure {
  std::vector<size_t> bindings;  // that matched until then; the root is the first
  std::string at;                // "operand 2 of conv2d, in operand 1 of requantize"; empty: the root
  std::string required, found;   // "const", "%w: Tensor[(4, 4, 1, 1), i8]"
  std::string str() const;       // "requires REQUIRED as AT, found FOUND"
};

struct MatchResult {
  std::optional<Match> match;
  // The deepest failure among the attempts before; nullopt where no binding matched.
  std::optional<MatchFailure> failure;
};

// The steps that the matches at one root may take: a pattern with many alternatives can have exponentially many.
inline constexpr int kMaxMatchSteps = 100'000;

// The first match of `pattern` with its root at binding `root`, over bindings that are not yet `taken`, that is
// accepted. A match that is refused, as one with a user outside, is followed by the next one: by other alternatives,
// orders of operands, starts of paths. `taken` is empty or has an entry for each binding. An error after
// kMaxMatchSteps.
Expected<MatchResult> match(const GraphPattern& pattern, const DataFlow& flow, size_t root,
                            const std::vector<bool>& taken, FunctionRef<bool(const Match&)> accept);
Expected<MatchResult> match(const GraphPattern& pattern, const DataFlow& flow, size_t root,
                            const std::vector<bool>& taken = {});

}  // namespace tenon::compiler
