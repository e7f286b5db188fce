// Converters of ONNX's sequences and optional values. A sequence is a tuple where its length is known when the model is
// imported, otherwise a list; an optional value is the value itself where it is present for certain.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/frontend/onnx/expression.h"
#include "compiler/frontend/onnx/sequence.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

bool is_list(NodeImport& node, const Atom& value) {
  const auto type = node.builder().type_of(value);
  return type && list_element(node.context(), *type);
}

Expected<Atoms> sequence_elements(NodeImport& node, const Atom& sequence) {
  Builder& builder = node.builder();
  if (const Value* value = builder.value_of(sequence)) {
    if (const auto* tuple = std::get_if<Tuple>(value)) return tuple->fields;
  }
  TENON_TRY_ASSIGN(type, builder.type_of(sequence));
  if (!type->tuple()) return node.fail("a sequence is required, found a tensor");
  Atoms elements;
  for (uint32_t i = 0; i < type->tuple()->fields.size(); ++i) {
    TENON_TRY_ASSIGN(field, builder.project(sequence, i));
    TENON_TRY_ASSIGN(open, node.import().open_sizes(*field));
    elements.push_back(*open);
  }
  return elements;
}

// An input that is a sequence: its elements where they are known, otherwise a list.
struct Sequence {
  Atom value;
  std::optional<Atoms> elements;
};
Expected<Sequence> sequence_input(NodeImport& node, size_t i) {
  TENON_TRY_ASSIGN(value, node.input(i));
  if (is_list(node, *value)) return Sequence{*value, std::nullopt};
  TENON_TRY_ASSIGN(elements, sequence_elements(node, *value));
  return Sequence{*value, std::move(*elements)};
}

// The sequence as a list, of which `element` is to be an element too; of an empty sequence, nothing else is known.
Expected<Atom> list_of(NodeImport& node, const Sequence& sequence, std::optional<Atom> element = {}) {
  if (!sequence.elements) return sequence.value;
  if (sequence.elements->empty() && !element) return node.fail("the sequence is empty");
  TENON_TRY_ASSIGN(of, node.builder().type_of(element ? *element : sequence.elements->front()));
  TENON_TRY_ASSIGN(list, list_type(node, *of));
  TENON_TRY_ASSIGN(from, node.builder().type_of(sequence.value));
  if (!joined_list(node, *from, *list)) return node.fail("the elements of the sequence have different ranks or types");
  return as_type(node, sequence.value, *list);
}

Status sequence_result(NodeImport& node, Atoms elements, size_t output = 0) {
  if (output >= node.node().outputs.size()) return {};
  TENON_TRY_ASSIGN(tuple, node.builder().tuple(std::move(elements), node.node().outputs[output]));
  return node.result(output, *tuple);
}

// A position that is a constant, among `count` elements, or after the last where `end` is true.
Expected<size_t> position(NodeImport& node, size_t i, size_t count, bool end) {
  TENON_TRY_ASSIGN(given, node.integers(i, "the position in a sequence"));
  if (given->size() != 1) return node.fail(fmt::format("{} positions, must be one", given->size()));
  const auto size = static_cast<int64_t>(count);
  const int64_t at = (*given)[0] < 0 ? (*given)[0] + size : (*given)[0];
  if (at < 0 || at >= size + (end ? 1 : 0))
    return node.fail(fmt::format("the position {} is outside of a sequence of {}", (*given)[0], count));
  return static_cast<size_t>(at);
}
bool is_known(NodeImport& node, size_t i) { return !node.has_input(i) || node.constant(i, "the position").has_value(); }
// A position that is computed, a scalar i64.
Expected<Atom> computed_position(NodeImport& node, size_t i) {
  TENON_TRY_ASSIGN(given, Integers::input(node, i, "the position in a sequence"));
  return given->scalar(node);
}

Status sequence_construct(NodeImport& node) {
  TENON_TRY_ASSIGN(elements, node.all_inputs());
  return sequence_result(node, std::move(*elements));
}

Status sequence_empty(NodeImport& node) {
  TENON_TRY(node.integer("dtype", 1));
  return sequence_result(node, {});
}

Status sequence_at(NodeImport& node) {
  TENON_TRY_ASSIGN(sequence, sequence_input(node, 0));
  if (!sequence->elements || !is_known(node, 1)) {
    TENON_TRY_ASSIGN(list, list_of(node, *sequence));
    TENON_TRY_ASSIGN(at, computed_position(node, 1));
    return node.result(list_at(node, *list, *at));
  }
  TENON_TRY_ASSIGN(at, position(node, 1, sequence->elements->size(), false));
  return node.result(0, (*sequence->elements)[*at]);
}

Status sequence_erase(NodeImport& node) {
  TENON_TRY_ASSIGN(sequence, sequence_input(node, 0));
  if (!sequence->elements || !is_known(node, 1)) {
    TENON_TRY_ASSIGN(list, list_of(node, *sequence));
    TENON_TRY_ASSIGN(at, node.has_input(1) ? computed_position(node, 1)
                                           : Expected<Atom>(node.builder().constant<int64_t>({}, {-1})));
    return node.result(list_erase(node, *list, *at));
  }
  Atoms elements = std::move(*sequence->elements);
  if (elements.empty()) return node.fail("the sequence is empty");
  size_t at = elements.size() - 1;
  if (node.has_input(1)) {
    TENON_TRY_ASSIGN(given, position(node, 1, elements.size(), false));
    at = *given;
  }
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  return sequence_result(node, std::move(elements));
}

Status sequence_insert(NodeImport& node) {
  TENON_TRY_ASSIGN(sequence, sequence_input(node, 0));
  TENON_TRY_ASSIGN(element, node.input(1));
  if (!sequence->elements || !is_known(node, 2)) {
    TENON_TRY_ASSIGN(list, list_of(node, *sequence, *element));
    if (!node.has_input(2)) return node.result(list_append(node, *list, *element));
    TENON_TRY_ASSIGN(at, computed_position(node, 2));
    return node.result(list_insert(node, *list, *element, *at));
  }
  Atoms elements = std::move(*sequence->elements);
  size_t at = elements.size();
  if (node.has_input(2)) {
    TENON_TRY_ASSIGN(given, position(node, 2, elements.size(), true));
    at = *given;
  }
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), *element);
  return sequence_result(node, std::move(elements));
}

Expected<Atom> length_of(NodeImport& node, const Sequence& sequence) {
  if (!sequence.elements) return list_length(node, sequence.value);
  return node.builder().constant<int64_t>({}, {static_cast<int64_t>(sequence.elements->size())});
}

Status sequence_length(NodeImport& node) {
  TENON_TRY_ASSIGN(sequence, sequence_input(node, 0));
  return node.result(length_of(node, *sequence));
}

Status concat_from_sequence(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis"));
  TENON_TRY_ASSIGN(is_new, node.integer("new_axis", 0));
  TENON_TRY_ASSIGN(sequence, sequence_input(node, 0));
  if (!sequence->elements) return node.result(list_concat(node, sequence->value, *axis, *is_new != 0));
  if (sequence->elements->empty()) return node.fail("the sequence is empty");
  return node.result(node.apply(*is_new ? ops::kStack : ops::kConcat, *sequence->elements, {{"axis", *axis}}));
}

// The sizes of the parts of an axis whose size, or whose parts, are computed: a vector of i64.
Expected<Atom> computed_parts(NodeImport& node, int64_t axis) {
  NodeFormula f(node);
  const Term size = f.apply(ops::kShapeOf, {f.input(0)}).slice(0, axis, axis + 1);
  if (!node.has_input(1)) {
    const Term ones = f.range(f.integers(size)) * 0 + 1;
    TENON_TRY(f.status());
    return ones.atom();
  }
  Term split = f.input(1).cast(DType::kI64);
  if (split.rank() == 0) {  // equal parts, of which the last may be smaller
    split = split.reshape({1});
    const Term count = f.apply(ops::kFloorDivide, {size + split - 1, split});
    split = f.apply(ops::kMinimum, {split, size - f.range(f.integers(count)) * split});
  }
  TENON_TRY(f.status());
  return split.atom();
}

// Whether the parts are elements whose axis is left out: without sizes, or, as exporters of PyTorch and ONNX Runtime
// have it, with the constant size 1.
bool is_squeezed(NodeImport& node, int64_t keep) {
  if (keep != 0 || !node.has_input(1)) return keep == 0;
  const auto type = node.type(1);
  const auto size = node.integers(1, "the sizes of the parts");
  return type && type->rank() == 0 && size && *size == Ints{1};
}

// Parts of given sizes; without sizes, elements whose axis is left out unless it is kept.
Status split_to_sequence(NodeImport& node) {
  TENON_TRY_ASSIGN(given_axis, node.integer("axis", 0));
  TENON_TRY_ASSIGN(keep, node.integer("keepdims", 1));
  TENON_TRY_ASSIGN(x, node.input(0));
  TENON_TRY_ASSIGN(type, node.type(0));
  const int64_t axis = *given_axis < 0 ? *given_axis + type->rank() : *given_axis;
  if (axis < 0 || axis >= type->rank()) return node.fail(fmt::format("there is no axis {}", *given_axis));
  const auto size = type->dims[static_cast<size_t>(axis)].constant();
  if (!size || !is_known(node, 1)) {
    TENON_TRY_ASSIGN(sizes, computed_parts(node, axis));
    return node.result(list_split(node, *x, *sizes, axis, !is_squeezed(node, *keep)));
  }
  constexpr int64_t kMostParts = 4096;
  Ints sizes(static_cast<size_t>(std::min(*size, kMostParts + 1)), 1);
  if (node.has_input(1)) {
    TENON_TRY_ASSIGN(split_type, node.type(1));
    TENON_TRY_ASSIGN(given, node.integers(1, "the sizes of the parts"));
    sizes = *given;
    if (split_type->rank() == 0) {  // equal parts, of which the last may be smaller
      const int64_t part = sizes[0];
      if (part < 1 || *size / part > kMostParts) return node.fail(fmt::format("parts of the size {}", part));
      sizes.assign(static_cast<size_t>(*size / part), part);
      if (*size % part) sizes.push_back(*size % part);
    }
  }
  if (sizes.empty() || static_cast<int64_t>(sizes.size()) > kMostParts)
    return node.fail(fmt::format("{} parts, must be 1 to {}", sizes.size(), kMostParts));
  TENON_TRY_ASSIGN(parts, node.builder().apply(ops::kSplit, {*x}, {{"axis", axis}, {"sizes", sizes}}));
  TENON_TRY_ASSIGN(elements, sequence_elements(node, *parts));
  for (Atom& element : *elements) {
    if (!is_squeezed(node, *keep)) break;
    TENON_TRY_ASSIGN(squeezed, node.apply(ops::kSqueeze, {element}, {{"axes", Ints{axis}}}));
    element = *squeezed;
  }
  return sequence_result(node, std::move(*elements));
}

// SequenceMap over a list; other sequences are at least as long.
Status map_list(NodeImport& node, const Graph& body, const Sequence& first) {
  std::vector<std::pair<Atom, bool>> columns;  // by input, its value and whether that is a list
  for (size_t i = 0; i < node.inputs(); ++i) {
    TENON_TRY_ASSIGN(given, node.input(i));
    columns.emplace_back(*given, !node.builder().tensor_type(*given));
    if (!columns.back().second) continue;
    TENON_TRY_ASSIGN(sequence, sequence_input(node, i));
    TENON_TRY_ASSIGN(list, list_of(node, *sequence));
    columns.back().first = *list;
  }
  TENON_TRY_ASSIGN(length, length_of(node, first));
  TENON_TRY_ASSIGN(lists, list_map(node, body, *length, [&](Atom position) -> Expected<Atoms> {
                     Atoms inputs;
                     for (const auto& [value, is_list] : columns) {
                       TENON_TRY_ASSIGN(input, is_list ? list_at(node, value, position) : Expected<Atom>(value));
                       inputs.push_back(*input);
                     }
                     return inputs;
                   }));
  for (size_t i = 0; i < lists->size(); ++i) TENON_TRY(node.result(i, (*lists)[i]));
  return {};
}

// The body's outputs for each element of the first input; other sequences have as many, and tensors are the same.
Status sequence_map(NodeImport& node) {
  TENON_TRY_ASSIGN(body, node.graph("body"));
  TENON_TRY_ASSIGN(sequence, sequence_input(node, 0));
  if (!sequence->elements) return map_list(node, **body, *sequence);
  const Atoms& first = *sequence->elements;
  std::vector<Atoms> columns;  // by input, its value for each element
  for (size_t i = 0; i < node.inputs(); ++i) {
    TENON_TRY_ASSIGN(given, node.input(i));
    columns.emplace_back(first.size(), *given);
    if (node.builder().tensor_type(*given)) continue;
    if (is_list(node, *given)) return map_list(node, **body, *sequence);
    TENON_TRY_ASSIGN(elements, sequence_elements(node, *given));
    if (elements->size() != first.size()) {
      return node.fail(fmt::format("input {} has {} elements, the first one {}", i, elements->size(), first.size()));
    }
    columns.back() = std::move(*elements);
  }
  std::vector<Atoms> results((*body)->outputs.size());
  for (size_t k = 0; k < first.size(); ++k) {
    Atoms inputs;
    for (const Atoms& column : columns) inputs.push_back(column[k]);
    TENON_TRY_ASSIGN(outputs, node.import().graph(**body, inputs, node.scope()));
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back((*outputs)[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) TENON_TRY(sequence_result(node, std::move(results[i]), i));
  return {};
}

bool is_optional(NodeImport& node, const Atom& value) {
  const auto type = node.builder().type_of(value);
  return type && optional_element(node.context(), *type);
}

Status optional_value(NodeImport& node) {
  const ValueType* type = node.type_attr("type");
  if (!node.has_input(0)) {
    if (!type) return node.fail("an absent optional value requires its type as the attribute 'type'");
    return node.result(optional_absent(node, *type));
  }
  TENON_TRY_ASSIGN(value, node.input(0));
  return node.result(0, *value);
}

Status optional_element(NodeImport& node) {
  TENON_TRY_ASSIGN(value, node.input(0));
  return is_optional(node, *value) ? node.result(optional_get_element(node, *value)) : node.result(0, *value);
}

Status optional_presence(NodeImport& node) {
  if (node.has_input(0)) {
    TENON_TRY_ASSIGN(value, node.input(0));
    if (is_optional(node, *value)) return node.result(optional_has_element(node, *value));
  }
  return node.result(node.constant(runtime::Tensor::of<bool>({}, std::array{node.has_input(0)})));
}

}  // namespace

std::span<const Converter> sequence_converters() {
  static constexpr Converter kTable[] = {
      {"ConcatFromSequence", 1, 1, concat_from_sequence},
      {"Optional", 0, 1, optional_value},
      {"OptionalGetElement", 1, 1, optional_element},
      {"OptionalHasElement", 0, 1, optional_presence},
      {"SequenceAt", 2, 2, sequence_at},
      {"SequenceConstruct", 1, 4096, sequence_construct},
      {"SequenceEmpty", 0, 0, sequence_empty},
      {"SequenceErase", 1, 2, sequence_erase},
      {"SequenceInsert", 2, 3, sequence_insert},
      {"SequenceLength", 1, 1, sequence_length},
      {"SequenceMap", 1, 64, sequence_map},
      {"SplitToSequence", 1, 2, split_to_sequence},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
