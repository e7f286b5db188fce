#include "compiler/partition/composites.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "compiler/ir/operator.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

class Finder {
 public:
  Finder(Context& context, Module& module, const Function& function, const Block& block,
         std::span<const Target> targets)
      : context_(context),
        module_(module),
        function_(function),
        block_(block),
        targets_(targets),
        flow_(function, block),
        taken_(block.bindings.size()) {
    made_.reasons.resize(block.bindings.size());
  }

  Composites run() && {
    // From the results up, so that the root of a pattern is visited before its operands.
    for (size_t root = block_.bindings.size(); root-- > 0;) {
      if (taken_[root] || !std::holds_alternative<Apply>(block_.bindings[root].value)) continue;
      auto composite = at(root);
      if (!composite) continue;
      for (const size_t binding : composite->bindings) taken_[binding] = true;
      made_.found.push_back(std::move(*composite));
    }
    std::ranges::reverse(made_.found);
    drop_views();
    for (size_t i = 0; i < taken_.size(); ++i) {
      const auto* apply = std::get_if<Apply>(&block_.bindings[i].value);
      if (taken_[i]) made_.reasons[i].clear();
      else if (apply && made_.reasons[i].empty()) made_.reasons[i] = no_pattern(*apply->op);
    }
    return std::move(made_);
  }

 private:
  std::optional<Composite> at(size_t root) {
    for (const Target& target : targets_) {
      for (const TargetPattern& row : target.patterns) {
        const auto found = match(row.pattern, flow_, root, taken_);
        if (!found) continue;
        auto outlined = accepted(row, *found);
        if (outlined) return Composite{&target, &row, found->bindings, std::move(*outlined), {}};
        for (const size_t binding : found->bindings) {
          std::string& reason = made_.reasons[binding];
          reason += fmt::format("{}{}: {}", reason.empty() ? "" : "; ", row.composite, outlined.error().what);
        }
      }
    }
    return std::nullopt;
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
  Expected<Outlined> accepted(const TargetPattern& row, const Match& found) {
    TENON_TRY_ASSIGN(outlined, outline(context_, module_, function_, block_, found.bindings,
                                       {block_.bindings[found.bindings.back()].var}));
    Match whole{std::vector<size_t>(outlined->function.body.bindings.size())};
    std::iota(whole.bindings.begin(), whole.bindings.end(), size_t{0});
    if (whole.bindings.size() != found.bindings.size()) return error("its sizes must be checked at run time");
    if (row.accepts) TENON_TRY(row.accepts(context_, module_, outlined->function, whole));
    return outlined;
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

  Context& context_;
  Module& module_;
  const Function& function_;
  const Block& block_;
  std::span<const Target> targets_;
  DataFlow flow_;
  std::vector<bool> taken_;
  Composites made_;
};

}  // namespace

Composites find_composites(Context& context, Module& module, const Function& function, const Block& block,
                           std::span<const Target> targets) {
  return Finder(context, module, function, block, targets).run();
}

}  // namespace tenon::compiler
