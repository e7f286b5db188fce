#include "runtime/native/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory_resource>
#include <ranges>
#include <utility>

#include "support/memory.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

using Op = SizeStep::Op;
using Indices = std::pmr::vector<int64_t>;

// Memory on the stack for short vectors; longer ones are on the heap.
class ShortMemory {
 public:
  std::pmr::memory_resource* resource() { return &resource_; }

 private:
  std::array<std::byte, 1024> bytes_;
  std::pmr::monotonic_buffer_resource resource_{bytes_.data(), bytes_.size()};
};

constexpr int64_t kMaxElements = int64_t{1} << 48;  // the limit of every tensor
constexpr int64_t kMaxRows = int64_t{1} << 31;      // of a batch

// The number of leading axes of the buffer that are one axis of its tensor.
size_t packed_axes(const SignatureBuffer& buffer) {
  size_t packed = 0;
  for (size_t axis = 1; axis < buffer.axes.size(); ++axis) {
    if (std::ranges::find(buffer.axes[axis], Op::kIndex, &SizeStep::op) != buffer.axes[axis].end()) packed = axis + 1;
  }
  return packed;
}

// Whether the size is a constant or a dim, as nearly all are.
bool is_simple(const Size& size) { return size.size() == 1 && (size[0].op == Op::kConstant || size[0].op == Op::kDim); }
bool is_simple(const SignatureBuffer& buffer) {
  return std::ranges::all_of(buffer.axes, [](const Size& size) { return is_simple(size); });
}
int64_t simple_value(const Size& size, std::span<const int64_t> dims) {
  return size[0].op == Op::kConstant ? size[0].operand : dims[static_cast<size_t>(size[0].operand)];
}
// The number of axes of the buffer's tensor.
size_t tensor_rank(const SignatureBuffer& buffer) {
  const size_t packed = is_simple(buffer) ? 0 : packed_axes(buffer);
  return buffer.axes.size() - (packed > 0 ? packed - 1 : 0);
}
// Whether the tensor, which has as many axes, has the sizes of a buffer whose sizes are all simple.
bool has_simple_sizes(const Tensor& tensor, const SignatureBuffer& buffer, std::span<const int64_t> dims) {
  const Shape& shape = tensor.shape();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!is_simple(buffer.axes[axis]) || simple_value(buffer.axes[axis], dims) != shape[axis]) return false;
  }
  return true;
}

// The result of an operation on two values, whose divisor is not 0; false: it is beyond 64 bits.
bool apply(Op op, int64_t left, int64_t right, int64_t& result) {
  if (op == Op::kAdd) return !__builtin_add_overflow(left, right, &result);
  if (op == Op::kMultiply) return !__builtin_mul_overflow(left, right, &result);
  if (op == Op::kMin) result = std::min(left, right);
  if (op == Op::kMax) result = std::max(left, right);
  if (op == Op::kFloorDivide) {
    if (right == -1 && left == INT64_MIN) return false;
    result = left / right - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
  }
  return true;
}

class Sizes {
 public:
  Sizes(const Signature& signature, std::span<const Tensor> params, std::span<const int64_t> dims)
      : signature_(signature), params_(params), dims_(dims) {}

  Expected<int64_t> value(const Size& size, const Indices& indices) {
    if (is_simple(size)) return simple_value(size, dims_);
    ShortMemory memory;
    Indices stack(memory.resource());
    stack.reserve(16);
    auto pop = [&] {
      const int64_t top = stack.back();
      stack.pop_back();
      return top;
    };
    for (const auto& [op, operand] : size) {
      switch (op) {
        case Op::kConstant: stack.push_back(operand); continue;
        case Op::kDim: stack.push_back(dims_[static_cast<size_t>(operand)]); continue;
        case Op::kIndex: stack.push_back(indices[static_cast<size_t>(operand)]); continue;
        case Op::kElement: {
          TENON_TRY_ASSIGN(element, this->element(static_cast<size_t>(operand), stack));
          stack.push_back(*element);
          continue;
        }
        case Op::kAdd:
        case Op::kMultiply:
        case Op::kFloorDivide:
        case Op::kMin:
        case Op::kMax: break;
      }
      const int64_t right = pop(), left = pop();
      if (op == Op::kFloorDivide && right == 0) return error("a size is divided by 0");
      int64_t result = 0;
      if (!apply(op, left, right, result)) return error("a size is beyond 64 bits");
      stack.push_back(result);
    }
    return stack.back();
  }

  // Appends the sizes of the buffer's tensor to `shape`, which is empty.
  template <class Sizes>
  Status shape(const SignatureBuffer& buffer, Sizes& shape) {
    if (is_simple(buffer)) {
      for (size_t axis = 0; axis < buffer.axes.size(); ++axis) {
        TENON_TRY_ASSIGN(extent, checked(simple_value(buffer.axes[axis], dims_), buffer, axis));
        shape.push_back(*extent);
      }
      return representable(buffer, shape);
    }
    const size_t packed = packed_axes(buffer);
    ShortMemory memory;
    Indices indices(packed, 0, memory.resource());
    indices.reserve(buffer.axes.size());
    for (size_t axis = packed; axis < buffer.axes.size(); ++axis) {
      TENON_TRY_ASSIGN(extent, this->extent(buffer, axis, indices));
      shape.push_back(*extent);
      indices.push_back(0);
    }
    if (packed > 0) {
      Indices prefix(memory.resource());
      const bool empty = std::ranges::find(shape, 0) != shape.end();
      TENON_TRY_ASSIGN(rows, empty ? Expected<int64_t>(0) : this->rows(buffer, packed, prefix));
      shape.insert(shape.begin(), *rows);
    }
    return representable(buffer, shape);
  }

  // The elements that a size of a row is made of: ", lengths[3] is -1".
  std::string sources(const Size& size, const Indices& indices) {
    std::string text;
    for (const auto& [op, operand] : size) {
      if (op != Op::kElement || params_[static_cast<size_t>(operand)].shape().size() != 1) continue;
      ShortMemory memory;
      Indices stack({indices[0]}, memory.resource());
      if (const auto element = this->element(static_cast<size_t>(operand), stack))
        text +=
            fmt::format(", {}[{}] is {}", signature_.params[static_cast<size_t>(operand)].name, indices[0], *element);
    }
    return text;
  }

  // The error of a tensor whose packed axis does not have the rows that the lengths of its instances are in all.
  std::unexpected<Diagnostic> rows_differ(const SignatureBuffer& buffer, int64_t found) {
    ShortMemory memory;
    Indices prefix(memory.resource());
    const auto count = value(buffer.axes[0], prefix);
    int64_t end = 0, instance = -1;
    for (int64_t i = 0; count && i < *count && end <= found; ++i) {
      prefix.assign(1, i);
      const auto inner = rows(buffer, packed_axes(buffer), prefix);
      if (!inner) return std::unexpected(inner.error());
      end += *inner, instance = i;
    }
    return error(
        fmt::format("'{}' has {} rows, those of the instances up to {} are {}", buffer.name, found, instance, end));
  }

 private:
  template <class Sizes>
  static Status representable(const SignatureBuffer& buffer, const Sizes& shape) {
    if (checked_bytes(buffer.dtype, shape)) return {};
    return error(fmt::format("'{}' would be a {} of {}", buffer.name, to_string(shape), name(buffer.dtype)));
  }
  static Expected<int64_t> checked(int64_t extent, const SignatureBuffer& buffer, size_t axis) {
    if (extent >= 0 && extent < kMaxElements) return extent;
    return error(fmt::format("axis {} of '{}' would have {} elements", axis, buffer.name, extent));
  }

  Expected<int64_t> element(size_t param, Indices& stack) {
    const Tensor& tensor = params_[param];
    int64_t offset = 0;
    const auto rank = static_cast<std::ptrdiff_t>(tensor.shape().size());
    ShortMemory memory;
    const Indices indices(stack.end() - rank, stack.end(), memory.resource());
    stack.resize(stack.size() - static_cast<size_t>(rank));
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      if (indices[axis] < 0 || indices[axis] >= tensor.shape()[axis])
        return error(fmt::format("a size is element {} of '{}', which is a {}", to_string(indices),
                                 signature_.params[param].name, to_string(tensor.shape())));
      offset = offset * tensor.shape()[axis] + indices[axis];
    }
    if (kIntegers.contains(tensor.dtype()) || tensor.dtype() == DType::kBool) {
      return with_dtype<kIntegers | kBoolean>(tensor.dtype(), [&]<class T>(T) {
        return static_cast<int64_t>(tensor.data<T>()[static_cast<size_t>(offset)]);
      });
    }
    return error(
        fmt::format("a size is an element of '{}', whose elements are not integers", signature_.params[param].name));
  }

  Expected<int64_t> extent(const SignatureBuffer& buffer, size_t axis, const Indices& indices) {
    TENON_TRY_ASSIGN(extent, value(buffer.axes[axis], indices));
    return checked(*extent, buffer, axis);
  }
  // The number of rows of the first `packed` axes whose indices begin with the prefix. Where no later size depends on
  // an axis, its indices have equally many rows.
  Expected<int64_t> rows(const SignatureBuffer& buffer, size_t packed, Indices& prefix) {
    const size_t axis = prefix.size();
    TENON_TRY_ASSIGN(extent, value(buffer.axes[axis], prefix));
    if (*extent < 0 || *extent >= kMaxElements)
      return error(fmt::format(
          "axis {} of '{}' would have {} elements{}", axis, buffer.name, *extent,
          prefix.empty() ? "" : fmt::format(" in row {}{}", prefix[0], sources(buffer.axes[axis], prefix))));
    if (axis + 1 == packed || *extent == 0) return *extent;
    const bool varies =
        std::any_of(buffer.axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
                    buffer.axes.begin() + static_cast<std::ptrdiff_t>(packed), [&](const Size& size) {
                      return std::ranges::find(size, SizeStep{Op::kIndex, static_cast<int64_t>(axis)}) != size.end();
                    });
    int64_t sum = 0;
    for (int64_t i = 0; i < (varies ? *extent : 1); ++i) {
      prefix.push_back(i);
      TENON_TRY_ASSIGN(inner, rows(buffer, packed, prefix));
      prefix.pop_back();
      if (!varies && __builtin_mul_overflow(*inner, *extent, &*inner)) *inner = kMaxElements;
      sum += *inner;
      if (sum > kMaxRows)
        return error(fmt::format("'{}' would have more than 2^31 rows: those up to row {} are {}", buffer.name,
                                 varies ? i : *extent - 1, sum));
    }
    return sum;
  }
  const Signature& signature_;
  std::span<const Tensor> params_;
  std::span<const int64_t> dims_;
};

class Verifier {
 public:
  Verifier(const Signature& signature, std::string_view where) : signature_(signature), where_(where) {}

  Status run() {
    for (size_t i = 0; i < signature_.dims.size(); ++i) {
      const SignatureDim& dim = signature_.dims[i];
      if (dim.param >= signature_.params.size())
        return fail(fmt::format("dim '{}' is the size of a parameter that does not exist", dim.name));
      const SignatureBuffer& param = signature_.params[dim.param];
      const size_t packed = packed_axes(param);
      // A packed axis binds nothing: its size is a sum.
      if (dim.axis >= param.axes.size() - (packed > 0 ? packed - 1 : 0) || (packed > 0 && dim.axis == 0))
        return fail(
            fmt::format("dim '{}' is the size of axis {} of '{}', which binds no dim", dim.name, dim.axis, param.name));
      if (dim.factor == 0) return fail(fmt::format("dim '{}' is a size divided by 0", dim.name));
      if (!sound(dim.offset, i, 0, false)) return fail(fmt::format("dim '{}' has a malformed size", dim.name));
    }
    for (const auto* buffers : {&signature_.params, &signature_.results}) {
      for (const SignatureBuffer& buffer : *buffers) {
        if (buffer.axes.size() > 32) return fail(fmt::format("'{}' has {} axes", buffer.name, buffer.axes.size()));
        for (size_t axis = 0; axis < buffer.axes.size(); ++axis) {
          if (!sound(buffer.axes[axis], signature_.dims.size(), axis, true))
            return fail(fmt::format("axis {} of '{}' has a malformed size", axis, buffer.name));
        }
      }
    }
    for (const SizeCheck& check : signature_.checks) {
      if (!sound(check.size, signature_.dims.size(), 0, false))
        return fail(fmt::format("the check '{}' has a malformed size", check.message));
    }
    for (const SignatureTable& table : signature_.tables) {
      if (table.kind == SignatureTable::Kind::kUnused) continue;
      const bool has_limit = table.kind == SignatureTable::Kind::kCounts || !table.limit.empty();
      if (!sound(table.count, signature_.dims.size(), 0, false) ||
          !sound(table.width, signature_.dims.size(), 1, true) ||
          (has_limit && !sound(table.limit, signature_.dims.size(), 0, false)))
        return fail("a table has a malformed size");
    }
    for (const auto& [result, param] : signature_.in_place) {
      if (result >= signature_.results.size() || param >= signature_.params.size())
        return fail(fmt::format("result {} is in place of parameter {}: there is none", result, param));
      const SignatureBuffer &written = signature_.results[result], &read = signature_.params[param];
      if (written.dtype != read.dtype || written.axes != read.axes)
        return fail(fmt::format("'{}' is in place of '{}', which has another type", written.name, read.name));
    }
    return {};
  }

 private:
  std::unexpected<Diagnostic> fail(std::string what) const { return error(std::move(what), std::string(where_)); }

  bool sound(const Size& size, size_t dims, size_t indices, bool elements) const {
    size_t stack = 0;
    auto below = [](int64_t index, size_t count) { return index >= 0 && static_cast<size_t>(index) < count; };
    for (const auto& [op, operand] : size) {
      size_t takes = 2;
      switch (op) {
        case Op::kConstant: takes = 0; break;
        case Op::kDim:
          if (!below(operand, dims)) return false;
          takes = 0;
          break;
        case Op::kIndex:
          if (!below(operand, indices)) return false;
          takes = 0;
          break;
        case Op::kElement:
          if (!elements || !below(operand, signature_.params.size())) return false;
          takes = signature_.params[static_cast<size_t>(operand)].axes.size();
          if (packed_axes(signature_.params[static_cast<size_t>(operand)]) > 0) return false;
          break;
        case Op::kAdd:
        case Op::kMultiply:
        case Op::kFloorDivide:
        case Op::kMin:
        case Op::kMax: break;
      }
      if (stack < takes) return false;
      stack = stack - takes + 1;
    }
    return stack == 1;
  }

  const Signature& signature_;
  std::string_view where_;
};

}  // namespace

bool is_sound(const Size& size, size_t dims) {
  size_t depth = 0;
  for (const auto& [op, operand] : size) {
    if (op == Op::kIndex || op == Op::kElement) return false;
    if (op == Op::kDim && (operand < 0 || static_cast<size_t>(operand) >= dims)) return false;
    const size_t takes = op == Op::kConstant || op == Op::kDim ? 0 : 2;
    if (depth < takes) return false;
    depth = depth - takes + 1;
  }
  return depth == 1;
}

std::optional<int64_t> evaluate(const Size& size, std::span<const std::optional<int64_t>> dims) {
  ShortMemory memory;
  Indices stack(memory.resource());
  stack.reserve(16);
  for (const auto& [op, operand] : size) {
    if (op == Op::kConstant) {
      stack.push_back(operand);
      continue;
    }
    if (op == Op::kDim) {
      const auto& value = dims[static_cast<size_t>(operand)];
      if (!value) return std::nullopt;
      stack.push_back(*value);
      continue;
    }
    const int64_t right = stack.back();
    stack.pop_back();
    if ((op == Op::kFloorDivide && right == 0) || !apply(op, stack.back(), right, stack.back())) return std::nullopt;
  }
  return stack.back();
}

Status verify(const Signature& signature, std::string_view where) { return Verifier(signature, where).run(); }

Storage CallMemory::storage(size_t /*result*/, size_t bytes) { return Storage::allocate(bytes); }
Shape CallMemory::shape() { return {}; }

Expected<std::vector<int64_t>> bind_dims(const Signature& signature, std::span<const Tensor> params) {
  CallMemory memory;
  TENON_TRY(bind_dims(signature, params, memory));
  return std::move(memory.dims);
}

Status bind_dims(const Signature& signature, std::span<const Tensor> params, CallMemory& memory) {
  if (params.size() != signature.params.size())
    return error(fmt::format("takes {} parameters, {} are given", signature.params.size(), params.size()));
  for (size_t i = 0; i < params.size(); ++i) {
    const SignatureBuffer& buffer = signature.params[i];
    if (!params[i]) return error(fmt::format("'{}' is missing", buffer.name));
    if (params[i].dtype() != buffer.dtype)
      return error(fmt::format("'{}' is {}, not {}", buffer.name, name(buffer.dtype), name(params[i].dtype())));
    if (const size_t rank = tensor_rank(buffer); params[i].shape().size() != rank)
      return error(fmt::format("'{}' has {} axes in its tensor, not {}", buffer.name, rank, params[i].shape().size()));
  }
  std::vector<int64_t>& dims = memory.dims;
  dims.clear();
  for (const SignatureDim& dim : signature.dims) {
    TENON_TRY_ASSIGN(offset, Sizes(signature, params, dims).value(dim.offset, {}));
    const int64_t size = params[dim.param].shape()[dim.axis], multiple = size - *offset;
    if (multiple % dim.factor != 0 || multiple / dim.factor < 0)
      return error(fmt::format("axis {} of '{}' has {} elements, which is the size for no '{}'", dim.axis,
                               signature.params[dim.param].name, size, dim.name));
    dims.push_back(multiple / dim.factor);
  }
  Sizes sizes(signature, params, dims);
  for (size_t i = 0; i < params.size(); ++i) {
    if (has_simple_sizes(params[i], signature.params[i], dims)) continue;
    ShortMemory short_memory;
    Indices shape(short_memory.resource());
    shape.reserve(params[i].shape().size() + 1);
    TENON_TRY(sizes.shape(signature.params[i], shape));
    if (std::ranges::equal(shape, params[i].shape())) continue;
    if (packed_axes(signature.params[i]) > 0 && shape[0] != params[i].shape()[0])
      return sizes.rows_differ(signature.params[i], params[i].shape()[0]);
    return error(fmt::format("'{}' is a {}, not a {}", signature.params[i].name, to_string(shape),
                             to_string(params[i].shape())));
  }
  for (const SizeCheck& check : signature.checks) {
    TENON_TRY_ASSIGN(value, sizes.value(check.size, {}));
    if (*value < 0) return error(check.message);
  }
  return {};
}

Expected<std::vector<Tensor>> make_results(const Signature& signature, std::span<const int64_t> dims,
                                           std::span<const Tensor> params) {
  CallMemory memory;
  memory.dims.assign(dims.begin(), dims.end());
  std::vector<Tensor> results;
  TENON_TRY(make_results(signature, params, memory, results));
  return results;
}

namespace {

// Contents of a table of this kind for rows of these sizes, of counts for as many t as `limit`.
std::vector<int64_t> contents_of(SignatureTable::Kind kind, std::span<const int64_t> widths, int64_t limit) {
  using Kind = SignatureTable::Kind;
  std::vector<int64_t> contents;
  if (kind == Kind::kDescending || kind == Kind::kPositions) {
    for (size_t row = 0; row < widths.size(); ++row) contents.push_back(static_cast<int64_t>(row));
    std::ranges::stable_sort(contents, std::greater(), [&](int64_t row) { return widths[static_cast<size_t>(row)]; });
    if (kind == Kind::kPositions) {
      std::vector<int64_t> positions(contents.size());
      for (size_t i = 0; i < contents.size(); ++i)
        positions[static_cast<size_t>(contents[i])] = static_cast<int64_t>(i);
      contents = std::move(positions);
    }
  } else if (kind == Kind::kCounts) {
    contents.assign(static_cast<size_t>(limit) + 1, 0);  // rows of each width
    for (const int64_t width : widths) ++contents[static_cast<size_t>(width)];
    int64_t wider = 0;
    for (int64_t& count : contents | std::views::reverse) wider += std::exchange(count, wider);
    contents.pop_back();
  } else if (kind == Kind::kOffsets) {
    contents.push_back(0);
    for (const int64_t width : widths) contents.push_back(contents.back() + width);
  } else {
    for (size_t row = 0; row < widths.size(); ++row)
      contents.insert(contents.end(), static_cast<size_t>(widths[row]), static_cast<int64_t>(row));
  }
  return contents;
}

// What a table is made of, without its contents: calls with equal ones have equal tables.
Expected<CallMemory::MadeTable> key_of(const SignatureTable& table, std::span<const Tensor> params, Sizes& sizes,
                                       std::span<const int64_t> dims) {
  ShortMemory short_memory;
  const Indices none(short_memory.resource());
  TENON_TRY_ASSIGN(count, sizes.value(table.count, none));
  if (*count < 0 || *count > kMaxRows) return error(fmt::format("a batch would have {} instances", *count));
  Expected<int64_t> limit = kMaxRows;
  if (!table.limit.empty()) limit = sizes.value(table.limit, none);
  TENON_TRY(limit);
  if (*limit < 0 || *limit > kMaxRows) return error(fmt::format("rows of up to {} elements are too long", *limit));
  TENON_TRY(check_memory(
      sizeof(int64_t) * (static_cast<uint64_t>(*count) + (table.kind == SignatureTable::Kind::kCounts ? *limit : 0)),
      "a table of a batch", {}));
  CallMemory::MadeTable key{
      .table = {table.kind, {{Op::kConstant, *count}}, {}, {{Op::kConstant, *limit}}}, .lengths = {}, .contents = {}};
  for (const auto& [op, operand] : table.width) {
    if (op == Op::kElement) {
      const auto bytes = params[static_cast<size_t>(operand)].bytes();
      key.table.width.push_back({op, static_cast<int64_t>(key.lengths.size())});
      key.lengths.emplace_back(bytes.begin(), bytes.end());
    } else {
      key.table.width.push_back(op == Op::kDim ? SizeStep{Op::kConstant, dims[static_cast<size_t>(operand)]}
                                               : SizeStep{op, operand});
    }
  }
  return key;
}

// The sizes of `count` rows.
Expected<std::vector<int64_t>> row_widths(const Size& size, int64_t count, Sizes& sizes) {
  ShortMemory short_memory;
  Indices index(short_memory.resource());
  std::vector<int64_t> widths;
  int64_t total = 0;
  for (int64_t row = 0; row < count; ++row) {
    index.assign(1, row);
    TENON_TRY_ASSIGN(width, sizes.value(size, index));
    if (*width < 0 || *width > kMaxRows || (total += *width) > kMaxRows)
      return error(
          fmt::format("row {} would have {} elements, all up to it {}{}: a size is 0 or more, and all are 2^31 "
                      "at most",
                      row, *width, total, sizes.sources(size, index)));
    widths.push_back(*width);
  }
  return widths;
}

Status check_limit(std::span<const int64_t> widths, int64_t limit, const Size& size, Sizes& sizes) {
  const auto wider = std::ranges::find_if(widths, [&](int64_t width) { return width > limit; });
  if (wider == widths.end()) return {};
  ShortMemory short_memory;
  const Indices index({wider - widths.begin()}, short_memory.resource());
  return error(
      fmt::format("row {} would have {} elements, {} at most{}", index[0], *wider, limit, sizes.sources(size, index)));
}

}  // namespace

Expected<std::vector<std::shared_ptr<const std::vector<int64_t>>>> make_tables(const Signature& signature,
                                                                               std::span<const Tensor> params,
                                                                               CallMemory& memory) {
  constexpr size_t kMaxKept = 32;
  std::vector<std::shared_ptr<const std::vector<int64_t>>> tables;
  if (signature.tables.empty()) return tables;
  Sizes sizes(signature, params, memory.dims);
  // Those of the table before, as tables of one kernel mostly describe the same rows.
  const SignatureTable* described = nullptr;
  std::vector<int64_t> widths;
  for (const SignatureTable& table : signature.tables) {
    if (table.kind == SignatureTable::Kind::kUnused) {
      tables.emplace_back();
      continue;
    }
    TENON_TRY_ASSIGN(key, key_of(table, params, sizes, memory.dims));
    const auto made = std::ranges::find_if(memory.tables, [&](const CallMemory::MadeTable& other) {
      return other.table == key->table && other.lengths == key->lengths;
    });
    if (made != memory.tables.end()) {
      ++memory.num_tables_reused;
      tables.push_back(made->contents);
      continue;
    }
    if (!described || described->count != table.count || described->width != table.width) {
      TENON_TRY_ASSIGN(found, row_widths(table.width, key->table.count[0].operand, sizes));
      widths = std::move(*found);
      described = &table;
    }
    const int64_t limit = key->table.limit[0].operand;
    TENON_TRY(check_limit(widths, limit, table.width, sizes));
    ++memory.num_tables_made;
    key->contents = std::make_shared<const std::vector<int64_t>>(contents_of(table.kind, widths, limit));
    tables.push_back(key->contents);
    if (memory.tables.size() == kMaxKept) memory.tables.erase(memory.tables.begin());
    memory.tables.push_back(std::move(*key));
  }
  return tables;
}

Status make_results(const Signature& signature, std::span<const Tensor> params, CallMemory& memory,
                    std::vector<Tensor>& results) {
  results.clear();
  Sizes sizes(signature, params, memory.dims);
  for (size_t i = 0; i < signature.results.size(); ++i) {
    const SignatureBuffer& buffer = signature.results[i];
    Shape shape = memory.shape();
    TENON_TRY(sizes.shape(buffer, shape));
    Storage storage = memory.storage(i, static_cast<size_t>(*checked_bytes(buffer.dtype, shape)));
    if (!storage.memory) return error(fmt::format("not enough memory for '{}'", buffer.name));
    results.push_back(Tensor::in(std::move(storage), buffer.dtype, std::move(shape)));
  }
  return {};
}

}  // namespace tenon::runtime
