// Dense layers, matrix products and sums of products.
#include <map>

#include "compiler/ir/operators/rules.h"
#include "runtime/reference/einsum.h"
#include "runtime/reference/product.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::reference::kFactors, runtime::reference::product_dtype;

Expected<Type> dense(const RuleInput& in) {
  TENON_TRY(check_rank(in, 0, "x", 2));
  TENON_TRY(check_rank(in, 1, "w", 2));
  TENON_TRY(require_same(in, 0, 1, 1, 1,
                         fmt::format("x has {} features, w expects {}", in.context.str(in.arg(0).dims[1]),
                                     in.context.str(in.arg(1).dims[1]))));
  return in.context.tensor(Dims{in.arg(0).dims[0], in.arg(1).dims[0]}, product_dtype(in.arg(0).dtype));
}

Expected<Type> matmul(const RuleInput& in) {
  const Dims &a = in.arg(0).dims, &b = in.arg(1).dims;
  if (a.size() < 2 || b.size() < 2) {
    return error(fmt::format("both arguments must have at least 2 dims: {}", describe(in, {"a", "b"})));
  }
  TENON_TRY(require_same(
      in, 0, a.size() - 1, 1, b.size() - 2,
      fmt::format("a has {} columns, b has {} rows", in.context.str(a.back()), in.context.str(b[b.size() - 2]))));
  TENON_TRY_ASSIGN(dims, broadcast(in, Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2)));
  dims->push_back(a[a.size() - 2]);
  dims->push_back(b.back());
  return in.context.tensor(std::move(*dims), product_dtype(in.arg(0).dtype));
}

Expected<Type> einsum(const RuleInput& in) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < in.args.size(); ++i) {
    ranks.push_back(in.arg(i).rank());
    if (in.arg(i).dtype == in.arg(0).dtype) continue;
    return error(fmt::format("all arguments must have the same dtype, found {} and {}", in.context.str(in.args[0]),
                             in.context.str(in.args[i])));
  }
  TENON_TRY_ASSIGN(equation, runtime::reference::Einsum::parse(string_attr(in.attrs, "equation"), ranks));
  std::map<char, Dim> sizes;  // a constant, where an argument has one
  const auto for_each_axis = [&](auto&& visit) -> Status {
    for (size_t i = 0; i < in.args.size(); ++i) {
      for (size_t d = 0; d < equation->inputs[i].size(); ++d) {
        TENON_TRY(visit(equation->inputs[i][d], i, d, in.arg(i).dims[d]));
      }
    }
    return {};
  };
  TENON_TRY(for_each_axis([&](char axis, size_t, size_t, Dim size) -> Status {
    Dim& entry = sizes.emplace(axis, size).first->second;
    if (!entry.constant() && size.constant()) entry = size;
    return {};
  }));
  TENON_TRY(for_each_axis([&](char axis, size_t i, size_t d, Dim size) {
    return require_size(in, i, d, sizes.at(axis),
                        fmt::format("axis {} of \"{}\" is {} and {}", axis, string_attr(in.attrs, "equation"),
                                    in.context.str(sizes.at(axis)), in.context.str(size)));
  }));
  Dims dims;
  for (char axis : equation->output) dims.push_back(sizes.at(axis));
  return in.context.tensor(std::move(dims), in.arg(0).dtype);
}

Expected<Type> det(const RuleInput& in) {
  const Dims& dims = in.arg(0).dims;
  if (dims.size() < 2) return error(fmt::format("x must have at least 2 dims: {}", describe(in, {"x"})));
  const size_t rows = dims.size() - 2;
  TENON_TRY(require_same(in, 0, rows, 0, rows + 1,
                         fmt::format("the matrices have {} rows and {} columns", in.context.str(dims[rows]),
                                     in.context.str(dims[rows + 1]))));
  return in.context.tensor(Dims(dims.begin(), dims.end() - 2), in.arg(0).dtype);
}

// The scheme of dense: both arguments have two dims and the same dtype.
bool of_matrices(const SchemeInput& in) {
  for (size_t i : {size_t{0}, size_t{1}}) {
    const TensorType* other = in.args[1 - i].tensor();
    if (other && in.args[i].unknown()) in.args[i] = of_rank(in, 2, other->dtype);
  }
  return true;
}

// The scheme of matmul: where one argument is a matrix, the other argument has the rank of the result.
bool of_product(const SchemeInput& in) {
  const TensorType* result = in.result.tensor();
  bool matrix = false;
  for (size_t i : {size_t{0}, size_t{1}}) {
    const TensorType* other = in.args[1 - i].tensor();
    if (!other || other->rank() != 2) continue;
    matrix = true;
    if (result && in.args[i].unknown()) in.args[i] = of_rank(in, result->dims.size(), other->dtype);
  }
  return matrix;
}

}  // namespace

std::vector<Operator> contraction_operators() {
  return {
      {.name = "dense",
       .documentation = "x [N, K] times the transpose of w [M, K]: [N, M]; i8 accumulates in wrapping i32.",
       .inputs = {{"x", kFactors}, Input::same("w")},
       .rule = dense,
       .pattern = OpPattern::kAnchor,
       .scheme = of_matrices,
       .continuous = true},
      {.name = "matmul",
       .documentation = "Matrix product of the last two dims, the others broadcast; i8 accumulates in wrapping i32.",
       .inputs = {{"a", kFactors}, Input::same("b")},
       .rule = matmul,
       .pattern = OpPattern::kAnchor,
       .scheme = of_product,
       .continuous = true},
      {.name = "det",
       .documentation = "The determinant of the square matrices in the last two dims.",
       .inputs = {{"x", runtime::kReals}},
       .rule = det,
       .continuous = true,
       .interpreted = "the loop level has no elimination with pivots"},
      {.name = "einsum",
       .documentation =
           "Sums of products by an equation with a letter per axis, as \"bij,bjk->bik\": axes whose letters are "
           "not in the "
           "result are summed, \"...\" stands for leading dims without a letter. Integers wrap.",
       .inputs = {{"...x", runtime::DTypes{DType::kI32, DType::kI64} | runtime::kReals}},
       .attributes = {{"equation", AttrKind::kString, std::nullopt,
                       "terms of the arguments, and after -> the term of the result"}},
       .rule = einsum,
       .pattern = OpPattern::kAnchor,
       .continuous = true,
       .samples = SampleArguments::equation()},
  };
}

}  // namespace tenon::compiler
