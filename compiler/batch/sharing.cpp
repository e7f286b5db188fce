#include "compiler/batch/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace tenon::compiler::batch {
namespace {

using Kind = Origin::Kind;

// What is known of a value: where it is from, and for a function which code it has. A closure of known code may be own,
// because it captures own values.
struct Fact {
  Origin origin, code;
};

constexpr Origin kOwnOrigin{Kind::kOwn};
constexpr Fact kAnything{kOwnOrigin, kOwnOrigin};

class Analysis {
 public:
  Analysis(Context& context, const Module& module) : context_(context), module_(module) {}

  Sharing run(Symbol entry, const std::vector<bool>& own) {
    const Function& main = *module_.function(entry);
    visit_function(entry);
    for (size_t i = 0; i < main.params.size(); ++i) {
      const Origin shared{Kind::kShared, entry, static_cast<uint32_t>(index(main.params[i]))};
      join(fact(entry, main.params[i]), own[i] ? kAnything : Fact{shared, {}});
    }
    // Each fact changes at most twice.
    do {
      changed_ = false;
      for (size_t i = 0; i < reached_.size(); ++i) {
        const Symbol name = reached_[i];
        function_ = name;
        const Function& function = *module_.function(name);
        join_result({Kind::kGlobal, name, 0}, results_[name], block(function.body));
      }
    } while (changed_);
    Sharing sharing;
    for (const auto& [name, facts] : facts_) {
      std::vector<Origin>& origins = sharing.origins[name];
      for (const Fact& fact : facts) origins.push_back(fact.origin);
    }
    return sharing;
  }

 private:
  using Location = std::pair<Symbol, VarId>;

  void visit_function(Symbol name) {
    const auto [facts, is_new] = facts_.try_emplace(name);
    if (!is_new) return;
    facts->second.resize(module_.function(name)->vars.size());
    reached_.push_back(name);
    changed_ = true;
  }

  Fact& fact(Symbol function, VarId var) { return facts_.at(function)[index(var)]; }
  Fact& fact(VarId var) { return fact(function_, var); }
  Fact fact(const Atom& atom) {
    if (const auto* var = std::get_if<VarId>(&atom)) return fact(*var);
    if (const auto* global = std::get_if<Symbol>(&atom)) {
      const Origin origin{Kind::kGlobal, *global, 0};
      return {origin, origin};
    }
    return {{Kind::kConstant, {}, static_cast<uint32_t>(index(std::get<ConstId>(atom)))}, {}};
  }

  // Returns whether `to` changed.
  bool merge(Fact& to, const Fact& from) {
    const Origin before = to.code;
    const bool changed = merge(to.origin, from.origin), mixed = merge(to.code, from.code);
    if (to.code == kOwnOrigin) {
      escape(before);
      escape(from.code);
    }
    return changed || mixed;
  }
  static bool merge(Origin& to, const Origin& from) {
    if (from.kind == Kind::kNone || to == from || to.kind == Kind::kOwn) return false;
    to = to.kind == Kind::kNone ? from : kOwnOrigin;
    return true;
  }
  // Of a fact that is kept.
  void join(Fact& to, const Fact& from) { changed_ |= merge(to, from); }

  // A function of this code may be called with any arguments, and its result used in any way.
  void escape(const Origin& code) {
    if (code.kind == Kind::kNone || code.kind == Kind::kOwn || !escaped_.insert(code).second) return;
    if (code.kind == Kind::kGlobal) {
      if (const Function* function = module_.function(code.function)) {
        visit_function(code.function);
        for (const VarId param : function->params) join(fact(code.function, param), kAnything);
        escape(results_[code.function].code);
      }
    } else if (const auto lambda = lambdas_.find({code.function, VarId{code.id}}); lambda != lambdas_.end()) {
      for (const VarId param : lambda->second->params) join(fact(code.function, param), kAnything);
      escape(results_of_lambdas_[lambda->first].code);
    }
  }
  // The result of a function of this code, which escapes with it.
  void join_result(const Origin& code, Fact& result, const Fact& found) {
    join(result, found);
    if (escaped_.contains(code)) escape(result.code);
  }
  void escape(const Atom& atom) { escape(fact(atom).code); }

  Fact block(const Block& block) {
    for (const Binding& binding : block.bindings) {
      context_.visit();
      const Fact made = std::visit([&](const auto& value) { return this->value(binding.var, value); }, binding.value);
      join(fact(binding.var), made);
    }
    return fact(block.result);
  }

  // A value that these determine.
  Origin computed(VarId var, const Atoms& operands) {
    bool own = false;
    for (const Atom& operand : operands) {
      const Origin origin = fact(operand).origin;
      if (origin.kind == Kind::kNone) return {};
      own |= origin.kind == Kind::kOwn;
    }
    return own ? kOwnOrigin : Origin{Kind::kShared, function_, static_cast<uint32_t>(index(var))};
  }
  // Sizes may be those of one instance.
  static bool constant(const Dims& dims) {
    return std::ranges::all_of(dims, [](Dim dim) { return dim.constant().has_value(); });
  }

  Fact value(VarId var, const Apply& apply) {
    Atoms operands = apply.args;
    for (const auto& [name, value] : apply.computed) {
      const auto* dims = std::get_if<Dims>(&value);
      if (dims && !constant(*dims)) return kAnything;
      if (!dims) operands.push_back(std::get<Atom>(value));
    }
    return {computed(var, operands), {}};
  }
  Fact value(VarId var, const DimValue& dim) {
    return {constant({dim.dim}) ? Origin{Kind::kShared, function_, static_cast<uint32_t>(index(var))} : kOwnOrigin, {}};
  }
  Fact value(VarId var, const Call& call) {
    const Origin code = fact(call.callee).code;
    if (code.kind == Kind::kNone) return {};
    if (code.kind == Kind::kGlobal) {
      if (module_.loop_function(code.function)) return {computed(var, call.args), {}};
      if (const Function* function = module_.function(code.function)) {
        visit_function(code.function);
        pass(call.args, code.function, function->params);
        return results_[code.function];
      }
    } else if (code.kind == Kind::kShared) {
      const Location location{code.function, VarId{code.id}};
      if (const auto lambda = lambdas_.find(location); lambda != lambdas_.end()) {
        pass(call.args, code.function, lambda->second->params);
        return results_of_lambdas_[location];
      }
    }
    for (const Atom& arg : call.args) escape(arg);
    return kAnything;
  }
  void pass(const Atoms& args, Symbol function, const std::vector<VarId>& params) {
    for (size_t i = 0; i < args.size(); ++i) join(fact(function, params[i]), fact(args[i]));
  }
  Fact value(VarId, const Gradient& gradient) {
    escape(gradient.call.callee);
    for (const Atom& arg : gradient.call.args) escape(arg);
    return kAnything;
  }
  Fact value(VarId var, const Tuple& tuple) {
    tuples_[{function_, var}] = &tuple;
    for (const Atom& field : tuple.fields) escape(field);
    return {computed(var, tuple.fields), {}};
  }
  Fact value(VarId var, const Project& project) {
    if (const auto* from = std::get_if<VarId>(&project.tuple)) {
      if (const auto tuple = tuples_.find({function_, *from}); tuple != tuples_.end())
        return fact(tuple->second->fields[project.index]);
    }
    return {computed(var, {project.tuple}), kOwnOrigin};
  }
  Fact value(VarId var, const Construct& construct) {
    for (const Atom& field : construct.fields) escape(field);
    return {computed(var, construct.fields), {}};
  }
  Fact value(VarId var, const Lambda& lambda) {
    const Location location{function_, var};
    lambdas_[location] = &lambda;
    const Origin code{Kind::kShared, function_, static_cast<uint32_t>(index(var))};
    join(fact(var), {{}, code});  // the body may call it
    join_result(code, results_of_lambdas_[location], block(lambda.body[0]));
    return {computed(var, captured(var, lambda)), code};
  }
  static Atoms captured(VarId var, const Lambda& lambda) {
    std::set<VarId> inner(lambda.params.begin(), lambda.params.end());
    inner.insert(var);
    for_each_binding(lambda.body[0], [&](const Binding& binding) {
      inner.insert(binding.var);
      if (const auto* nested = std::get_if<Lambda>(&binding.value))
        inner.insert(nested->params.begin(), nested->params.end());
      if (const auto* match = std::get_if<Case>(&binding.value)) {
        for (const Arm& arm : match->arms)
          for_each_variable(arm.pattern, [&](const VarId& bound) { inner.insert(bound); });
      }
    });
    Atoms outer;
    for_each_use(lambda.body[0], [&](const Atom& atom) {
      const auto* used = std::get_if<VarId>(&atom);
      if (used && !inner.contains(*used)) outer.push_back(atom);
    });
    return outer;
  }
  Fact value(VarId var, const If& branch) {
    std::vector<Fact> arms;
    for (const Block& arm : branch.arms) arms.push_back(block(arm));
    return chosen(var, branch.condition, arms);
  }
  Fact value(VarId var, const Case& match) {
    const Origin subject = fact(match.subject).origin;
    std::vector<Fact> arms;
    for (const Arm& arm : match.arms) {
      for_each_variable(arm.pattern, [&](const VarId& bound) {
        const Origin part{Kind::kShared, function_, static_cast<uint32_t>(index(bound))};
        if (subject.kind != Kind::kNone) join(fact(bound), {subject.shared() ? part : kOwnOrigin, kOwnOrigin});
      });
      arms.push_back(block(arm.block));
    }
    return chosen(var, match.subject, arms);
  }
  // The result of one of the arms, which `by` decides.
  Fact chosen(VarId var, const Atom& by, const std::vector<Fact>& arms) {
    const Origin by_origin = fact(by).origin;
    if (by_origin.kind == Kind::kNone) return {};
    Fact joined;
    bool own = !by_origin.shared(), equal = true;
    for (const Fact& arm : arms) {
      if (arm.origin.kind == Kind::kNone) continue;  // it does not end, as far as is known yet
      equal &= joined.origin.kind == Kind::kNone || joined.origin == arm.origin;
      own |= !arm.origin.shared();
      merge(joined, arm);
    }
    if (joined.origin.kind == Kind::kNone || equal) return joined;
    joined.origin = own ? kOwnOrigin : Origin{Kind::kShared, function_, static_cast<uint32_t>(index(var))};
    return joined;
  }
  Fact value(VarId, const Cast& cast) { return fact(cast.value); }
  Fact value(VarId, const MakeReference& make) {
    escape(make.value);
    return kAnything;
  }
  Fact value(VarId, const ReadReference&) { return kAnything; }
  Fact value(VarId, const WriteReference& write) {
    escape(write.value);
    return kAnything;
  }

  Context& context_;
  const Module& module_;
  std::map<Symbol, std::vector<Fact>> facts_;
  std::vector<Symbol> reached_;
  std::map<Symbol, Fact> results_;
  std::map<Location, const Lambda*> lambdas_;
  std::map<Location, Fact> results_of_lambdas_;
  std::map<Location, const Tuple*> tuples_;
  std::set<Origin> escaped_;  // functions that may be called with anything
  Symbol function_{};         // that is visited
  bool changed_ = false;
};

}  // namespace

Sharing sharing(Context& context, const Module& module, Symbol entry, const std::vector<bool>& own) {
  return Analysis(context, module).run(entry, own);
}

std::string str(const Context& context, const Module& module, const Sharing& sharing) {
  const auto text = [](const Origin& origin) -> std::string_view {
    switch (origin.kind) {
      case Kind::kNone: return "not reached";
      case Kind::kConstant:
      case Kind::kGlobal: return "constant";
      case Kind::kShared: return "shared";
      case Kind::kOwn: return "own";
    }
    return "";
  };
  std::string lines;
  for_each_function(module, [&](Symbol name, const Function& function) {
    const auto found = sharing.origins.find(name);
    if (found == sharing.origins.end()) return;
    lines += fmt::format("@{}\n", context.name(name));
    for (size_t i = 0; i < function.vars.size(); ++i) {
      const std::string_view variable = context.name(function.vars[i].name);
      if (!variable.empty()) lines += fmt::format("  %{}: {}\n", variable, text(found->second[i]));
    }
  });
  return lines;
}

}  // namespace tenon::compiler::batch
