#include "compiler/fuzz/makers.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace tenon::compiler::fuzz {
namespace {

std::optional<Proposal> complete(const Operator& op, Atoms args, Attrs given = {}) {
  auto attrs = complete_attrs(op, std::move(given));
  if (!attrs) return std::nullopt;
  return Proposal{std::move(args), std::move(*attrs)};
}

// A tensor, of floats where `real`, of `rank` dims where it is given, whose sizes are constants other than 0.
const Local* static_tensor(Body& body, bool real, std::optional<int64_t> rank = {}) {
  return body.any([&](const Local& next) {
    const TensorType* tensor = next.type.tensor();
    return tensor && !next.fuel && (!real || is_float(tensor->dtype)) && tensor->dtype != DType::kBool &&
           (!rank || tensor->rank() == *rank) && tensor->shape() && !std::ranges::count(*tensor->shape(), 0);
  });
}

// Indices in 0 .. limit - 1, some of them counted from the end.
Atom indices(Body& body, const runtime::Shape& shape, int64_t limit) {
  runtime::Tensor tensor(DType::kI64, shape);
  for (int64_t& value : tensor.data<int64_t>()) {
    value = body.random().between(0, limit - 1);
    if (body.random().chance(20)) value -= limit;
  }
  return body.constant(std::move(tensor));
}

// gamma, beta, mean and a positive variance.
std::optional<Proposal> batch_norm(Body& body, const Operator& op) {
  const Local* x = body.any([&](const Local& next) {
    const TensorType* tensor = next.type.tensor();
    return tensor && is_float(tensor->dtype) && tensor->rank() >= 2 && tensor->dims[1].constant();
  });
  if (!x) return std::nullopt;
  const int64_t channels = *x->type.tensor()->dims[1].constant();
  const DType dtype = x->type.tensor()->dtype;
  Atoms args{x->atom};
  for (int i = 0; i < 3; ++i) args.push_back(body.constant(dtype, {channels}));
  runtime::Tensor variance(dtype, {channels});
  for (int64_t i = 0; i < channels; ++i) {
    const double value = static_cast<double>(body.random().between(8, 64)) / 32;
    if (dtype == DType::kF32) variance.data<float>()[i] = static_cast<float>(value);
    else variance.data<double>()[i] = value;
  }
  args.push_back(body.constant(std::move(variance)));
  return complete(op, std::move(args));
}

// A divisor without zeros.
std::optional<Proposal> divide(Body& body, const Operator& op) {
  const Local* x = body.any(
      [&](const Local& next) { return next.type.tensor() && next.type.tensor()->dtype != DType::kBool && !next.fuel; });
  if (!x) return std::nullopt;
  const TensorType tensor = *x->type.tensor();
  const Atom first = x->atom;
  runtime::Shape shape;
  for (Dim dim : tensor.dims) shape.push_back(body.random().chance(50) ? dim.constant().value_or(1) : 1);
  runtime::Tensor divisor = body.types().constant(tensor.dtype, shape);
  runtime::with_dtype<runtime::kNumericTypes>(tensor.dtype, [&]<class T>(T) {
    for (T& value : divisor.data<T>()) value = value > T{} ? value : static_cast<T>(3);
  });
  return complete(op, {first, body.constant(std::move(divisor))});
}

// A shift by few bits.
std::optional<Proposal> shift(Body& body, const Operator& op) {
  const Local* x = body.any([](const Local& next) {
    const TensorType* tensor = next.type.tensor();
    return tensor && !next.fuel && (tensor->dtype == DType::kI32 || tensor->dtype == DType::kI64);
  });
  if (!x) return std::nullopt;
  runtime::Tensor bits(x->type.tensor()->dtype, {});
  const int64_t count = body.random().between(0, 7);
  if (bits.dtype() == DType::kI32) bits.data<int32_t>()[0] = static_cast<int32_t>(count);
  else bits.data<int64_t>()[0] = count;
  const Atom first = x->atom;
  return complete(op, {first, body.constant(std::move(bits))});
}

// The lengths of sequences of at most so many steps.
Atom lengths_of(Body& body, int64_t sequences, int64_t steps) {
  runtime::Tensor lengths(DType::kI64, {sequences});
  for (int64_t& length : lengths.data<int64_t>()) length = body.random().between(0, steps);
  return body.constant(std::move(lengths));
}

std::optional<Proposal> reverse_sequence(Body& body, const Operator& op) {
  const Local* x = static_tensor(body, false);
  if (!x || x->type.tensor()->rank() < 2) return std::nullopt;
  const runtime::Shape shape = *x->type.tensor()->shape();
  const Atom first = x->atom;
  return complete(op, {first, lengths_of(body, shape[1], shape[0])});
}

// x * x + 1, for functions that are defined above 0.
std::optional<Proposal> positive(Body& body, const Operator& op) {
  const Local* x =
      body.any([](const Local& next) { return next.type.tensor() && is_float(next.type.tensor()->dtype); });
  if (!x) return std::nullopt;
  const DType dtype = x->type.tensor()->dtype;
  const Atom value = x->atom;
  const auto square = body.apply(ops::kMultiply, {value, value});
  runtime::Tensor unit(dtype, {});
  if (dtype == DType::kF32) unit.data<float>()[0] = 1;
  else unit.data<double>()[0] = 1;
  const auto above = square ? body.apply(ops::kAdd, {*square, body.constant(std::move(unit))}) : std::nullopt;
  if (!above) return std::nullopt;
  return complete(op, {*above});
}

// Constants in the middle of the domain: the ends are steep.
std::optional<Proposal> within(Body& body, const Operator& op) {
  const DType dtype = body.types().floats();
  runtime::Shape shape;
  for (int64_t i = body.random().between(0, 2); i > 0; --i) shape.push_back(body.random().between(1, 3));
  Atoms args;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    runtime::Tensor tensor(dtype, shape);
    for (int64_t j = 0; j < tensor.size(); ++j) {
      double value = static_cast<double>(body.random().between(-56, 56)) / 64;
      if (op.samples.kind == SampleArguments::Kind::kAboveOne) value = std::fabs(value) + 1.25;
      if (dtype == DType::kF32) tensor.data<float>()[j] = static_cast<float>(value);
      else tensor.data<double>()[j] = value;
    }
    args.push_back(body.constant(std::move(tensor)));
  }
  return complete(op, std::move(args));
}

std::optional<Proposal> gather(Body& body, const Operator& op) {
  const Local* x = static_tensor(body, false);
  if (!x || x->type.tensor()->rank() == 0) return std::nullopt;
  const runtime::Shape shape = *x->type.tensor()->shape();
  const Atom value = x->atom;
  Random& random = body.random();
  const int64_t axis = random.between(0, static_cast<int64_t>(shape.size()) - 1);
  const int64_t limit = shape[static_cast<size_t>(axis)];
  runtime::Shape which;
  if (op.samples.kind == SampleArguments::Kind::kIndices) {
    for (int64_t i = random.between(0, 2); i > 0; --i) which.push_back(random.between(1, 3));
  } else {
    which = shape;
    which[static_cast<size_t>(axis)] = random.between(1, 3);
  }
  Atoms args{value, indices(body, which, limit)};
  if (op.inputs.size() == 3) args.push_back(body.constant(x->type.tensor()->dtype, which));
  return complete(op, std::move(args), {{"axis", axis}});
}

// Index tuples of the first one or more dims of x.
std::optional<Proposal> gather_nd(Body& body, const Operator& op) {
  const Local* x = static_tensor(body, false);
  if (!x || x->type.tensor()->rank() == 0) return std::nullopt;
  const runtime::Shape shape = *x->type.tensor()->shape();
  Random& random = body.random();
  const int64_t depth = random.between(1, static_cast<int64_t>(shape.size())), count = random.between(1, 3);
  const int64_t limit = *std::min_element(shape.begin(), shape.begin() + depth);
  Atoms args{x->atom, indices(body, {count, depth}, limit)};
  if (op.inputs.size() == 3) {
    runtime::Shape updates{count};
    updates.insert(updates.end(), shape.begin() + depth, shape.end());
    args.push_back(body.constant(x->type.tensor()->dtype, updates));
  }
  return complete(op, std::move(args));
}

std::optional<Proposal> compress(Body& body, const Operator& op) {
  const Local* x = static_tensor(body, false);
  if (!x || x->type.tensor()->rank() == 0) return std::nullopt;
  const runtime::Shape shape = *x->type.tensor()->shape();
  const Atom value = x->atom;
  Random& random = body.random();
  const int64_t axis = random.between(0, static_cast<int64_t>(shape.size()) - 1);
  // Parts after the end of the condition are dropped.
  const int64_t length = random.between(0, shape[static_cast<size_t>(axis)]);
  return complete(op, {value, body.constant(DType::kBool, {length})}, {{"axis", axis}});
}

// Boxes [y, x, y, x] with corners in 0 .. 2, so that some overlap.
std::optional<Proposal> boxes(Body& body, const Operator& op) {
  Random& random = body.random();
  const int64_t batches = random.between(1, 2), classes = random.between(1, 2), count = random.between(0, 5);
  runtime::Tensor corners(DType::kF32, {batches, count, 4}), scores(DType::kF32, {batches, classes, count});
  for (float& value : corners.data<float>()) value = static_cast<float>(random.between(0, 8)) / 4;
  for (float& value : scores.data<float>()) value = static_cast<float>(random.between(0, 16)) / 16;
  Attrs attrs{{"max_boxes", random.between(0, 3)},
              {"iou_threshold", static_cast<double>(random.between(0, 4)) / 4},
              {"centered", random.between(0, 1)}};
  if (random.chance(50)) attrs["score_threshold"] = static_cast<double>(random.between(0, 8)) / 16;
  return complete(op, {body.constant(std::move(corners)), body.constant(std::move(scores))}, std::move(attrs));
}

// Regions (left, top, right, bottom) that lie in the images but for their rims.
std::optional<Proposal> regions(Body& body, const Operator& op) {
  const Local* x = static_tensor(body, true, 4);
  Random& random = body.random();
  const DType dtype = x ? x->type.tensor()->dtype : body.types().floats();
  const runtime::Shape shape = x ? *x->type.tensor()->shape() : runtime::Shape{2, 2, 4, 3};
  const Atom images = x ? x->atom : body.constant(dtype, shape);
  const int64_t count = random.between(0, 3);
  runtime::Tensor regions(dtype, {count, 4});
  for (int64_t i = 0; i < regions.size(); ++i) {
    const int64_t size = shape[i % 2 == 0 ? 3 : 2];
    const auto value = static_cast<double>(i % 4 < 2 ? random.between(-1, 1) : random.between(1, 2 * size)) / 2;
    if (dtype == DType::kF32) regions.data<float>()[i] = static_cast<float>(value);
    else regions.data<double>()[i] = value;
  }
  runtime::Tensor batches(DType::kI64, {count});
  for (int64_t& batch : batches.data<int64_t>()) batch = random.between(0, shape[0] - 1);
  Attrs attrs{{"size", std::vector<int64_t>{random.between(1, 3), random.between(1, 3)}},
              {"sampling_ratio", random.between(0, 2)},
              {"mode", random.of({"avg", "max"})},
              {"half_pixel", random.between(0, 1)}};
  return complete(op, {images, body.constant(std::move(regions)), body.constant(std::move(batches))}, std::move(attrs));
}

std::optional<Proposal> einsum(Body& body, const Operator& op) {
  struct Form {
    std::string_view equation;
    std::string_view first, second;
  };
  static constexpr Form kForms[] = {{"ij,jk->ik", "ij", "jk"},      {"i,j->ij", "i", "j"}, {"ij->ji", "ij", ""},
                                    {"bij,bjk->bik", "bij", "bjk"}, {"ij->i", "ij", ""},   {"ii->i", "ii", ""},
                                    {"ij,ij->", "ij", "ij"}};
  Random& random = body.random();
  const Form& form = kForms[random.between(0, std::size(kForms) - 1)];
  std::map<char, int64_t> sizes;
  const Local* x = static_tensor(body, true, static_cast<int64_t>(form.first.size()));
  if (!x) return std::nullopt;
  for (size_t i = 0; i < form.first.size(); ++i) {
    const int64_t size = *x->type.tensor()->dims[i].constant();
    if (sizes.emplace(form.first[i], size).first->second != size) return std::nullopt;
  }
  Atoms args{x->atom};
  if (!form.second.empty()) {
    runtime::Shape shape;
    for (const char letter : form.second) {
      if (!sizes.contains(letter)) sizes[letter] = random.between(1, 3);
      shape.push_back(sizes[letter]);
    }
    args.push_back(body.constant(x->type.tensor()->dtype, shape));
  }
  return complete(op, std::move(args), {{"equation", std::string(form.equation)}});
}

// x [T, N, I], w [D, GH, I], r [D, GH, H], b [D, 2GH] (with peepholes [D, 11H]), h and c [D, N, H], lengths [N].
std::optional<Proposal> recurrent(Body& body, const Operator& op) {
  const Local* x = static_tensor(body, true, 3);
  Random& random = body.random();
  const DType dtype = x ? x->type.tensor()->dtype : body.types().floats();
  const runtime::Shape shape = x ? *x->type.tensor()->shape() : runtime::Shape{2, 2, 3};
  const Atom first = x ? x->atom : body.constant(dtype, shape);
  const std::string direction = random.of({"forward", "reverse", "bidirectional"});
  const int64_t gates = op.samples.count, hidden = random.between(1, 3);
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  Atoms args{first};
  args.push_back(body.constant(dtype, {directions, gates * hidden, shape[2]}));
  args.push_back(body.constant(dtype, {directions, gates * hidden, hidden}));
  args.push_back(
      body.constant(dtype, {directions, 2 * gates * hidden + (gates == 4 && random.chance(30) ? 3 * hidden : 0)}));
  args.push_back(body.constant(dtype, {directions, shape[1], hidden}));
  if (gates == 4) args.push_back(body.constant(dtype, {directions, shape[1], hidden}));
  if (op.inputs.back().name == "lengths") args.push_back(lengths_of(body, shape[1], shape[0]));
  return complete(op, std::move(args), {{"direction", direction}});
}

// acc, bias, multiplier, shift and a residual.
std::optional<Proposal> requantize(Body& body, const Operator& op) {
  const Local* acc = body.any([](const Local& next) {
    const TensorType* tensor = next.type.tensor();
    return tensor && !next.fuel && tensor->dtype == DType::kI32 && tensor->shape() && tensor->rank() > 0;
  });
  Random& random = body.random();
  const runtime::Shape shape = acc ? *acc->type.tensor()->shape() : runtime::Shape{2, 3};
  const Atom first = acc ? acc->atom : body.constant(DType::kI32, shape);
  const int64_t axis = random.between(0, static_cast<int64_t>(shape.size()) - 1);
  const runtime::Shape channels{shape[static_cast<size_t>(axis)]};
  runtime::Tensor shifts(DType::kU8, channels);
  for (uint8_t& shift : shifts.data<uint8_t>()) shift = static_cast<uint8_t>(random.between(8, 20));
  Atoms args{first, body.constant(DType::kI32, channels), body.constant(DType::kU16, channels),
             body.constant(std::move(shifts))};
  Attrs attrs{{"axis", axis}};
  if (op.inputs.size() == 5) {  // with a residual
    args.push_back(body.constant(DType::kI8, shape));
    attrs["r_multiplier"] = random.between(0, 1000);
    attrs["r_shift"] = random.between(0, 4);
  }
  return complete(op, std::move(args), std::move(attrs));
}

std::optional<Proposal> random_values(Body& body, const Operator& op) {
  Attrs attrs;
  Random& random = body.random();
  for (const AttrSpec& spec : op.attributes) {
    if (spec.name == "shape") attrs["shape"] = std::vector<int64_t>{random.between(1, 3), 2};
    if (spec.name == "dtype") attrs["dtype"] = std::string(runtime::name(body.types().floats()));
    if (spec.name == "count") attrs["count"] = random.between(1, 3);
  }
  const Type key = body.context().tensor(Dims{body.context().dim(2)}, DType::kI32);
  const Local* local = body.any([&](const Local& next) { return next.type == key; });
  return complete(op, {local ? local->atom : body.constant(DType::kI32, {2})}, std::move(attrs));
}

}  // namespace

Maker find_maker(const Operator& op) {
  using Kind = SampleArguments::Kind;
  switch (op.samples.kind) {
    case Kind::kAny:
    case Kind::kImages:
    case Kind::kPermutation:
    case Kind::kSameSize: return nullptr;
    case Kind::kAboveZero: return positive;
    case Kind::kUnitInterval:
    case Kind::kAboveOne: return within;
    case Kind::kStatistics: return batch_norm;
    case Kind::kDivisor: return divide;
    case Kind::kShift: return shift;
    case Kind::kLengths: return reverse_sequence;
    case Kind::kIndices:
    case Kind::kElementIndices: return gather;
    case Kind::kIndexTuples: return gather_nd;
    case Kind::kCondition: return compress;
    case Kind::kBoxes: return boxes;
    case Kind::kRegions: return regions;
    case Kind::kEquation: return einsum;
    case Kind::kRecurrent: return recurrent;
    case Kind::kRequantization: return requantize;
    case Kind::kRandomKey: return random_values;
  }
  return nullptr;
}

}  // namespace tenon::compiler::fuzz
