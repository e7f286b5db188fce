// The documentation of the registry, as `tenon ops` and `tenon ops --markdown` print it.
#pragma once

#include <string>

#include "compiler/ir/operator.h"

namespace tenon::compiler {

// "conv2d(x, w, strides=[1, 1], axis)": arguments, then attributes with their defaults.
std::string signature(const Operator& op);
// "f32 or f64", "as x"
std::string dtypes_text(const Operator& op, const Input& input);
std::string default_text(const AttrSpec& spec);  // "required" where the attribute has no default

// Everything about one operator, as `tenon ops NAME` prints it.
std::string describe(const Operator& op);
// The page of all operators, with a section for each family.
std::string operator_reference(const Context& context);

}  // namespace tenon::compiler
