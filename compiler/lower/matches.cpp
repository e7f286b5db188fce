// `match` as a decision tree, or one arm after another where the tree would be too large.
#include "compiler/lower/function.h"
#include "support/try.h"

namespace tenon::compiler {

Status FunctionLowering::match(const Case& match, const Destination& to) {
  const Label end = label();
  constexpr size_t kNodesPerTest = 8;
  const auto tree = decide(program_.module, match.arms, kNodesPerTest * count_tests(match.arms) + 8);
  if (tree) {
    TENON_TRY(match_by_tree(*tree, match, to, end));
  } else {
    TENON_TRY_ASSIGN(subject, locate(match.subject));
    TENON_TRY(match_by_rows(match, *subject, to, end));
  }
  bind(end);
  return {};
}

Status FunctionLowering::match_by_tree(const DecisionTree& tree, const Case& match, const Destination& to, Label end) {
  struct ArmCode {
    size_t leaves = 0;
    std::optional<Label> label;  // of an arm with several leaves
  };
  std::vector<ArmCode> arms(match.arms.size());
  for (const auto& node : tree.nodes) {
    if (const auto* leaf = std::get_if<DecisionTree::Leaf>(&node)) ++arms[leaf->arm].leaves;
  }
  TENON_TRY_ASSIGN(subject, locate(match.subject));
  std::vector<std::optional<Location>> parts(tree.parts.size());
  parts[0] = *subject;
  // Parts that are read on the way to a node are known below it.
  std::vector<uint32_t> read;
  const auto part = [&](auto& self, uint32_t index) -> Location {
    if (!parts[index]) {
      parts[index] = field(self(self, tree.parts[index].parent), tree.parts[index].field);
      read.push_back(index);
    }
    return *parts[index];
  };
  struct Open {
    uint32_t node;
    std::optional<Label> label;
    size_t known;  // entries of `read` that hold here
  };
  const auto emit_leaf = [&](const DecisionTree::Leaf& leaf) -> Status {
    ArmCode& arm = arms[leaf.arm];
    if (arm.leaves == 1) {
      for (const auto& [var, index] : leaf.variables) define(var, part(part, index));
      TENON_TRY(block(match.arms[leaf.arm].block, to));
      if (!to.returns) jump(end);
      return {};
    }
    const bool is_new = !arm.label;
    if (is_new) arm.label = label();
    // The pattern binds its variables in one order, so the leaves of an arm agree on them.
    for (const auto& [var, index] : leaf.variables) {
      const Location from = part(part, index);
      if (is_new) define(var, {fresh()});
      emit(runtime::Move{locations_.at(var).reg, word(from)});
    }
    jump(*arm.label);
    return {};
  };
  std::vector<Open> open{{0, std::nullopt, 0}};
  while (!open.empty()) {
    const Open next = open.back();
    open.pop_back();
    while (read.size() > next.known) {
      parts[read.back()].reset();
      read.pop_back();
    }
    if (next.label) bind(*next.label);
    if (const auto* leaf = std::get_if<DecisionTree::Leaf>(&tree.nodes[next.node])) {
      TENON_TRY(emit_leaf(*leaf));
      continue;
    }
    const auto& test = std::get<DecisionTree::Test>(tree.nodes[next.node]);
    const Register value = word(part(part, test.part));
    if (test.children.size() == 1) {
      open.push_back({test.children[0], std::nullopt, read.size()});
      continue;
    }
    runtime::Switch select{value, program_.type(test.type), {}};
    for (size_t i = 0; i < test.children.size(); ++i) select.targets.push_back(label());
    for (size_t i = test.children.size(); i-- > 0;) open.push_back({test.children[i], select.targets[i], read.size()});
    emit(std::move(select));
  }
  for (size_t i = 0; i < arms.size(); ++i) {
    if (!arms[i].label) continue;
    bind(*arms[i].label);
    TENON_TRY(block(match.arms[i].block, to));
    if (!to.returns) jump(end);
  }
  return {};
}

// One arm after another, each of which tests its own pattern: the code is as long as the patterns.
Status FunctionLowering::match_by_rows(const Case& match, const Location& subject, const Destination& to, Label end) {
  for (const Arm& arm : match.arms) {
    const Label otherwise = label();
    TENON_TRY(test(arm.pattern, subject, otherwise));
    TENON_TRY(block(arm.block, to));
    if (!to.returns) jump(end);
    bind(otherwise);
  }
  // The arms match every value, which the last one proves by an error.
  const Register value = word(subject);
  emit(runtime::ReadField{fresh(), value, UINT32_MAX});
  emit(runtime::Jump{label()});
  bind(static_cast<Label>(labels_.size() - 1));
  labels_.back() = static_cast<uint32_t>(code_.code.size() - 1);
  return {};
}

Status FunctionLowering::test(const MatchPattern& pattern, const Location& value, Label otherwise) {
  if (const auto* bind = std::get_if<BindPattern>(&pattern.form)) {
    define(bind->var, value);
  } else if (const auto* tuple = std::get_if<TuplePattern>(&pattern.form)) {
    for (uint32_t i = 0; i < tuple->fields.size(); ++i) TENON_TRY(test(tuple->fields[i], field(value, i), otherwise));
  } else if (const auto* construct = std::get_if<ConstructPattern>(&pattern.form)) {
    const auto decl = program_.module.constructor(construct->constructor);
    const Label matches = label();
    runtime::Switch select{word(value), program_.type(decl->name), {}};
    for (size_t i = 0; i < decl->adt->constructors.size(); ++i)
      select.targets.push_back(i == decl->index ? matches : otherwise);
    emit(std::move(select));
    this->bind(matches);
    for (uint32_t i = 0; i < construct->fields.size(); ++i)
      TENON_TRY(test(construct->fields[i], field(value, i), otherwise));
  }
  return {};
}

}  // namespace tenon::compiler
