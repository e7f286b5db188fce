// The state of a loop function during evaluation: the values of its variables, and its buffers.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

using Indices = std::vector<int64_t>;

// The values of the variables in scope; an inner binding hides an outer one. Few are in scope at once, so that a search
// from the innermost one is faster than a map.
class Variables {
 public:
  // Nothing if the variable is not bound. Valid until the next binding.
  const int64_t* find(Symbol var) const {
    for (size_t i = bound_.size(); i > 0; --i) {
      if (bound_[i - 1].var == var) return &bound_[i - 1].value;
    }
    return nullptr;
  }
  void bind(Symbol var, int64_t value) { bound_.push_back({var, value}); }

 private:
  friend class Binding;
  struct Bound {
    Symbol var;
    int64_t value;
  };
  std::vector<Bound> bound_;
};

// Ends the bindings that are made after it when it ends.
class Binding {
 public:
  explicit Binding(Variables& variables) : variables_(variables), outer_(variables.bound_.size()) {}
  Binding(Variables& variables, Symbol var, int64_t value) : Binding(variables) { variables.bind(var, value); }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;
  ~Binding() {
    variables_.bound_.erase(variables_.bound_.begin() + static_cast<ptrdiff_t>(outer_), variables_.bound_.end());
  }

 private:
  Variables& variables_;
  const size_t outer_;
};

struct Storage {
  runtime::Tensor data;
  std::vector<bool> written;                     // of each element
  size_t packed = 0;                             // leading axes that are one axis of the tensor, see packed_axes()
  std::map<Indices, std::vector<int64_t>> rows;  // of ragged axes: offsets of the rows below a prefix, and their end
  // Of each axis, once a value of a size is asked for. An extent is known from axis `packed` on, a stride (in elements)
  // from the last of the packed axes on: what is before them depends on indices.
  std::vector<int64_t> extents, strides;
};

class State {
 public:
  // `max_bytes`: of one buffer.
  State(const TypeContext& context, const Function& function, int64_t max_bytes)
      : context_(context), function_(function), max_bytes_(max_bytes), storage_(function.buffers.size()) {}

  const TypeContext& context() const { return context_; }
  const Function& function() const { return function_; }
  Variables& variables() { return variables_; }
  Storage& storage(BufferId id) { return storage_[index(id)]; }
  std::string name(BufferId id) const { return "%" + std::string(context_.name(function_.buffer(id).name)); }
  std::unexpected<Diagnostic> fail(std::string finding) const {
    return error(std::move(finding), "@" + std::string(context_.name(function_.name)));
  }

  // Binds the parameters' tensors, and the dim variables that their shapes determine.
  Status bind(std::span<const runtime::Tensor> params);
  // Allocates a buffer with unknown contents, of its current sizes.
  Status allocate(BufferId id);

  Expected<int64_t> value(Dim dim);
  // The offset of an element in the buffer's tensor; an error if it is outside the buffer.
  Expected<int64_t> offset(BufferId id, const Dims& indices);
  Expected<int64_t> offset(BufferId id, const Indices& indices);

 private:
  Expected<int64_t> value(const DimAtom& atom);
  Expected<int64_t> applied(Symbol function, const Indices& args);
  Expected<int64_t> applied(const Table& table, int64_t index);
  // The offsets of the table's rows, and their end; of the other kinds, their values.
  Expected<const std::vector<int64_t>*> contents(const Table& table);
  // Computes the extents and strides of the axes that are not ragged.
  Status lay_out(BufferId id);
  // Elements of the buffer below the prefix.
  Expected<int64_t> count(BufferId id, Indices& prefix);
  Expected<int64_t> extent(BufferId id, const Indices& prefix);
  // The offsets of the rows below the prefix, and the end of the last row.
  Expected<const std::vector<int64_t>*> rows(BufferId id, Indices& prefix);
  Expected<runtime::Shape> shape_of(BufferId id);
  std::unexpected<Diagnostic> too_large(Dim dim) const;
  std::unexpected<Diagnostic> too_many(BufferId id) const;
  std::unexpected<Diagnostic> negative(BufferId id, int64_t extent) const;

  const TypeContext& context_;
  const Function& function_;
  const int64_t max_bytes_;
  std::vector<Storage> storage_;                   // of each buffer
  std::map<Symbol, std::vector<int64_t>> tables_;  // those that were asked for
  Variables variables_;
};

}  // namespace tenon::compiler::loop
