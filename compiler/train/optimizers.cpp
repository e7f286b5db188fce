#include "compiler/train/optimizers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/ir/text.h"
#include "compiler/ir/text/merge.h"
#include "support/try.h"

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

namespace {

// A file's @update, as a function of the module.
class UserOptimizer {
 public:
  UserOptimizer(Context& context, Module& module, const std::string& file)
      : context_(context), module_(module), file_(file) {}

  Expected<Optimizer> load() {
    TENON_TRY_ASSIGN(read, compiler::load(context_, file_));
    update_ = context_.symbol("update");
    if (!read->function(update_))
      return error("the module has no function @update", file_, "tenon train --help tells its type");
    TENON_TRY(rename(*read));
    TENON_TRY_ASSIGN(state, state_of(*read->function(update_)));
    const std::string conflict = merge(context_, module_, *read);
    if (!conflict.empty())
      return error(fmt::format("{} has another definition in the model", conflict), file_, "give it another name");
    const auto update = [name = update_](const Term& weight, const Term& gradient, const std::vector<Term>& state,
                                         const Term& rate, const Term& step) -> WeightUpdate {
      Formula& f = weight.formula();
      if (weight.dtype() != DType::kF32) {
        f.fail(fmt::format("the weight is {}, and the optimizer's function takes f32", runtime::name(weight.dtype())));
        return {weight, state};
      }
      Atoms args{weight.reshape({-1}).atom(), gradient.reshape({-1}).atom()};
      for (const Term& tensor : state) args.push_back(tensor.reshape({-1}).atom());
      args.push_back(rate.atom());
      args.push_back(step.atom());
      if (!f.ok()) return {weight, state};
      const Term all = f.term(f.builder().call(name, std::move(args)));
      WeightUpdate made{f.field(all, 0).reshape_to(weight.dims()), {}};
      for (uint32_t i = 0; i < state.size(); ++i) made.state.push_back(f.field(all, i + 1).reshape_to(weight.dims()));
      return made;
    };
    return Optimizer{std::move(*state), update};
  }

 private:
  // Gives the functions names that the module does not have.
  Status rename(Module& read) {
    std::vector<Symbol> names;
    for (const auto& [name, global] : read.globals) names.push_back(name);
    for (const Symbol name : names) {
      Symbol unused = context_.symbol(fmt::format("optimizer.{}", context_.name(name)));
      for (int i = 1; module_.globals.contains(unused) || read.globals.contains(unused); ++i)
        unused = context_.symbol(fmt::format("optimizer.{}_{}", context_.name(name), i));
      rename_global(read, name, unused);
      if (name == update_) update_ = unused;
    }
    return {};
  }

  Expected<std::vector<std::string>> state_of(const Function& update) const {
    const auto wrong = [&](std::string what) {
      return error(std::move(what), file_,
                   "@update[n](w, g, states, rate, step) -> (w, states): vectors [n] of f32, and two scalars of f32");
    };
    const size_t params = update.params.size();
    const auto* results = update.result.tuple();
    if (params < 4 || !results || results->fields.size() != params - 3) {
      return wrong(fmt::format("@update has {} parameters and returns {}", params, context_.str(update.result)));
    }
    const Type scalar = context_.tensor(Dims{}, DType::kF32);
    const TensorType* vector = update.type(update.params[0]).tensor();
    const bool is_any = vector && vector->rank() == 1 && vector->dtype == DType::kF32 && update.dims.size() == 1 &&
                        vector->dims[0] == context_.dim(update.dims[0]);
    if (!is_any) return wrong(fmt::format("@update takes {}", context_.str(update.type(update.params[0]))));
    std::vector<std::string> state;
    for (size_t i = 0; i < params; ++i) {
      const VarInfo& info = update.info(update.params[i]);
      const Type wanted = i + 2 < params ? update.type(update.params[0]) : scalar;
      if (info.type != wanted)
        return wrong(fmt::format("the parameter '{}' of @update is {}, must be {}", context_.name(info.name),
                                 context_.str(info.type), context_.str(wanted)));
      if (i > 1 && i + 2 < params) state.emplace_back(context_.name(info.name));
    }
    for (const Type field : results->fields) {
      const TensorType* tensor = field.tensor();
      if (tensor && tensor->rank() == 1 && tensor->dtype == DType::kF32) continue;
      return wrong(fmt::format("@update returns {}", context_.str(update.result)));
    }
    return state;
  }

  Context& context_;
  Module& module_;
  const std::string& file_;
  Symbol update_{};
};

}  // namespace

Expected<Optimizer> make_optimizer(Context& context, Module& module, const std::string& name,
                                   const OptimizerOptions& options) {
  if (name.ends_with(".tn") || name.ends_with(".tnb")) return UserOptimizer(context, module, name).load();
  const auto found = std::ranges::find(kOptimizers, name, &OptimizerRecord::name);
  if (found == kOptimizers.end()) {
    std::vector<std::string_view> names;
    for (const OptimizerRecord& record : kOptimizers) names.push_back(record.name);
    return error(fmt::format("there is no optimizer '{}'", name), {},
                 fmt::format("there are {}, and your own in a file, as optimizer.tn", fmt::join(names, ", ")),
                 Fault::kUsage);
  }
  return Optimizer{{found->state.begin(), found->state.end()},
                   [update = found->update, options](
                       const Term& weight, const Term& gradient, const std::vector<Term>& state, const Term& rate,
                       const Term& step) { return update(options, weight, gradient, state, rate, step); }};
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
