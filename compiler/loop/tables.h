// The tables of a loop function (Table in loop.h), and where ragged buffers have their elements by them.
#pragma once

#include <optional>
#include <vector>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

// Whether both tables describe rows of equal widths.
bool describe_equal_rows(TypeContext& context, const Table& a, const Table& b);
// The tables as functions, for proofs. Those of equal rows are described together.
std::vector<RowFunctions> row_functions(TypeContext& context, const Function& function);
// The name of the table of the kind for these rows, which is added, named by `base`, where the function has none.
// `limit`: of its rows' widths.
Symbol table_of(TypeContext& context, Function& function, Table::Kind kind, Symbol var, Dim count, Dim width,
                std::string_view base, Dim limit = {});

// The elements of a buffer as a polynomial, where sums of ragged sizes are elements of tables.
struct PackedOffset {
  Dim offset;                 // of the element with these indices
  std::vector<Dim> elements;  // the factors of the number of all elements, each of which is at least 0
};
// Of an element of a buffer whose sizes are over the function's dims and parameters; nothing where the function does
// not have a table that this requires, or where the rows of rows are ragged. Row d of a ragged axis begins at A_d[i_d],
// the sum of the sizes before it: Fegade et al., "The CoRa tensor compiler", section 5.2.
std::optional<PackedOffset> packed_offset(TypeContext& context, const Function& function, const Buffer& buffer,
                                          const Dims& indices);
// Adds the tables by which packed_offset() has the elements of the ragged buffers.
void add_offset_tables(TypeContext& context, Function& function);

}  // namespace tenon::compiler::loop
