#include "compiler/backends/llvm/emit.h"

#include <fmt/format.h>

#include <optional>

#include "compiler/backends/llvm/compile.h"
#include "compiler/loop/tables.h"
#include "support/try.h"

namespace tenon::compiler::native {

FunctionEmitter::FunctionEmitter(Unit& unit, const loop::Function& function, const runtime::Signature& signature,
                                 std::span<const size_t> tables, std::string symbol)
    : function_(function),
      signature_(signature),
      tables_(tables),
      frames_(unit, function, std::move(symbol)),
      indices_(frames_, [this](BufferId id, const Dims& indices) { return memory_.load(id, indices); }),
      control_(frames_, indices_),
      memory_(frames_, indices_, control_, signature.in_place),
      exprs_(frames_, indices_, control_, memory_),
      statements_(frames_, indices_, control_, memory_, exprs_) {}

llvm::Function* FunctionEmitter::run() {
  llvm::Function* kernel = frames_.make_kernel();
  frames_.enter(kernel, false);
  load_arguments();
  frames_.open_scope(false);
  for (const auto* ids : {&function_.params, &function_.results}) {
    for (BufferId id : *ids) indices_.declare(id);
  }
  for (const auto* ids : {&function_.params, &function_.results}) {
    for (BufferId id : *ids) memory_.make_row_table(id);
  }
  statements_.body(function_.body);
  frames_.leave();
  return kernel;
}

std::vector<size_t> FunctionEmitter::used_tables() const {
  std::vector<size_t> used;
  for (size_t i = 0; i < tables_.size(); ++i)
    if (!table_memory_[i]->use_empty()) used.push_back(tables_[i]);
  return used;
}

// Loads the buffers' addresses and the dims from the call (tn_call).
void FunctionEmitter::load_arguments() {
  llvm::IRBuilder<>& b = frames_.builder();
  Value* buffers = frames_.call_field(2, b.getPtrTy());
  Value* dims = frames_.call_field(3, b.getPtrTy());
  const auto load = [&](BufferId id, size_t index) {
    Value* slot = b.CreateConstInBoundsGEP1_64(b.getPtrTy(), buffers, index);
    Value* address = b.CreateLoad(b.getPtrTy(), slot);
    frames_.frame().bases[id] = {address, 0};
    return address;
  };
  const size_t params = function_.params.size() - tables_.size(), results = function_.results.size();
  for (size_t i = 0; i < params; ++i) load(function_.params[i], i);
  for (size_t i = 0; i < results; ++i) load(function_.results[i], params + i);
  for (size_t i = 0; i < tables_.size(); ++i)
    table_memory_.push_back(load(function_.params[params + i], params + results + tables_[i]));
  for (size_t i = 0; i < signature_.dims.size(); ++i) {
    Value* slot = b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), dims, i);
    const Symbol var = frames_.unit().context.symbol(signature_.dims[i].name);
    frames_.frame().variables[var] = {b.CreateLoad(b.getInt64Ty(), slot), 0};
  }
}

namespace {

// A buffer with rows whose sizes are not determined by the first axis.
std::optional<Diagnostic> deeply_ragged(const TypeContext& context, const loop::Buffer& buffer) {
  for (size_t axis = 1; axis < buffer.rank(); ++axis) {
    bool deeper = false;
    for_each_variable(buffer.axes[axis].extent, [&](Symbol var) {
      for (size_t before = 1; before < axis; ++before) deeper |= buffer.axes[before].var == var;
    });
    if (deeper)
      return Diagnostic{fmt::format("axis {} of %{} depends on the index of an axis that is not the first", axis,
                                    context.name(buffer.name)),
                        {},
                        "native code supports ragged buffers whose rows have their sizes from the first axis"};
  }
  return std::nullopt;
}

}  // namespace

Status supported(TypeContext& context, const loop::Function& function) {
  const std::string where = fmt::format("@{}", context.name(function.name));
  const bool ragged = std::ranges::any_of(function.buffers, is_ragged);
  loop::Function by_tables;
  if (ragged) by_tables = function, loop::add_offset_tables(context, by_tables);
  for (const loop::Buffer& buffer : function.buffers) {
    if (packed_axes(buffer) == 0 ||
        packed_offset(context, by_tables, buffer, Dims(buffer.rank(), context.dim(int64_t{0}))))
      continue;
    if (const auto problem = deeply_ragged(context, buffer)) return error(problem->what, where, problem->help);
  }
  std::optional<std::string> problem;
  for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    const auto* call = std::get_if<loop::CallLibrary>(&stmt.form);
    if (!call) return;
    for (const auto* buffers : {&call->inputs, &call->outputs}) {
      for (const BufferId id : *buffers) {
        if (is_ragged(function.buffer(id)) && !problem)
          problem = fmt::format("the ragged buffer %{} is passed to the library function '{}'",
                                context.name(function.buffer(id).name), context.name(call->symbol));
      }
    }
  });
  if (problem)
    return error(*problem, where, "native code passes buffers without ragged axes only; the evaluator passes all");
  TENON_TRY(signature_of(context, function));
  return {};
}

}  // namespace tenon::compiler::native
