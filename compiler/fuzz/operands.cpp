#include "compiler/fuzz/operands.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace tenon::compiler::fuzz {
namespace {

constexpr int64_t kMaxElements = 2048;

using Ints = std::vector<int64_t>;

// A guess at what an operator takes; `x` is its first argument's type.
class Guess {
 public:
  Guess(Body& body, const Operator& op) : body_(body), random_(body.random()), op_(op), exact_(!continuous(op)) {}

  std::optional<Proposal> run() {
    Proposal proposal;
    const bool image = op_.name.find("2d") != std::string::npos || op_.name.find("global") != std::string::npos;
    const Atom first = image && random_.chance(90) ? this->image() : tensor();
    proposal.args.push_back(first);
    const Type type = body_.type_of(first);
    const TensorType& x = *type.tensor();
    const auto count = static_cast<int64_t>(op_.inputs.size());
    const int64_t wanted = op_.variadic() ? count + random_.between(0, 2) : count;
    for (int64_t i = 1; i < wanted; ++i) proposal.args.push_back(other(x));
    for (const AttrSpec& spec : op_.attributes) {
      if (spec.default_value && random_.chance(65)) continue;
      proposal.attrs[spec.name] = attribute(spec, x);
    }
    auto attrs = complete_attrs(op_, std::move(proposal.attrs));
    if (!attrs) return std::nullopt;
    proposal.attrs = std::move(*attrs);
    return proposal;
  }

 private:
  bool allowed(const Local& local) const {
    const TensorType* tensor = local.type.tensor();
    return tensor && !local.fuel && (!exact_ || !is_float(tensor->dtype) || local.exact);
  }
  DType number() { return random_.chance(60) ? body_.types().floats() : body_.types().dtype(); }
  Atom fresh(DType dtype, runtime::Shape shape) { return body_.constant(dtype, shape); }

  Atom tensor() {
    const Local* local = body_.any([&](const Local& next) { return allowed(next); });
    if (local && random_.chance(90)) return local->atom;
    const Type type = body_.types().tensor();
    return fresh(type.tensor()->dtype, *type.tensor()->shape());
  }
  Atom image() {
    const Local* local = body_.any([&](const Local& next) { return allowed(next) && next.type.tensor()->rank() == 4; });
    if (local && random_.chance(80)) return local->atom;
    const DType dtype = number();
    runtime::Shape shape{random_.between(1, 2)};
    for (int i = 0; i < 3; ++i) shape.push_back(random_.between(1, 4));
    return fresh(dtype, shape);
  }

  // A tensor that is there, or a constant.
  Atom of(const Dims& dims, DType dtype) {
    const Type wanted = body_.context().tensor(dims, dtype);
    const Local* local = body_.any([&](const Local& next) { return next.type == wanted && allowed(next); });
    const auto shape = wanted.tensor()->shape();
    if (local && (!shape || random_.chance(70))) return local->atom;
    return shape ? fresh(dtype, *shape) : tensor();
  }

  // An argument beside a first one of type x: of its type, one that broadcasts, a vector along one of its dims,
  // weights.
  Atom other(const TensorType& x) {
    const int64_t draw = random_.between(0, 99);
    const DType dtype = random_.chance(85) ? x.dtype : random_.chance(60) ? DType::kI64 : body_.types().dtype();
    Dims dims = x.dims;
    if (draw < 40) return of(dims, dtype);
    if (draw < 55) {
      for (Dim& dim : dims) {
        if (random_.chance(40)) dim = body_.context().dim(1);
      }
      if (random_.chance(40) && !dims.empty()) dims.erase(dims.begin());
      return of(dims, dtype);
    }
    if (draw < 75 && !dims.empty()) {
      const int64_t axis = random_.chance(50) ? std::min<int64_t>(1, x.rank() - 1) : random_.between(0, x.rank() - 1);
      return of({dims[axis]}, dtype);
    }
    if (draw < 88 && dims.size() >= 2) {  // weights: [k, new], [new, k], or a kernel of as many dims
      if (x.rank() == 2 || random_.chance(50)) {
        Dims weights{dims.back(), body_.context().dim(random_.between(1, 4))};
        if (random_.chance(50)) std::swap(weights[0], weights[1]);
        return of(weights, dtype);
      }
      const int64_t channels = dims[1].constant().value_or(1), outputs = random_.between(1, 3);
      Dims kernel{body_.context().dim(outputs), body_.context().dim(random_.chance(75) ? channels : 1)};
      while (kernel.size() < dims.size()) kernel.push_back(body_.context().dim(random_.between(1, 2)));
      if (random_.chance(20)) std::swap(kernel[0], kernel[1]);
      return of(kernel, dtype);
    }
    return tensor();
  }

  Attr attribute(const AttrSpec& spec, const TensorType& x) {
    const std::string& name = spec.name;
    const int64_t rank = x.rank();
    switch (spec.kind) {
      case AttrKind::kInt:
        if (name.find("axis") != std::string::npos) {
          return rank == 0 ? int64_t{0} : random_.between(-rank, rank - 1);
        }
        return random_.chance(70) ? random_.between(0, 2) : random_.between(-3, 5);
      case AttrKind::kFloat:
        if (name == "max" || name == "hi") return static_cast<double>(random_.between(0, 4));
        if (name == "min" || name == "lo") return static_cast<double>(random_.between(-4, 0));
        return is_float(x.dtype) ? static_cast<double>(random_.between(-32, 32)) / 16
                                 : static_cast<double>(random_.between(0, 1));
      case AttrKind::kString: return word(spec);
      case AttrKind::kInts: return ints(name, x);
      case AttrKind::kFloats: return floats(x);
    }
    return int64_t{0};
  }

  // A dtype, a layout, or one of the words in the attribute's documentation.
  std::string word(const AttrSpec& spec) {
    if (spec.name == "dtype") {
      const DType dtype = body_.types().dtype();
      return std::string(runtime::name(dtype));
    }
    if (spec.name == "from" || spec.name == "to") {
      return random_.of({"NCHW", "NHWC", "NCHW4c", "NCHW2c", "NC", "CN", "NC2c", "CHWN"});
    }
    std::vector<std::string> words;
    std::string text;
    for (const char c : spec.documentation + " ") {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') text += c;
      else if (!text.empty()) words.push_back(std::move(text)), text.clear();
    }
    if (spec.default_value) words.push_back(std::get<std::string>(*spec.default_value));
    if (words.empty()) return "";
    return words[static_cast<size_t>(random_.between(0, static_cast<int64_t>(words.size()) - 1))];
  }

  Ints ints(std::string_view name, const TensorType& x) {
    const int64_t rank = x.rank();
    Ints values;
    if (name == "axes" || name == "perm" || name == "permutation") {
      for (int64_t i = 0; i < rank; ++i) values.push_back(i);
      for (int64_t i = rank - 1; i > 0; --i) std::swap(values[i], values[random_.between(0, i)]);
      if (op_.name != "transpose" && !values.empty()) {
        values.resize(static_cast<size_t>(random_.between(1, rank)));
        if (random_.chance(30)) values[0] -= rank;
      }
      return values;
    }
    if (name == "shape" || name == "sizes") return shape(x);
    int64_t length = rank;
    if (name == "kernel" || name == "strides" || name == "dilation") length = std::max<int64_t>(1, rank - 2);
    if (name == "padding") length = 2 * std::max<int64_t>(1, rank - 2);
    if (name == "zero_point") length = 1;
    if (random_.chance(10)) length = random_.between(0, 4);
    for (int64_t i = 0; i < length; ++i) {
      if (name == "end") values.push_back(random_.chance(40) ? INT64_MAX : random_.between(-2, 5));
      else if (name == "begin") values.push_back(random_.chance(50) ? 0 : random_.between(-2, 3));
      else if (name == "step") values.push_back(random_.chance(75) ? 1 : random_.of({-1, 2, 3}));
      else if (name == "kernel") values.push_back(random_.between(1, 3));
      else if (name == "strides" || name == "dilation") values.push_back(random_.between(1, 2));
      else if (name == "zero_point") values.push_back(random_.between(0, 5));
      else values.push_back(random_.chance(60) ? 0 : random_.between(0, 2));
    }
    return values;
  }

  // Another shape of the same size.
  Ints shape(const TensorType& x) {
    Ints sizes;
    const auto known = x.shape();
    if (!known) {
      if (random_.chance(40)) return {-1};
      for (Dim dim : x.dims) sizes.push_back(dim.constant() ? *dim.constant() : 0);
      if (random_.chance(50)) sizes.insert(sizes.begin() + random_.between(0, x.rank()), 1);
      return sizes;
    }
    int64_t rest = runtime::element_count(*known);
    for (int64_t divisor : {2, 3, 2, 5, 2, 3}) {
      if (rest > 0 && rest % divisor == 0 && random_.chance(50)) sizes.push_back(divisor), rest /= divisor;
    }
    sizes.insert(sizes.begin() + random_.between(0, static_cast<int64_t>(sizes.size())), rest);
    if (random_.chance(20)) sizes.push_back(1);
    if (rest > 0 && random_.chance(25)) {
      sizes[static_cast<size_t>(random_.between(0, static_cast<int64_t>(sizes.size()) - 1))] = -1;
    }
    return sizes;
  }

  std::vector<double> floats(const TensorType& x) {
    int64_t count = 1;
    if (x.rank() >= 2 && random_.chance(50)) count = x.dims[1].constant().value_or(1);
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(random_.between(1, 32)) / 64);
    return values;
  }

  Body& body_;
  Random& random_;
  const Operator& op_;
  bool exact_;
};

// gamma, beta, mean and a variance that is positive.
std::optional<Proposal> batch_norm(Body& body, const Operator& op) {
  const Local* x = body.any([&](const Local& next) {
    const TensorType* tensor = next.type.tensor();
    return tensor && is_float(tensor->dtype) && tensor->rank() >= 2 && tensor->dims[1].constant();
  });
  if (!x) return std::nullopt;
  const int64_t channels = *x->type.tensor()->dims[1].constant();
  const DType dtype = x->type.tensor()->dtype;
  Proposal proposal{{x->atom}, {}};
  for (int i = 0; i < 3; ++i) proposal.args.push_back(body.constant(dtype, {channels}));
  runtime::Tensor variance(dtype, {channels});
  for (int64_t i = 0; i < channels; ++i) {
    const double value = static_cast<double>(body.random().between(8, 64)) / 32;
    if (dtype == DType::kF32) variance.data<float>()[i] = static_cast<float>(value);
    else variance.data<double>()[i] = value;
  }
  proposal.args.push_back(body.constant(std::move(variance)));
  auto attrs = complete_attrs(op, {});
  if (!attrs) return std::nullopt;
  proposal.attrs = std::move(*attrs);
  return proposal;
}

// A divisor that is never zero.
std::optional<Proposal> divide(Body& body, const Operator& op) {
  const Local* x = body.any(
      [&](const Local& next) { return next.type.tensor() && next.type.tensor()->dtype != DType::kBool && !next.fuel; });
  if (!x) return std::nullopt;
  const TensorType tensor = *x->type.tensor();
  Proposal proposal{{x->atom}, {}};
  runtime::Shape shape;
  for (Dim dim : tensor.dims) shape.push_back(body.random().chance(50) ? dim.constant().value_or(1) : 1);
  runtime::Tensor divisor = body.types().constant(tensor.dtype, shape);
  auto positive = [&]<class T>(T) {
    for (T& value : divisor.data<T>()) value = value > 0 ? value : static_cast<T>(3);
  };
  switch (tensor.dtype) {
    case DType::kBool: return std::nullopt;
    case DType::kI8: positive(int8_t{}); break;
    case DType::kU8: positive(uint8_t{}); break;
    case DType::kI16: positive(int16_t{}); break;
    case DType::kU16: positive(uint16_t{}); break;
    case DType::kI32: positive(int32_t{}); break;
    case DType::kI64: positive(int64_t{}); break;
    case DType::kF32: positive(float{}); break;
    case DType::kF64: positive(double{}); break;
  }
  proposal.args.push_back(body.constant(std::move(divisor)));
  auto attrs = complete_attrs(op, {});
  if (!attrs) return std::nullopt;
  proposal.attrs = std::move(*attrs);
  return proposal;
}

}  // namespace

bool continuous(const Operator& op) {
  static const std::set<std::string_view> kNames{
      "identity", "relu",      "clip",   "sigmoid",    "tanh",       "add",
      "subtract", "multiply",  "divide", "bias_add",   "batch_norm", "flatten",
      "reshape",  "transpose", "concat", "slice",      "pad",        "layout_transform",
      "conv2d",   "dense",     "matmul", "max_pool2d", "avg_pool2d", "global_avg_pool",
      "softmax",
  };
  return kNames.contains(op.name);
}

std::optional<Proposal> propose(Body& body, const Operator& op) {
  if (!op.reference) return std::nullopt;
  for (int attempt = 0; attempt < 10; ++attempt) {
    auto proposal = op.name == "batch_norm" ? batch_norm(body, op)
                    : op.name == "divide"   ? divide(body, op)
                                            : Guess(body, op).run();
    if (!proposal) continue;
    std::vector<Type> types;
    for (const Atom& arg : proposal->args) types.push_back(body.type_of(arg));
    const auto type = infer_apply(body.context(), op, proposal->attrs, types);
    if (!type) continue;
    const auto shape = type->tensor() ? type->tensor()->shape() : std::nullopt;
    if (shape && runtime::element_count(*shape) > kMaxElements) continue;
    return proposal;
  }
  return std::nullopt;
}

}  // namespace tenon::compiler::fuzz
