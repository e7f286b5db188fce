// The parser of loop functions: statements and whole functions.
#include <span>
#include <utility>

#include "compiler/loop/expr_reader.h"
#include "compiler/loop/text.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

#include <fmt/format.h>

#include <charconv>

namespace tenon::compiler::loop {
namespace {

constexpr int64_t kMaxGroups = 1 << 20;

class Reader : public ExprReader {
 public:
  using ExprReader::ExprReader;

  // A whole function, starting at its name, verified.
  Expected<Function> verified() {
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(function, this->function(true));
    Symbol stage{};
    const Status status = verify(context_, *function, &stage);
    if (status) return function;
    const auto found = stages_.find(stage);
    return cursor_.error_at(found == stages_.end() ? offset : found->second, status.error().what, status.error().help);
  }

  // The function, starting at its name. `declares`: it may declare instructions, unlike an instruction itself.
  Expected<Function> function(bool declares) {
    TENON_TRY_ASSIGN(name, cursor_.take(Tok::kGlobal, "the function's name, as @name"));
    function_.name = context_.symbol(*name);
    TENON_TRY(types_.variables(scope_));
    scope_.dims = std::exchange(scope_.unclassified, {});  // loop functions have no type variables
    function_.dims = scope_.dims;
    function_.bounds = scope_.bounds;
    TENON_TRY(declarations(function_.params));
    for (BufferId param : function_.params) scope_.functions.push_back(function_.buffer(param).name);
    TENON_TRY(cursor_.expect("->"));
    TENON_TRY(declarations(function_.results));
    if (cursor_.accept_name("inexact")) TENON_TRY(bound());
    TENON_TRY(cursor_.expect("{"));
    while (declares && cursor_.is_name("intrinsic") && cursor_.peek(1).kind == Tok::kGlobal) {
      cursor_.skip();
      TENON_TRY_ASSIGN(intrinsic, Reader(context_, cursor_).function(false));
      function_.intrinsics.push_back(std::move(*intrinsic));
    }
    while (true) {
      const auto kind = std::ranges::find_if(kTableKindNames, [&](std::string_view kind) {
        return cursor_.is_name(kind) && cursor_.peek(1).kind == Tok::kName;
      });
      if (kind == std::end(kTableKindNames)) break;
      cursor_.skip();
      TENON_TRY(table(static_cast<Table::Kind>(kind - std::begin(kTableKindNames))));
    }
    TENON_TRY_ASSIGN(statements, statements_to_brace(0));
    function_.body = std::move(*statements);
    return std::move(function_);
  }

 private:
  // Of the relative error of an instruction.
  Status bound() {
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(digits, cursor_.take(Tok::kFloat, "a relative error, as 3.8e-06"));
    const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), function_.inexact);
    if (read.ec != std::errc{} || !(function_.inexact > 0 && function_.inexact < 1))
      return cursor_.error_at(offset, "a relative error must be above 0 and below 1");
    return {};
  }
  // offsets begin(b in (n), size (lengths(b))); or counts active(b in (n), size (lengths(b)), limit (t));
  Status table(Table::Kind kind) {
    Table table{.kind = kind, .name = {}, .var = {}, .count = {}, .width = {}};
    TENON_TRY_ASSIGN(name, cursor_.take(Tok::kName, "the table's name"));
    TENON_TRY(cursor_.expect("("));
    TENON_TRY_ASSIGN(var, cursor_.take(Tok::kName, "the name of a row"));
    TENON_TRY(keyword("in"));
    table.name = context_.symbol(*name), table.var = context_.symbol(*var);
    TENON_TRY_ASSIGN(count, sizes());
    table.count = *count;
    TENON_TRY(cursor_.expect(","));
    TENON_TRY(keyword("size"));
    scope_.dims.push_back(table.var);
    TENON_TRY_ASSIGN(width, sizes());
    scope_.dims.pop_back();
    table.width = *width;
    if (const bool has_limit = cursor_.accept(","); has_limit || kind == Table::Kind::kCounts) {
      if (!has_limit) TENON_TRY(cursor_.expect(","));
      TENON_TRY(keyword("limit"));
      TENON_TRY_ASSIGN(limit, sizes());
      table.limit = *limit;
    }
    TENON_TRY(cursor_.expect(")"));
    TENON_TRY(cursor_.expect(";"));
    scope_.functions.push_back(table.name);
    function_.tables.push_back(table);
    return {};
  }
  Expected<Body> body(int depth) {
    if (depth > kMaxNesting) return cursor_.fail("nested too deeply");
    TENON_TRY(cursor_.expect("{"));
    return statements_to_brace(depth);
  }
  Expected<Body> statements_to_brace(int depth) {
    Body statements;
    while (!cursor_.accept("}")) {
      TENON_TRY_ASSIGN(next, statement(depth));
      statements.push_back(std::move(*next));
    }
    return statements;
  }
  Expected<Stmt> statement(int depth) {
    if (cursor_.accept_name("for")) return loop(depth);
    if (cursor_.accept_name("stage")) return stage(depth);
    if (cursor_.accept_name("if")) return branch(depth);
    if (cursor_.accept_name("call")) return library();
    if (cursor_.accept_name("intrinsic")) return intrinsic();
    if (cursor_.accept_name("barrier")) {
      TENON_TRY(cursor_.expect(";"));
      return Stmt{Barrier{}};
    }
    if (cursor_.accept_name("commit")) {
      TENON_TRY(cursor_.expect(";"));
      return Stmt{Commit{}};
    }
    if (cursor_.accept_name("wait")) return wait();
    if (cursor_.accept_name("let")) {
      TENON_TRY_ASSIGN(let, bound_index(depth));
      scope_.dims.push_back(let->var);
      TENON_TRY_ASSIGN(inner, body(depth + 1));
      scope_.dims.pop_back();
      let->body = std::move(*inner);
      return Stmt{std::move(*let)};
    }
    if (cursor_.accept_name("alloc")) {
      Alloc alloc;
      TENON_TRY_ASSIGN(id, declaration());
      alloc.buffer = *id;
      if (cursor_.accept_name("in")) {
        bool is_known = false;
        for (const Scope scope : {Scope::kStack, Scope::kRegisters, Scope::kShared}) {
          if (!is_known && cursor_.accept_name(loop::name(scope))) alloc.scope = scope, is_known = true;
        }
        if (!is_known) return cursor_.fail("expected 'stack', 'registers' or 'shared'");
      }
      while (cursor_.accept_name("swizzle")) {
        TENON_TRY_ASSIGN(swizzle, this->swizzle());
        function_.buffers[index(*id)].swizzles.push_back(*swizzle);
      }
      TENON_TRY_ASSIGN(inner, body(depth + 1));
      alloc.body = std::move(*inner);
      buffers_.erase(std::string(context_.name(function_.buffer(*id).name)));
      return Stmt{std::move(alloc)};
    }
    const size_t offset = cursor_.offset();
    if (cursor_.peek().kind != Tok::kLocal)
      return cursor_.fail("expected a statement",
                          "for, stage, if, let, alloc, call, intrinsic, barrier, commit, wait, or %a[i] = x;");
    TENON_TRY_ASSIGN(id, buffer());
    TENON_TRY_ASSIGN(at_indices, indices(*id, offset));
    TENON_TRY(cursor_.expect("="));
    TENON_TRY_ASSIGN(value, expression(depth));
    if ((*value)->dtype != function_.buffer(*id).dtype)
      return cursor_.error_at(offset,
                              fmt::format("the buffer has elements of {}, the value is {}",
                                          runtime::name(function_.buffer(*id).dtype), runtime::name((*value)->dtype)));
    TENON_TRY(cursor_.expect(";"));
    return Stmt{Store{*id, std::move(*at_indices), *value}};
  }
  Expected<Swizzle> swizzle() {
    int64_t values[3] = {};
    for (size_t i = 0; i < std::size(values); ++i) {
      TENON_TRY(cursor_.expect(i == 0 ? "(" : ","));
      TENON_TRY_ASSIGN(digits, cursor_.take(Tok::kInteger, "an axis, another one and a divisor"));
      const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), values[i]);
      if (read.ec != std::errc{}) return cursor_.fail(fmt::format("{} is too large", *digits));
    }
    TENON_TRY(cursor_.expect(")"));
    return Swizzle{static_cast<size_t>(values[0]), static_cast<size_t>(values[1]), values[2]};
  }
  Expected<Stmt> wait() {
    Wait wait;
    TENON_TRY(cursor_.expect("("));
    TENON_TRY_ASSIGN(digits, cursor_.take(Tok::kInteger, "a number of groups"));
    const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), wait.groups);
    if (read.ec != std::errc{} || wait.groups > kMaxGroups)
      return cursor_.fail(fmt::format("a number of groups must be at most {}", kMaxGroups));
    TENON_TRY(cursor_.expect(")"));
    TENON_TRY(cursor_.expect(";"));
    return Stmt{wait};
  }
  Expected<Stmt> loop(int depth) {
    For loop;
    TENON_TRY_ASSIGN(var, variable());
    loop.var = *var;
    TENON_TRY(keyword("in"));
    TENON_TRY_ASSIGN(extent, sizes());
    loop.extent = *extent;
    for (const std::string_view kind : std::span(kLoopKindNames).subspan(1)) {
      if (!cursor_.accept_name(kind)) continue;
      loop.kind = *find_loop_kind(kind);
      break;
    }
    scope_.dims.push_back(loop.var);
    TENON_TRY_ASSIGN(inner, body(depth + 1));
    scope_.dims.pop_back();
    loop.body = std::move(*inner);
    return Stmt{std::move(loop)};
  }
  Expected<Stmt> stage(int depth) {
    Stage stage;
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(name, variable());
    stage.name = *name;
    stages_.emplace(stage.name, offset);
    TENON_TRY(cursor_.expect("("));
    std::vector<Symbol> axes;
    TENON_TRY(cursor_.list(")", [&]() -> Status {
      Axis axis;
      if (cursor_.accept_name("reduce")) axis.kind = AxisKind::kReduce;
      else if (cursor_.accept_name("scan")) axis.kind = AxisKind::kScan;
      else if (cursor_.accept_name("given")) axis.kind = AxisKind::kGiven;
      TENON_TRY_ASSIGN(var, variable());
      axis.var = *var;
      TENON_TRY(keyword("in"));
      // The extent is over the preceding axes, the value over the loops.
      const size_t loop_dims = scope_.dims.size();
      scope_.dims.insert(scope_.dims.end(), axes.begin(), axes.end());
      TENON_TRY_ASSIGN(extent, sizes());
      scope_.dims.resize(loop_dims);
      axis.extent = *extent;
      TENON_TRY(keyword("at"));
      TENON_TRY_ASSIGN(value, sizes());
      axis.value = *value;
      axes.push_back(axis.var);
      stage.axes.push_back(axis);
      return {};
    }));
    stage.async = cursor_.accept_name("async");
    while (cursor_.accept_name("where")) {
      Guard guard;
      TENON_TRY_ASSIGN(left, sizes());
      TENON_TRY(keyword("below"));
      TENON_TRY_ASSIGN(right, sizes());
      guard = {*left, *right};
      stage.where.push_back(guard);
    }
    // The loops are not in scope inside the stage.
    std::vector<Symbol> outside = std::exchange(scope_.dims, function_.dims);
    scope_.dims.insert(scope_.dims.end(), axes.begin(), axes.end());
    TENON_TRY(cursor_.expect("{"));
    if (cursor_.accept_name("init")) {
      TENON_TRY_ASSIGN(init, body(depth + 1));
      stage.init = std::move(*init);
    }
    while (!cursor_.accept("}")) {
      TENON_TRY_ASSIGN(next, statement(depth + 1));
      stage.body.push_back(std::move(*next));
    }
    scope_.dims = std::move(outside);
    return Stmt{std::move(stage)};
  }
  Expected<Stmt> branch(int depth) {
    If branch;
    TENON_TRY(cursor_.expect("("));
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(condition, expression(depth));
    if ((*condition)->dtype != DType::kBool)
      return cursor_.error_at(offset,
                              fmt::format("a condition must be a bool, not {}", runtime::name((*condition)->dtype)));
    branch.condition = *condition;
    TENON_TRY(cursor_.expect(")"));
    TENON_TRY_ASSIGN(then, body(depth + 1));
    branch.then = std::move(*then);
    if (cursor_.accept_name("else")) {
      TENON_TRY_ASSIGN(otherwise, body(depth + 1));
      branch.otherwise = std::move(*otherwise);
    }
    return Stmt{std::move(branch)};
  }
  // (inputs) -> (outputs); of a call. `read_operand` parses one operand.
  template <class Call>
  Status operands(Call& call, auto&& read_operand) {
    auto list = [&](auto& operands) -> Status {
      TENON_TRY(cursor_.expect("("));
      return cursor_.list(")", [&]() -> Status {
        TENON_TRY_ASSIGN(operand, read_operand());
        operands.push_back(std::move(*operand));
        return {};
      });
    };
    TENON_TRY(list(call.inputs));
    TENON_TRY(cursor_.expect("->"));
    return list(call.outputs);
  }
  Expected<Stmt> library() {
    CallLibrary call;
    TENON_TRY_ASSIGN(symbol, variable());
    std::string name(context_.name(*symbol));
    while (cursor_.accept(".")) {
      TENON_TRY_ASSIGN(part, variable());
      name += fmt::format(".{}", context_.name(*part));
    }
    call.symbol = context_.symbol(name);
    TENON_TRY(operands(call, [&] { return buffer(); }));
    TENON_TRY(cursor_.expect(";"));
    return Stmt{std::move(call)};
  }
  Expected<Stmt> intrinsic() {
    Intrinsic call;
    TENON_TRY_ASSIGN(name, variable());
    call.name = *name;
    TENON_TRY(operands(call, [&] { return block(); }));
    call.inexact = cursor_.accept_name("inexact");
    TENON_TRY(cursor_.expect(";"));
    return Stmt{std::move(call)};
  }

  std::map<Symbol, size_t> stages_;  // the offsets of their names
};

}  // namespace

Expected<Function> parse(TypeContext& context, Cursor& cursor) {
  if (!cursor.accept_name("loop")) return cursor.fail("expected 'loop'", "as loop @name(...) -> (...) { ... }");
  return Reader(context, cursor).verified();
}

Expected<Function> parse(TypeContext& context, std::string_view text, std::string_view file) {
  const Source source(text, file);
  TENON_TRY_ASSIGN(tokens, tokenize(source));
  Cursor cursor(source, std::move(*tokens));
  TENON_TRY_ASSIGN(function, parse(context, cursor));
  if (cursor.peek().kind != Tok::kEnd) return cursor.fail("expected the end after the function");
  return function;
}

}  // namespace tenon::compiler::loop
