#include "compiler/schedules/elements.h"

#include "compiler/loop/expr.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

const loop::Store& store_of(const Expected<loop::Path>& path) {
  return std::get<loop::Store>(path->stage().body[0].form);
}

}  // namespace

Expected<Symbol> Elements::stage_or_copy() {
  const auto found = stage();
  return found ? *found : make_copy();
}

Expected<Symbol> Elements::copy() {
  const auto found = stage();
  if (found && std::holds_alternative<loop::Load>(value_of(*found)->form)) return *found;
  if (found) TENON_TRY(fill(*found));
  return make_copy();
}

Expected<Symbol> Elements::make_copy() {
  TENON_TRY_ASSIGN(made, steps_.stage_of_step("cache_read({}, {})", sums_, name()));
  buffer_ = store_of(loop::find_stage(context_, steps_.function(), *made)).buffer;
  return *made;
}

Symbol Elements::axis_at(Symbol stage, size_t position) {
  return *store_of(loop::find_stage(context_, steps_.function(), stage)).indices[position].variable();
}

loop::Expr Elements::value_of(Symbol stage) {
  return store_of(loop::find_stage(context_, steps_.function(), stage)).value;
}

Status Elements::fill(Symbol stage) {
  const loop::Expr value = value_of(stage);
  const auto* select = std::get_if<loop::Select>(&value->form);
  const bool is_padded = select && !loop::has_loads(select->condition) && !loop::has_loads(select->otherwise);
  return is_padded ? steps_.step("fill({})", stage) : Status();
}

Status Elements::extend(Symbol stage, size_t position, int64_t size) {
  const auto now = schedule_.function().buffer(buffer_).axes[position].extent.constant();
  return now && *now < size ? steps_.step("pad({}, {}, {})", stage, axis_at(stage, position), size) : Status();
}

Status Elements::extend_to_vectors(Symbol stage, Dim windows, int64_t vector, int64_t stride) {
  const auto count = windows.constant();
  const int64_t missing = count ? ceil_divide(*count, vector) * vector - *count : vector - 1;
  if (missing == 0) return {};
  const size_t last = schedule_.function().buffer(buffer_).rank() - 1;
  return steps_.step("pad({}, {}, {}, {})", stage, axis_at(stage, last), vector, missing * stride);
}

}  // namespace tenon::compiler::schedules
