// The printer of loop functions.
#include <fmt/format.h>

#include <cmath>

#include "compiler/loop/expr.h"
#include "compiler/loop/text.h"

namespace tenon::compiler::loop {
namespace {

class Printer {
 public:
  Printer(const TypeContext& context, const Function& function) : context_(context), function_(function) {}

  // `keyword`: "loop", or "intrinsic" for a declaration in another function.
  std::string function(std::string_view keyword = "loop", int depth = 0) {
    out_ = std::string(2 * static_cast<size_t>(depth), ' ') + fmt::format("{} @{}", keyword, name(function_.name));
    for (size_t i = 0; i < function_.dims.size(); ++i) {
      const auto bound = function_.bounds.find(function_.dims[i]);
      out_ += fmt::format("{}{}{}", i == 0 ? "[" : ", ", name(function_.dims[i]),
                          bound == function_.bounds.end() ? "" : " in " + str(bound->second));
    }
    out_ += fmt::format("{}{} -> {}{} {{\n", function_.dims.empty() ? "" : "]", declarations(function_.params),
                        declarations(function_.results),
                        function_.inexact > 0 ? fmt::format(" inexact {}", function_.inexact) : "");
    for (const Function& intrinsic : function_.intrinsics)
      out_ += Printer(context_, intrinsic).function("intrinsic", depth + 1);
    for (const Table& table : function_.tables)
      line(depth + 1, fmt::format("{} {}({} in {}, size {}{});", loop::name(table.kind), name(table.name),
                                  name(table.var), sizes(table.count), sizes(table.width),
                                  table.limit.node ? fmt::format(", limit {}", sizes(table.limit)) : ""));
    body(function_.body, depth + 1);
    line(depth, "}");
    return out_;
  }

  std::string expression(const Expr& expr, int around = 0) const {
    return std::visit([&](const auto& form) { return text(*expr, form, around); }, expr->form);
  }

 private:
  std::string_view name(Symbol symbol) const { return context_.name(symbol); }
  std::string local(BufferId buffer) const { return fmt::format("%{}", name(function_.buffer(buffer).name)); }
  std::string sizes(Dim dim) const { return fmt::format("({})", context_.str(dim)); }

  std::string type(const Buffer& buffer) const {
    std::string text = "Tensor[(";
    for (size_t i = 0; i < buffer.rank(); ++i) {
      if (i > 0) text += ", ";
      bool named = false;
      for (size_t after = i + 1; after < buffer.rank(); ++after)
        for_each_variable(buffer.axes[after].extent, [&](Symbol var) { named |= var == buffer.axes[i].var; });
      if (named) text += fmt::format("{}: ", name(buffer.axes[i].var));
      text += context_.str(buffer.axes[i].extent);
    }
    return text + fmt::format("{}), {}]", buffer.rank() == 1 ? "," : "", runtime::name(buffer.dtype));
  }
  std::string declaration(BufferId id) const { return fmt::format("{}: {}", local(id), type(function_.buffer(id))); }
  std::string declarations(const std::vector<BufferId>& buffers) const {
    std::string text = "(";
    for (size_t i = 0; i < buffers.size(); ++i) text += (i == 0 ? "" : ", ") + declaration(buffers[i]);
    return text + ")";
  }
  std::string element(BufferId buffer, const Dims& indices) const {
    std::string text = local(buffer) + "[";
    for (size_t i = 0; i < indices.size(); ++i) text += (i == 0 ? "" : ", ") + context_.str(indices[i]);
    return text + "]";
  }

  // --- Expressions ---

  std::string text(const ExprNode& node, const Literal& form, int) const {
    if (node.dtype == DType::kU64) return fmt::format("u64({})", static_cast<uint64_t>(form.integer));
    if (!is_float(node.dtype)) return fmt::format("{}({})", runtime::name(node.dtype), form.integer);
    if (std::isnan(form.real)) return fmt::format("{}(nan)", runtime::name(node.dtype));
    if (std::isinf(form.real)) return fmt::format("{}({}inf)", runtime::name(node.dtype), form.real < 0 ? "-" : "");
    if (node.dtype == DType::kF32) return fmt::format("f32({})", static_cast<float>(form.real));
    return fmt::format("{}({})", runtime::name(node.dtype), form.real);
  }
  std::string text(const ExprNode&, const IndexValue& form, int) const { return "index" + sizes(form.value); }
  std::string text(const ExprNode&, const Load& form, int) const { return element(form.buffer, form.indices); }
  std::string text(const ExprNode&, const Unary& form, int) const {
    return fmt::format("{}({})", loop::name(form.op), expression(form.value));
  }
  std::string text(const ExprNode&, const Binary& form, int around) const {
    const int binding = precedence(form.op);
    if (binding == 0)
      return fmt::format("{}({}, {})", loop::name(form.op), expression(form.left), expression(form.right));
    // Operators are left-associative: an equal one on the right needs parentheses; comparisons do not chain at all.
    const int left = binding == precedence(BinaryOp::kLess) ? binding + 1 : binding;
    const std::string text =
        fmt::format("{} {} {}", expression(form.left, left), loop::name(form.op), expression(form.right, binding + 1));
    return binding < around ? "(" + text + ")" : text;
  }
  std::string text(const ExprNode&, const Select& form, int) const {
    return fmt::format("select({}, {}, {})", expression(form.condition), expression(form.then),
                       expression(form.otherwise));
  }
  std::string text(const ExprNode& node, const Convert& form, int) const {
    return fmt::format("{}({})", runtime::name(node.dtype), expression(form.value));
  }
  std::string text(const ExprNode&, const LetIndex& form, int) const {
    return fmt::format("(let {} in {} = {}; {})", name(form.var), sizes(form.extent), expression(form.value),
                       expression(form.body));
  }

  // --- Statements ---

  void line(int depth, std::string_view text) {
    out_ += std::string(2 * static_cast<size_t>(depth), ' ').append(text) + "\n";
  }
  void body(const Body& statements, int depth) {
    for (const Stmt& stmt : statements) std::visit([&](const auto& form) { statement(form, depth); }, stmt.form);
  }
  void braces(std::string_view head, const Body& statements, int depth) {
    line(depth, fmt::format("{} {{", head));
    body(statements, depth + 1);
    line(depth, "}");
  }
  static std::string_view kind(AxisKind kind) {
    switch (kind) {
      case AxisKind::kSpatial: return "";
      case AxisKind::kReduce: return "reduce ";
      case AxisKind::kScan: return "scan ";
      case AxisKind::kGiven: return "given ";
    }
    return "";
  }
  void statement(const For& loop, int depth) {
    const std::string kind = loop.kind == LoopKind::kSerial ? "" : fmt::format(" {}", loop::name(loop.kind));
    braces(fmt::format("for {} in {}{}", name(loop.var), sizes(loop.extent), kind), loop.body, depth);
  }
  void statement(const Stage& stage, int depth) {
    std::string head = fmt::format("stage {}(", name(stage.name));
    for (size_t i = 0; i < stage.axes.size(); ++i) {
      const Axis& axis = stage.axes[i];
      head += fmt::format("{}{}{} in {} at {}", i == 0 ? "" : ", ", kind(axis.kind), name(axis.var), sizes(axis.extent),
                          sizes(axis.value));
    }
    head += stage.async ? ") async" : ")";
    for (const Guard& guard : stage.where)
      head += fmt::format(" where {} below {}", sizes(guard.left), sizes(guard.right));
    line(depth, head + " {");
    if (!stage.init.empty()) braces("init", stage.init, depth + 1);
    body(stage.body, depth + 1);
    line(depth, "}");
  }
  void statement(const Store& store, int depth) {
    line(depth, fmt::format("{} = {};", element(store.buffer, store.indices), expression(store.value)));
  }
  void statement(const If& branch, int depth) {
    line(depth, fmt::format("if ({}) {{", expression(branch.condition)));
    body(branch.then, depth + 1);
    if (!branch.otherwise.empty()) {
      line(depth, "} else {");
      body(branch.otherwise, depth + 1);
    }
    line(depth, "}");
  }
  void statement(const Let& let, int depth) {
    braces(fmt::format("let {} in {} = {}", name(let.var), sizes(let.extent), expression(let.value)), let.body, depth);
  }
  void statement(const Alloc& alloc, int depth) {
    const std::string scope = alloc.scope == Scope::kHeap ? "" : fmt::format(" in {}", loop::name(alloc.scope));
    std::string swizzles;
    for (const auto& [axis, by, divisor] : function_.buffer(alloc.buffer).swizzles)
      swizzles += fmt::format(" swizzle({}, {}, {})", axis, by, divisor);
    braces(fmt::format("alloc {}{}{}", declaration(alloc.buffer), scope, swizzles), alloc.body, depth);
  }
  void statement(const Barrier&, int depth) { line(depth, "barrier;"); }
  void statement(const Commit&, int depth) { line(depth, "commit;"); }
  void statement(const Wait& wait, int depth) { line(depth, fmt::format("wait({});", wait.groups)); }
  void statement(const CallLibrary& call, int depth) {
    auto list = [&](const std::vector<BufferId>& buffers) {
      std::string text = "(";
      for (size_t i = 0; i < buffers.size(); ++i) text += (i == 0 ? "" : ", ") + local(buffers[i]);
      return text + ")";
    };
    line(depth, fmt::format("call {}{} -> {};", name(call.symbol), list(call.inputs), list(call.outputs)));
  }

  void statement(const Intrinsic& call, int depth) {
    auto list = [&](const std::vector<Operand>& operands) {
      std::string text = "(";
      for (size_t i = 0; i < operands.size(); ++i) {
        text += (i == 0 ? "" : ", ") + local(operands[i].buffer) + "[";
        for (const Part& part : operands[i].parts) {
          text += (&part == operands[i].parts.data() ? "" : ", ") + context_.str(part.begin);
          if (part.size > 0) text += fmt::format(" : {}", part.size);
        }
        text += "]";
      }
      return text + ")";
    };
    line(depth, fmt::format("intrinsic {}{} -> {}{};", name(call.name), list(call.inputs), list(call.outputs),
                            call.inexact ? " inexact" : ""));
  }

  const TypeContext& context_;
  const Function& function_;
  std::string out_;
};

}  // namespace

std::string print(const TypeContext& context, const Function& function) {
  return Printer(context, function).function();
}
std::string print(const TypeContext& context, const Function& function, const Expr& expr) {
  return Printer(context, function).expression(expr);
}

}  // namespace tenon::compiler::loop
