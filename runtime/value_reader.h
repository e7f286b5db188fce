// Nested values from text and from JSON: the inverse of runtime/value_view.h.
//
// Semantics: a value is read against its type, which the reader's caller owns. The text is what value_text() prints:
// 3i64, Tensor[(2,), f32] [1, 2], (true, Cons(1i64, Nil)). A text from a person may leave out what the type says: the
// dtype of a scalar (3) and the head of a tensor ([1, 2], whose sizes are those of its brackets). JSON is what
// write_json() prints, where nested lists of numbers stand for tensors too, and a string has the text of a value.
// Nothing recurs: a value may be as deep as memory allows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"
#include "runtime/value_view.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

// The types and the values of the reader's caller. A reader makes values in postfix order: the fields of a tuple or of
// a constructed value, from the first one on, then the value itself. After an error some values have been made.
class ValueTarget {
 public:
  using Type = const void*;
  struct Level {
    ValueKind kind = ValueKind::kTensor;  // of kFunction and kReference no value can be given
    DType dtype = DType::kF32;            // kTensor
    Shape shape = {};                     // kTensor; -1: any size
    std::span<const Type> fields = {};    // kTuple; valid as long as the target
  };
  struct Constructor {
    uint32_t index = 0;
    std::span<const Type> fields;  // valid as long as the target
  };

  virtual ~ValueTarget() = default;
  virtual Level level(Type type) = 0;
  // Of a type of kind kData.
  virtual std::optional<Constructor> constructor(Type type, std::string_view name) = 0;
  virtual std::vector<std::string_view> constructors(Type type) = 0;
  virtual std::string str(Type type) = 0;

  virtual void make_tensor(Tensor tensor) = 0;
  virtual void make_tuple(size_t fields) = 0;
  virtual void make_data(Type type, uint32_t constructor, size_t fields) = 0;
};

// Where a text is, for messages.
struct TextOrigin {
  std::string file;
  int line = 1, column = 1;  // of the first byte
};

// Reads the whole text as one value of the type. Errors have FILE:LINE:COLUMN, the expected type and what was found.
Status read_value_text(std::string_view text, const TextOrigin& origin, ValueTarget::Type type, ValueTarget& target);
Status read_value_json(std::string_view text, const TextOrigin& origin, ValueTarget::Type type, ValueTarget& target);

}  // namespace tenon::runtime
