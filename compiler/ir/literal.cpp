// The text of attributes and constants.
#include "compiler/ir/literal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tenon::compiler {
namespace {

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
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

// The elements of a small constant; std::nullopt where the text would not be read as the same bits: a NaN that is
// not the one of the literal.
std::optional<std::string> elements(const runtime::Tensor& tensor) {
  std::vector<std::string> parts;
  bool exact = true;
  auto write = [&]<class T>(T) {
    for (const T value : tensor.data<T>()) {
      if constexpr (runtime::is_real<T>) {
        // The shortest text of a short float as an f32 is read as the same short float.
        const auto real = static_cast<runtime::Wide<T>>(value);
        const T nan(std::numeric_limits<double>::quiet_NaN());
        exact &= !std::isnan(real) || std::memcmp(&value, &nan, sizeof(T)) == 0;
        parts.push_back(std::isfinite(real) ? fmt::format("{}", real) : float_text(real));
      } else {
        parts.push_back(
            fmt::format("{}", static_cast<std::conditional_t<std::is_same_v<T, bool>, int, runtime::Wide<T>>>(value)));
      }
    }
  };
  runtime::with_dtype<runtime::kAnyDType>(tensor.dtype(), write);
  if (!exact) return std::nullopt;
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

bool same_attr(const Attr& a, const Attr& b) {
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  if (a.index() != b.index()) return false;
  if (auto* real = std::get_if<double>(&a)) return bits(*real) == bits(std::get<double>(b));
  auto* reals = std::get_if<std::vector<double>>(&a);
  return reals ? std::ranges::equal(*reals, std::get<std::vector<double>>(b), {}, bits, bits) : a == b;
}

std::optional<std::string> literal(const runtime::Tensor& tensor) {
  if (!tensor.shape().empty()) return std::nullopt;
  if (tensor.dtype() == DType::kBool) return tensor.data<bool>()[0] ? "true" : "false";
  auto text = elements(tensor);
  if (!text) return std::nullopt;
  return text->substr(1, text->size() - 2) + std::string(runtime::name(tensor.dtype()));
}

}  // namespace tenon::compiler
