#include "runtime/value_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "runtime/element_text.h"
#include "support/suggest.h"

namespace tenon::runtime {

Status TensorLists::close() {
  --depth_;
  const int64_t count = counts_[depth_];
  int64_t& size = shape_[depth_];
  if (size == kUnknown) size = count;
  if (size != count)
    return error(fmt::format("lists beside each other must have equal lengths, one has {}, another {}", size, count));
  if (depth_ > 0) ++counts_[depth_ - 1];
  return {};
}

bool TensorLists::add(std::string_view text) {
  if (may_open()) return false;
  bool known = false;
  with_dtype<kAnyDType>(dtype_, [&]<class T>(T) {
    const auto value = parse_element<T>(text);
    if (!value) return;
    const auto* bytes = reinterpret_cast<const std::byte*>(&*value);
    data_.insert(data_.end(), bytes, bytes + sizeof(T));
    known = true;
  });
  if (known && depth_ > 0) ++counts_[depth_ - 1];
  return known;
}

Expected<Tensor> TensorLists::finish(const std::optional<Shape>& sizes, const ValueTarget::Level& level) const {
  if (sizes && data_.empty() && element_count(*sizes) == 0) return tensor(*sizes, level);
  if (sizes && *sizes != shape_) {
    return error(fmt::format("expected elements of sizes {}, found sizes {}", to_string(*sizes), to_string(shape_)));
  }
  Shape shape = shape_;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == kUnknown) shape[i] = level.shape[i];
    if (shape[i] < 0)
      return error("the sizes of the tensor are not known", "",
                   fmt::format("a tensor without elements states them, as Tensor[(0, 3), {}] []", name(dtype_)));
  }
  return tensor(std::move(shape), level);
}

Expected<Tensor> TensorLists::finish_flat(const std::optional<Shape>& sizes, const ValueTarget::Level& level) const {
  const auto found = static_cast<int64_t>(data_.size()) / bytes(dtype_);
  if (!sizes && level.shape.size() == 1) return tensor({found}, level);
  if (!sizes) return error("the sizes of the tensor are missing");
  if (element_count(*sizes) != found) {
    return error(
        fmt::format("expected {} elements of sizes {}, found {}", element_count(*sizes), to_string(*sizes), found));
  }
  return tensor(*sizes, level);
}

Expected<Tensor> TensorLists::tensor(Shape shape, const ValueTarget::Level& level) const {
  if (!std::ranges::equal(shape, level.shape,
                          [](int64_t size, int64_t wanted) { return wanted < 0 || size == wanted; }))
    return error(fmt::format("found a tensor of sizes {}", to_string(shape)));
  if (!checked_bytes(dtype_, shape)) return error(fmt::format("the sizes {} are too large", to_string(shape)));
  Tensor tensor = Tensor::for_overwrite(dtype_, std::move(shape));
  if (!data_.empty()) std::memcpy(tensor.bytes().data(), data_.data(), data_.size());
  return tensor;
}

TextOrigin origin_at(std::string_view text, size_t offset, const TextOrigin& origin) {
  TextOrigin at = origin;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') ++at.line, at.column = 1;
    else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++at.column;  // a character of UTF-8 has one column
  }
  return at;
}

std::string location(std::string_view text, size_t offset, const TextOrigin& origin) {
  const TextOrigin at = origin_at(text, offset, origin);
  return fmt::format("{}:{}:{}", at.file, at.line, at.column);
}

std::string found_at(std::string_view text, size_t offset) {
  constexpr size_t kShown = 40;
  if (offset >= text.size()) return "the end";
  size_t end = offset;
  while (end < text.size() && end - offset < kShown && is_word(text[end])) ++end;
  if (end == offset) ++end;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
  return fmt::format("'{}'", text.substr(offset, end - offset));
}

std::string constructors_help(ValueTarget& target, ValueTarget::Type type, std::string_view name) {
  const std::vector<std::string_view> names = target.constructors(type);
  const std::string help = suggest(name, names);
  return help.empty() ? fmt::format("the constructors are {}", fmt::join(names, ", ")) : help;
}

}  // namespace tenon::runtime
