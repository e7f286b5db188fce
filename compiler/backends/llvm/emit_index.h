// Values of dims: sizes, indices and offsets, as polynomials of loop variables.
//
// Every part of a polynomial is computed in the scope where its last variable gets its value, and is reused by all
// later users: invariant code is hoisted by construction. The variables of unrolled loops are constants in the
// polynomials. In a vector loop a value is a scalar as long as it is equal in all lanes.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "compiler/backends/llvm/emit_frame.h"

namespace tenon::compiler::native {

// Whether sizes of axes depend on the index of the first axis; a table then contains the offsets of its rows.
bool is_ragged(const loop::Buffer& buffer);

class IndexEmitter : EmitterPart {
 public:
  using Env = std::map<Symbol, Dim>;
  using ElementLoad = std::function<Value*(BufferId, const Dims&)>;

  // `load_element` loads an element of a parameter, of which a size is made (`lengths(b)`).
  IndexEmitter(FrameEmitter& frames, ElementLoad load_element);

  // The values of loops, axes and Lets, as dims over the frame's variables.
  Env& env() { return env_; }
  // The extents of the declared buffers; those of a ragged buffer contain the variable of its row.
  std::map<BufferId, Dims>& extents() { return extents_; }

  // The dim over the frame's variables; the following methods take resolved dims.
  Dim resolve(Dim dim) { return context_.substitute(dim, env_); }
  Dims resolve(const Dims& dims);
  bool varies(Dim dim);  // between lanes
  size_t scope_of(Dim dim);
  Value* value(Dim dim);    // an i64, or a vector of them
  Value* uniform(Dim dim);  // an i64
  Value* vector_value(Dim dim);
  Value* to_index(DType dtype, Value* value);
  // Emits the faults of divisions in the dim whose divisor may be 0.
  void check_divisions(Dim dim);
  void check_divisions(const Dims& dims);

  // Makes the sizes of a buffer known, with the current values of the variables.
  void declare(BufferId id);
  Dim extent(BufferId id, size_t axis, Dim row);
  Dim row_elements(BufferId id, Dim row);
  // Buffers with equal rows have equal keys, and share their table of row offsets.
  std::pair<const DimNode*, const DimNode*> table_key(BufferId id);

 private:
  bool never_negative(Dim dim) const;
  bool is_short(Dim dim);
  Value* shortened(Value* value, bool is_short);
  Value* uniform_product(const DimTerm& term, Dim whole, size_t scope, bool is_short);
  Value* uniform_atom(const DimAtom& atom);
  Value* vector_sum(Dim dim);
  Value* vector_atom(const DimAtom& atom);
  Value* floor_divide(Value* a, Value* b, bool nonnegative);
  Value* element(const DimAtom& atom);

  ElementLoad load_element_;
  Env env_;
  std::map<BufferId, Dims> extents_;
  Symbol row_{};                                                // stands for the index of a ragged buffer's first axis
  std::map<const DimNode*, llvm::Constant*> vector_constants_;  // of dims over lanes; equal in all scopes
};

}  // namespace tenon::compiler::native
