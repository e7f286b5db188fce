#include "compiler/pipeline/work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "compiler/ir/operator.h"

namespace tenon::compiler {
namespace {

int64_t size_of(const Dims& dims) {
  int64_t size = 1;
  for (const Dim dim : dims) size *= dim.constant().value_or(1);
  return size;
}

// The products of each element of the result.
int64_t products(const Module& module, const Function& function, const Apply& apply) {
  const auto dims = [&](size_t i) -> std::vector<int64_t> {
    if (const auto* constant = std::get_if<ConstId>(&apply.args[i])) return module.constant(*constant).shape();
    const auto* var = std::get_if<VarId>(&apply.args[i]);
    const TensorType* type = var ? function.type(*var).tensor() : nullptr;
    std::vector<int64_t> sizes;
    for (const Dim dim : type ? type->dims : Dims{}) sizes.push_back(dim.constant().value_or(1));
    return sizes;
  };
  const Operator& op = *apply.op;
  if (op.is(ops::kMatmul)) {
    const auto a = dims(0);
    return a.empty() ? 0 : a.back();
  }
  if (!op.is_one_of({ops::kConv1d, ops::kConv2d, ops::kConv3d, ops::kDense})) return 0;
  int64_t count = 1;  // of weights per output channel
  const auto weights = dims(1);
  for (size_t i = 1; i < weights.size(); ++i) count *= weights[i];
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
      const TensorType* type = apply ? function.type(binding.var).tensor() : nullptr;
      if (type) macs[function.target] += size_of(type->dims) * products(partitioned, function, *apply);
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
  std::string text;
  for (const auto& [target, count] : operators) {
    if (!target.empty())
      text += fmt::format("  {:<6} {} of {} operators{}\n", target, count, placements.size(), share(target));
  }
  if (on_cpu.empty()) return text;
  std::vector<std::pair<size_t, std::string>> most;
  for (const auto& [op, count] : on_cpu) most.emplace_back(count, op);
  std::ranges::sort(most, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> names;
  constexpr size_t kListed = 8;
  for (const auto& [count, op] : std::span(most).first(std::min(most.size(), kListed)))
    names.push_back(count == 1 ? op : fmt::format("{} {}", count, op));
  if (most.size() > kListed) names.emplace_back("...");
  return text + fmt::format("  {:<6} {} of {} operators{}: {}\n", "cpu", operators[""], placements.size(), share(""),
                            fmt::join(names, ", "));
}

}  // namespace tenon::compiler
