// The matches of targets' patterns in one block, each as a function.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/partition/function_key.h"
#include "compiler/partition/outline.h"
#include "compiler/partition/target.h"

namespace tenon::compiler {

struct Composite {
  const Target* target = nullptr;
  const TargetPattern* row = nullptr;
  std::vector<size_t> bindings;  // of the block, ascending; the root is the last
  Outlined outlined;             // of the value of the root
  Symbol name{};                 // of the function in the module
};

struct Composites {
  std::vector<Composite> found;      // ascending by root; no two share a binding
  std::vector<std::string> reasons;  // by binding: why no target supports it; empty where a target does
};

// The targets that nodes of the model are pinned to, "cpu" for none.
using Pins = std::map<std::string, std::string>;

// The block is one of the function's. The targets outlive the result. An error where a row's pattern takes too many
// steps (match.h).
Expected<Composites> find_composites(Context& context, Module& module, const Function& function, const Block& block,
                                     std::span<const Target> targets, TargetAnswers& answers, const Pins& pins = {});

// The pin of the node that the binding comes from, or nullptr.
const Pins::value_type* pin_of(const Module& module, const Function& function, const Binding& binding,
                               const Pins& pins);

}  // namespace tenon::compiler
