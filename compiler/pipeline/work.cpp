#include "compiler/pipeline/work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "compiler/ir/macs.h"

namespace tenon::compiler {
namespace {

// What runs code whose multiply-accumulates are not known: calls of loop functions and of libraries.
size_t uncounted_calls(const Module& module) {
  size_t count = 0;
  for_each_function(module, [&](Symbol, const Function& function) {
    for_each_binding(function.body, [&](const Binding& binding) {
      const auto* call = std::get_if<Call>(&binding.value);
      const auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
      const auto found = callee ? module.globals.find(*callee) : module.globals.end();
      count += found != module.globals.end() && !std::holds_alternative<Function>(found->second);
    });
  });
  return count;
}

std::string percent(int64_t part, int64_t whole) {
  return whole == 0
             ? ""
             : fmt::format(", {:.1f} % of the MACs", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::map<std::string, int64_t> macs_by_target(const Module& partitioned) {
  std::map<std::string, int64_t> macs;
  for_each_function(partitioned, [&](Symbol, const Function& function) {
    for_each_binding(function.body, [&](const Binding& binding) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (apply) macs[function.target] += macs_of(partitioned, function, binding.var, *apply);
    });
  });
  return macs;
}

std::string summarize(const Module& partitioned, std::span<const Placement> placements) {
  std::map<std::string, size_t> operators;
  std::map<std::string, size_t> on_cpu;
  for (const Placement& placement : placements) {
    ++operators[placement.target];
    if (placement.target.empty()) ++on_cpu[placement.op];
  }
  const std::map<std::string, int64_t> macs = macs_by_target(partitioned);
  int64_t all = 0;
  for (const auto& [target, count] : macs) all += count;
  const auto share = [&](const std::string& target) {
    const auto found = macs.find(target);
    return percent(found == macs.end() ? 0 : found->second, all);
  };
  size_t width = 6;
  for (const auto& [target, count] : operators) width = std::max(width, target.size());
  std::string text;
  for (const auto& [target, count] : operators) {
    if (!target.empty())
      text += fmt::format("  {:<{}} {} of {} operators{}\n", target, width, count, placements.size(), share(target));
  }
  if (const size_t calls = uncounted_calls(partitioned); calls > 0)
    text += fmt::format("  the MACs of {} call{} of loop functions and libraries are not known\n", calls,
                        calls == 1 ? "" : "s");
  if (on_cpu.empty()) return text;
  std::vector<std::pair<size_t, std::string>> most;
  for (const auto& [op, count] : on_cpu) most.emplace_back(count, op);
  std::ranges::sort(most, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> names;
  constexpr size_t kListed = 8;
  for (const auto& [count, op] : std::span(most).first(std::min(most.size(), kListed)))
    names.push_back(count == 1 ? op : fmt::format("{} {}", count, op));
  if (most.size() > kListed) names.emplace_back("...");
  return text + fmt::format("  {:<{}} {} of {} operators{}: {}\n", "cpu", width, operators[""], placements.size(),
                            share(""), fmt::join(names, ", "));
}

}  // namespace tenon::compiler
