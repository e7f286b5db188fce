#include "compiler/pipeline/work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "compiler/ir/operator.h"
#include "runtime/reference/einsum.h"

namespace tenon::compiler {
namespace {

using Sizes = std::vector<int64_t>;

// Sizes that are not known count as 1.
Sizes sizes_of(const Module& module, const Function& function, const Atom& atom) {
  if (const auto* constant = std::get_if<ConstId>(&atom)) return module.constant(*constant).shape();
  const auto* var = std::get_if<VarId>(&atom);
  const TensorType* type = var ? function.type(*var).tensor() : nullptr;
  Sizes sizes;
  for (const Dim dim : type ? type->dims : Dims{}) sizes.push_back(dim.constant().value_or(1));
  return sizes;
}

int64_t product(std::span<const int64_t> sizes) {
  int64_t all = 1;
  for (const int64_t size : sizes) all *= size;
  return all;
}

// The sizes of all letters, for each operand but one.
int64_t einsum_macs(const Apply& apply, std::span<const Sizes> args) {
  std::vector<int64_t> ranks;
  for (const Sizes& sizes : args) ranks.push_back(static_cast<int64_t>(sizes.size()));
  const auto einsum = runtime::reference::Einsum::parse(string_attr(apply.attrs, "equation"), ranks);
  if (!einsum) return 0;
  std::map<char, int64_t> letters;
  for (size_t i = 0; i < args.size(); ++i) {
    for (size_t axis = 0; axis < args[i].size(); ++axis) {
      int64_t& size = letters[einsum->inputs[i][axis]];
      size = std::max(size, args[i][axis]);
    }
  }
  int64_t count = static_cast<int64_t>(args.size()) - 1;
  for (const auto& [letter, size] : letters) count *= size;
  return count;
}

// The multiply-accumulates of one call of the operator.
int64_t macs_of(const Module& module, const Function& function, const Binding& binding, const Apply& apply) {
  const Operator& op = *apply.op;
  std::vector<Sizes> args;
  for (const Atom& arg : apply.args) args.push_back(sizes_of(module, function, arg));
  const auto result = [&] { return product(sizes_of(module, function, binding.var)); };
  const auto each = [&](size_t i) { return args[i].empty() ? 0 : product(std::span(args[i]).subspan(1)); };
  if (op.is(ops::kMatmul)) return args[0].empty() ? 0 : result() * args[0].back();
  if (op.is_one_of({ops::kConv1d, ops::kConv2d, ops::kConv3d, ops::kDense})) return result() * each(1);
  if (op.is_one_of({ops::kConv1dTranspose, ops::kConv2dTranspose, ops::kConv3dTranspose}))
    return product(args[0]) * each(1);
  if (op.is_one_of({ops::kGru, ops::kGruRagged, ops::kLstm, ops::kLstmRagged, ops::kRnn, ops::kRnnRagged})) {
    // Each step of each sequence, x [T, N, I], is multiplied by the weights of the inputs and of the states.
    return args[0].size() < 2 ? 0 : args[0][0] * args[0][1] * (product(args[1]) + product(args[2]));
  }
  return op.is(ops::kEinsum) ? einsum_macs(apply, args) : 0;
}

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
      if (apply) macs[function.target] += macs_of(partitioned, function, binding, *apply);
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
  return text + fmt::format("  {:<6} {} of {} operators{}: {}\n", "cpu", operators[""], placements.size(), share(""),
                            fmt::join(names, ", "));
}

}  // namespace tenon::compiler
