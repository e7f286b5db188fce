#include "compiler/kernels/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/ir/operator.h"
#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/written.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

const std::map<std::string_view, Lowering>& table() {
  static const auto* const kTable = [] {
    auto* all = new std::map<std::string_view, Lowering>;
    for (const auto family : {math_lowerings(), binary_lowerings(), activation_lowerings(), move_lowerings(),
                              index_lowerings(), reduce_lowerings(), normalize_lowerings(), contraction_lowerings(),
                              convolution_lowerings(), pool_lowerings(), quantize_lowerings(), random_lowerings(),
                              recurrent_lowerings(), sample_lowerings(), scatter_lowerings(), order_lowerings()}) {
      for (const Lowering& lowering : family) all->emplace(lowering.op, lowering);
    }
    return all;
  }();
  return *kTable;
}

// How many nodes the expression of an element has, as a tree, up to a limit.
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

// Beyond this a value that is read more than once is stored: expressions are trees, which would double with each
// reader.
constexpr size_t kLargeTree = 64;
// Beyond this every value is.
constexpr size_t kLargestTree = 2048;

class Group {
 public:
  Group(Context& context, const Module& module, std::string_view name, const Function& group, const Choices& choices)
      : module_(module), group_(group), choices_(choices), uses_(use_counts(group)), emit_(context, name, group.dims) {}

  Expected<Kernel> run() {
    for (const VarId param : group_.params) {
      const TensorType* type = group_.type(param).tensor();
      if (!type) return error("a parameter of a kernel is no tensor");
      values_[param] = {emit_.argument(emit_.context().name(group_.info(param).name), *type)};
    }
    for (const Binding& binding : group_.body.bindings) {
      TENON_TRY(std::visit([&](const auto& value) { return lower(binding.var, value); }, binding.value));
    }
    TENON_TRY_ASSIGN(results, values(group_.body.result));
    return emit_.finish(*results);
  }

 private:
  Expected<std::vector<Value>> values(const Atom& atom) {
    if (const auto* var = std::get_if<VarId>(&atom)) return values_.at(*var);
    const auto* constant = std::get_if<ConstId>(&atom);
    if (!constant) return error("a function is no operand of a kernel");
    const auto [place, is_new] = constants_.try_emplace(*constant);
    if (is_new) place->second = emit_.constant(module_.constant(*constant));
    return std::vector{place->second};
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

  // What has grown too large to be written where it is read is stored.
  void keep(VarId var, std::string_view name, std::vector<Value> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      Value& value = results[i];
      if (value.buffer) continue;
      Dims anywhere;
      for (size_t d = 0; d < value.rank(); ++d)
        anywhere.push_back(emit_.context().dim(emit_.context().symbol(fmt::format("i{}", d))));
      const size_t size = tree_size(value.at(anywhere), kLargestTree);
      if (size >= kLargestTree || (size > kLargeTree && uses_[index(var)] > 1)) value = emit_.stored(name, value);
    }
    values_[var] = std::move(results);
  }

  Status lower(VarId var, const Apply& apply) {
    const Lowering* lowering = find_lowering(apply.op->name);
    if (!lowering) return error(fmt::format("{} has no loop function", apply.op->name));
    std::vector<Value> args;
    for (const Atom& atom : apply.args) {
      TENON_TRY_ASSIGN(one, values(atom));
      args.push_back(one->front());
    }
    const Type type = group_.type(var);
    std::vector<const TensorType*> types;
    for (const Type part : type.parts()) types.push_back(part.tensor());
    std::string key = key_of(apply);
    Choice choice = choices_ ? choices_(key) : Choice();
    emit_.decide_about(std::move(key), std::move(choice));
    auto results = lowering->lower({emit_, apply.attrs, args, types});
    if (!results) return error(fmt::format("{}: {}", apply.op->name, results.error().what));
    keep(var, apply.op->name, std::move(*results));
    return {};
  }
  Status lower(VarId var, const Call& call) {
    const auto* symbol = std::get_if<Symbol>(&call.callee);
    const loop::Function* function = symbol ? module_.loop_function(*symbol) : nullptr;
    if (!function) return error("a kernel calls loop functions alone");
    std::vector<Value> args;
    for (const Atom& atom : call.args) {
      TENON_TRY_ASSIGN(one, values(atom));
      args.push_back(one->front());
    }
    TENON_TRY_ASSIGN(results, written_in(emit_, *function, args));
    keep(var, emit_.context().name(*symbol), std::move(*results));
    return {};
  }
  Status lower(VarId var, const Tuple& tuple) {
    std::vector<Value> all;
    for (const Atom& field : tuple.fields) {
      TENON_TRY_ASSIGN(one, values(field));
      if (one->size() != 1) return error("tuples are nested");
      all.push_back(one->front());
    }
    values_[var] = std::move(all);
    return {};
  }
  Status lower(VarId var, const Project& project) {
    TENON_TRY_ASSIGN(all, values(project.tuple));
    values_[var] = {all->at(project.index)};
    return {};
  }
  template <class Other>
  Status lower(VarId, const Other&) {
    return error("a kernel is one straight line of operators");
  }

  const Module& module_;
  const Function& group_;
  const Choices& choices_;
  const std::vector<uint32_t> uses_;
  Emitter emit_;
  std::map<VarId, std::vector<Value>> values_;
  std::map<ConstId, Value> constants_;
};

}  // namespace

const Lowering* find_lowering(std::string_view op) {
  const auto found = table().find(op);
  return found == table().end() ? nullptr : &found->second;
}

std::vector<std::string_view> lowered_operators() {
  std::vector<std::string_view> names;
  for (const auto& [name, lowering] : table()) names.push_back(name);
  return names;
}

bool lowered(std::string_view op) { return find_lowering(op) != nullptr; }

Expr broadcast(Context& context, const Value& value, const Dims& at) {
  Dims own(at.end() - static_cast<ptrdiff_t>(value.rank()), at.end());
  for (size_t i = 0; i < own.size(); ++i) {
    if (value.dims[i].constant() == 1) own[i] = context.dim(0);
  }
  return value.at(own);
}

Expected<Kernel> make_kernel(Context& context, const Module& module, std::string_view name, const Function& group,
                             const Choices& choices) {
  return Group(context, module, name, group, choices).run();
}

}  // namespace tenon::compiler::kernels
