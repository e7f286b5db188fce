#include "compiler/lower/registers.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/executable/liveness.h"

namespace tenon::compiler {
namespace {

using runtime::Register;

constexpr size_t kMaxRegisters = 1 << 13;  // the graph takes the square of it in bits
constexpr Register kNone = std::numeric_limits<Register>::max();

class Allocation {
 public:
  explicit Allocation(runtime::Function& function)
      : function_(function), conflicts_(function.registers, runtime::RegisterSet(function.registers)) {}

  void run() {
    find_conflicts();
    colour();
    rename();
    remove_moves();
  }

 private:
  void conflict(Register a, Register b) {
    if (a == b) return;
    conflicts_[a].insert(b);
    conflicts_[b].insert(a);
  }

  void find_conflicts() {
    const auto blocks = runtime::live_blocks(function_);
    const auto filled = static_cast<Register>(function_.filled());
    blocks[0].live_in.for_each([&](Register r) {
      for (Register param = 0; param < filled; ++param) conflict(param, r);
    });
    for (Register a = 0; a < filled; ++a) {
      for (Register b = 0; b < a; ++b) conflict(a, b);
    }
    for (const runtime::LiveBlock& block : blocks) {
      runtime::RegisterSet live = block.live_out;
      for (uint32_t i = block.end; i-- > block.begin;) {
        const runtime::Operation& operation = function_.code[i].operation;
        const auto* move = std::get_if<runtime::Move>(&operation);
        runtime::for_each_write(operation, [&](Register defined) {
          live.for_each([&](Register other) {
            if (!move || other != move->from) conflict(defined, other);
          });
          runtime::for_each_write(operation, [&](Register other) { conflict(defined, other); });
        });
        runtime::for_each_write(operation, [&](Register r) { live.erase(r); });
        runtime::for_each_read(operation, [&](Register r) { live.insert(r); });
      }
    }
  }

  bool is_free(Register r, Register colour) const {
    bool free = true;
    conflicts_[r].for_each([&](Register other) { free &= colours_[other] != colour; });
    return free;
  }
  void colour(Register r, Register preferred) {
    if (colours_[r] != kNone) return;
    if (preferred != kNone && is_free(r, preferred)) {
      colours_[r] = preferred;
      return;
    }
    std::vector<bool> taken(function_.registers + size_t{1}, false);
    conflicts_[r].for_each([&](Register other) {
      if (colours_[other] != kNone) taken[colours_[other]] = true;
    });
    colours_[r] = static_cast<Register>(std::ranges::find(taken, false) - taken.begin());
  }

  void colour() {
    colours_.assign(function_.registers, kNone);
    for (Register r = 0; r < function_.filled(); ++r) colours_[r] = r;
    // The source of a Move takes the colour of its destination where that has one: an arm computes its value in place.
    std::vector<Register> destination(function_.registers, kNone);
    for (const runtime::Instruction& i : function_.code) {
      if (const auto* move = std::get_if<runtime::Move>(&i.operation)) destination[move->from] = move->to;
    }
    for (const runtime::Instruction& i : function_.code) {
      const auto* move = std::get_if<runtime::Move>(&i.operation);
      runtime::for_each_write(i.operation, [&](Register r) {
        Register preferred = move ? colours_[move->from] : kNone;
        if (preferred == kNone && destination[r] != kNone) preferred = colours_[destination[r]];
        colour(r, preferred);
      });
    }
  }

  void rename() {
    Register most = static_cast<Register>(function_.filled());
    const auto colour_of = [&](Register r) {
      most = std::max(most, colours_[r] + 1);
      return colours_[r];
    };
    for (runtime::Instruction& i : function_.code) runtime::rename_registers(i.operation, colour_of);
    function_.registers = most;
  }

  void remove_moves() {
    std::vector<uint32_t> position;
    std::vector<runtime::Instruction> code;
    for (runtime::Instruction& i : function_.code) {
      position.push_back(static_cast<uint32_t>(code.size()));
      const auto* move = std::get_if<runtime::Move>(&i.operation);
      if (!move || move->to != move->from) code.push_back(std::move(i));
    }
    for (runtime::Instruction& i : code) {
      runtime::for_each_target(i.operation, [&](uint32_t& target) { target = position[target]; });
    }
    function_.code = std::move(code);
  }

  runtime::Function& function_;
  std::vector<runtime::RegisterSet> conflicts_;  // by register
  std::vector<Register> colours_;
};

}  // namespace

void allocate_registers(runtime::Function& function) {
  if (function.registers <= kMaxRegisters) Allocation(function).run();
}

}  // namespace tenon::compiler
