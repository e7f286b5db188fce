#include "compiler/kernels/written.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/pattern.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

using Env = std::map<Symbol, Dim>;
// What stands for an element of one of the function's buffers.
using Load = std::function<Expr(BufferId buffer, Dims at)>;

// The function's dims, from the sizes of the arguments.
std::optional<Env> dims_of(Context& context, const loop::Function& function, const std::vector<Value>& args) {
  Env own, solved;  // under names that no argument's size has
  for (const Symbol dim : function.dims)
    own[dim] = context.dim(context.symbol(fmt::format("callee {}", context.name(dim))));
  for (bool more = true; more && solved.size() < function.dims.size();) {
    more = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const loop::Buffer& param = function.buffer(function.params[i]);
      for (size_t axis = 0; axis < param.rank(); ++axis) {
        const Dim extent = context.substitute(context.substitute(param.axes[axis].extent, own), solved);
        for (const auto& [dim, value] : own) {
          const Symbol unknown = *value.variable();
          const auto parts = solved.contains(unknown) ? std::nullopt : context.linear_in(unknown, extent);
          if (!parts || parts->first.constant().value_or(0) == 0) continue;
          const auto found = context.divide(context.subtract(args[i].dims[axis], parts->second), parts->first);
          bool decided = found.has_value();
          if (found) {
            for_each_variable(*found, [&](Symbol var) {
              decided &= std::ranges::none_of(own, [&](const auto& one) { return *one.second.variable() == var; });
            });
          }
          if (!decided) continue;
          solved[unknown] = *found;
          more = true;
          break;
        }
      }
    }
  }
  if (solved.size() < function.dims.size()) return std::nullopt;
  for (auto& [dim, value] : own) value = solved.at(*value.variable());
  return own;
}

Dims extents(Context& context, const loop::Buffer& buffer, const Env& env) {
  Dims dims;
  for (const loop::BufferAxis& axis : buffer.axes) dims.push_back(context.substitute(axis.extent, env));
  return dims;
}

// Copies with other buffers, sizes and names: loops of the function and of those around it must not be confused.
class Copier {
 public:
  Copier(Emitter& emit, const loop::Function& function, Load load)
      : emit_(emit), context_(emit.context()), function_(function), load_(std::move(load)) {}

  std::map<BufferId, BufferId>& buffers() { return buffers_; }

  Expr expression(const Expr& expr, const Env& env) {
    return std::visit([&](const auto& form) { return this->form(*expr, form, env); }, expr->form);
  }
  // `dims`: the function's, which a stage sees beside its axes.
  loop::Body body(const loop::Body& body, const Env& env, const Env& dims) {
    loop::Body copy;
    for (const loop::Stmt& stmt : body)
      copy.push_back(std::visit([&](const auto& form) { return loop::Stmt{statement(form, env, dims)}; }, stmt.form));
    return copy;
  }

 private:
  Dim dim(Dim dim, const Env& env) { return context_.substitute(dim, env); }
  Dims dims(const Dims& dims, const Env& env) {
    Dims all;
    for (const Dim one : dims) all.push_back(dim(one, env));
    return all;
  }
  Env with(Env env, Symbol var, Symbol own) {
    env[var] = context_.dim(own);
    return env;
  }

  Expr form(const loop::ExprNode& node, const loop::Literal&, const Env&) {
    return std::make_shared<const loop::ExprNode>(node);
  }
  Expr form(const loop::ExprNode&, const loop::IndexValue& form, const Env& env) {
    return loop::index_value(dim(form.value, env));
  }
  Expr form(const loop::ExprNode&, const loop::Load& form, const Env& env) {
    return load_(form.buffer, dims(form.indices, env));
  }
  Expr form(const loop::ExprNode&, const loop::Unary& form, const Env& env) {
    return loop::unary(form.op, expression(form.value, env));
  }
  Expr form(const loop::ExprNode&, const loop::Binary& form, const Env& env) {
    return loop::binary(form.op, expression(form.left, env), expression(form.right, env));
  }
  Expr form(const loop::ExprNode&, const loop::Select& form, const Env& env) {
    return loop::select(expression(form.condition, env), expression(form.then, env), expression(form.otherwise, env));
  }
  Expr form(const loop::ExprNode& node, const loop::Convert& form, const Env& env) {
    return loop::convert(node.dtype, expression(form.value, env));
  }
  Expr form(const loop::ExprNode&, const loop::LetIndex& form, const Env& env) {
    const Symbol own = emit_.fresh_index();
    return loop::let_index(own, dim(form.extent, env), expression(form.value, env),
                           expression(form.body, with(env, form.var, own)));
  }

  loop::For statement(const loop::For& loop, const Env& env, const Env& outer) {
    const Symbol own = emit_.fresh_index();
    return {own, dim(loop.extent, env), loop.mark, body(loop.body, with(env, loop.var, own), outer)};
  }
  loop::Stage statement(const loop::Stage& stage, const Env& env, const Env& outer) {
    loop::Stage copy;
    copy.name = emit_.builder().stage_name(context_.name(stage.name));
    Env axes = outer;
    for (const loop::Axis& axis : stage.axes) {
      const Symbol own = emit_.fresh_index();
      copy.axes.push_back({own, dim(axis.extent, axes), axis.kind, dim(axis.value, env)});
      axes[axis.var] = context_.dim(own);
    }
    for (const loop::Guard& guard : stage.where) copy.where.push_back({dim(guard.left, env), dim(guard.right, env)});
    copy.init = body(stage.init, axes, outer);
    copy.body = body(stage.body, axes, outer);
    return copy;
  }
  loop::Store statement(const loop::Store& store, const Env& env, const Env&) {
    return {buffers_.at(store.buffer), dims(store.indices, env), expression(store.value, env)};
  }
  loop::If statement(const loop::If& branch, const Env& env, const Env& outer) {
    return {expression(branch.condition, env), body(branch.then, env, outer), body(branch.otherwise, env, outer)};
  }
  loop::Let statement(const loop::Let& let, const Env& env, const Env& outer) {
    const Symbol own = emit_.fresh_index();
    return {own, dim(let.extent, env), expression(let.value, env), body(let.body, with(env, let.var, own), outer)};
  }
  loop::Alloc statement(const loop::Alloc& alloc, const Env& env, const Env& outer) {
    const loop::Buffer& buffer = function_.buffer(alloc.buffer);
    buffers_[alloc.buffer] = emit_.local(context_.name(buffer.name), extents(context_, buffer, env), buffer.dtype);
    return {buffers_.at(alloc.buffer), alloc.scope, body(alloc.body, env, outer)};
  }
  // plain() has none.
  loop::CallLibrary statement(const loop::CallLibrary& call, const Env&, const Env&) { return call; }
  loop::Intrinsic statement(const loop::Intrinsic& call, const Env&, const Env&) { return call; }

  Emitter& emit_;
  Context& context_;
  const loop::Function& function_;
  const Load load_;
  std::map<BufferId, BufferId> buffers_;  // of the kernel, for those of the function
};

// The one statement of the one stage, where its axes are the indices of the result.
const loop::Store* pointwise(const loop::Function& function) {
  const loop::Stage* stage = nullptr;
  size_t stages = 0, others = 0;
  for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    if (const auto* one = std::get_if<loop::Stage>(&stmt.form)) stage = one, ++stages;
    else others += !std::holds_alternative<loop::For>(stmt.form) && !std::holds_alternative<loop::Store>(stmt.form);
  });
  if (stages != 1 || others > 0 || !stage->init.empty() || stage->body.size() != 1) return nullptr;
  const auto* store = std::get_if<loop::Store>(&stage->body[0].form);
  if (!store || store->indices.size() != stage->axes.size()) return nullptr;
  for (const loop::Axis& axis : stage->axes) {
    const auto is_axis = [&](Dim index) { return index.variable() == axis.var; };
    if (axis.kind != loop::AxisKind::kSpatial || std::ranges::count_if(store->indices, is_axis) != 1) return nullptr;
  }
  return store;
}

bool plain(const loop::Function& function) {
  bool good = function.intrinsics.empty();
  for (const loop::Buffer& buffer : function.buffers) good &= loop::packed_axes(buffer) == 0;
  for_each_statement(function.body,
                     [&](const loop::Stmt& stmt) { good &= !std::holds_alternative<loop::CallLibrary>(stmt.form); });
  return good;
}

}  // namespace

Expected<std::vector<Value>> written_in(Emitter& emit, const loop::Function& function, const std::vector<Value>& args) {
  Context& context = emit.context();
  const std::string name(context.name(function.name));
  if (!plain(function)) return error(fmt::format("@{} cannot be part of a kernel", name));
  const auto env = dims_of(context, function, args);
  if (!env) return error(fmt::format("the arguments of @{} do not decide its dims", name));
  std::map<BufferId, size_t> params;
  for (size_t i = 0; i < args.size(); ++i) params[function.params[i]] = i;

  auto inlined = std::make_shared<const loop::Function>(loop::without_inlined(context, function));
  const loop::Store* store = pointwise(*inlined);
  if (store && function.results.size() == 1) {
    const loop::Buffer& result = inlined->buffer(store->buffer);
    return std::vector{emit.expression(extents(context, result, *env), result.dtype,
                                       [&emit, inlined, store, params, args, env = *env](const Dims& at) {
                                         Env here = env;
                                         for (size_t i = 0; i < at.size(); ++i)
                                           here[*store->indices[i].variable()] = at[i];
                                         Copier copier(emit, *inlined, [&](BufferId buffer, const Dims& from) {
                                           return args[params.at(buffer)].at(from);
                                         });
                                         return copier.expression(store->value, here);
                                       })};
  }

  if (loop::has_schedule(function)) return error(fmt::format("@{} has a schedule of its own", name));
  std::map<BufferId, BufferId> buffers;
  for (const auto& [param, i] : params) buffers[param] = *emit.stored(name, args[i]).buffer;
  std::vector<std::pair<Dims, DType>> results;
  for (const BufferId result : function.results) {
    const loop::Buffer& buffer = function.buffer(result);
    results.emplace_back(extents(context, buffer, *env), buffer.dtype);
  }
  return emit.nest(name, results, [&](std::span<const BufferId> made) {
    Copier* self = nullptr;
    Copier copier(emit, function, [&](BufferId buffer, Dims from) {
      return emit.builder().load(self->buffers().at(buffer), std::move(from));
    });
    self = &copier;
    copier.buffers() = buffers;
    for (size_t i = 0; i < made.size(); ++i) copier.buffers()[function.results[i]] = made[i];
    return copier.body(function.body, *env, *env);
  });
}

}  // namespace tenon::compiler::kernels
