// Decision trees of pattern matches (Maranget, "Compiling pattern matching to good decision trees", ML 2008): each path
// tests a value at most once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// A part of the subject: field `field` of part `parent`. Part 0 is the subject itself.
struct MatchPart {
  uint32_t parent = 0, field = 0;
};
struct DecisionTree {
  struct Leaf {
    size_t arm = 0;
    std::vector<std::pair<VarId, uint32_t>> variables;  // of the arm's pattern, and their parts
  };
  struct Test {
    uint32_t part = 0;
    Symbol type{};
    std::vector<uint32_t> children;  // by constructor: nodes
  };
  std::vector<MatchPart> parts{{}};
  std::vector<std::variant<Leaf, Test>> nodes;  // node 0 is the root
};

// The tree of the arms, which together match every value; nothing if it would have more than `max_nodes` nodes, as
// trees of overlapping patterns may be exponential.
std::optional<DecisionTree> decide(const Module& module, std::span<const Arm> arms, size_t max_nodes);

// The number of constructors in the arms' patterns.
size_t count_tests(std::span<const Arm> arms);

}  // namespace tenon::compiler
