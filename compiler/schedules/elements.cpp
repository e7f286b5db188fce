#include "compiler/schedules/elements.h"

#include "compiler/loop/expr.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
Expected<Symbol> Elements::stage_or_copy() { return use(steps_.producer_or_copy(sums_, buffer_)); }

Expected<Symbol> Elements::copy() {
  const auto found = stage();
  if (!found || std::holds_alternative<loop::Load>(steps_.assignment_of(*found).value->form)) return stage_or_copy();
  TENON_TRY(fill(*found));
  return use(steps_.stage_of_step("cache_read({}, {})", sums_, name()));
}

Expected<Symbol> Elements::use(Expected<Symbol> stage) {
  if (stage) buffer_ = steps_.assignment_of(*stage).buffer;
  return stage;
}

Symbol Elements::axis_at(Symbol stage, size_t position) {
  return *steps_.assignment_of(stage).indices[position].variable();
}

Status Elements::fill(Symbol stage) {
  const loop::Expr value = steps_.assignment_of(stage).value;
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
