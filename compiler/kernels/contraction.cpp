// Matrix products and sums of products.
#include <map>

#include "compiler/kernels/lowerings.h"
#include "runtime/reference/einsum.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

// i8 sums up in i32, the others in their own dtype.
Expr factor(const Expr& x) { return loop::convert(x->dtype == DType::kI8 ? DType::kI32 : x->dtype, x); }

Values dense(const Operation& op) {
  return std::vector{op.emit.reduce(
      "dense", {.dims = op.dims(), .over = {op.arg(0).dims[1]}, .term = [x = op.arg(0), w = op.arg(1)](const Dims& at) {
                  return factor(x.at({at[0], at[2]})) * factor(w.at({at[1], at[2]}));
                }})};
}

Values matmul(const Operation& op) {
  Context& context = op.context();
  return std::vector{op.emit.reduce(
      "matmul", {.dims = op.dims(),
                 .over = {op.arg(0).dims.back()},
                 .term = [&context, a = op.arg(0), b = op.arg(1), rank = op.dims().size()](const Dims& at) {
                   Dims left(at.begin(), at.begin() + static_cast<ptrdiff_t>(rank)), right = left;
                   left[rank - 1] = at[rank];
                   right[rank - 2] = at[rank];
                   // A dim of 1 that is multiplied is no dim that is repeated: only those in front are.
                   const auto read = [&](const Value& value, const Dims& indices) {
                     Dims own(indices.end() - static_cast<ptrdiff_t>(value.rank()), indices.end());
                     for (size_t i = 0; i + 2 < own.size(); ++i) {
                       if (value.dims[i].constant() == 1) own[i] = context.dim(0);
                     }
                     return factor(value.at(own));
                   };
                   return read(a, left) * read(b, right);
                 }})};
}

Values einsum(const Operation& op) {
  std::vector<int64_t> ranks;
  for (const Value& arg : op.args) ranks.push_back(static_cast<int64_t>(arg.rank()));
  auto parsed = runtime::reference::Einsum::parse(op.text("equation"), ranks);
  if (!parsed) return std::unexpected(parsed.error());
  std::map<char, Dim> sizes;
  for (size_t n = 0; n < op.args.size(); ++n) {
    for (size_t d = 0; d < parsed->inputs[n].size(); ++d) sizes[parsed->inputs[n][d]] = op.arg(n).dims[d];
  }
  const std::string summed = parsed->summed();
  Dims over;
  for (const char axis : summed) over.push_back(sizes[axis]);
  const std::string axes = parsed->output + summed;
  const auto product = [args = op.args, inputs = parsed->inputs, axes](const Dims& at) {
    Expr result;
    for (size_t n = 0; n < args.size(); ++n) {
      Dims own;
      for (const char axis : inputs[n]) own.push_back(at[axes.find(axis)]);
      const Expr one = args[n].at(own);
      result = result ? result * one : one;
    }
    return result;
  };
  if (over.empty()) return op.expression(product);
  return std::vector{op.emit.reduce("einsum", {.dims = op.dims(), .over = over, .term = product})};
}

}  // namespace

std::span<const Lowering> contraction_lowerings() {
  static constexpr Lowering kLowerings[] = {{"dense", dense}, {"matmul", matmul}, {"einsum", einsum}};
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
