// Converters of ONNX's losses and of one step of its training algorithms, as formulas.
#include <fmt/format.h>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {
namespace {

// The loss of log probabilities x [N, C, ...] and classes [N, ...]. An ignored class has weight 0.
Term negative_log_likelihood(NodeFormula& f, const Term& x, std::optional<int64_t> ignored,
                             const std::string& reduction) {
  Dims dims = x.dims();
  if (dims.size() > 1) dims.erase(dims.begin() + 1);
  Term classes = f.checked(f.input(1), dims);
  std::optional<Term> weight, skipped;
  if (ignored) {
    skipped = f.apply(ops::kEqual, {classes, f.scalar(static_cast<double>(*ignored), classes.dtype())});
    classes = select(*skipped, f.scalar(0, classes.dtype()), classes);
  }
  if (f.node().has_input(2)) weight = gather(f.input(2), classes, 0);
  if (skipped) {
    weight = select(*skipped, f.scalar(0, x.dtype()), weight ? *weight : f.scalar(1, x.dtype()));
  }
  const Term picked = f.apply(ops::kGatherElements, {x, classes.expand_dims({1})}, {{"axis", int64_t{1}}}).squeeze({1});
  const Term loss = weight ? -picked * *weight : -picked;
  if (reduction == "none") return loss;
  if (reduction == "sum") return loss.reduce(ops::kSum, {});
  f.expect(reduction == "mean", fmt::format("the reduction '{}' is not supported, only none, sum and mean", reduction));
  return weight ? loss.reduce(ops::kSum, {}) / weight->reduce(ops::kSum, {}) : loss.reduce(ops::kMean, {});
}

template <bool of_logits>
Status log_likelihood_loss(NodeImport& node) {
  TENON_TRY_ASSIGN(reduction, node.string("reduction", "mean"));
  std::optional<int64_t> ignored;
  if (node.has("ignore_index")) {
    TENON_TRY_ASSIGN(given, node.integer("ignore_index"));
    ignored = *given;
  }
  NodeFormula f(node);
  Term x = f.input(0);
  if (of_logits) x = f.apply(ops::kLogSoftmax, {x}, {{"axis", int64_t{1}}});
  const Term loss = negative_log_likelihood(f, x, ignored, *reduction);
  return f.results({loss, of_logits ? std::optional(x) : std::nullopt});
}

// The inputs of an algorithm that updates `count` tensors, each with `states` tensors: R, T, all tensors, all
// gradients, all states of the first kind, ...
struct Update {
  Term rate, step;
  std::vector<std::vector<Term>> groups;

  size_t count() const { return groups[0].size(); }
  Status finish(NodeFormula& f, const std::vector<std::vector<Term>>& updated) const {
    std::vector<std::optional<Term>> all;
    for (const auto& group : updated) all.insert(all.end(), group.begin(), group.end());
    return f.results(all);
  }
};
Update read_update(NodeFormula& f, size_t states) {
  const size_t kinds = states + 2, given = f.node().inputs() - 2;
  f.expect(given > 0 && given % kinds == 0,
           fmt::format("expected {} tensors for each tensor to update, found {} in total", kinds, given));
  Update update{f.input(0), f.input(1), std::vector<std::vector<Term>>(kinds)};
  for (size_t i = 0; i < given; ++i)
    update.groups[i / std::max<size_t>(given / kinds, 1) % kinds].push_back(f.input(i + 2));
  return update;
}

// The gradient of the tensor, with that of the penalty norm / 2 * |x|^2.
Term regularized(const Term& x, const Term& gradient, double norm) {
  return norm == 0 ? gradient : x * norm + gradient;
}

Term is_positive(NodeFormula& f, const Term& x) { return f.apply(ops::kGreater, {x, f.scalar(0, x.dtype())}); }

Status adagrad(NodeImport& node) {
  TENON_TRY_ASSIGN(norm, node.real("norm_coefficient", 0.0));
  TENON_TRY_ASSIGN(decay, node.real("decay_factor", 0.0));
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-6));
  NodeFormula f(node);
  const Update update = read_update(f, 1);
  const Term rate = update.rate / (update.step.cast(update.rate.dtype()) * *decay + 1);
  std::vector<std::vector<Term>> updated(2);
  for (size_t i = 0; i < update.count() && f.ok(); ++i) {
    const Term x = update.groups[0][i], gradient = regularized(x, update.groups[1][i], *norm);
    const Term squares = update.groups[2][i] + gradient * gradient;
    updated[0].push_back(x - rate.cast(x.dtype()) * gradient / (sqrt(squares) + *epsilon));
    updated[1].push_back(squares);
  }
  return update.finish(f, updated);
}

Status adam(NodeImport& node) {
  TENON_TRY_ASSIGN(norm, node.real("norm_coefficient", 0.0));
  TENON_TRY_ASSIGN(after, node.real("norm_coefficient_post", 0.0));
  TENON_TRY_ASSIGN(alpha, node.real("alpha", 0.9));
  TENON_TRY_ASSIGN(beta, node.real("beta", 0.999));
  TENON_TRY_ASSIGN(epsilon, node.real("epsilon", 1e-6));
  NodeFormula f(node);
  const Update update = read_update(f, 2);
  const Term rate = update.rate, step = update.step.cast(rate.dtype());
  const auto missing = [&](double factor) {  // 1 - factor^step
    return 1.0 - f.apply(ops::kPower, {f.scalar(factor, rate.dtype()), step});
  };
  const Term adjusted = select(is_positive(f, step), rate * sqrt(missing(*beta)) / missing(*alpha), rate);
  std::vector<std::vector<Term>> updated(3);
  for (size_t i = 0; i < update.count() && f.ok(); ++i) {
    const Term x = update.groups[0][i], gradient = regularized(x, update.groups[1][i], *norm);
    const Term mean = update.groups[2][i] * *alpha + gradient * (1 - *alpha);
    const Term squares = update.groups[3][i] * *beta + gradient * gradient * (1 - *beta);
    const Term moved = x - adjusted.cast(x.dtype()) * mean / (sqrt(squares) + *epsilon);
    updated[0].push_back(*after == 0 ? moved : moved * (1 - *after));
    updated[1].push_back(mean);
    updated[2].push_back(squares);
  }
  return update.finish(f, updated);
}

Status momentum(NodeImport& node) {
  TENON_TRY_ASSIGN(norm, node.real("norm_coefficient"));
  TENON_TRY_ASSIGN(alpha, node.real("alpha"));
  TENON_TRY_ASSIGN(beta, node.real("beta"));
  TENON_TRY_ASSIGN(mode, node.string("mode", ""));
  if (*mode != "standard" && *mode != "nesterov") {
    return node.fail(fmt::format("the mode '{}' is not supported, only standard and nesterov", *mode));
  }
  NodeFormula f(node);
  const Update update = read_update(f, 1);
  const Term rate = update.rate;
  const Term share = select(is_positive(f, update.step), f.scalar(*beta, rate.dtype()), f.scalar(1, rate.dtype()));
  std::vector<std::vector<Term>> updated(2);
  for (size_t i = 0; i < update.count() && f.ok(); ++i) {
    const Term x = update.groups[0][i], gradient = regularized(x, update.groups[1][i], *norm);
    const Term velocity = update.groups[2][i] * *alpha + share.cast(x.dtype()) * gradient;
    const Term direction = *mode == "nesterov" ? gradient + velocity * *alpha : velocity;
    updated[0].push_back(x - rate.cast(x.dtype()) * direction);
    updated[1].push_back(velocity);
  }
  return update.finish(f, updated);
}

}  // namespace

std::span<const Converter> loss_converters() {
  static constexpr Converter kTable[] = {
      {"ai.onnx.preview.training.Adagrad", 5, 4096, adagrad},
      {"ai.onnx.preview.training.Adam", 6, 4096, adam},
      {"ai.onnx.preview.training.Momentum", 5, 4096, momentum},
      {"NegativeLogLikelihoodLoss", 2, 3, log_likelihood_loss<false>},
      {"SoftmaxCrossEntropyLoss", 2, 3, log_likelihood_loss<true>},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
