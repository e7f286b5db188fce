#include "compiler/pipeline/import_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/kernels/kernels.h"
#include "compiler/partition/partition.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/passes.h"
#include "compiler/quantize/qdq.h"
#include "compiler/quantize/quantize.h"
#include "compiler/targets/targets.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

bool comes_quantized(const Function& function) {
  return std::ranges::any_of(function.body.bindings, [](const Binding& binding) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    return apply && apply->op->is_one_of({ops::kQuantize, ops::kDequantize});
  });
}

// The integer layers that the accelerator would receive.
Expected<Module> with_integer_layers(Context& context, Module module, Symbol entry, ImportCheck& check) {
  if (comes_quantized(*module.function(entry))) return requantize_layers(context, std::move(module), nullptr);
  check.assumes_calibration = true;
  TENON_TRY_ASSIGN(layers, canonical_layers(context, std::move(module)));
  module = std::move(*layers);
  Ranges ranges;
  for_each_function(module, [&](Symbol name, const Function& f) { ranges[name].assign(f.vars.size(), {-1, 1, true}); });
  return quantize(context, module, entry, ranges);
}

void count(ImportCheck& check, const Context& context, const Module& module, const Placement& placement) {
  const Operator* op = context.find_operator(placement.op);
  TargetSupport& support = check.targets[module.span(placement.span).op];
  if (!placement.target.empty()) ++support.accelerator;
  else if (op && !kernels::lowered(op->id)) ++support.reference;
  else ++support.native;
  if (!placement.reason.empty() && std::ranges::find(support.reasons, placement.reason) == support.reasons.end())
    support.reasons.push_back(placement.reason);
}

}  // namespace

Expected<ImportCheck> check_import(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                                   const std::optional<spec::Config>& accelerator) {
  Context context;
  ImportCheck check;
  TENON_TRY_ASSIGN(nodes, check_onnx(context, path, shapes));
  check.nodes = std::move(*nodes);
  if (!check.nodes.module) return check;
  const Symbol entry = context.symbol("main");
  TENON_TRY_ASSIGN(module, run_passes(context, std::move(*check.nodes.module), standard_passes()));
  check.nodes.module.reset();  // its names and types end with the context
  TENON_TRY_ASSIGN(targets, make_targets({}, {.accelerator = accelerator}));
  if (std::ranges::any_of(*targets, &Target::integer_layers)) {
    TENON_TRY_ASSIGN(layers, with_integer_layers(context, std::move(*module), entry, check));
    *module = std::move(*layers);
  }
  TENON_TRY_ASSIGN(placements, partition(context, *module, entry, *targets));
  for (const Placement& placement : *placements) count(check, context, *module, placement);
  return check;
}

std::string text(const ImportCheck& check) {
  std::string lines = fmt::format("{:<32} {:>6} {:>12} {:>8} {:>10}  {}\n", "operator", "nodes", "accelerator",
                                  "native", "reference", "not on the accelerator because");
  for (const auto& [op, nodes] : check.nodes.operators) {
    const auto found = check.targets.find(op);
    const auto failed = std::ranges::count(check.nodes.problems, op, &OnnxProblem::op);
    lines += fmt::format("{:<32} {:>6}", op, nodes);
    if (failed > 0) {
      lines += fmt::format("  {} not supported", failed);
    } else if (found != check.targets.end()) {
      const TargetSupport& s = found->second;
      lines +=
          fmt::format(" {:>12} {:>8} {:>10}  {}", s.accelerator, s.native, s.reference, fmt::join(s.reasons, "; "));
    } else if (!check.targets.empty()) {
      lines += "  simplified away";
    }
    while (lines.back() == ' ') lines.pop_back();
    lines += '\n';
  }
  for (const OnnxProblem& problem : check.nodes.problems) lines += problem.diagnostic.str() + "\n";
  for (const OnnxProblem& problem : check.nodes.unexamined)
    lines += fmt::format("{} '{}': not examined: {}\n", problem.op, problem.node, problem.diagnostic.what);
  if (check.assumes_calibration) lines += "The accelerator computes float layers after --calibrate only.\n";
  return lines;
}

}  // namespace tenon::compiler
