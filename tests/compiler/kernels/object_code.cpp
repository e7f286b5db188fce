#include "tests/compiler/kernels/object_code.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/backends/llvm/disassemble.h"

namespace tenon::compiler::kernels {
namespace {

using Instruction = native::MachineInstruction;

// Where a jump goes, whose operand is the distance from its end.
std::optional<int64_t> target_of(const Instruction& instruction) {
  const std::string& text = instruction.text;
  const size_t operand = text.find(' ');
  int64_t distance = 0;
  if (!text.starts_with('j') || operand == std::string::npos) return std::nullopt;
  const char* last = text.data() + text.size();
  if (std::from_chars(text.data() + operand + 1, last, distance).ptr != last) return std::nullopt;
  return static_cast<int64_t>(instruction.address + instruction.size) + distance;
}

}  // namespace

int InnerLoop::count(std::initializer_list<std::string_view> names) const {
  return static_cast<int>(std::ranges::count_if(instructions, [&](const std::string& text) {
    return std::ranges::any_of(names, [&](std::string_view name) { return text.starts_with(name); });
  }));
}

std::vector<std::string> InnerLoop::frame_accesses() const {
  std::vector<std::string> found;
  for (const std::string& text : instructions) {
    if (text.find("(%rsp)") != std::string::npos || (has_frame_pointer && text.find("(%rbp)") != std::string::npos))
      found.push_back(text);
  }
  return found;
}

std::vector<std::string> InnerLoop::updates() const {
  std::vector<std::string> found;
  for (const std::string& store : instructions) {
    const size_t last = store.find_last_of(" \t");  // before the destination
    if (!store.ends_with(')') || last == std::string::npos) continue;
    const std::string source = store.substr(last + 1) + ", ";
    if (std::ranges::any_of(instructions, [&](const std::string& text) {
          return !text.starts_with("lea") && text.find(source) != std::string::npos;
        }))
      found.push_back(store);
  }
  return found;
}

namespace {

void add_inner_loops(const std::vector<Instruction>& instructions, std::vector<InnerLoop>& loops) {
  bool has_frame_pointer = false;
  int64_t last_jump = -1;  // the end of the last loop found
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& jump = instructions[i];
    if (jump.text == "movq %rsp, %rbp") has_frame_pointer = true;
    const auto target = target_of(jump);
    if (!target || *target > static_cast<int64_t>(jump.address)) continue;
    // A loop that contains another one is not an innermost loop.
    if (*target >= last_jump) {
      InnerLoop loop{.instructions = {}, .has_frame_pointer = has_frame_pointer};
      for (size_t k = i + 1; k-- > 0 && static_cast<int64_t>(instructions[k].address) >= *target;)
        loop.instructions.insert(loop.instructions.begin(), instructions[k].text);
      loops.push_back(std::move(loop));
    }
    last_jump = std::max(last_jump, static_cast<int64_t>(jump.address + jump.size));
  }
}

}  // namespace

std::vector<InnerLoop> inner_loops(std::span<const std::byte> object) {
  std::vector<InnerLoop> loops;
  const auto functions = native::disassemble(object, "x86_64-unknown-linux-gnu", "");
  if (!functions) return loops;
  for (const native::MachineFunction& function : *functions) add_inner_loops(function.instructions, loops);
  return loops;
}

}  // namespace tenon::compiler::kernels
