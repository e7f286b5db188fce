// The elements that windows read: the stage that computes them, with their padding, and steps that copy them as the
// lanes of a template read them.
#pragma once

#include <optional>

#include "compiler/schedules/product_steps.h"

namespace tenon::compiler::schedules {

class Elements {
 public:
  // `buffer`: which the stage `sums` reads.
  Elements(TypeContext& context, loop::Schedule& schedule, Symbol sums, loop::BufferId buffer)
      : context_(context), schedule_(schedule), steps_(context, schedule), sums_(sums), buffer_(buffer) {}

  Symbol name() const { return schedule_.function().buffer(buffer_).name; }
  // The stage that computes the elements for the sums alone, if there is one.
  std::optional<Symbol> stage() { return steps_.private_producer(buffer_); }
  // The same; where there is none, that of a copy.
  Expected<Symbol> stage_or_copy();
  // The stage of a copy; elements that are computed are stored first.
  Expected<Symbol> copy();

  // The stage's axis that is the axis of the buffer at a position.
  Symbol axis_at(Symbol stage, size_t position);
  // Stores the padding first, if there is some: where a constant is selected by indices alone.
  Status fill(Symbol stage);
  // Extends an axis of known size to a size; the new elements are zeros, which no result depends on.
  Status extend(Symbol stage, size_t position, int64_t size);
  // Extends the last axis as far as the last vector of windows of this stride reads.
  Status extend_to_vectors(Symbol stage, Dim windows, int64_t vector, int64_t stride);

 private:
  // Makes the buffer of the stage that of the elements.
  Expected<Symbol> use(Expected<Symbol> stage);

  TypeContext& context_;
  loop::Schedule& schedule_;
  ProductSteps steps_;
  const Symbol sums_;
  loop::BufferId buffer_;
};

}  // namespace tenon::compiler::schedules
