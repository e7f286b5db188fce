#include "compiler/loop/tables.h"

#include <algorithm>

#include "compiler/loop/access.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::loop {

bool describe_equal_rows(TypeContext& context, const Table& a, const Table& b) {
  return a.count == b.count && a.width == context.substitute(b.width, {{b.var, context.dim(a.var)}});
}

std::vector<RowFunctions> row_functions(TypeContext& context, const Function& function) {
  std::vector<RowFunctions> found;
  for (const Table& table : function.tables) {
    auto same = std::ranges::find_if(found, [&](const RowFunctions& rows) {
      return rows.count == table.count &&
             rows.width == context.substitute(table.width, {{table.var, context.dim(rows.var)}});
    });
    if (same == found.end())
      same = found.insert(found.end(), RowFunctions{.var = table.var, .count = table.count, .width = table.width});
    switch (table.kind) {
      case Table::Kind::kOffsets: same->offsets = table.name; break;
      case Table::Kind::kRows: same->rows = table.name; break;
      case Table::Kind::kDescending: same->order = table.name; break;
      case Table::Kind::kPositions: same->positions = table.name; break;
      case Table::Kind::kCounts: same->counts = table.name; break;
    }
  }
  return found;
}

Symbol table_of(TypeContext& context, Function& function, Table::Kind kind, Symbol var, Dim count, Dim width,
                std::string_view base, Dim limit) {
  Table table{.kind = kind, .name = {}, .var = var, .count = count, .width = width, .limit = limit};
  for (const Table& other : function.tables)
    if (other.kind == kind && other.limit == limit && describe_equal_rows(context, table, other)) return other.name;
  // The row needs a name that no loop around a use has.
  table.var = fresh(context, function, "row");
  table.width = context.substitute(width, {{var, context.dim(table.var)}});
  table.name = fresh(context, function, std::string(base));
  function.tables.push_back(table);
  return table.name;
}

namespace {

// Whether the sizes of the buffer are constant from the function's entry on.
bool is_constant_at_entry(const Function& function, const Buffer& buffer) {
  std::set<Symbol> variables(function.dims.begin(), function.dims.end());
  for (const BufferAxis& axis : buffer.axes) {
    if (!only_mentions(axis.extent, variables)) return false;
    if (axis.var != Symbol{}) variables.insert(axis.var);
  }
  return true;
}

// The part of a size that depends on the row: without the factors that do not, which tables need not repeat.
Dim without_common_factors(TypeContext& context, Dim size, Symbol var) {
  if (size.node->terms.size() != 1) return size;
  Monomial factors;
  for (const DimAtom* factor : size.node->terms[0].factors) {
    const Dim alone = context.monomial({factor});
    if (mentions({&alone, 1}, var)) factors.push_back(factor);
  }
  return context.monomial(factors);
}

// Visits the axes from the innermost one: with the elements of one index of it, of which `by_table` says that they
// depend on the index. The visitor returns false to stop.
template <class Visit>
bool visit_axes(TypeContext& context, const Buffer& buffer, Visit visit) {
  Dim below = context.dim(1);  // the elements of one index
  for (size_t axis = buffer.rank(); axis-- > 0;) {
    const Symbol var = buffer.axes[axis].var;
    const bool by_table = var != Symbol{} && mentions({&below, 1}, var);
    if (by_table) {
      for (size_t outer = 0; outer < buffer.rank(); ++outer) {
        const Symbol other = buffer.axes[outer].var;
        const Dim both[] = {below, buffer.axes[axis].extent};
        if (outer != axis && other != Symbol{} && mentions(both, other)) return false;  // rows of rows
      }
    }
    const std::optional<Dim> all = visit(axis, below, by_table);
    if (!all) return false;
    below = *all;
  }
  return true;
}

}  // namespace

std::optional<PackedOffset> packed_offset(TypeContext& context, const Function& function, const Buffer& buffer,
                                          const Dims& indices) {
  if (!is_constant_at_entry(function, buffer)) return std::nullopt;
  std::map<Symbol, Dim> values;
  for (size_t axis = 0; axis < buffer.rank(); ++axis)
    if (buffer.axes[axis].var != Symbol{}) values[buffer.axes[axis].var] = indices[axis];
  PackedOffset result{.offset = context.dim(0), .elements = {}};
  const bool found = visit_axes(context, buffer, [&](size_t axis, Dim below, bool by_table) -> std::optional<Dim> {
    const BufferAxis& size = buffer.axes[axis];
    if (!by_table) {
      result.offset = context.add(result.offset, context.multiply(indices[axis], context.substitute(below, values)));
      result.elements.push_back(size.extent);
      return context.multiply(size.extent, below);
    }
    for (const Table& table : function.tables) {
      if (table.kind != Table::Kind::kOffsets || table.count != size.extent) continue;
      const Dim width = context.substitute(table.width, {{table.var, context.dim(size.var)}});
      const auto times = context.divide(below, width);
      if (!times || mentions({&*times, 1}, size.var)) continue;
      const auto part = [&](Dim index) { return context.multiply(*times, context.apply(table.name, {index})); };
      result.offset = context.add(result.offset, part(indices[axis]));
      std::erase_if(result.elements, [&](Dim factor) { return mentions({&factor, 1}, size.var); });
      if (context.product(result.elements) != *times) result.elements = {*times};
      result.elements.push_back(context.apply(table.name, {size.extent}));
      return part(size.extent);
    }
    return std::nullopt;
  });
  if (!found) return std::nullopt;
  return result;
}

void add_offset_tables(TypeContext& context, Function& function) {
  for (size_t i = 0; i < function.buffers.size(); ++i) {
    const Buffer buffer = function.buffers[i];
    if (packed_axes(buffer) == 0 || !is_constant_at_entry(function, buffer)) continue;
    visit_axes(context, buffer, [&](size_t axis, Dim below, bool by_table) -> std::optional<Dim> {
      const BufferAxis& size = buffer.axes[axis];
      if (!by_table) return context.multiply(size.extent, below);
      for (const Table& table : function.tables) {  // a multiple of its rows
        const Dim width = context.substitute(table.width, {{table.var, context.dim(size.var)}});
        const auto times = context.divide(below, width);
        if (table.kind == Table::Kind::kOffsets && table.count == size.extent && times &&
            !mentions({&*times, 1}, size.var))
          return context.multiply(*times, context.apply(table.name, {size.extent}));
      }
      const Dim width = without_common_factors(context, below, size.var);
      const Symbol name = table_of(context, function, Table::Kind::kOffsets, size.var, size.extent, width, "offsets");
      return context.multiply(*context.divide(below, width), context.apply(name, {size.extent}));
    });
  }
}

}  // namespace tenon::compiler::loop
