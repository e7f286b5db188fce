#include "compiler/gradient/specialize.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "compiler/gradient/adjoints.h"
#include "compiler/ir/instantiate.h"
#include "compiler/ir/rewrite.h"
#include "support/try.h"

namespace tenon::compiler::gradient {
namespace {

class Specialization {
 public:
  Specialization(Context& context, Module& module) : context_(context), module_(module), dims_(module) {}

  Status run() {
    std::vector<Symbol> waiting;
    for_each_function(module_, [&](Symbol name, const Function& function) {
      if (function.types.empty()) waiting.push_back(name);
    });
    while (!waiting.empty()) {
      const Symbol name = waiting.back();
      waiting.pop_back();
      TENON_TRY(calls(name, waiting));
    }
    std::erase_if(module_.globals, [&](const auto& entry) {
      const Function* function = module_.function(entry.first);
      return function && !function->types.empty();
    });
    return {};
  }

 private:
  static constexpr size_t kMaxCopies = 64;  // of one function

  Status calls(Symbol name, std::vector<Symbol>& made) {
    const Function function = *module_.function(name);
    bool calls_any = false;
    for_each_binding(function.body,
                     [&](const Binding& binding) { calls_any |= polymorphic(binding.value) != nullptr; });
    if (!calls_any && !renamed_params_.contains(name)) return {};
    TENON_TRY_ASSIGN(changed, rewrite(context_, module_, function,
                                      [&](Builder& builder, Binding& binding) -> Expected<std::optional<Atom>> {
                                        const Function* callee = polymorphic(binding.value);
                                        if (callee)
                                          TENON_TRY(specialize(builder, *callee, *call_of(binding.value), made));
                                        return std::nullopt;
                                      }));
    *module_.function(name) = std::move(*changed);
    return {};
  }

  // The polymorphic function that the value calls; nullptr where it calls none.
  const Function* polymorphic(const Value& value) const {
    const Call* call = call_of(value);
    auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const Function* function = callee ? module_.function(*callee) : nullptr;
    return function && !function->types.empty() ? function : nullptr;
  }

  // Makes the call one of a copy, whose arguments have a name for each size.
  Status specialize(Builder& builder, const Function& callee, Call& call, std::vector<Symbol>& made) {
    auto copy = copy_for(builder.function(), std::get<Symbol>(call.callee), callee, call, made);
    if (!copy) {
      if (copy.error().where.empty()) copy.error().where = module_.span(builder.span()).str();
      return std::unexpected(std::move(copy.error()));
    }
    call.callee = *copy;
    call.types.clear();
    for (Atom& arg : call.args) {
      TENON_TRY_ASSIGN(open, opened(builder, arg, dims_));
      arg = *open;
    }
    return {};
  }

  Expected<Symbol> copy_for(const Function& caller, Symbol name, const Function& callee, const Call& call,
                            std::vector<Symbol>& made) {
    const auto found = instantiate(context_, module_, caller, callee, call);
    if (!found) return error(fmt::format("the types of this call of @{} are not determined", context_.name(name)));
    // The sizes that the types have in the caller become dims of the copy, one for each expression.
    std::vector<std::pair<Dim, Dim>> renamed;
    std::vector<Symbol> added;
    std::vector<Type> key;
    std::map<Symbol, Type> types;
    const auto own_dim = [&](Dim dim) {
      if (dim.constant() || dim.erased()) return dim;
      const auto known = std::ranges::find(renamed, dim, &std::pair<Dim, Dim>::first);
      if (known != renamed.end()) return known->second;
      added.push_back(context_.symbol(fmt::format("t{}", renamed.size())));
      renamed.emplace_back(dim, context_.dim(added.back()));
      return renamed.back().second;
    };
    for (const Symbol variable : callee.types) {
      const Type type = context_.map_type(
          found->types.at(variable), [](Type leaf) { return leaf; }, own_dim);
      types.emplace(variable, type);
      key.push_back(type);
    }
    auto& copies = copies_[name];
    if (const auto known = copies.find(key); known != copies.end()) return known->second;
    if (copies.size() >= kMaxCopies) {
      return error(
          fmt::format("@{} is called with more than {} combinations of types", context_.name(name), kMaxCopies), "",
          "a function that calls itself with a larger type each time has no derivative");
    }
    Function copy = callee;
    std::map<Symbol, Dim> own;  // whose names the added dims may have
    for (const Symbol dim : callee.dims) {
      if (std::ranges::find(added, dim) != added.end()) own.emplace(dim, context_.dim(dims_.fresh(context_)));
    }
    for_each_binding(copy.body, [&](Binding& binding) {
      auto* cast = std::get_if<Cast>(&binding.value);
      for (size_t i = 0; cast && i < cast->fresh.size(); ++i) {
        if (std::ranges::find(added, cast->fresh[i]) == added.end()) continue;
        const Symbol fresh = dims_.fresh(context_);
        own.emplace(cast->fresh[i], context_.dim(fresh));
        cast->fresh[i] = fresh;
      }
    });
    substitute(context_, copy, own, types);
    for (Symbol& dim : copy.dims) {
      if (const auto other = own.find(dim); other != own.end())
        for_each_variable(other->second, [&](Symbol fresh) { dim = fresh; });
    }
    copy.dims.insert(copy.dims.end(), added.begin(), added.end());
    copy.types.clear();
    // A call must tell the dims by its arguments.
    std::set<Symbol> visible;
    for (const VarId param : copy.params) {
      context_.map_sizes(copy.type(param), [&](Dim dim) {
        for_each_variable(dim, [&](Symbol dim_name) { visible.insert(dim_name); });
        return dim;
      });
    }
    for (size_t i = 0; i < added.size(); ++i) {
      if (visible.contains(added[i])) continue;
      return error(fmt::format("@{} is called with types that have the size {} inside of other types alone",
                               context_.name(name), context_.str(renamed[i].first)),
                   "", "a derivative needs an argument with this size, or a constant size");
    }
    Symbol symbol;
    for (size_t i = copies.size();; ++i) {
      symbol = context_.symbol(fmt::format("{}.of{}", context_.name(name), i));
      if (!module_.globals.contains(symbol)) break;
    }
    if (name_sizes_of_params(copy)) renamed_params_.insert(symbol);
    copies.emplace(std::move(key), symbol);
    module_.globals.emplace(symbol, std::move(copy));
    made.push_back(symbol);
    return symbol;
  }

  // Gives a dim to each `?` in the types of the parameters, which the body has under their old types; whether there was
  // one.
  bool name_sizes_of_params(Function& function) {
    std::vector<Binding> erasing;
    for (VarId& param : function.params) {
      const VarInfo info = function.info(param);
      if (!has_erased(info.type)) continue;
      const auto named = static_cast<VarId>(function.vars.size());
      function.vars.push_back({with_named_sizes(context_, info.type, dims_, function.dims), info.name, info.span});
      erasing.push_back({param, Cast{named, info.type, {}}});
      param = named;
    }
    std::ranges::copy(erasing, std::inserter(function.body.bindings, function.body.bindings.begin()));
    return !erasing.empty();
  }

  Context& context_;
  Module& module_;
  DimNames dims_;
  std::map<Symbol, std::map<std::vector<Type>, Symbol>> copies_;
  // Copies with dims in place of `?` in the types of their parameters, whose variables are to be renumbered.
  std::set<Symbol> renamed_params_;
};

}  // namespace

Expected<Module> specialize(Context& context, Module module) {
  TENON_TRY(Specialization(context, module).run());
  return module;
}

}  // namespace tenon::compiler::gradient
