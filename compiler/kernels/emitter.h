// Emits the loop function of a group of operators. A lazy tensor is a function from indices to a scalar expression:
// elementwise operators are inlined into their readers. Only tensors that are read repeatedly, and reductions, become
// stages with buffers. So fusion needs no step of its own: a group without a reduction is one stage.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/kernels/arithmetic.h"
#include "compiler/kernels/kernel_function.h"
#include "compiler/loop/builder.h"
#include "support/function_ref.h"

namespace tenon::compiler::kernels {

using loop::Axis;
using loop::AxisKind;
using loop::For;
using loop::LoopKind;
using loop::Stmt;
using schedules::kParallelTerms;
using schedules::lanes_of;

// Whether one of these sizes is the constant 0.
inline bool is_empty(const Dims& dims) {
  return std::ranges::any_of(dims, [](Dim size) { return size.constant() == 0; });
}

// The element at these indices, one for each dim.
using ElementFunction = std::function<Expr(const Dims& at)>;

// A stored result: its element as a function of its indices and of the sum.
struct TileResult {
  BufferId buffer{};
  std::function<Expr(const Dims& at, const Expr& sum)> value;
};

struct TransposedView;

// A tensor whose elements are expressions; stored only where it has a buffer.
struct LazyTensor {
  Dims dims;
  DType dtype{};
  ElementFunction at;
  std::optional<BufferId> buffer = std::nullopt;  // that stores the elements, if one does
  std::shared_ptr<const Tensor> constant = nullptr;
  std::shared_ptr<const LazyTensor> stored_as = nullptr;  // in f16 or bf16, where it was widened (short_floats.h)
  std::shared_ptr<const TransposedView> view = nullptr;   // where it is another tensor, transposed

  size_t rank() const { return dims.size(); }
};

// A tensor with its axes in another order: axis i is axis axes[i] of `of`.
struct TransposedView {
  LazyTensor of;
  std::vector<int64_t> axes;
};

class Emitter {
 public:
  Emitter(Context& context, std::string_view name, const std::vector<Symbol>& dims, const Machine& machine);

  Context& context() const { return context_; }
  // The machine that the loops are for; they compute the same results on any other.
  const Machine& machine() const { return machine_; }
  loop::Builder& builder() { return builder_; }

  // The next argument of the group. Its name need not be valid in the text form.
  LazyTensor argument(std::string_view name, const TensorType& type);
  // A tensor of one element becomes a literal, a larger one a parameter when it is first read.
  LazyTensor constant(const Tensor& tensor);
  // Computed by each reader.
  LazyTensor expression(Dims dims, DType dtype, ElementFunction at);
  // The tensor, computed once into a buffer; returned as it is where it is stored already.
  LazyTensor stored(std::string_view name, const LazyTensor& value);
  LazyTensor from_buffer(BufferId buffer, Dims dims, DType dtype);
  // The name by which sizes and tables apply the elements of an integer tensor, as lengths(b): that of its parameter.
  // Nothing where the kernel computes the tensor.
  std::optional<Symbol> as_sizes(const LazyTensor& value);
  // Whether elements that are adjacent along the axis are adjacent in memory.
  bool is_contiguous(const LazyTensor& value, size_t axis);
  // A buffer filled with one value; overwrite() then assigns a region of it: for each point of `region`, at() returns
  // the indices in the buffer and the new element.
  LazyTensor overwritten(std::string_view name, Dims dims, const Expr& value);
  void overwrite(std::string_view name, const LazyTensor& buffer, const Dims& region,
                 FunctionRef<std::pair<Dims, Expr>(const Dims& at)> at);
  // Updates elements of a stored tensor at computed indices. The points of `parallel` update different elements; those
  // of `ordered` are applied in order.
  struct Update {
    std::vector<std::pair<Expr, Dim>> computed;  // index values as of at_index(), each with its extent
    std::function<Dims(const Dims& computed)> index;
    std::function<Expr(const Expr& old)> value;
  };
  void update(std::string_view name, const LazyTensor& buffer, const Dims& parallel, const Dims& ordered,
              FunctionRef<Update(const Dims& at)> point);
  // Reduces `term`, a function of the indices of the result and then of the reduction axes, whose extents are `over`.
  // The reduction of no terms is `init`.
  struct Sum {
    Dims dims, over;
    BinaryOp op = BinaryOp::kAdd;
    ElementFunction term;
    std::optional<Expr> init = std::nullopt;  // nullopt: the identity of `op`
    bool ordered = false;  // kMax with the semantics of std::max, which keeps the old value where the new one is NaN
    bool across = false;   // vectorizes the results, though the terms are contiguous as well
  };
  LazyTensor reduce(std::string_view name, Sum sum);
  // A contraction whose loops `nests` emits; they store the results computed from the sums. An elementwise epilogue is
  // fused into it where this is its only reader.
  using Nests = std::function<loop::Body(const std::vector<TileResult>& results)>;
  LazyTensor contract(std::string_view name, Dims dims, DType dtype, Nests nests);
  // Stages that a template schedules, with the knobs of the operator.
  void add_template(schedules::TemplateStages stages, size_t operator_index) {
    templates_.push_back({std::move(stages), operator_index});
  }
  // The index of the operator that is being lowered, for add_template().
  size_t operator_index() { return knobs_.current(); }
  // A scan along the axis: step(indices, the previous element, or nullptr for the first element).
  LazyTensor scan(std::string_view name, Dims dims, size_t axis, DType dtype,
                  FunctionRef<Expr(const Dims& at, const Expr& before)> step);

  // A condition on sizes, which the caller of the kernel checks: the size is at least 0.
  void require(Dim size, std::string message);

  // The following knobs belong to the operator of this key; `settings` preselects options.
  void begin_operator(std::string key, KnobSettings settings) {
    knobs_.begin_operator(std::move(key), std::move(settings));
  }
  // The index of the selected option (knob.h); requires at least one option.
  size_t choose_option(std::string_view knob, std::vector<Option> options) {
    return knobs_.choose(knobs_.current(), knob, std::move(options));
  }

  // Whether the loops of a contraction are not emitted yet, so that an epilogue can be fused into them.
  bool has_pending() const { return pending_.has_value(); }
  // Emits the loops of the pending contraction without an epilogue. Required before statements are added to the builder
  // directly.
  void flush();

  // Statements of `make` that fill buffers of these sizes and types; local() makes further buffers for them.
  std::vector<LazyTensor> nest(std::string_view name, const std::vector<std::pair<Dims, DType>>& results,
                               FunctionRef<loop::Body(std::span<const BufferId> results)> make);
  BufferId local(std::string_view name, const Dims& dims, DType dtype) {
    return builder_.local(unique(name), dims, dtype);
  }

  Dim dim(int64_t value) const { return context_.dim(value); }
  // Binds a computed index, which `use` reads at. A negative value counts from the end; an index that is out of range
  // is an error at run time.
  Expr at_index(const Expr& index, Dim extent, FunctionRef<Expr(Dim)> use);
  // A name that is not used by another buffer.
  std::string unique(std::string_view name);
  Symbol fresh_index() { return context_.symbol(unique("p")); }
  // lo <= index < hi.
  Expr inside(Dim index, Dim lo, Dim hi) const;

  // Where a template's step is refused, the loops stay plain. `own`: steps of a user instead of those of templates; an
  // error where one is refused.
  Expected<KernelFunction> finish(const std::vector<LazyTensor>& results, const schedules::UserSchedule* own = nullptr);

 private:
  struct Pending {  // a contraction whose loops are not emitted yet, so that an epilogue can be fused
    BufferId buffer{};
    Dims dims;
    Nests nests;
  };
  static Expr counted(const Expr& index, Dim extent);
  BufferId temporary(std::string_view name, const Dims& dims, DType dtype);
  BufferId parameter(const std::shared_ptr<const Tensor>& tensor);
  bool is_contiguous(const Expr& element, Symbol index);
  bool is_contiguous_sum(const Sum& sum);
  LazyTensor reduce_in_lanes(std::string_view name, const Sum& sum, int64_t lanes);
  bool reads_in_place(const std::vector<LazyTensor>& results);
  Status store_transposed(loop::Function& function, size_t result, const std::vector<BufferId>& results,
                          const std::vector<int64_t>& axes);
  bool is_of_template(Symbol stage) const;

  Context& context_;
  const Machine& machine_;
  loop::Builder builder_;
  std::vector<Operand> operands_;
  size_t arguments_ = 0;
  std::set<std::string> names_;
  std::set<BufferId> temporaries_;
  std::map<std::shared_ptr<const Tensor>, BufferId> constants_;
  std::optional<Pending> pending_;
  std::vector<loop::SizeRequirement> required_;
  KernelKnobs knobs_;
  std::vector<TemplateUse> templates_;
};

}  // namespace tenon::compiler::kernels
