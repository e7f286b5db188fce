#include "compiler/cli/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "runtime/dtype.h"
#include "runtime/packed.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::RunValue;
using runtime::Tensor;

// Rows begin .. begin + count of the tensor, as a tensor of `shape`.
Tensor rows(const Tensor& all, int64_t begin, int64_t count, runtime::Shape shape) {
  Tensor part = Tensor::for_overwrite(all.dtype(), std::move(shape));
  const size_t row = all.shape()[0] == 0 ? 0 : all.bytes().size() / static_cast<size_t>(all.shape()[0]);
  if (row > 0 && count > 0) {
    std::memcpy(part.bytes().data(), all.bytes().data() + static_cast<size_t>(begin) * row,
                static_cast<size_t>(count) * row);
  }
  return part;
}

// The elements of a vector of integers, which is named `name`.
Expected<std::vector<int64_t>> integers(const Tensor& vector, const std::string& name, const std::string& path) {
  if (vector.shape().size() != 1 || !runtime::kIntegers.contains(vector.dtype())) {
    return error(fmt::format("{} is Tensor[{}, {}], must be a vector of integers", name,
                             runtime::to_string(vector.shape()), runtime::name(vector.dtype())),
                 path);
  }
  std::vector<int64_t> elements;
  std::optional<uint64_t> beyond;  // the first element that is no int64_t
  runtime::with_dtype<runtime::kIntegers>(vector.dtype(), [&]<class T>(T) {
    for (const T element : vector.data<T>()) {
      if constexpr (std::is_same_v<T, uint64_t>) {
        if (!std::in_range<int64_t>(element)) beyond = element;
      }
      if (beyond) return;
      elements.push_back(static_cast<int64_t>(element));
    }
  });
  if (!beyond) return elements;
  return error(fmt::format("{}[{}] is {}, must be less than 2^63", name, elements.size(), *beyond), path,
               "the elements are numbers of rows");
}

// The axis that packed rows are along: the first one that varies and whose size is not 1, as models of batches have the
// axis of a batch before that of the rows; else the first one that varies.
size_t row_axis(const compiler::TensorType& type, const Tensor& packed) {
  std::optional<size_t> first;
  for (size_t axis = 0; axis < type.dims.size() && axis < packed.shape().size(); ++axis) {
    if (type.dims[axis].constant()) continue;
    if (!first) first = axis;
    if (packed.shape()[axis] != 1) return axis;
  }
  return first.value_or(0);
}

RunValue assembled(compiler::Type type, const std::vector<std::vector<Tensor>>& tensors, size_t instance,
                   size_t& next) {
  if (!type.tuple()) return tensors[next++][instance];
  std::vector<RunValue> fields;
  for (const compiler::Type field : type.tuple()->fields) fields.push_back(assembled(field, tensors, instance, next));
  return RunValue::tuple(std::move(fields));
}

}  // namespace

Expected<InstanceFile> InstanceFile::open(const compiler::Context& context, const std::string& path,
                                          std::vector<InstanceInput> inputs) {
  InstanceFile file(path, std::move(inputs));
  if (path.ends_with(".npz")) {
    TENON_TRY(file.open_archive(context));
    return file;
  }
  TENON_TRY_ASSIGN(bytes, read_file(path));
  file.text_.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return file;
}

Status InstanceFile::open_archive(const compiler::Context& context) {
  TENON_TRY_ASSIGN(members, runtime::load_npz(path_));
  tensors_.emplace();
  for (const InstanceInput& input : inputs_) TENON_TRY(add_tensors(context, *members, input.name, input.type));
  for (const auto& each : *tensors_) {
    if (each.size() == tensors_->front().size()) continue;
    return error(
        fmt::format("the inputs have tensors for {} and for {} instances", tensors_->front().size(), each.size()),
        path_, "each instance has one value for each input; one that all share is named with --shared");
  }
  return {};
}

Expected<std::optional<std::vector<Tensor>>> InstanceFile::unpacked(const runtime::NamedTensors& members,
                                                                    const std::string& name,
                                                                    const compiler::TensorType& type) const {
  const auto all = members.find(name), lengths = members.find(name + ".lengths"),
             offsets = members.find(name + ".offsets");
  const bool has_lengths = lengths != members.end(), has_offsets = offsets != members.end();
  if (has_lengths && has_offsets)
    return error(fmt::format("{0}.lengths and {0}.offsets are both given", name), path_, "give one of them");
  if (all == members.end() || (!has_lengths && !has_offsets)) return std::nullopt;
  const auto& [member, vector] = has_lengths ? *lengths : *offsets;
  TENON_TRY_ASSIGN(elements, integers(vector, member, path_));
  const size_t axis = row_axis(type, all->second);
  auto parts = has_lengths ? runtime::unpack(all->second, axis, *elements, member)
                           : runtime::unpack_offsets(all->second, axis, *elements, member);
  if (parts) return std::move(*parts);
  Diagnostic found = std::move(parts.error());
  found.what = fmt::format("input '{}': {}", name, found.what);
  found.where = path_;
  return std::unexpected(std::move(found));
}

Status InstanceFile::add_tensors(const compiler::Context& context, const runtime::NamedTensors& members,
                                 const std::string& name, compiler::Type type) {
  if (const compiler::TupleType* tuple = type.tuple()) {
    for (size_t i = 0; i < tuple->fields.size(); ++i)
      TENON_TRY(add_tensors(context, members, fmt::format("{}.{}", name, i), tuple->fields[i]));
    return {};
  }
  const compiler::TensorType* tensor = type.tensor();
  if (!tensor) {
    return error(fmt::format("input '{}' is {}: an .npz has tensors and tuples of them", name, context.str(type)),
                 path_, "give a file with a line of text for each instance, or of JSON (.jsonl)");
  }
  std::vector<Tensor> each;
  const auto all = members.find(name);
  TENON_TRY_ASSIGN(parts, unpacked(members, name, *tensor));
  if (*parts) {
    each = std::move(**parts);
  } else if (all != members.end()) {
    const runtime::Shape& shape = all->second.shape();
    if (shape.empty()) return error(fmt::format("{} has no axis of the instances", name), path_);
    for (int64_t i = 0; i < shape[0]; ++i)
      each.push_back(rows(all->second, i, 1, runtime::Shape(shape.begin() + 1, shape.end())));
  } else {
    for (size_t i = 0;; ++i) {
      const auto one = members.find(fmt::format("{}_{}", name, i));
      if (one == members.end()) break;
      each.push_back(one->second);
    }
  }
  if (each.empty() && all == members.end()) {
    return error(
        fmt::format("there is neither {} nor {}_0 in the file", name, name), path_,
        fmt::format("the tensor {} with {}.lengths has the rows of all instances, {}_0, {}_1, ... are the tensors "
                    "of each",
                    name, name, name, name));
  }
  for (size_t i = 0; i < each.size(); ++i) {
    const bool fits = each[i].dtype() == tensor->dtype &&
                      std::ranges::equal(each[i].shape(), tensor->dims, [](int64_t size, compiler::Dim dim) {
                        return dim.constant().value_or(size) == size;
                      });
    if (fits) continue;
    return error(fmt::format("instance {}: expected {} for input '{}', found Tensor[{}, {}]", i, context.str(type),
                             name, runtime::to_string(each[i].shape()), runtime::name(each[i].dtype())),
                 path_);
  }
  tensors_->push_back(std::move(each));
  return {};
}

std::optional<Instance> InstanceFile::next(compiler::Context& context, compiler::RunValueReader& reader) {
  if (tensors_) {
    if (tensors_->empty() || taken_ == tensors_->front().size()) return std::nullopt;
    std::vector<RunValue> values;
    size_t tensor = 0;
    for (const InstanceInput& input : inputs_) values.push_back(assembled(input.type, *tensors_, taken_, tensor));
    ++taken_;
    return Instance{path_, std::move(values)};
  }
  std::string_view line;
  do {
    if (at_ >= text_.size()) return std::nullopt;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    line = std::string_view(text_).substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
  } while (line.find_first_not_of(" \t\r") == std::string_view::npos || line.starts_with("//"));
  std::vector<compiler::Type> types;
  for (const InstanceInput& input : inputs_) types.push_back(input.type);
  using Format = compiler::RunValueReader::Format;
  const Format format = path_.ends_with(".jsonl") || path_.ends_with(".json") ? Format::kJson : Format::kText;
  auto value = reader.read(types.size() == 1 ? types[0] : context.tuple(types), line, {path_, line_, 1}, format);
  Instance instance{fmt::format("{}:{}", path_, line_), {}};
  if (!value) instance.inputs = std::unexpected(std::move(value.error()));
  else if (types.size() == 1) instance.inputs->push_back(std::move(*value));
  else instance.inputs->assign(value->fields().begin(), value->fields().end());
  return instance;
}

}  // namespace tenon::cli
