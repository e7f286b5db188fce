// Names and documentation of the fusion patterns.
#include "compiler/base/op_pattern.h"

#include <utility>

namespace tenon::compiler {

std::string_view name(OpPattern pattern) {
  switch (pattern) {
    case OpPattern::kElementwise: return "elementwise";
    case OpPattern::kBroadcast: return "broadcast";
    case OpPattern::kInjective: return "injective";
    case OpPattern::kReduction: return "reduction";
    case OpPattern::kAnchor: return "out-elementwise-fusable";
    case OpPattern::kOpaque: return "opaque";
  }
  return "";
}

std::string_view documentation(OpPattern pattern) {
  switch (pattern) {
    case OpPattern::kElementwise: return "an element of the result depends on the elements at the same index";
    case OpPattern::kBroadcast: return "as elementwise, with arguments repeated along dims";
    case OpPattern::kInjective:
      return "an element of the result depends on one element, whose index is a function of the result's index";
    case OpPattern::kReduction: return "an element of the result combines many elements";
    case OpPattern::kAnchor: return "a contraction; elementwise operators may follow in its kernel";
    case OpPattern::kOpaque: return "is not fused";
  }
  return "";
}

}  // namespace tenon::compiler
