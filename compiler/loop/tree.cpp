#include "compiler/loop/tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::loop {
namespace {

bool find_in(Body& body, Symbol stage, std::vector<Path::Step>& steps) {
  for (size_t i = 0; i < body.size(); ++i) {
    steps.push_back({&body, i});
    if (const auto* found = std::get_if<Stage>(&body[i].form); found && found->name == stage) return true;
    bool inside = false;
    for_each_body(body[i], [&](Body& inner) { inside = inside || find_in(inner, stage, steps); });
    if (inside) return true;
    steps.pop_back();
  }
  return false;
}

void for_each_direct_expr(const Stmt& stmt, FunctionRef<void(const Expr&)> visit) {
  if (const auto* store = std::get_if<Store>(&stmt.form)) visit(store->value);
  if (const auto* branch = std::get_if<If>(&stmt.form)) visit(branch->condition);
  if (const auto* let = std::get_if<Let>(&stmt.form)) visit(let->value);
}

// Visits each expression of statements, and each store.
void visit_body(Body& body, FunctionRef<void(Expr&)> expr, FunctionRef<void(Store&)> store) {
  for_each_statement(body, [&](Stmt& stmt) {
    if (auto* to = std::get_if<Store>(&stmt.form)) {
      store(*to);
      expr(to->value);
    } else if (auto* branch = std::get_if<If>(&stmt.form)) {
      expr(branch->condition);
    } else if (auto* let = std::get_if<Let>(&stmt.form)) {
      expr(let->value);
    }
  });
}

std::set<BufferId> buffers(const Stmt& stmt, bool written) {
  std::set<BufferId> found;
  auto visit_access = [&](const Access& access) {
    if (access.writes == written) found.insert(access.buffer);
  };
  const std::function<void(const Stmt&)> visit = [&](const Stmt& inner) {
    if (const auto* call = std::get_if<CallLibrary>(&inner.form)) {
      const std::vector<BufferId>& list = written ? call->outputs : call->inputs;
      found.insert(list.begin(), list.end());
    }
    for_each_direct_access(inner, visit_access);
    for_each_body(inner, [&](const Body& body) { std::ranges::for_each(body, visit); });
  };
  visit(stmt);
  return found;
}

}  // namespace

std::optional<size_t> Path::loop(Symbol var) const {
  for (size_t step = 0; step < steps.size(); ++step) {
    if (is_loop(step) && loop_at(step).var == var) return step;
  }
  return std::nullopt;
}

Expected<Path> find_stage(const TypeContext& context, Function& function, Symbol stage) {
  Path path;
  if (find_in(function.body, stage, path.steps)) return path;
  return error(fmt::format("there is no stage '{}'", context.name(stage)));
}

Expected<size_t> find_loop(const TypeContext& context, const Path& path, Symbol var) {
  if (const auto found = path.loop(var)) return *found;
  std::string loops;
  for (size_t step = 0; step < path.steps.size(); ++step) {
    if (path.is_loop(step))
      loops += fmt::format("{}{}", loops.empty() ? "" : ", ", context.name(path.loop_at(step).var));
  }
  return error(fmt::format("the stage '{}' is in no loop '{}'", context.name(path.stage().name), context.name(var)), {},
               loops.empty() ? "it is in no loop" : fmt::format("its loops are {}", loops));
}

void for_each_stage(Stmt& stmt, FunctionRef<void(Stage&)> visit) {
  if (auto* stage = std::get_if<Stage>(&stmt.form)) visit(*stage);
  for_each_body(stmt, [&](Body& body) {
    for (Stmt& inner : body) for_each_stage(inner, visit);
  });
}
void for_each_expr(Stage& stage, FunctionRef<void(Expr&)> visit) {
  visit_body(stage.init, visit, [](Store&) {});
  visit_body(stage.body, visit, [](Store&) {});
}
void for_each_store(Stage& stage, FunctionRef<void(Store&)> visit) {
  visit_body(
      stage.init, [](Expr&) {}, visit);
  visit_body(
      stage.body, [](Expr&) {}, visit);
}
std::set<BufferId> buffers_read(const Stmt& stmt) { return buffers(stmt, false); }
std::set<BufferId> buffers_written(const Stmt& stmt) { return buffers(stmt, true); }

void substitute(TypeContext& context, Function& function, Stmt& stmt, const std::map<Symbol, Dim>& values) {
  auto replace = [&](Dim& dim) { dim = context.substitute(dim, values); };
  if (auto* stage = std::get_if<Stage>(&stmt.form)) {
    for (Axis& axis : stage->axes) replace(axis.value);
    for (Guard& guard : stage->where) replace(guard.left), replace(guard.right);
    return;
  }
  if (auto* loop = std::get_if<For>(&stmt.form)) replace(loop->extent);
  if (auto* branch = std::get_if<If>(&stmt.form)) branch->condition = substitute(context, branch->condition, values);
  if (auto* let = std::get_if<Let>(&stmt.form)) {
    replace(let->extent);
    let->value = substitute(context, let->value, values);
  }
  if (auto* alloc = std::get_if<Alloc>(&stmt.form)) {
    for (BufferAxis& axis : function.buffers[index(alloc->buffer)].axes) replace(axis.extent);
  }
  for_each_body(stmt, [&](Body& body) {
    for (Stmt& inner : body) substitute(context, function, inner, values);
  });
}

namespace {

void remove_single_iterations(TypeContext& context, Function& function, Body& body) {
  Body result;
  for (Stmt& stmt : body) {
    for_each_body(stmt, [&](Body& inner) { remove_single_iterations(context, function, inner); });
    auto* loop = std::get_if<For>(&stmt.form);
    const bool is_plain = loop && (loop->kind == LoopKind::kSerial || loop->kind == LoopKind::kParallel ||
                                   loop->kind == LoopKind::kUnrolled);
    if (!is_plain || loop->extent.constant() != 1) {
      result.push_back(std::move(stmt));
      continue;
    }
    for (Stmt& inner : loop->body) {
      substitute(context, function, inner, {{loop->var, context.dim(0)}});
      result.push_back(std::move(inner));
    }
  }
  body = std::move(result);
}

}  // namespace

void remove_single_iterations(TypeContext& context, Function& function) {
  Body body = std::move(function.body);
  remove_single_iterations(context, function, body);
  function.body = std::move(body);
}

void substitute_axes(TypeContext& context, Stage& stage, const std::map<Symbol, Dim>& values) {
  auto replace = [&](Dim& dim) { dim = context.substitute(dim, values); };
  auto visit = [&](Stmt& stmt) {
    if (auto* store = std::get_if<Store>(&stmt.form)) {
      std::ranges::for_each(store->indices, replace);
      store->value = substitute(context, store->value, values);
    } else if (auto* branch = std::get_if<If>(&stmt.form)) {
      branch->condition = substitute(context, branch->condition, values);
    } else if (auto* let = std::get_if<Let>(&stmt.form)) {
      replace(let->extent);
      let->value = substitute(context, let->value, values);
    } else if (auto* intrinsic = std::get_if<Intrinsic>(&stmt.form)) {
      for (auto* operands : {&intrinsic->inputs, &intrinsic->outputs}) {
        for (Operand& operand : *operands)
          for (Part& part : operand.parts) replace(part.begin);
      }
    }
  };
  for_each_statement(stage.init, visit);
  for_each_statement(stage.body, visit);
}

namespace {

// Visits the indices of each access of a stage to the buffer: those of a load or a store, or the parts of an operand.
void for_each_access_indices(Stage& stage, BufferId buffer, FunctionRef<void(Dims&)> element,
                             FunctionRef<void(std::vector<Part>&)> block) {
  for_each_expr(stage, [&](Expr& expr) {
    expr = rewrite(expr, [&](const ExprNode& node) -> Expr {
      const auto* load = std::get_if<Load>(&node.form);
      if (!load || load->buffer != buffer) return nullptr;
      ExprNode copy = node;
      element(std::get<Load>(copy.form).indices);
      return std::make_shared<const ExprNode>(std::move(copy));
    });
  });
  for_each_store(stage, [&](Store& store) {
    if (store.buffer == buffer) element(store.indices);
  });
  for (Body* body : {&stage.init, &stage.body}) {
    for_each_statement(*body, [&](Stmt& stmt) {
      auto* intrinsic = std::get_if<Intrinsic>(&stmt.form);
      if (!intrinsic) return;
      for (auto* operands : {&intrinsic->inputs, &intrinsic->outputs})
        for (Operand& operand : *operands)
          if (operand.buffer == buffer) block(operand.parts);
    });
  }
}

}  // namespace

void for_each_index(Stage& stage, BufferId buffer, FunctionRef<void(size_t axis, Dim& index)> visit) {
  for_each_access_indices(
      stage, buffer,
      [&](Dims& indices) {
        for (size_t i = 0; i < indices.size(); ++i) visit(i, indices[i]);
      },
      [&](std::vector<Part>& parts) {
        for (size_t i = 0; i < parts.size(); ++i) visit(i, parts[i].begin);
      });
}

void map_indices(Stage& stage, BufferId buffer, FunctionRef<Dims(const Dims& indices)> map) {
  for_each_access_indices(
      stage, buffer, [&](Dims& indices) { indices = map(indices); }, [](std::vector<Part>&) {});
}

void add_index(Stage& stage, BufferId buffer, Dim index) {
  for_each_access_indices(
      stage, buffer, [&](Dims& indices) { indices.insert(indices.begin(), index); },
      [&](std::vector<Part>& parts) {
        parts.insert(parts.begin(), Part{index, 0});
      });
}

Dims over_loops(TypeContext& context, const Stage& stage, const Dims& dims) {
  std::map<Symbol, Dim> values;
  for (const Axis& axis : stage.axes) values[axis.var] = axis.value;
  Dims result;
  for (Dim dim : dims) result.push_back(context.substitute(dim, values));
  return result;
}

Symbol fresh(TypeContext& context, const Function& function, std::string base) {
  std::set<Symbol> used(function.dims.begin(), function.dims.end());
  for (const Buffer& buffer : function.buffers) {
    used.insert(buffer.name);
    for (const BufferAxis& axis : buffer.axes) used.insert(axis.var);
  }
  for_each_statement(function.body, [&](const Stmt& stmt) {
    if (const auto* loop = std::get_if<For>(&stmt.form)) used.insert(loop->var);
    if (const auto* let = std::get_if<Let>(&stmt.form)) used.insert(let->var);
    if (const auto* stage = std::get_if<Stage>(&stmt.form)) {
      used.insert(stage->name);
      for (const Axis& axis : stage->axes) used.insert(axis.var);
    }
    for_each_direct_expr(stmt, [&](const Expr& expr) {
      for_each_node(expr, [&](const ExprNode& node) {
        if (const auto* let = std::get_if<LetIndex>(&node.form)) used.insert(let->var);
      });
    });
  });
  while (used.contains(context.symbol(base))) base += '_';
  return context.symbol(base);
}

std::optional<int64_t> constant_elements(const Buffer& buffer) {
  int64_t elements = 1;
  for (const BufferAxis& axis : buffer.axes) {
    const auto size = axis.extent.constant();
    if (!size || __builtin_mul_overflow(elements, std::max<int64_t>(*size, 0), &elements)) return std::nullopt;
  }
  return elements;
}

namespace {

int64_t heap_bytes(const Function& function, const Body& body, int64_t threads) {
  int64_t most = 0;
  for (const Stmt& stmt : body) {
    int64_t inner = 0;
    for_each_body(stmt, [&](const Body& part) { inner = std::max(inner, heap_bytes(function, part, threads)); });
    const auto* loop = std::get_if<For>(&stmt.form);
    if (loop && loop->kind == LoopKind::kParallel)
      inner *= std::min(threads, loop->extent.constant().value_or(threads));
    if (const auto* alloc = std::get_if<Alloc>(&stmt.form); alloc && alloc->scope == Scope::kHeap) {
      const Buffer& buffer = function.buffer(alloc->buffer);
      inner += constant_elements(buffer).value_or(0) * static_cast<int64_t>(runtime::bytes(buffer.dtype));
    }
    most = std::max(most, inner);
  }
  return most;
}

}  // namespace

int64_t heap_bytes(const Function& function, int64_t threads) { return heap_bytes(function, function.body, threads); }

std::optional<Path::Step> find_alloc(Body& body, BufferId buffer) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (const auto* alloc = std::get_if<Alloc>(&body[i].form); alloc && alloc->buffer == buffer)
      return Path::Step{&body, i};
    std::optional<Path::Step> found;
    for_each_body(body[i], [&](Body& inner) {
      if (!found) found = find_alloc(inner, buffer);
    });
    if (found) return found;
  }
  return std::nullopt;
}

std::string local(const TypeContext& context, const Function& function, BufferId id) {
  return fmt::format("%{}", context.name(function.buffer(id).name));
}

size_t root_of(const Path& path) {
  size_t root = path.steps.size() - 1;
  while (root > 0 && path.is_loop(root - 1) && path.loop_at(root - 1).body.size() == 1) --root;
  return root;
}

void erase(const Path::Step& step) { step.body->erase(step.body->begin() + static_cast<ptrdiff_t>(step.index)); }

size_t common_steps(const Path& a, const Path& b) {
  size_t common = 0;
  while (common < a.steps.size() && common < b.steps.size() && a.steps[common].body == b.steps[common].body &&
         a.steps[common].index == b.steps[common].index)
    ++common;
  return common;
}

BufferId add_buffer(Function& function, Symbol name, BufferId like) {
  Buffer buffer = function.buffer(like);
  buffer.name = name;
  function.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(function.buffers.size() - 1);
}

void remove_alloc(Function& function, BufferId buffer) {
  const auto alloc = find_alloc(function.body, buffer);
  Body inner = std::move(std::get<Alloc>(alloc->stmt().form).body);
  Body& body = *alloc->body;
  const auto position = static_cast<ptrdiff_t>(alloc->index);
  body.erase(body.begin() + position);
  body.insert(body.begin() + position, std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
}

namespace {

std::vector<const For*> loops_in(const Path& path, size_t first, size_t end) {
  std::vector<const For*> loops;
  for (size_t step = first; step < end; ++step) {
    if (path.is_loop(step)) loops.push_back(&path.loop_at(step));
  }
  return loops;
}

}  // namespace

std::vector<const For*> all_loops(const Path& path) { return loops_in(path, 0, path.steps.size()); }
std::vector<const For*> loops_up_to(const Path& path, size_t step) { return loops_in(path, 0, step + 1); }

std::set<Symbol> outside_variables(const Function& function, const Path& path, size_t step) {
  std::set<Symbol> variables(function.dims.begin(), function.dims.end());
  for (size_t i = 0; i <= step; ++i) {
    if (path.is_loop(i)) variables.insert(path.loop_at(i).var);
  }
  return variables;
}

bool only_mentions(Dim dim, const std::set<Symbol>& variables) {
  bool only = true;
  for_each_variable(dim, [&](Symbol var) { only &= variables.contains(var); });
  return only;
}

bool has_dots(const Function& function) {
  bool found = !function.intrinsics.empty();
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* store = std::get_if<Store>(&stmt.form);
    if (!store || found) return;
    for_each_node(store->value, [&](const ExprNode& node) {
      const auto* binary = std::get_if<Binary>(&node.form);
      found |= binary && is_dot(binary->op);
    });
  });
  return found;
}

bool is_instruction(const Stage& stage) {
  bool found = false;
  for_each_statement(stage.body, [&](const Stmt& stmt) { found |= std::holds_alternative<Intrinsic>(stmt.form); });
  return found;
}

DimBounds bounds_of(const std::vector<const For*>& loops) {
  DimBounds bounds;
  for (const For* loop : loops) {
    const auto extent = loop->extent.constant();
    bounds[loop->var] = {0, extent ? std::optional(*extent - 1) : std::nullopt};
  }
  return bounds;
}

DimBounds bounds_of(const Path& path, size_t steps) {
  std::vector<const For*> loops;
  for (size_t step = 0; step < steps; ++step)
    if (path.is_loop(step)) loops.push_back(&path.loop_at(step));
  return bounds_of(loops);
}

bool feeds(const Stage& stage, Symbol loop, AxisKind kind) {
  return std::ranges::any_of(stage.axes, [&](const Axis& axis) {
    return axis.kind == kind && mentions({&axis.value, 1}, loop);
  });
}

const Body& nests_of(const Function& function, FunctionRef<void(const Alloc&)> visit) {
  const Body* body = &function.body;
  while (body->size() == 1 && std::holds_alternative<Alloc>(body->front().form)) {
    const auto& alloc = std::get<Alloc>(body->front().form);
    visit(alloc);
    body = &alloc.body;
  }
  return *body;
}

namespace {

// The values of the axes, where pairs a + x // c and x % c, which result from fused loops, are replaced by c * a + x: a
// pair takes each value once exactly if the sum does.
Dims joined_values(TypeContext& context, const std::vector<Axis>& axes) {
  Dims values;
  for (const Axis& axis : axes) {
    if (axis.kind != AxisKind::kGiven) values.push_back(axis.value);
  }
  const auto join = [&](size_t i) {
    if (!values[i].valid()) return false;
    for (const DimTerm& term : values[i].node->terms) {
      const DimAtom* atom = term.factors.size() == 1 && term.coefficient == 1 ? term.factors[0] : nullptr;
      if (!atom || atom->kind != DimAtom::Kind::kFloorDivide || atom->args[1].constant().value_or(0) <= 0) continue;
      const Dim quotient = context.monomial(term.factors), times_c = context.multiply(atom->args[1], quotient);
      const auto remainder = std::ranges::find(values, context.subtract(atom->args[0], times_c));
      if (remainder == values.end()) continue;
      const Dim base = context.subtract(values[i], quotient);
      *remainder = context.add(context.multiply(atom->args[1], base), atom->args[0]);
      values.erase(values.begin() + static_cast<ptrdiff_t>(i));
      return true;
    }
    return false;
  };
  for (size_t i = 0; i < values.size();) i = join(i) ? 0 : i + 1;
  return values;
}

using OpenLoops = std::map<Symbol, std::optional<int64_t>>;  // with their sizes

// A constant that divides the loop's size and whose quotient of the variable is in one of the values; 0: none.
int64_t divisor_of(const Dims& values, Symbol loop, int64_t size) {
  for (const Dim value : values) {
    for (const DimTerm& term : value.node->terms) {
      for (const DimAtom* factor : term.factors) {
        if (factor->kind != DimAtom::Kind::kFloorDivide || factor->args[0].variable() != loop) continue;
        const int64_t divisor = factor->args[1].constant().value_or(0);
        if (divisor > 1 && size % divisor == 0) return divisor;
      }
    }
  }
  return 0;
}

// Replaces a loop, as fuse makes it, by a loop over its quotients and one over its remainders by a constant.
void split_digits(TypeContext& context, Dims& values, OpenLoops& open) {
  for (const auto& [loop, size] : OpenLoops(open)) {
    const int64_t divisor = size ? divisor_of(values, loop, *size) : 0;
    if (divisor == 0) continue;
    const Symbol quotient = context.symbol(fmt::format("{}/{}", context.name(loop), divisor)),
                 remainder = context.symbol(fmt::format("{}%{}", context.name(loop), divisor));
    const Dim digits =
                  context.add(context.multiply(context.dim(divisor), context.dim(quotient)), context.dim(remainder)),
              zero = context.floor_divide(context.dim(remainder), context.dim(divisor));
    for (Dim& value : values) {
      Dim replaced = context.dim(0);
      for (const DimTerm& term : context.substitute(value, {{loop, digits}}).node->terms) {
        if (std::ranges::find(term.factors, zero.atom()) == term.factors.end())
          replaced = context.add(replaced, context.monomial(term.factors, term.coefficient));
      }
      value = replaced;
    }
    open.erase(loop);
    open[quotient] = *size / divisor, open[remainder] = divisor;
  }
}

}  // namespace

bool visits_points_once(TypeContext& context, const Path& path, size_t step) {
  OpenLoops open;  // those that are in no axis so far
  for (; step + 1 < path.steps.size(); ++step) {
    if (path.is_loop(step)) open[path.loop_at(step).var] = path.loop_at(step).extent.constant();
  }
  Dims values = joined_values(context, path.stage().axes);
  split_digits(context, values, open);
  for (Dim remainder : values) {
    // Coefficients and sizes: the sum determines its loops if each coefficient exceeds the largest sum of all terms
    // with smaller coefficients.
    std::vector<std::pair<int64_t, std::optional<int64_t>>> parts;
    for (auto loop = open.begin(); loop != open.end();) {
      bool used = false;
      for_each_variable(remainder, [&](Symbol var) { used |= var == loop->first; });
      if (!used) {
        ++loop;
        continue;
      }
      const auto linear = context.linear_in(loop->first, remainder);
      const auto factor = linear ? linear->first.constant() : std::nullopt;
      if (!factor || *factor < 1) return false;
      parts.emplace_back(*factor, loop->second);
      remainder = linear->second;
      loop = open.erase(loop);
    }
    std::ranges::sort(parts);
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      if (!parts[i].second || parts[i + 1].first / parts[i].first < *parts[i].second) return false;
    }
  }
  return open.empty();  // a loop that is in no axis repeats every point
}

Stmt nest(std::vector<For> loops, Stmt inner) {
  for (size_t i = loops.size(); i-- > 0;) {
    loops[i].body.clear();
    loops[i].body.push_back(std::move(inner));
    inner = Stmt{std::move(loops[i])};
  }
  return inner;
}

std::optional<Interval> interval_of(TypeContext& context, Dim dim, const std::vector<const For*>& inner) {
  Interval result{dim, dim};
  for (size_t i = inner.size(); i-- > 0;) {  // the innermost first: its size may depend on the others
    const Dim last = context.subtract(inner[i]->extent, context.dim(1));
    for (Dim* end : {&result.lo, &result.hi}) {
      if (!mentions({end, 1}, inner[i]->var)) continue;
      const auto linear = context.linear_in(inner[i]->var, *end);
      const auto factor = linear ? linear->first.constant() : std::nullopt;
      if (!factor) return std::nullopt;
      const bool at_last = (*factor > 0) == (end == &result.hi);
      *end = at_last ? context.add(context.multiply(linear->first, last), linear->second) : linear->second;
    }
  }
  return result;
}

bool begins_at_zero(TypeContext& context, const Axis& axis, const std::vector<const For*>& loops) {
  std::map<Symbol, Dim> first;
  for (const For* loop : loops) first[loop->var] = context.dim(0);
  return context.substitute(axis.value, first) == context.dim(0);
}

bool always_below(TypeContext& context, Dim left, Dim right, const std::vector<const For*>& loops) {
  const Dim room = context.subtract(context.subtract(right, left), context.dim(1));
  if (const auto range = interval_of(context, room, loops);
      range && DimProver(context).less_equal(context.dim(0), range->lo) == Answer::kYes)
    return true;
  // Quotients and remainders of loop variables are not linear in these: their ranges are facts for the prover then.
  Dims facts;
  for (const For* loop : loops)
    facts.push_back(context.subtract(context.subtract(loop->extent, context.dim(1)), context.dim(loop->var)));
  return DimProver(context).implied(facts, room);
}

}  // namespace tenon::compiler::loop
