// What the templates of products share: steps as text, loops by the stage that they enclose, and the axes of the sums.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/loop/schedule/schedule.h"
#include "compiler/schedules/product.h"

namespace tenon::compiler::schedules {

// The axes of a stage of sums: the batch, with the loop of a scan around it, rows and columns of the buffer, and the
// terms.
struct ProductAxes {
  loop::BufferId buffer{};  // of the sums
  std::vector<loop::Axis> batch, terms;
  loop::Axis rows, columns;
  size_t row_position = 0, column_position = 0;  // of the buffer's axes
  bool is_step = false;                          // of a scan, whose loop does not index the sums
  Factors factors = Factors::kElements;
};

inline int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

class ProductSteps {
 public:
  ProductSteps(TypeContext& context, loop::Schedule& schedule) : context_(context), schedule_(schedule) {}

  // Applies a step, as fmt::format() writes it; symbols are written by their names.
  template <class... Args>
  Status step(std::string_view format, const Args&... args) {
    return apply(format, shown(args)...);
  }
  // As step(), for a step that makes a stage, whose name is returned.
  template <class... Args>
  Expected<Symbol> stage_of_step(std::string_view format, const Args&... args) {
    const std::set<Symbol> before = stage_names();
    if (Status status = step(format, args...); !status) return std::unexpected(std::move(status.error()));
    for (const Symbol name : stage_names())
      if (!before.contains(name)) return name;
    return error("the step made no stage", schedule_.steps().back());
  }

  // Splits the loop by the factors, as the step's text has them; returns the stage and its copies, in their order.
  Expected<std::vector<Symbol>> split(Symbol stage, Symbol loop, const std::string& factors);

  // The function after the last step; paths into it are valid up to the next call of a member.
  loop::Function& function() {
    function_ = schedule_.function();
    return function_;
  }
  // The variables of the loops around a stage, the outermost first, and the extent of one.
  std::vector<Symbol> loops_of(Symbol stage);
  Dim extent_of(Symbol stage, Symbol loop);
  // The innermost loop that an axis of the stage takes its values from.
  Expected<Symbol> loop_of(Symbol stage, Symbol axis);
  std::set<Symbol> stage_names() const;
  std::string joined(const std::vector<Symbol>& names) const;
  // The names of the buffer's axes in a layout, "a0 a1", and of one.
  static std::string axis(size_t position) { return fmt::format("a{}", position); }
  static std::string axes(size_t rank);

  // `matrix`: the axes of rows and of columns, where these are not the last two that are no terms.
  Expected<ProductAxes> axes_of(Symbol sums, const std::optional<MatrixAxes>& matrix = {});
  // Whether a condition of the stage's values depends on the loop.
  bool has_condition_on(Symbol stage, Symbol loop);
  // The stage that alone computes the buffer, by one assignment, for one reader.
  std::optional<Symbol> private_producer(loop::BufferId buffer);
  // The same, or else the stage of a copy that `reader` reads instead of the buffer.
  Expected<Symbol> producer_or_copy(Symbol reader, loop::BufferId buffer);
  // The assignment of a stage that has no other; valid up to the next call of a member.
  const loop::Store& assignment_of(Symbol stage);

 private:
  template <class T>
  auto shown(const T& value) const {
    if constexpr (std::same_as<T, Symbol>) return std::string(context_.name(value));
    else return value;
  }
  template <class... Args>
  Status apply(std::string_view format, const Args&... args) {
    return schedule_.apply(fmt::format(fmt::runtime(format), args...));
  }

  TypeContext& context_;
  loop::Schedule& schedule_;
  loop::Function function_;
};

}  // namespace tenon::compiler::schedules
