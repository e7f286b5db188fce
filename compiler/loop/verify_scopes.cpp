// The verifier of buffers on the stack and in registers.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/loop/access.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

class ScopeVerifier {
 public:
  ScopeVerifier(TypeContext& context, const Function& function) : context_(context), function_(function) {}

  Status run() { return statements(function_.body); }

 private:
  std::unexpected<Diagnostic> fail(std::string finding, std::string help = {}) const {
    return error(std::move(finding), fmt::format("@{}", context_.name(function_.name)), std::move(help));
  }

  Status statements(const Body& body) {
    for (const Stmt& stmt : body) TENON_TRY(statement(stmt));
    return {};
  }
  Status statement(const Stmt& stmt) {
    if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) return check(*alloc);
    if (const auto* stage = std::get_if<Stage>(&stmt.form)) return check(*stage);
    const auto* loop = std::get_if<For>(&stmt.form);
    if (loop) loops_[loop->var] = {loop->kind, ++depth_};
    Status status;
    for_each_body(stmt, [&](const Body& body) {
      if (status) status = statements(body);
    });
    if (loop) loops_.erase(loop->var), --depth_;
    return status;
  }
  Status check(const Alloc& alloc) {
    if (alloc.scope == Scope::kHeap) return statements(alloc.body);
    const Buffer& buffer = function_.buffer(alloc.buffer);
    const bool registers = alloc.scope == Scope::kRegisters;
    const int64_t most = registers ? kMaxRegisters : kMaxStack;
    const std::string_view where = registers ? "in registers" : "on the stack";
    int64_t elements = 1;
    for (const BufferAxis& axis : buffer.axes) {
      const auto size = axis.extent.constant();
      if (!size)
        return fail(fmt::format("%{} is {}, but its size {} is not a constant", context_.name(buffer.name), where,
                                context_.str(axis.extent)));
      if (__builtin_mul_overflow(elements, std::max<int64_t>(*size, 0), &elements) || elements > most)
        return fail(fmt::format("%{} is {}, but has more than {} elements", context_.name(buffer.name), where, most));
    }
    if (registers) registers_[alloc.buffer] = depth_;
    TENON_TRY(statements(alloc.body));
    registers_.erase(alloc.buffer);
    return {};
  }
  Status check(const Stage& stage) {
    std::map<Symbol, Dim> values;
    for (const Axis& axis : stage.axes) values[axis.var] = axis.value;
    Status status;
    for_each_access(stage, [&](const Access& access) {
      if (!registers_.contains(access.buffer)) return;
      for (Dim index : access.indices) {
        const Dim over_loops = context_.substitute(index, values);
        for_each_variable(over_loops, [&](Symbol var) {
          const auto loop = loops_.find(var);
          const bool expanded =
              loop != loops_.end() && loop->second.depth > registers_.at(access.buffer) &&
              (loop->second.kind == LoopKind::kUnrolled || loop->second.kind == LoopKind::kVectorized);
          if (!expanded)
            status = fail(
                fmt::format(
                    "%{} is in registers, but its index {} is not a constant: '{}' is neither unrolled nor vectorized",
                    context_.name(function_.buffer(access.buffer).name), context_.str(over_loops), context_.name(var)),
                "unroll or vectorize the loop, or place the buffer on the stack");
        });
      }
    });
    return status;
  }

  struct Loop {
    LoopKind kind{};
    size_t depth = 0;
  };

  TypeContext& context_;
  const Function& function_;
  std::map<Symbol, Loop> loops_;
  size_t depth_ = 0;
  std::map<BufferId, size_t> registers_;  // with the number of loops around each
};

}  // namespace

Status verify_scopes(TypeContext& context, const Function& function) { return ScopeVerifier(context, function).run(); }

}  // namespace tenon::compiler::loop
