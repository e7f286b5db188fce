#include "compiler/fuzz/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/gradient/differentiate.h"
#include "compiler/ir/adjoint.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/term.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::compiler::fuzz {
namespace {

// The parameters with floats.
std::vector<uint32_t> active_params(Context& context, const Module& module, const Function& function) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < function.params.size(); ++i) {
    if (has_adjoint(context, module, function.type(function.params[i]))) found.push_back(i);
  }
  return found;
}

// Sums over the floats of values, with other weights for each tensor.
class Sums {
 public:
  explicit Sums(Builder& builder) : builder_(builder), context_(builder.context()) {}

  Status add(const Atom& atom) {
    TENON_TRY_ASSIGN(type, builder_.type_of(atom));
    if (const TupleType* tuple = type->tuple()) {
      for (uint32_t i = 0; i < tuple->fields.size(); ++i) {
        TENON_TRY_ASSIGN(field, builder_.project(atom, i));
        TENON_TRY(add(*field));
      }
      return {};
    }
    const TensorType* tensor = type->tensor();
    if (!tensor || tensor->dtype != DType::kF64) return {};
    TENON_TRY_ASSIGN(open, opened(atom, *type));
    const double weight = 0.3 + 0.17 * count_;
    TENON_TRY_ASSIGN(bounded, count_++ % 2 == 0 ? Expected<Atom>(*open) : builder_.apply(ops::kTanh, {*open}));
    TENON_TRY_ASSIGN(sum, builder_.apply(ops::kSum, {*bounded}, {}));
    TENON_TRY_ASSIGN(term, builder_.apply(ops::kMultiply, {*sum, scalar_constant(builder_, weight, DType::kF64)}));
    if (total_) {
      TENON_TRY_ASSIGN(total, builder_.apply(ops::kAdd, {*total_, *term}));
      total_ = *total;
    } else {
      total_ = *term;
    }
    return {};
  }
  const std::optional<Atom>& total() const { return total_; }

 private:
  Expected<Atom> opened(const Atom& atom, Type type) {
    if (!has_erased(type)) return atom;
    Cast cast{atom, {}, {}};
    cast.type = context_.map_sizes(type, [&](Dim dim) {
      if (!dim.erased()) return dim;
      cast.fresh.push_back(context_.symbol(fmt::format("sum{}", dims_++)));
      return context_.dim(cast.fresh.back());
    });
    return builder_.bind(std::move(cast), Symbol{});
  }

  Builder& builder_;
  Context& context_;
  std::optional<Atom> total_;
  int count_ = 0, dims_ = 0;
};

// Defines a function of the parameters of `callee`, whose result is made from them; false where it makes none.
template <class Make>
bool define(Context& context, Module& module, Symbol callee, std::string_view name, const Make& make) {
  const Function& from = *module.function(callee);
  Function function;
  function.dims = from.dims;
  function.bounds = from.bounds;
  Builder builder(context, module, function);
  Atoms args;
  for (const VarId param : from.params)
    args.push_back(builder.param(from.type(param), context.name(from.info(param).name)));
  const Expected<std::optional<Atom>> result = make(builder, std::move(args));
  if (!result || !*result) return false;
  builder.finish(**result);
  module.globals.insert_or_assign(context.symbol(name), std::move(function));
  return true;
}

// A number in [-1, 1] for each float of a value, always the same.
double next(Random& random) { return static_cast<double>(random.between(-1000, 1000)) / 1000; }

// The value plus `step` times the direction.
RunValue moved(const RunValue& value, double step, Random& direction) {
  if (value.tensor()) {
    if (value.tensor().dtype() != DType::kF64) return value;
    runtime::Tensor tensor = value.tensor().clone();
    for (double& element : tensor.data<double>()) element += step * next(direction);
    return tensor;
  }
  std::vector<RunValue> fields;
  for (const RunValue& field : value.fields()) fields.push_back(moved(field, step, direction));
  return value.object->kind == RunObject::Kind::kData ? RunValue::data(value.object->constructor, std::move(fields))
                                                      : RunValue::tuple(std::move(fields));
}

// The inner product of an adjoint and the direction; no object is a zero. Sets `problem` where they do not fit.
double slope(const RunValue& value, const RunValue& adjoint, Random& direction, std::string& problem) {
  double sum = 0;
  if (value.tensor()) {
    if (value.tensor().dtype() != DType::kF64) return 0;
    if (adjoint && adjoint.tensor().shape() != value.tensor().shape()) {
      problem = fmt::format("the adjoint of a value of the shape {} has the shape {}",
                            runtime::to_string(value.tensor().shape()), runtime::to_string(adjoint.tensor().shape()));
      return 0;
    }
    for (int64_t i = 0; i < value.tensor().size(); ++i) {
      const double by = next(direction);
      if (adjoint) sum += by * adjoint.tensor().data<double>()[i];
    }
    return sum;
  }
  const std::span<const RunValue> parts = adjoint ? adjoint.fields() : std::span<const RunValue>();
  for (size_t i = 0; i < value.fields().size(); ++i)
    sum += slope(value.fields()[i], i < parts.size() ? parts[i] : RunValue(), direction, problem);
  return sum;
}

// Whether @main is nothing but the gradient of @loss by its parameters with floats.
bool is_gradient_of_loss(Context& context, const Module& module) {
  const Function* main = module.function(context.symbol("main"));
  const Function* loss = module.function(context.symbol("loss"));
  if (!main || !loss || main->body.bindings.size() != 1) return false;
  auto* gradient = std::get_if<Gradient>(&main->body.bindings[0].value);
  if (!gradient || gradient->kind != Gradient::Kind::kGradient) return false;
  if (gradient->call.callee != Atom(context.symbol("loss"))) return false;
  if (main->params.size() != gradient->call.args.size()) return false;
  for (size_t i = 0; i < main->params.size(); ++i) {
    if (gradient->call.args[i] != Atom(main->params[i])) return false;
  }
  return gradient->wrt == active_params(context, module, *loss);
}

bool stops_gradients(const Module& module) {
  bool found = false;
  for_each_function(module, [&](Symbol, const Function& function) {
    for_each_binding(function.body, [&](const Binding& binding) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      found |= apply && apply->op->is(ops::kStopGradient);
    });
  });
  return found;
}

}  // namespace

std::optional<Module> with_gradient(Context& context, const Module& from, bool second_order) {
  Module module = clone(from);
  const Symbol f = context.symbol("f"), main = context.symbol("main");
  if (module.globals.contains(f)) return std::nullopt;
  auto node = module.globals.extract(main);
  node.key() = f;
  module.globals.insert(std::move(node));
  if (!declare_adjoints(context, module)) return std::nullopt;
  Symbol callee = f;
  const auto sum_of = [&](bool gradient) {
    return [&, gradient](Builder& builder, Atoms args) -> Expected<std::optional<Atom>> {
      Value value = Call{callee, std::move(args), {}};
      if (gradient) {
        const std::vector<uint32_t> wrt = active_params(context, module, *module.function(callee));
        value = Gradient{std::get<Call>(std::move(value)), wrt};
      }
      TENON_TRY_ASSIGN(result, builder.bind(std::move(value), Symbol{}));
      Sums sums(builder);
      TENON_TRY(sums.add(*result));
      return sums.total();
    };
  };
  const Symbol first = context.symbol(second_order ? "first" : "loss");
  if (!define(context, module, callee, context.name(first), sum_of(false))) return std::nullopt;
  callee = first;
  if (active_params(context, module, *module.function(first)).empty()) return std::nullopt;
  if (second_order) {
    if (!define(context, module, callee, "loss", sum_of(true))) return std::nullopt;
    callee = context.symbol("loss");
  }
  const bool made =
      define(context, module, callee, "main", [&](Builder& builder, Atoms args) -> Expected<std::optional<Atom>> {
        const std::vector<uint32_t> wrt = active_params(context, module, *module.function(callee));
        TENON_TRY_ASSIGN(result, builder.bind(Gradient{Call{callee, std::move(args), {}}, wrt}, Symbol{}));
        return std::optional(*result);
      });
  if (!made) return std::nullopt;
  return module;
}

Expected<std::optional<Module>> expand_gradients(Context& context, const Module& module, Counts& counts) {
  if (!is_gradient_of_loss(context, module)) return std::nullopt;
  if (stops_gradients(module)) {  // the differences of values do not stop
    ++counts.underivable["stop_gradient"];
    return std::nullopt;
  }
  auto expanded = differentiate(context, clone(module));
  if (expanded) return std::move(*expanded);
  constexpr std::array kReasons{
      "has no gradient: ",     "has no derivative",      "read from a reference",      "a tape cannot store",
      "and type parameters",   "combinations of types",  "types of this call are not", "as an argument or result",
      "ever larger arguments", "content is a parameter", "inside of another type",     "inside of other types",
      "the gradient of "};
  for (const char* reason : kReasons) {
    if (expanded.error().what.find(reason) == std::string::npos) continue;
    ++counts.underivable[reason];
    return std::nullopt;
  }
  return std::unexpected(std::move(expanded.error()));
}

std::optional<std::string> disagreement(Context& context, const Module& expanded, std::span<const RunValue> inputs,
                                        uint64_t seed, int64_t steps, Counts& counts) {
  double largest = 1;
  bool finite = true;
  const Observer observer = [&](const Function&, VarId, const RunValue& value) {
    if (!value.tensor() || value.tensor().dtype() != DType::kF64) return;
    for (const double element : value.tensor().data<double>()) {
      finite &= std::isfinite(element);
      largest = std::max(largest, std::fabs(element));
    }
  };
  const auto derivative =
      interpret(context, expanded, context.symbol("main"), inputs, observer, {}, {.steps = steps, .bytes = 1 << 22});
  const auto loss = [&](double step) -> std::optional<double> {
    Random direction(seed);
    std::vector<RunValue> at;
    for (const RunValue& input : inputs) at.push_back(moved(input, step, direction));
    const auto value =
        interpret(context, expanded, context.symbol("loss"), at, {}, {}, {.steps = steps, .bytes = 1 << 22});
    if (!value) return std::nullopt;
    return value->tensor().data<double>()[0];
  };
  const std::optional<double> here = loss(0);
  if (!here) return std::nullopt;  // the program stops by a check of its own, or takes too long
  if (!derivative) {
    const std::string& what = derivative.error().what;  // a limit of the run
    if (what.starts_with("more than ") || what.starts_with("a tensor (")) return std::nullopt;
    return "the function has a value, but its gradient fails: " + derivative.error().str();
  }
  if (!finite || largest > 1e6) return std::nullopt;
  if (derivative->fields()[0].tensor().data<double>()[0] != *here)
    return fmt::format("the gradient's value is {}, the function's {}",
                       derivative->fields()[0].tensor().data<double>()[0], *here);
  std::string problem;
  double along = 0;
  const Function& function = *expanded.function(context.symbol("loss"));
  size_t field = 0;
  Random direction(seed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool active = has_adjoint(context, expanded, function.type(function.params[i]));
    along += slope(inputs[i], active ? derivative->fields()[1].fields()[field++] : RunValue(), direction, problem);
  }
  if (!problem.empty()) return problem;
  const double tolerance = 1e-5 * std::max(1.0, std::fabs(along)) + 1e-9 * largest;
  const auto near = [&](double a, double b) { return std::fabs(a - b) <= tolerance; };
  std::vector<double> slopes;
  for (const double step : {1e-5, 1e-6}) {
    const std::optional<double> above = loss(step), below = loss(-step);
    if (!above || !below) return std::nullopt;  // the edge of the domain
    slopes.push_back((*above - *below) / (2 * step));
    if (near(slopes.back(), along)) {
      ++counts.derivatives;
      return std::nullopt;
    }
    slopes.push_back((*above - *here) / step);
    slopes.push_back((*here - *below) / step);
  }
  // Differences that do not converge, or that are others on both sides: no derivative exists here.
  for (const double other : slopes) {
    if (!near(other, slopes[0])) {
      ++counts.kinks;
      return std::nullopt;
    }
  }
  return fmt::format("the derivative along a direction is {}, the difference of two values {}", along, slopes[0]);
}

}  // namespace tenon::compiler::fuzz
