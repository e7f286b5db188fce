// Normalizations: elements minus their mean, divided by their standard deviation, over groups of elements.
#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {
namespace {

LoweredResults batch_norm(const OperatorCall& op) {
  return op.expression([args = op.args, epsilon = op.real("epsilon")](const Dims& at) {
    const auto channel_arg = [&](size_t i) { return args[i].at({at[1]}); };
    return channel_arg(1) * (args[0].at(at) - channel_arg(3)) / square_root(channel_arg(4) + epsilon) + channel_arg(2);
  });
}

// The groups of a normalization: statistics are reduced over `over`, one for each index of `groups`.
struct Grouping {
  Dims groups, over;
  std::function<Dims(const Dims& at)> element;  // indices in x, from the indices of the group and of the reduction
};

struct Moments {
  std::optional<LazyTensor> mean;
  LazyTensor scale;  // 1 / sqrt(variance + epsilon)
};
Moments moments(const OperatorCall& op, const Grouping& grouping, bool centered) {
  const LazyTensor& x = op.arg(0);
  const double epsilon = op.real("epsilon");
  const Expr count = loop::convert(op.dtype(), loop::index_value(op.context().product(grouping.over)));
  Moments result;
  if (centered) {
    const LazyTensor sum =
        op.emit.reduce("sum", {.dims = grouping.groups, .over = grouping.over, .term = [=](const Dims& at) {
                                 return x.at(grouping.element(at));
                               }});
    result.mean = op.emit.stored(
        "mean", op.emit.expression(grouping.groups, op.dtype(), [=](const Dims& at) { return sum.at(at) / count; }));
  }
  const LazyTensor squares = op.emit.reduce(
      "squares", {.dims = grouping.groups, .over = grouping.over, .term = [=, mean = result.mean](const Dims& at) {
                    const Dims group(at.begin(), at.begin() + static_cast<ptrdiff_t>(grouping.groups.size()));
                    const Expr value = x.at(grouping.element(at));
                    const Expr less_mean = mean ? value - mean->at(group) : value;
                    return less_mean * less_mean;
                  }});
  result.scale = op.emit.stored("scale", op.emit.expression(grouping.groups, op.dtype(), [=](const Dims& at) {
    return 1.0 / square_root(squares.at(at) / count + epsilon);
  }));
  return result;
}

// Over the dims from `axis` on, which are the dims of the parameters.
template <bool centered>
LoweredResults over_last_dims(const OperatorCall& op) {
  const Dims& dims = op.dims();
  const auto axis = static_cast<ptrdiff_t>(op.axis("axis", dims.size()));
  const Moments part = moments(op,
                               {.groups = Dims(dims.begin(), dims.begin() + axis),
                                .over = Dims(dims.begin() + axis, dims.end()),
                                .element = [](const Dims& at) { return at; }},
                               centered);
  return op.expression([=, args = op.args](const Dims& at) {
    const Dims group(at.begin(), at.begin() + axis), last(at.begin() + axis, at.end());
    const Expr value = args[0].at(at);
    const Expr scaled = (part.mean ? value - part.mean->at(group) : value) * part.scale.at(group) * args[1].at(last);
    return centered ? scaled + args[2].at(last) : scaled;
  });
}

// Over the maps of each group of channels; each channel is a group where `groups` is nullopt.
LoweredResults over_channels(const OperatorCall& op, std::optional<int64_t> groups) {
  Context& context = op.context();
  const Dims& dims = op.dims();
  const Dim count = groups ? context.dim(*groups) : dims[1];
  const Dim size = groups ? context.floor_divide(dims[1], count) : context.dim(1);
  Dims over{size};
  over.insert(over.end(), dims.begin() + 2, dims.end());
  const Moments part = moments(op,
                               {
                                   .groups = {dims[0], count},
                                   .over = over,
                                   .element =
                                       [&context, size](const Dims& at) {
                                         Dims from{at[0], context.add(context.multiply(at[1], size), at[2])};
                                         from.insert(from.end(), at.begin() + 3, at.end());
                                         return from;
                                       },
                               },
                               true);
  return op.expression([=, &context, args = op.args](const Dims& at) {
    const Dims group{at[0], context.floor_divide(at[1], size)};
    return (args[0].at(at) - part.mean->at(group)) * part.scale.at(group) * args[1].at({at[1]}) + args[2].at({at[1]});
  });
}

LoweredResults lp_normalize(const OperatorCall& op) {
  const Dims& dims = op.dims();
  const size_t axis = op.axis("axis", dims.size());
  Dims others = dims;
  others.erase(others.begin() + static_cast<ptrdiff_t>(axis));
  const bool squares = op.integer("p") == 2;
  const LazyTensor sum =
      op.emit.reduce("sum", {.dims = others, .over = {dims[axis]}, .term = [=, x = op.arg(0)](const Dims& at) {
                               Dims from(at.begin(), at.end() - 1);
                               from.insert(from.begin() + static_cast<ptrdiff_t>(axis), at.back());
                               const Expr value = x.at(from);
                               return squares ? value * value : absolute(value);
                             }});
  return op.expression([=, x = op.arg(0)](const Dims& at) {
    Dims others_at = at;
    others_at.erase(others_at.begin() + static_cast<ptrdiff_t>(axis));
    const Expr norm = squares ? square_root(sum.at(others_at)) : sum.at(others_at);
    return select(is_equal(norm, like(norm, 0)), like(norm, 0), x.at(at) / norm);
  });
}

LoweredResults local_response_norm(const OperatorCall& op) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const int64_t size = op.integer("size");
  const LazyTensor sum = emit.reduce(
      "squares",
      {.dims = op.dims(), .over = {context.dim(size)}, .term = [=, &emit, &context, x = op.arg(0)](const Dims& at) {
         Dims from(at.begin(), at.end() - 1);
         from[1] = context.add(from[1], context.subtract(at.back(), context.dim((size - 1) / 2)));
         const Expr value = x.at(from);
         return select(emit.inside(from[1], context.dim(0), x.dims[1]), value * value, like(value, 0));
       }});
  return op.expression(
      [=, x = op.arg(0), alpha = op.real("alpha"), beta = op.real("beta"), bias = op.real("bias")](const Dims& at) {
        const Expr squares = sum.at(at), weight = like(squares, alpha) / like(squares, static_cast<double>(size));
        return x.at(at) / power(bias + weight * squares, like(squares, beta));
      });
}

}  // namespace

std::span<const Lowering> normalize_lowerings() {
  static constexpr Lowering kLowerings[] = {
      {ops::kBatchNorm, batch_norm},
      {ops::kLayerNorm, over_last_dims<true>},
      {ops::kRmsNorm, over_last_dims<false>},
      {ops::kInstanceNorm, [](const OperatorCall& op) { return over_channels(op, std::nullopt); }},
      {ops::kGroupNorm, [](const OperatorCall& op) { return over_channels(op, op.integer("groups")); }},
      {ops::kLpNormalize, lp_normalize},
      {ops::kLocalResponseNorm, local_response_norm},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
