// The contents of the references that a partial evaluator knows at a point of a program.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

// By the variable that a MakeReference is bound to. Each change is logged, so that an evaluation of an arm, or one that
// is abandoned, is undone in the time that it took.
class KnownReferences {
 public:
  using Checkpoint = size_t;

  const Atom* find(VarId reference) const {
    const auto found = contents_.find(reference);
    return found == contents_.end() ? nullptr : &found->second;
  }
  void set(VarId reference, Atom content) {
    log(reference);
    contents_.insert_or_assign(reference, content);
  }
  void forget(VarId reference) {
    if (!contents_.contains(reference)) return;
    log(reference);
    contents_.erase(reference);
  }
  // After a call of unknown code, which may write every reference.
  void forget_all() {
    for (const auto& [reference, content] : contents_) log_.emplace_back(reference, content);
    contents_.clear();
  }

  Checkpoint checkpoint() const { return log_.size(); }
  // Restores the contents at the checkpoint; returns the references that have changed since.
  std::vector<VarId> undo(Checkpoint checkpoint) {
    std::vector<VarId> changed;
    for (; log_.size() > checkpoint; log_.pop_back()) {
      const auto& [reference, content] = log_.back();
      if (content) contents_.insert_or_assign(reference, *content);
      else contents_.erase(reference);
      changed.push_back(reference);
    }
    return changed;
  }

 private:
  void log(VarId reference) {
    const Atom* content = find(reference);
    log_.emplace_back(reference, content ? std::optional(*content) : std::nullopt);
  }

  std::map<VarId, Atom> contents_;
  std::vector<std::pair<VarId, std::optional<Atom>>> log_;
};

}  // namespace tenon::compiler
