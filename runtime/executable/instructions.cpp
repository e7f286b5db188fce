#include "runtime/executable/instructions.h"

#include <array>
#include <iterator>
#include <utility>

namespace tenon::runtime {
namespace {

constexpr auto kFactsByOpcode = []<size_t... i>(std::index_sequence<i...>) {
  return std::array{std::variant_alternative_t<i, Operation>::kFacts...};
}
(std::make_index_sequence<kOpcodes>());

constexpr bool is_in_order() {
  for (size_t i = 0; i < kOpcodes; ++i) {
    if (static_cast<size_t>(kFactsByOpcode[i].opcode) != i) return false;
  }
  return true;
}
static_assert(is_in_order(), "Opcode and Operation list the instructions in one order");

}  // namespace

std::span<const InstructionFacts> instruction_facts() { return kFactsByOpcode; }

}  // namespace tenon::runtime
