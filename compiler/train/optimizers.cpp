#include "compiler/train/optimizers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::compiler {
namespace {

using Options = OptimizerOptions;
using State = std::vector<Term>;

Term decayed(const Options& options, const Term& weight, const Term& gradient) {
  return options.decay == 0 ? gradient : gradient + weight * options.decay;
}

Term power(double base, const Term& exponent) {
  Formula& f = exponent.formula();
  return f.apply(ops::kPower, {f.scalar(base, exponent.dtype()), exponent});
}

// Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
WeightUpdate adam(const Options& options, const Term& weight, const Term& gradient, const State& state,
                  const Term& rate, const Term& step) {
  const Term mean = state[0] * options.beta1 + gradient * (1 - options.beta1);
  const Term square = state[1] * options.beta2 + gradient * gradient * (1 - options.beta2);
  const Term unbiased = mean / (1 - power(options.beta1, step));
  const Term deviation = sqrt(square / (1 - power(options.beta2, step))) + options.epsilon;
  return {weight - rate * (unbiased / deviation), {mean, square}};
}

const std::vector<OptimizerRecord> kOptimizers{
    {.name = "sgd",
     .doc = "w - rate * g",
     .state = {},
     .update = [](const Options& options, const Term& w, const Term& g, const State&, const Term& rate,
                  const Term&) -> WeightUpdate {
       return {w - rate * decayed(options, w, g), {}};
     }},
    {.name = "momentum",
     .doc = "v' = momentum * v + g; w - rate * v'",
     .state = {"velocity"},
     .update = [](const Options& options, const Term& w, const Term& g, const State& state, const Term& rate,
                  const Term&) -> WeightUpdate {
       const Term velocity = state[0] * options.momentum + decayed(options, w, g);
       return {w - rate * velocity, {velocity}};
     }},
    {.name = "nesterov",
     .doc = "v' = momentum * v + g; w - rate * (g + momentum * v')",
     .state = {"velocity"},
     .update = [](const Options& options, const Term& w, const Term& g, const State& state, const Term& rate,
                  const Term&) -> WeightUpdate {
       const Term gradient = decayed(options, w, g);
       const Term velocity = state[0] * options.momentum + gradient;
       return {w - rate * (gradient + velocity * options.momentum), {velocity}};
     }},
    {.name = "adam",
     .doc = "means of g and g * g without bias; w - rate * m / (sqrt(s) + epsilon)",
     .state = {"mean", "square"},
     .update = [](const Options& options, const Term& w, const Term& g, const State& state, const Term& rate,
                  const Term& step) -> WeightUpdate {
       return adam(options, w, decayed(options, w, g), state, rate, step);
     }},
    {.name = "adamw",  // Loshchilov and Hutter, "Decoupled weight decay regularization", 2019
     .doc = "adam, whose decay is subtracted from weights: w * (1 - rate * decay)",
     .state = {"mean", "square"},
     .update = [](const Options& options, const Term& w, const Term& g, const State& state, const Term& rate,
                  const Term& step) -> WeightUpdate {
       return adam(options, options.decay == 0 ? w : w * (1 - rate * options.decay), g, state, rate, step);
     }},
    {.name = "rmsprop",
     .doc = "s' = beta2 * s + (1 - beta2) * g * g; w - rate * g / (sqrt(s') + epsilon)",
     .state = {"square"},
     .update = [](const Options& options, const Term& w, const Term& g, const State& state, const Term& rate,
                  const Term&) -> WeightUpdate {
       const Term gradient = decayed(options, w, g);
       const Term square = state[0] * options.beta2 + gradient * gradient * (1 - options.beta2);
       return {w - rate * (gradient / (sqrt(square) + options.epsilon)), {square}};
     }},
};

}  // namespace

const std::vector<OptimizerRecord>& optimizers() { return kOptimizers; }

Expected<const OptimizerRecord*> find_optimizer(std::string_view name) {
  const auto found = std::ranges::find(kOptimizers, name, &OptimizerRecord::name);
  if (found != kOptimizers.end()) return &*found;
  std::vector<std::string_view> names;
  for (const OptimizerRecord& record : kOptimizers) names.push_back(record.name);
  return error(fmt::format("there is no optimizer '{}'", name), {}, fmt::format("there are {}", fmt::join(names, ", ")),
               Fault::kUsage);
}

std::vector<Term> clipped(const std::vector<Term>& gradients, double norm) {
  std::optional<Term> sum;
  for (const Term& gradient : gradients) {
    const Term square = (gradient * gradient).reduce(ops::kSum, {});
    sum = sum ? *sum + square : square;
  }
  Formula& f = sum->formula();
  // 1 where the norm is small, without a division by zero.
  const Term root = sqrt(*sum);
  const Term largest = f.apply(ops::kMaximum, {root, f.scalar(norm, root.dtype())});
  std::vector<Term> scaled;
  for (const Term& gradient : gradients) scaled.push_back(gradient * (f.scalar(norm, root.dtype()) / largest));
  return scaled;
}

}  // namespace tenon::compiler
