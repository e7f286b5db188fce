// The text of attributes and constants.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/module.h"

namespace tenon::compiler {

std::string quote(std::string_view text);
std::string attribute(const Attr& attr);
// Whether both have the same text: floats are the same where their bits are, so that a NaN equals itself and 0 differs
// from -0.
bool same_attr(const Attr& a, const Attr& b);
// 3i64, 0.5f32, true; std::nullopt where the tensor is not a scalar or is a NaN with bits of its own.
std::optional<std::string> literal(const runtime::Tensor& tensor);
// [1, 2]; std::nullopt where the text would not be read as the same bits.
std::optional<std::string> elements(const runtime::Tensor& tensor);

}  // namespace tenon::compiler
