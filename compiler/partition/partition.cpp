#include "compiler/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "compiler/ir/groups.h"
#include "compiler/partition/outline.h"
#include "compiler/partition/preassigned.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// A composite that was found in the function.
struct Composite {
  const Target* target = nullptr;
  const TargetPattern* row = nullptr;
  std::vector<size_t> bindings;
};

class Partitioner {
 public:
  Partitioner(Context& context, Module& module, Symbol entry, std::span<const Target> targets)
      : context_(context), module_(module), entry_(entry), targets_(targets) {}

  Expected<std::vector<Placement>> run() {
    Function* function = module_.function(entry_);
    if (!function) {
      return error(fmt::format("the module has no function @{}", context_.name(entry_)), {}, {}, Fault::kInternal);
    }
    TENON_TRY(check_preassigned(context_, module_, targets_));
    // Regions are made of straight-line code without effects; any other function stays on the CPU as a whole.
    if (!first_order(module_, *function)) return std::vector<Placement>{};
    std::vector<Placement> placements = find_composites(*function);
    TENON_TRY_ASSIGN(with_composites, replace_composites(*function));
    TENON_TRY_ASSIGN(with_regions, replace_regions(*with_composites));
    *module_.function(entry_) = std::move(*with_regions);
    return placements;
  }

 private:
  std::vector<Placement> find_composites(const Function& function) {
    const auto& bindings = function.body.bindings;
    const DataFlow flow(function);
    std::vector<bool> taken(bindings.size());
    std::vector<std::string> reasons(bindings.size());
    // From the results up, so that the root of a pattern is visited before its operands.
    for (size_t root = bindings.size(); root-- > 0;) {
      if (taken[root]) continue;
      if (auto composite = find_composite(function, flow, root, taken, reasons)) {
        for (const size_t binding : composite->bindings) taken[binding] = true;
        composites_.push_back(std::move(*composite));
      }
    }
    std::ranges::reverse(composites_);

    std::vector<const Composite*> owner(bindings.size());
    for (const Composite& composite : composites_) {
      for (const size_t binding : composite.bindings) owner[binding] = &composite;
    }
    std::vector<Placement> placements;
    for (size_t i = 0; i < bindings.size(); ++i) {
      const auto* call = std::get_if<Call>(&bindings[i].value);
      const auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
      if (callee && module_.loop_function(*callee)) {
        placements.push_back({.op = fmt::format("@{}", context_.name(*callee)),
                              .span = function.info(bindings[i].var).span,
                              .target = {},
                              .composite = {},
                              .reason = "a loop function"});
        continue;
      }
      const auto* apply = std::get_if<Apply>(&bindings[i].value);
      if (!apply) continue;
      Placement placement{.op = apply->op->name,
                          .span = function.info(bindings[i].var).span,
                          .target = {},
                          .composite = {},
                          .reason = {}};
      if (owner[i]) {
        placement.target = owner[i]->target->name;
        placement.composite = owner[i]->row->composite;
      } else {
        placement.reason = reasons[i].empty() ? no_pattern(*apply->op) : reasons[i];
      }
      placements.push_back(std::move(placement));
    }
    return placements;
  }

  std::optional<Composite> find_composite(const Function& function, const DataFlow& flow, size_t root,
                                          const std::vector<bool>& taken, std::vector<std::string>& reasons) {
    for (const Target& target : targets_) {
      for (const TargetPattern& row : target.patterns) {
        auto found = match(row.pattern, flow, root, taken);
        if (!found) continue;
        const Status accepted = row.accepts ? row.accepts(context_, module_, function, *found) : Status();
        if (accepted) return Composite{&target, &row, std::move(found->bindings)};
        for (const size_t binding : found->bindings) {
          reasons[binding] +=
              fmt::format("{}{}: {}", reasons[binding].empty() ? "" : "; ", row.composite, accepted.error().what);
        }
      }
    }
    return std::nullopt;
  }

  std::string no_pattern(const Operator& op) const {
    std::string text;
    for (const Target& target : targets_) {
      const auto row =
          std::ranges::find_if(target.patterns, [&](const TargetPattern& r) { return mentions(r.pattern, op.id); });
      if (!text.empty()) text += "; ";
      if (row == target.patterns.end()) text += fmt::format("{} has no pattern with {}", target.name, op.name);
      else
        text += fmt::format("{} supports {} only within {} = {}", target.name, op.name, row->composite,
                            to_string(row->pattern));
    }
    return text.empty() ? "no target" : text;
  }

  Symbol fresh_global(const std::string& base) {
    for (int i = 0;; ++i) {
      const Symbol symbol = context_.symbol(fmt::format("{}_{}", base, i));
      if (!module_.globals.contains(symbol)) return symbol;
    }
  }

  Expected<Function> replace_composites(const Function& function) {
    std::vector<const Composite*> owner(function.body.bindings.size());
    for (const Composite& composite : composites_) {
      for (const size_t binding : composite.bindings) owner[binding] = &composite;
    }
    Function result;
    result.dims = function.dims;
    result.bounds = function.bounds;
    Builder builder(context_, module_, result);
    Copier copier(function, builder);
    for (const VarId param : function.params) copier.param(context_, param);
    for (size_t i = 0; i < function.body.bindings.size(); ++i) {
      const Binding& binding = function.body.bindings[i];
      if (!owner[i]) {
        TENON_TRY(copier.copy(binding));
        continue;
      }
      if (i != owner[i]->bindings.back()) continue;
      TENON_TRY_ASSIGN(outlined, outline(context_, module_, function, owner[i]->bindings, {binding.var}));
      outlined->function.composite = owner[i]->row->composite;
      outlined->function.target = owner[i]->target->name;
      std::string name = owner[i]->row->composite;
      std::ranges::replace(name, '.', '_');
      const Symbol symbol = fresh_global(name);
      module_.globals.emplace(symbol, std::move(outlined->function));
      Call call{symbol, {}};
      for (const VarId arg : outlined->args) call.args.push_back(copier(arg));
      TENON_TRY(copier.bind(binding.var, std::move(call)));
    }
    builder.finish(copier(function.body.result));
    return result;
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
  Expected<Outlined> outline_region(const Function& function, const std::vector<size_t>& members) {
    std::vector<VarId> results = visible(function, members);
    if (results.empty())
      results.push_back(function.body.bindings[members.back()].var);  // dead code is still a function
    return outline(context_, module_, function, members, std::move(results));
  }

  // Whether the target supports both groups as one region.
  Expected<bool> fits(const Function& function, const ConvexGroups& groups, uint32_t a, uint32_t b,
                      const Target& target) {
    if (!target.fits) return true;
    std::vector<size_t> members;
    for (uint32_t i = 0; i < function.body.bindings.size(); ++i) {
      if (groups.find(i) == groups.find(a) || groups.find(i) == groups.find(b)) members.push_back(i);
    }
    TENON_TRY_ASSIGN(outlined, outline_region(function, members));
    return target.fits(context_, module_, outlined->function).has_value();
  }

  Expected<ConvexGroups> merge_regions(const Function& function) {
    const auto& bindings = function.body.bindings;
    const DataFlow flow(function);
    std::vector<std::vector<uint32_t>> operands(bindings.size());
    for (size_t i = 0; i < bindings.size(); ++i) {
      for_each_operand(bindings[i].value, [&](const Atom& atom) {
        const auto* var = std::get_if<VarId>(&atom);
        if (const auto producer = var ? flow.producer(*var) : std::nullopt)
          operands[i].push_back(static_cast<uint32_t>(*producer));
      });
    }
    ConvexGroups groups(operands);
    // A merge that was refused because of a third group becomes legal after that group has joined, and a region that
    // was too large may fit after others have joined and the values between them are no longer visible outside: repeat.
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i = 0; i < bindings.size(); ++i) {
        const Target* target = target_of(bindings[i]);
        if (!target) continue;
        for (const uint32_t operand : operands[i]) {
          if (target_of(bindings[operand]) != target || groups.find(operand) == groups.find(i)) continue;
          if (!groups.can_merge(operand, i)) continue;
          TENON_TRY_ASSIGN(fit, fits(function, groups, operand, i, *target));
          if (*fit) changed |= groups.merge(operand, i);
        }
      }
    }
    return groups;
  }

  Expected<Function> replace_regions(const Function& function) {
    const auto& bindings = function.body.bindings;
    TENON_TRY_ASSIGN(groups, merge_regions(function));
    std::vector<std::vector<size_t>> members(bindings.size());
    for (uint32_t i = 0; i < bindings.size(); ++i) members[groups->find(i)].push_back(i);

    Function result;
    result.dims = function.dims;
    result.bounds = function.bounds;
    Builder builder(context_, module_, result);
    Copier copier(function, builder);
    for (const VarId param : function.params) copier.param(context_, param);
    for (const uint32_t group : groups->topological()) {
      const Target* target = target_of(bindings[members[group][0]]);
      TENON_TRY(target ? emit_region(function, members[group], *target, builder, copier)
                       : copier.copy(bindings[members[group][0]]));
    }
    builder.finish(copier(function.body.result));
    return result;
  }

  // Values of the group that are used outside of it.
  static std::vector<VarId> visible(const Function& function, const std::vector<size_t>& members) {
    std::vector<uint32_t> inside(function.vars.size());
    for (const size_t member : members) {
      for_each_operand(function.body.bindings[member].value, [&](const Atom& atom) {
        if (const auto* var = std::get_if<VarId>(&atom)) ++inside[index(*var)];
      });
    }
    const std::vector<uint32_t> uses = use_counts(function);
    std::vector<VarId> vars;
    for (const size_t member : members) {
      const VarId var = function.body.bindings[member].var;
      if (inside[index(var)] != uses[index(var)]) vars.push_back(var);
    }
    return vars;
  }

  Status emit_region(const Function& function, const std::vector<size_t>& members, const Target& target,
                     Builder& builder, Copier& copier) {
    TENON_TRY_ASSIGN(outlined, outline_region(function, members));
    outlined->function.target = target.name;
    Boundary boundary;
    if (target.boundary) {
      TENON_TRY_ASSIGN(required, target.boundary(context_, module_, outlined->function));
      boundary = std::move(*required);
    }
    boundary.params.resize(outlined->args.size());
    boundary.results.resize(outlined->results.size());
    TENON_TRY_ASSIGN(region, with_boundary(context_, module_, outlined->function, boundary));
    const Symbol symbol = fresh_global(target.name);
    module_.globals.emplace(symbol, std::move(*region));

    Atoms args;
    for (size_t i = 0; i < outlined->args.size(); ++i) {
      const VarId var = outlined->args[i];
      builder.at(function.info(var).span);
      TENON_TRY_ASSIGN(stored, store_as(context_, builder, copier(var), boundary.params[i], function.info(var).name));
      args.push_back(*stored);
    }
    builder.at(function.info(outlined->results.back()).span);
    TENON_TRY_ASSIGN(call, builder.call(symbol, std::move(args), target.name));
    for (size_t i = 0; i < outlined->results.size(); ++i) {
      const VarInfo& info = function.info(outlined->results[i]);
      builder.at(info.span);
      TENON_TRY_ASSIGN(value, outlined->results.size() == 1 ? call : builder.project(*call, static_cast<uint32_t>(i)));
      TENON_TRY_ASSIGN(plain, restore_from(context_, builder, *value, boundary.results[i], info.type, info.name));
      copier.define(outlined->results[i], *plain);
    }
    return {};
  }

  Context& context_;
  Module& module_;
  Symbol entry_;
  std::span<const Target> targets_;
  std::vector<Composite> composites_;
};

}  // namespace

Expected<std::vector<Placement>> partition(Context& context, Module& module, Symbol entry,
                                           std::span<const Target> targets) {
  return Partitioner(context, module, entry, targets).run();
}

}  // namespace tenon::compiler
