#include "compiler/fuzz/partitions.h"

#include <fmt/format.h>

#include <functional>
#include <random>
#include <set>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/groups.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "compiler/partition/partition.h"
#include "support/try.h"

namespace tenon::compiler::fuzz {
namespace {

struct Drawn {
  std::vector<Target> targets;
  Costs costs;
  bool by_cost = false;
};

// The tensors of known sizes in another order of axes, each field of a tuple too.
void permute(Type type, std::vector<BoundaryLayout>& layouts) {
  if (type.tuple()) {
    for (const Type field : type.parts()) permute(field, layouts);
    return;
  }
  const auto shape = type.tensor() ? type.tensor()->shape() : std::nullopt;
  const size_t rank = shape ? shape->size() : 0;
  if (rank == 2) layouts.push_back({"NC", "CN"});
  else if (rank == 3) layouts.push_back({"NCW", "NWC"});
  else if (rank == 4) layouts.push_back({"NCHW", "NHWC"});
  else layouts.emplace_back();
}

Expected<Boundary> permuted_boundary(Context&, const Module&, const Function& region) {
  Boundary boundary;
  for (const VarId param : region.params) {
    if (region.type(param).tensor()) permute(region.type(param), boundary.params);
    else boundary.params.emplace_back();
  }
  permute(region.result, boundary.results);
  return boundary;
}

Drawn draw(const Context& context, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  Drawn drawn;
  drawn.by_cost = below(2) == 0;
  drawn.costs = {.source = "drawn costs",
                 .gmacs_f32 = 1,
                 .gmacs_i8 = 2,
                 .gbytes = 1,
                 .call_ns = static_cast<double>(below(1000)),
                 .devices = {}};
  const std::vector<const Operator*> all = context.operators();
  for (int t = 0; t < 3; ++t) {
    Target target;
    target.name = fmt::format("device{}", t);
    std::vector<OperatorId> supported;
    for (const Operator* op : all) {
      if (op->id != OperatorId::kAdded && below(2) == 0) supported.push_back(op->id);
    }
    // Larger matches come first: an operator, with an optional one around it, and paths.
    for (const OperatorId id : supported) {
      const OperatorId other = supported[below(supported.size())];
      if (below(2) == 0)
        target.patterns.push_back({fmt::format("{}.pair_{}", target.name, name(id)), op(id, {op(other)}), {}});
      if (below(4) == 0) {
        target.patterns.push_back({fmt::format("{}.sum_{}", target.name, name(id)),
                                   commutative(ops::kAdd, {optional(other, {op(id)}), any()}),
                                   {}});
      }
      if (below(8) == 0) {
        target.patterns.push_back({fmt::format("{}.path_{}", target.name, name(id)),
                                   path(any(), either({op(ops::kAdd), op(ops::kMultiply), op(other)}), op(id)),
                                   {}});
      }
    }
    for (const OperatorId id : supported) {
      target.patterns.push_back({fmt::format("{}.{}", target.name, name(id)), op(id), {}});
    }
    if (below(3) == 0) {
      const size_t most = 2 + below(4);
      target.fits = [most](Context&, const Module&, const Function& region) -> Status {
        if (region.params.size() <= most) return {};
        return error("too many values");
      };
    }
    if (below(3) == 0) target.boundary = permuted_boundary;
    drawn.costs.devices[target.name] = {.launch_ns = static_cast<double>(below(3000)),
                                        .gbytes = 0.5 + static_cast<double>(below(10)),
                                        .gmacs_f32 = 0.5 + static_cast<double>(below(20)),
                                        .gmacs_i8 = 0.5 + static_cast<double>(below(20))};
    drawn.targets.push_back(std::move(target));
  }
  return drawn;
}

// The target of the region that the binding calls; empty: it calls none.
std::string_view region_of(const Module& module, const Binding& binding) {
  const auto* call = std::get_if<Call>(&binding.value);
  const auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
  const Function* callee = symbol ? module.function(*symbol) : nullptr;
  return callee && callee->composite.empty() ? std::string_view(callee->target) : std::string_view();
}

// An error where two regions of a target that has no limits are neighbours and could be one.
Status check_merged(Context& context, const Module& module, const Drawn& drawn, const Block& block,
                    const Function& function, const Effects& effects) {
  const Dependencies graph = dependencies([&](const Value& value) { return effects.of(function, value); }, block);
  ConvexGroups groups(graph.follows);
  const auto& bindings = block.bindings;
  // A result of a region is a field of its call; a field of an operator's result is computed outside of regions, which
  // have calls of composites alone.
  const auto packs_results = [&](const Binding& binding) {
    const auto* call = std::get_if<Call>(&binding.value);
    const auto& body = module.function(std::get<Symbol>(call->callee))->body.bindings;
    return !body.empty() && std::holds_alternative<Tuple>(body.back().value);
  };
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    if (!std::holds_alternative<Project>(bindings[i].value)) continue;
    for (const uint32_t operand : graph.reads[i]) {
      if (!region_of(module, bindings[operand]).empty() && packs_results(bindings[operand])) groups.merge(operand, i);
    }
  }
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    const std::string_view target = region_of(module, bindings[i]);
    const auto known = std::ranges::find(drawn.targets, target, &Target::name);
    if (known == drawn.targets.end() || known->fits) continue;
    for (const uint32_t read : graph.reads[i]) {
      for (uint32_t j = 0; j < i; ++j) {
        if (groups.find(j) != groups.find(read) || groups.find(j) == groups.find(i)) continue;
        if (region_of(module, bindings[j]) != target || !groups.can_merge(j, i)) continue;
        return error(fmt::format("two regions of {} could be one: {} and {}", target,
                                 context.name(function.info(bindings[j].var).name),
                                 context.name(function.info(bindings[i].var).name)));
      }
    }
  }
  return {};
}

Expected<Module> partitioned(Context& context, Module module) {
  const Symbol entry = context.symbol("main");
  const Drawn drawn = draw(context, std::hash<std::string>()(print(context, module).text));
  const PartitionOptions options{.costs = drawn.by_cost ? &drawn.costs : nullptr};
  Module again = clone(module);
  TENON_TRY(partition(context, module, entry, drawn.targets, options));
  TENON_TRY(partition(context, again, entry, drawn.targets, options));
  if (print(context, module).text != print(context, again).text) {
    return error("a copy is partitioned in another way");
  }
  const Effects effects(context, module);
  for (const Symbol name : reachable_globals(module, entry)) {
    const Function* function = module.function(name);
    if (!function || !function->target.empty()) continue;
    const std::function<Status(const Block&)> visit = [&](const Block& block) -> Status {
      TENON_TRY(check_merged(context, module, drawn, block, *function, effects));
      Status status;
      for (const Binding& binding : block.bindings) {
        for_each_block(binding.value, [&](const Block& inner) {
          if (status) status = visit(inner);
        });
      }
      return status;
    };
    TENON_TRY(visit(function->body));
  }
  return module;
}

}  // namespace

Pass random_partition() { return {"partition", "partition for random targets", partitioned}; }

}  // namespace tenon::compiler::fuzz
