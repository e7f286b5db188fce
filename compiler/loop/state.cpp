// Values of sizes, and offsets of elements.
#include "compiler/loop/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <span>

#include "compiler/loop/scalar.h"
#include "support/try.h"

namespace tenon::compiler::loop {

using runtime::Shape;
using runtime::Tensor;

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 28;

}  // namespace

size_t packed_axes(const Buffer& buffer) {
  size_t packed = 0;
  for (size_t axis = 1; axis < buffer.rank(); ++axis) {
    for_each_variable(buffer.axes[axis].extent, [&](Symbol var) {
      for (size_t before = 0; before < axis; ++before) {
        if (buffer.axes[before].var == var) packed = axis + 1;
      }
    });
  }
  return packed;
}

Expected<int64_t> State::value(Dim dim) {
  int64_t sum = 0;
  if (!dim.valid()) return fail("a size has no value");
  for (const DimTerm& term : dim.node->terms) {
    int64_t product = term.coefficient;
    for (const DimAtom* factor : term.factors) {
      TENON_TRY_ASSIGN(factor_value, value(*factor));
      if (__builtin_mul_overflow(product, *factor_value, &product)) return too_large(dim);
    }
    if (__builtin_add_overflow(sum, product, &sum)) return too_large(dim);
  }
  return sum;
}

std::unexpected<Diagnostic> State::too_large(Dim dim) const {
  return fail(fmt::format("{} exceeds 64 bits", context_.str(dim)));
}

Expected<int64_t> State::value(const DimAtom& atom) {
  if (atom.kind == DimAtom::Kind::kVariable) {
    const int64_t* found = variables_.find(atom.name);
    if (!found) return fail(fmt::format("'{}' has no value in this scope", context_.name(atom.name)));
    return *found;
  }
  switch (atom.kind) {
    case DimAtom::Kind::kFloorDivide: {
      TENON_TRY_ASSIGN(dividend, value(atom.args[0]));
      TENON_TRY_ASSIGN(divisor, value(atom.args[1]));
      if (*divisor == 0) return fail("a size is divided by 0");
      const int64_t quotient = *dividend / *divisor;
      return quotient * *divisor != *dividend && (*dividend < 0) != (*divisor < 0) ? quotient - 1 : quotient;
    }
    case DimAtom::Kind::kMin:
    case DimAtom::Kind::kMax: {
      TENON_TRY_ASSIGN(result, value(atom.args[0]));
      for (const Dim arg : std::span(atom.args).subspan(1)) {
        TENON_TRY_ASSIGN(other, value(arg));
        *result = atom.kind == DimAtom::Kind::kMin ? std::min(*result, *other) : std::max(*result, *other);
      }
      return *result;
    }
    case DimAtom::Kind::kApply: {
      Indices args;
      for (Dim arg : atom.args) {
        TENON_TRY_ASSIGN(index, value(arg));
        args.push_back(*index);
      }
      return applied(atom.name, args);
    }
    case DimAtom::Kind::kVariable:
    case DimAtom::Kind::kErased:
    case DimAtom::Kind::kInvalid: break;
  }
  return fail("a size has no value");
}

// lengths(b): an element of the parameter of that name.
Expected<int64_t> State::applied(Symbol function, const Indices& args) {
  if (const Table* table = function_.table(function)) return applied(*table, args[0]);
  for (BufferId param : function_.params) {
    if (function_.buffer(param).name != function) continue;
    TENON_TRY_ASSIGN(element, offset(param, args));
    return read(storage_[index(param)].data, *element).integer;
  }
  return fail(fmt::format("there is no parameter '{}' for the sizes that it names", context_.name(function)));
}

Expected<const std::vector<int64_t>*> State::contents(const Table& table) {
  if (const auto found = tables_.find(table.name); found != tables_.end()) return &found->second;
  TENON_TRY_ASSIGN(count, value(table.count));
  std::optional<int64_t> limit;
  if (table.limit.node) {
    TENON_TRY_ASSIGN(most, value(table.limit));
    if (*most < 0 || *most > kMaxElements)
      return fail(fmt::format("the limit of the table '{}' is {}", context_.name(table.name), *most));
    limit = *most;
  }
  std::vector<int64_t> begins{0}, order;
  for (int64_t row = 0; row < *count; ++row) {
    const Binding binding(variables_, table.var, row);
    TENON_TRY_ASSIGN(width, value(table.width));
    if (*width < 0)
      return fail(fmt::format("row {} of the table '{}' has {} elements", row, context_.name(table.name), *width));
    if (limit && *width > *limit)
      return fail(fmt::format("row {} of the table '{}' has {} elements, {} at most", row, context_.name(table.name),
                              *width, *limit));
    begins.push_back(begins.back() + *width);
    order.push_back(row);
    if (begins.back() > kMaxElements)
      return fail(fmt::format("the table '{}' has more than {} elements", context_.name(table.name), kMaxElements));
  }
  if (table.kind == Table::Kind::kCounts) {
    std::vector<int64_t> counts(static_cast<size_t>(limit.value_or(0)), 0);
    for (size_t row = 0; row + 1 < begins.size(); ++row) {
      const int64_t width = begins[row + 1] - begins[row];
      for (int64_t t = 0; t < width; ++t) ++counts[static_cast<size_t>(t)];
    }
    begins = std::move(counts);
  }
  if (table.kind == Table::Kind::kDescending || table.kind == Table::Kind::kPositions) {
    const auto width = [&](int64_t row) {
      return begins[static_cast<size_t>(row) + 1] - begins[static_cast<size_t>(row)];
    };
    std::ranges::stable_sort(order, std::greater(), width);
    begins = order;
    for (size_t i = 0; i < order.size() && table.kind == Table::Kind::kPositions; ++i)
      begins[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return &(tables_[table.name] = std::move(begins));
}

Expected<int64_t> State::applied(const Table& table, int64_t index) {
  TENON_TRY_ASSIGN(contents, this->contents(table));
  const std::vector<int64_t>& values = **contents;
  const int64_t size = table.kind == Table::Kind::kRows ? values.back() : static_cast<int64_t>(values.size());
  if (index < 0 || index >= size)
    return fail(
        fmt::format("{}({}) is outside of the table, which has {} elements", context_.name(table.name), index, size));
  if (table.kind == Table::Kind::kRows) return std::ranges::upper_bound(values, index) - values.begin() - 1;
  return values[static_cast<size_t>(index)];
}

Status State::lay_out(BufferId id) {
  Storage& storage = storage_[index(id)];
  const Buffer& buffer = function_.buffer(id);
  if (storage.extents.size() == buffer.rank()) return {};
  std::vector<int64_t> extents(buffer.rank(), 0), strides(buffer.rank(), 1);
  int64_t elements = 1;
  for (size_t axis = buffer.rank(); axis-- > 0;) {
    strides[axis] = elements;
    if (axis < storage.packed) break;
    TENON_TRY_ASSIGN(extent, value(buffer.axes[axis].extent));
    if (*extent < 0) return negative(id, *extent);
    extents[axis] = *extent;
    if (__builtin_mul_overflow(*extent, elements, &elements) || elements > kMaxElements) return too_many(id);
  }
  storage.extents = std::move(extents);
  storage.strides = std::move(strides);
  return {};
}

Expected<int64_t> State::count(BufferId id, Indices& prefix) {
  TENON_TRY(lay_out(id));
  const Storage& storage = storage_[index(id)];
  if (prefix.size() == storage.extents.size()) return 1;
  if (prefix.size() + 1 < storage.packed) {  // a later size depends on this axis
    TENON_TRY_ASSIGN(rows, this->rows(id, prefix));
    return (*rows)->back();
  }
  TENON_TRY_ASSIGN(extent, this->extent(id, prefix));
  int64_t product;
  if (__builtin_mul_overflow(*extent, storage.strides[prefix.size()], &product) || product > kMaxElements)
    return too_many(id);
  return product;
}

std::unexpected<Diagnostic> State::too_many(BufferId id) const {
  return fail(fmt::format("a tensor ({}) of more than {} elements", name(id), kMaxElements));
}

std::unexpected<Diagnostic> State::negative(BufferId id, int64_t extent) const {
  return fail(fmt::format("{} has an axis of {} elements", name(id), extent));
}

Expected<int64_t> State::extent(BufferId id, const Indices& prefix) {
  const Storage& storage = storage_[index(id)];
  if (prefix.size() >= storage.packed) {
    TENON_TRY(lay_out(id));
    return storage.extents[prefix.size()];
  }
  const Buffer& buffer = function_.buffer(id);
  const Binding binding(variables_);
  for (size_t axis = 0; axis < prefix.size(); ++axis) variables_.bind(buffer.axes[axis].var, prefix[axis]);
  TENON_TRY_ASSIGN(extent, value(buffer.axes[prefix.size()].extent));
  if (*extent < 0) return negative(id, *extent);
  return *extent;
}

Expected<const std::vector<int64_t>*> State::rows(BufferId id, Indices& prefix) {
  Storage& storage = storage_[index(id)];
  if (const auto found = storage.rows.find(prefix); found != storage.rows.end()) return &found->second;
  TENON_TRY_ASSIGN(extent, this->extent(id, prefix));
  std::vector<int64_t> begins{0};
  for (int64_t row = 0; row < *extent; ++row) {
    prefix.push_back(row);
    TENON_TRY_ASSIGN(below, count(id, prefix));
    prefix.pop_back();
    if (begins.back() + *below > kMaxElements) return too_many(id);
    begins.push_back(begins.back() + *below);
  }
  return &(storage.rows[prefix] = std::move(begins));
}

Expected<int64_t> State::offset(BufferId id, const Indices& indices) {
  TENON_TRY(lay_out(id));
  const Storage& storage = storage_[index(id)];
  int64_t offset = 0;
  Indices prefix;  // of the packed axes
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    int64_t extent = storage.extents[axis];
    if (axis < storage.packed) {
      TENON_TRY_ASSIGN(packed, this->extent(id, prefix));
      extent = *packed;
    }
    if (indices[axis] < 0 || indices[axis] >= extent)
      return fail(fmt::format("{}[{}] is outside: its axis {} has {} elements", name(id), fmt::join(indices, ", "),
                              axis, extent));
    if (axis + 1 < storage.packed) {
      TENON_TRY_ASSIGN(rows, this->rows(id, prefix));
      offset += (**rows)[static_cast<size_t>(indices[axis])];
      prefix.push_back(indices[axis]);
    } else {
      offset += indices[axis] * storage.strides[axis];
    }
  }
  return offset;
}

Expected<int64_t> State::offset(BufferId id, const Dims& indices) {
  TENON_TRY(lay_out(id));
  const Storage& storage = storage_[index(id)];
  bool inside = storage.packed == 0;
  int64_t offset = 0;
  for (size_t axis = 0; axis < indices.size() && inside; ++axis) {
    TENON_TRY_ASSIGN(index, value(indices[axis]));
    inside = *index >= 0 && *index < storage.extents[axis];
    if (inside) offset += *index * storage.strides[axis];
  }
  if (inside) return offset;
  Indices values;
  for (Dim dim : indices) {
    TENON_TRY_ASSIGN(index, value(dim));
    values.push_back(*index);
  }
  return this->offset(id, values);
}

Status State::bind(std::span<const Tensor> params) {
  if (params.size() != function_.params.size())
    return fail(fmt::format("expects {} parameters, got {}", function_.params.size(), params.size()));
  for (size_t i = 0; i < params.size(); ++i) {
    Storage& storage = storage_[index(function_.params[i])];
    const Buffer& buffer = function_.buffer(function_.params[i]);
    storage.packed = packed_axes(buffer);
    storage.data = params[i];
    storage.extents.clear();
    if (params[i].dtype() != buffer.dtype)
      return fail(fmt::format("{} is {}, not {}", name(function_.params[i]), runtime::name(buffer.dtype),
                              runtime::name(params[i].dtype())));
    storage.written.assign(static_cast<size_t>(params[i].size()), true);
  }
  // A size binds the only unbound variable in it, independently of the order of the parameters.
  for (bool more = true; more;) {
    more = false;
    for (BufferId param : function_.params) {
      const Buffer& buffer = function_.buffer(param);
      const Shape& shape = storage_[index(param)].data.shape();
      const size_t packed = storage_[index(param)].packed;
      const size_t rank = packed > 0 ? buffer.rank() - packed + 1 : buffer.rank();
      if (shape.size() != rank)
        return fail(fmt::format("{} has {} axes in its tensor, not {}", name(param), rank, shape.size()));
      for (size_t axis = packed; axis < buffer.rank(); ++axis) {
        DimValues bound;
        for (Symbol dim : function_.dims) {
          if (const int64_t* found = variables_.find(dim)) bound.emplace(dim, *found);
        }
        const int64_t size = shape[axis - (packed > 0 ? packed - 1 : 0)];
        if (!solve_for_variable(buffer.axes[axis].extent, size, bound)) continue;
        for (const auto& [dim, solved] : bound) {
          if (variables_.find(dim)) continue;
          variables_.bind(dim, solved);
          more = true;
        }
      }
    }
  }
  for (const auto& [dim, bounds] : function_.bounds) {
    const int64_t* found = variables_.find(dim);
    if (!found || bounds.contains(*found)) continue;
    return fail(fmt::format("{} is {}, must be in {}", context_.name(dim), *found, str(bounds)));
  }
  for (BufferId param : function_.params) {
    TENON_TRY_ASSIGN(shape, shape_of(param));
    if (*shape != storage_[index(param)].data.shape())
      return fail(fmt::format("{} is a {}, not a {}", name(param), runtime::to_string(*shape),
                              runtime::to_string(storage_[index(param)].data.shape())));
  }
  return {};
}

Expected<Shape> State::shape_of(BufferId id) {
  const Buffer& buffer = function_.buffer(id);
  const size_t packed = storage_[index(id)].packed;
  Shape shape;
  Indices prefix;
  if (packed > 0) {
    // The rows of the packed axes alone: the number of elements below each of them is the same.
    TENON_TRY_ASSIGN(total, count(id, prefix));
    prefix.assign(packed, 0);
    TENON_TRY_ASSIGN(below, count(id, prefix));
    shape.push_back(*below == 0 ? 0 : *total / *below);
  }
  prefix.assign(packed, 0);
  for (size_t axis = packed; axis < buffer.rank(); ++axis) {
    TENON_TRY_ASSIGN(extent, this->extent(id, prefix));
    shape.push_back(*extent);
    prefix.push_back(0);
  }
  return shape;
}

Status State::allocate(BufferId id) {
  Storage& storage = storage_[index(id)];
  storage = {};
  storage.packed = packed_axes(function_.buffer(id));
  Indices prefix;
  TENON_TRY_ASSIGN(elements, count(id, prefix));
  TENON_TRY_ASSIGN(shape, shape_of(id));
  const auto bytes = runtime::checked_bytes(function_.buffer(id).dtype, *shape);
  if (!bytes || *bytes > max_bytes_)
    return fail(fmt::format("a tensor ({}) of more than {} bytes", name(id), max_bytes_));
  storage.data = Tensor(function_.buffer(id).dtype, *shape);
  storage.written.assign(static_cast<size_t>(*elements), false);
  return {};
}

}  // namespace tenon::compiler::loop
