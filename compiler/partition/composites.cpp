#include "compiler/partition/composites.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/ir/operator.h"
#include "compiler/partition/pattern_text.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

class Finder {
 public:
  Finder(Context& context, Module& module, const Function& function, const Block& block,
         std::span<const Target> targets, TargetAnswers& answers, const Pins& pins)
      : context_(context),
        module_(module),
        function_(function),
        block_(block),
        targets_(targets),
        answers_(answers),
        pins_(pins),
        flow_(context, module, function, block),
        taken_(block.bindings.size()) {
    made_.reasons.resize(block.bindings.size());
    failures_.resize(targets.size(), std::vector<std::optional<Failure>>(block.bindings.size()));
  }

  Expected<Composites> run() && {
    // From the results up, so that the root of a pattern is visited before its operands.
    for (size_t root = block_.bindings.size(); root-- > 0;) {
      if (taken_[root] || !std::holds_alternative<Apply>(block_.bindings[root].value)) continue;
      TENON_TRY_ASSIGN(composite, at(root));
      if (!*composite) continue;
      for (const size_t binding : (*composite)->bindings) taken_[binding] = true;
      made_.found.push_back(**std::move(composite));
    }
    std::ranges::reverse(made_.found);
    drop_views();
    for (size_t i = 0; i < taken_.size(); ++i) {
      const auto* apply = std::get_if<Apply>(&block_.bindings[i].value);
      if (taken_[i]) made_.reasons[i].clear();
      else if (apply && made_.reasons[i].empty()) made_.reasons[i] = why_none(i, *apply->op);
    }
    return std::move(made_);
  }

 private:
  // The deepest failure of a row at one binding.
  struct Failure {
    const TargetPattern* row = nullptr;
    MatchFailure why;
  };

  Expected<std::optional<Composite>> at(size_t root) {
    for (size_t t = 0; t < targets_.size(); ++t) {
      for (const TargetPattern& row : targets_[t].patterns) {
        std::optional<Outlined> outlined;
        std::set<std::vector<size_t>> refused;
        auto found = match(row.pattern, flow_, root, taken_, [&](const Match& candidate) {
          if (refused.contains(candidate.bindings)) return false;
          auto made = accepted(targets_[t], row, candidate);
          if (made) {
            outlined = *std::move(made);
            return true;
          }
          add_reason(candidate.bindings, fmt::format("{}: {}", row.composite, made.error().what));
          refused.insert(candidate.bindings);
          return false;
        });
        if (!found) {
          return error(fmt::format("row {} of target {}: {}", row.composite, targets_[t].name, found.error().what), {},
                       found.error().help);
        }
        if (outlined) {
          return Composite{&targets_[t], &row, std::move(found->match->bindings), *std::move(outlined), {}};
        }
        if (found->failure) add_failure(t, row, *found->failure);
      }
    }
    return std::nullopt;
  }

  // Once, also where several forms of a match are refused for the same reason.
  void add_reason(const std::vector<size_t>& bindings, const std::string& added) {
    for (const size_t binding : bindings) {
      std::string& reason = made_.reasons[binding];
      if (reason.find(added) == std::string::npos) reason += (reason.empty() ? "" : "; ") + added;
    }
  }

  void add_failure(size_t target, const TargetPattern& row, const MatchFailure& failure) {
    for (const size_t binding : failure.bindings) {
      std::optional<Failure>& deepest = failures_[target][binding];
      if (!deepest || failure.bindings.size() > deepest->why.bindings.size()) deepest = Failure{&row, failure};
    }
  }

  // Drops composites of rows that are for the target's own results and have another operand.
  void drop_views() {
    std::map<size_t, const Target*> results;  // by binding
    std::erase_if(made_.found, [&](const Composite& composite) {
      const size_t first = composite.bindings.front(), root = composite.bindings.back();
      if (composite.row->of_own_results) {
        const auto& args = std::get<Apply>(block_.bindings[first].value).args;
        const auto* operand = args.empty() ? nullptr : std::get_if<VarId>(&args.front());
        const auto producer = operand ? flow_.producer(*operand) : std::nullopt;
        const auto found = producer ? results.find(*producer) : results.end();
        if (found == results.end() || found->second != composite.target) {
          for (const size_t binding : composite.bindings) {
            taken_[binding] = false;
            made_.reasons[binding] =
                fmt::format("{}: its operand is not a result of {}", composite.row->composite, composite.target->name);
          }
          return true;
        }
      }
      results.emplace(root, composite.target);
      return false;
    });
  }

  // The match as a function, if the target supports it.
  Expected<Outlined> accepted(const Target& target, const TargetPattern& row, const Match& found) {
    for (const size_t binding : found.bindings) {
      const auto* pin = pin_of(module_, function_, block_.bindings[binding], pins_);
      if (pin && pin->second != target.name) return error(fmt::format("{} is pinned to {}", pin->first, pin->second));
    }
    TENON_TRY_ASSIGN(outlined, outline(context_, module_, function_, block_, found.bindings,
                                       {block_.bindings[found.bindings.back()].var}));
    const size_t size = outlined->function.body.bindings.size();
    if (size != found.bindings.size()) return error("its sizes must be checked at run time");
    if (!row.accepts) return outlined;
    const auto key = function_key(context_, module_, outlined->function);
    const std::string question = key ? fmt::format("{}:{}", static_cast<const void*>(&row), *key) : "";
    if (const auto known = answers_.accepted.find(question); key && known != answers_.accepted.end()) {
      TENON_TRY(Status(known->second));
      return outlined;
    }
    Match whole{.bindings = std::vector<size_t>(size), .captures = {}};
    std::iota(whole.bindings.begin(), whole.bindings.end(), size_t{0});
    if (!found.captures.empty()) {  // which are values of the outlined function now
      const DataFlow flow(context_, module_, outlined->function, outlined->function.body);
      TENON_TRY_ASSIGN(again, match(row.pattern, flow, size - 1, {},
                                    [&](const Match& match) { return match.bindings.size() == size; }));
      assert(again->match);
      whole = *std::move(again->match);
    }
    Status answer = row.accepts(context_, module_, outlined->function, whole);
    if (key) answers_.accepted.emplace(question, answer);
    TENON_TRY(answer);
    return outlined;
  }

  // What each target's patterns lack at the binding, an application of the operator that none of them matches.
  std::string why_none(size_t binding, const Operator& op) const {
    std::string text;
    for (size_t t = 0; t < targets_.size(); ++t) {
      const Target& target = targets_[t];
      if (!text.empty()) text += "; ";
      if (const auto& failure = failures_[t][binding]) {
        text += fmt::format("{} {}", failure->row->composite, failure->why.str());
        continue;
      }
      const auto row =
          std::ranges::find_if(target.patterns, [&](const TargetPattern& r) { return mentions(r.pattern, op.id); });
      if (row == target.patterns.end()) text += fmt::format("{} has no pattern with {}", target.name, op.name);
      else if (const std::string lacking = target.integer_layers ? lacks_integers(binding, op) : ""; !lacking.empty())
        text += fmt::format("{} {}", target.name, lacking);
      else
        text += fmt::format("{} supports {} only within {} = {}", target.name, op.name, row->composite,
                            to_string(row->pattern));
    }
    return text.empty() ? "no target" : text;
  }

  // What a layer lacks for a target of integer layers, and how it gets it: operands in i8, or a result that is rounded
  // before others read it. Empty where the layer is no contraction.
  std::string lacks_integers(size_t binding, const Operator& op) const {
    if (op.pattern != OpPattern::kAnchor) return {};
    const Apply& layer = std::get<Apply>(block_.bindings[binding].value);
    for (const Atom& operand : layer.args) {
      const auto* var = std::get_if<VarId>(&operand);
      const TensorType* type = var ? function_.type(*var).tensor() : nullptr;
      const runtime::Tensor* constant = constant_of(module_, operand);
      const DType dtype = constant ? constant->dtype() : type ? type->dtype : DType::kI8;
      if (dtype == DType::kI8) continue;
      return fmt::format("computes {} in i8, and an operand is {}: {}", op.name, runtime::name(dtype),
                         runtime::kReals.contains(dtype)
                             ? "quantize the model with --calibrate, and do not --keep this node"
                             : "operands come from quantize, weights are constants, and sums with their bias fit i32");
    }
    const Binding* reader = &block_.bindings[binding];
    for (;;) {
      const size_t next = flow_.last_use(reader->var);
      reader = next == 0 || next >= block_.bindings.size() ? nullptr : &block_.bindings[next];
      const auto* apply = reader ? std::get_if<Apply>(&reader->value) : nullptr;
      if (!apply) return fmt::format("rounds the sums of {} to i8, and here they are a result: quantize them", op.name);
      if (apply->op->elements != Elements::kComputed ||
          apply->op->is_one_of(
              {ops::kBiasAdd, ops::kAdd, ops::kMultiply, ops::kCast, ops::kDequantize, ops::kRelu, ops::kClip}))
        continue;
      const std::string node = module_.span(function_.info(reader->var).span).node;
      return fmt::format(
          "rounds the sums of {} to i8, and {}{} reads them before they are rounded: quantize and "
          "dequantize what it reads",
          op.name, apply->op->name, node.empty() ? "" : " '" + node + "'");
    }
  }

  Context& context_;
  Module& module_;
  const Function& function_;
  const Block& block_;
  std::span<const Target> targets_;
  TargetAnswers& answers_;
  const Pins& pins_;
  DataFlow flow_;
  std::vector<bool> taken_;
  std::vector<std::vector<std::optional<Failure>>> failures_;  // by target and binding
  Composites made_;
};

}  // namespace

const Pins::value_type* pin_of(const Module& module, const Function& function, const Binding& binding,
                               const Pins& pins) {
  if (pins.empty()) return nullptr;
  const auto pin = pins.find(module.span(function.info(binding.var).span).node);
  return pin == pins.end() || !std::holds_alternative<Apply>(binding.value) ? nullptr : &*pin;
}

Expected<Composites> find_composites(Context& context, Module& module, const Function& function, const Block& block,
                                     std::span<const Target> targets, TargetAnswers& answers, const Pins& pins) {
  return Finder(context, module, function, block, targets, answers, pins).run();
}

}  // namespace tenon::compiler
