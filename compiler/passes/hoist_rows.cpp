// Products of the rows of a tensor that a loop takes one by one, as one product before the loop: the input products of
// a recurrent layer (Appleyard et al. 2016, 3.1). A product of all rows reads the weights once instead of once a step.
//
// A loop is a closure that calls itself with a counter that is one larger: gather(%x, %i), where %x is from outside of
// the closure and %i is the counter, then a dense layer or a product with a matrix from outside. A loop that ends
// before the last row computes products that it does not use; the results are equal.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

class RowHoisting {
 public:
  RowHoisting(Context& context, Module& module, Function& function)
      : context_(context), module_(module), function_(function) {}

  void run() { walk(function_.body); }

 private:
  // A product within a loop: the bindings of its block that it consists of.
  struct RowProduct {
    Block* block = nullptr;
    size_t gather = 0;
    std::optional<size_t> reshape;
    size_t product = 0;
  };

  // The innermost loops first: what leaves an inner loop may leave the outer one.
  void walk(Block& block) {
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      for_each_block(block.bindings[i].value, [&](Block& inner) { walk(inner); });
      if (!std::holds_alternative<Lambda>(block.bindings[i].value)) continue;
      std::vector<Binding> before = hoist(block.bindings[i]);
      const size_t count = before.size();
      block.bindings.insert(block.bindings.begin() + static_cast<ptrdiff_t>(i), std::make_move_iterator(before.begin()),
                            std::make_move_iterator(before.end()));
      i += count;
    }
  }

  // The bindings that precede the loop, which uses them afterwards.
  std::vector<Binding> hoist(Binding& loop) {
    std::vector<Binding> before;
    while (const std::optional<RowProduct> found = find(loop)) {
      if (!replace(*found, before)) break;
    }
    return before;
  }

  // --- What a loop is.

  std::optional<RowProduct> find(Binding& loop) {
    auto& lambda = std::get<Lambda>(loop.value);
    Block& body = lambda.body[0];
    inside_.clear(), definitions_.clear(), uses_.clear();
    inside_.insert(lambda.params.begin(), lambda.params.end());
    for_each_binding(body, [&](const Binding& binding) {
      inside_.insert(binding.var);
      definitions_.emplace(binding.var, &binding);
      if (auto* inner = std::get_if<Lambda>(&binding.value)) inside_.insert(inner->params.begin(), inner->params.end());
      if (auto* match = std::get_if<Case>(&binding.value)) {
        for (const Arm& arm : match->arms) for_each_variable(arm.pattern, [&](VarId var) { inside_.insert(var); });
      }
    });
    counters_ = counters(loop.var, lambda);
    if (counters_.empty()) return std::nullopt;
    for_each_use(body, [&](const Atom& atom) {
      if (const auto* var = std::get_if<VarId>(&atom)) ++uses_[*var];
    });
    return find(body);
  }

  // The parameters that every call of the closure in its own body passes on increased by one.
  std::vector<VarId> counters(VarId self, const Lambda& lambda) const {
    std::vector<VarId> counters;
    for (size_t i = 0; i < lambda.params.size(); ++i) {
      bool counts = true, called = false;
      for_each_binding(lambda.body[0], [&](const Binding& binding) {
        const auto* call = std::get_if<Call>(&binding.value);
        if (!call || call->callee != Atom{self}) return;
        called = true;
        counts &= call->args.size() == lambda.params.size() && is_successor(call->args[i], lambda.params[i]);
      });
      if (called && counts) counters.push_back(lambda.params[i]);
    }
    return counters;
  }
  bool is_successor(const Atom& atom, VarId param) const {
    const Apply* apply = application(atom);
    if (!apply || !apply->op->is(ops::kAdd)) return false;
    const auto is_one = [&](const Atom& other) {
      const runtime::Tensor* constant = constant_of(module_, other);
      return constant && constant->shape().empty() && constant->dtype() == runtime::DType::kI64 &&
             constant->data<int64_t>()[0] == 1;
    };
    return (apply->args[0] == Atom{param} && is_one(apply->args[1])) ||
           (apply->args[1] == Atom{param} && is_one(apply->args[0]));
  }

  const Apply* application(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    const auto found = var ? definitions_.find(*var) : definitions_.end();
    return found == definitions_.end() ? nullptr : std::get_if<Apply>(&found->second->value);
  }
  bool is_outside(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    return var ? !inside_.contains(*var) : std::holds_alternative<ConstId>(atom);
  }

  // --- The products of its rows.

  std::optional<RowProduct> find(Block& block) {
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      if (auto found = row_product(block, i)) return found;
      if (std::holds_alternative<Lambda>(block.bindings[i].value)) continue;
      std::optional<RowProduct> found;
      for_each_block(block.bindings[i].value, [&](Block& inner) {
        if (!found) found = find(inner);
      });
      if (found) return found;
    }
    return std::nullopt;
  }

  std::optional<RowProduct> row_product(Block& block, size_t position) {
    const auto* product = std::get_if<Apply>(&block.bindings[position].value);
    if (!product || !product->op->is_one_of({ops::kDense, ops::kMatmul}) || !is_outside(product->args[1]) ||
        rank_of(product->args[0]) != 2 || rank_of(product->args[1]) != 2)
      return std::nullopt;
    RowProduct found{.block = &block, .gather = 0, .reshape = {}, .product = position};
    auto row = private_operand(block, product->args[0]);
    if (row && is_application(block, *row, ops::kReshape)) {
      found.reshape = *row;
      row = private_operand(block, std::get<Apply>(block.bindings[*row].value).args[0]);
    }
    if (!row || !is_application(block, *row, ops::kGather)) return std::nullopt;
    found.gather = *row;
    const auto& gather = std::get<Apply>(block.bindings[*row].value);
    const auto* counter = std::get_if<VarId>(&gather.args[1]);
    const bool is_row = int_attr(gather.attrs, "axis") == 0 && is_outside(gather.args[0]) && counter &&
                        std::ranges::find(counters_, *counter) != counters_.end();
    return is_row ? std::optional(found) : std::nullopt;
  }
  std::optional<size_t> rank_of(const Atom& atom) const {
    const auto type = infer_atom(context_, module_, function_, atom);
    return type && type->tensor() ? std::optional(type->tensor()->dims.size()) : std::nullopt;
  }
  // The position of the operand's binding in the block, if it has no other use.
  std::optional<size_t> private_operand(const Block& block, const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    if (!var || uses_.at(*var) != 1) return std::nullopt;
    const auto found = std::ranges::find(block.bindings, *var, &Binding::var);
    if (found == block.bindings.end()) return std::nullopt;
    return static_cast<size_t>(found - block.bindings.begin());
  }
  static bool is_application(const Block& block, size_t position, OperatorId op) {
    const auto* apply = std::get_if<Apply>(&block.bindings[position].value);
    return apply && apply->op->is(op);
  }

  // --- The products of all rows.

  // Binds the value in `block`; std::nullopt where its type cannot be inferred without checks.
  std::optional<Atom> bind(std::vector<Binding>& block, Apply apply, const VarInfo& info) {
    settle_attributes(apply);
    auto type = infer_value(context_, module_, function_, apply);
    if (!type) return std::nullopt;
    const auto var = static_cast<VarId>(function_.vars.size());
    function_.vars.push_back({*type, info.name, info.span});
    block.push_back({var, std::move(apply)});
    return var;
  }
  std::optional<Atom> reshaped(std::vector<Binding>& block, const Atom& x, Dims dims, const VarInfo& info) {
    Apply reshape{&context_.op(ops::kReshape), {{"zero", int64_t{1}}}, {x}, {{"shape", std::move(dims)}}};
    return bind(block, std::move(reshape), info);
  }

  // Whether the product was moved; otherwise nothing is changed.
  bool replace(const RowProduct& found, std::vector<Binding>& before) {
    std::vector<Binding>& bindings = found.block->bindings;
    const Binding old = bindings[found.product];
    const VarInfo info = function_.info(old.var);
    const auto& product = std::get<Apply>(old.value);
    const auto gather = std::get<Apply>(bindings[found.gather].value);
    const auto x = infer_atom(context_, module_, function_, gather.args[0]);
    const auto row = infer_atom(context_, module_, function_, product.args[0]);
    const TensorType* result = info.type.tensor();
    if (!x || !row || !result) return false;
    const Dim count = x->tensor()->dims[0];
    const Dims &dims = row->tensor()->dims, &columns = result->dims;
    const size_t vars = function_.vars.size();
    std::vector<Binding> added;
    const auto moved = [&]() -> std::optional<Atom> {
      auto rows = reshaped(added, gather.args[0], {context_.multiply(count, dims[0]), dims[1]}, info);
      if (!rows) return std::nullopt;
      auto products = bind(added, {product.op, product.attrs, {*rows, product.args[1]}}, info);
      if (!products) return std::nullopt;
      return reshaped(added, *products, {count, columns[0], columns[1]}, info);
    }();
    std::vector<Binding> taken;
    std::optional<Atom> part;
    if (moved) part = bind(taken, {gather.op, gather.attrs, {*moved, gather.args[1]}}, info);
    if (!part || function_.type(std::get<VarId>(*part)) != info.type) {
      function_.vars.resize(vars);
      return false;
    }
    std::ranges::move(added, std::back_inserter(before));
    bindings[found.gather] = std::move(taken[0]);
    std::vector<size_t> removed{found.product};
    if (found.reshape) removed.push_back(*found.reshape);
    std::ranges::sort(removed, std::greater());
    for (const size_t at : removed) bindings.erase(bindings.begin() + static_cast<ptrdiff_t>(at));
    for_each_use(function_.body, [&](Atom& atom) {
      if (atom == Atom{old.var}) atom = *part;
    });
    return true;
  }

  Context& context_;
  Module& module_;
  Function& function_;
  // Of the current loop: the variables that it binds, the values of those that are bindings, the uses of variables.
  std::unordered_set<VarId> inside_;
  std::unordered_map<VarId, const Binding*> definitions_;
  std::unordered_map<VarId, uint32_t> uses_;
  std::vector<VarId> counters_;
};

}  // namespace

Expected<Module> hoist_rows(Context& context, Module module) {
  for_each_function(module, [&](Symbol, Function& function) { RowHoisting(context, module, function).run(); });
  return dead_code(context, std::move(module));
}

Pass hoist_rows_pass() {
  return {"hoist_rows", "Moves products of the rows that a loop takes one by one before the loop, as one product.",
          hoist_rows};
}

}  // namespace tenon::compiler
