#include "compiler/quantize/chains.h"

#include <algorithm>

#include "compiler/ir/operator.h"
#include "compiler/ir/rewrite.h"

namespace tenon::compiler {
namespace {

class ChainFinder {
 public:
  ChainFinder(const Module& module, const Function& function, const Block& block, const std::vector<uint32_t>& uses,
              const std::vector<bool>& feeds)
      : module_(module),
        function_(function),
        block_(block),
        uses_(uses),
        feeds_(feeds),
        user_(function.vars.size(), SIZE_MAX) {
    const auto& bindings = block.bindings;
    chains_.at_root.resize(bindings.size());
    chains_.inner.resize(bindings.size());
    claimed_.resize(bindings.size());
    for (size_t i = 0; i < bindings.size(); ++i) {
      for_each_operand(bindings[i].value, [&](const Atom& atom) {
        if (const auto* var = std::get_if<VarId>(&atom)) user_[index(*var)] = i;
      });
    }
  }

  // Later anchors first: of two convolutions that feed one addition the later one claims the addition, so that the
  // result of the other one is available as the residual.
  Chains run() && {
    for (size_t i = block_.bindings.size(); i-- > 0;) try_anchor(i);
    return std::move(chains_);
  }

 private:
  const Apply* apply_at(size_t binding) const { return std::get_if<Apply>(&block_.bindings[binding].value); }

  // The only user of the binding's value, if it is an application that no chain has claimed.
  std::optional<size_t> next(size_t binding) const {
    const VarId var = block_.bindings[binding].var;
    if (uses_[index(var)] != 1 || user_[index(var)] == SIZE_MAX) return std::nullopt;
    const size_t user = user_[index(var)];
    return apply_at(user) && !claimed_[user] ? std::optional(user) : std::nullopt;
  }

  void try_anchor(size_t anchor) {
    const Apply* apply = apply_at(anchor);
    if (!apply || (!apply->op->is(ops::kConv2d) && !apply->op->is(ops::kDense))) return;
    const auto* weights = std::get_if<ConstId>(&apply->args[1]);
    if (!weights || module_.constant(*weights).dtype() != runtime::DType::kF32 ||
        !std::holds_alternative<VarId>(apply->args[0]))
      return;
    Chain chain{.anchor = apply,
                .span = function_.info(block_.bindings[anchor].var).span,
                .weights = *weights,
                .bias = {},
                .before = {},
                .residual = {},
                .after = {},
                .members = {}};
    std::vector<size_t> members{anchor};
    const auto op_is = [&](std::optional<size_t> binding, OperatorId op) {
      return binding && apply_at(*binding)->op->is(op);
    };

    auto user = next(anchor);
    if (op_is(user, ops::kBiasAdd) && int_attr(apply_at(*user)->attrs, "axis") == 1 &&
        std::holds_alternative<ConstId>(apply_at(*user)->args[1])) {
      chain.bias = std::get<ConstId>(apply_at(*user)->args[1]);
      members.push_back(*user);
      user = next(*user);
    }
    Clamp clamp;
    if (op_is(user, ops::kRelu) || op_is(user, ops::kClip)) {
      clamp = clamp_of(*apply_at(*user));
      members.push_back(*user);
      user = next(*user);
    }
    if (op_is(user, ops::kAdd) && set_residual_operand(*user, members.back(), chain)) {
      chain.before = clamp;
      clamp = {};
      members.push_back(*user);
      user = next(*user);
      if (op_is(user, ops::kRelu) || op_is(user, ops::kClip)) {
        clamp = clamp_of(*apply_at(*user));
        members.push_back(*user);
      }
    }
    chain.after = clamp;
    for (const size_t member : members) chains_.inner[member] = claimed_[member] = true;
    const size_t root = members.back();
    chain.members = std::move(members);
    chains_.inner[root] = false;
    chains_.at_root[root] = std::move(chain);
  }

  // An addition of two variables of one type.
  bool set_residual_operand(size_t add, size_t last, Chain& chain) const {
    const Apply& apply = *apply_at(add);
    if (!feeds_[index(block_.bindings[add].var)]) return false;
    const VarId chain_value = block_.bindings[last].var;
    const size_t other = apply.args[0] == Atom(chain_value) ? 1 : 0;
    const auto* residual = std::get_if<VarId>(&apply.args[other]);
    if (!residual || *residual == chain_value || function_.type(*residual) != function_.type(chain_value)) return false;
    chain.residual = *residual;
    return true;
  }

  const Module& module_;
  const Function& function_;
  const Block& block_;
  const std::vector<uint32_t>& uses_;
  const std::vector<bool>& feeds_;  // feeding_integers()
  std::vector<size_t> user_;        // by variable: its last user in the block
  std::vector<bool> claimed_;
  Chains chains_;
};

// Collects the operands of a block's bindings, from the last to the first.
void visit_operands(const Block& block, FunctionRef<bool(const Binding&)> is_integer, std::vector<bool>& feeds) {
  for (auto binding = block.bindings.rbegin(); binding != block.bindings.rend(); ++binding) {
    for_each_block(binding->value, [&](const Block& inner) { visit_operands(inner, is_integer, feeds); });
    const auto* apply = std::get_if<Apply>(&binding->value);
    const bool passes = apply && (keeps_scale(*apply) || apply->op->is_one_of({ops::kAdd, ops::kClip, ops::kConcat,
                                                                               ops::kGlobalAvgPool, ops::kRelu}));
    // Values that calls or data structures take are no reason to change how they are computed.
    const bool reads = !apply || apply->op->is_one_of({ops::kConv2d, ops::kDense}) ||
                       (is_product_of_values(*apply) && is_integer(*binding)) || (passes && feeds[index(binding->var)]);
    if (!reads) continue;
    for_each_operand(binding->value, [&](const Atom& atom) {
      if (const auto* var = std::get_if<VarId>(&atom)) feeds[index(*var)] = true;
    });
  }
}

void visit_products(const Block& block, FunctionRef<bool(const Binding&)> is_integer, std::vector<bool>& found) {
  for (auto binding = block.bindings.rbegin(); binding != block.bindings.rend(); ++binding) {
    for_each_block(binding->value, [&](const Block& inner) { visit_products(inner, is_integer, found); });
    const auto* apply = std::get_if<Apply>(&binding->value);
    if (!apply) continue;
    const bool product = is_product_of_values(*apply) && is_integer(*binding);
    const bool passes = keeps_scale(*apply) || apply->op->is_one_of({ops::kClip, ops::kRelu});
    if (!product && !(passes && found[index(binding->var)])) continue;
    for (const Atom& arg : apply->args) {
      if (const auto* var = std::get_if<VarId>(&arg)) found[index(*var)] = true;
    }
  }
}

}  // namespace

bool is_product_of_values(const Apply& apply) {
  return apply.op->is(ops::kMatmul) &&
         std::ranges::all_of(apply.args, [](const Atom& arg) { return std::holds_alternative<VarId>(arg); });
}

std::optional<size_t> product_axis(const Dims& left, const Dims& result, const DimBounds& bounds) {
  const auto terms = range(left.back(), bounds).hi;
  if (!terms || *terms > kMostTerms || result.size() < 2) return std::nullopt;
  if (result[1].constant()) return 1;
  for (size_t axis = result.size(); axis-- > 0;) {
    if (result[axis].constant()) return axis;
  }
  return std::nullopt;
}

bool is_integer_product(const Function& function, const Binding& binding) {
  const auto* apply = std::get_if<Apply>(&binding.value);
  if (!apply || !is_product_of_values(*apply)) return false;
  const TensorType* left = function.type(std::get<VarId>(apply->args[0])).tensor();
  const TensorType* result = function.type(binding.var).tensor();
  return left && result && product_axis(left->dims, result->dims, function.bounds);
}

std::vector<bool> without_zero_point(const Function& function, FunctionRef<bool(const Binding&)> is_integer) {
  std::vector<bool> found(function.vars.size());
  visit_products(function.body, is_integer, found);
  return found;
}

bool keeps_scale(const Apply& apply) {
  return apply.args.size() == 1 && apply.op->has({Elements::kSame, Elements::kMoved, Elements::kSelected}) &&
         std::ranges::all_of(apply.computed,
                             [](const auto& attr) { return std::holds_alternative<Dims>(attr.second); });
}

std::vector<bool> feeding_integers(const Function& function, FunctionRef<bool(const Binding&)> is_integer) {
  std::vector<bool> feeds(function.vars.size());
  const auto visit_result = [&](const Block& block) {
    if (const auto* var = std::get_if<VarId>(&block.result)) feeds[index(*var)] = true;
  };
  visit_result(function.body);
  for_each_binding(function.body, [&](const Binding& binding) { for_each_block(binding.value, visit_result); });
  visit_operands(function.body, is_integer, feeds);
  return feeds;
}

Clamp clamp_of(const Apply& apply) {
  if (apply.op->is(ops::kRelu)) return {.lo = 0, .hi = std::numeric_limits<double>::infinity()};
  return {.lo = float_attr(apply.attrs, "min"), .hi = float_attr(apply.attrs, "max")};
}

Chains find_chains(const Module& module, const Function& function, const Block& block,
                   const std::vector<uint32_t>& uses, const std::vector<bool>& feeds) {
  return ChainFinder(module, function, block, uses, feeds).run();
}

}  // namespace tenon::compiler
