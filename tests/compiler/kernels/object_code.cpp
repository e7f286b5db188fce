#include "tests/compiler/kernels/object_code.h"

#include <elf.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

namespace tenon::compiler::kernels {
namespace {

struct Instruction {
  int64_t begin = 0, end = 0;
  std::string text;
};

template <class T>
T read(std::span<const std::byte> object, size_t offset) {
  T value{};
  if (offset + sizeof value <= object.size()) std::memcpy(&value, object.data() + offset, sizeof value);
  return value;
}

std::span<const std::byte> code_of(std::span<const std::byte> object) {
  const auto header = read<Elf64_Ehdr>(object, 0);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(object, header.e_shoff + i * header.e_shentsize);
    if (section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_EXECINSTR) != 0 &&
        section.sh_offset + section.sh_size <= object.size())
      return object.subspan(section.sh_offset, section.sh_size);
  }
  return {};
}

std::vector<Instruction> disassemble(std::span<const std::byte> code) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86Disassembler();
  const std::unique_ptr<void, decltype(&LLVMDisasmDispose)> context(
      LLVMCreateDisasmCPUFeatures("x86_64-unknown-linux-gnu", "sapphirerapids", "", nullptr, 0, nullptr, nullptr),
      &LLVMDisasmDispose);
  std::vector<Instruction> instructions;
  std::vector<uint8_t> bytes(code.size());
  std::memcpy(bytes.data(), code.data(), code.size());
  for (size_t at = 0; context && at < bytes.size();) {
    std::array<char, 256> text{};
    const size_t size =
        LLVMDisasmInstruction(context.get(), bytes.data() + at, bytes.size() - at, at, text.data(), text.size());
    if (size > 0)
      instructions.push_back({static_cast<int64_t>(at), static_cast<int64_t>(at + size), std::string(text.data() + 1)});
    at += std::max<size_t>(size, 1);
  }
  return instructions;
}

// Where a jump goes, whose operand is the distance from its end.
std::optional<int64_t> target_of(const Instruction& instruction) {
  const std::string& text = instruction.text;
  const size_t operand = text.find('\t');
  int64_t distance = 0;
  if (!text.starts_with('j') || operand == std::string::npos) return std::nullopt;
  const char* last = text.data() + text.size();
  if (std::from_chars(text.data() + operand + 1, last, distance).ptr != last) return std::nullopt;
  return instruction.end + distance;
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
    if (std::ranges::any_of(instructions,
                            [&](const std::string& text) { return text.find(source) != std::string::npos; }))
      found.push_back(store);
  }
  return found;
}

std::vector<InnerLoop> inner_loops(std::span<const std::byte> object) {
  const std::vector<Instruction> instructions = disassemble(code_of(object));
  std::vector<InnerLoop> loops;
  bool has_frame_pointer = false;
  int64_t last_jump = -1;  // the end of the last loop found
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& jump = instructions[i];
    if (jump.text.starts_with("ret")) has_frame_pointer = false;
    if (jump.text == "movq\t%rsp, %rbp") has_frame_pointer = true;
    const auto target = target_of(jump);
    if (!target || *target > jump.begin) continue;
    // A loop that contains another one is not an innermost loop.
    if (*target >= last_jump) {
      InnerLoop loop{.instructions = {}, .has_frame_pointer = has_frame_pointer};
      for (size_t k = i + 1; k-- > 0 && instructions[k].begin >= *target;)
        loop.instructions.insert(loop.instructions.begin(), instructions[k].text);
      loops.push_back(std::move(loop));
    }
    last_jump = std::max(last_jump, jump.end);
  }
  return loops;
}

}  // namespace tenon::compiler::kernels
