#include "compiler/batch/batched.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/batching.h"
#include "support/function_ref.h"
#include "support/try.h"

namespace tenon::compiler::batch {
namespace {

// A value in the batch: a tensor, or a tuple that is bound (`atom`) or only known by its fields.
struct BatchValue {
  std::optional<Atom> atom;
  bool own = false;  // of a bound value: each of its tensors has the leading axis
  std::vector<BatchValue> fields = {};
};

class Batching {
 public:
  Batching(Context& context, Module& module, const Function& function)
      : context_(context), from_(function), builder_(context, module, result_), values_(function.vars.size()) {}

  Expected<Batched> run(const std::vector<bool>& own, bool of_sequences) {
    if (!from_.types.empty()) return error("a function with type variables has no batched form");
    result_.dims = from_.dims;
    result_.bounds = from_.bounds;
    const Symbol name = fresh_dim();
    result_.dims.push_back(name);
    batch_ = context_.dim(name);
    for (size_t i = 0; i < from_.params.size(); ++i) {
      const VarInfo& info = from_.info(from_.params[i]);
      const Type type = own[i] ? with_axis(info.type) : info.type;
      value_of(from_.params[i]) = {builder_.param(type, context_.name(info.name)), own[i]};
    }
    if (of_sequences) lengths_ = builder_.param(context_.tensor(Dims{batch_}, runtime::DType::kI64), "lengths");
    for (const Binding& binding : from_.body.bindings) {
      builder_.at(from_.info(binding.var).span);
      TENON_TRY(bind(binding));
    }
    TENON_TRY_ASSIGN(result, bound(value_of(from_.body.result)));
    builder_.finish(*result);
    return Batched{std::move(result_), std::move(own_results_)};
  }

 private:
  // A name of a dim that the function does not have.
  Symbol fresh_dim() const {
    std::set<Symbol> used(from_.dims.begin(), from_.dims.end());
    for (const VarInfo& info : from_.vars) {
      for_each_part(info.type, [&](Type part) {
        if (!part.tensor()) return;
        for (const Dim dim : part.tensor()->dims) for_each_variable(dim, [&](Symbol name) { used.insert(name); });
      });
    }
    for (int i = 0;; ++i) {
      const Symbol name = context_.symbol(i == 0 ? std::string("b") : fmt::format("b{}", i));
      if (!used.contains(name)) return name;
    }
  }

  Type with_axis(Type type) const {
    if (const TupleType* tuple = type.tuple()) {
      std::vector<Type> fields;
      for (const Type field : tuple->fields) fields.push_back(with_axis(field));
      return context_.tuple(std::move(fields));
    }
    if (!type.tensor()) return type;
    Dims dims = type.tensor()->dims;
    dims.insert(dims.begin(), batch_);
    return context_.tensor(std::move(dims), type.tensor()->dtype);
  }

  BatchValue& value_of(VarId var) { return values_[index(var)]; }
  BatchValue value_of(const Atom& atom) {
    if (const VarId* var = std::get_if<VarId>(&atom)) return value_of(*var);
    return {atom, false};
  }

  std::unexpected<Diagnostic> fail(std::string what) const {
    return error(std::move(what), builder_.module().span(builder_.span()).str());
  }

  Status bind(const Binding& binding) {
    BatchValue& made = value_of(binding.var);
    const std::string_view name = context_.name(from_.info(binding.var).name);
    if (const auto* apply = std::get_if<Apply>(&binding.value)) {
      TENON_TRY_ASSIGN(value, this->apply(*apply, from_.type(binding.var), name));
      made = std::move(*value);
    } else if (const auto* tuple = std::get_if<Tuple>(&binding.value)) {
      for (const Atom& field : tuple->fields) made.fields.push_back(value_of(field));
    } else if (const auto* project = std::get_if<Project>(&binding.value)) {
      const BatchValue whole = value_of(project->tuple);
      if (whole.atom) {
        TENON_TRY_ASSIGN(field, builder_.project(*whole.atom, project->index, name));
        made = {*field, whole.own};
      } else {
        made = whole.fields[project->index];
      }
    } else if (const auto* dim = std::get_if<DimValue>(&binding.value)) {
      TENON_TRY_ASSIGN(value, builder_.dim_value(dim->dim));
      made = {*value, false};
    } else {
      return fail("a value that is neither an operator's result nor a tuple has no batched form");
    }
    return {};
  }

  Expected<BatchValue> apply(const Apply& apply, Type type, std::string_view name) {
    Atoms args;
    std::vector<bool> own;
    for (const Atom& arg : apply.args) {
      const BatchValue value = value_of(arg);
      args.push_back(*value.atom);
      own.push_back(value.own);
    }
    Apply moved{apply.op, apply.attrs, args, apply.computed};
    for (auto& [attr, computed] : moved.computed) {
      auto* atom = std::get_if<Atom>(&computed);
      if (!atom) continue;
      const BatchValue value = value_of(*atom);
      if (value.own)
        return fail(fmt::format("{} is not batched where each instance has its own {}", apply.op->name, attr));
      *atom = *value.atom;
    }
    if (std::ranges::find(own, true) == own.end()) {
      TENON_TRY_ASSIGN(result, builder_.apply(*apply.op, args, moved.attrs, name, moved.computed));
      return BatchValue{*result, false};
    }
    if (!apply.op->batching) return fail(fmt::format("{} has no batching rule", apply.op->name));
    BatchBuilder rule(builder_, moved, type, args, own, batch_, lengths_);
    TENON_TRY(apply.op->batching(rule));
    return BatchValue{rule.result().atom(), true};
  }

  // The value of the result, bound; records which of its tensors are own.
  Expected<Atom> bound(const BatchValue& value) {
    if (!value.atom) {
      Atoms fields;
      for (const BatchValue& field : value.fields) {
        TENON_TRY_ASSIGN(atom, bound(field));
        fields.push_back(*atom);
      }
      return builder_.tuple(std::move(fields));
    }
    TENON_TRY_ASSIGN(type, builder_.type_of(*value.atom));
    for_each_tensor(*type, [&] { own_results_.push_back(value.own); });
    return *value.atom;
  }
  static void for_each_tensor(Type type, FunctionRef<void()> visit) {
    if (!type.tuple()) return visit();
    for (const Type field : type.tuple()->fields) for_each_tensor(field, visit);
  }

  Context& context_;
  const Function& from_;
  Function result_;
  Builder builder_;
  std::vector<BatchValue> values_;  // by variable
  std::vector<bool> own_results_;
  Dim batch_;
  std::optional<Atom> lengths_;  // of the instances' sequences
};

}  // namespace

Expected<Batched> batched(Context& context, Module& module, const Function& function, const std::vector<bool>& own,
                          bool of_sequences) {
  return Batching(context, module, function).run(own, of_sequences);
}

bool is_of_sequences(const Function& function, const std::vector<bool>& own) {
  const Apply* layer = nullptr;
  for (const Binding& binding : function.body.bindings) {
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (apply && layer) return false;
    if (apply) layer = apply;
    else if (!std::holds_alternative<Project>(binding.value) && !std::holds_alternative<Tuple>(binding.value))
      return false;
  }
  if (!layer || !find_batching(layer->op->id).sequences) return false;
  const auto* x = std::get_if<VarId>(&layer->args[0]);
  const auto param = x ? std::ranges::find(function.params, *x) : function.params.end();
  if (param == function.params.end() || !own[static_cast<size_t>(param - function.params.begin())]) return false;
  // The length is a size of the sequence alone.
  const auto length = function.type(*x).tensor()->dims[0].variable();
  return length && std::ranges::none_of(function.params, [&](VarId param) {
           const TensorType* type = function.type(param).tensor();
           if (!type) return true;
           bool found = false;
           for (size_t axis = param == *x ? 1 : 0; axis < type->dims.size(); ++axis)
             for_each_variable(type->dims[axis], [&](Symbol name) { found |= name == *length || axis == 0; });
           return found;
         });
}

}  // namespace tenon::compiler::batch
