#include "compiler/passes/growth.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "compiler/ir/operator.h"

namespace tenon::compiler {
namespace {

// Walks blocks from their results up, so that it knows at each binding which variables are used later.
class Growth {
 public:
  Growth(const Function& function, bool is_entry)
      : function_(function),
        later_(function.vars.size()),
        computed_(later_.size()),
        growing_(later_.size()),
        of_caller_(is_entry) {}

  std::vector<bool> run() {
    for_each_binding(function_.body, [&](const Binding& binding) {
      computed_[index(binding.var)] = std::holds_alternative<Apply>(binding.value);
    });
    walk(function_.body);
    return std::move(growing_);
  }

 private:
  void walk(const Block& block) {
    use(block.result);
    for (size_t i = block.bindings.size(); i-- > 0;) {
      const Binding& binding = block.bindings[i];
      // The arms exclude each other: the uses in one of them are no later ones for the next.
      std::vector<VarId> used;
      const bool outside = std::exchange(of_caller_, of_caller_ && !std::holds_alternative<Lambda>(binding.value));
      for_each_block(binding.value, [&](const Block& inner) {
        const size_t before = uses_.size();
        walk(inner);
        for (; uses_.size() > before; uses_.pop_back()) {
          --later_[index(uses_.back())];
          used.push_back(uses_.back());
        }
      });
      of_caller_ = outside;
      for (const VarId var : used) use(var);
      growing_[index(binding.var)] = grows(binding);
      for_each_operand(binding.value, [&](const Atom& atom) { use(atom); });
    }
  }
  void use(const Atom& atom) {
    const auto* var = std::get_if<VarId>(&atom);
    if (!var) return;
    ++later_[index(*var)];
    uses_.push_back(*var);
  }

  bool grows(const Binding& binding) const {
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (of_caller_ || !apply || !apply->op->is(ops::kConcat) || apply->args.size() != 2) return false;
    const auto* first = std::get_if<VarId>(&apply->args[0]);
    if (!first || apply->args[0] == apply->args[1] || later_[index(*first)] != 0 || computed_[index(*first)])
      return false;
    const TensorType* type = function_.type(*first).tensor();
    const int64_t axis = int_attr(apply->attrs, "axis"), rank = static_cast<int64_t>(type->dims.size());
    const auto outer = std::span(type->dims).first(static_cast<size_t>(axis < 0 ? axis + rank : axis));
    return std::ranges::all_of(outer, [](Dim dim) { return dim.constant() == 1; });
  }

  const Function& function_;
  std::vector<uint32_t> later_;  // by variable: its uses behind the current binding
  std::vector<VarId> uses_;      // all of these
  std::vector<bool> computed_;   // by variable: by an operator of this function
  std::vector<bool> growing_;
  bool of_caller_;  // whether the parameters of the current block are those of an entry
};

}  // namespace

std::vector<bool> growing_concats(const Function& function, bool is_entry) { return Growth(function, is_entry).run(); }

}  // namespace tenon::compiler
