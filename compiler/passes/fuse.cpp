// Groups operators into kernels: a contraction with the elementwise operators behind it, a reduction with those around
// it, elementwise and moving operators among themselves. Each group becomes a global function with composite "fused",
// which says where kernels begin and end and nothing else: whoever has no kernel for the whole runs its operators one
// by one. What makes i32 of bytes for a contraction belongs to it. Greedy, by the bytes that need not go through
// memory; groups stay convex (compiler/ir/groups.h), have at most one contraction or reduction, and may have several
// results. A loop function that the module calls is grouped as an operator is, by the kind that its indices show; one
// that may fail, or has several results, stays alone.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <queue>
#include <set>

#include "compiler/ir/effects.h"
#include "compiler/ir/groups.h"
#include "compiler/loop/schedule/pattern.h"
#include "compiler/passes/passes.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr uint32_t kMaxOperators = 64;  // of a group
constexpr size_t kReach = 256;          // groups that one question about convexity may look at
constexpr int64_t kUnknownSize = 16;    // what a size that is not known counts as
constexpr uint32_t kNone = UINT32_MAX;

double bytes_of(const TensorType& type) {
  double bytes = runtime::bytes(type.dtype);
  for (const Dim dim : type.dims) bytes *= static_cast<double>(dim.constant().value_or(kUnknownSize));
  return bytes;
}

// The bindings of one block as a graph, and the groups that are made of them.
class Grouping {
 public:
  // `patterns`: of the module's loop functions that a kernel may take in.
  Grouping(Context& context, const Effects& effects, const std::map<Symbol, OpPattern>& patterns,
           const Function& function, const Block& block, const std::vector<uint32_t>& place)
      : context_(context), function_(function), block_(block), place_(place) {
    read(effects);
    groups_.emplace(operands_, kReach);
    traits_.resize(size());
    for (const Binding& binding : block.bindings) patterns_.push_back(pattern(patterns, binding.value));
    for (uint32_t i = 0; i < size(); ++i) traits_[i] = trait(i);
    // A contraction takes what follows it first, so that other operators do not take its tail away.
    contract(true);
    contract(false);
    context_.visit(groups_->steps());
  }

  const ConvexGroups& groups() const { return *groups_; }
  // Whether another group, a block inside another group, or the block's result uses the value of node i.
  const std::vector<bool>& visible() const { return visible_; }

  // Call this when all is grouped.
  void see() {
    visible_.assign(size(), false);
    for (uint32_t i = 0; i < size(); ++i) {
      for (const uint32_t operand : reads_[i]) {
        if (groups_->find(operand) != groups_->find(i)) visible_[operand] = true;
      }
    }
    if (const uint32_t result = node(block_.result); result != kNone) visible_[result] = true;
  }

 private:
  struct Trait {
    bool fusible = false;
    uint32_t operators = 1;
    uint32_t heavy = kNone;      // the contraction or reduction
    bool moves = false;          // has an operator that is not elementwise, nor heavy
    bool widens = false;         // makes wider numbers of bytes for a contraction, and does nothing else
    const Dims* dims = nullptr;  // of all results, where they are the same; nullptr: they differ
  };
  struct Edge {
    double bytes;
    uint32_t from, to;
    bool operator<(const Edge& other) const {
      return std::tie(bytes, from, to) < std::tie(other.bytes, other.from, other.to);
    }
  };

  uint32_t size() const { return static_cast<uint32_t>(block_.bindings.size()); }
  uint32_t node(const Atom& atom) const {
    auto* var = std::get_if<VarId>(&atom);
    const uint32_t at = var ? place_[index(*var)] : kNone;
    return at < size() && block_.bindings[at].var == *var ? at : kNone;
  }

  // Edges of data, and of order: what has an effect keeps its place among its like, but for operators that may fail,
  // which keep theirs among the others alone; what may use the sizes that a match_cast binds stays behind it.
  // (Applications that use them have an operand that does.)
  void read(const Effects& effects) {
    reads_.resize(size());
    operands_.resize(size());
    users_.resize(size());
    uint32_t effect = kNone, cast = kNone;
    std::vector<uint32_t> partial;  // applications that may fail, since the last effect
    for (uint32_t i = 0; i < size(); ++i) {
      const Value& value = block_.bindings[i].value;
      const auto use = [&](const Atom& atom) {
        context_.visit();
        if (const uint32_t from = node(atom); from != kNone && from != i) reads_[i].push_back(from);
      };
      for_each_operand(value, use);
      for_each_block(value, [&](const Block& inner) { for_each_use(inner, use); });
      std::ranges::sort(reads_[i]);
      reads_[i].erase(std::ranges::unique(reads_[i]).begin(), reads_[i].end());
      operands_[i] = reads_[i];
      for (const uint32_t from : reads_[i]) users_[from].push_back(i);
      const bool operation = std::holds_alternative<Apply>(value);
      if (!operation && cast != kNone) operands_[i].push_back(cast);
      if (effects.of(function_, value) == Effect::kNone) continue;
      if (effect != kNone) operands_[i].push_back(effect);
      if (operation) {
        partial.push_back(i);
        continue;
      }
      effect = i;
      operands_[i].insert(operands_[i].end(), partial.begin(), partial.end());
      partial.clear();
      if (std::holds_alternative<Cast>(value)) cast = i;
    }
  }

  static OpPattern pattern(const std::map<Symbol, OpPattern>& patterns, const Value& value) {
    if (auto* apply = std::get_if<Apply>(&value)) return apply->op->pattern;
    auto* call = std::get_if<Call>(&value);
    auto* symbol = call ? std::get_if<Symbol>(&call->callee) : nullptr;
    const auto found = symbol ? patterns.find(*symbol) : patterns.end();
    return found == patterns.end() ? OpPattern::kOpaque : found->second;
  }
  Trait trait(uint32_t i) const {
    const TensorType* type = function_.type(block_.bindings[i].var).tensor();
    if (!type) return {};
    Trait trait{.fusible = true, .dims = &type->dims};
    switch (patterns_[i]) {
      case OpPattern::kElementwise:
      case OpPattern::kBroadcast: trait.widens = widens(i); break;
      case OpPattern::kInjective: trait.moves = true; break;
      case OpPattern::kReduction:
      case OpPattern::kAnchor: trait.heavy = i; break;
      case OpPattern::kOpaque: return {};
    }
    return trait;
  }
  // `cast` of bytes to i32, or `subtract` of a constant from that, which one contraction reads and nothing else:
  // kernels of contractions take the bytes themselves.
  bool widens(uint32_t i) const {
    const auto* apply = std::get_if<Apply>(&block_.bindings[i].value);
    const auto is_cast = [&](uint32_t at) {
      const auto* cast = at == kNone ? nullptr : std::get_if<Apply>(&block_.bindings[at].value);
      if (!cast || cast->op->name != "cast") return false;
      const auto* from = std::get_if<VarId>(&cast->args[0]);
      const TensorType *bytes = from ? function_.type(*from).tensor() : nullptr,
                       *wide = function_.type(block_.bindings[at].var).tensor();
      return bytes && wide && (bytes->dtype == runtime::DType::kI8 || bytes->dtype == runtime::DType::kU8) &&
             wide->dtype == runtime::DType::kI32;
    };
    const auto is_centered = [&](uint32_t at) {
      const auto* less = std::get_if<Apply>(&block_.bindings[at].value);
      return less && less->op->name == "subtract" && std::holds_alternative<ConstId>(less->args[1]) &&
             is_cast(node(less->args[0]));
    };
    const auto alone = [&](uint32_t at) { return users_[at].size() == 1 && node(block_.result) != at; };
    const auto is_contraction = [&](uint32_t at) {
      return std::holds_alternative<Apply>(block_.bindings[at].value) && is_anchor(at);
    };
    if (!apply || !alone(i)) return false;
    const uint32_t user = users_[i][0];
    if (is_centered(i)) return alone(node(apply->args[0])) && is_contraction(user);
    return is_cast(i) &&
           (is_contraction(user) || (is_centered(user) && alone(user) && is_contraction(users_[user][0])));
  }
  bool is_anchor(uint32_t i) const { return patterns_[i] == OpPattern::kAnchor; }

  // Whether the group of `from` and that of `to`, which reads it, make one kernel.
  bool fit(uint32_t from, uint32_t to) const {
    const Trait &above = traits_[groups_->find(from)], &below = traits_[groups_->find(to)];
    if (!above.fusible || !below.fusible || above.operators + below.operators > kMaxOperators) return false;
    if (above.heavy != kNone && below.heavy != kNone) return false;
    if (below.widens && !above.widens) return false;  // the bytes are what is stored
    if (above.heavy != kNone) {
      // What follows is elementwise on the result.
      return !below.moves && below.dims &&
             *below.dims == function_.type(block_.bindings[above.heavy].var).tensor()->dims;
    }
    if (below.heavy == kNone) return true;
    if (above.moves) return false;
    // A contraction reads each operand many times: what makes it stays outside, unless it says how to read bytes.
    return !is_anchor(below.heavy) || above.widens || !feeds(groups_->find(from), below.heavy);
  }
  // Whether the node reads from the group, by itself or by what stands in front of it in its own group.
  bool feeds(uint32_t group, uint32_t node) const {
    return std::ranges::any_of(reads_[node], [&](uint32_t operand) {
      const uint32_t own = groups_->find(operand);
      return own == group || (own == groups_->find(node) && feeds(group, operand));
    });
  }

  bool merge(uint32_t from, uint32_t to) {
    const Trait above = traits_[groups_->find(from)], below = traits_[groups_->find(to)];
    if (!groups_->merge(from, to)) return false;
    Trait& merged = traits_[groups_->find(from)];
    merged = {.fusible = true,
              .operators = above.operators + below.operators,
              .heavy = above.heavy != kNone ? above.heavy : below.heavy,
              .moves = above.moves || below.moves,
              .widens = above.widens && below.widens,
              .dims = above.dims && below.dims && *above.dims == *below.dims ? above.dims : nullptr};
    return true;
  }

  // The value need not be read, and not be written either where nothing else reads it.
  Edge edge(uint32_t from, uint32_t to) const {
    const double bytes = bytes_of(*function_.type(block_.bindings[from].var).tensor());
    return {users_[from].size() == 1 ? 2 * bytes : bytes, from, to};
  }

  // Merges along edges, the heaviest first; with `tails`, only behind contractions and reductions, along edges that
  // come up as their groups grow. A question that was answered with no is asked again while merges change the answer.
  void contract(bool tails) {
    std::priority_queue<Edge> open;
    const auto add = [&](uint32_t from) {
      for (const uint32_t to : users_[from]) {
        if (traits_[from].fusible && traits_[to].fusible) open.push(edge(from, to));
      }
    };
    for (uint32_t i = 0; i < size(); ++i) {
      if (!tails || (traits_[i].fusible && traits_[i].heavy != kNone)) add(i);
    }
    constexpr int kRounds = 3;
    std::vector<Edge> refused;
    for (int round = 0; round < kRounds && !open.empty(); ++round) {
      bool merged = false;
      while (!open.empty()) {
        const auto [bytes, from, to] = open.top();
        open.pop();
        context_.visit();
        if (groups_->find(from) == groups_->find(to)) continue;
        if (fit(from, to) && merge(from, to)) {
          merged = true;
          if (tails) add(to);
        } else {
          refused.push_back({bytes, from, to});
        }
      }
      if (!merged) break;
      open = std::priority_queue<Edge>({}, std::exchange(refused, {}));
    }
  }

  Context& context_;
  const Function& function_;
  const Block& block_;
  const std::vector<uint32_t>& place_;  // by variable: the index of its binding in its block
  // By node: what it reads, that and what it must come behind, and what reads it.
  std::vector<std::vector<uint32_t>> reads_, operands_, users_;
  std::optional<ConvexGroups> groups_;
  std::vector<OpPattern> patterns_;
  std::vector<Trait> traits_;  // by node first, then by group
  std::vector<bool> visible_;
};

class Fusion {
 public:
  Fusion(Context& context, Module& module) : context_(context), module_(module), effects_(context, module) {}

  Status run() {
    for (const auto& [name, global] : module_.globals) {
      auto* loops = std::get_if<loop::Function>(&global);
      // What may fail stays where it is.
      if (!loops || effects_.of_function(name) != Effect::kNone) continue;
      const OpPattern pattern = loop::pattern_of(context_, *loops);
      const bool heavy = pattern == OpPattern::kReduction || pattern == OpPattern::kAnchor;
      // A sum that somebody has scheduled runs as they said.
      if (!heavy || !loop::has_schedule(*loops)) patterns_[name] = pattern;
    }
    std::vector<Symbol> names;
    for_each_function(module_, [&](Symbol name, const Function& function) {
      if (function.target.empty() && function.composite.empty()) names.push_back(name);
    });
    for (const Symbol name : names) {
      function_ = module_.function(name);
      scope_ = function_->dims;
      place_.assign(function_->vars.size(), kNone);
      TENON_TRY(block(function_->body));
    }
    return {};
  }

 private:
  Status block(Block& block) {
    const size_t scope = scope_.size();
    for (uint32_t i = 0; i < block.bindings.size(); ++i) place_[index(block.bindings[i].var)] = i;
    for (Binding& binding : block.bindings) {
      if (auto* cast = std::get_if<Cast>(&binding.value)) {
        scope_.insert(scope_.end(), cast->fresh.begin(), cast->fresh.end());
      }
      Status status;
      for_each_block(binding.value, [&](Block& inner) {
        if (status) status = this->block(inner);
      });
      TENON_TRY(status);
    }
    TENON_TRY(group(block));
    scope_.resize(scope);
    return {};
  }

  Status group(Block& block) {
    Grouping grouping(context_, effects_, patterns_, *function_, block, place_);
    grouping.see();
    const ConvexGroups& groups = grouping.groups();
    std::vector<std::vector<uint32_t>> members(block.bindings.size());
    for (uint32_t i = 0; i < block.bindings.size(); ++i) members[groups.find(i)].push_back(i);
    std::vector<Binding> bindings;
    bindings.reserve(block.bindings.size());
    for (const uint32_t root : groups.topological()) {
      std::vector<VarId> results;
      for (const uint32_t i : members[root]) {
        if (grouping.visible()[i]) results.push_back(block.bindings[i].var);
      }
      // A group that nothing uses is dead code, not ours.
      const bool one = members[root].size() == 1 || results.empty();
      // Sizes as they are say most; where the call could not decide them, as `n * m`, each is a variable of its own.
      if (!one && (kernel(block, members[root], results, false, bindings) ||
                   kernel(block, members[root], results, true, bindings))) {
        continue;
      }
      for (const uint32_t i : members[root]) bindings.push_back(std::move(block.bindings[i]));
    }
    block.bindings = std::move(bindings);
    return {};
  }

  // The members as a function, and a call of it; false where the call would not be well typed (its sizes follow from
  // the arguments' in a way that inference cannot see), with nothing changed.
  bool kernel(const Block& block, const std::vector<uint32_t>& members, const std::vector<VarId>& results,
              bool abstract, std::vector<Binding>& out) {
    Function kernel;
    kernel.composite = "fused";
    Builder builder(context_, module_, kernel);
    std::map<VarId, Atom> copies;
    std::map<Dim, Dim> abstracted;
    std::vector<VarId> args;
    std::set<VarId> inside;
    for (const uint32_t i : members) inside.insert(block.bindings[i].var);
    std::string name = "fused";
    size_t named = 0;
    for (const uint32_t i : members) {
      const Value& value = block.bindings[i].value;
      auto* apply = std::get_if<Apply>(&value);
      if (++named <= 4) {
        name += "_";
        name += apply ? apply->op->name : context_.name(std::get<Symbol>(std::get<Call>(value).callee));
      }
      for_each_operand(value, [&](const Atom& atom) {
        auto* var = std::get_if<VarId>(&atom);
        if (!var || inside.contains(*var) || copies.contains(*var)) return;
        const VarInfo& info = function_->info(*var);
        builder.at(info.span);
        const Type type = abstract ? with_own_dims(info.type, abstracted, kernel) : info.type;
        copies.emplace(*var, builder.param(type, context_.name(info.name)));
        args.push_back(*var);
        if (!abstract) declare_dims(type, kernel);
      });
    }
    for (const uint32_t i : members) {
      context_.visit();
      const Binding& binding = block.bindings[i];
      Value value = binding.value;
      for_each_operand(value, [&](Atom& atom) {
        if (auto* var = std::get_if<VarId>(&atom)) atom = copies.at(*var);
      });
      const VarInfo& info = function_->info(binding.var);
      builder.at(info.span);
      auto copy = builder.bind(std::move(value), info.name);
      if (!copy) return false;
      copies.emplace(binding.var, *copy);
    }
    Atoms values;
    for (const VarId var : results) values.push_back(copies.at(var));
    auto result = values.size() == 1 ? Expected<Atom>(values[0]) : builder.tuple(std::move(values));
    if (!result) return false;
    builder.finish(*result);

    const Symbol symbol = fresh_name(name);
    const Type type = kernel.result;
    module_.globals.emplace(symbol, std::move(kernel));
    Value call = Call{symbol, Atoms(args.begin(), args.end())};
    const Expected<Type> found = infer_value(context_, module_, *function_, call);
    const Type wanted = results.size() == 1 ? function_->type(results[0]) : found ? *found : type;
    if (!found || *found != wanted) {
      module_.globals.erase(symbol);
      --kernels_;
      return false;
    }
    if (results.size() == 1) {
      out.push_back({results[0], std::move(call)});
      return true;
    }
    const auto all = static_cast<VarId>(function_->vars.size());
    function_->vars.push_back({*found, context_.symbol(name), function_->info(results.back()).span});
    place_.push_back(kNone);
    out.push_back({all, std::move(call)});
    for (uint32_t i = 0; i < results.size(); ++i) out.push_back({results[i], Project{all, i}});
    return true;
  }

  // Every size that is not known becomes a variable.
  Type with_own_dims(Type type, std::map<Dim, Dim>& abstracted, Function& kernel) {
    const TensorType* tensor = type.tensor();
    Dims dims;
    for (const Dim dim : tensor->dims) {
      if (dim.constant()) {
        dims.push_back(dim);
        continue;
      }
      const auto [place, is_new] = abstracted.emplace(dim, dim);
      if (is_new) {
        kernel.dims.push_back(context_.symbol(fmt::format("n{}", kernel.dims.size())));
        place->second = context_.dim(kernel.dims.back());
      }
      dims.push_back(place->second);
    }
    return context_.tensor(std::move(dims), tensor->dtype);
  }

  // The variables of a parameter's sizes are the kernel's own.
  void declare_dims(Type type, Function& kernel) {
    for (const Dim dim : type.tensor()->dims) {
      if (dim.constant()) continue;
      for (const Symbol name : scope_) {
        if (std::ranges::find(kernel.dims, name) != kernel.dims.end()) continue;
        const bool uses = dim.variable() ? *dim.variable() == name
                                         : context_.substitute(dim, {{name, context_.dim(int64_t{1})}}) != dim;
        if (uses) kernel.dims.push_back(name);
      }
    }
  }

  Symbol fresh_name(const std::string& base) {
    for (;; ++kernels_) {
      const Symbol symbol = context_.symbol(fmt::format("{}_{}", base, kernels_));
      if (!module_.globals.contains(symbol)) return ++kernels_, symbol;
    }
  }

  Context& context_;
  Module& module_;
  Effects effects_;
  std::map<Symbol, OpPattern> patterns_;  // of loop functions
  Function* function_ = nullptr;
  std::vector<Symbol> scope_;    // dim variables that are in scope
  std::vector<uint32_t> place_;  // by variable of the function: the index of its binding in its block
  uint32_t kernels_ = 0;
};

}  // namespace

Expected<Module> fuse(Context& context, Module module) {
  TENON_TRY(Fusion(context, module).run());
  return infer(context, std::move(module));
}

Pass fuse_pass() {
  return {"fuse", "Groups operators into kernels: a contraction with its elementwise tail, elementwise operators.",
          fuse};
}

}  // namespace tenon::compiler
