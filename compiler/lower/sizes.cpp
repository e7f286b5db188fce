// Sizes in lowered functions: which registers have the values of dims, and the checks of match_cast and of the entry.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/ir/sizes.h"
#include "compiler/lower/function.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Registers;
using runtime::Size;
using Op = runtime::SizeStep::Op;

bool mentions(const TensorType& type, const std::vector<Symbol>& dims) {
  return std::ranges::any_of(type.dims, [&](Dim dim) {
    bool found = false;
    for_each_variable(dim, [&](Symbol name) { found |= std::ranges::find(dims, name) != dims.end(); });
    return found;
  });
}

}  // namespace

bool needs_sizes(Context& context, const Module& module, const Function& function) {
  bool needs = !function.bounds.empty();
  for_each_binding(function.body, [&](const Binding& binding) {
    needs |= std::holds_alternative<Cast>(binding.value);
    for_each_dim(binding.value, [&](Dim) { needs = true; });
    const auto* call = std::get_if<Call>(&binding.value);
    const auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const Function* callee = symbol ? module.function(*symbol) : nullptr;
    needs |= callee && !hidden_dims(context, *callee).empty();
  });
  const auto hidden = hidden_dims(context, function);
  return needs || std::ranges::any_of(function.params, [&](VarId param) {
           std::vector<const TensorType*> tensors;
           visible_tensors(function.type(param), tensors);
           return std::ranges::any_of(tensors, [&](const TensorType* type) { return mentions(*type, hidden); });
         });
}

void FunctionLowering::tensors(const Location& location, Type type, std::vector<TensorPart>& parts) {
  if (const TensorType* tensor = type.tensor()) parts.push_back({tensor, location.reg});
  if (const TupleType* tuple = type.tuple()) {
    for (uint32_t i = 0; i < tuple->fields.size(); ++i) {
      std::vector<const TensorType*> inside;
      visible_tensors(tuple->fields[i], inside);
      if (!inside.empty()) tensors(field(location, i), tuple->fields[i], parts);
    }
  }
}

// The register of a dim's value; a dim of the function around a lambda is captured, and one that nothing determines is
// unknown.
runtime::Register FunctionLowering::size(Symbol dim) {
  if (const auto found = sizes_.find(dim); found != sizes_.end()) return found->second;
  const Register reg = fresh();
  if (parent_) {
    captured_.push_back(parent_->size(dim));
    captures_.push_back(reg);
  } else {
    emit(runtime::ComputeSize{.to = reg, .sizes = {}, .value = {}});
    return reg;  // emitted here alone, so it is not known elsewhere
  }
  sizes_.emplace(dim, reg);
  return reg;
}

// The dim as a program over `sizes`, to which the registers that it reads are added; empty where it has no value.
Size FunctionLowering::program(Dim dim, Registers& sizes) {
  if (!dim.valid()) return {};
  Size out;
  bool has_value = true;
  const auto write = [&](auto& self, Dim next) -> void {
    if (next.node->terms.empty()) out.push_back({Op::kConstant, 0});
    bool is_sum = false;
    for (const DimTerm& term : next.node->terms) {
      bool is_product = term.coefficient != 1 || term.factors.empty();
      if (is_product) out.push_back({Op::kConstant, term.coefficient});
      for (const DimAtom* factor : term.factors) {
        if (factor->kind == DimAtom::Kind::kVariable) {
          out.push_back({Op::kDim, static_cast<int64_t>(sizes.size())});
          sizes.push_back(size(factor->name));
        } else if (factor->kind == DimAtom::Kind::kFloorDivide || factor->kind == DimAtom::Kind::kMin ||
                   factor->kind == DimAtom::Kind::kMax) {
          for (const Dim arg : factor->args) self(self, arg);
          const Op op = factor->kind == DimAtom::Kind::kFloorDivide ? Op::kFloorDivide
                        : factor->kind == DimAtom::Kind::kMin       ? Op::kMin
                                                                    : Op::kMax;
          for (size_t i = 1; i < factor->args.size(); ++i) out.push_back({op, 0});
        } else {
          has_value = false;
          out.push_back({Op::kConstant, 0});
        }
        if (std::exchange(is_product, true)) out.push_back({Op::kMultiply, 0});
      }
      if (std::exchange(is_sum, true)) out.push_back({Op::kAdd, 0});
    }
  };
  write(write, dim);
  return has_value ? out : Size();
}

// A register with the value of the dim.
runtime::Register FunctionLowering::value_of(Dim dim) {
  runtime::ComputeSize compute{.to = 0, .sizes = {}, .value = {}};
  compute.value = program(dim, compute.sizes);
  compute.to = fresh();
  const Register to = compute.to;
  emit(std::move(compute));
  return to;
}

// Binds the open dims that the tensors' sizes determine. Returns whether all are bound.
bool FunctionLowering::solve(const std::vector<TensorPart>& parts, std::vector<Symbol>& open) {
  std::vector<const TensorType*> types;
  for (const TensorPart& part : parts) types.push_back(part.type);
  std::set<Symbol> unknown(open.begin(), open.end());
  while (const auto next = solve_next(program_.context, types, unknown)) {
    runtime::BindSize bind{.to = fresh(),
                           .tensor = parts[next->tensor].reg,
                           .axis = static_cast<uint32_t>(next->axis),
                           .sizes = {},
                           .factor = {},
                           .offset = {}};
    unknown.erase(next->dim);
    bind.factor = program(next->factor, bind.sizes);
    bind.offset = program(next->offset, bind.sizes);
    const Register to = bind.to;
    if (bind.factor.empty() || bind.offset.empty()) emit(runtime::ComputeSize{.to = to, .sizes = {}, .value = {}});
    else emit(std::move(bind));
    sizes_.insert_or_assign(next->dim, to);
  }
  std::erase_if(open, [&](Symbol dim) { return !unknown.contains(dim); });
  return open.empty();
}

void FunctionLowering::check(const TensorPart& part, const Registers& known, bool strict, std::string subject,
                             std::string expected) {
  runtime::CheckShape check{.tensor = part.reg,
                            .dtype = part.type->dtype,
                            .axes = {},
                            .sizes = {},
                            .known = known,
                            .strict = strict,
                            .subject = std::move(subject),
                            .expected = std::move(expected)};
  for (const Dim dim : part.type->dims) check.axes.push_back(program(dim, check.sizes));
  emit(std::move(check));
}

// Binds the dims that the parameters' sizes determine, as far as anything reads them, and checks declared bounds. The
// entry checks the sizes of its inputs as well; inside the program types have proved them.
void FunctionLowering::begin_sizes() {
  Context& context = program_.context;
  std::vector<Symbol> open;
  for (const Symbol dim : function_->dims) {
    if (!sizes_.contains(dim)) open.push_back(dim);
  }
  if (function_->dims.empty()) {
    // Inputs without symbolic sizes are checked by the session, except for those inside of tuples.
    for (size_t i = 0; role_ == Role::kEntry && i < function_->params.size(); ++i) {
      const Type type = function_->type(function_->params[i]);
      if (!type.tuple()) continue;
      std::vector<TensorPart> inside;
      tensors({params_[i]}, type, inside);
      for (const TensorPart& part : inside) {
        check(part, {}, false, fmt::format("input '{}'", context.name(function_->info(function_->params[i]).name)),
              context.str(type));
      }
    }
    return;
  }
  if (role_ != Role::kEntry && !needs_sizes(context, program_.module, *function_)) return;
  const auto hidden = hidden_dims(context, *function_);
  std::vector<TensorPart> parts;
  std::vector<size_t> param_of;
  for (size_t i = 0; i < function_->params.size(); ++i) {
    std::vector<const TensorType*> inside;
    visible_tensors(function_->type(function_->params[i]), inside);
    if (!inside.empty()) tensors({params_[i]}, function_->type(function_->params[i]), parts);
    param_of.resize(parts.size(), i);
  }
  solve(parts, open);
  for (const Symbol dim : open) {
    const Register reg = fresh();
    emit(runtime::ComputeSize{.to = reg, .sizes = {}, .value = {}});
    sizes_.emplace(dim, reg);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (role_ != Role::kEntry && !mentions(*parts[i].type, hidden)) continue;
    const VarInfo& info = function_->info(function_->params[param_of[i]]);
    check(parts[i], {}, true, fmt::format("input '{}'", context.name(info.name)), context.str(info.type));
  }
  for (const auto& [dim, bounds] : function_->bounds) {
    const bool visible = std::ranges::any_of(parts, [&](const TensorPart& part) {
      return std::ranges::any_of(part.type->dims, [&](Dim next) {
        bool found = false;
        for_each_variable(next, [&](Symbol name) { found |= name == dim; });
        return found;
      });
    });
    if (!visible) continue;
    emit(runtime::CheckSize{size(dim), bounds.lo.value_or(INT64_MIN), bounds.hi.value_or(INT64_MAX),
                            std::string(context.name(dim))});
  }
}

Status FunctionLowering::cast(const Binding& binding, const Cast& cast) {
  Context& context = program_.context;
  TENON_TRY_ASSIGN(value, locate(cast.value));
  std::vector<TensorPart> parts;
  std::vector<const TensorType*> inside;
  visible_tensors(cast.type, inside);
  if (!inside.empty()) tensors(*value, cast.type, parts);
  std::vector<Symbol> open = cast.fresh;
  for (const Symbol dim : cast.fresh) sizes_.erase(dim);
  solve(parts, open);
  Registers known;
  for (const Symbol dim : open) {
    const Register reg = fresh();
    emit(runtime::ComputeSize{.to = reg, .sizes = {}, .value = {}});
    sizes_.insert_or_assign(dim, reg);
  }
  for (const Symbol dim : cast.fresh) known.push_back(sizes_.at(dim));
  const std::string type = context.str(cast.type), subject = "match_cast: the value";
  for (const TensorPart& part : parts) check(part, known, false, subject, type);
  if (parts.empty() && !known.empty()) {
    // No visible size determines the new dims, so the check fails.
    const int64_t kZero[] = {0};
    emit(runtime::CheckSize{load(runtime::Tensor::of<int64_t>({}, kZero)), 1, 1, subject + ": a size of " + type});
  }
  define(binding.var, std::move(*value));
  return {};
}

}  // namespace tenon::compiler
