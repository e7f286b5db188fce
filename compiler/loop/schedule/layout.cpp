// The primitive layout: another order of a buffer's elements.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/schedule/storage.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// (index of `axis` // divisor) % modulus; without a modulus, the quotient.
struct Digit {
  size_t axis = 0;
  int64_t divisor = 1, modulus = 0;
};
// A new axis: the digits of its index, the most significant one first.
using Digits = std::vector<Digit>;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Expected<std::vector<Digits>> axes() {
    const size_t arrow = text_.find("->");
    if (arrow == std::string_view::npos)
      return error("a layout must be old axes and new ones, as j k -> j/16 k j%16", std::string(text_));
    for (const std::string_view name : words(text_.substr(0, arrow))) {
      if (std::ranges::find(names_, name) != names_.end())
        return error(fmt::format("the axis '{}' is named twice", name), std::string(text_));
      names_.push_back(name);
    }
    std::vector<Digits> axes;
    for (std::string_view word : words(text_.substr(arrow + 2))) {
      Digits& digits = axes.emplace_back();
      for (size_t end = 0; end != std::string_view::npos; word.remove_prefix(std::min(end + 1, word.size()))) {
        end = word.find('*');
        TENON_TRY_ASSIGN(digit, this->digit(word.substr(0, end)));
        digits.push_back(*digit);
      }
    }
    return axes;
  }
  size_t rank() const { return names_.size(); }
  std::string_view name(size_t axis) const { return names_[axis]; }

 private:
  static std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> result;
    while (!text.empty()) {
      const size_t begin = std::min(text.find_first_not_of(' '), text.size());
      const size_t end = std::min(text.find(' ', begin), text.size());
      if (end > begin) result.push_back(text.substr(begin, end - begin));
      text.remove_prefix(end);
    }
    return result;
  }
  Expected<Digit> digit(std::string_view word) const {
    const size_t end = std::min(word.find_first_of("/%"), word.size());
    const auto name = std::ranges::find(names_, word.substr(0, end));
    if (name == names_.end())
      return error(fmt::format("'{}' is not an old axis", word.substr(0, end)), std::string(text_));
    Digit digit{.axis = static_cast<size_t>(name - names_.begin())};
    for (std::string_view left = word.substr(end); !left.empty();) {
      int64_t& number = left.front() == '/' ? digit.divisor : digit.modulus;
      const auto [next, problem] = std::from_chars(left.begin() + 1, left.end(), number);
      if (problem != std::errc{} || number < 2 || (number > INT32_MAX))
        return error(fmt::format("'{}' requires an integer from 2 on after '{}'", word, left.front()),
                     std::string(text_));
      left.remove_prefix(static_cast<size_t>(next - left.begin()));
      if (!left.empty() && (left.front() != '%' || digit.modulus != 0))
        return error(fmt::format("'{}' is not an axis, a quotient j/16 or a remainder j%16 or j/4%4", word),
                     std::string(text_));
    }
    return digit;
  }

  std::string_view text_;
  std::vector<std::string_view> names_;
};

// Whether the digits of each axis are all those of its index: 1, and from each digit to the next the product of the
// moduli; the last has none.
Status is_permutation(const Reader& names, const std::vector<Digits>& axes, size_t rank) {
  for (size_t axis = 0; axis < rank; ++axis) {
    Digits own;
    for (const Digits& digits : axes)
      std::ranges::copy_if(digits, std::back_inserter(own), [&](const Digit& digit) { return digit.axis == axis; });
    std::ranges::sort(own, {}, &Digit::divisor);
    int64_t covered = 1;
    bool ends = false, fits = true;
    for (const Digit& digit : own) {
      fits &= !ends && digit.divisor == covered;
      ends = digit.modulus == 0;
      if (!ends && __builtin_mul_overflow(covered, digit.modulus, &covered)) fits = false;
    }
    if (!fits || !ends)
      return error(fmt::format("the new axes do not determine the axis '{}' once", names.name(axis)), {},
                   "each axis must appear alone, or as quotient and remainders, as j/16 and j%16");
  }
  return {};
}

}  // namespace

Expected<Function> layout(TypeContext& context, Function function, Symbol buffer, std::string_view order) {
  TENON_TRY_ASSIGN(id, find_buffer(context, function, buffer));
  Reader reader(order);
  TENON_TRY_ASSIGN(orders, reader.axes());
  const std::string shown = local(context, function, *id);
  const std::vector<BufferAxis> old = function.buffer(*id).axes;
  if (reader.rank() != old.size())
    return error(fmt::format("{} has {} axes, {} are named", shown, old.size(), reader.rank()));
  TENON_TRY(is_permutation(reader, *orders, old.size()));
  if (!find_alloc(function.body, *id))
    return error(fmt::format("{} is not allocated in the function", shown), {},
                 "a parameter or result has the layout of its caller; cache_read and cache_write make copies");
  if (!function.buffer(*id).swizzles.empty())
    return error(fmt::format("{} has swizzled axes", shown), {}, "change its layout before the swizzle");
  for (const BufferAxis& axis : old) {
    for (const BufferAxis& other : old)
      if (mentions({&axis.extent, 1}, other.var))
        return error(fmt::format("{} is ragged: its size {} depends on an index", shown, context.str(axis.extent)));
  }
  Status status;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    bool uses = false;
    if (const auto* call = std::get_if<CallLibrary>(&stmt.form)) {
      for (const auto* list : {&call->inputs, &call->outputs}) uses |= std::ranges::find(*list, *id) != list->end();
    } else if (!std::holds_alternative<Stage>(stmt.form) && !std::holds_alternative<Store>(stmt.form)) {
      const bool condition = std::holds_alternative<Let>(stmt.form) || std::holds_alternative<If>(stmt.form);
      for_each_direct_access(
          stmt, [&](const Access& access) { uses |= access.buffer == *id && (condition || !access.sizes.empty()); });
    }
    if (uses) status = error(fmt::format("{} is used by an if, a let, a library or an instruction", shown));
  });
  TENON_TRY(status);
  const DimProver prover(context);
  const auto size_of = [&](const Digit& digit) -> Expected<Dim> {
    const Dim size = old[digit.axis].extent, divisor = context.dim(digit.divisor);
    // A quotient of a constant size may have elements at its end that no index refers to.
    const bool exact = prover.divides(divisor, size) == Answer::kYes;
    if (!exact && !(size.constant() && digit.modulus == 0))
      return error(fmt::format("{} does not divide the size {} of {}", digit.divisor, context.str(size), shown), {},
                   "pad the stage that writes it first");
    if (digit.modulus > 0) return context.dim(digit.modulus);
    return exact ? context.floor_divide(size, divisor) : context.ceil_divide(size, digit.divisor);
  };
  std::vector<BufferAxis> axes;
  std::vector<Dims> sizes;  // of the digits of each new axis
  for (const Digits& digits : *orders) {
    Dim extent = context.dim(1);
    sizes.emplace_back();
    for (const Digit& digit : digits) {
      TENON_TRY_ASSIGN(size, size_of(digit));
      sizes.back().push_back(*size), extent = context.multiply(extent, *size);
    }
    axes.push_back({fresh(context, function, fmt::format("{}_{}", context.name(buffer), axes.size())), extent});
  }
  function.buffers[index(*id)].axes = axes;
  const auto moved = [&](const Dims& indices) {
    Dims result;
    for (size_t axis = 0; axis < orders->size(); ++axis) {
      Dim position = context.dim(0);
      for (size_t i = 0; i < (*orders)[axis].size(); ++i) {
        const Digit& digit = (*orders)[axis][i];
        const Dim quotient = context.floor_divide(indices[digit.axis], context.dim(digit.divisor));
        position = context.add(context.multiply(position, sizes[axis][i]),
                               digit.modulus > 0 ? context.modulo(quotient, context.dim(digit.modulus)) : quotient);
      }
      result.push_back(position);
    }
    return result;
  };
  for (Stmt& stmt : function.body) {
    for_each_stage(stmt, [&](Stage& stage) { map_indices(stage, *id, moved); });
  }
  return function;
}

}  // namespace tenon::compiler::loop
