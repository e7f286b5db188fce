#include "compiler/remat/rematerialize.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::compiler {
namespace {

constexpr uint32_t kNoBinding = UINT32_MAX;

class Reordering {
 public:
  Reordering(const Function& function, const FunctionLog& log)
      : from_(function), log_(log), current_(function.vars.size()), binding_of_(function.vars.size(), kNoBinding) {
    const auto& bindings = function.body.bindings;
    names_.assign(bindings.size(), true);
    for (const uint32_t position : log.bindings) names_[position] = false;
    fields_.resize(bindings.size());
    for (uint32_t i = 0; i < bindings.size(); ++i) {
      binding_of_[index(bindings[i].var)] = i;
      const auto* project = std::get_if<Project>(&bindings[i].value);
      const auto* tuple = project ? std::get_if<VarId>(&project->tuple) : nullptr;
      const uint32_t made = tuple ? binding_of_[index(*tuple)] : kNoBinding;
      if (made != kNoBinding) fields_[made].push_back(i);
    }
  }

  Function run(std::span<const uint32_t> order) {
    Function result = from_;
    result.body.bindings.clear();
    to_ = &result;
    for (const uint32_t call : order) emit_with_fields(log_.bindings[call]);
    resolve(result.body.result);
    remove_unused(result);
    return result;
  }

 private:
  // A name that a variable had: what its operands were then.
  struct Name {
    VarId var{};
    Atoms operands;
  };

  // The variable by which the operand is known now; tuples, projections and casts are bound where they are read.
  void resolve(Atom& atom) {
    auto* var = std::get_if<VarId>(&atom);
    if (!var) return;
    const uint32_t position = binding_of_[index(*var)];
    if (position == kNoBinding) return;  // a parameter, or a variable of an inner block
    if (names_[position]) name(position);
    if (current_[index(*var)]) *var = current_[index(*var)]->var;  // a lambda reads itself before it is bound
  }

  void name(uint32_t position) {
    const Binding& binding = from_.body.bindings[position];
    Value value = binding.value;
    Atoms operands;
    for_each_operand(value, [&](Atom& operand) {
      resolve(operand);
      operands.push_back(operand);
    });
    std::optional<Name>& current = current_[index(binding.var)];
    if (current && current->operands == operands) return;
    const VarId var = fresh(binding.var);
    current = Name{var, std::move(operands)};
    to_->body.bindings.push_back({var, std::move(value)});
  }

  // The fields of a tuple are projected where it is made, so that those without a reader do not live as long as
  // others.
  void emit_with_fields(uint32_t position) {
    const Binding& binding = from_.body.bindings[position];
    Value value = binding.value;
    for_each_operand(value, [&](Atom& operand) { resolve(operand); });
    for_each_block(value, [&](Block& block) { for_each_use(block, [&](Atom& atom) { resolve(atom); }); });
    const VarId var = fresh(binding.var);
    current_[index(binding.var)] = Name{var, {}};
    to_->body.bindings.push_back({var, std::move(value)});
    project_fields(position);
  }
  void project_fields(uint32_t position) {
    for (const uint32_t field : fields_[position]) {
      if (!names_[field]) continue;
      name(field);
      project_fields(field);
    }
  }

  // The variable itself the first time, then one of its own.
  VarId fresh(VarId var) {
    if (!current_[index(var)]) return var;
    to_->vars.push_back(from_.info(var));
    return static_cast<VarId>(to_->vars.size() - 1);
  }

  // Names that nothing reads.
  void remove_unused(Function& function) const {
    std::vector<uint32_t> uses = use_counts(function);
    auto& bindings = function.body.bindings;
    std::vector<bool> unused(bindings.size(), false);
    for (size_t i = bindings.size(); i-- > 0;) {
      const Value& value = bindings[i].value;
      if (uses[index(bindings[i].var)] > 0 ||
          !(std::holds_alternative<Project>(value) || std::holds_alternative<Tuple>(value)))
        continue;
      unused[i] = true;
      for_each_operand(value, [&](const Atom& operand) {
        if (const auto* var = std::get_if<VarId>(&operand)) --uses[index(*var)];
      });
    }
    size_t kept = 0;
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (!unused[i] && kept != i) bindings[kept] = std::move(bindings[i]);
      kept += !unused[i];
    }
    bindings.resize(kept);
  }

  const Function& from_;
  const FunctionLog& log_;
  Function* to_ = nullptr;
  std::vector<std::optional<Name>> current_;   // by variable of the old function
  std::vector<uint32_t> binding_of_;           // by variable: where the body binds it
  std::vector<bool> names_;                    // by binding: it is no call of the log
  std::vector<std::vector<uint32_t>> fields_;  // by binding: the projections of its value
};

}  // namespace

Function rematerialized(const Function& function, const FunctionLog& log, std::span<const uint32_t> order) {
  return Reordering(function, log).run(order);
}

}  // namespace tenon::compiler
