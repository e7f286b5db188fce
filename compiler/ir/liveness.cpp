#include "compiler/ir/liveness.h"

namespace tenon::compiler {
namespace {

class Walk {
 public:
  explicit Walk(const Function& function) {
    const size_t vars = function.vars.size();
    live_ = {std::vector<uint32_t>(vars), std::vector<uint32_t>(vars), std::vector<uint32_t>(vars)};
  }

  Liveness run(const Block& body) && {
    block(body);
    return std::move(live_);
  }

 private:
  void bind(VarId var) {
    for (auto* positions : {&live_.first, &live_.last_use, &live_.last_whole_use}) (*positions)[index(var)] = position_;
  }
  void read(const Atom& atom, bool whole = true) {
    auto* var = std::get_if<VarId>(&atom);
    if (!var) return;
    live_.last_use[index(*var)] = position_;
    if (whole) live_.last_whole_use[index(*var)] = position_;
  }

  void block(const Block& block) {
    for (const Binding& binding : block.bindings) {
      ++position_;
      bind(binding.var);
      const bool whole = !std::holds_alternative<Project>(binding.value);
      for_each_operand(binding.value, [&](const Atom& atom) { read(atom, whole); });
      if (auto* lambda = std::get_if<Lambda>(&binding.value)) {
        for_each_use(lambda->body[0], [&](const Atom& atom) { read(atom); });
        continue;
      }
      if (auto* match = std::get_if<Case>(&binding.value)) {
        for (const Arm& arm : match->arms) for_each_variable(arm.pattern, [&](VarId var) { bind(var); });
      }
      for_each_block(binding.value, [&](const Block& inner) { this->block(inner); });
    }
    read(block.result);
  }

  Liveness live_;
  uint32_t position_ = 0;
};

}  // namespace

Liveness find_liveness(const Function& function, const Block& body) { return Walk(function).run(body); }

}  // namespace tenon::compiler
