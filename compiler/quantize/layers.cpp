#include "compiler/quantize/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/rewrite.h"
#include "compiler/quantize/chains.h"
#include "support/suggest.h"

namespace tenon::compiler {
namespace {

class LayerFinder {
 public:
  LayerFinder(const Context& context, const Module& module, Symbol name, std::vector<Layer>& found)
      : context_(context),
        module_(module),
        name_(name),
        function_(*module.function(name)),
        uses_(use_counts(function_)),
        feeds_(feeding_integers(function_, [&](const Binding& b) { return is_integer_product(function_, b); })),
        found_(found) {}

  void run() { visit(function_.body); }

 private:
  void visit(const Block& block) {
    const Chains chains = find_chains(module_, function_, block, uses_, feeds_);
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      const Binding& binding = block.bindings[i];
      if (chains.at_root[i]) add_chain(block, *chains.at_root[i]);
      else if (!chains.inner[i]) add_single(binding);
      for_each_block(binding.value, [&](const Block& inner) { visit(inner); });
    }
  }

  void add_chain(const Block& block, const Chain& chain) {
    Layer layer;
    layer.function = name_;
    layer.root = block.bindings[chain.members.back()].var;
    layer.operands.push_back(std::get<VarId>(chain.anchor->args[0]));
    if (chain.residual) layer.operands.push_back(*chain.residual);
    for (const size_t member : chain.members) layer.members.push_back(block.bindings[member].var);
    finish(std::move(layer));
  }

  void add_single(const Binding& binding) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (!apply || (!apply->op->is_one_of({ops::kAdd, ops::kGlobalAvgPool, ops::kConcat}) &&
                   !is_integer_product(function_, binding)))
      return;
    if (apply->op->is(ops::kAdd) && !feeds_[index(binding.var)]) return;
    Layer layer{.function = name_, .root = binding.var, .operands = {}, .members = {binding.var}, .name = {}};
    for (const Atom& arg : apply->args) {
      if (const auto* var = std::get_if<VarId>(&arg)) layer.operands.push_back(*var);
    }
    finish(std::move(layer));
  }

  void finish(Layer layer) {
    const VarInfo& first = function_.info(layer.members.front());
    layer.name = module_.span(first.span).node;
    if (layer.name.empty()) layer.name = context_.name(function_.info(layer.root).name);
    found_.push_back(std::move(layer));
  }

  const Context& context_;
  const Module& module_;
  Symbol name_;
  const Function& function_;
  std::vector<uint32_t> uses_;
  std::vector<bool> feeds_;  // feeding_integers()
  std::vector<Layer>& found_;
};

}  // namespace

std::vector<Layer> find_layers(const Context& context, const Module& module, Symbol entry) {
  std::vector<Layer> found;
  for (const Symbol name : reachable_globals(module, entry)) {
    if (module.function(name)) LayerFinder(context, module, name, found).run();
  }
  return found;
}

Expected<LayerSet> layers_named(const Context& context, const Module& module, Symbol entry,
                                std::span<const std::string> names) {
  LayerSet result;
  if (names.empty()) return result;
  const std::vector<Layer> layers = find_layers(context, module, entry);
  const auto has_name = [&](const VarInfo& info, std::string_view name) {
    return module.span(info.span).node == name || context.name(info.name) == name;
  };
  for (const std::string& name : names) {
    bool known = false;
    std::vector<std::string_view> candidates;
    for (const Symbol global : reachable_globals(module, entry)) {
      const Function* function = module.function(global);
      if (!function) continue;
      for (const VarInfo& info : function->vars) {
        known |= !name.empty() && has_name(info, name);
        candidates.push_back(module.span(info.span).node);
        candidates.push_back(context.name(info.name));
      }
    }
    if (!known) {
      const std::string similar = suggest(name, candidates);
      return error(fmt::format("no operator has the name '{}'", name), {},
                   similar.empty() ? "tenon compile --explain lists the model's nodes" : similar, Fault::kUsage);
    }
    for (const Layer& layer : layers) {
      const Function& function = *module.function(layer.function);
      const bool named =
          std::ranges::any_of(layer.members, [&](VarId var) { return has_name(function.info(var), name); });
      if (named) result.emplace(layer.function, layer.root);
    }
  }
  return result;
}

}  // namespace tenon::compiler
