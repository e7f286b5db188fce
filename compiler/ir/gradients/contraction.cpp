// Gradients of dense layers, matrix products and sums of products: products of the same kind.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/gradients/rules.h"
#include "runtime/reference/einsum.h"

namespace tenon::compiler::gradients {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// A matrix product as a sum of products. Batch axes of size 1 in one argument alone have no letter there, so that its
// adjoint is summed over them.
Status matmul(GradientBuilder& g) {
  const Term dy = g.cotangent();
  const Dims all = dy.dims();
  if (!g.ok()) return g.status();
  if (all.size() + 1 > kLetters.size()) g.fail("the gradient of matmul supports at most 51 dims");
  if (!g.ok()) return g.status();
  const std::string result(kLetters.substr(0, all.size()));
  const char inner = kLetters[all.size()];
  std::string letters[2];
  std::vector<Term> args;
  for (size_t i = 0; i < 2; ++i) {
    const Term arg = g.arg(i);
    const Dims dims = arg.dims();
    std::vector<int64_t> repeated;
    for (size_t d = 0; d + 2 < dims.size(); ++d) {
      const size_t axis = all.size() - dims.size() + d;
      if (dims[d].constant() == 1 && all[axis].constant() != 1) repeated.push_back(static_cast<int64_t>(d));
      else letters[i] += result[axis];
    }
    const char row = result[all.size() - 2], column = result[all.size() - 1];
    letters[i] += i == 0 ? std::string{row, inner} : std::string{inner, column};
    args.push_back(repeated.empty() ? arg : arg.squeeze(std::move(repeated)));
  }
  if (g.wants(0)) {
    g.add(0, einsum(fmt::format("{},{}->{}", result, letters[1], letters[0]), dy, args[1]).reshape_to(g.arg(0).dims()));
  }
  if (g.wants(1)) {
    g.add(1, einsum(fmt::format("{},{}->{}", letters[0], result, letters[1]), args[0], dy).reshape_to(g.arg(1).dims()));
  }
  return g.status();
}

// The adjoint of an argument is the sum of products of dy and the other arguments over the axes that the argument
// lacks.
Status einsum_gradient(GradientBuilder& g) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < g.num_args(); ++i) ranks.push_back(g.arg(i).rank());
  if (!g.ok()) return g.status();
  auto equation = runtime::reference::Einsum::parse(string_attr(g, "equation"), ranks);
  if (!equation) return std::unexpected(equation.error());
  std::vector<std::string> terms = equation->inputs;
  std::string result = equation->output;
  // The axes of "..." get letters.
  std::string unused;
  for (const char letter : kLetters) {
    const auto has = [&](const std::string& term) { return term.find(letter) != std::string::npos; };
    if (std::ranges::none_of(terms, has)) unused += letter;
  }
  const auto new_letter = [&] {
    if (unused.empty()) g.fail("the gradient of einsum has more axes than letters");
    const char letter = unused.empty() ? 'a' : unused.back();
    if (!unused.empty()) unused.pop_back();
    return letter;
  };
  for (char hidden = '0'; hidden <= '9'; ++hidden) {
    if (std::ranges::none_of(terms, [&](const std::string& term) { return term.find(hidden) != std::string::npos; }))
      continue;
    const char letter = new_letter();
    for (std::string& term : terms) std::ranges::replace(term, hidden, letter);
    std::ranges::replace(result, hidden, letter);
  }
  for (size_t i = 0; i < g.num_args(); ++i) {
    if (!g.wants(i)) continue;
    std::string from = result;
    std::vector<Term> factors{g.cotangent()};
    for (size_t k = 0; k < g.num_args(); ++k) {
      if (k == i) continue;
      from += fmt::format(",{}", terms[k]);
      factors.push_back(g.arg(k));
    }
    // An axis that occurs twice is a diagonal: each further occurrence gets its own letter and a unit matrix.
    const Dims dims = g.arg(i).dims();
    std::string axes;
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const char letter = terms[i][d];
      axes += letter;
      if (terms[i].substr(0, d).find(letter) == std::string::npos) continue;
      axes.back() = new_letter();
      factors.push_back(unit_matrix(g, dims[d], g.arg(i).dtype()));
      from += fmt::format(",{}{}", letter, axes.back());
    }
    // An axis that occurs nowhere else was summed: the adjoint is the same along it.
    std::string to;
    std::vector<int64_t> summed;
    for (size_t d = 0; d < axes.size(); ++d) {
      if (from.find(axes[d]) == std::string::npos) summed.push_back(static_cast<int64_t>(d));
      else to += axes[d];
    }
    const Term adjoint = g.apply(ops::kEinsum, factors, {{"equation", fmt::format("{}->{}", from, to)}});
    g.add(i, (summed.empty() ? adjoint : adjoint.expand_dims(std::move(summed))).broadcast_to(dims));
  }
  return g.status();
}

// dy times the matrix of cofactors: the determinants without one row and one column, which exist where the inverse does
// not.
Status det(GradientBuilder& g) {
  if (!g.wants(0) || !g.ok()) return g.status();
  const Term x = g.arg(0);
  const int64_t rank = x.rank();
  Context& context = g.builder().context();
  const Dim size = x.dims().back();
  if (size.constant() == 0) return g.status();
  // Row i: all indices but i.
  const Term rows = indices_below(g, size),
             left = along(indices_below(g, context.maximum({context.subtract(size, context.dim(1)), context.dim(0)})),
                          1, 2);
  const Term others = left + less_equal(along(rows, 0, 2), left).cast(DType::kI64);
  const Term minors = gather(gather(x, others, rank - 1), others, rank - 2);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank - 2; ++i) axes.push_back(i);
  axes.insert(axes.end(), {rank - 2, rank, rank - 1, rank + 1});
  const Term parity = g.apply(ops::kModulo, {along(rows, 0, 2) + along(rows, 1, 2), g.scalar(2, DType::kI64)});
  const Term cofactors = g.apply(ops::kDet, {minors.transpose(axes)}) * (1 - parity * 2).cast(x.dtype());
  g.add(0, cofactors * g.cotangent().expand_dims({rank - 2, rank - 1}));
  return g.status();
}

constexpr GradientRow kContractions[] = {
    {ops::kDense,  // y = x w^T
     [](GradientBuilder& g) {
       if (g.wants(0)) g.add(0, einsum("nm,mk->nk", g.cotangent(), g.arg(1)));
       if (g.wants(1)) g.add(1, einsum("nm,nk->mk", g.cotangent(), g.arg(0)));
       return g.status();
     }},
    {ops::kMatmul, matmul},
    {ops::kDet, det},
    {ops::kEinsum, einsum_gradient},
};

}  // namespace

std::span<const GradientRow> contraction_gradients() { return kContractions; }

}  // namespace tenon::compiler::gradients
