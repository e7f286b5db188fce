// The interpreter's form of a function: its blocks, with a slot for each variable of a frame, last uses and tail calls.
#pragma once

#include <memory>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct Code;
struct CodeStep;
struct CodeBlock {
  const Block* block = nullptr;
  std::vector<CodeStep> steps;
};
struct CodeStep {
  const Binding* binding = nullptr;
  std::vector<uint32_t> last_uses;         // slots that nothing reads after this step
  std::vector<CodeBlock> blocks;           // of an If or a Case
  std::unique_ptr<Code> lambda;            // of a Lambda
  std::vector<std::pair<Dim, Dim>> sizes;  // of a call: sizes in the callee's types and in the arguments' types
  bool tail = false;                       // its value is the frame's result
};

// A global function or a lambda. A frame has a slot for each parameter, captured variable and binding.
struct Code {
  const Function* function = nullptr;
  std::vector<uint32_t> slot;  // by variable; meaningless for those that the frame does not have
  uint32_t slots = 0;
  std::vector<VarId> params;
  std::vector<VarId> captures;  // in the order of a closure's fields
  std::optional<VarId> self;    // the variable that a lambda is bound to, where its body uses it
  CodeBlock body;
};

// Pairs each size of `wanted` that has variables with the size at its position in `found`: of a parameter's type and of
// its argument's.
void pair_dims(Type wanted, Type found, std::vector<std::pair<Dim, Dim>>& pairs);

std::unique_ptr<Code> make_code(const Module& module, const Function& function);

}  // namespace tenon::compiler
