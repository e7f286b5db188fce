#include "compiler/train/step.h"

#include <fmt/format.h>

#include "compiler/gradient/adjoints.h"
#include "compiler/ir/adjoint.h"
#include "runtime/train/names.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::kLabels, runtime::kRate, runtime::kStatePrefix, runtime::kStep, runtime::kWeightPrefix;

// The mean over the rows of scores [N, C] of -log(softmax(scores))[label].
Term cross_entropy(const Term& scores, const Term& labels) {
  Formula& f = scores.formula();
  const Term logs = f.apply(ops::kLogSoftmax, {scores}, {{"axis", int64_t{1}}});
  const Term picked = f.apply(ops::kGatherElements, {logs, labels.expand_dims({1})}, {{"axis", int64_t{1}}});
  return -picked.reduce(ops::kMean, {});
}

Term mean_square_error(const Term& result, const Term& labels) {
  const Term difference = result - labels;
  return (difference * difference).reduce(ops::kMean, {});
}

class StepMaker {
 public:
  StepMaker(Context& context, Module& module, const std::vector<LiftedParameter>& weights, const StepOptions& options)
      : context_(context), module_(module), weights_(weights), options_(options) {}

  Status make() {
    TENON_TRY_ASSIGN(optimizer, make_optimizer(context_, module_, options_.optimizer, options_.numbers));
    model_ = unused("model"), loss_ = unused("loss");
    rename_global(module_, context_.symbol("main"), model_);
    TENON_TRY(declare_adjoints(context_, module_));
    TENON_TRY(make_loss());
    return make_step(*optimizer);
  }

 private:
  Symbol unused(std::string_view name) const {
    for (int i = 0;; ++i) {
      const Symbol symbol = context_.symbol(i == 0 ? std::string(name) : fmt::format("{}_{}", name, i));
      if (!module_.globals.contains(symbol)) return symbol;
    }
  }

  // The type of labels, for the type of a result.
  Expected<Type> labels_type(Type result) const {
    const TensorType* tensor = result.tensor();
    const std::string found = fmt::format("the model's first result is {}", context_.str(result));
    if (!tensor || !runtime::kReals.contains(tensor->dtype))
      return error(fmt::format("{}: a loss needs a tensor of floats", found));
    if (options_.loss == "mse") return result;
    if (options_.loss != "cross_entropy") {
      return error(fmt::format("there is no loss '{}'", options_.loss), {}, "there are cross_entropy and mse",
                   Fault::kUsage);
    }
    if (tensor->rank() != 2) {
      return error(fmt::format("{}: cross_entropy needs scores [N, C], one row for each sample", found), {},
                   "--loss mse takes a result of any shape", Fault::kUsage);
    }
    return context_.tensor(Dims{tensor->dims[0]}, DType::kI64);
  }

  // loss(weights, inputs, labels)
  Status make_loss() {
    // The body of the model itself, and not a call of it: so the derivative of a straight line keeps no tape.
    Function function = *module_.function(model_);
    const Type result = function.result;
    for (const VarId param : function.params) {
      if (!function.type(param).tensor()) {
        return error(fmt::format("the input '{}' is {}: training takes tensors",
                                 context_.name(function.info(param).name), context_.str(function.type(param))));
      }
    }
    Builder builder(context_, module_, function);
    const Type first = result.tuple() && !result.tuple()->fields.empty() ? result.tuple()->fields[0] : result;
    // Sizes that the inputs do not determine, as the number of a loop's results, are those of the labels.
    gradient::DimNames names(module_);
    const Type opened = context_.map_sizes(first, [&](Dim dim) {
      if (!dim.erased()) return dim;
      function.dims.push_back(names.fresh(context_));
      return context_.dim(function.dims.back());
    });
    TENON_TRY_ASSIGN(type, labels_type(opened));
    const Atom labels = builder.param(*type, kLabels);
    Atom scores = function.body.result;
    if (first != result) {
      TENON_TRY_ASSIGN(field, builder.project(scores, 0));
      scores = *field;
    }
    if (opened != first) {
      TENON_TRY_ASSIGN(cast, builder.bind(Cast{scores, opened, {}}, Symbol{}));
      scores = *cast;
    }
    Formula f(builder);
    const Term x(f, scores), y(f, labels);
    const Term loss = options_.loss == "mse" ? mean_square_error(x, y) : cross_entropy(x, y);
    TENON_TRY(f.status());
    builder.finish(loss.atom());
    module_.globals.emplace(loss_, std::move(function));
    return {};
  }

  // Of an input of the step, or the labels.
  Expected<Type> type_of_all_parts(const Function& loss, VarId param) const {
    const Type type = loss.type(param);
    if (options_.parts == 1) return type;
    const auto size = type.tensor()->dims.empty() ? std::nullopt : type.tensor()->dims[0].constant();
    if (!size || *size > (int64_t{1} << 40)) {
      return error(fmt::format("the input '{}' is {}: samples are computed in parts where its first axis counts them",
                               context_.name(loss.info(param).name), context_.str(type)),
                   {}, "omit --accumulate", Fault::kUsage);
    }
    Dims dims = type.tensor()->dims;
    dims[0] = context_.dim(*size * options_.parts);
    return context_.tensor(dims, type.tensor()->dtype);
  }

  // Adds the loss and the gradients of the samples that `args` has.
  Status add_part(Formula& f, Atoms args, std::optional<Term>& value, std::vector<Term>& gradients) const {
    Builder& builder = f.builder();
    std::vector<uint32_t> wrt;
    for (uint32_t i = 0; i < weights_.size(); ++i) wrt.push_back(i);
    TENON_TRY_ASSIGN(both, builder.bind(Gradient{Call{loss_, std::move(args), {}}, wrt}, Symbol{}));
    TENON_TRY_ASSIGN(loss, builder.project(*both, 0, "loss"));
    TENON_TRY_ASSIGN(all, builder.project(*both, 1));
    value = value ? *value + Term(f, *loss) : Term(f, *loss);
    for (uint32_t i = 0; i < weights_.size(); ++i) {
      TENON_TRY_ASSIGN(gradient, builder.project(*all, i));
      if (gradients.size() == i) gradients.emplace_back(f, *gradient);
      else gradients[i] = gradients[i] + Term(f, *gradient);
    }
    return {};
  }

  Status make_step(const Optimizer& optimizer) {
    const Function& loss = *module_.function(loss_);
    Function function;
    function.dims = loss.dims;
    function.bounds = loss.bounds;
    Builder builder(context_, module_, function);
    Formula f(builder);
    std::vector<Term> weights;
    std::vector<std::vector<Term>> states;
    for (size_t i = 0; i < weights_.size(); ++i) {
      weights.emplace_back(
          f, builder.param(loss.type(loss.params[i]), fmt::format("{}{}", kWeightPrefix, weights_[i].name)));
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      states.emplace_back();
      for (const std::string& kind : optimizer.state) {
        states.back().emplace_back(
            f, builder.param(loss.type(loss.params[i]), fmt::format("{}{}.{}", kStatePrefix, weights_[i].name, kind)));
      }
    }
    const Type scalar = context_.tensor(Dims{}, DType::kF32);
    const Term rate(f, builder.param(scalar, kRate)), step(f, builder.param(scalar, kStep));
    std::vector<Term> inputs;
    for (size_t i = weights_.size(); i < loss.params.size(); ++i) {
      TENON_TRY_ASSIGN(type, type_of_all_parts(loss, loss.params[i]));
      inputs.emplace_back(f, builder.param(*type, context_.name(loss.info(loss.params[i]).name)));
    }
    std::optional<Term> value;
    std::vector<Term> gradients;
    for (int64_t part = 0; part < options_.parts; ++part) {
      Atoms args;
      for (const Term& weight : weights) args.push_back(weight.atom());
      for (const Term& input : inputs) {
        const int64_t size = options_.parts == 1 ? 0 : *input.size(0) / options_.parts;
        args.push_back(options_.parts == 1 ? input.atom() : input.slice(0, part * size, (part + 1) * size).atom());
      }
      TENON_TRY(f.status());
      TENON_TRY(add_part(f, std::move(args), value, gradients));
    }
    if (options_.parts > 1) {
      const double share = 1 / static_cast<double>(options_.parts);
      value = *value * share;
      for (Term& gradient : gradients) gradient = gradient * share;
    }
    if (options_.clip > 0) gradients = clipped(gradients, options_.clip);
    Atoms results{value->atom()}, new_states;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const DType dtype = weights[i].dtype();
      const auto as = [&](const Term& term) { return dtype == DType::kF32 ? term : term.cast(dtype); };
      const WeightUpdate update = optimizer.update(weights[i], gradients[i], states[i], as(rate), as(step));
      results.push_back(update.weight.atom());
      for (const Term& state : update.state) new_states.push_back(state.atom());
    }
    TENON_TRY(f.status());
    results.insert(results.end(), new_states.begin(), new_states.end());
    TENON_TRY_ASSIGN(tuple, builder.tuple(std::move(results)));
    builder.finish(*tuple);
    module_.globals.emplace(context_.symbol("main"), std::move(function));
    return {};
  }

  Context& context_;
  Module& module_;
  const std::vector<LiftedParameter>& weights_;
  const StepOptions& options_;
  Symbol model_{}, loss_{};
};

}  // namespace

Status make_training_step(Context& context, Module& module, const std::vector<LiftedParameter>& weights,
                          const StepOptions& options) {
  return StepMaker(context, module, weights, options).make();
}

}  // namespace tenon::compiler
