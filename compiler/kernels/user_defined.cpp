#include "compiler/kernels/user_defined.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/pattern.h"
#include "compiler/loop/text.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

using Bindings = std::map<Symbol, Dim>;
// Returns the expression that replaces an element of one of the function's buffers.
using Load = std::function<Expr(BufferId buffer, Dims at)>;

// Solves for the function's dims, given the sizes of the arguments; nullopt where these do not determine all dims.
std::optional<Bindings> dims_of(Context& context, const loop::Function& function, const std::vector<LazyTensor>& args) {
  Bindings renamed, solved;  // dims renamed, so that they differ from the variables of the arguments' sizes
  for (const Symbol dim : function.dims)
    renamed[dim] = context.dim(context.symbol(fmt::format("callee {}", context.name(dim))));
  for (bool progress = true; progress && solved.size() < function.dims.size();) {
    progress = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const loop::Buffer& param = function.buffer(function.params[i]);
      for (size_t axis = 0; axis < param.rank(); ++axis) {
        const Dim extent = context.substitute(context.substitute(param.axes[axis].extent, renamed), solved);
        for (const auto& [dim, value] : renamed) {
          const Symbol variable = *value.variable();
          const auto linear = solved.contains(variable) ? std::nullopt : context.linear_in(variable, extent);
          if (!linear || linear->first.constant().value_or(0) == 0) continue;
          const auto solution = context.divide(context.subtract(args[i].dims[axis], linear->second), linear->first);
          bool is_solved = solution.has_value();
          if (solution) {
            for_each_variable(*solution, [&](Symbol var) {
              is_solved &=
                  std::ranges::none_of(renamed, [&](const auto& entry) { return *entry.second.variable() == var; });
            });
          }
          if (!is_solved) continue;
          solved[variable] = *solution;
          progress = true;
          break;
        }
      }
    }
  }
  if (solved.size() < function.dims.size()) return std::nullopt;
  for (auto& [dim, value] : renamed) value = solved.at(*value.variable());
  return renamed;
}

Dims extents(Context& context, const loop::Buffer& buffer, const Bindings& bindings) {
  Dims dims;
  for (const loop::BufferAxis& axis : buffer.axes) dims.push_back(context.substitute(axis.extent, bindings));
  return dims;
}

// Copies code of the function, with new buffers and sizes, and with fresh loop variables, which must differ from those
// of the surrounding loops.
class Copier {
 public:
  Copier(Emitter& emit, const loop::Function& function, Load load)
      : emit_(emit), context_(emit.context()), function_(function), load_(std::move(load)) {}

  std::map<BufferId, BufferId>& buffers() { return buffers_; }

  Expr expression(const Expr& expr, const Bindings& bindings) {
    return std::visit([&](const auto& form) { return this->form(*expr, form, bindings); }, expr->form);
  }
  // `dims` binds the dims of the function, which a stage can use besides its axes.
  loop::Body body(const loop::Body& body, const Bindings& bindings, const Bindings& dims) {
    loop::Body copy;
    for (const loop::Stmt& stmt : body)
      copy.push_back(
          std::visit([&](const auto& form) { return loop::Stmt{statement(form, bindings, dims)}; }, stmt.form));
    return copy;
  }

 private:
  Dim dim(Dim dim, const Bindings& bindings) { return context_.substitute(dim, bindings); }
  Dims dims(const Dims& dims, const Bindings& bindings) {
    Dims result;
    for (const Dim index : dims) result.push_back(dim(index, bindings));
    return result;
  }
  Bindings with(Bindings bindings, Symbol var, Symbol renamed) {
    bindings[var] = context_.dim(renamed);
    return bindings;
  }

  Expr form(const loop::ExprNode& node, const loop::Literal&, const Bindings&) {
    return std::make_shared<const loop::ExprNode>(node);
  }
  Expr form(const loop::ExprNode&, const loop::IndexValue& form, const Bindings& bindings) {
    return loop::index_value(dim(form.value, bindings));
  }
  Expr form(const loop::ExprNode&, const loop::Load& form, const Bindings& bindings) {
    return load_(form.buffer, dims(form.indices, bindings));
  }
  Expr form(const loop::ExprNode&, const loop::Unary& form, const Bindings& bindings) {
    return loop::unary(form.op, expression(form.value, bindings));
  }
  Expr form(const loop::ExprNode&, const loop::Binary& form, const Bindings& bindings) {
    return loop::binary(form.op, expression(form.left, bindings), expression(form.right, bindings));
  }
  Expr form(const loop::ExprNode&, const loop::Select& form, const Bindings& bindings) {
    return loop::select(expression(form.condition, bindings), expression(form.then, bindings),
                        expression(form.otherwise, bindings));
  }
  Expr form(const loop::ExprNode& node, const loop::Convert& form, const Bindings& bindings) {
    return loop::convert(node.dtype, expression(form.value, bindings));
  }
  Expr form(const loop::ExprNode&, const loop::LetIndex& form, const Bindings& bindings) {
    const Symbol renamed = emit_.fresh_index();
    return loop::let_index(renamed, dim(form.extent, bindings), expression(form.value, bindings),
                           expression(form.body, with(bindings, form.var, renamed)));
  }

  loop::For statement(const loop::For& loop, const Bindings& bindings, const Bindings& outer) {
    const Symbol renamed = emit_.fresh_index();
    return {renamed, dim(loop.extent, bindings), loop.kind, body(loop.body, with(bindings, loop.var, renamed), outer)};
  }
  loop::Stage statement(const loop::Stage& stage, const Bindings& bindings, const Bindings& outer) {
    loop::Stage copy;
    copy.name = emit_.builder().stage_name(context_.name(stage.name));
    copy.async = stage.async;
    Bindings axes = outer;
    for (const loop::Axis& axis : stage.axes) {
      const Symbol renamed = emit_.fresh_index();
      copy.axes.push_back({renamed, dim(axis.extent, axes), axis.kind, dim(axis.value, bindings)});
      axes[axis.var] = context_.dim(renamed);
    }
    for (const loop::Guard& guard : stage.where)
      copy.where.push_back({dim(guard.left, bindings), dim(guard.right, bindings)});
    copy.init = body(stage.init, axes, outer);
    copy.body = body(stage.body, axes, outer);
    return copy;
  }
  loop::Store statement(const loop::Store& store, const Bindings& bindings, const Bindings&) {
    return {buffers_.at(store.buffer), dims(store.indices, bindings), expression(store.value, bindings)};
  }
  loop::If statement(const loop::If& branch, const Bindings& bindings, const Bindings& outer) {
    return {expression(branch.condition, bindings), body(branch.then, bindings, outer),
            body(branch.otherwise, bindings, outer)};
  }
  loop::Let statement(const loop::Let& let, const Bindings& bindings, const Bindings& outer) {
    const Symbol renamed = emit_.fresh_index();
    return {renamed, dim(let.extent, bindings), expression(let.value, bindings),
            body(let.body, with(bindings, let.var, renamed), outer)};
  }
  loop::Alloc statement(const loop::Alloc& alloc, const Bindings& bindings, const Bindings& outer) {
    const loop::Buffer& buffer = function_.buffer(alloc.buffer);
    buffers_[alloc.buffer] = emit_.local(context_.name(buffer.name), extents(context_, buffer, bindings), buffer.dtype);
    return {buffers_.at(alloc.buffer), alloc.scope, body(alloc.body, bindings, outer)};
  }
  // can_inline() excludes these statements.
  loop::CallLibrary statement(const loop::CallLibrary& call, const Bindings&, const Bindings&) { return call; }
  loop::Intrinsic statement(const loop::Intrinsic& call, const Bindings&, const Bindings&) { return call; }
  loop::Barrier statement(const loop::Barrier& barrier, const Bindings&, const Bindings&) { return barrier; }
  loop::Commit statement(const loop::Commit& commit, const Bindings&, const Bindings&) { return commit; }
  loop::Wait statement(const loop::Wait& wait, const Bindings&, const Bindings&) { return wait; }

  Emitter& emit_;
  Context& context_;
  const loop::Function& function_;
  const Load load_;
  std::map<BufferId, BufferId> buffers_;  // buffers of the kernel by buffers of the function
};

// The statements of the function; `buffers` maps its parameters and results to buffers of the kernel.
loop::Body copy_body(Emitter& emit, const loop::Function& function, const Bindings& bindings,
                     std::map<BufferId, BufferId> buffers) {
  Copier* self = nullptr;
  Copier copier(emit, function, [&](BufferId buffer, Dims indices) {
    return emit.builder().load(self->buffers().at(buffer), std::move(indices));
  });
  self = &copier;
  copier.buffers() = std::move(buffers);
  return copier.body(function.body, bindings, bindings);
}

// The store of a function that consists of one elementwise stage, whose axes are the indices of the result; else
// nullptr.
const loop::Store* elementwise_store(const loop::Function& function) {
  const loop::Stage* stage = nullptr;
  size_t stages = 0, num_other_statements = 0;
  for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    if (const auto* found = std::get_if<loop::Stage>(&stmt.form)) stage = found, ++stages;
    else
      num_other_statements +=
          !std::holds_alternative<loop::For>(stmt.form) && !std::holds_alternative<loop::Store>(stmt.form);
  });
  if (stages != 1 || num_other_statements > 0 || !stage->init.empty() || stage->body.size() != 1) return nullptr;
  const auto* store = std::get_if<loop::Store>(&stage->body[0].form);
  if (!store || store->indices.size() != stage->axes.size()) return nullptr;
  for (const loop::Axis& axis : stage->axes) {
    const auto is_axis = [&](Dim index) { return index.variable() == axis.var; };
    if (axis.kind != loop::AxisKind::kSpatial || std::ranges::count_if(store->indices, is_axis) != 1) return nullptr;
  }
  return store;
}

// Whether all buffers and statements are supported.
bool can_inline(const loop::Function& function) {
  bool is_supported = function.intrinsics.empty() && function.tables.empty();
  for (const loop::Buffer& buffer : function.buffers) is_supported &= loop::packed_axes(buffer) == 0;
  for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    is_supported &= !std::holds_alternative<loop::CallLibrary>(stmt.form);
  });
  return is_supported;
}

}  // namespace

Expected<std::vector<LazyTensor>> inline_user_defined(Emitter& emit, const loop::Function& function,
                                                      const std::vector<LazyTensor>& args) {
  Context& context = emit.context();
  const std::string name(context.name(function.name));
  if (!can_inline(function))
    return error(
        fmt::format("@{} cannot be inlined into a kernel: it has ragged buffers, intrinsics or library calls", name));
  const auto bindings = dims_of(context, function, args);
  if (!bindings) return error(fmt::format("the sizes of the arguments of @{} do not determine its dims", name));
  std::map<BufferId, size_t> params;
  for (size_t i = 0; i < args.size(); ++i) params[function.params[i]] = i;

  auto inlined = std::make_shared<const loop::Function>(loop::without_inlined(context, function));
  const loop::Store* store = elementwise_store(*inlined);
  if (store && function.results.size() == 1) {
    const loop::Buffer& result = inlined->buffer(store->buffer);
    return std::vector{emit.expression(extents(context, result, *bindings), result.dtype,
                                       [&emit, inlined, store, params, args, bindings = *bindings](const Dims& at) {
                                         Bindings with_indices = bindings;
                                         for (size_t i = 0; i < at.size(); ++i)
                                           with_indices[*store->indices[i].variable()] = at[i];
                                         Copier copier(emit, *inlined, [&](BufferId buffer, const Dims& from) {
                                           return args[params.at(buffer)].at(from);
                                         });
                                         return copier.expression(store->value, with_indices);
                                       })};
  }

  if (loop::has_schedule(function)) return error(fmt::format("@{} has a schedule of its own", name));
  std::map<BufferId, BufferId> buffers;
  for (const auto& [param, i] : params) buffers[param] = *emit.stored(name, args[i]).buffer;
  std::vector<std::pair<Dims, DType>> results;
  for (const BufferId result : function.results) {
    const loop::Buffer& buffer = function.buffer(result);
    results.emplace_back(extents(context, buffer, *bindings), buffer.dtype);
  }
  return emit.nest(name, results, [&](std::span<const BufferId> result_buffers) {
    for (size_t i = 0; i < result_buffers.size(); ++i) buffers[function.results[i]] = result_buffers[i];
    return copy_body(emit, function, *bindings, std::move(buffers));
  });
}

loop::Body inline_text(Emitter& emit, std::string_view text, const Dims& dims, const std::vector<BufferId>& buffers) {
  const auto function = loop::parse(emit.context(), text, "kernel");
  assert(function && function->dims.size() == dims.size());
  Bindings bindings;
  for (size_t i = 0; i < dims.size(); ++i) bindings[function->dims[i]] = dims[i];
  std::vector<BufferId> declared = function->params;
  declared.insert(declared.end(), function->results.begin(), function->results.end());
  assert(declared.size() == buffers.size());
  std::map<BufferId, BufferId> replacements;
  for (size_t i = 0; i < buffers.size(); ++i) replacements[declared[i]] = buffers[i];
  return copy_body(emit, *function, bindings, std::move(replacements));
}

}  // namespace tenon::compiler::kernels
