#include "runtime/vm/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/executable/liveness.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

class Assembler {
 public:
  Assembler(const Function& function, uint32_t index, bool fold_kills) : function_(function), fold_(fold_kills) {
    words_.function = &function;
    words_.index = index;
  }

  Expected<Words> run() {
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
    if (too_long_) return error(fmt::format("function '{}' has an instruction of too many operands", function_.name));
    for (const size_t at : targets_) words_.code[at] = start[words_.code[at]];
    words_.start = std::move(start);
    return std::move(words_);
  }

 private:
  static bool takes(const Operation& operation) {
    return !std::holds_alternative<CallKernel>(operation) && !std::holds_alternative<CallNative>(operation) &&
           !std::holds_alternative<CallProgram>(operation) && !std::holds_alternative<BindSize>(operation) &&
           !std::holds_alternative<ComputeSize>(operation) && !std::holds_alternative<CheckShape>(operation) &&
           !std::holds_alternative<CheckSize>(operation) && !std::holds_alternative<Kill>(operation) &&
           falls_through(operation) && !std::holds_alternative<Branch>(operation);
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

  void begin(Opcode opcode, size_t count = 0) {
    too_long_ |= count >= size_t{1} << 24;
    put(static_cast<uint32_t>(opcode) | static_cast<uint32_t>(count) << 8);
  }
  void put(uint32_t word) {
    words_.code.push_back(word);
    words_.origin.push_back(index_);
  }
  void target(uint32_t instruction) {
    targets_.push_back(words_.code.size());
    put(instruction);
  }
  // The operands of the instruction; the last one of each register takes it.
  void reads(std::span<const Register> registers) {
    const size_t from = words_.code.size();
    for (const Register r : registers) put(r);
    for (const Register r : last_) {
      for (size_t i = words_.code.size(); i-- > from;) {
        if (words_.code[i] != r) continue;
        words_.code[i] |= kLastUse;
        break;
      }
    }
  }
  void read(Register r) { reads(std::span(&r, 1)); }

  void other() {
    begin(Opcode::kOther);
    put(index_);
  }
  void emit(const CallKernel&) { other(); }
  void emit(const CallNative&) { other(); }
  void emit(const CallProgram&) { other(); }
  void emit(const StartProgram&) { other(); }
  void emit(const StartNative&) { other(); }
  void emit(const BindSize&) { other(); }
  void emit(const ComputeSize&) { other(); }
  void emit(const CheckShape&) { other(); }
  void emit(const CheckSize&) { other(); }
  void emit(const Move& m) {
    begin(Opcode::kMove);
    put(m.to);
    read(m.from);
  }
  void emit(const Kill& kill) {
    begin(Opcode::kKill, kill.registers.size());
    for (const Register r : kill.registers) put(r);
  }
  void emit(const LoadConstant& load) {
    begin(Opcode::kConstant);
    put(load.to);
    put(load.constant);
  }
  void emit(const ScalarCompute& c) {
    begin(Opcode::kScalar, static_cast<size_t>(c.op) | static_cast<size_t>(c.dtype) << 8);
    put(c.to);
    const Register operands[] = {c.a, c.b};
    reads(operands);
  }
  void emit(const Jump& jump) {
    begin(Opcode::kJump);
    target(jump.target);
  }
  void emit(const Branch& branch) {
    begin(Opcode::kBranch);
    put(branch.condition);
    target(branch.otherwise);
  }
  void emit(const Switch& select) {
    begin(Opcode::kSwitch, select.targets.size());
    put(select.value);
    put(select.type);
    for (const uint32_t instruction : select.targets) target(instruction);
  }
  void emit(const Construct& c) {
    begin(Opcode::kConstruct, c.fields.size());
    put(c.to);
    put(c.type);
    put(c.constructor);
    reads(c.fields);
  }
  void emit(const ReadField& f) {
    begin(Opcode::kField);
    put(f.to);
    read(f.from);
    put(f.index);
  }
  void emit(const MakeClosure& c) {
    begin(Opcode::kClosure, c.captures.size());
    put(c.to);
    put(c.function);
    reads(c.captures);
  }
  void emit(const MakeReference& m) {
    begin(Opcode::kMakeReference);
    put(m.to);
    read(m.value);
  }
  void emit(const ReadReference& r) {
    begin(Opcode::kReadReference);
    put(r.to);
    read(r.reference);
  }
  void emit(const WriteReference& w) {
    begin(Opcode::kWriteReference);
    const Register operands[] = {w.reference, w.value};
    reads(operands);
  }
  void emit(const CallFunction& call) {
    begin(Opcode::kCall, call.args.size());
    put(call.function);
    put(static_cast<uint32_t>(call.results.size()));
    reads(call.args);
    for (const Register r : call.results) put(r);
  }
  void emit(const TailCall& call) {
    begin(Opcode::kTail, call.args.size());
    put(call.function);
    for (const Register r : call.args) put(r);
  }
  void emit(const CallClosure& call) {
    begin(Opcode::kApply, call.args.size());
    const bool taken = std::ranges::find(last_, call.closure) != last_.end() &&
                       std::ranges::find(call.args, call.closure) == call.args.end();
    put(call.closure | (taken ? kLastUse : 0));
    put(static_cast<uint32_t>(call.results.size()));
    reads(call.args);
    for (const Register r : call.results) put(r);
  }
  void emit(const TailCallClosure& call) {
    begin(Opcode::kTailApply, call.args.size());
    put(call.closure);
    for (const Register r : call.args) put(r);
  }
  void emit(const Return& ret) {
    begin(Opcode::kReturn, ret.values.size());
    for (const Register r : ret.values) put(r);
  }

  const Function& function_;
  bool fold_;
  uint32_t index_ = 0;
  Words words_;
  std::vector<size_t> targets_;  // words that are instructions until all are placed
  Registers last_;               // that the current instruction takes
  bool too_long_ = false;
};

}  // namespace

Expected<std::vector<Words>> assemble(const Executable& executable, bool fold_kills) {
  std::vector<Words> all;
  for (const Function& function : executable.functions) {
    auto words = Assembler(function, static_cast<uint32_t>(all.size()), fold_kills).run();
    if (!words) {
      words.error().where = executable.name;
      return std::unexpected(std::move(words.error()));
    }
    all.push_back(std::move(*words));
  }
  return all;
}

}  // namespace tenon::runtime
