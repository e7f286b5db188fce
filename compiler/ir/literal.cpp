// The text of attributes and constants.
#include "compiler/ir/literal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace tenon::compiler {
namespace {

std::string float_text(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // distinguishes a float from an integer
  return text;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return out + "\"";
}

std::string attribute(const Attr& attr) {
  struct Visitor {
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return float_text(value); }
    std::string operator()(const std::string& value) const { return quote(value); }
    std::string operator()(const std::vector<int64_t>& values) const {
      return fmt::format("[{}]", fmt::join(values, ", "));
    }
    std::string operator()(const std::vector<double>& values) const {
      std::vector<std::string> parts;
      for (double value : values) parts.push_back(float_text(value));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    }
  };
  return std::visit(Visitor{}, attr);
}

// The elements of a small constant; std::nullopt where the text would not be read as the same bits (NaN).
std::optional<std::string> elements(const runtime::Tensor& tensor) {
  std::vector<std::string> parts;
  bool exact = true;
  auto write = [&]<class T>(T) {
    for (const T value : tensor.data<T>()) {
      if constexpr (std::is_floating_point_v<T>) {
        exact &= !std::isnan(value);
        std::string text = std::isinf(value) ? float_text(value) : fmt::format("{}", value);
        parts.push_back(std::move(text));
      } else {
        parts.push_back(fmt::format("{}", static_cast<int64_t>(value)));
      }
    }
  };
  switch (tensor.dtype()) {
    case DType::kBool: write(bool{}); break;
    case DType::kI8: write(int8_t{}); break;
    case DType::kU8: write(uint8_t{}); break;
    case DType::kI16: write(int16_t{}); break;
    case DType::kU16: write(uint16_t{}); break;
    case DType::kI32: write(int32_t{}); break;
    case DType::kI64: write(int64_t{}); break;
    case DType::kF32: write(float{}); break;
    case DType::kF64: write(double{}); break;
  }
  if (!exact) return std::nullopt;
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::optional<std::string> literal(const runtime::Tensor& tensor) {
  if (!tensor.shape().empty()) return std::nullopt;
  if (tensor.dtype() == DType::kBool) return tensor.data<bool>()[0] ? "true" : "false";
  auto text = elements(tensor);
  if (!text || text->find("inf") != std::string::npos) return std::nullopt;
  return text->substr(1, text->size() - 2) + std::string(runtime::name(tensor.dtype()));
}

}  // namespace tenon::compiler
