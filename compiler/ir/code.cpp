// Slots, last uses, tail calls and captures of a function, found once before it runs.
#include "compiler/ir/code.h"

#include <algorithm>

#include "compiler/ir/liveness.h"

namespace tenon::compiler {
namespace {

void add_variables(const Value& value, std::vector<bool>& bound) {
  if (auto* lambda = std::get_if<Lambda>(&value)) {
    for (VarId param : lambda->params) bound[index(param)] = true;
  }
  if (auto* match = std::get_if<Case>(&value)) {
    for (const Arm& arm : match->arms) for_each_variable(arm.pattern, [&](VarId var) { bound[index(var)] = true; });
  }
}

// Pairs each size of `wanted` that has variables with the size at its position in `found`.
class DimPairs {
 public:
  explicit DimPairs(std::vector<std::pair<Dim, Dim>>& pairs) : pairs_(pairs) {}

  void add(Type wanted, Type found) {
    if (!wanted.node->variables || wanted.node->index() != found.node->index()) return;
    if (!seen_.insert({wanted, found}).second) return;
    if (const TensorType* tensor = wanted.tensor()) {
      const Dims& dims = found.tensor()->dims;
      for (size_t i = 0; i < std::min(tensor->dims.size(), dims.size()); ++i) {
        if (!tensor->dims[i].constant() && tensor->dims[i].valid()) pairs_.emplace_back(tensor->dims[i], dims[i]);
      }
    } else if (const TupleType* tuple = wanted.tuple()) {
      add(tuple->fields, found.tuple()->fields);
    } else if (const FunctionType* function = wanted.function()) {
      add(function->params, found.function()->params);
      add(function->result, found.function()->result);
    } else if (const AdtType* adt = wanted.adt()) {
      add(adt->args, found.adt()->args);
    } else if (const ReferenceType* reference = wanted.reference()) {
      add(reference->value, found.reference()->value);
    }
  }

 private:
  void add(const std::vector<Type>& a, const std::vector<Type>& b) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) add(a[i], b[i]);
  }

  std::vector<std::pair<Dim, Dim>>& pairs_;
  TypePairs seen_;
};

class Maker {
 public:
  Maker(const Module& module, const Function& function) : module_(module), function_(function) {}

  std::unique_ptr<Code> function() {
    auto code = std::make_unique<Code>();
    code->params = function_.params;
    fill(*code, function_.body);
    return code;
  }

 private:
  void fill(Code& code, const Block& body) {
    code.function = &function_;
    code.slot.assign(function_.vars.size(), 0);
    std::vector<VarId> first = code.params;
    first.insert(first.end(), code.captures.begin(), code.captures.end());
    if (code.self) first.push_back(*code.self);
    for (VarId var : first) add(code, var);
    code.body = block(code, find_liveness(function_, body), body, first, true);
  }
  static void add(Code& code, VarId var) { code.slot[index(var)] = code.slots++; }

  // `first`: the variables that have values when the block begins.
  CodeBlock block(Code& code, const Liveness& live, const Block& block, const std::vector<VarId>& first, bool tail) {
    CodeBlock result;
    result.block = &block;
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      const Binding& binding = block.bindings[i];
      add(code, binding.var);
      const bool last = tail && i + 1 == block.bindings.size() && block.result == Atom{binding.var};
      result.steps.push_back(step(code, live, binding, last));
    }
    // A slot is emptied by the step that contains its variable's last use; the block's result is read after all steps.
    const auto empty_after_last_use = [&](VarId var) {
      if (result.steps.empty() || block.result == Atom{var}) return;
      const auto next = std::ranges::upper_bound(block.bindings, live.last_use[index(var)], {},
                                                 [&](const Binding& b) { return live.first[index(b.var)]; });
      const auto step = std::max<ptrdiff_t>(next - block.bindings.begin() - 1, 0);
      result.steps[static_cast<size_t>(step)].last_uses.push_back(code.slot[index(var)]);
    };
    for (VarId var : first) empty_after_last_use(var);
    for (const Binding& binding : block.bindings) empty_after_last_use(binding.var);
    return result;
  }

  CodeStep step(Code& code, const Liveness& live, const Binding& binding, bool tail) {
    CodeStep step;
    step.binding = &binding;
    step.tail = tail;
    if (auto* branch = std::get_if<If>(&binding.value)) {
      for (const Block& arm : branch->arms) step.blocks.push_back(block(code, live, arm, {}, tail));
    } else if (auto* match = std::get_if<Case>(&binding.value)) {
      for (const Arm& arm : match->arms) {
        std::vector<VarId> vars;
        for_each_variable(arm.pattern, [&](VarId var) { vars.push_back(var); });
        for (VarId var : vars) add(code, var);
        step.blocks.push_back(block(code, live, arm.block, vars, tail));
      }
    } else if (auto* lambda = std::get_if<Lambda>(&binding.value)) {
      step.lambda = make(*lambda, binding.var);
    } else if (auto* call = std::get_if<Call>(&binding.value)) {
      auto* symbol = std::get_if<Symbol>(&call->callee);
      const Function* callee = symbol ? module_.function(*symbol) : nullptr;
      for (size_t i = 0; callee && i < std::min(callee->params.size(), call->args.size()); ++i) {
        auto* var = std::get_if<VarId>(&call->args[i]);
        if (var) DimPairs(step.sizes).add(callee->type(callee->params[i]), function_.type(*var));
      }
    }
    return step;
  }

  std::unique_ptr<Code> make(const Lambda& lambda, VarId self) {
    std::vector<bool> bound(function_.vars.size(), false);
    for (VarId param : lambda.params) bound[index(param)] = true;
    for_each_binding(lambda.body[0], [&](const Binding& binding) {
      bound[index(binding.var)] = true;
      add_variables(binding.value, bound);
    });
    auto code = std::make_unique<Code>();
    code->params = lambda.params;
    for_each_use(lambda.body[0], [&](const Atom& atom) {
      auto* var = std::get_if<VarId>(&atom);
      if (!var || bound[index(*var)]) return;
      bound[index(*var)] = true;
      if (*var == self) code->self = self;
      else code->captures.push_back(*var);
    });
    fill(*code, lambda.body[0]);
    return code;
  }

  const Module& module_;
  const Function& function_;
};

}  // namespace

void pair_dims(Type wanted, Type found, std::vector<std::pair<Dim, Dim>>& pairs) { DimPairs(pairs).add(wanted, found); }

std::unique_ptr<Code> make_code(const Module& module, const Function& function) {
  return Maker(module, function).function();
}

}  // namespace tenon::compiler
