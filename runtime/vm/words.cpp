#include "runtime/vm/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/executable/liveness.h"

namespace tenon::runtime {
namespace {

class Assembler {
 public:
  Assembler(const Function& function, Words& words, bool fold_kills)
      : function_(function), fold_(fold_kills), words_(words) {}

  // False: an instruction has too many operands.
  bool run() {
    const auto& code = function_.code;
    std::vector<bool> is_target(code.size() + 1, false);
    for (const Instruction& i : code) for_each_target(i.operation, [&](uint32_t target) { is_target[target] = true; });
    std::vector<uint32_t> start(code.size());  // by instruction: its first word
    for (index_ = 0; index_ < code.size(); ++index_) {
      const auto index = index_;
      start[index] = static_cast<uint32_t>(words_.code.size());
      const auto* kill = index + 1 < code.size() ? std::get_if<Kill>(&code[index + 1].operation) : nullptr;
      last_.clear();
      if (fold_ && kill && !is_target[index + 1]) find_last_uses(code[index].operation, *kill);
      std::visit([&](const auto& operation) { emit(operation); }, code[index].operation);
      if (last_.empty()) continue;
      // What the instruction did not take is emptied after it.
      ++index_;
      start[index_] = static_cast<uint32_t>(words_.code.size());
      Registers left;
      for (const Register r : kill->registers) {
        if (std::ranges::find(last_, r) == last_.end()) left.push_back(r);
      }
      if (!left.empty()) emit(Kill{std::move(left)});
    }
    if (too_long_) return false;
    for (const size_t at : targets_) words_.code[at] = start[words_.code[at]];
    words_.start = std::move(start);
    return true;
  }

 private:
  static bool takes(const Operation& operation) {
    const InstructionFacts& row = facts(operation);
    return row.form == Form::kWords && (row.flow == Flow::kNext || row.flow == Flow::kCall);
  }
  // The registers that the instruction reads, does not write, and that are emptied after it.
  void find_last_uses(const Operation& operation, const Kill& kill) {
    if (!takes(operation)) return;
    Registers written;
    for_each_write(operation, [&](Register r) { written.push_back(r); });
    for_each_read(operation, [&](Register r) {
      const bool killed = std::ranges::find(kill.registers, r) != kill.registers.end();
      if (killed && std::ranges::find(written, r) == written.end() && std::ranges::find(last_, r) == last_.end())
        last_.push_back(r);
    });
  }

  void put(uint32_t word) {
    words_.code.push_back(word);
    words_.origin.push_back(index_);
  }
  void put(uint32_t index, Role role) {
    if (role == Role::kTarget) targets_.push_back(words_.code.size());
    if (role == Role::kRead) reads_.push_back(words_.code.size());
    put(index);
  }

  template <class O>
  void emit(const O& operation) {
    const auto opcode = static_cast<uint32_t>(O::kFacts.opcode);
    if constexpr (O::kFacts.form == Form::kExecutable) {
      put(opcode);
      put(index_);
    } else {
      put(opcode | in_first_word(operation) << kOpcodeBits);
      reads_.clear();
      bool is_first = true;
      operation.operands(operation, [&](const auto& operand, Role role, std::string_view) {
        if constexpr (std::same_as<decltype(operand), const uint32_t&>) put(operand, role);
        if constexpr (std::same_as<decltype(operand), const uint64_t&>) {
          put(static_cast<uint32_t>(operand));
          put(static_cast<uint32_t>(operand >> 4 * kByte));
        }
        if constexpr (is_list<decltype(operand)>) {
          if (!std::exchange(is_first, false)) put(static_cast<uint32_t>(operand.size()));
        }
      });
      operation.operands(operation, [&](const auto& operand, Role role, std::string_view) {
        if constexpr (is_list<decltype(operand)>) {
          for (const uint32_t index : operand) put(index, role);
        }
      });
      flag_last_uses();
    }
  }
  static constexpr unsigned kByte = 8;
  template <class T>
  static constexpr bool is_list = std::same_as<T, const std::vector<uint32_t>&>;
  // The operands of a byte, or the length of the first list.
  uint32_t in_first_word(const auto& operation) {
    uint32_t word = 0;
    unsigned shift = 0;
    bool has_list = false;
    operation.operands(operation, [&]<class T>(const T& operand, Role, std::string_view) {
      if constexpr (std::is_enum_v<T>) {
        word |= static_cast<uint32_t>(operand) << shift;
        shift += kByte;
      } else if constexpr (is_list<const T&>) {
        too_long_ |= operand.size() >= size_t{1} << (4 * kByte - kOpcodeBits);
        if (!std::exchange(has_list, true)) word |= static_cast<uint32_t>(operand.size());
      } else {
        static_assert(std::same_as<T, uint32_t> || std::same_as<T, uint64_t>, "an operand of this type has no words");
      }
    });
    assert((!has_list || shift == 0) && "the first word has room for one of the two");
    return word;
  }
  // The last operand of each register takes it.
  void flag_last_uses() {
    for (const Register r : last_) {
      for (size_t i = reads_.size(); i-- > 0;) {
        if (words_.code[reads_[i]] != r) continue;
        words_.code[reads_[i]] |= kLastUse;
        break;
      }
    }
  }

  const Function& function_;
  bool fold_;
  uint32_t index_ = 0;
  Words& words_;
  std::vector<size_t> targets_;  // words that are instructions until all are placed
  std::vector<size_t> reads_;    // words of the current instruction that are registers which it reads
  Registers last_;               // that the current instruction takes
  bool too_long_ = false;
};

}  // namespace

Expected<std::vector<Words>> assemble(const Executable& executable, bool fold_kills) {
  std::vector<Words> all(executable.functions.size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Function& function = executable.functions[i];
    all[i].function = &function;
    all[i].index = i;
    if (!Assembler(function, all[i], fold_kills).run())
      return error(fmt::format("function '{}' has an instruction of too many operands", function.name),
                   executable.name);
  }
  return all;
}

}  // namespace tenon::runtime
