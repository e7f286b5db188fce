#include "compiler/lower/decision_tree.h"

#include <algorithm>
#include <map>

namespace tenon::compiler {
namespace {

struct MatchRow {
  std::vector<std::pair<uint32_t, const MatchPattern*>> tests;  // parts that must match patterns, by part
  std::vector<std::pair<VarId, uint32_t>> variables;
  size_t arm = 0;
};

class TreeMaker {
 public:
  TreeMaker(const Module& module, size_t max_nodes) : module_(module), max_nodes_(max_nodes) {}

  std::optional<DecisionTree> run(std::span<const Arm> arms) {
    std::vector<MatchRow> rows;
    for (size_t i = 0; i < arms.size(); ++i) {
      MatchRow row{.tests = {}, .variables = {}, .arm = i};
      add(row, 0, arms[i].pattern);
      rows.push_back(std::move(row));
    }
    make(rows);
    if (too_large_) return std::nullopt;
    return std::move(tree_);
  }

 private:
  uint32_t part(uint32_t parent, uint32_t field) {
    const auto [entry, is_new] = parts_.emplace(std::pair(parent, field), static_cast<uint32_t>(tree_.parts.size()));
    if (is_new) tree_.parts.push_back({parent, field});
    return entry->second;
  }

  // Adds what the pattern requires of the part: tests of constructors, and variables.
  void add(MatchRow& row, uint32_t at, const MatchPattern& pattern) {
    if (const auto* bind = std::get_if<BindPattern>(&pattern.form)) row.variables.emplace_back(bind->var, at);
    if (std::holds_alternative<ConstructPattern>(pattern.form)) row.tests.emplace_back(at, &pattern);
    if (const auto* tuple = std::get_if<TuplePattern>(&pattern.form)) {
      for (uint32_t i = 0; i < tuple->fields.size(); ++i) add(row, part(at, i), tuple->fields[i]);
    }
  }
  static auto find(const MatchRow& row, uint32_t at) {
    return std::ranges::find(row.tests, at, &std::pair<uint32_t, const MatchPattern*>::first);
  }

  // The node of the rows, which are in the order of their arms.
  uint32_t make(const std::vector<MatchRow>& rows) {
    const auto node = static_cast<uint32_t>(tree_.nodes.size());
    too_large_ |= node >= max_nodes_ || rows.empty();
    tree_.nodes.emplace_back();
    if (too_large_) return node;
    const MatchRow& first = rows.front();
    if (first.tests.empty()) {
      tree_.nodes[node] = DecisionTree::Leaf{first.arm, first.variables};
      return node;
    }
    // Of the parts that the first row tests, the one that most rows test.
    const auto users = [&](const auto& test) {
      return std::ranges::count_if(rows, [&](const MatchRow& row) { return find(row, test.first) != row.tests.end(); });
    };
    const auto chosen = std::ranges::max_element(first.tests, {}, users);
    const uint32_t at = chosen->first;
    const auto decl = module_.constructor(std::get<ConstructPattern>(chosen->second->form).constructor);
    DecisionTree::Test test{.part = at, .type = decl->name, .children = {}};
    for (const Constructor& constructor : decl->adt->constructors) {
      std::vector<MatchRow> specialized;
      for (const MatchRow& row : rows) {
        const auto found = find(row, at);
        MatchRow& copy = specialized.emplace_back(row);
        if (found == row.tests.end()) continue;
        const auto& pattern = std::get<ConstructPattern>(found->second->form);
        if (pattern.constructor != constructor.name) {
          specialized.pop_back();
          continue;
        }
        copy.tests.erase(copy.tests.begin() + (found - row.tests.begin()));
        for (uint32_t i = 0; i < pattern.fields.size(); ++i) add(copy, part(at, i), pattern.fields[i]);
      }
      test.children.push_back(make(specialized));
      if (too_large_) return node;
    }
    tree_.nodes[node] = std::move(test);
    return node;
  }

  const Module& module_;
  size_t max_nodes_;
  DecisionTree tree_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> parts_;
  bool too_large_ = false;
};

size_t count_tests(const MatchPattern& pattern) {
  size_t count = std::holds_alternative<ConstructPattern>(pattern.form) ? 1 : 0;
  if (const auto* construct = std::get_if<ConstructPattern>(&pattern.form)) {
    for (const MatchPattern& field : construct->fields) count += count_tests(field);
  } else if (const auto* tuple = std::get_if<TuplePattern>(&pattern.form)) {
    for (const MatchPattern& field : tuple->fields) count += count_tests(field);
  }
  return count;
}

}  // namespace

std::optional<DecisionTree> decide(const Module& module, std::span<const Arm> arms, size_t max_nodes) {
  return TreeMaker(module, max_nodes).run(arms);
}

size_t count_tests(std::span<const Arm> arms) {
  size_t count = 0;
  for (const Arm& arm : arms) count += count_tests(arm.pattern);
  return count;
}

}  // namespace tenon::compiler
