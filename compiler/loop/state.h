// The state of a loop function during evaluation: the values of its variables, and its buffers.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

using Indices = std::vector<int64_t>;

// Binds a variable to a value until the end of the scope; an inner binding hides an outer one.
class Binding {
 public:
  Binding(std::map<Symbol, int64_t>& values, Symbol var, int64_t value) : values_(values), var_(var) {
    const auto [found, added] = values.try_emplace(var, value);
    if (!added) hidden_ = std::exchange(found->second, value);
  }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;
  ~Binding() {
    if (hidden_) values_[var_] = *hidden_;
    else values_.erase(var_);
  }

 private:
  std::map<Symbol, int64_t>& values_;
  Symbol var_;
  std::optional<int64_t> hidden_;
};

struct Storage {
  runtime::Tensor data;
  std::vector<bool> written;                     // of each element
  size_t packed = 0;                             // leading axes that are one axis of the tensor, see packed_axes()
  std::map<Indices, std::vector<int64_t>> rows;  // of ragged axes: offsets of the rows below a prefix, and their end
};

class State {
 public:
  // `max_bytes`: of one buffer.
  State(const TypeContext& context, const Function& function, int64_t max_bytes)
      : context_(context), function_(function), max_bytes_(max_bytes), storage_(function.buffers.size()) {}

  const TypeContext& context() const { return context_; }
  const Function& function() const { return function_; }
  std::map<Symbol, int64_t>& values() { return values_; }
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
  // Elements of the buffer below the prefix.
  Expected<int64_t> count(BufferId id, Indices& prefix);
  Expected<int64_t> extent(BufferId id, const Indices& prefix);
  // The offsets of the rows below the prefix, and the end of the last row.
  Expected<const std::vector<int64_t>*> rows(BufferId id, Indices& prefix);
  Expected<runtime::Shape> shape_of(BufferId id);
  std::unexpected<Diagnostic> too_large(Dim dim) const;
  std::unexpected<Diagnostic> too_many(BufferId id) const;

  const TypeContext& context_;
  const Function& function_;
  const int64_t max_bytes_;
  std::vector<Storage> storage_;  // of each buffer
  std::map<Symbol, int64_t> values_;
};

}  // namespace tenon::compiler::loop
