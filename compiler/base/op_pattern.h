// The fusion pattern of an operator or a loop function (after Relay's OpPatternKind).
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::compiler {

// The elements of the operands that one element of the result depends on.
enum class OpPattern : uint8_t {
  kElementwise,  // the element at the same index
  kBroadcast,    // the element at the same index, where operands are repeated along dims
  kInjective,    // one element, whose index is a function of the result's index
  kReduction,    // many elements, combined
  kAnchor,       // a contraction; elementwise operators may follow in its kernel
  kOpaque,
};

std::string_view name(OpPattern pattern);  // "elementwise", "out-elementwise-fusable" for an anchor
std::string_view documentation(OpPattern pattern);

}  // namespace tenon::compiler
