#include "runtime/executable/code.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tenon::runtime {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

// The number of values of an enumeration, which are 0 and up.
constexpr size_t count_of(DType) { return kDTypeCount; }
constexpr size_t count_of(ScalarOp) { return kScalarOps; }
constexpr size_t count_of(ComputedKind) { return kComputedKinds; }
constexpr size_t count_of(SizeStep::Op) { return static_cast<size_t>(SizeStep::Op::kMax) + 1; }

std::string_view describe(DType) { return "element type"; }
std::string_view describe(ScalarOp) { return "scalar operation"; }
std::string_view describe(ComputedKind) { return "kind of attribute"; }
std::string_view describe(SizeStep::Op) { return "operation of a size"; }

// Visits the members of a structure, or of a constant one.
template <class T, class S>
concept Is = std::same_as<std::remove_const_t<T>, S>;
void members(Is<SizeStep> auto& step, auto&& member) {
  member(step.op);
  member(step.operand);
}
void members(Is<ArenaSlot> auto& slot, auto&& member) {
  member(slot.offset);
  member(slot.bytes);
}
void members(Is<ComputedAttr> auto& attr, auto&& member) {
  member(attr.name);
  member(attr.kind);
  member(attr.count);
}

class CodeWriter {
 public:
  void write(const Instruction& instruction) {
    write(static_cast<uint8_t>(instruction.operation.index()));
    visit_operands(instruction.operation, [&](const auto& operand, Role, std::string_view) { write(operand); });
    write(instruction.layer);
  }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  template <class T>
  void write(const T& value) {
    if constexpr (Number<T>) {
      const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
      bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    } else if constexpr (std::is_enum_v<T> || std::same_as<T, bool>) {
      write(static_cast<uint8_t>(value));
    } else {
      members(value, [&](const auto& member) { write(member); });
    }
  }
  void write(const std::string& text) {
    write(static_cast<uint32_t>(text.size()));
    const auto raw = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  template <class T>
  void write(const std::vector<T>& list) {
    write(static_cast<uint32_t>(list.size()));
    for (const T& value : list) write(value);
  }
  void write(const Attrs& attrs) {
    write(static_cast<uint32_t>(attrs.size()));
    for (const auto& [name, value] : attrs) {
      write(name);
      write(static_cast<uint8_t>(value.index()));
      std::visit([&](const auto& v) { write(v); }, value);
    }
  }

  std::vector<std::byte> bytes_;
};

class CodeReader {
 public:
  explicit CodeReader(std::span<const std::byte> bytes) : left_(bytes) {}

  Expected<std::vector<Instruction>> run() && {
    std::vector<Instruction> code;
    while (!left_.empty() && fault_.empty()) read(code.emplace_back());
    if (!fault_.empty()) return error(fmt::format("instruction {}: {}", code.size() - 1, fault_));
    return code;
  }

 private:
  void fail(std::string fault) {
    if (fault_.empty()) fault_ = std::move(fault);
    left_ = {};
  }
  // That many bytes, or none after a fault.
  std::span<const std::byte> take(size_t bytes) {
    if (bytes > left_.size()) {
      fail("the code is cut off");
      return {};
    }
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }

  void read(Instruction& instruction) {
    uint8_t opcode = 0;
    read(opcode);
    if (opcode >= kOpcodes) return fail(fmt::format("the operation {} is unknown", opcode));
    emplace(instruction.operation, opcode);
    visit_operands(instruction.operation, [&](auto& operand, Role, std::string_view) { read(operand); });
    read(instruction.layer);
  }
  // Makes the alternative with that index, of default value.
  template <class... T>
  static void emplace(std::variant<T...>& variant, size_t index) {
    size_t next = 0;
    ((index == next++ ? void(variant.template emplace<T>()) : void()), ...);
  }

  template <class T>
  void read(T& value) {
    if constexpr (Number<T>) {
      const auto raw = take(sizeof(T));
      if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof(T));
    } else if constexpr (std::is_enum_v<T>) {
      uint8_t id = 0;
      read(id);
      if (id >= count_of(T())) return fail(fmt::format("the {} {} is unknown", describe(T()), id));
      value = static_cast<T>(id);
    } else if constexpr (std::same_as<T, bool>) {
      uint8_t flag = 0;
      read(flag);
      if (flag > 1) return fail(fmt::format("a flag is {}", flag));
      value = flag != 0;
    } else {
      members(value, [&](auto& member) { read(member); });
    }
  }
  void read(std::string& text) {
    uint32_t size = 0;
    read(size);
    const auto raw = take(size);
    text.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  template <class T>
  void read(std::vector<T>& list) {
    uint32_t size = 0;
    read(size);
    // Each element takes a byte at least, so that the list's memory is in proportion to the file's.
    if (size > left_.size()) return fail("the code is cut off");
    for (uint32_t i = 0; i < size && fault_.empty(); ++i) read(list.emplace_back());
  }
  void read(Attrs& attrs) {
    uint32_t size = 0;
    read(size);
    for (uint32_t i = 0; i < size && fault_.empty(); ++i) {
      std::string name;
      read(name);
      uint8_t kind = 0;
      read(kind);
      if (kind >= std::variant_size_v<Attr>)
        return fail(fmt::format("attribute '{}' has a value of unknown kind {}", name, kind));
      Attr value;
      emplace(value, kind);
      std::visit([&](auto& v) { read(v); }, value);
      attrs.insert_or_assign(std::move(name), std::move(value));
    }
  }

  std::span<const std::byte> left_;
  std::string fault_;
};

}  // namespace

std::vector<std::byte> code_bytes(std::span<const Instruction> code) {
  CodeWriter writer;
  for (const Instruction& instruction : code) writer.write(instruction);
  return std::move(writer).take();
}

Expected<std::vector<Instruction>> read_code(std::span<const std::byte> bytes) { return CodeReader(bytes).run(); }

}  // namespace tenon::runtime
