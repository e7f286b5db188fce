#include "compiler/ir/interpreter.h"

#include <fmt/format.h>

#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"

namespace tenon::compiler {
namespace {

constexpr int kMaxDepth = 1000;  // of calls; the verifier excludes recursion

std::optional<int64_t> evaluate(Dim dim, const std::map<Symbol, int64_t>& values) {
  int64_t sum = 0;
  for (const auto& [monomial, coefficient] : dim.node->terms) {
    int64_t term = coefficient;
    for (Symbol variable : monomial) {
      auto found = values.find(variable);
      if (found == values.end()) return std::nullopt;
      term *= found->second;
    }
    sum += term;
  }
  return sum;
}

bool matches(Type type, const RunValue& value, const std::map<Symbol, int64_t>& values) {
  if (const TensorType* tensor = type.tensor()) {
    if (!value.tensor || value.tensor.dtype() != tensor->dtype) return false;
    if (value.tensor.shape().size() != tensor->dims.size()) return false;
    for (size_t i = 0; i < tensor->dims.size(); ++i) {
      if (evaluate(tensor->dims[i], values) != value.tensor.shape()[i]) return false;
    }
    return true;
  }
  const TupleType* tuple = type.tuple();
  if (value.tensor || value.fields.size() != tuple->fields.size()) return false;
  for (size_t i = 0; i < tuple->fields.size(); ++i) {
    if (!matches(tuple->fields[i], value.fields[i], values)) return false;
  }
  return true;
}

void bind_dims(Type type, const RunValue& value, std::map<Symbol, int64_t>& values) {
  if (const TensorType* tensor = type.tensor()) {
    if (!value.tensor || value.tensor.shape().size() != tensor->dims.size()) return;
    for (size_t i = 0; i < tensor->dims.size(); ++i) {
      if (const auto variable = tensor->dims[i].variable()) values.emplace(*variable, value.tensor.shape()[i]);
    }
    return;
  }
  const TupleType* tuple = type.tuple();
  for (size_t i = 0; i < std::min(tuple->fields.size(), value.fields.size()); ++i) {
    bind_dims(tuple->fields[i], value.fields[i], values);
  }
}

std::string describe(const RunValue& value) {
  if (value.tensor) {
    return fmt::format("Tensor[{}, {}]", runtime::to_string(value.tensor.shape()), runtime::name(value.tensor.dtype()));
  }
  std::string text;
  for (const RunValue& field : value.fields) text += (text.empty() ? "" : ", ") + describe(field);
  return "(" + text + ")";
}

class Interpreter {
 public:
  Interpreter(const Context& context, const Module& module, const Observer& observer)
      : context_(context), module_(module), observer_(observer) {}

  Expected<RunValue> run(Symbol name, std::span<const RunValue> inputs, int depth) {
    const Function* function = module_.function(name);
    if (!function) return error(fmt::format("there is no function @{}", context_.name(name)));
    if (depth > kMaxDepth) return error(fmt::format("@{} is called too deeply", context_.name(name)));
    std::map<Symbol, int64_t> dims;
    if (Status status = check_inputs(context_, *function, inputs, dims); !status) {
      status.error().what = fmt::format("@{}: {}", context_.name(name), status.error().what);
      return std::unexpected(status.error());
    }
    std::vector<RunValue> values(function->vars.size());
    std::vector<uint32_t> left = use_counts(*function);
    for (size_t i = 0; i < inputs.size(); ++i) values[index(function->params[i])] = inputs[i];
    for (const Binding& binding : function->body.bindings) {
      std::vector<RunValue> args;
      for_each_operand(binding.value, [&](const Atom& atom) { args.push_back(read(values, atom)); });
      Expected<RunValue> value = evaluate_value(binding.value, args, depth);
      if (!value) {
        if (value.error().where.empty()) value.error().where = module_.span(function->info(binding.var).span).str();
        return value;
      }
      if (!matches(function->type(binding.var), *value, dims)) {
        return error(fmt::format("{} gave {}, its type is {}", print(context_, *function, binding.value),
                                 describe(*value), context_.str(function->type(binding.var))),
                     module_.span(function->info(binding.var).span).str(), "", Fault::kInternal);
      }
      if (observer_) observer_(*function, binding, *value);
      values[index(binding.var)] = std::move(*value);
      for_each_operand(binding.value, [&](const Atom& atom) {
        auto* var = std::get_if<VarId>(&atom);
        if (var && --left[index(*var)] == 0) values[index(*var)] = {};
      });
    }
    return read(values, function->body.result);
  }

 private:
  RunValue read(const std::vector<RunValue>& values, const Atom& atom) const {
    if (auto* var = std::get_if<VarId>(&atom)) return values[index(*var)];
    if (auto* constant = std::get_if<ConstId>(&atom)) return {module_.constant(*constant), {}};
    return {};  // a function is no value yet; the verifier excludes it
  }

  Expected<RunValue> evaluate_value(const Value& value, std::vector<RunValue>& args, int depth) {
    struct Visitor {
      Interpreter& self;
      std::vector<RunValue>& args;
      int depth;
      Expected<RunValue> operator()(const Apply& apply) {
        if (!apply.op->reference) {
          return error(fmt::format("{} has no reference kernel", apply.op->name), "", "", Fault::kInternal);
        }
        std::vector<runtime::Tensor> tensors;
        for (RunValue& arg : args) tensors.push_back(std::move(arg.tensor));
        auto results = apply.op->reference(apply.attrs, tensors);
        if (!results) return forward_error(results);
        return RunValue{std::move(results->front()), {}};
      }
      Expected<RunValue> operator()(const Call& call) {
        auto* callee = std::get_if<Symbol>(&call.callee);
        if (!callee) return error("only a global function can be called yet");
        return self.run(*callee, args, depth + 1);
      }
      Expected<RunValue> operator()(const Tuple&) { return RunValue{{}, std::move(args)}; }
      Expected<RunValue> operator()(const Project& project) {
        if (project.index >= args[0].fields.size()) return error(fmt::format("there is no field {}", project.index));
        return std::move(args[0].fields[project.index]);
      }
    };
    return std::visit(Visitor{*this, args, depth}, value);
  }

  const Context& context_;
  const Module& module_;
  const Observer& observer_;
};

}  // namespace

Status check_inputs(const Context& context, const Function& function, std::span<const RunValue> inputs,
                    std::map<Symbol, int64_t>& dims) {
  if (inputs.size() != function.params.size()) {
    return error(fmt::format("needs {} inputs, found {}", function.params.size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) bind_dims(function.type(function.params[i]), inputs[i], dims);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const VarInfo& info = function.info(function.params[i]);
    if (!matches(info.type, inputs[i], dims)) {
      return error(fmt::format("input '{}' must be {}, found {}", context.name(info.name), context.str(info.type),
                               describe(inputs[i])));
    }
  }
  return {};
}

Expected<RunValue> interpret(const Context& context, const Module& module, Symbol function,
                             std::span<const RunValue> inputs, const Observer& observer) {
  return Interpreter(context, module, observer).run(function, inputs, 0);
}

Expected<std::vector<runtime::Tensor>> interpret(const Context& context, const Module& module, Symbol function,
                                                 std::span<const runtime::Tensor> inputs, const Observer& observer) {
  std::vector<RunValue> values;
  for (const runtime::Tensor& input : inputs) values.push_back({input, {}});
  auto result = interpret(context, module, function, values, observer);
  if (!result) return forward_error(result);
  std::vector<runtime::Tensor> tensors;
  if (result->tensor) tensors.push_back(result->tensor);
  for (const RunValue& field : result->fields) tensors.push_back(field.tensor);
  return tensors;
}

}  // namespace tenon::compiler
