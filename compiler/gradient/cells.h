// References as cells: each reference to a value with floats gets a second reference, to the adjoint of its content.
#pragma once

#include <map>

#include "compiler/gradient/reverse.h"

namespace tenon::compiler::gradient {

// Whether a value of the type has a reference to a value with floats as a part, also inside of data types.
bool has_reference_to_floats(Context& context, const Module& module, Type type);

// Replaces the references of a module by cells, data of the type Cell { Cell(Ref[T], Ref[D T]) }, and their
// instructions by calls of generated functions, which have passes of their own. In a backward pass the second reference
// has the adjoint of what the first one had at that moment of the forward pass: a read adds to it, a write takes it and
// leaves a zero, and so what was written before gets the adjoints of the reads that came between the two writes. The
// values themselves are not restored, since tapes have all that is needed of them. References to values without floats
// stay as they are.
class Cells {
 public:
  explicit Cells(Context& context) : context_(context) {}

  // The module must have no closures. An error where the entry has a cell as an argument or result, or where the
  // content of a cell has a size that is neither a constant nor `?`.
  Status convert(Module& module, DimNames& dims);
  // Defines the passes of a function of a cell, which have these names; nothing where it is none.
  bool contains(Symbol function) const { return functions_.contains(function); }
  Status define(Module& module, Tables& tables, Symbol function, const std::vector<bool>& active,
                const Passes& passes) const;

 private:
  enum class Kind : uint8_t { kNew, kRead, kWrite };
  struct Cell {
    Type content, adjoint;
    Type type;             // of the cell
    Symbol constructor{};  // of the same name
    Symbol make{}, read{}, write{};
  };
  // One of the two references.
  static Expected<Atom> reference(Builder& builder, const Cell& cell, const Atom& value, size_t which);
  class Conversion;

  Context& context_;
  std::map<Type, Cell> cells_;  // by the type of the content
  std::map<Symbol, std::pair<Kind, Type>> functions_;
};

}  // namespace tenon::compiler::gradient
