#include "compiler/kernels/emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "compiler/base/dim_prover.h"
#include "compiler/kernels/accesses.h"
#include "compiler/loop/access.h"
#include "compiler/loop/scalar.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

loop::Ranges ranges_of(const Dims& dims) {
  loop::Ranges ranges;
  for (const Dim size : dims) ranges.push_back({{}, size});
  return ranges;
}

Dims symbolic_indices(Context& context, size_t rank) {
  Dims at;
  for (size_t i = 0; i < rank; ++i) at.push_back(context.dim(context.symbol(fmt::format("i{}", i))));
  return at;
}

// The partial sum with one more term.
Expr step_of(const Emitter::Sum& sum, const Expr& before, const Expr& term) {
  return sum.ordered ? maximum(before, term) : loop::binary(sum.op, before, term);
}

}  // namespace

Emitter::Emitter(Context& context, std::string_view name, const std::vector<Symbol>& dims, const Machine& machine)
    : context_(context), machine_(machine), builder_(context, name) {
  for (const Symbol dim : dims) {
    builder_.dim(context.name(dim));
    names_.emplace(context.name(dim));
  }
}

std::string Emitter::unique(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') text += c;
  }
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) text = "x" + text;
  std::string candidate = text;
  for (int i = 1; !names_.insert(candidate).second; ++i) candidate = fmt::format("{}_{}", text, i);
  return candidate;
}

LazyTensor Emitter::from_buffer(BufferId buffer, Dims dims, DType dtype) {
  return {.dims = std::move(dims),
          .dtype = dtype,
          .at = [this, buffer](const Dims& at) { return builder_.load(buffer, at); },
          .buffer = buffer};
}

LazyTensor Emitter::argument(std::string_view name, const TensorType& type) {
  operands_.emplace_back(arguments_++);
  return from_buffer(builder_.param(unique(name), type.dims, type.dtype), type.dims, type.dtype);
}

LazyTensor Emitter::constant(const Tensor& tensor) {
  Dims dims;
  for (const int64_t size : tensor.shape()) dims.push_back(dim(size));
  if (tensor.size() == 1) {
    const loop::Scalar scalar = loop::read(tensor, 0);
    const Expr literal = loop::is_float(tensor.dtype()) ? loop::literal(tensor.dtype(), scalar.real)
                                                        : loop::integer_literal(tensor.dtype(), scalar.integer);
    return {.dims = std::move(dims), .dtype = tensor.dtype(), .at = [literal](const Dims&) { return literal; }};
  }
  const auto shared = std::make_shared<const Tensor>(tensor);
  return {.dims = dims,
          .dtype = tensor.dtype(),
          .at = [this, shared](const Dims& at) { return builder_.load(parameter(shared), at); },
          .constant = shared};
}

BufferId Emitter::parameter(const std::shared_ptr<const Tensor>& tensor) {
  const auto [found, is_new] = constants_.try_emplace(tensor);
  if (is_new) {
    operands_.emplace_back(*tensor);
    Dims dims;
    for (const int64_t size : tensor->shape()) dims.push_back(dim(size));
    found->second = builder_.param(unique("w"), dims, tensor->dtype());
  }
  return found->second;
}

BufferId Emitter::temporary(std::string_view name, const Dims& dims, DType dtype) {
  const BufferId buffer = builder_.temporary(unique(name), ranges_of(dims), dtype);
  temporaries_.insert(buffer);
  return buffer;
}

LazyTensor Emitter::expression(Dims dims, DType dtype, ElementFunction at) {
  // An empty tensor has no valid indices: a size of 0 might divide an index.
  if (is_empty(dims)) at = [zero = loop::literal(dtype, 0)](const Dims&) { return zero; };
  // Equal indices share one expression node: the code generator computes each node once.
  auto nodes = std::make_shared<std::map<Dims, Expr>>();
  ElementFunction shared = [nodes, at = std::move(at)](const Dims& indices) {
    Expr& expr = (*nodes)[indices];
    if (!expr) expr = at(indices);
    return expr;
  };
  return {.dims = std::move(dims), .dtype = dtype, .at = std::move(shared)};
}

LazyTensor Emitter::stored(std::string_view name, const LazyTensor& value) {
  if (value.buffer) return value;
  if (value.constant) {
    LazyTensor parameter = from_buffer(this->parameter(value.constant), value.dims, value.dtype);
    parameter.constant = value.constant;
    return parameter;
  }
  flush();
  const BufferId buffer = builder_.compute(unique(name), ranges_of(value.dims), value.at);
  temporaries_.insert(buffer);
  return from_buffer(buffer, value.dims, value.dtype);
}

std::optional<Symbol> Emitter::as_sizes(const LazyTensor& value) {
  std::optional<BufferId> buffer = value.buffer;
  if (value.constant) buffer = parameter(value.constant);
  if (!buffer && std::ranges::all_of(value.dims, [](Dim size) { return size.constant() == 1; })) {
    // The element of a constant is a literal.
    const Expr element = value.at(Dims(value.rank(), dim(0)));
    const auto* literal = std::get_if<loop::Literal>(&element->form);
    if (!literal) return std::nullopt;
    Tensor tensor(value.dtype, runtime::Shape(value.rank(), 1));
    loop::write(tensor, 0, {.integer = literal->integer});
    buffer = parameter(std::make_shared<const Tensor>(std::move(tensor)));
  }
  const std::vector<BufferId>& params = builder_.function().params;
  if (!buffer || std::ranges::find(params, *buffer) == params.end()) return std::nullopt;
  return builder_.function().buffer(*buffer).name;
}

LazyTensor Emitter::overwritten(std::string_view name, Dims dims, const Expr& value) {
  const DType dtype = value->dtype;
  return stored(name, {.dims = std::move(dims), .dtype = dtype, .at = [value](const Dims&) { return value; }});
}

void Emitter::overwrite(std::string_view name, const LazyTensor& buffer, const Dims& region,
                        FunctionRef<std::pair<Dims, Expr>(const Dims& at)> at) {
  builder_.stage(name, ranges_of(region), {}, [&](const Dims& indices) {
    auto [to, value] = at(indices);
    return loop::Builder::Assignment{*buffer.buffer, std::move(to), std::move(value), nullptr};
  });
}

// The index as an i64, where a negative one counts from the end.
Expr Emitter::counted(const Expr& index, Dim extent) {
  const Expr wide = loop::convert(DType::kI64, index);
  // An index that is too small even from the end stays as it is, so that the error reports it.
  const Expr from_end = wide + loop::index_value(extent);
  return select(logical_and(below(wide, 0), less_equal(like(wide, 0), from_end)), from_end, wide);
}

void Emitter::update(std::string_view name, const LazyTensor& buffer, const Dims& parallel, const Dims& ordered,
                     FunctionRef<Update(const Dims& at)> point) {
  builder_.stage(name, ranges_of(parallel), ranges_of(ordered), [&](const Dims& at) {
    const Update update = point(at);
    loop::Builder::Assignment assignment{.to = *buffer.buffer, .indices = {}, .value = nullptr};
    Dims indices;
    for (const auto& [index, extent] : update.computed) {
      assignment.computed.push_back({fresh_index(), extent, counted(index, extent)});
      indices.push_back(context_.dim(assignment.computed.back().var));
    }
    assignment.indices = update.index(indices);
    assignment.value = update.value(builder_.load(assignment.to, assignment.indices));
    return assignment;
  });
}

LazyTensor Emitter::reduce(std::string_view name, Sum sum) {
  flush();
  const Dims zeros(sum.dims.size() + sum.over.size(), dim(0));
  const DType dtype = sum.term(zeros)->dtype;
  const Expr init = sum.init ? *sum.init : loop::identity(sum.op, dtype);
  if (is_empty(sum.dims) || is_empty(sum.over))
    return expression(std::move(sum.dims), dtype, [init](const Dims&) { return init; });
  const int64_t length = sum.over.empty() ? 0 : sum.over.back().constant().value_or(INT64_MAX);
  if (length >= 32 && !sum.across && is_contiguous_sum(sum))
    return reduce_in_lanes(name, sum, length >= 256 && length < INT64_MAX ? 64 : 16);
  const loop::Ranges ranges = ranges_of(sum.dims);
  const bool maybe_empty =
      std::ranges::any_of(sum.over, [&](Dim size) { return DimProver(context_).less(dim(0), size) != Answer::kYes; });
  const BufferId to = temporary(name, sum.dims, dtype);
  // The body of a reduction without terms never runs: its initialization is a stage of its own then.
  if (maybe_empty) builder_.compute(to, [&](const Dims&) { return init; });
  builder_.stage(name, ranges, ranges_of(sum.over), [&](const Dims& at) {
    const Dims target(at.begin(), at.begin() + static_cast<ptrdiff_t>(sum.dims.size()));
    const Expr next = step_of(sum, builder_.load(to, target), sum.term(at));
    return loop::Builder::Assignment{to, target, next, maybe_empty ? nullptr : init};
  });
  return from_buffer(to, std::move(sum.dims), dtype);
}

// Whether the elements that the expression loads are contiguous in memory along the index.
bool Emitter::is_contiguous(const Expr& element, Symbol index) {
  bool is_contiguous = false, is_strided = false;
  loop::for_each_node(element, [&](const loop::ExprNode& node) {
    is_strided |= std::holds_alternative<loop::LetIndex>(node.form);
    const auto* load = std::get_if<loop::Load>(&node.form);
    if (!load) return;
    const auto step =
        stride(context_, index, offset(context_, builder_.function().buffer(load->buffer), load->indices));
    is_contiguous |= step == 1;
    is_strided |= step != 1 && step != 0;
  });
  return is_contiguous && !is_strided;
}

bool Emitter::is_contiguous(const LazyTensor& value, size_t axis) {
  const Dims at = symbolic_indices(context_, value.rank());
  return is_contiguous(value.at(at), *at[axis].variable());
}

bool Emitter::is_contiguous_sum(const Sum& sum) {
  const Dims at = symbolic_indices(context_, sum.dims.size() + sum.over.size());
  return is_contiguous(sum.term(at), *at.back().variable());
}

// Partial sums in the lanes of a vector, and then their sum. Each term of the tail, which has fewer than a vector, is
// added to the partial sum of its lane; where the length is not constant, to the sum, since vectors of lengths that are
// known at run time only cost more than a few terms.
LazyTensor Emitter::reduce_in_lanes(std::string_view name, const Sum& sum, int64_t lanes) {
  const Dim length = sum.over.back(), blocks = context_.floor_divide(length, dim(lanes));
  const Dim vectorized = context_.multiply(blocks, dim(lanes)), tail = context_.subtract(length, vectorized);
  const size_t rank = sum.dims.size();
  Sum partial = sum;
  partial.init.reset();
  partial.dims.push_back(dim(lanes));
  partial.over.back() = blocks;
  partial.term = [=, this](const Dims& at) {  // indices of the result, lane, outer reduction axes, block
    Dims from = at;
    const Dim lane = from[rank];
    from.erase(from.begin() + static_cast<ptrdiff_t>(rank));
    from.back() = context_.add(context_.multiply(from.back(), dim(lanes)), lane);
    return sum.term(from);
  };
  const LazyTensor partial_sums = reduce(fmt::format("{}_part", name), partial);
  // Adds the term at the last of `from` in the tail to an element of a buffer.
  const auto add_tail = [&](const Dims& dims, const Dims& over, BufferId to, const auto& indices) {
    builder_.stage(fmt::format("{}_tail", name), ranges_of(dims), ranges_of(over), [&](const Dims& at) {
      auto [target, from] = indices(at);
      from.back() = context_.add(from.back(), vectorized);
      return loop::Builder::Assignment{to, target, step_of(sum, builder_.load(to, target), sum.term(from)), nullptr};
    });
  };
  const bool in_lanes = tail.constant().has_value();
  if (in_lanes && tail.constant() != 0) {
    Dims dims = partial.dims, over = sum.over;
    dims.back() = tail;
    over.pop_back();
    add_tail(dims, over, *partial_sums.buffer, [&](const Dims& at) {
      const auto lane = at.begin() + static_cast<ptrdiff_t>(rank);
      Dims from(at.begin(), lane);
      from.insert(from.end(), lane + 1, at.end());
      from.push_back(*lane);
      return std::pair(Dims(at.begin(), lane + 1), std::move(from));
    });
  }
  Sum total = sum;
  total.over = {dim(lanes)};
  total.term = [=](const Dims& at) { return partial_sums.at(at); };
  const LazyTensor result = reduce(name, total);
  if (!in_lanes) {
    Dims over = sum.over;
    over.back() = tail;
    add_tail(sum.dims, over, *result.buffer, [&](const Dims& at) {
      return std::pair(Dims(at.begin(), at.begin() + static_cast<ptrdiff_t>(rank)), at);
    });
  }
  return result;
}

LazyTensor Emitter::contract(std::string_view name, Dims dims, DType dtype, Nests nests) {
  flush();
  const BufferId to = temporary(name, dims, dtype);
  pending_ = Pending{to, dims, std::move(nests)};
  return from_buffer(to, std::move(dims), dtype);
}

void Emitter::flush() {
  if (!pending_) return;
  const Pending pending = std::move(*pending_);
  pending_.reset();
  const std::vector<TileResult> results{{pending.buffer, [](const Dims&, const Expr& sum) { return sum; }}};
  for (Stmt& nest : pending.nests(results)) builder_.add(std::move(nest));
}

// Whether all results are the pending contraction, or elementwise functions of it: they read it at their own indices.
bool Emitter::reads_in_place(const std::vector<LazyTensor>& results) {
  const Dims at = symbolic_indices(context_, pending_->dims.size());
  return std::ranges::all_of(results, [&](const LazyTensor& result) {
    if (result.dims != pending_->dims || (result.buffer && *result.buffer != pending_->buffer)) return false;
    bool in_place = true, reads = false;
    loop::for_each_node(result.at(at), [&](const loop::ExprNode& node) {
      const auto* load = std::get_if<loop::Load>(&node.form);
      if (!load || load->buffer != pending_->buffer) return;
      reads = true;
      for (size_t d = 0; d < at.size(); ++d)  // an operand that is broadcast is read at 0
        in_place &= load->indices[d] == at[d] || pending_->dims[d].constant() == 1;
    });
    return in_place && reads;
  });
}

LazyTensor Emitter::scan(std::string_view name, Dims dims, size_t axis, DType dtype,
                         FunctionRef<Expr(const Dims& at, const Expr& before)> step) {
  flush();
  loop::Ranges ranges, inner;
  for (size_t i = 0; i < dims.size(); ++i) {
    ranges.push_back({{}, dims[i]});
    if (i != axis) inner.push_back({{}, dims[i]});
  }
  const BufferId to = temporary(name, dims, dtype);
  builder_.scan({"t", dims[axis]}, {to}, [&](Dim t) {
    builder_.stage(name, inner, {}, [&](const Dims& others) {
      Dims at = others, before;
      at.insert(at.begin() + static_cast<ptrdiff_t>(axis), t);
      before = at;
      before[axis] = context_.subtract(t, dim(1));
      const Expr next = select(less(loop::integer_literal(DType::kI64, 0), loop::index_value(t)),
                               step(at, builder_.load(to, before)), step(at, nullptr));
      return loop::Builder::Assignment{to, at, next, nullptr};
    });
  });
  return from_buffer(to, std::move(dims), dtype);
}

std::vector<LazyTensor> Emitter::nest(std::string_view name, const std::vector<std::pair<Dims, DType>>& results,
                                      FunctionRef<loop::Body(std::span<const BufferId>)> make) {
  flush();
  std::vector<BufferId> buffers;
  std::vector<LazyTensor> values;
  for (const auto& [dims, dtype] : results) {
    buffers.push_back(temporary(name, dims, dtype));
    values.push_back(from_buffer(buffers.back(), dims, dtype));
  }
  for (Stmt& stmt : make(buffers)) builder_.add(std::move(stmt));
  return values;
}

Expr Emitter::at_index(const Expr& index, Dim extent, FunctionRef<Expr(Dim)> use) {
  const Symbol var = fresh_index();
  return loop::let_index(var, extent, counted(index, extent), use(context_.dim(var)));
}

Expr Emitter::inside(Dim index, Dim lo, Dim hi) const {
  return logical_and(less_equal(loop::index_value(lo), loop::index_value(index)),
                     less(loop::index_value(index), loop::index_value(hi)));
}

namespace {

// Removes the Alloc of a buffer that the caller provides.
void free_from_alloc(loop::Body& body, BufferId buffer) {
  for (size_t i = 0; i < body.size(); ++i) {
    loop::for_each_body(body[i], [&](loop::Body& inner) { free_from_alloc(inner, buffer); });
    auto* alloc = std::get_if<loop::Alloc>(&body[i].form);
    if (!alloc || alloc->buffer != buffer) continue;
    loop::Body inner = std::move(alloc->body);
    body.erase(body.begin() + static_cast<ptrdiff_t>(i));
    body.insert(body.begin() + static_cast<ptrdiff_t>(i), std::make_move_iterator(inner.begin()),
                std::make_move_iterator(inner.end()));
  }
}

}  // namespace

void Emitter::require(Dim size, std::string message) {
  loop::SizeRequirement requirement{size, std::move(message)};
  if (DimProver(context_).less_equal(dim(0), size) == Answer::kYes) return;
  if (std::ranges::find(required_, requirement) == required_.end()) required_.push_back(std::move(requirement));
}

// Stores a result with its axes in another order, and so the temporaries of its sizes that its stages read. The loops
// of the stages that write them are in this order then, where no template expects another one.
Status Emitter::store_transposed(loop::Function& function, size_t result, const std::vector<BufferId>& results,
                                 const std::vector<int64_t>& axes) {
  const auto sizes_of = [&](BufferId buffer) {
    Dims sizes;
    for (const loop::BufferAxis& axis : function.buffer(buffer).axes) sizes.push_back(axis.extent);
    return sizes;
  };
  std::vector<BufferId> stored{results[result]};
  std::vector<std::pair<Symbol, std::vector<Symbol>>> writers;  // with the loops of the axes, in the new order
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* alloc = std::get_if<loop::Alloc>(&stmt.form);
    if (alloc && sizes_of(alloc->buffer) == sizes_of(results[result]) && !std::ranges::count(results, alloc->buffer))
      stored.push_back(alloc->buffer);
  });
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    const auto* store = stage && stage->body.size() == 1 ? std::get_if<loop::Store>(&stage->body[0].form) : nullptr;
    if (!store || !std::ranges::count(stored, store->buffer) || is_of_template(stage->name)) return;
    std::vector<Symbol> loops;
    for (const int64_t axis : axes) {
      const auto index = loop::over_loops(context_, *stage, {store->indices[static_cast<size_t>(axis)]})[0].variable();
      if (index) loops.push_back(*index);
    }
    writers.emplace_back(stage->name, std::move(loops));
  });
  std::string order, new_order;
  for (size_t i = 0; i < axes.size(); ++i) order += fmt::format("#{} ", i), new_order += fmt::format(" #{}", axes[i]);
  loop::Schedule schedule(context_, function);
  for (const BufferId buffer : stored) {
    const Status status = schedule.apply(
        fmt::format("layout({}, {}->{})", context_.name(function.buffer(buffer).name), order, new_order));
    if (!status && buffer == results[result]) return status;
  }
  for (const auto& [stage, loops] : writers) (void)schedule.reorder(stage, loops);  // the order costs time alone
  function = std::move(schedule).take();
  return {};
}

bool Emitter::is_of_template(Symbol stage) const {
  return std::ranges::any_of(templates_,
                             [&](const TemplateUse& use) { return schedules::results_of(use.stages) == stage; });
}

namespace {

// The order in which results are stored: those of more operands first, so that the memory of an operand that another
// one reads alone, as the momentum of an update, can be that one's (loop/in_place.h).
std::vector<size_t> store_order(Context& context, const std::vector<LazyTensor>& results) {
  std::vector<size_t> order(results.size());
  if (results.size() < 2) return order;
  std::vector<std::set<BufferId>> read(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    order[i] = i;
    if (results[i].buffer) continue;
    loop::for_each_node(results[i].at(symbolic_indices(context, results[i].dims.size())), [&](const loop::ExprNode& n) {
      if (const auto* load = std::get_if<loop::Load>(&n.form)) read[i].insert(load->buffer);
    });
  }
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return read[i].size(); });
  return order;
}

}  // namespace

Expected<KernelFunction> Emitter::finish(const std::vector<LazyTensor>& wanted, const schedules::UserSchedule* own) {
  // A GPU's threads store a transposed result as fast as any other. A processor's vectors do not: there the transposing
  // loops follow those that compute it.
  std::vector<LazyTensor> results = wanted;
  for (LazyTensor& result : results)
    if (result.view && machine_.threads > 0) result = LazyTensor(result.view->of);
  std::vector<BufferId> buffers(results.size());
  const std::vector<size_t> order = store_order(context_, results);
  const bool is_fused = pending_ && reads_in_place(results);
  const BufferId contraction = is_fused ? pending_->buffer : BufferId{};
  if (is_fused) {
    std::vector<TileResult> into;
    for (const size_t i : order) {
      const LazyTensor& result = results[i];
      buffers[i] = builder_.temporary(unique("y"), ranges_of(result.dims), result.dtype);
      into.push_back({buffers[i], [result, contraction](const Dims& at, const Expr& sum) {
                        return loop::rewrite(result.at(at), [&](const loop::ExprNode& node) -> Expr {
                          const auto* load = std::get_if<loop::Load>(&node.form);
                          return load && load->buffer == contraction ? sum : nullptr;
                        });
                      }});
    }
    for (Stmt& nest : pending_->nests(into)) builder_.add(std::move(nest));
    pending_.reset();
  }
  flush();
  std::set<BufferId> handed_out;
  for (const size_t i : is_fused ? std::vector<size_t>() : order) {
    const LazyTensor& result = results[i];
    if (result.buffer && temporaries_.contains(*result.buffer) && handed_out.insert(*result.buffer).second) {
      buffers[i] = *result.buffer;
    } else {  // an argument, a constant or a repeated result is copied
      LazyTensor copy = result;
      copy.buffer.reset();
      buffers[i] = *stored("y", copy).buffer;
    }
  }
  TENON_TRY_ASSIGN(function, builder_.build());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].view && machine_.threads > 0)
      TENON_TRY(store_transposed(*function, i, buffers, wanted[i].view->axes));
  for (const BufferId buffer : buffers) free_from_alloc(function->body, buffer);
  if (is_fused) free_from_alloc(function->body, contraction);  // has no reader
  function->results = buffers;
  function->required = std::move(required_);
  TENON_TRY(loop::verify(context_, *function));
  KernelFunction kernel{std::move(*function), std::move(operands_)};
  kernel.algorithm = kernel.function, kernel.constants = constants_of(kernel);
  if (own) {
    TENON_TRY(apply_user_schedule(context_, kernel, *own));
  } else {
    apply_templates(context_, kernel, templates_, machine_, knobs_);
  }
  kernel.knobs = std::move(knobs_).take();
  return kernel;
}

}  // namespace tenon::compiler::kernels
