// Dense layers, matrix products and sums of products.
#include <map>

#include "compiler/ir/operators/rules.h"
#include "runtime/reference/einsum.h"
#include "runtime/reference/product.h"

namespace tenon::compiler {
namespace {

using runtime::reference::kFactors, runtime::reference::product_dtype;

Expected<Type> dense(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 2));
  TENON_TRY(check_rank(in, 1, "w", 2));
  if (in.arg(0).dims[1] != in.arg(1).dims[1]) {
    return error(fmt::format("x has {} features, w takes {}: {}", in.context.str(in.arg(0).dims[1]),
                             in.context.str(in.arg(1).dims[1]), describe(in, {"x", "w"})));
  }
  return in.context.tensor(Dims{in.arg(0).dims[0], in.arg(1).dims[0]}, product_dtype(in.arg(0).dtype));
}

Expected<Type> matmul(const RuleInput& in) {
  const Dims &a = in.arg(0).dims, &b = in.arg(1).dims;
  if (a.size() < 2 || b.size() < 2) {
    return error(fmt::format("both must have at least 2 dims: {}", describe(in, {"a", "b"})));
  }
  if (a.back() != b[b.size() - 2]) {
    return error(fmt::format("a has {} columns, b has {} rows: {}", in.context.str(a.back()),
                             in.context.str(b[b.size() - 2]), describe(in, {"a", "b"})));
  }
  auto dims = broadcast(in, Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!dims) return forward_error(dims);
  dims->push_back(a[a.size() - 2]);
  dims->push_back(b.back());
  return in.context.tensor(std::move(*dims), product_dtype(in.arg(0).dtype));
}

Expected<Type> einsum(const RuleInput& in) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < in.args.size(); ++i) {
    ranks.push_back(in.arg(i).rank());
    if (in.arg(i).dtype == in.arg(0).dtype) continue;
    return error(fmt::format("all must have one dtype, found {} and {}", in.context.str(in.args[0]),
                             in.context.str(in.args[i])));
  }
  auto equation = runtime::reference::Einsum::parse(string_attr(in.attrs, "equation"), ranks);
  if (!equation) return forward_error(equation);
  std::map<char, Dim> sizes;
  for (size_t i = 0; i < in.args.size(); ++i) {
    for (size_t d = 0; d < equation->inputs[i].size(); ++d) {
      const char axis = equation->inputs[i][d];
      const Dim size = sizes.emplace(axis, in.arg(i).dims[d]).first->second;
      if (size == in.arg(i).dims[d]) continue;
      return error(fmt::format("axis {} of \"{}\" is {} and {}", axis, string_attr(in.attrs, "equation"),
                               in.context.str(size), in.context.str(in.arg(i).dims[d])));
    }
  }
  Dims dims;
  for (char axis : equation->output) dims.push_back(sizes.at(axis));
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

}  // namespace

std::vector<Operator> contraction_operators() {
  return {
      {"dense",
       "x [N, K] times the transpose of w [M, K]: [N, M]; i8 gives wrapping i32.",
       {{"x", kFactors}, Input::same("w")},
       {},
       dense,
       Pattern::kAnchor},
      {"matmul",
       "Matrix product of the last two dims, the others broadcast; i8 gives wrapping i32.",
       {{"a", kFactors}, Input::same("b")},
       {},
       matmul,
       Pattern::kAnchor},
      {"einsum",
       "Sums of products by an equation of a letter an axis, as \"bij,bjk->bik\": letters that the result lacks are "
       "summed over, \"...\" stands for the dims in front that have no letter. Integers wrap.",
       {{"...x", {DType::kI32, DType::kI64, DType::kF32, DType::kF64}}},
       {{"equation", AttrKind::kString, std::nullopt, "terms of the arguments, and -> that of the result"}},
       einsum,
       Pattern::kAnchor},
  };
}

}  // namespace tenon::compiler
