#include "compiler/quantize/chains.h"

#include <algorithm>

#include "compiler/ir/operator.h"
#include "compiler/ir/rewrite.h"

namespace tenon::compiler {
namespace {

class ChainFinder {
 public:
  ChainFinder(const Module& module, const Function& function)
      : module_(module), function_(function), uses_(use_counts(function)), user_(function.vars.size(), SIZE_MAX) {
    const auto& bindings = function.body.bindings;
    chains_.at_root.resize(bindings.size());
    chains_.inner.resize(bindings.size());
    taken_.resize(bindings.size());
    for (size_t i = 0; i < bindings.size(); ++i) {
      for_each_operand(bindings[i].value, [&](const Atom& atom) {
        if (const auto* var = std::get_if<VarId>(&atom)) user_[index(*var)] = i;
      });
    }
  }

  // Later anchors first: of two convolutions that feed one addition the later one takes it, so that the other's result
  // is there as the residual when the sum is made.
  Chains run() && {
    for (size_t i = function_.body.bindings.size(); i-- > 0;) try_anchor(i);
    return std::move(chains_);
  }

 private:
  const Apply* apply_at(size_t binding) const { return std::get_if<Apply>(&function_.body.bindings[binding].value); }

  // The only user of the binding's value, if it is an untaken application.
  std::optional<size_t> next(size_t binding) const {
    const VarId var = function_.body.bindings[binding].var;
    if (uses_[index(var)] != 1 || user_[index(var)] == SIZE_MAX) return std::nullopt;
    const size_t user = user_[index(var)];
    return apply_at(user) && !taken_[user] ? std::optional(user) : std::nullopt;
  }

  void try_anchor(size_t anchor) {
    const Apply* apply = apply_at(anchor);
    if (!apply || (apply->op->name != "conv2d" && apply->op->name != "dense")) return;
    const auto* weights = std::get_if<ConstId>(&apply->args[1]);
    if (!weights || module_.constant(*weights).dtype() != runtime::DType::kF32 ||
        !std::holds_alternative<VarId>(apply->args[0]))
      return;
    Chain chain{.anchor = apply,
                .span = function_.info(function_.body.bindings[anchor].var).span,
                .weights = *weights,
                .bias = {},
                .before = {},
                .residual = {},
                .after = {}};
    std::vector<size_t> members{anchor};
    const auto op_is = [&](std::optional<size_t> binding, std::string_view name) {
      return binding && apply_at(*binding)->op->name == name;
    };

    auto user = next(anchor);
    if (op_is(user, "bias_add") && int_attr(apply_at(*user)->attrs, "axis") == 1 &&
        std::holds_alternative<ConstId>(apply_at(*user)->args[1])) {
      chain.bias = std::get<ConstId>(apply_at(*user)->args[1]);
      members.push_back(*user);
      user = next(*user);
    }
    Rectifier rectifier;
    if (op_is(user, "relu") || op_is(user, "clip")) {
      rectifier = rectifier_of(*apply_at(*user));
      members.push_back(*user);
      user = next(*user);
    }
    if (op_is(user, "add") && take_residual(*user, members.back(), chain)) {
      chain.before = rectifier;
      rectifier = {};
      members.push_back(*user);
      user = next(*user);
      if (op_is(user, "relu") || op_is(user, "clip")) {
        rectifier = rectifier_of(*apply_at(*user));
        members.push_back(*user);
      }
    }
    chain.after = rectifier;
    for (const size_t member : members) chains_.inner[member] = taken_[member] = true;
    chains_.inner[members.back()] = false;
    chains_.at_root[members.back()] = chain;
  }

  // An addition of two variables of one type.
  bool take_residual(size_t add, size_t last, Chain& chain) const {
    const Apply& apply = *apply_at(add);
    const VarId mine = function_.body.bindings[last].var;
    const size_t other = apply.args[0] == Atom(mine) ? 1 : 0;
    const auto* residual = std::get_if<VarId>(&apply.args[other]);
    if (!residual || *residual == mine || function_.type(*residual) != function_.type(mine)) return false;
    chain.residual = *residual;
    return true;
  }

  const Module& module_;
  const Function& function_;
  std::vector<uint32_t> uses_;
  std::vector<size_t> user_;  // by variable: its last user
  std::vector<bool> taken_;
  Chains chains_;
};

}  // namespace

Rectifier rectifier_of(const Apply& apply) {
  if (apply.op->name == "relu") return {.lo = 0, .hi = std::numeric_limits<double>::infinity()};
  return {.lo = float_attr(apply.attrs, "min"), .hi = float_attr(apply.attrs, "max")};
}

Chains find_chains(const Module& module, const Function& function) { return ChainFinder(module, function).run(); }

}  // namespace tenon::compiler
