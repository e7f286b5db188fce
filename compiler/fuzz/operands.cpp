#include "compiler/fuzz/makers.h"

#include <algorithm>
#include <string_view>

namespace tenon::compiler::fuzz {
namespace {

constexpr int64_t kMaxElements = 2048;

using Ints = std::vector<int64_t>;

// Guesses arguments and attributes of an operator; `x` is the type of its first argument.
class Guess {
 public:
  Guess(Body& body, const Operator& op) : body_(body), random_(body.random()), op_(op), exact_(!op.continuous) {}

  std::optional<Proposal> run() {
    Proposal proposal;
    const bool none = op_.inputs.empty();
    const bool image = image_rank() > 0;
    const Atom first = image && random_.chance(90) ? this->image() : tensor();
    if (!none) proposal.args.push_back(first);
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
  // Rank of the operator's images; 0 where its argument is no image.
  int64_t image_rank() const { return op_.samples.kind == SampleArguments::Kind::kImages ? op_.samples.count + 2 : 0; }
  bool allowed(const Local& local) const {
    const TensorType* tensor = local.type.tensor();
    return tensor && !local.fuel && (!exact_ || !is_float(tensor->dtype) || local.exact);
  }
  DType random_dtype() { return random_.chance(60) ? body_.types().floats() : body_.types().dtype(); }
  Atom fresh(DType dtype, const runtime::Shape& shape) { return body_.constant(dtype, shape); }

  Atom tensor() {
    const Local* local = body_.any([&](const Local& next) { return allowed(next); });
    if (local && random_.chance(90)) return local->atom;
    const Type type = body_.types().tensor();
    return fresh(type.tensor()->dtype, *type.tensor()->shape());
  }
  Atom image() {
    const Local* local =
        body_.any([&](const Local& next) { return allowed(next) && next.type.tensor()->rank() == image_rank(); });
    if (local && random_.chance(80)) return local->atom;
    const DType dtype = random_dtype();
    runtime::Shape shape{random_.between(1, 2)};
    for (int64_t i = 1; i < image_rank(); ++i) shape.push_back(random_.between(1, 4));
    return fresh(dtype, shape);
  }

  // A tensor in scope, or a constant.
  Atom of(const Dims& dims, DType dtype) {
    const Type wanted = body_.context().tensor(dims, dtype);
    const Local* local = body_.any([&](const Local& next) { return next.type == wanted && allowed(next); });
    const auto shape = wanted.tensor()->shape();
    if (local && (!shape || random_.chance(70))) return local->atom;
    return shape ? fresh(dtype, *shape) : tensor();
  }

  // An argument after a first one of type x: of the same type, a broadcast one, a vector along one of its dims,
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
        if (name == "count" || name == "rows" || name == "columns" || name == "depth" || name == "k") {
          return random_.between(1, 4);
        }
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

  // A dtype, a layout, or a word of the attribute's documentation.
  std::string word(const AttrSpec& spec) {
    if (spec.name == "dtype") {
      const DType dtype = body_.types().dtype();
      return std::string(runtime::name(dtype));
    }
    if (spec.name == "from" || spec.name == "to") {
      return random_.of({"NCHW", "NHWC", "NCHW4c", "NCHW2c", "NC", "CN", "NC2c", "CHWN"});
    }
    std::vector<std::string> tokens;
    std::string text;
    for (const char c : spec.documentation + " ") {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') text += c;
      else if (!text.empty()) tokens.push_back(std::move(text)), text.clear();
    }
    if (spec.default_value) tokens.push_back(std::get<std::string>(*spec.default_value));
    if (tokens.empty()) return "";
    return tokens[static_cast<size_t>(random_.between(0, static_cast<int64_t>(tokens.size()) - 1))];
  }

  Ints ints(std::string_view name, const TensorType& x) {
    const int64_t rank = x.rank();
    Ints values;
    if (name == "axes" || name == "perm" || name == "permutation") {
      for (int64_t i = 0; i < rank; ++i) values.push_back(i);
      for (int64_t i = rank - 1; i > 0; --i) std::swap(values[i], values[random_.between(0, i)]);
      if (op_.samples.kind != SampleArguments::Kind::kPermutation && !values.empty()) {
        values.resize(static_cast<size_t>(random_.between(1, rank)));
        if (random_.chance(30)) values[0] -= rank;
      }
      return values;
    }
    if (name == "shape" && op_.inputs.empty()) {
      for (int64_t i = random_.between(0, 3); i > 0; --i) values.push_back(random_.between(1, 4));
      return values;
    }
    if (name == "shape" && op_.samples.kind != SampleArguments::Kind::kSameSize) {  // a broadcast
      for (int64_t i = random_.chance(30) ? 1 : 0; i > 0; --i) values.push_back(random_.between(1, 3));
      for (Dim dim : x.dims)
        values.push_back(dim.constant() == 1 ? random_.between(1, 3) : dim.constant().value_or(-1));
      return values;
    }
    if (name == "shape") return shape(x);
    if (name == "sizes") {  // of the parts of one dim
      int64_t remaining = x.dims.empty() ? 1 : x.dims[0].constant().value_or(1);
      while (remaining > 0) values.push_back(random_.between(1, remaining)), remaining -= values.back();
      return values;
    }
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
      else if (name == "repeats") values.push_back(random_.between(1, 2));
      else if (name == "zero_point") values.push_back(random_.between(0, 5));
      else values.push_back(random_.chance(60) ? 0 : random_.between(0, 2));
    }
    return values;
  }

  // Another shape with as many elements.
  Ints shape(const TensorType& x) {
    Ints sizes;
    const auto static_shape = x.shape();
    if (!static_shape) {
      if (random_.chance(40)) return {-1};
      for (Dim dim : x.dims) sizes.push_back(dim.constant() ? *dim.constant() : 0);
      if (random_.chance(50)) sizes.insert(sizes.begin() + random_.between(0, x.rank()), 1);
      return sizes;
    }
    int64_t remaining = runtime::element_count(*static_shape);
    for (int64_t divisor : {2, 3, 2, 5, 2, 3}) {
      if (remaining > 0 && remaining % divisor == 0 && random_.chance(50)) {
        sizes.push_back(divisor);
        remaining /= divisor;
      }
    }
    sizes.insert(sizes.begin() + random_.between(0, static_cast<int64_t>(sizes.size())), remaining);
    if (random_.chance(20)) sizes.push_back(1);
    if (remaining > 0 && random_.chance(25)) {
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

// Whether a size is known only when the program runs.
bool erased(Type type) {
  if (auto* tensor = type.tensor()) return std::ranges::any_of(tensor->dims, &Dim::erased);
  return type.tuple() && std::ranges::any_of(type.tuple()->fields, erased);
}

// Whether a size of the result is unknown because the operator's arguments are not known well enough: with constant
// sizes, it is the values on which the size depends.
bool vague(Body& body, const Proposal& proposal, Type type) {
  return erased(type) && !std::ranges::all_of(proposal.args, [&](const Atom& atom) {
           const TensorType* tensor = body.type_of(atom).tensor();
           return tensor && tensor->shape();
         });
}

}  // namespace

std::optional<Proposal> propose(Body& body, const Operator& op) {
  if (!op.reference) return std::nullopt;
  const Maker maker = find_maker(op);
  std::optional<Proposal> proposal;
  for (int attempt = 0; attempt < (maker ? 3 : 10); ++attempt) {
    proposal = maker ? maker(body, op) : Guess(body, op).run();
    if (!proposal) continue;
    const auto type = body.infer(Apply{&op, proposal->attrs, proposal->args});
    if (!type || vague(body, *proposal, *type)) {
      if (type) proposal.reset();
      continue;
    }
    const auto shape = type->tensor() ? type->tensor()->shape() : std::nullopt;
    if (!shape || runtime::element_count(*shape) <= kMaxElements) return proposal;
    proposal.reset();
  }
  return proposal;  // the last proposal: a match_cast that goes before it may make it fit
}

}  // namespace tenon::compiler::fuzz
