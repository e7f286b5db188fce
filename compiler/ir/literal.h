// Attributes and constants as the text has them.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/module.h"

namespace tenon::compiler {

std::string quote(std::string_view text);
std::string attribute(const Attr& attr);
// 3i64, 0.5f32, true; nothing where the tensor is no scalar or the scalar has no such form (inf, not a number).
std::optional<std::string> literal(const runtime::Tensor& tensor);
// [1, 2]; nothing where the text would not give the same bits (not a number).
std::optional<std::string> elements(const runtime::Tensor& tensor);

}  // namespace tenon::compiler
