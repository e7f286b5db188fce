#include "compiler/ir/macs.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "compiler/ir/operator.h"
#include "runtime/reference/einsum.h"

namespace tenon::compiler {
namespace {

using OperandSizes = std::vector<int64_t>;

// OperandSizes that are not known count as 1.
OperandSizes sizes_of(const Module& module, const Function& function, const Atom& atom) {
  if (const auto* constant = std::get_if<ConstId>(&atom)) return module.constant(*constant).shape();
  const auto* var = std::get_if<VarId>(&atom);
  const TensorType* type = var ? function.type(*var).tensor() : nullptr;
  OperandSizes sizes;
  for (const Dim dim : type ? type->dims : Dims{}) sizes.push_back(dim.constant().value_or(1));
  return sizes;
}

int64_t elements_of(std::span<const int64_t> sizes) {
  int64_t all = 1;
  for (const int64_t size : sizes) all *= size;
  return all;
}

// The sizes of all letters, for each operand but one.
int64_t einsum_macs(const Apply& apply, std::span<const OperandSizes> args) {
  std::vector<int64_t> ranks;
  for (const OperandSizes& sizes : args) ranks.push_back(static_cast<int64_t>(sizes.size()));
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

}  // namespace

int64_t macs_of(const Module& module, const Function& function, VarId result, const Apply& apply) {
  const Operator& op = *apply.op;
  std::vector<OperandSizes> args;
  for (const Atom& arg : apply.args) args.push_back(sizes_of(module, function, arg));
  const auto elements = [&] { return elements_of(sizes_of(module, function, result)); };
  const auto each = [&](size_t i) { return args[i].empty() ? 0 : elements_of(std::span(args[i]).subspan(1)); };
  if (op.is(ops::kMatmul)) return args[0].empty() ? 0 : elements() * args[0].back();
  if (op.is_one_of({ops::kConv1d, ops::kConv2d, ops::kConv3d, ops::kDense})) return elements() * each(1);
  if (op.is_one_of({ops::kConv1dTranspose, ops::kConv2dTranspose, ops::kConv3dTranspose}))
    return elements_of(args[0]) * each(1);
  if (op.is_one_of({ops::kGru, ops::kGruRagged, ops::kLstm, ops::kLstmRagged, ops::kRnn, ops::kRnnRagged})) {
    // Each step of each sequence, x [T, N, I], is multiplied by the weights of the inputs and of the states.
    return args[0].size() < 2 ? 0 : args[0][0] * args[0][1] * (elements_of(args[1]) + elements_of(args[2]));
  }
  return op.is(ops::kEinsum) ? einsum_macs(apply, args) : 0;
}

}  // namespace tenon::compiler
