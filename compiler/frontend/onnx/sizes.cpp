#include "compiler/frontend/onnx/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/base/dim_prover.h"
#include "runtime/reference/slice.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMaxSizes = 64;  // elements of a vector whose elements are known as dims

class Folding {
 public:
  Folding(Context& context, const Apply& apply, std::span<const TensorType> types,
          std::span<const std::optional<Dims>> args, const TensorType& result)
      : context_(context), prover_(context), apply_(apply), types_(types), args_(args), result_(result) {}

  std::optional<Dims> run() {
    const Operator& op = *apply_.op;
    if (!apply_.computed.empty() || apply_.args.empty()) return std::nullopt;
    if (op.is(ops::kShapeOf)) return types_[0].dims;
    if (!std::ranges::all_of(args_, [](const auto& arg) { return arg.has_value(); })) return std::nullopt;
    if (op.is(ops::kCast) && result_.dtype == DType::kBool && types_[0].dtype != DType::kBool) return std::nullopt;
    if (op.elements == Elements::kSame || op.is(ops::kCast)) return *args_[0];
    if (op.is(ops::kConcat)) return concat();
    if (op.is(ops::kGather)) return gather();
    if (op.is(ops::kSlice)) return slice();
    if (op.is(ops::kSum) || op.is(ops::kProd)) return reduced(op.is(ops::kProd));
    if (op.is(ops::kNegate)) return each([&](Dim a, Dim) { return context_.multiply(context_.dim(-1), a); });
    if (op.is(ops::kSelect)) return select();
    return binary(op);
  }

 private:
  // The element of an argument at index i of the result, of which at most one axis is longer than 1.
  Dim element(size_t arg, size_t i) const { return (*args_[arg])[args_[arg]->size() == 1 ? 0 : i]; }
  size_t count() const {
    size_t count = 1;
    for (const Dim dim : result_.dims) count *= static_cast<size_t>(dim.constant().value_or(0));
    return count;
  }
  template <class F>
  std::optional<Dims> each(F&& function) const {
    Dims out;
    for (size_t i = 0; i < count(); ++i) {
      for (const auto& arg : args_) {
        if (arg->size() != 1 && arg->size() != count()) return std::nullopt;
      }
      const Dim dim = function(element(0, i), element(args_.size() - 1, i));
      if (!dim.valid()) return std::nullopt;
      out.push_back(dim);
    }
    return out;
  }

  std::optional<Dims> concat() const {
    Dims out;
    if (result_.rank() != 1) return std::nullopt;
    for (const auto& arg : args_) out.insert(out.end(), arg->begin(), arg->end());
    return out;
  }
  std::optional<Dims> gather() const {
    Dims out;
    if (types_[0].rank() != 1) return std::nullopt;
    const auto size = static_cast<int64_t>(args_[0]->size());
    for (const Dim dim : *args_[1]) {
      const auto index = dim.constant();
      if (!index || *index < -size || *index >= size) return std::nullopt;
      out.push_back((*args_[0])[static_cast<size_t>(*index < 0 ? *index + size : *index)]);
    }
    return out;
  }
  std::optional<Dims> slice() const {
    if (types_[0].rank() != 1) return std::nullopt;
    const auto size = static_cast<int64_t>(args_[0]->size());
    const int64_t step = ints_attr(apply_.attrs, "step")[0], begin = ints_attr(apply_.attrs, "begin")[0];
    const int64_t first = runtime::reference::slice_begin(size, begin, step);
    Dims out;
    for (size_t i = 0; i < count(); ++i)
      out.push_back((*args_[0])[static_cast<size_t>(first + static_cast<int64_t>(i) * step)]);
    return out;
  }
  std::optional<Dims> reduced(bool product) const {
    if (count() != 1) return std::nullopt;
    Dim out = context_.dim(product ? 1 : 0);
    for (const Dim dim : *args_[0]) out = product ? context_.multiply(out, dim) : context_.add(out, dim);
    return out.valid() ? std::optional(Dims{out}) : std::nullopt;
  }
  std::optional<Dims> select() const {
    Dims out;
    for (size_t i = 0; i < count(); ++i) {
      for (const auto& arg : args_) {
        if (arg->size() != 1 && arg->size() != count()) return std::nullopt;
      }
      const auto condition = element(0, i).constant();
      if (!condition) return std::nullopt;
      out.push_back(element(*condition ? 1 : 2, i));
    }
    return out;
  }

  // 1, 0, or the invalid dim where the claim is neither proved nor refuted.
  Dim truth(Answer answer) const {
    return answer == Answer::kUnknown ? context_.invalid() : context_.dim(answer == Answer::kYes ? 1 : 0);
  }
  // Integers are divided towards 0, so that the quotient is the floor where neither is negative.
  Dim quotient(Dim a, Dim b, bool floor) const {
    const bool positive = prover_.less_equal(context_.dim(1), b) == Answer::kYes;
    const bool known = positive && (floor || prover_.less_equal(context_.dim(0), a) == Answer::kYes);
    return known ? context_.floor_divide(a, b) : context_.invalid();
  }

  std::optional<Dims> binary(const Operator& op) const {
    if (args_.size() != 2) return std::nullopt;
    const bool logical = types_[0].dtype == DType::kBool;
    return each([&](Dim a, Dim b) {
      if (op.is(ops::kEqual)) return truth(prover_.equal(a, b));
      if (logical) return context_.invalid();
      if (op.is(ops::kAdd)) return context_.add(a, b);
      if (op.is(ops::kSubtract)) return context_.subtract(a, b);
      if (op.is(ops::kMultiply)) return context_.multiply(a, b);
      if (op.is(ops::kDivide)) return quotient(a, b, false);
      if (op.is(ops::kFloorDivide)) return quotient(a, b, true);
      if (op.is(ops::kMinimum)) return context_.minimum({a, b});
      if (op.is(ops::kMaximum)) return context_.maximum({a, b});
      if (op.is(ops::kLess)) return truth(prover_.less(a, b));
      if (op.is(ops::kLessEqual)) return truth(prover_.less_equal(a, b));
      if (op.is(ops::kGreater)) return truth(prover_.less(b, a));
      if (op.is(ops::kGreaterEqual)) return truth(prover_.less_equal(b, a));
      return context_.invalid();
    });
  }

  Context& context_;
  const DimProver prover_;
  const Apply& apply_;
  std::span<const TensorType> types_;
  std::span<const std::optional<Dims>> args_;
  const TensorType& result_;
};

bool is_size(DType dtype) { return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kBool; }

}  // namespace

bool has_at_most(std::span<const int64_t> shape, int64_t elements) {
  for (const int64_t size : shape) {
    if (size == 0) return true;
    elements /= size;
  }
  return elements > 0;
}

std::optional<Dims> fold_sizes(Context& context, const Apply& apply, std::span<const TensorType> types,
                               std::span<const std::optional<Dims>> args, const TensorType& result) {
  const auto shape = result.shape();
  if (!is_size(result.dtype) || !shape || !has_at_most(*shape, kMaxSizes)) return std::nullopt;
  auto dims = Folding(context, apply, types, args, result).run();
  const bool fits = dims && static_cast<int64_t>(dims->size()) == runtime::element_count(*shape) &&
                    std::ranges::all_of(*dims, [](Dim dim) { return dim.valid(); });
  return fits ? dims : std::nullopt;
}

std::optional<Dims> constant_sizes(Context& context, const runtime::Tensor& tensor) {
  if (!is_size(tensor.dtype()) || tensor.size() > kMaxSizes) return std::nullopt;
  Dims dims;
  runtime::with_dtype<runtime::DTypes{DType::kI64, DType::kI32, DType::kBool}>(tensor.dtype(), [&]<class T>(T) {
    for (const T value : tensor.data<T>()) dims.push_back(context.dim(static_cast<int64_t>(value)));
  });
  return dims;
}

Integers Integers::of(Context& context, const Ints& values) {
  Dims dims;
  for (const int64_t value : values) dims.push_back(context.dim(value));
  return {values.size(), std::move(dims), std::nullopt};
}

Expected<Integers> Integers::input(NodeImport& node, size_t i, std::string_view what) {
  TENON_TRY_ASSIGN(atom, node.input(i));
  if (node.constant(i, what)) {
    TENON_TRY_ASSIGN(values, node.integers(i, what));
    return of(node.context(), *values);
  }
  TENON_TRY_ASSIGN(type, node.type(i));
  const auto count = type->rank() == 0   ? std::optional<int64_t>(1)
                     : type->rank() == 1 ? type->dims[0].constant()
                                         : std::nullopt;
  if ((type->dtype != DType::kI64 && type->dtype != DType::kI32) || !count) {
    return node.fail(fmt::format("{} must be integers in a vector of a constant length, found {}", what,
                                 node.context().str(node.context().tensor(type->dims, type->dtype))),
                     "export the model with a constant rank");
  }
  return Integers(static_cast<size_t>(*count), node.import().sizes(*atom), *atom);
}

std::optional<Ints> Integers::constants() const {
  if (!dims_) return std::nullopt;
  Ints values;
  for (const Dim dim : *dims_) {
    if (!dim.constant()) return std::nullopt;
    values.push_back(*dim.constant());
  }
  return values;
}

Expected<Atom> Integers::vector(NodeImport& node) const {
  if (operand_) {
    const TensorType type = *node.builder().tensor_type(*operand_);
    Atom atom = *operand_;
    if (type.dtype != DType::kI64) {
      TENON_TRY_ASSIGN(wide, node.apply(ops::kCast, {atom}, {{"dtype", std::string("i64")}}));
      atom = *wide;
    }
    if (type.rank() == 1) return atom;
    return node.apply(ops::kReshape, {atom}, {{"shape", Ints{1}}});
  }
  if (const auto values = constants())
    return node.constant(runtime::Tensor::of<int64_t>({static_cast<int64_t>(values->size())}, *values));
  Atoms parts;
  for (const Dim dim : *dims_) {
    if (const auto value = dim.constant()) {
      parts.push_back(node.builder().constant<int64_t>({}, {*value}));
    } else {
      TENON_TRY_ASSIGN(part, node.builder().dim_value(dim));
      parts.push_back(*part);
    }
  }
  return node.builder().apply(ops::kStack, std::move(parts), {{"axis", int64_t{0}}});
}

Expected<Atom> Integers::scalar(NodeImport& node) const {
  if (count_ != 1) return node.fail(fmt::format("requires one value, found {}", count_));
  TENON_TRY_ASSIGN(values, vector(node));
  return node.apply(ops::kReshape, {*values}, {{"shape", Ints{}}});
}

Expected<Integers> Integers::at_axes(NodeImport& node, const Integers& axes, int64_t rank, int64_t other) const {
  if (axes.size() != count_) return node.fail(fmt::format("{} values for {} axes", count_, axes.size()));
  const auto known = axes.constants();
  if (known && dims_) {
    Dims dims(static_cast<size_t>(rank), node.context().dim(other));
    for (size_t i = 0; i < known->size(); ++i) {
      const int64_t axis = (*known)[i];
      if (axis < -rank || axis >= rank) return node.fail(fmt::format("there is no axis {}", axis));
      dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = (*dims_)[i];
    }
    return Integers(static_cast<size_t>(rank), std::move(dims), std::nullopt);
  }
  const Atom base = node.builder().constant<int64_t>({rank}, Ints(static_cast<size_t>(rank), other));
  TENON_TRY_ASSIGN(values, vector(node));
  TENON_TRY_ASSIGN(indices, axes.vector(node));
  TENON_TRY_ASSIGN(all, node.apply(ops::kScatterElements, {base, *indices, *values}, {{"axis", int64_t{0}}}));
  return Integers(static_cast<size_t>(rank), std::nullopt, *all);
}

Expected<Integers> Integers::part(NodeImport& node, size_t begin, size_t end) const {
  const auto at = [](size_t i) { return static_cast<ptrdiff_t>(i); };
  if (dims_) return Integers(end - begin, Dims(dims_->begin() + at(begin), dims_->begin() + at(end)), std::nullopt);
  TENON_TRY_ASSIGN(values, vector(node));
  TENON_TRY_ASSIGN(part, node.apply(ops::kSlice, {*values},
                                    {{"begin", Ints{at(begin)}}, {"end", Ints{at(end)}}, {"step", Ints{1}}}));
  return Integers(end - begin, std::nullopt, *part);
}

Status OperatorAttributes::set_scalar(NodeImport& node, const std::string& name, const Integers& value) {
  if (value.size() != 1) return node.fail(fmt::format("{} must be one element", name));
  scalars_.insert_or_assign(name, value);
  return {};
}

Expected<Atom> OperatorAttributes::apply(NodeImport& node, OperatorId op, const Atoms& args) const {
  Attrs attrs = attrs_;
  ComputedAttrs computed;
  bool dims = false;
  const auto add = [&](const std::map<std::string, Integers>& values, bool scalar, bool allow_dims) -> Status {
    for (const auto& [name, value] : values) {
      if (const auto constants = value.constants()) {
        attrs.insert_or_assign(name, scalar ? Attr((*constants)[0]) : Attr(*constants));
      } else if (value.dims() && allow_dims) {
        computed.insert_or_assign(name, *value.dims());
        dims = true;
      } else {
        TENON_TRY_ASSIGN(operand, scalar ? value.scalar(node) : value.vector(node));
        computed.insert_or_assign(name, *operand);
      }
    }
    return {};
  };
  for (const auto& [name, operand] : operands_) computed.insert_or_assign(name, operand);
  TENON_TRY(add(computed_, false, true));
  TENON_TRY(add(scalars_, true, true));
  auto result = node.apply(op, args, attrs, computed);
  if (result || !dims) return result;
  TENON_TRY(add(computed_, false, false));
  TENON_TRY(add(scalars_, true, false));
  return node.apply(op, args, attrs, computed);
}

}  // namespace tenon::compiler::onnx
