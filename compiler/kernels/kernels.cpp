#include "compiler/kernels/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/operator.h"
#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/short_floats.h"
#include "compiler/kernels/user_defined.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

const std::map<OperatorId, Lowering>& table() {
  static const auto* const kTable = [] {
    auto* lowerings = new std::map<OperatorId, Lowering>;
    for (const auto family : lowering_families()) {
      for (const Lowering& lowering : family) lowerings->emplace(lowering.op, lowering);
    }
    return lowerings;
  }();
  return *kTable;
}

// The number of nodes of an expression, counted as a tree, up to a limit.
size_t tree_size(const Expr& expr, size_t limit) {
  size_t size = 0;
  const std::function<void(const Expr&)> count = [&](const Expr& node) {
    if (++size >= limit) return;
    std::visit(
        [&](const auto& form) {
          using Form = std::remove_cvref_t<decltype(form)>;
          if constexpr (std::same_as<Form, loop::Unary> || std::same_as<Form, loop::Convert>) {
            count(form.value);
          } else if constexpr (std::same_as<Form, loop::Binary>) {
            count(form.left), count(form.right);
          } else if constexpr (std::same_as<Form, loop::Select>) {
            count(form.condition), count(form.then), count(form.otherwise);
          } else if constexpr (std::same_as<Form, loop::LetIndex>) {
            count(form.value), count(form.body);
          }
        },
        node->form);
  };
  count(expr);
  return size;
}

// Whether the expression calls a function that takes longer than a store and loads of its value.
bool calls_slow_function(const Expr& expr) {
  constexpr UnaryOp kSlow[] = {UnaryOp::kExp, UnaryOp::kLog, UnaryOp::kTanh, UnaryOp::kErf,
                               UnaryOp::kSin, UnaryOp::kCos, UnaryOp::kAtan};
  bool found = false;
  loop::for_each_node(expr, [&](const loop::ExprNode& node) {
    const auto* unary = std::get_if<loop::Unary>(&node.form);
    found |= unary && std::ranges::find(kSlow, unary->op) != std::end(kSlow);
  });
  return found;
}

// The variables that are results of the function, alone or in a tuple.
std::set<VarId> results_of(const Function& function) {
  const auto* result = std::get_if<VarId>(&function.body.result);
  if (!result) return {};
  std::set<VarId> results{*result};
  for (const Binding& binding : function.body.bindings) {
    const auto* tuple = std::get_if<Tuple>(&binding.value);
    if (!tuple || binding.var != *result) continue;
    for (const Atom& field : tuple->fields)
      if (const auto* var = std::get_if<VarId>(&field)) results.insert(*var);
  }
  return results;
}

// Nodes above which a tensor with several readers is stored: expressions are trees, whose sizes would double with each
// reader.
constexpr size_t kLargeTree = 64;
// Nodes above which every tensor is stored.
constexpr size_t kLargestTree = 2048;

class Group {
 public:
  Group(Context& context, const Module& module, std::string_view name, const Function& group, const Machine& machine,
        const KnobLookup& knobs)
      : module_(module),
        group_(group),
        knobs_(knobs),
        uses_(use_counts(group)),
        results_(results_of(group)),
        emit_(context, name, group.dims, machine) {}

  Expected<KernelFunction> run(const schedules::UserSchedule* own) {
    for (const VarInfo& info : group_.vars) {
      for (const Type part : info.type.parts()) {
        if (!part.tensor() || loop::kElementTypes.contains(part.tensor()->dtype)) continue;
        return error(fmt::format("{} has no native code", runtime::name(part.tensor()->dtype)));
      }
    }
    for (const VarId param : group_.params) {
      const TensorType* type = group_.type(param).tensor();
      if (!type) return error("a parameter of a kernel must be a tensor");
      values_[param] = {emit_.argument(emit_.context().name(group_.info(param).name), *type)};
    }
    for (const Binding& binding : group_.body.bindings) {
      TENON_TRY(std::visit([&](const auto& value) { return lower(binding.var, value); }, binding.value));
    }
    TENON_TRY_ASSIGN(results, values(group_.body.result));
    return emit_.finish(*results, own);
  }

 private:
  Expected<std::vector<LazyTensor>> values(const Atom& atom) {
    if (const auto* var = std::get_if<VarId>(&atom)) return values_.at(*var);
    const auto* constant = std::get_if<ConstId>(&atom);
    if (!constant) return error("an operand of a kernel cannot be a function");
    const auto [found, is_new] = constants_.try_emplace(*constant);
    if (is_new) found->second = emit_.constant(module_.constant(*constant));
    return std::vector{found->second};
  }

  std::string key_of(const Apply& apply) {
    std::vector<std::string> args;
    for (const Atom& atom : apply.args) {
      const auto* var = std::get_if<VarId>(&atom);
      const auto* constant = std::get_if<ConstId>(&atom);
      if (var) args.push_back(emit_.context().str(group_.type(*var)));
      if (constant)
        args.push_back("const " + emit_.context().str(emit_.context().type_of(module_.constant(*constant))));
    }
    return operator_key(*apply.op, apply.attrs, args);
  }

  // Stores tensors whose expressions have grown too large, or take too long, to be repeated by each reader. A result is
  // stored in any case, so that its other readers load it. In the epilogue of a contraction, the sums were stored too.
  void bind(VarId var, std::string_view name, std::vector<LazyTensor> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      LazyTensor& value = results[i];
      if (value.buffer) continue;
      Dims symbolic_indices;
      for (size_t d = 0; d < value.rank(); ++d)
        symbolic_indices.push_back(emit_.context().dim(emit_.context().symbol(fmt::format("i{}", d))));
      const Expr element = value.at(symbolic_indices);
      const size_t size = tree_size(element, kLargestTree);
      const bool is_slow = results_.contains(var) && !emit_.has_pending() && calls_slow_function(element);
      if (size >= kLargestTree || ((size > kLargeTree || is_slow) && uses_[index(var)] > 1))
        value = emit_.stored(name, value);
    }
    values_[var] = std::move(results);
  }

  // Whether the loops need no attribute that is computed: the sizes are those of the result's type.
  static bool computable(const Apply& apply) {
    return std::ranges::all_of(apply.computed, [&](const auto& attr) {
      return std::holds_alternative<Dims>(attr.second) && apply.op->attribute(attr.first)->in_type;
    });
  }

  // Results in f16 or bf16 are f32 values that are rounded once. Of other types, these would be rounded twice:
  // operators with the attribute `dtype` compute in 64 bits.
  static Status check_rounding(const Apply& apply, const std::vector<Type>& results,
                               const std::vector<LazyTensor>& args) {
    constexpr runtime::DTypes kExactInF32{DType::kBool, DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kF32};
    if (!apply.attrs.contains("dtype") || !runtime::kShortFloats.contains(results[0].tensor()->dtype)) return {};
    if (apply.op->is(ops::kCast) && kExactInF32.contains(args[0].dtype)) return {};
    return error(fmt::format("{} to {} has no native code", apply.op->name, runtime::name(results[0].tensor()->dtype)));
  }

  Status lower(VarId var, const Apply& apply) {
    const Lowering* lowering = find_lowering(apply.op->id);
    if (!lowering) return error(fmt::format("{} has no loop function", apply.op->name));
    if (!computable(apply))
      return error(fmt::format("{} with computed attributes has no loop function", apply.op->name));
    std::vector<LazyTensor> args;
    for (const Atom& atom : apply.args) {
      TENON_TRY_ASSIGN(arg, values(atom));
      args.push_back(widened(emit_, arg->front()));
    }
    const std::vector<Type> parts = group_.type(var).parts();
    std::vector<TensorType> wide;
    for (const Type part : parts) {
      wide.push_back(*part.tensor());
      if (runtime::kShortFloats.contains(wide.back().dtype)) wide.back().dtype = DType::kF32;
    }
    TENON_TRY(check_rounding(apply, parts, args));
    std::vector<const TensorType*> types;
    for (const TensorType& part : wide) types.push_back(&part);
    std::string key = key_of(apply);
    KnobSettings settings = knobs_ ? knobs_(key) : KnobSettings();
    emit_.begin_operator(std::move(key), std::move(settings));
    const OperatorCall call{*apply.op, emit_, apply.attrs, args, types};
    if (lowering->require_sizes) lowering->require_sizes(call);
    auto results = lowering->lower(call);
    if (!results) return error(fmt::format("{}: {}", apply.op->name, results.error().what));
    for (size_t i = 0; i < parts.size(); ++i) (*results)[i] = rounded(emit_, (*results)[i], parts[i].tensor()->dtype);
    bind(var, apply.op->name, std::move(*results));
    return {};
  }
  Status lower(VarId var, const Call& call) {
    const auto* symbol = std::get_if<Symbol>(&call.callee);
    const loop::Function* function = symbol ? module_.loop_function(*symbol) : nullptr;
    if (!function) return error("a kernel can call loop functions only");
    std::vector<LazyTensor> args;
    for (const Atom& atom : call.args) {
      TENON_TRY_ASSIGN(arg, values(atom));
      args.push_back(arg->front());
    }
    TENON_TRY_ASSIGN(results, inline_user_defined(emit_, *function, args));
    bind(var, emit_.context().name(*symbol), std::move(*results));
    return {};
  }
  Status lower(VarId var, const Tuple& tuple) {
    std::vector<LazyTensor> fields;
    for (const Atom& field : tuple.fields) {
      TENON_TRY_ASSIGN(value, values(field));
      if (value->size() != 1) return error("a kernel does not support nested tuples");
      fields.push_back(value->front());
    }
    values_[var] = std::move(fields);
    return {};
  }
  Status lower(VarId var, const Project& project) {
    TENON_TRY_ASSIGN(fields, values(project.tuple));
    values_[var] = {fields->at(project.index)};
    return {};
  }
  template <class Unsupported>
  Status lower(VarId, const Unsupported&) {
    return error("a kernel must be a sequence of operators without control flow");
  }

  const Module& module_;
  const Function& group_;
  const KnobLookup& knobs_;
  const std::vector<uint32_t> uses_;
  const std::set<VarId> results_;
  Emitter emit_;
  std::map<VarId, std::vector<LazyTensor>> values_;
  std::map<ConstId, LazyTensor> constants_;
};

}  // namespace

const Lowering* find_lowering(OperatorId op) {
  const auto found = table().find(op);
  return found == table().end() ? nullptr : &found->second;
}

bool lowered(OperatorId op) { return find_lowering(op) != nullptr; }

std::vector<std::string> kernel_names(const Context& context, const Function& group) {
  std::vector<std::string> names;
  const auto* result = std::get_if<VarId>(&group.body.result);
  if (result && !context.name(group.info(*result).name).empty())
    names.emplace_back(context.name(group.info(*result).name));
  for (const Binding& binding : group.body.bindings) {
    if (const auto* apply = std::get_if<Apply>(&binding.value)) names.emplace_back(apply->op->name);
  }
  return names;
}

Expr broadcast(Context& context, const LazyTensor& value, const Dims& at) {
  Dims indices(at.end() - static_cast<ptrdiff_t>(value.rank()), at.end());
  for (size_t i = 0; i < indices.size(); ++i) {
    if (value.dims[i].constant() == 1) indices[i] = context.dim(0);
  }
  return value.at(indices);
}

Expected<KernelFunction> make_kernel(Context& context, const Module& module, std::string_view name,
                                     const Function& group, const Machine& machine, const KnobLookup& knobs,
                                     const schedules::UserSchedule* own) {
  return Group(context, module, name, group, machine, knobs).run(own);
}

}  // namespace tenon::compiler::kernels
