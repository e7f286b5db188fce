#include "compiler/batch/control.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/operator.h"

namespace tenon::compiler::batch {
namespace {

constexpr int64_t kSmall = 4096;      // elements; more are worth a batch
constexpr int64_t kUnknownSize = 16;  // the estimate of a dim without a constant value

// Whether a tensor, or each one of a tuple, has integers or booleans, and few of them.
bool is_small(Type type) {
  if (const TupleType* tuple = type.tuple()) return std::ranges::all_of(tuple->fields, is_small);
  const TensorType* tensor = type.tensor();
  if (!tensor || (!runtime::kIntegers.contains(tensor->dtype) && tensor->dtype != DType::kBool)) return false;
  int64_t elements = 1;
  for (const Dim dim : tensor->dims) {
    const int64_t size = dim.constant().value_or(kUnknownSize);
    if (size >= kSmall || (elements *= size) >= kSmall) return false;
  }
  return true;
}

bool is_scalar(Type type) { return type.tensor() && type.tensor()->dims.empty(); }

}  // namespace

ControlSlice::ControlSlice(Context& context, const Module& module) : module_(module) {
  for_each_function(module, [&](Symbol name, const Function& function) {
    slice_[name].assign(function.vars.size(), false);
    std::vector<const Value*>& values = values_[name];
    values.assign(function.vars.size(), nullptr);
    for_each_binding(function.body, [&](const Binding& binding) {
      values[index(binding.var)] = &binding.value;
      const auto* call = std::get_if<Call>(&binding.value);
      const auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
      if (callee) calls_[*callee].push_back({name, call});
    });
  });
  for_each_function(module, [&](Symbol name, const Function& function) { seed(name, function); });
  while (!open_.empty()) {
    const auto [function, var] = open_.back();
    open_.pop_back();
    context.visit();
    visit(function, var);
  }
}

void ControlSlice::seed(Symbol name, const Function& function) {
  for_each_binding(function.body, [&](const Binding& binding) {
    if (const auto* branch = std::get_if<If>(&binding.value)) needs(name, branch->condition);
    if (const auto* match = std::get_if<Case>(&binding.value)) needs(name, match->subject);
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (!apply) return;
    for (const auto& [attr, value] : apply->computed) {
      if (const auto* atom = std::get_if<Atom>(&value)) needs(name, *atom);
    }
    const Type type = function.type(binding.var);
    if (is_scalar(type)) needs(name, binding.var);  // a counter
    if (!has_erased(type)) return;
    for (const Atom& arg : apply->args) needs(name, arg);  // whose elements determine the result's sizes
  });
}

void ControlSlice::needs(Symbol function, const Atom& atom) {
  const auto* var = std::get_if<VarId>(&atom);
  if (!var || contains(function, *var)) return;
  const Type type = module_.function(function)->type(*var);
  if (!is_small(type)) return;
  slice_.at(function)[index(*var)] = true;
  open_.emplace_back(function, *var);
}

void ControlSlice::visit(Symbol name, VarId var) {
  const Function& function = *module_.function(name);
  const Value* value = values_.at(name)[index(var)];
  if (!value) {
    const auto param = std::ranges::find(function.params, var);
    if (param == function.params.end()) return;
    const auto position = static_cast<size_t>(param - function.params.begin());
    for (const CallSite& site : calls_[name]) needs(site.caller, site.call->args[position]);
  } else if (const auto* call = std::get_if<Call>(value)) {
    const auto* callee = std::get_if<Symbol>(&call->callee);
    if (const Function* other = callee ? module_.function(*callee) : nullptr) needs(*callee, other->body.result);
  } else if (std::holds_alternative<If>(*value) || std::holds_alternative<Case>(*value)) {
    for_each_block(*value, [&](const Block& arm) { needs(name, arm.result); });
  } else {
    for_each_operand(*value, [&](const Atom& atom) { needs(name, atom); });
  }
}

}  // namespace tenon::compiler::batch
