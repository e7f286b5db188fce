// What the readers of values from text and from JSON share: tensors from nested lists, and locations for messages.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/value_reader.h"

namespace tenon::runtime {

// A tensor from nested lists of elements, whose brackets say its sizes.
class TensorLists {
 public:
  TensorLists(DType dtype, size_t rank) : dtype_(dtype), shape_(rank, kUnknown), counts_(rank, 0) {}

  size_t depth() const { return depth_; }
  bool may_open() const { return depth_ < shape_.size(); }
  void open() { counts_[depth_++] = 0; }
  // Ends the innermost list, which is open. An error where it is not as long as another one beside it.
  Status close();
  // An element from its text; false where the dtype does not represent it, or lists must be opened before.
  bool add(std::string_view text);

  // The tensor, once all lists are closed. `sizes` are those that the text states; without them they are those of the
  // brackets, and, where brackets do not say them, those that the type has. An error says what was expected and found.
  Expected<Tensor> finish(const std::optional<Shape>& sizes, const ValueTarget::Level& level) const;
  // The same where one list has the elements in row-major order.
  Expected<Tensor> finish_flat(const std::optional<Shape>& sizes, const ValueTarget::Level& level) const;

 private:
  static constexpr int64_t kUnknown = -1;

  Expected<Tensor> tensor(Shape shape, const ValueTarget::Level& level) const;

  DType dtype_;
  Shape shape_;   // of the brackets, as far as they are known
  Shape counts_;  // of the open lists
  size_t depth_ = 0;
  std::vector<std::byte> data_;
};

// Whether the character is part of a name, a number or a dtype.
inline bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
         c == '+' || c == '.';
}
// Of a byte of the text, and the same as "FILE:LINE:COLUMN".
TextOrigin origin_at(std::string_view text, size_t offset, const TextOrigin& origin);
std::string location(std::string_view text, size_t offset, const TextOrigin& origin);
// "'word'" or "the end": what the text has there.
std::string found_at(std::string_view text, size_t offset);
// The constructors of the type, or the one whose name is near.
std::string constructors_help(ValueTarget& target, ValueTarget::Type type, std::string_view name);
inline constexpr char kNoValueHelp[] = "write a function that makes it from tensors and data, and name it with --entry";

}  // namespace tenon::runtime
