// Normalizations: elements less their mean, by their deviation, over one part of the tensor or another.
#include "compiler/kernels/lowerings.h"

namespace tenon::compiler::kernels {
namespace {

using Values = Expected<std::vector<Value>>;

Values batch_norm(const Operation& op) {
  return op.expression([args = op.args, epsilon = op.real("epsilon")](const Dims& at) {
    const auto of = [&](size_t i) { return args[i].at({at[1]}); };
    return of(1) * (args[0].at(at) - of(3)) / root(of(4) + epsilon) + of(2);
  });
}

// Elements by groups: sums run over `over`, one for each index of `groups`.
struct Grouping {
  Dims groups, over;
  std::function<Dims(const Dims& at)> element;  // of x, from the indices of group and sum
};

struct Moments {
  std::optional<Value> mean;
  Value scale;  // 1 / sqrt(variance + epsilon)
};
Moments moments(const Operation& op, const Grouping& grouping, bool centered) {
  const Value& x = op.arg(0);
  const double epsilon = op.real("epsilon");
  const Expr count = loop::convert(op.dtype(), loop::index_value(op.context().product(grouping.over)));
  Moments result;
  if (centered) {
    const Value sum =
        op.emit.reduce("sum", {.dims = grouping.groups, .over = grouping.over, .term = [=](const Dims& at) {
                                 return x.at(grouping.element(at));
                               }});
    result.mean = op.emit.stored(
        "mean", op.emit.expression(grouping.groups, op.dtype(), [=](const Dims& at) { return sum.at(at) / count; }));
  }
  const Value squares = op.emit.reduce(
      "squares", {.dims = grouping.groups, .over = grouping.over, .term = [=, mean = result.mean](const Dims& at) {
                    const Dims group(at.begin(), at.begin() + static_cast<ptrdiff_t>(grouping.groups.size()));
                    const Expr value = x.at(grouping.element(at));
                    const Expr less_mean = mean ? value - mean->at(group) : value;
                    return less_mean * less_mean;
                  }});
  result.scale = op.emit.stored("scale", op.emit.expression(grouping.groups, op.dtype(), [=](const Dims& at) {
    return 1.0 / root(squares.at(at) / count + epsilon);
  }));
  return result;
}

// Over the dims from `axis` on, which the parameters have.
template <bool centered>
Values over_last_dims(const Operation& op) {
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

// Over the maps of each group of channels.
Values over_channels(const Operation& op, std::optional<int64_t> groups) {
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

Values lp_normalize(const Operation& op) {
  const Dims& dims = op.dims();
  const size_t axis = op.axis("axis", dims.size());
  Dims others = dims;
  others.erase(others.begin() + static_cast<ptrdiff_t>(axis));
  const bool squares = op.integer("p") == 2;
  const Value sum =
      op.emit.reduce("sum", {.dims = others, .over = {dims[axis]}, .term = [=, x = op.arg(0)](const Dims& at) {
                               Dims from(at.begin(), at.end() - 1);
                               from.insert(from.begin() + static_cast<ptrdiff_t>(axis), at.back());
                               const Expr value = x.at(from);
                               return squares ? value * value : absolute(value);
                             }});
  return op.expression([=, x = op.arg(0)](const Dims& at) {
    Dims line = at;
    line.erase(line.begin() + static_cast<ptrdiff_t>(axis));
    const Expr norm = squares ? root(sum.at(line)) : sum.at(line);
    return choose(same(norm, like(norm, 0)), like(norm, 0), x.at(at) / norm);
  });
}

Values local_response_norm(const Operation& op) {
  Emitter& emit = op.emit;
  Context& context = op.context();
  const int64_t size = op.integer("size");
  const Value sum = emit.reduce(
      "squares",
      {.dims = op.dims(), .over = {context.dim(size)}, .term = [=, &emit, &context, x = op.arg(0)](const Dims& at) {
         Dims from(at.begin(), at.end() - 1);
         from[1] = context.add(from[1], context.subtract(at.back(), context.dim((size - 1) / 2)));
         const Expr value = x.at(from);
         return choose(emit.inside(from[1], context.dim(0), x.dims[1]), value * value, like(value, 0));
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
      {"batch_norm", batch_norm},
      {"layer_norm", over_last_dims<true>},
      {"rms_norm", over_last_dims<false>},
      {"instance_norm", [](const Operation& op) { return over_channels(op, std::nullopt); }},
      {"group_norm", [](const Operation& op) { return over_channels(op, op.integer("groups")); }},
      {"lp_normalize", lp_normalize},
      {"local_response_norm", local_response_norm},
  };
  return kLowerings;
}

}  // namespace tenon::compiler::kernels
