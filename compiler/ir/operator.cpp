// The checks of attributes and arguments that precede the type rule of an operator.
#include "compiler/ir/operator.h"
#include "support/try.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace tenon::compiler {
namespace {

// A larger tensor comes from a broken model. The limit keeps products of sizes exact.
constexpr int64_t kMaxElements = int64_t{1} << 40;

std::string attribute_list(const Operator& op) {
  std::vector<std::string> names;
  for (const AttrSpec& spec : op.attributes) names.push_back(spec.name);
  return names.empty() ? "it has no attributes" : fmt::format("it has {}", fmt::join(names, ", "));
}

bool has_no_nan(const runtime::Attr& attr) {
  if (auto* value = std::get_if<double>(&attr)) return !std::isnan(*value);
  if (auto* values = std::get_if<std::vector<double>>(&attr)) {
    for (double value : *values) {
      if (std::isnan(value)) return false;
    }
  }
  return true;
}

Status check_size(Context& context, Type type) {
  if (const TupleType* tuple = type.tuple()) {
    for (Type field : tuple->fields) {
      TENON_TRY(check_size(context, field));
    }
    return {};
  }
  if (!type.tensor()) return error(fmt::format("the result {} is not a tensor", context.str(type)));
  if (type.tensor()->rank() > static_cast<int64_t>(runtime::kMaxRank)) {
    return error(
        fmt::format("the result has {} axes, at most {} are supported", type.tensor()->rank(), runtime::kMaxRank));
  }
  int64_t elements = 1;
  for (Dim dim : type.tensor()->dims) {
    if (dim == context.invalid()) return error("a size of the result cannot be computed: it is too large");
    const auto value = dim.constant();
    if (!value) continue;
    if (*value < 0) return error(fmt::format("the result {} has a negative size", context.str(type)));
    if (*value > kMaxElements / elements)
      return error(fmt::format("the result {} has more than 2^40 elements", context.str(type)));
    elements *= std::max<int64_t>(*value, 1);
  }
  return {};
}

}  // namespace

std::string_view name(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt: return "integer";
    case AttrKind::kFloat: return "float";
    case AttrKind::kString: return "string";
    case AttrKind::kInts: return "list of integers";
    case AttrKind::kFloats: return "list of floats";
  }
  return "";
}

const AttrSpec* Operator::attribute(std::string_view wanted) const {
  for (const AttrSpec& spec : attributes) {
    if (spec.name == wanted) return &spec;
  }
  return nullptr;
}

Expected<runtime::Attrs> complete_attrs(const Operator& op, runtime::Attrs attrs,
                                        std::span<const std::string_view> computed) {
  for (const std::string_view name : computed) {
    const AttrSpec* spec = op.attribute(name);
    if (!spec)
      return error(fmt::format("{} has no attribute '{}'", op.name, name), "", fmt::format("{}", attribute_list(op)));
    if (!spec->computable)
      return error(fmt::format("{}: attribute '{}' must be a constant {}", op.name, name, compiler::name(spec->kind)));
  }
  for (auto& [name, value] : attrs) {
    const AttrSpec* spec = op.attribute(name);
    if (!spec) {
      return error(fmt::format("{} has no attribute '{}'", op.name, name), "", fmt::format("{}", attribute_list(op)));
    }
    if (spec->kind == AttrKind::kFloat) {
      if (auto* integer = std::get_if<int64_t>(&value)) value = static_cast<double>(*integer);
    } else if (spec->kind == AttrKind::kFloats) {
      if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
        value = std::vector<double>(list->begin(), list->end());
      }
    } else if (spec->kind == AttrKind::kInts) {
      if (auto* list = std::get_if<std::vector<double>>(&value); list && list->empty()) value = std::vector<int64_t>{};
    }
    if (value.index() != static_cast<size_t>(spec->kind)) {
      return error(fmt::format("{}: attribute '{}' must be a {}, found a {}", op.name, name, compiler::name(spec->kind),
                               compiler::name(static_cast<AttrKind>(value.index()))));
    }
    if (!has_no_nan(value)) return error(fmt::format("{}: attribute '{}' must not be NaN", op.name, name));
  }
  for (const AttrSpec& spec : op.attributes) {
    if (attrs.contains(spec.name) || std::ranges::find(computed, spec.name) != computed.end()) continue;
    if (!spec.default_value) {
      return error(fmt::format("{} requires the attribute '{}' ({})", op.name, spec.name, spec.documentation));
    }
    attrs.emplace(spec.name, *spec.default_value);
  }
  return attrs;
}

Expected<Type> infer_apply(Context& context, const Operator& op, const runtime::Attrs& attrs,
                           std::span<const Type> args, const DimProver& prover, std::vector<Requirement>* required,
                           const AttrDims& computed) {
  const size_t wanted = op.inputs.size();
  if (op.variadic() ? args.size() < wanted : args.size() != wanted) {
    std::string names;
    for (const Input& input : op.inputs) names += (names.empty() ? "" : ", ") + input.name;
    return error(fmt::format("{} takes {}{} ({}), found {}", op.name, op.variadic() ? "at least " : "",
                             wanted == 1 ? "1 argument" : fmt::format("{} arguments", wanted), names, args.size()));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].tensor()) {
      return error(fmt::format("{}: argument {} must be a tensor, found {}", op.name, i, context.str(args[i])));
    }
    if (has_erased(args[i])) {
      return error(fmt::format("{}: argument {} has an unknown size: {}", op.name, i, context.str(args[i])), "",
                   "open it: match_cast[k](%x, Tensor[(k,), f32])");
    }
    const Input& input = op.inputs[std::min(i, wanted - 1)];
    const DType dtype = args[i].tensor()->dtype, first = args[0].tensor()->dtype;
    if (!input.dtypes.contains(dtype)) {
      return error(
          fmt::format("{}: {} must be of {}, found {}", op.name, input.name, input.dtypes.str(), context.str(args[i])));
    }
    if (input.as_first && dtype != first) {
      return error(fmt::format("{}: {} and {} must have the same dtype, found {} and {}", op.name, op.inputs[0].name,
                               input.name, context.str(args[0]), context.str(args[i])),
                   "", "insert a cast");
    }
  }
  Expected<Type> type = op.rule(RuleInput{context, attrs, args, prover, required, op.inputs, computed});
  Status sized = type ? check_size(context, *type) : Status{};
  if (!sized) type = std::unexpected(sized.error());
  if (!type) type.error().what = op.name + ": " + type.error().what;
  return type;
}

}  // namespace tenon::compiler
