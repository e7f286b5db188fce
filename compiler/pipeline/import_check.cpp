#include "compiler/pipeline/import_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/ir/dependencies.h"
#include "compiler/kernels/kernels.h"
#include "compiler/partition/partition.h"
#include "compiler/partition/pattern_text.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/passes.h"
#include "compiler/pipeline/pipeline.h"
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

// What the targets would receive.
Expected<Module> layers_of(Context& context, Module module, Symbol entry, bool wants_integers, ImportCheck& check) {
  if (!wants_integers || comes_quantized(*module.function(entry)))
    return with_integer_layers(context, std::move(module), wants_integers);
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

// The checked model, with what the targets would receive.
struct Prepared {
  ImportCheck check;
  std::optional<Module> module;  // std::nullopt where a node is not supported
  std::vector<Target> targets;
};

Expected<Prepared> prepare(Context& context, const std::filesystem::path& path,
                           const std::map<std::string, int64_t>& shapes,
                           std::span<const AcceleratorOptions> accelerators, std::span<const TargetRecord> added) {
  Prepared prepared;
  TENON_TRY_ASSIGN(nodes, check_onnx(context, path, shapes));
  prepared.check.nodes = std::move(*nodes);
  if (!prepared.check.nodes.module) return prepared;
  TENON_TRY_ASSIGN(module, run_passes(context, std::move(*prepared.check.nodes.module), standard_passes()));
  prepared.check.nodes.module.reset();  // its names and types end with the context
  TENON_TRY_ASSIGN(targets, make_targets({}, accelerators, {}, added));
  const bool wants_integers = std::ranges::any_of(*targets, &Target::integer_layers);
  TENON_TRY_ASSIGN(layers,
                   layers_of(context, std::move(*module), context.symbol("main"), wants_integers, prepared.check));
  prepared.module = *std::move(layers);
  prepared.targets = *std::move(targets);
  return prepared;
}

// Collects the matches of a pattern at every binding of a block and of those inside it.
class PatternFinder {
 public:
  PatternFinder(const Context& context, const Module& module, const GraphPattern& pattern, PatternCheck& check)
      : context_(context), module_(module), pattern_(pattern), check_(check) {}

  Status visit(const Function& function, const Block& block) {
    const DataFlow flow(context_, module_, function, block);
    for (size_t root = 0; root < block.bindings.size(); ++root) {
      TENON_TRY_ASSIGN(found, match(pattern_, flow, root));
      const auto* apply = std::get_if<Apply>(&block.bindings[root].value);
      PatternCheck::Line line{.node = module_.span(function.info(block.bindings[root].var).span).node,
                              .op = apply ? apply->op->name : "",
                              .found = {}};
      if (found->match) {
        line.found = describe(function, block, *found->match);
        check_.matches.push_back(std::move(line));
      } else if (found->failure) {
        line.found = found->failure->str();
        check_.near_misses.push_back(std::move(line));
      }
      Status status;
      for_each_block(block.bindings[root].value, [&](const Block& inner) {
        if (status) status = visit(function, inner);
      });
      TENON_TRY(status);
    }
    return {};
  }

 private:
  std::string describe(const Function& function, const Block& block, const Match& match) const {
    std::vector<std::string> parts;
    for (const size_t binding : match.bindings) {
      const auto* apply = std::get_if<Apply>(&block.bindings[binding].value);
      if (apply) parts.push_back(apply->op->name);
    }
    std::string text = fmt::format("{}", fmt::join(parts, " + "));
    for (const auto& [name, value] : match.captures) {
      const auto* var = std::get_if<VarId>(&value);
      text += fmt::format(", %{} is {}", name,
                          var && index(*var) < function.vars.size()
                              ? fmt::format("%{} of type {}", context_.name(function.info(*var).name),
                                            context_.str(function.type(*var)))
                          : std::holds_alternative<ConstId>(value) ? "a constant"
                                                                   : "a global");
    }
    return text;
  }

  const Context& context_;
  const Module& module_;
  const GraphPattern& pattern_;
  PatternCheck& check_;
};

}  // namespace

Expected<ImportCheck> check_import(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                                   std::span<const AcceleratorOptions> accelerators,
                                   std::span<const TargetRecord> added) {
  Context context;
  TENON_TRY_ASSIGN(prepared, prepare(context, path, shapes, accelerators, added));
  ImportCheck check = std::move(prepared->check);
  if (!prepared->module) return check;
  Module& module = *prepared->module;
  TENON_TRY_ASSIGN(placements, partition(context, module, context.symbol("main"), prepared->targets));
  for (const Target& target : prepared->targets) {
    if (auto failure = failure_of(target)) return std::unexpected(*std::move(failure));
  }
  for (const Placement& placement : *placements) count(check, context, module, placement);
  return check;
}

Expected<PatternCheck> check_pattern(const std::filesystem::path& path, const std::map<std::string, int64_t>& shapes,
                                     std::span<const AcceleratorOptions> accelerators, std::string_view pattern,
                                     std::span<const TargetRecord> added) {
  Context context;
  TENON_TRY_ASSIGN(read, read_pattern(context, pattern, "--pattern"));
  TENON_TRY_ASSIGN(prepared, prepare(context, path, shapes, accelerators, added));
  if (!prepared->module) return std::unexpected(prepared->check.nodes.problems.front().diagnostic);
  PatternCheck check{.pattern = to_string(*read), .matches = {}, .near_misses = {}};
  PatternFinder finder(context, *prepared->module, *read, check);
  for (const Symbol name : reachable_globals(*prepared->module, context.symbol("main"))) {
    const Function* function = prepared->module->function(name);
    if (function) TENON_TRY(finder.visit(*function, function->body));
  }
  return check;
}

std::string text(const PatternCheck& check) {
  constexpr size_t kMaxLines = 50;  // that a person reads
  const auto list = [&](std::string_view what, const std::vector<PatternCheck::Line>& lines) {
    std::string text = fmt::format("{} {}{}\n", lines.size(), what, lines.size() == 1 ? "" : "es");
    for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) {
      text += fmt::format("  {}  {}  {}\n", lines[i].node, lines[i].op, lines[i].found);
    }
    if (lines.size() > kMaxLines) text += fmt::format("  and {} others\n", lines.size() - kMaxLines);
    return text;
  };
  return check.pattern + "\n" + list("match", check.matches) + list("near miss", check.near_misses);
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
