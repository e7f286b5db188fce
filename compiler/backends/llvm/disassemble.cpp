// The tables of the object are read here, with a check of each offset: LLVM's C interface to objects ends the process
// at a damaged one, and its C++ header is none of C++23.
#include "compiler/backends/llvm/disassemble.h"

#include <elf.h>
#include <fmt/format.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include "support/try.h"

namespace tenon::compiler::native {
namespace {

using Bytes = std::span<const std::byte>;
using Disassembler = std::unique_ptr<void, decltype(&LLVMDisasmDispose)>;

struct Code {
  std::string symbol;
  uint64_t address = 0;
  Bytes bytes;
};

std::unexpected<Diagnostic> damaged(std::string_view what) {
  return error(fmt::format("the native code is damaged: {}", what));
}

// The `size` bytes at `offset`; nothing where they are not all in the object.
std::optional<Bytes> part(Bytes object, uint64_t offset, uint64_t size) {
  if (offset > object.size() || size > object.size() - offset) return std::nullopt;
  return object.subspan(offset, size);
}
template <class T>
std::optional<T> read(Bytes object, uint64_t offset) {
  const auto bytes = part(object, offset, sizeof(T));
  if (!bytes) return std::nullopt;
  T value;
  std::memcpy(&value, bytes->data(), sizeof value);
  return value;
}
// The text at `offset` of a table of strings, which ends with a 0.
std::optional<std::string_view> text_at(Bytes strings, uint64_t offset) {
  if (offset >= strings.size()) return std::nullopt;
  const auto* begin = reinterpret_cast<const char*>(strings.data()) + offset;
  const auto* end = static_cast<const char*>(std::memchr(begin, 0, strings.size() - offset));
  return end ? std::optional(std::string_view(begin, static_cast<size_t>(end - begin))) : std::nullopt;
}

bool has_prefix(std::string_view symbol, std::string_view prefix) {
  return prefix.empty() ||
         (symbol.starts_with(prefix) && (symbol.size() == prefix.size() || symbol[prefix.size()] == '.'));
}

// An ELF object of 32 or of 64 bits.
template <class Header, class Section, class Symbol>
class Object {
 public:
  explicit Object(Bytes object) : object_(object) {}

  Expected<std::vector<Code>> functions(std::string_view prefix) {
    TENON_TRY(read_sections());
    std::vector<Code> functions;
    for (const Section& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      const auto symbols = part(object_, section.sh_offset, section.sh_size);
      if (!symbols || section.sh_link >= sections_.size()) return damaged("its table of symbols is outside of it");
      const Section& names = sections_[section.sh_link];
      const auto strings = part(object_, names.sh_offset, names.sh_size);
      if (!strings) return damaged("its table of strings is outside of it");
      for (uint64_t at = 0; at + sizeof(Symbol) <= symbols->size(); at += sizeof(Symbol))
        TENON_TRY(add(*read<Symbol>(*symbols, at), *strings, prefix, functions));
    }
    std::ranges::sort(functions, {}, &Code::address);
    return functions;
  }

 private:
  Status read_sections() {
    const auto header = read<Header>(object_, 0);
    if (!header) return damaged("it has no header");
    for (uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto section = read<Section>(object_, header->e_shoff + i * header->e_shentsize);
      if (!section || header->e_shoff > object_.size()) return damaged("its table of sections is outside of it");
      sections_.push_back(*section);
    }
    return {};
  }

  Status add(const Symbol& symbol, Bytes strings, std::string_view prefix, std::vector<Code>& functions) const {
    if ((symbol.st_info & 0xf) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) return {};
    const auto name = text_at(strings, symbol.st_name);
    if (!name) return damaged("the name of a symbol is outside of its table");
    if (!has_prefix(*name, prefix)) return {};
    if (symbol.st_shndx >= sections_.size()) return damaged(fmt::format("'{}' is in no section", *name));
    const Section& section = sections_[symbol.st_shndx];
    const auto contents = part(object_, section.sh_offset, section.sh_size);
    const auto code = contents && symbol.st_value >= section.sh_addr
                          ? part(*contents, symbol.st_value - section.sh_addr, symbol.st_size)
                          : std::nullopt;
    if (!code) return damaged(fmt::format("'{}' is outside of its section", *name));
    functions.push_back({std::string(*name), symbol.st_value, *code});
    return {};
  }

  Bytes object_;
  std::vector<Section> sections_;
};

Expected<std::vector<Code>> functions_of(Bytes object, std::string_view prefix) {
  const auto identity = read<std::array<unsigned char, EI_NIDENT>>(object, 0);
  if (!identity || std::memcmp(identity->data(), ELFMAG, SELFMAG) != 0) return damaged("it is no ELF object");
  if ((*identity)[EI_DATA] != ELFDATA2LSB) return damaged("it is not little-endian");
  if ((*identity)[EI_CLASS] == ELFCLASS32) return Object<Elf32_Ehdr, Elf32_Shdr, Elf32_Sym>(object).functions(prefix);
  return Object<Elf64_Ehdr, Elf64_Shdr, Elf64_Sym>(object).functions(prefix);
}

Expected<Disassembler> make_disassembler(const std::string& triple) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllDisassemblers();
  });
  const char* features = triple.starts_with("aarch64") ? "+all"
                         : triple.starts_with("riscv") ? "+m,+a,+f,+d,+c,+v"
                         : triple.starts_with("arm")   ? "+v7,+neon,+vfp4"
                                                       : "";
  Disassembler made(LLVMCreateDisasmCPUFeatures(triple.c_str(), "", features, nullptr, 0, nullptr, nullptr),
                    &LLVMDisasmDispose);
  if (!made) return error(fmt::format("there is no disassembler for {}", triple));
  return made;
}

std::vector<MachineInstruction> instructions_of(void* disassembler, const Code& code) {
  std::vector<MachineInstruction> instructions;
  std::vector<uint8_t> bytes(code.bytes.size());
  std::ranges::transform(code.bytes, bytes.begin(), [](std::byte b) { return static_cast<uint8_t>(b); });
  for (size_t at = 0; at < bytes.size();) {
    std::array<char, 256> text{};
    const size_t size = LLVMDisasmInstruction(disassembler, bytes.data() + at, bytes.size() - at, code.address + at,
                                              text.data(), text.size());
    std::string line = size > 0 ? text.data() : "(unknown)";
    line.erase(0, line.find_first_not_of(" \t"));
    std::ranges::replace(line, '\t', ' ');
    instructions.push_back({code.address + at, std::max<size_t>(size, 1), std::move(line)});
    at += instructions.back().size;
  }
  return instructions;
}

}  // namespace

Expected<std::vector<MachineFunction>> disassemble(Bytes object, const std::string& triple, std::string_view prefix) {
  TENON_TRY_ASSIGN(functions, functions_of(object, prefix));
  TENON_TRY_ASSIGN(disassembler, make_disassembler(triple));
  std::vector<MachineFunction> found;
  for (const Code& code : *functions) found.push_back({code.symbol, instructions_of(disassembler->get(), code)});
  return found;
}

}  // namespace tenon::compiler::native
