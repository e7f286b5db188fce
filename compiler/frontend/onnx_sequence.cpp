// Converters of ONNX's sequences and optional values, as far as their lengths are known when the model is imported: a
// sequence is a tuple, and an optional value is the value itself, or omitted.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/frontend/onnx_sizes.h"

namespace tenon::compiler {
namespace {

using Ints = std::vector<int64_t>;

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
Expected<Atoms> sequence_input(NodeImport& node, size_t i) {
  TENON_TRY_ASSIGN(sequence, node.input(i));
  return sequence_elements(node, *sequence);
}

Status sequence_result(NodeImport& node, Atoms elements, size_t output = 0) {
  if (output >= node.node().outputs.size()) return {};
  TENON_TRY_ASSIGN(tuple, node.builder().tuple(std::move(elements), node.node().outputs[output]));
  return node.result(output, *tuple);
}

// A position among `count` elements, or after the last where `end` is true, from input i.
Expected<size_t> position(NodeImport& node, size_t i, size_t count, bool end) {
  TENON_TRY_ASSIGN(given, node.integers(i, "the position in a sequence"));
  if (given->size() != 1) return node.fail(fmt::format("{} positions, must be one", given->size()));
  const auto size = static_cast<int64_t>(count);
  const int64_t at = (*given)[0] < 0 ? (*given)[0] + size : (*given)[0];
  if (at < 0 || at >= size + (end ? 1 : 0))
    return node.fail(fmt::format("the position {} is outside of a sequence of {}", (*given)[0], count));
  return static_cast<size_t>(at);
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
  TENON_TRY_ASSIGN(elements, sequence_input(node, 0));
  TENON_TRY_ASSIGN(at, position(node, 1, elements->size(), false));
  return node.result(0, (*elements)[*at]);
}

Status sequence_erase(NodeImport& node) {
  TENON_TRY_ASSIGN(elements, sequence_input(node, 0));
  if (elements->empty()) return node.fail("the sequence is empty");
  size_t at = elements->size() - 1;
  if (node.has_input(1)) {
    TENON_TRY_ASSIGN(given, position(node, 1, elements->size(), false));
    at = *given;
  }
  elements->erase(elements->begin() + static_cast<std::ptrdiff_t>(at));
  return sequence_result(node, std::move(*elements));
}

Status sequence_insert(NodeImport& node) {
  TENON_TRY_ASSIGN(elements, sequence_input(node, 0));
  TENON_TRY_ASSIGN(element, node.input(1));
  size_t at = elements->size();
  if (node.has_input(2)) {
    TENON_TRY_ASSIGN(given, position(node, 2, elements->size(), true));
    at = *given;
  }
  elements->insert(elements->begin() + static_cast<std::ptrdiff_t>(at), *element);
  return sequence_result(node, std::move(*elements));
}

Status sequence_length(NodeImport& node) {
  TENON_TRY_ASSIGN(elements, sequence_input(node, 0));
  return node.result(0, node.builder().constant<int64_t>({}, {static_cast<int64_t>(elements->size())}));
}

Status concat_from_sequence(NodeImport& node) {
  TENON_TRY_ASSIGN(axis, node.integer("axis"));
  TENON_TRY_ASSIGN(is_new, node.integer("new_axis", 0));
  TENON_TRY_ASSIGN(elements, sequence_input(node, 0));
  if (elements->empty()) return node.fail("the sequence is empty");
  return node.result(node.apply(*is_new ? ops::kStack : ops::kConcat, *elements, {{"axis", *axis}}));
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
  if (!size) {
    return node.fail(fmt::format("the size of the axis {} must be known", axis),
                     "a sequence has a known length: fix the size with --shapes");
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
    if (*keep || node.has_input(1)) break;
    TENON_TRY_ASSIGN(squeezed, node.apply(ops::kSqueeze, {element}, {{"axes", Ints{axis}}}));
    element = *squeezed;
  }
  return sequence_result(node, std::move(*elements));
}

// The body's outputs for each element of the first input; other sequences have as many, and tensors are the same.
Status sequence_map(NodeImport& node) {
  TENON_TRY_ASSIGN(body, node.graph("body"));
  TENON_TRY_ASSIGN(first, sequence_input(node, 0));
  std::vector<Atoms> columns;  // by input, its value for each element
  for (size_t i = 0; i < node.inputs(); ++i) {
    TENON_TRY_ASSIGN(given, node.input(i));
    columns.emplace_back(first->size(), *given);
    if (node.builder().tensor_type(*given)) continue;
    TENON_TRY_ASSIGN(elements, sequence_input(node, i));
    if (elements->size() != first->size()) {
      return node.fail(fmt::format("input {} has {} elements, the first one {}", i, elements->size(), first->size()));
    }
    columns.back() = std::move(*elements);
  }
  std::vector<Atoms> results((*body)->outputs.size());
  for (size_t k = 0; k < first->size(); ++k) {
    Atoms inputs;
    for (const Atoms& column : columns) inputs.push_back(column[k]);
    TENON_TRY_ASSIGN(outputs, node.import().graph(**body, inputs, node.scope()));
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back((*outputs)[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) TENON_TRY(sequence_result(node, std::move(results[i]), i));
  return {};
}

Status optional_value(NodeImport& node) {
  if (!node.has_input(0)) {
    return node.fail("an optional value without a value is not supported",
                     "export the model with the value, or without the output");
  }
  (void)node.type_attr("type");
  TENON_TRY_ASSIGN(value, node.input(0));
  return node.result(0, *value);
}

Status optional_has_element(NodeImport& node) {
  return node.result(node.constant(runtime::Tensor::of<bool>({}, std::array{node.has_input(0)})));
}

}  // namespace

std::span<const OnnxConverter> onnx_sequence_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"ConcatFromSequence", 1, 1, concat_from_sequence},
      {"Optional", 0, 1, optional_value},
      {"OptionalGetElement", 1, 1, optional_value},
      {"OptionalHasElement", 0, 1, optional_has_element},
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

}  // namespace tenon::compiler
