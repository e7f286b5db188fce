// Values of the interpreter from text and from JSON, against types of a module.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/run_value.h"
#include "runtime/value_reader.h"

namespace tenon::compiler {

// Reads any number of values of the module's types, which outlives the reader.
class RunValueReader : private runtime::ValueTarget {
 public:
  enum class Format : uint8_t { kText, kJson };

  RunValueReader(Context& context, const Module& module) : context_(context), module_(module) {}

  // The value that the whole text is. The sizes of a type that are no constants may be any.
  Expected<RunValue> read(compiler::Type type, std::string_view text, const runtime::TextOrigin& origin, Format format);

 private:
  using Handle = runtime::ValueTarget::Type;

  // What a type consists of, once for each.
  struct Parts {
    Level level;
    std::vector<Handle> fields;                     // of a tuple
    std::vector<Symbol> names;                      // of the constructors of a defined type
    std::vector<std::vector<Handle>> constructors;  // and their fields
  };
  const Parts& parts(Handle handle);
  static compiler::Type type_of(Handle handle) { return {static_cast<const TypeNode*>(handle)}; }

  Level level(Handle type) override { return parts(type).level; }
  std::optional<Constructor> constructor(Handle type, std::string_view name) override;
  std::vector<std::string_view> constructors(Handle type) override;
  std::string str(Handle type) override { return context_.str(type_of(type)); }
  void make_tensor(runtime::Tensor tensor) override { made_.emplace_back(std::move(tensor)); }
  void make_tuple(size_t fields) override { made_.push_back(RunValue::tuple(take(fields))); }
  void make_data(Handle type, uint32_t constructor, size_t fields) override;
  std::vector<RunValue> take(size_t count);

  Context& context_;
  const Module& module_;
  std::unordered_map<Handle, std::unique_ptr<const Parts>> parts_;
  std::vector<RunValue> made_;  // in postfix order
};

}  // namespace tenon::compiler
