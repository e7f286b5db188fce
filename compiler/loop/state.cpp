// Values of sizes, and offsets of elements.
#include "compiler/loop/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>

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
    const auto found = values_.find(atom.name);
    if (found == values_.end()) return fail(fmt::format("'{}' has no value in this scope", context_.name(atom.name)));
    return found->second;
  }
  Indices args;
  for (Dim arg : atom.args) {
    TENON_TRY_ASSIGN(arg_value, value(arg));
    args.push_back(*arg_value);
  }
  switch (atom.kind) {
    case DimAtom::Kind::kFloorDivide: {
      if (args[1] == 0) return fail("a size is divided by 0");
      const int64_t quotient = args[0] / args[1];
      return quotient * args[1] != args[0] && (args[0] < 0) != (args[1] < 0) ? quotient - 1 : quotient;
    }
    case DimAtom::Kind::kMin: return *std::ranges::min_element(args);
    case DimAtom::Kind::kMax: return *std::ranges::max_element(args);
    case DimAtom::Kind::kApply: return applied(atom.name, args);
    case DimAtom::Kind::kVariable:
    case DimAtom::Kind::kErased:
    case DimAtom::Kind::kInvalid: break;
  }
  return fail("a size has no value");
}

// lengths(b): an element of the parameter of that name.
Expected<int64_t> State::applied(Symbol function, const Indices& args) {
  for (BufferId param : function_.params) {
    if (function_.buffer(param).name != function) continue;
    TENON_TRY_ASSIGN(element, offset(param, args));
    return read(storage_[index(param)].data, *element).integer;
  }
  return fail(fmt::format("there is no parameter '{}' for the sizes that it names", context_.name(function)));
}

Expected<int64_t> State::count(BufferId id, Indices& prefix) {
  const Buffer& buffer = function_.buffer(id);
  if (prefix.size() == buffer.rank()) return 1;
  TENON_TRY_ASSIGN(extent, this->extent(id, prefix));
  if (prefix.size() + 1 >= storage_[index(id)].packed) {  // no later size depends on this axis
    prefix.push_back(0);
    TENON_TRY_ASSIGN(below, count(id, prefix));
    prefix.pop_back();
    int64_t product;
    if (__builtin_mul_overflow(*extent, *below, &product) || product > kMaxElements) return too_many(id);
    return product;
  }
  TENON_TRY_ASSIGN(rows, this->rows(id, prefix));
  return (*rows)->back();
}

std::unexpected<Diagnostic> State::too_many(BufferId id) const {
  return fail(fmt::format("a tensor ({}) of more than {} elements", name(id), kMaxElements));
}

Expected<int64_t> State::extent(BufferId id, const Indices& prefix) {
  const Buffer& buffer = function_.buffer(id);
  std::deque<Binding> bindings;
  for (size_t axis = 0; axis < prefix.size(); ++axis)
    bindings.emplace_back(values_, buffer.axes[axis].var, prefix[axis]);
  auto extent = value(buffer.axes[prefix.size()].extent);
  while (!bindings.empty()) bindings.pop_back();
  if (extent && *extent < 0) return fail(fmt::format("{} has an axis of {} elements", name(id), *extent));
  return extent;
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
  Indices prefix;
  int64_t offset = 0;
  const Storage& storage = storage_[index(id)];
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    TENON_TRY_ASSIGN(extent, this->extent(id, prefix));
    if (indices[axis] < 0 || indices[axis] >= *extent)
      return fail(fmt::format("{}[{}] is outside: its axis {} has {} elements", name(id), fmt::join(indices, ", "),
                              axis, *extent));
    if (axis + 1 < storage.packed) {
      TENON_TRY_ASSIGN(rows, this->rows(id, prefix));
      offset += (**rows)[static_cast<size_t>(indices[axis])];
      prefix.push_back(indices[axis]);
    } else {
      prefix.push_back(indices[axis]);
      TENON_TRY_ASSIGN(below, count(id, prefix));
      offset += indices[axis] * *below;
    }
  }
  return offset;
}

Expected<int64_t> State::offset(BufferId id, const Dims& indices) {
  Indices values;
  for (Dim dim : indices) {
    TENON_TRY_ASSIGN(index, value(dim));
    values.push_back(*index);
  }
  return offset(id, values);
}

Status State::bind(std::span<const Tensor> params) {
  if (params.size() != function_.params.size())
    return fail(fmt::format("expects {} parameters, got {}", function_.params.size(), params.size()));
  for (size_t i = 0; i < params.size(); ++i) {
    Storage& storage = storage_[index(function_.params[i])];
    const Buffer& buffer = function_.buffer(function_.params[i]);
    storage.packed = packed_axes(buffer);
    storage.data = params[i];
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
          if (const auto found = values_.find(dim); found != values_.end()) bound.emplace(*found);
        }
        const int64_t size = shape[axis - (packed > 0 ? packed - 1 : 0)];
        if (!solve_for_variable(buffer.axes[axis].extent, size, bound)) continue;
        for (const auto& [dim, solved] : bound) more |= values_.emplace(dim, solved).second;
      }
    }
  }
  for (const auto& [dim, bounds] : function_.bounds) {
    const auto found = values_.find(dim);
    if (found == values_.end() || bounds.contains(found->second)) continue;
    return fail(fmt::format("{} is {}, must be in {}", context_.name(dim), found->second, str(bounds)));
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
