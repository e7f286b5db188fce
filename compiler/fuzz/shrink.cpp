#include "compiler/fuzz/shrink.h"

#include <algorithm>

#include "compiler/ir/infer.h"
#include "compiler/ir/verifier.h"
#include "support/function_ref.h"

namespace tenon::compiler::fuzz {
namespace {

size_t bindings(const Module& module) {
  size_t count = 0;
  for_each_function(module, [&](Symbol, const Function& function) {
    for_each_binding(function.body, [&](const Binding&) { ++count; });
  });
  return count;
}

// The blocks of a function, the body first; the same order in every copy.
template <class B>
void collect(B& block, std::vector<B*>& found) {
  found.push_back(&block);
  for (auto& binding : block.bindings) for_each_block(binding.value, [&](Block& inner) { collect(inner, found); });
}

class Shrinker {
 public:
  Shrinker(Context& context, Module module, const Fails& fails, int budget)
      : context_(context), module_(std::move(module)), fails_(fails), budget_(budget) {}

  Module run() {
    for (bool smaller = true; smaller && budget_ > 0;) {
      smaller = false;
      smaller |= results();
      smaller |= unused();
      smaller |= globals();
      smaller |= replaced();
      smaller |= spliced();
      smaller |= arms();
      smaller |= constants();
      smaller |= types();
    }
    return std::move(module_);
  }

 private:
  bool keep(Module candidate) {
    if (--budget_ < 0 || !verify(context_, candidate) || !fails_(candidate)) return false;
    module_ = std::move(candidate);
    return true;
  }
  std::vector<Symbol> functions() const {
    std::vector<Symbol> names;
    for_each_function(module_, [&](Symbol name, const Function&) { names.push_back(name); });
    return names;
  }
  Symbol main() const { return context_.symbol("main"); }

  bool globals() {
    bool smaller = false;
    std::vector<Symbol> names;
    for (const auto& [name, global] : module_.globals) names.push_back(name);
    for (Symbol name : names) {
      if (name == main()) continue;
      Module candidate = clone(module_);
      candidate.globals.erase(name);
      smaller |= keep(std::move(candidate));
    }
    return smaller;
  }

  // @main returns one value, one field of a tuple, or nothing.
  bool results() {
    const Function* function = module_.function(main());
    if (!function) return false;
    std::vector<Atom> replacements;
    for (const Binding& binding : function->body.bindings) {
      if (auto* tuple = std::get_if<Tuple>(&binding.value); tuple && binding.var == last(*function)) {
        replacements = tuple->fields;
        // Half of the fields, or all but one.
        const size_t count = tuple->fields.size();
        for (size_t part = count / 2; part > 0; part /= 2) {
          for (size_t from = 0; from < count; from += part) {
            Module candidate = clone(module_);
            Function& changed = *candidate.function(main());
            auto& fields =
                std::get<Tuple>(
                    changed.body.bindings[static_cast<size_t>(&binding - function->body.bindings.data())].value)
                    .fields;
            fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(from),
                         fields.begin() + static_cast<std::ptrdiff_t>(std::min(count, from + part)));
            if (retype(candidate, changed, binding.var) && keep(std::move(candidate))) return true;
          }
        }
      }
    }
    if (function->body.bindings.size() < 2 && replacements.empty()) return false;
    for (const Atom& replacement : replacements) {
      Module candidate = clone(module_);
      Function& changed = *candidate.function(main());
      auto* var = std::get_if<VarId>(&replacement);
      if (!var) continue;
      changed.body.result = replacement;
      changed.result = changed.type(*var);
      if (keep(std::move(candidate))) return true;
    }
    return false;
  }
  static VarId last(const Function& function) {
    auto* var = std::get_if<VarId>(&function.body.result);
    return var ? *var : VarId{UINT32_MAX};
  }
  bool retype(Module& candidate, Function& function, VarId var) {
    for (const Binding& binding : function.body.bindings) {
      if (binding.var != var) continue;
      auto type = infer_value(context_, candidate, function, binding.value);
      if (!type) return false;
      function.vars[index(var)].type = *type;
      if (function.body.result == Atom{var}) function.result = *type;
      return true;
    }
    return false;
  }

  // Unused bindings, with effects or without: all dependent ones together, else one by one from the back.
  bool unused() {
    bool smaller = false;
    for (Symbol name : functions()) {
      Module candidate = clone(module_);
      size_t swept = 0;
      while (const size_t count = sweep(*candidate.function(name))) swept += count;
      if (swept == 0) continue;
      if (keep(std::move(candidate))) {
        smaller = true;
        continue;
      }
      const std::vector<uint32_t> uses = use_counts(*module_.function(name));
      std::vector<VarId> idle;
      for_each_binding(module_.function(name)->body, [&](const Binding& binding) {
        if (uses[index(binding.var)] == 0) idle.push_back(binding.var);
      });
      for (size_t i = idle.size(); i-- > 0;) {
        Module candidate = clone(module_);
        erase(*candidate.function(name), [&](const Binding& binding) { return binding.var == idle[i]; });
        smaller |= keep(std::move(candidate));
      }
    }
    return smaller;
  }
  static size_t sweep(Function& function) {
    const std::vector<uint32_t> uses = use_counts(function);
    return erase(function, [&](const Binding& binding) { return uses[index(binding.var)] == 0; });
  }
  // From the inside: erasing moves the blocks that follow.
  static size_t erase(Function& function, FunctionRef<bool(const Binding&)> gone) {
    std::vector<Block*> blocks;
    collect(function.body, blocks);
    size_t count = 0;
    for (size_t i = blocks.size(); i-- > 0;) count += std::erase_if(blocks[i]->bindings, gone);
    return count;
  }

  // A binding is replaced by an earlier value of its type; bindings with blocks first.
  bool replaced() {
    bool smaller = false;
    for (Symbol name : functions()) {
      std::vector<VarId> order, leaves;
      for_each_binding(module_.function(name)->body, [&](const Binding& binding) {
        size_t blocks = 0;
        for_each_block(binding.value, [&](const Block&) { ++blocks; });
        (blocks > 0 ? order : leaves).push_back(binding.var);
      });
      order.insert(order.end(), leaves.rbegin(), leaves.rend());
      for (VarId var : order) {
        if (budget_ <= 0) return smaller;
        smaller |= replace(name, var);
      }
    }
    return smaller;
  }
  bool replace(Symbol name, VarId var) {
    const Function& function = *module_.function(name);
    const Type type = function.type(var);
    std::vector<Atom> replacements;
    for (VarId param : function.params) {
      if (function.type(param) == type) replacements.emplace_back(param);
    }
    bool reached = false;
    for_each_binding(function.body, [&](const Binding& binding) {
      reached |= binding.var == var;
      if (!reached && replacements.size() < 3 && function.type(binding.var) == type)
        replacements.emplace_back(binding.var);
    });
    if (!reached) return false;  // removed together with another
    const auto shape = type.tensor() ? type.tensor()->shape() : std::nullopt;
    if (shape && runtime::element_count(*shape) <= 64) replacements.emplace_back(ConstId{UINT32_MAX});
    for (Atom replacement : replacements) {
      Module candidate = clone(module_);
      if (std::holds_alternative<ConstId>(replacement)) {
        replacement = candidate.add_constant(runtime::Tensor(type.tensor()->dtype, *shape));
      }
      Function& changed = *candidate.function(name);
      for_each_use(changed.body, [&](Atom& atom) {
        if (atom == Atom{var}) atom = replacement;
      });
      erase(changed, [&](const Binding& binding) { return binding.var == var; });
      if (keep(std::move(candidate))) return true;
    }
    return false;
  }

  // The bindings of an arm or of a closure's body replace the whole value.
  bool spliced() {
    bool smaller = false;
    for (Symbol name : functions()) {
      for (size_t b = 0;; ++b) {
        std::vector<Block*> blocks;
        collect(module_.function(name)->body, blocks);
        if (b >= blocks.size() || budget_ <= 0) break;
        for (size_t i = blocks[b]->bindings.size(); i-- > 0;) {
          size_t inner = 0;
          for_each_block(std::as_const(blocks[b]->bindings[i].value), [&](const Block&) { ++inner; });
          for (size_t arm = 0; arm < inner; ++arm) {
            Module candidate = clone(module_);
            std::vector<Block*> copies;
            collect(candidate.function(name)->body, copies);
            splice(*candidate.function(name), *copies[b], i, arm);
            if (!keep(std::move(candidate))) continue;
            smaller = true;
            blocks.clear();
            collect(module_.function(name)->body, blocks);
            break;
          }
          if (b >= blocks.size()) break;
          i = std::min(i, blocks[b]->bindings.size());
        }
      }
    }
    return smaller;
  }
  static void splice(Function& function, Block& block, size_t at, size_t arm) {
    Binding old = std::move(block.bindings[at]);
    Block taken;
    for_each_block(old.value, [&](Block& inner) {
      if (arm-- == 0) taken = std::move(inner);
    });
    block.bindings.erase(block.bindings.begin() + static_cast<std::ptrdiff_t>(at));
    block.bindings.insert(block.bindings.begin() + static_cast<std::ptrdiff_t>(at),
                          std::make_move_iterator(taken.bindings.begin()),
                          std::make_move_iterator(taken.bindings.end()));
    for_each_use(function.body, [&](Atom& atom) {
      if (atom == Atom{old.var}) atom = taken.result;
    });
  }

  // Removes arms of a match; the last remaining arm then covers everything.
  bool arms() {
    bool smaller = false;
    for (Symbol name : functions()) {
      for (size_t at = 0; budget_ > 0; ++at) {
        std::vector<size_t> counts;
        for_each_binding(module_.function(name)->body, [&](const Binding& binding) {
          auto* match = std::get_if<Case>(&binding.value);
          counts.push_back(match ? match->arms.size() : 0);
        });
        if (at >= counts.size()) break;
        for (size_t arm = counts[at]; arm-- > 0;) {
          Module candidate = clone(module_);
          size_t seen = 0;
          for_each_binding(candidate.function(name)->body, [&](Binding& binding) {
            if (seen++ != at) return;
            auto& arms = std::get<Case>(binding.value).arms;
            if (arms.size() > 1) arms.erase(arms.begin() + static_cast<std::ptrdiff_t>(arm));
          });
          smaller |= counts[at] > 1 && keep(std::move(candidate));
        }
      }
    }
    return smaller;
  }

  bool constants() {
    std::vector<bool> used(module_.constants.size(), false);
    for_each_function(module_, [&](Symbol, const Function& function) {
      for_each_use(function.body, [&](const Atom& atom) {
        if (auto* constant = std::get_if<ConstId>(&atom)) used[index(*constant)] = true;
      });
    });
    if (std::ranges::all_of(used, [](bool is) { return is; })) return false;
    Module candidate = clone(module_);
    std::vector<ConstId> renamed;
    std::vector<runtime::Tensor> kept;
    for (size_t i = 0; i < used.size(); ++i) {
      renamed.push_back(static_cast<ConstId>(kept.size()));
      if (used[i]) kept.push_back(candidate.constants[i]);
    }
    for_each_function(candidate, [&](Symbol, Function& function) {
      for_each_use(function.body, [&](Atom& atom) {
        if (auto* constant = std::get_if<ConstId>(&atom)) atom = renamed[index(*constant)];
      });
    });
    candidate.constants = std::move(kept);
    return keep(std::move(candidate));
  }

  bool types() {
    bool smaller = false;
    std::vector<Symbol> names;
    for (const auto& [name, adt] : module_.adts) names.push_back(name);
    for (Symbol name : names) {
      Module candidate = clone(module_);
      candidate.adts.erase(name);
      smaller |= keep(std::move(candidate));
    }
    // Parameters of @main.
    const Function* function = module_.function(main());
    for (size_t i = function ? function->params.size() : 0; i-- > 0;) {
      Module candidate = clone(module_);
      Function& changed = *candidate.function(main());
      changed.params.erase(changed.params.begin() + static_cast<std::ptrdiff_t>(i));
      smaller |= keep(std::move(candidate));
    }
    return smaller;
  }

  Context& context_;
  Module module_;
  const Fails& fails_;
  int budget_;
};

}  // namespace

Module shrink(Context& context, Module module, const Fails& fails, int budget) {
  const size_t before = bindings(module);
  Module small = Shrinker(context, clone(module), fails, budget).run();
  return bindings(small) <= before ? std::move(small) : std::move(module);
}

}  // namespace tenon::compiler::fuzz
