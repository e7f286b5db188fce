#include "compiler/partition/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/groups.h"
#include "compiler/ir/rewrite.h"
#include "compiler/partition/assign_targets.h"
#include "compiler/partition/composites.h"
#include "compiler/partition/preassigned.h"
#include "support/suggest.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

class Partitioner {
 public:
  Partitioner(Context& context, Module& module, Symbol entry, std::span<const Target> targets,
              const PartitionOptions& options)
      : context_(context), module_(module), entry_(entry), targets_(targets), options_(options) {}

  Expected<std::vector<Placement>> run() {
    if (!module_.function(entry_)) {
      return error(fmt::format("the module has no function @{}", context_.name(entry_)), {}, {}, Fault::kInternal);
    }
    TENON_TRY(check_preassigned(context_, module_, targets_));
    Effects effects(context_, module_);
    effects_ = &effects;
    std::vector<Placement> placements;
    for (const Symbol name : reachable_globals(module_, entry_)) {
      const Function* function = module_.function(name);
      if (!function || !function->target.empty() || !function->composite.empty()) continue;
      function_ = *function;
      TENON_TRY(partition_block(function_.body, placements));
      TENON_TRY_ASSIGN(renumbered,
                       rewrite(context_, module_, function_, [](Builder&, Binding&) { return std::nullopt; }));
      *module_.function(name) = std::move(*renumbered);
    }
    TENON_TRY(check_pins(placements));
    if (options_.summary) *options_.summary = costs_;
    return placements;
  }

 private:
  // Each pin names a node of the model and a target.
  Status check_pins(std::span<const Placement> placements) const {
    for (const auto& [node, target] : options_.pins) {
      std::vector<std::string_view> names{"cpu"};
      for (const Target& each : targets_) names.push_back(each.name);
      if (std::ranges::find(names, target) == names.end()) {
        return error(
            fmt::format("{} is pinned to {}, which is not among the targets {}", node, target, fmt::join(names, ", ")),
            {}, "--targets names the targets of this compilation", Fault::kUsage);
      }
      TENON_TRY(check_pin(node, target, placements));
    }
    return {};
  }

  // What the node sums up must be on the target, and something of it at least: what changes types and shapes around its
  // layer may be at the host.
  Status check_pin(const std::string& node, const std::string& target, std::span<const Placement> placements) const {
    const auto sums_up = [&](const Placement& placement) {
      const Operator* op = context_.find_operator(placement.op);
      return !op || op->pattern >= OpPattern::kReduction;
    };
    const auto where = [](const Placement& placement) {
      return placement.target.empty() ? std::string_view("cpu") : std::string_view(placement.target);
    };
    std::vector<std::string_view> nodes;
    const Placement* refused = nullptr;  // the first one that sums up, else the first one
    bool found = false, is_there = false;
    for (const Placement& placement : placements) {
      const std::string& name = module_.span(placement.span).node;
      nodes.push_back(name);
      if (name != node) continue;
      found = true;
      if (where(placement) == target) is_there = true;
      else if (!refused || (sums_up(placement) && !sums_up(*refused))) refused = &placement;
    }
    if (!found) return error(fmt::format("there is no node '{}' to pin to {}", node, target), {}, suggest(node, nodes));
    if (!refused || (is_there && !sums_up(*refused))) return {};
    return error(fmt::format("{} is pinned to {}, which does not support its {}: {}", node, target, refused->op,
                             refused->reason.empty() ? fmt::format("it is on {}", where(*refused)) : refused->reason));
  }

  // A binding with inner blocks is one opaque node in its own block.
  Status partition_block(Block& block, std::vector<Placement>& placements) {
    std::vector<std::vector<Placement>> inner(block.bindings.size());
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      Status status;
      for_each_block(block.bindings[i].value, [&](Block& arm) {
        if (status) status = partition_block(arm, inner[i]);
      });
      TENON_TRY(status);
    }
    TENON_TRY_ASSIGN(assigned, assign(block));
    Composites& composites = assigned->composites;
    make_functions(block, composites);
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      if (auto placement = placement_of(block, composites, i)) {
        if (!assigned->prices.empty()) placement->prices = std::move(assigned->prices[i]);
        placements.push_back(std::move(*placement));
      }
      std::ranges::move(inner[i], std::back_inserter(placements));
    }
    replace_composites(block, composites);
    return replace_regions(block);
  }

  // By the first match, or by cost.
  Expected<AssignedBlock> assign(const Block& block) {
    if (!options_.costs) {
      TENON_TRY_ASSIGN(composites,
                       find_composites(context_, module_, function_, block, targets_, answers_, options_.pins));
      return AssignedBlock{.composites = *std::move(composites), .prices = {}};
    }
    const Dependencies graph = dependencies([&](const Value& value) { return effects_->of(function_, value); }, block);
    const auto is_valid = [&](Composites& composites, Composite& composite) {
      if (!make_function(block, composites, composite)) return false;
      composite.outlined.function = std::move(*module_.function(composite.name));
      module_.globals.erase(composite.name);
      return true;
    };
    return assign_targets(context_, module_, function_, block, graph, targets_, options_, answers_, is_valid, costs_);
  }

  void make_functions(const Block& block, Composites& composites) {
    std::erase_if(composites.found, [&](Composite& composite) { return !make_function(block, composites, composite); });
  }

  // Makes a function of the composite. One whose call cannot be typed, as inference does not derive its sizes from
  // those of the arguments, stays on the CPU.
  bool make_function(const Block& block, Composites& composites, Composite& composite) {
    const VarId root = block.bindings[composite.bindings.back()].var;
    std::string name = composite.row->composite;
    std::ranges::replace(name, '.', '_');
    composite.name = fresh_global(context_, module_, name);
    Effect effect = Effect::kNone;
    for (const size_t i : composite.bindings)
      effect = std::max(effect, effects_->of(function_, block.bindings[i].value));
    composite.outlined.function.composite = composite.row->composite;
    composite.outlined.function.target = composite.target->name;
    module_.globals.emplace(composite.name, std::move(composite.outlined.function));
    effects_->add(composite.name, effect);
    const auto& args = composite.outlined.args;
    const auto type = infer_value(context_, module_, function_, Call{composite.name, Atoms(args.begin(), args.end())});
    if (type && *type == function_.type(root)) return true;
    module_.globals.erase(composite.name);
    for (const size_t i : composite.bindings) {
      composites.reasons[i] =
          fmt::format("{}: the sizes of its result do not follow from its operands'", composite.row->composite);
    }
    return false;
  }

  std::optional<Placement> placement_of(const Block& block, const Composites& composites, size_t i) const {
    const Binding& binding = block.bindings[i];
    Placement placement{
        .op = {}, .span = function_.info(binding.var).span, .target = {}, .composite = {}, .reason = {}};
    if (const auto* call = std::get_if<Call>(&binding.value)) {
      const auto* callee = std::get_if<Symbol>(&call->callee);
      if (!callee || !module_.loop_function(*callee)) return std::nullopt;
      placement.op = fmt::format("@{}", context_.name(*callee));
      placement.reason = "a loop function";
      return placement;
    }
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (!apply) return std::nullopt;
    placement.op = apply->op->name;
    placement.reason = composites.reasons[i];
    const auto owner = std::ranges::find_if(composites.found, [&](const Composite& composite) {
      return std::ranges::binary_search(composite.bindings, i);
    });
    if (owner != composites.found.end()) {
      placement.target = owner->target->name;
      placement.composite = owner->row->composite;
      placement.root = function_.info(block.bindings[owner->bindings.back()].var).span;
    }
    return placement;
  }

  void replace_composites(Block& block, const Composites& composites) {
    std::vector<bool> removed(block.bindings.size());
    for (const Composite& composite : composites.found) {
      for (const size_t i : composite.bindings) removed[i] = true;
      const size_t root = composite.bindings.back();
      removed[root] = false;
      const auto& args = composite.outlined.args;
      block.bindings[root].value = Call{composite.name, Atoms(args.begin(), args.end())};
    }
    size_t i = 0;
    std::erase_if(block.bindings, [&](const Binding&) { return removed[i++]; });
  }

  // The target whose composite a binding calls, or nullptr.
  const Target* target_of(const Binding& binding) const {
    const auto* call = std::get_if<Call>(&binding.value);
    const auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const Function* callee = symbol ? module_.function(*symbol) : nullptr;
    if (!callee || callee->composite.empty()) return nullptr;
    const auto target = std::ranges::find(targets_, callee->target, &Target::name);
    return target == targets_.end() ? nullptr : &*target;
  }

  // The region that consists of these bindings.
  Expected<Outlined> outline_region(const Block& block, const std::vector<size_t>& members) {
    std::vector<VarId> results = values_used_outside(block, members);
    if (results.empty()) results.push_back(block.bindings[members.back()].var);  // dead code is still a function
    return outline(context_, module_, function_, block, members, std::move(results));
  }

  // Whether the target supports both groups as one region. `refused` has the regions that it was asked about before.
  Expected<bool> fits(const Block& block, const ConvexGroups& groups, uint32_t a, uint32_t b, const Target& target,
                      std::set<std::vector<size_t>>& refused) {
    if (!target.fits) return true;
    std::vector<size_t> members;
    for (uint32_t i = 0; i < block.bindings.size(); ++i) {
      if (groups.find(i) == groups.find(a) || groups.find(i) == groups.find(b)) members.push_back(i);
    }
    if (refused.contains(members)) return false;
    TENON_TRY_ASSIGN(outlined, outline_region(block, members));
    const bool fit = target.fits(context_, module_, outlined->function).has_value();
    if (!fit) refused.insert(std::move(members));
    return fit;
  }

  Expected<ConvexGroups> merge_regions(const Block& block) {
    const auto& bindings = block.bindings;
    const Dependencies graph = dependencies([&](const Value& value) { return effects_->of(function_, value); }, block);
    ConvexGroups groups(graph.follows);
    std::set<std::vector<size_t>> refused;  // by their bindings
    // A merge that was refused because of a third group becomes legal after that group has joined, and a region that
    // was too large may fit after others have joined and the values between them are no longer visible outside: repeat.
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i = 0; i < bindings.size(); ++i) {
        const Target* target = target_of(bindings[i]);
        if (!target) continue;
        for (const uint32_t operand : graph.reads[i]) {
          if (target_of(bindings[operand]) != target || groups.find(operand) == groups.find(i)) continue;
          if (!groups.can_merge(operand, i)) continue;
          TENON_TRY_ASSIGN(fit, fits(block, groups, operand, i, *target, refused));
          if (*fit) changed |= groups.merge(operand, i);
        }
      }
    }
    return groups;
  }

  Status replace_regions(Block& block) {
    const auto& bindings = block.bindings;
    if (std::ranges::none_of(bindings, [&](const Binding& binding) { return target_of(binding) != nullptr; }))
      return {};
    TENON_TRY_ASSIGN(groups, merge_regions(block));
    std::vector<std::vector<size_t>> members(bindings.size());
    for (uint32_t i = 0; i < bindings.size(); ++i) members[groups->find(i)].push_back(i);
    std::vector<Binding> replaced;
    for (const uint32_t group : groups->topological()) {
      const size_t first = members[group][0];
      if (const Target* target = target_of(bindings[first])) {
        TENON_TRY(emit_region(block, members[group], *target, replaced));
      } else {
        replaced.push_back(std::move(block.bindings[first]));
      }
    }
    block.bindings = std::move(replaced);
    return {};
  }

  // Gives each layer of a region a name of its own, by which its value is compared.
  void name_layers(Function& region) {
    std::set<Symbol> names;
    for (const Binding& binding : region.body.bindings) {
      VarInfo& info = region.vars[index(binding.var)];
      const std::string base = context_.name(info.name).empty() ? "layer" : std::string(context_.name(info.name));
      if (context_.name(info.name).empty()) info.name = context_.symbol(base);
      for (int i = 1; !names.insert(info.name).second; ++i) info.name = context_.symbol(fmt::format("{}_{}", base, i));
    }
  }

  // The region as a function, and its call, between the transforms to and from the layouts of its boundary.
  Status emit_region(const Block& block, const std::vector<size_t>& members, const Target& target,
                     std::vector<Binding>& out) {
    TENON_TRY_ASSIGN(outlined, outline_region(block, members));
    outlined->function.target = target.name;
    name_layers(outlined->function);
    const Effect effect = effects_->of(outlined->function, outlined->function.body);
    Boundary boundary;
    if (target.boundary) {
      TENON_TRY_ASSIGN(required, target.boundary(context_, module_, outlined->function));
      boundary = std::move(*required);
    }
    size_t tensors = 0;
    for (const VarId result : outlined->results) tensors += function_.type(result).parts().size();
    boundary.params.resize(outlined->args.size());
    boundary.results.resize(tensors);
    TENON_TRY_ASSIGN(region, with_boundary(context_, module_, outlined->function, boundary));
    const Symbol symbol = fresh_global(context_, module_, target.name);
    module_.globals.emplace(symbol, std::move(*region));
    effects_->add(symbol, effect);

    Builder builder(context_, module_, function_);
    builder.open();
    Atoms args;
    const BoundaryLayouts params = boundary.params;
    for (size_t i = 0; i < outlined->args.size(); ++i) {
      const VarId var = outlined->args[i];
      const VarInfo info = function_.info(var);
      builder.at(info.span);
      TENON_TRY_ASSIGN(stored, store_as(context_, builder, var, params.subspan(i, 1), info.type, info.name));
      args.push_back(*stored);
    }
    builder.at(function_.info(outlined->results.back()).span);
    TENON_TRY_ASSIGN(call, builder.call(symbol, std::move(args), target.name));
    std::map<VarId, VarId> renamed;
    BoundaryLayouts remaining = boundary.results;
    for (size_t i = 0; i < outlined->results.size(); ++i) {
      const VarInfo info = function_.info(outlined->results[i]);
      builder.at(info.span);
      TENON_TRY_ASSIGN(value, packed_result(builder, *call, i, outlined->results.size()));
      const BoundaryLayouts layouts = remaining.first(info.type.parts().size());
      remaining = remaining.subspan(layouts.size());
      TENON_TRY_ASSIGN(plain, restore_from(context_, builder, *value, layouts, info.type, info.name));
      assert(*builder.type_of(*plain) == info.type);
      renamed.emplace(std::get<VarId>(*plain), outlined->results[i]);
    }
    // The values keep the variables that the rest of the function uses.
    for (Binding& binding : builder.close(*call).bindings) {
      if (const auto kept = renamed.find(binding.var); kept != renamed.end()) binding.var = kept->second;
      out.push_back(std::move(binding));
    }
    return {};
  }

  Context& context_;
  Module& module_;
  Symbol entry_;
  std::span<const Target> targets_;
  const PartitionOptions& options_;
  TargetAnswers answers_;
  PlacementCosts costs_;
  Effects* effects_ = nullptr;  // of the module before partitioning, and of the composites and regions that were made
  Function function_;           // that is partitioned
};

}  // namespace

Expected<std::vector<Placement>> partition(Context& context, Module& module, Symbol entry,
                                           std::span<const Target> targets, const PartitionOptions& options) {
  return Partitioner(context, module, entry, targets, options).run();
}

}  // namespace tenon::compiler
