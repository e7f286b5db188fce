#include "runtime/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr size_t kTensorAlignment = 64;          // of Tensor::in()
constexpr int64_t kMostRows = int64_t{1} << 31;  // of a batch

Status check_axis(const Tensor& tensor, size_t axis) {
  const Shape& shape = tensor.shape();
  if (axis >= shape.size())
    return error(fmt::format("the rows are along axis {}, the tensor is a {}", axis, to_string(shape)), {},
                 "give an axis that the tensor has");
  for (size_t i = 0; i < axis; ++i) {
    if (shape[i] == 1) continue;
    return error(fmt::format("axis {} of a tensor {} has {} elements, axes before that of the rows must have one", i,
                             to_string(shape), shape[i]),
                 {}, "transpose the tensor so that axis 0 is that of the rows");
  }
  return {};
}

}  // namespace

Expected<std::vector<Tensor>> unpack(const Tensor& packed, size_t axis, std::span<const int64_t> lengths,
                                     std::string_view name) {
  TENON_TRY(check_axis(packed, axis));
  const int64_t all = packed.shape()[axis];
  if (all > kMostRows)
    return error(fmt::format("there are {} rows, must be 2^31 at most", all), {},
                 "give the instances in several tensors");
  constexpr const char* kHelp = "the lengths are the numbers of rows of the instances, of all rows in their order";
  int64_t sum = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > all - sum)
      return error(
          fmt::format("{}[{}] is {}, must be from 0 to {}, the rows that are left", name, i, lengths[i], all - sum), {},
          kHelp);
    sum += lengths[i];
  }
  if (sum != all) return error(fmt::format("the sum of {} is {}, there are {} rows", name, sum, all), {}, kHelp);
  const size_t row = all == 0 ? 0 : packed.bytes().size() / static_cast<size_t>(all);
  std::vector<Tensor> parts;
  size_t begin = 0;
  for (const int64_t length : lengths) {
    Shape shape = packed.shape();
    shape[axis] = length;
    const size_t bytes = row * static_cast<size_t>(length);
    const std::byte* const from = packed.bytes().data() + begin;
    if (reinterpret_cast<uintptr_t>(from) % kTensorAlignment == 0) {
      parts.push_back(Tensor::in(packed.storage().part(begin, bytes), packed.dtype(), std::move(shape)));
    } else {
      parts.push_back(Tensor::for_overwrite(packed.dtype(), std::move(shape)));
      std::copy(from, from + bytes, parts.back().bytes().data());
    }
    begin += bytes;
  }
  return parts;
}

Expected<std::vector<Tensor>> unpack_offsets(const Tensor& packed, size_t axis, std::span<const int64_t> offsets,
                                             std::string_view name) {
  constexpr const char* kHelp = "the offsets are the first rows of the instances, and the number of all rows";
  TENON_TRY(check_axis(packed, axis));
  if (offsets.empty())
    return error(fmt::format("{} is empty, must have one more than there are instances", name), {}, kHelp);
  if (offsets[0] != 0) return error(fmt::format("{}[0] is {}, must be 0", name, offsets[0]), {}, kHelp);
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1])
      return error(
          fmt::format("{}[{}] is {}, must be {} or more, as the one before it", name, i, offsets[i], offsets[i - 1]),
          {}, kHelp);
    lengths.push_back(offsets[i] - offsets[i - 1]);
  }
  if (const int64_t all = packed.shape()[axis]; offsets.back() != all)
    return error(fmt::format("{}[{}] is {}, must be {}, the number of rows", name, lengths.size(), offsets.back(), all),
                 {}, kHelp);
  return unpack(packed, axis, lengths, name);
}

Expected<Tensor> pack(std::span<const Tensor> parts, size_t axis) {
  if (parts.empty())
    return error("no tensors were given: the shape of the result is unknown", {}, "give at least one tensor");
  Shape shape = parts[0].shape();
  int64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    TENON_TRY(check_axis(parts[i], axis));
    shape[axis] = parts[i].shape().size() == shape.size() ? parts[i].shape()[axis] : 0;
    if (parts[i].dtype() != parts[0].dtype() || parts[i].shape() != shape)
      return error(fmt::format("tensor {} is {} {}, tensor 0 {} {}: only axis {} may differ", i, name(parts[i].dtype()),
                               to_string(parts[i].shape()), name(parts[0].dtype()), to_string(parts[0].shape()), axis),
                   {}, "pack tensors of other dtypes and sizes by themselves");
    if (parts[i].shape()[axis] > kMostRows - rows)
      return error(fmt::format("the rows of the tensors up to {} are more than 2^31", i), {},
                   "pack fewer tensors at once");
    rows += parts[i].shape()[axis];
  }
  shape[axis] = rows;
  if (!checked_bytes(parts[0].dtype(), shape))
    return error(fmt::format("the result would be {} {}, must be less than 2^48 bytes", name(parts[0].dtype()),
                             to_string(shape)),
                 {}, "pack fewer tensors at once");
  Tensor packed = Tensor::for_overwrite(parts[0].dtype(), std::move(shape));
  std::byte* to = packed.bytes().data();
  for (const Tensor& part : parts) to = std::copy(part.bytes().begin(), part.bytes().end(), to);
  return packed;
}

}  // namespace tenon::runtime
