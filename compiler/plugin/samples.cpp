#include "compiler/plugin/samples.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "compiler/fuzz/operands.h"
#include "compiler/ir/context.h"
#include "compiler/ir/infer.h"

namespace tenon::compiler::plugin {
namespace {

constexpr int kGuesses = 40;  // of the operands of one operator

class Sampler {
 public:
  Sampler(Context& context, Random& random)
      : context_(context),
        random_(random),
        options_{.control = false, .floats = DType::kF32},
        types_(context, random, sample_.module, options_),
        builder_(context, sample_.module, function_) {}

  std::optional<PatternSample> run(const GraphPattern& pattern) {
    const auto result = make(pattern);
    if (!result || !std::holds_alternative<VarId>(*result)) return std::nullopt;
    builder_.finish(*result);
    sample_.module.globals.emplace(context_.symbol("main"), std::move(function_));
    return std::move(sample_);
  }

 private:
  using Made = std::optional<Atom>;

  // The pattern that is matched: of alternatives and of optional operators a random one.
  const GraphPattern& choose(const GraphPattern& pattern) {
    if (pattern.kind == GraphPattern::Kind::kEither) return choose(random_.one_of(pattern.parts));
    return pattern;
  }

  // The value that the pattern describes; `through` is the first operand that it leaves open.
  Made make(const GraphPattern& alternatives, Made through = {}) {
    const GraphPattern& pattern = choose(alternatives);
    const auto known = values_.find(pattern.name);
    if (known != values_.end()) return known->second;
    Made made;
    switch (pattern.kind) {
      case GraphPattern::Kind::kOp:
      case GraphPattern::Kind::kOptional: made = operation(pattern, through); break;
      case GraphPattern::Kind::kPath: made = path(pattern, through); break;
      case GraphPattern::Kind::kField: made = field(pattern); break;
      case GraphPattern::Kind::kTuple: made = tuple(pattern); break;
      case GraphPattern::Kind::kAny:
      case GraphPattern::Kind::kConstant:
      case GraphPattern::Kind::kEither:
      case GraphPattern::Kind::kBranch:
      case GraphPattern::Kind::kFunction: return std::nullopt;
    }
    if (made && !pattern.name.empty()) values_.emplace(pattern.name, *made);
    return made;
  }

  // From the start, or from an operand of the first step, through some steps to the end.
  Made path(const GraphPattern& pattern, Made through) {
    const GraphPattern& start = choose(pattern.parts[0]);
    Made value = is_free(start) ? through : make(start, through);
    if (!value && !is_free(start)) return std::nullopt;
    for (int64_t steps = random_.between(0, 3); steps > 0; --steps) {
      value = make(pattern.parts[1], value);
      if (!value) return std::nullopt;
    }
    return make(pattern.parts[2], value);
  }

  Made field(const GraphPattern& pattern) {
    const Made of = make(pattern.parts[0]);
    if (!of || builder_.type_of(*of)->parts().size() <= pattern.field || !builder_.type_of(*of)->tuple()) return {};
    const auto made = builder_.project(*of, pattern.field);
    return made ? Made(*made) : std::nullopt;
  }

  Made tuple(const GraphPattern& pattern) {
    Atoms fields;
    for (const GraphPattern& part : pattern.parts) {
      const Made made = make(part);
      if (!made) return std::nullopt;
      fields.push_back(*made);
    }
    const auto made = builder_.tuple(std::move(fields));
    return made ? Made(*made) : std::nullopt;
  }

  Made operation(const GraphPattern& pattern, Made through) {
    const Operator* op = context_.find_operator(name(pattern.op));
    if (!op) return std::nullopt;
    // What a part does not describe is guessed with the operator.
    std::vector<const GraphPattern*> parts;
    std::vector<Made> given;
    if (pattern.any_operands && through) given.push_back(through);
    for (const GraphPattern& part : pattern.parts) {
      const GraphPattern& chosen = choose(part);
      parts.push_back(&chosen);
      const auto known = values_.find(chosen.name);
      if (known != values_.end()) given.emplace_back(known->second);
      else if (is_free(chosen))
        given.push_back(chosen.kind == GraphPattern::Kind::kAny ? std::exchange(through, std::nullopt) : std::nullopt);
      else if (Made made = make(chosen)) given.push_back(made);
      else return std::nullopt;
    }
    // An optional operator that is missing.
    if (pattern.kind == GraphPattern::Kind::kOptional && given.front() && random_.chance(40)) return given.front();
    for (int guess = 0; guess < kGuesses; ++guess) {
      if (Made made = apply(*op, pattern, parts, given)) return made;
    }
    return std::nullopt;
  }

  static bool is_free(const GraphPattern& pattern) {
    return pattern.kind == GraphPattern::Kind::kAny || pattern.kind == GraphPattern::Kind::kConstant;
  }

  Made apply(const Operator& op, const GraphPattern& pattern, const std::vector<const GraphPattern*>& parts,
             const std::vector<Made>& given) {
    const Builder::Checkpoint before = builder_.checkpoint();
    fuzz::Body body(types_, random_, builder_, options_);
    for (const Made& made : given) {
      if (made) body.add({.atom = *made, .type = *builder_.type_of(*made), .exact = true});
    }
    if (op.samples.kind == SampleArguments::Kind::kImages && !given.empty() && !given.front()) {
      // Larger than the fuzzer's, so that windows, strides and padding count.
      runtime::Shape shape{random_.between(1, 2), random_.chance(50) ? random_.between(1, 3) : random_.between(4, 9)};
      while (static_cast<int64_t>(shape.size()) < op.samples.count + 2) shape.push_back(random_.between(3, 8));
      const auto& type = parts.front()->type;
      const Atom image = body.constant(type && type->dtype ? *type->dtype : DType::kF32, shape);
      body.add({.atom = image, .type = *builder_.type_of(image), .exact = true});
    }
    auto proposal = fuzz::propose(body, op);
    if (!proposal || (!pattern.any_operands && proposal->args.size() != parts.size())) return std::nullopt;
    Atoms args = std::move(proposal->args);
    if (op.attribute("groups") && args.size() >= 2 && random_.chance(25) && (given.size() < 2 || !given[1])) {
      // A depthwise one.
      const TensorType *x = builder_.tensor_type(args[0]), *w = builder_.tensor_type(args[1]);
      auto shape = x && w && x->rank() == w->rank() ? w->shape() : std::nullopt;
      const auto channels = shape && shape->size() > 2 ? x->dims[1].constant() : std::nullopt;
      if (channels) {
        (*shape)[0] = *channels, (*shape)[1] = 1;
        args[1] = body.constant(w->dtype, *shape);
        proposal->attrs["groups"] = *channels;
      }
    }
    // The dtypes that the pattern requires, and equal ones for operands that had equal ones.
    std::map<DType, DType> dtypes;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i]->type && parts[i]->type->dtype && !given[i])
        dtypes.emplace(builder_.tensor_type(args[i])->dtype, *parts[i]->type->dtype);
    }
    std::vector<runtime::Tensor> inputs;
    std::map<std::string, Atom> values;
    for (size_t i = 0; i < args.size(); ++i) {
      const GraphPattern* part = i < parts.size() ? parts[i] : nullptr;
      if (i < given.size() && given[i]) {
        args[i] = *given[i];
        continue;
      }
      // A name that stands twice is one value.
      const auto same = part && !part->name.empty() ? values.find(part->name) : values.end();
      if (same != values.end()) {
        args[i] = same->second;
        continue;
      }
      const TensorType* type = builder_.tensor_type(args[i]);
      const auto* constant = std::get_if<ConstId>(&args[i]);
      if (!type || !type->shape()) return std::nullopt;
      const auto changed = dtypes.find(type->dtype);
      const DType dtype = changed == dtypes.end() ? type->dtype : changed->second;
      // A constant that the proposal has may be more than a tensor of this type, as a divisor.
      runtime::Tensor value = constant && dtype == type->dtype ? sample_.module.constant(*constant)
                                                               : types_.constant(dtype, *type->shape());
      if (op.samples.kind == SampleArguments::Kind::kRequantization) scale(value, i);
      if (part && part->kind == GraphPattern::Kind::kConstant) {
        args[i] = builder_.constant(std::move(value));
      } else if (i == 0 || random_.chance(70)) {
        args[i] = builder_.param(context_.type_of(value), "x");
        inputs.push_back(std::move(value));
      } else {
        args[i] = builder_.constant(std::move(value));
      }
      if (part && !part->name.empty()) values.emplace(part->name, args[i]);
    }
    const auto with_wanted = [&](Attrs attrs) {
      for (const AttrPattern& wanted : pattern.attrs) {
        const Attr& value = random_.one_of(wanted.values);
        Attr& attr = attrs[wanted.name];
        const auto* number = std::get_if<int64_t>(&value);
        if (auto* list = std::get_if<std::vector<int64_t>>(&attr); list && number) std::ranges::fill(*list, *number);
        else attr = value;
      }
      return attrs;
    };
    auto made = builder_.apply(op, args, with_wanted(varied(op, proposal->attrs)));
    if (!made) made = builder_.apply(op, args, with_wanted(proposal->attrs));
    if (!made) {
      forget_params(before);
      return std::nullopt;
    }
    std::ranges::move(inputs, std::back_inserter(sample_.inputs));
    values_.merge(values);
    return *made;
  }

  // Bias, multiplier and shift of a requantization, whose results are spread over i8.
  void scale(runtime::Tensor& value, size_t operand) {
    value = value.clone();
    constexpr size_t kBias = 1, kMultiplier = 2, kShift = 3;
    if (operand == kBias && value.dtype() == DType::kI32) {
      for (int32_t& x : value.data<int32_t>()) x = static_cast<int32_t>(random_.between(-50, 50));
    } else if (operand == kMultiplier && value.dtype() == DType::kU16) {
      for (uint16_t& x : value.data<uint16_t>()) x = static_cast<uint16_t>(random_.between(1 << 15, UINT16_MAX));
    } else if (operand == kShift && value.dtype() == DType::kU8) {
      for (uint8_t& x : value.data<uint8_t>()) x = static_cast<uint8_t>(random_.between(8, 13));
    }
  }

  // Other values for some integers of the attributes, which may not be allowed.
  Attrs varied(const Operator& op, Attrs attrs) {
    if (op.samples.kind == SampleArguments::Kind::kRequantization) {
      attrs["axis"] = int64_t{1};
      attrs["zero"] = random_.between(-20, 20);
      if (random_.chance(50)) attrs["lo"] = random_.between(-100, -20), attrs["hi"] = random_.between(20, 100);
      return attrs;
    }
    for (auto& [name, attr] : attrs) {
      if (auto* number = std::get_if<int64_t>(&attr); number && random_.chance(30)) *number = random_.between(-3, 4);
      auto* list = std::get_if<std::vector<int64_t>>(&attr);
      if (!list || !random_.chance(50)) continue;
      for (int64_t& x : *list) x = random_.between(x > 0 ? 1 : 0, 2);
    }
    return attrs;
  }

  void forget_params(const Builder::Checkpoint& before) {
    builder_.rollback(before);
    std::erase_if(function_.params, [&](VarId param) { return index(param) >= before.vars; });
  }

  Context& context_;
  Random& random_;
  fuzz::Options options_;
  PatternSample sample_;
  Function function_;
  fuzz::Types types_;
  Builder builder_;
  std::map<std::string, Atom> values_;  // by the names of the pattern
};

}  // namespace

std::optional<PatternSample> sample_of(Context& context, const GraphPattern& pattern, Random& random) {
  return Sampler(context, random).run(pattern);
}

}  // namespace tenon::compiler::plugin
