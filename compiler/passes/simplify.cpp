// Removes operators without an effect and merges adjacent ones: reshapes, transposes, ReLUs and clips, padding.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "compiler/passes/constant_uses.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;
using Outcome = Expected<std::optional<Atom>>;

class Simplifier {
 public:
  Simplifier(Context& context, Builder& builder, ConstantUses& uses, Binding& binding)
      : context_(context), builder_(builder), function_(builder.function()), uses_(uses), binding_(binding) {}

  // Simplifies the binding; a returned atom replaces it.
  Outcome run() {
    if (auto* project = std::get_if<Project>(&binding_.value)) return field(*project);
    auto* apply = std::get_if<Apply>(&binding_.value);
    if (!apply || apply->args.empty()) return std::nullopt;
    const Operator& op = *apply->op;
    if (!apply->computed.empty()) return computed(*apply);
    if (op.is(ops::kIdentity)) return apply->args[0];
    if (op.is_one_of({ops::kCast, ops::kTranspose, ops::kReshape, ops::kFlatten, ops::kPad, ops::kSlice})) {
      TENON_TRY_ASSIGN(joined, op.is(ops::kTranspose) ? transposes(*apply) : reshapes(*apply));
      TENON_TRY_ASSIGN(type, infer_value(context_, builder_.module(), function_, binding_.value));
      const Apply& simplified = std::get<Apply>(binding_.value);
      if (is_identity(simplified, *type)) return simplified.args[0];
      return std::nullopt;
    }
    if (op.is(ops::kRelu) || op.is(ops::kClip)) return clamps(*apply);
    if (op.is(ops::kConv2d)) return padding(*apply);
    if (op.is(ops::kMatmul)) return product(*apply);
    if (op.is(ops::kQuantize)) return requantized_integers(builder_, *apply);
    if (op.is(ops::kLayoutTransform)) return layouts(*apply);
    if (op.is(ops::kAdd) || op.is(ops::kSubtract) || op.is(ops::kMultiply) || op.is(ops::kDivide))
      return neutral(*apply);
    return std::nullopt;
  }

 private:
  // A reshape or broadcast to the sizes that the operand has.
  Outcome computed(const Apply& apply) const {
    if (!apply.op->is_one_of({ops::kReshape, ops::kBroadcastTo})) return std::nullopt;
    TENON_TRY_ASSIGN(type, infer_value(context_, builder_.module(), function_, binding_.value));
    const Expected<Type> from = builder_.type_of(apply.args[0]);
    return from && *from == *type ? Outcome(apply.args[0]) : Outcome(std::nullopt);
  }

  const Apply* operand_of(const Apply& apply, OperatorId op) const { return builder_.application(apply.args[0], op); }
  Expected<Apply> make(OperatorId op, Atoms args, Attrs attrs) const {
    const Operator* record = &context_.op(op);
    TENON_TRY_ASSIGN(complete, complete_attrs(*record, std::move(attrs)));
    return Apply{record, std::move(*complete), std::move(args)};
  }

  Outcome field(const Project& project) const {
    const Value* value = builder_.value_of(project.tuple);
    auto* tuple = value ? std::get_if<Tuple>(value) : nullptr;
    if (tuple) return tuple->fields[project.index];
    return std::nullopt;
  }

  // With equal types a reshape, cast, pad or slice is the identity, unless a slice reverses an axis.
  bool is_identity(const Apply& apply, Type type) const {
    const Expected<Type> from = builder_.type_of(apply.args[0]);
    if (!from || *from != type) return false;
    if (apply.op->is(ops::kSlice)) {
      return std::ranges::all_of(ints_attr(apply.attrs, "step"), [](int64_t step) { return step == 1; });
    }
    return !apply.op->is(ops::kTranspose) || std::ranges::is_sorted(ints_attr(apply.attrs, "axes"));
  }

  // reshape(reshape(x)) -> reshape(x), also with flatten.
  Outcome reshapes(const Apply& apply) {
    auto reorders = [](const Apply* a) { return a && (a->op->is(ops::kReshape) || a->op->is(ops::kFlatten)); };
    const Apply* inner = builder_.application(apply.args[0]);
    if (!reorders(&apply) || !reorders(inner) || !inner->computed.empty()) return std::nullopt;
    TENON_TRY_ASSIGN(type, infer_value(context_, builder_.module(), function_, binding_.value));
    Ints shape;
    for (Dim dim : type->tensor()->dims) shape.push_back(dim.constant().value_or(-1));
    // A size of 0 has another meaning in the attribute, and only one size may be -1.
    if (std::ranges::count(shape, -1) > 1 || std::ranges::count(shape, 0) > 0) return std::nullopt;
    TENON_TRY_ASSIGN(joined, make(ops::kReshape, {inner->args[0]}, {{"shape", shape}}));
    binding_.value = std::move(*joined);
    return std::nullopt;
  }

  Outcome transposes(Apply& apply) {
    const Apply* inner = operand_of(apply, ops::kTranspose);
    if (!inner) return std::nullopt;
    const Ints &first = ints_attr(inner->attrs, "axes"), second = ints_attr(apply.attrs, "axes");
    Ints both;
    for (int64_t axis : second) both.push_back(first[axis]);
    const Atom x = inner->args[0];
    apply.attrs["axes"] = both;
    apply.args[0] = x;
    return std::nullopt;
  }

  // A ReLU or clip is min(max(x, lo), hi); two of them merge where the ranges intersect.
  Outcome clamps(const Apply& apply) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    auto range = [=](const Apply& a) {
      return a.op->is(ops::kRelu) ? std::pair{0.0, kInfinity}
                                  : std::pair{float_attr(a.attrs, "min"), float_attr(a.attrs, "max")};
    };
    auto [lo, hi] = range(apply);
    Atom x = apply.args[0];
    const Apply* inner = builder_.application(x);
    if (inner && (inner->op->is(ops::kRelu) || inner->op->is(ops::kClip))) {
      const auto [inner_lo, inner_hi] = range(*inner);
      if (std::max(lo, inner_lo) <= std::min(hi, inner_hi)) {
        lo = std::max(lo, inner_lo), hi = std::min(hi, inner_hi);
        x = inner->args[0];
      }
    }
    if (lo == -kInfinity && hi == kInfinity) return x;
    const bool relu = lo == 0 && hi == kInfinity;
    const Attrs bounds = relu ? Attrs{} : Attrs{{"min", lo}, {"max", hi}};
    TENON_TRY_ASSIGN(joined, make(relu ? ops::kRelu : ops::kClip, {x}, bounds));
    binding_.value = std::move(*joined);
    return std::nullopt;
  }

  // x + 0, x - 0, x * 1, x / 1, and the commuted forms, where x has the result's shape. For floats x + 0 is not x,
  // since -0 + 0 is 0, but x + -0 is.
  Outcome neutral(const Apply& apply) const {
    const Operator& op = *apply.op;
    for (size_t i : {size_t{0}, size_t{1}}) {
      const runtime::Tensor* constant = constant_of(builder_.module(), apply.args[1 - i]);
      if (!constant || (i == 1 && (op.is(ops::kSubtract) || op.is(ops::kDivide)))) continue;
      const double expected = op.is(ops::kAdd) ? -0.0 : op.is(ops::kSubtract) ? 0.0 : 1.0;
      if (!is_all(*constant, expected)) continue;
      TENON_TRY_ASSIGN(from, builder_.type_of(apply.args[i]));
      TENON_TRY_ASSIGN(type, infer_value(context_, builder_.module(), function_, binding_.value));
      if (*from == *type) return apply.args[i];
    }
    return std::nullopt;
  }
  static bool is_all(const runtime::Tensor& tensor, double expected) {
    if (!runtime::kNumericTypes.contains(tensor.dtype())) return false;
    return runtime::with_dtype<runtime::kNumericTypes>(tensor.dtype(), [&]<class T>(T) {
      return std::ranges::all_of(tensor.data<T>(), [&](T x) {
        if constexpr (runtime::is_real<T>) {
          const auto value = static_cast<double>(x);
          return value == expected && std::signbit(value) == std::signbit(expected);
        } else {
          return x == static_cast<T>(expected);
        }
      });
    });
  }

  // conv2d(pad(x)) -> conv2d(x) with padding
  Outcome padding(Apply& apply) {
    const Apply* pad = operand_of(apply, ops::kPad);
    if (!pad || !pad->computed.empty() ||
        float_attr(pad->attrs, "value") != static_cast<double>(int_attr(apply.attrs, "pad_value"))) {
      return std::nullopt;
    }
    const Ints &before = ints_attr(pad->attrs, "before"), &after = ints_attr(pad->attrs, "after");
    if (before[0] || before[1] || after[0] || after[1]) return std::nullopt;
    Ints sum = ints_attr(apply.attrs, "padding");
    sum[0] += before[2], sum[1] += before[3], sum[2] += after[2], sum[3] += after[3];
    const Atom x = pad->args[0];
    apply.attrs["padding"] = sum;
    apply.args[0] = x;
    return std::nullopt;
  }

  // A matrix product with constant weights is a dense layer.
  Outcome product(const Apply& apply) {
    const runtime::Tensor* weights = constant_of(builder_.module(), apply.args[1]);
    const TensorType* type = builder_.tensor_type(apply.args[0]);
    if (!weights || weights->shape().size() != 2 || type->rank() != 2) return std::nullopt;
    auto transposed = context_.op(ops::kTranspose).reference({{"axes", Ints{1, 0}}}, std::span(weights, 1));
    if (!transposed) return std::nullopt;
    uses_.remove(builder_.module(), apply.args[1]);
    TENON_TRY_ASSIGN(dense, make(ops::kDense, {apply.args[0], builder_.constant(std::move(transposed->front()))}, {}));
    binding_.value = std::move(*dense);
    return std::nullopt;
  }

  // Whether the transform drops no lane of its argument, whatever is in it.
  bool keeps_all_lanes(const Apply& apply) const {
    const int64_t channels = int_attr(apply.attrs, "channels");
    const std::string& from = string_attr(apply.attrs, "from");
    if (channels == 0 || from.find_first_of("0123456789") == std::string::npos) return true;
    const TensorType* type = builder_.tensor_type(apply.args[0]);
    const size_t at = from.find(static_cast<char>(std::toupper(static_cast<unsigned char>(from.back()))));
    if (!type || at >= type->dims.size()) return false;
    const auto blocks = type->dims[at].constant(), lanes = type->dims.back().constant();
    return blocks && lanes && *blocks * *lanes == channels;
  }

  // A layout_transform to the same layout, or after its inverse. Padding lanes come back as zeros, so only full blocks
  // cancel in this order.
  Outcome layouts(const Apply& apply) const {
    if (string_attr(apply.attrs, "from") == string_attr(apply.attrs, "to")) {
      if (!keeps_all_lanes(apply)) return std::nullopt;
      return apply.args[0];
    }
    const Apply* inner = operand_of(apply, ops::kLayoutTransform);
    if (!inner || string_attr(inner->attrs, "from") != string_attr(apply.attrs, "to") ||
        string_attr(inner->attrs, "to") != string_attr(apply.attrs, "from") || !keeps_all_lanes(*inner)) {
      return std::nullopt;
    }
    TENON_TRY_ASSIGN(type, infer_value(context_, builder_.module(), function_, binding_.value));
    TENON_TRY_ASSIGN(original, builder_.type_of(inner->args[0]));
    if (*type != *original) return std::nullopt;
    return inner->args[0];
  }

  Context& context_;
  Builder& builder_;
  const Function& function_;
  ConstantUses& uses_;
  Binding& binding_;
};

}  // namespace

std::optional<Atom> requantized_integers(const Builder& builder, const Apply& quantize) {
  const Apply* inner = builder.application(quantize.args[0], ops::kDequantize);
  if (!inner) return std::nullopt;
  const auto is_same = [&](const char* attr) {
    return inner->attrs.find(attr)->second == quantize.attrs.find(attr)->second;
  };
  const bool has_axis = floats_attr(quantize.attrs, "scale").size() > 1;  // one scale is every axis's
  if (!is_same("scale") || !is_same("zero_point") || (has_axis && !is_same("axis"))) return std::nullopt;
  const TensorType* type = builder.tensor_type(inner->args[0]);
  if (runtime::name(type->dtype) != string_attr(quantize.attrs, "dtype")) return std::nullopt;
  return inner->args[0];
}

Expected<Module> simplify(Context& context, Module module) {
  ConstantUses uses(module);
  auto step = [&](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
    Atoms before;
    for_each_operand(binding.value, [&](const Atom& atom) { before.push_back(atom); });
    auto outcome = Simplifier(context, builder, uses, binding).run();
    if (!outcome) return outcome;
    // A constant in place of a variable is used wherever the variable was, and that of an inner operator once more.
    if (*outcome) uses.keep(**outcome);
    for_each_operand(binding.value, [&](const Atom& atom) {
      if (std::ranges::find(before, atom) == before.end()) uses.keep(atom);
    });
    return outcome;
  };
  TENON_TRY_ASSIGN(simple, rewrite(context, std::move(module), step));
  return dead_code(context, std::move(*simple));
}

Pass simplify_pass() {
  return {"simplify",
          "Removes operators without an effect and merges adjacent reshapes, transposes, ReLUs and padding.", simplify};
}

}  // namespace tenon::compiler
