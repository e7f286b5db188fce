#include "compiler/batch/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/batch/batched.h"
#include "compiler/batch/control.h"
#include "compiler/batch/sharing.h"
#include "compiler/ir/batching.h"
#include "compiler/ir/dependencies.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/groups.h"
#include "compiler/ir/infer.h"
#include "compiler/partition/outline.h"

namespace tenon::compiler::batch {
namespace {

// Whether the type is of tensors whose sizes it has.
bool has_sizes(Type type) {
  if (type.tuple()) return std::ranges::all_of(type.tuple()->fields, has_sizes);
  return type.tensor() && !has_erased(type);
}

class UnitMaker {
 public:
  UnitMaker(Context& context, Module& module, Symbol entry, const std::vector<bool>& own)
      : context_(context),
        module_(module),
        effects_(context, module),
        control_(context, module),
        sharing_(sharing(context, module, entry, own)) {}

  std::vector<Unit> run() {
    find_late();
    for (const auto& [name, origins] : sharing_.origins) {
      if (!module_.function(name)->composite.empty()) continue;
      name_ = name;
      // Units are added to the module while the function is rewritten.
      function_ = *module_.function(name);
      block(function_.body);
      *module_.function(name) = std::move(function_);
    }
    return std::move(units_);
  }

 private:
  struct Group {
    std::vector<size_t> members;
    std::vector<VarId> results;
  };

  // Of a variable that the function had before its units were made.
  bool is_own(VarId var) const { return !sharing_.of(name_, var).shared(); }
  bool is_late(const Atom& atom) const {
    const auto* var = std::get_if<VarId>(&atom);
    return var && late_.at(name_)[index(*var)];
  }

  // Whether the binding is an operator of a unit.
  bool is_work(const Function& function, const Binding& binding) const {
    const auto* apply = std::get_if<Apply>(&binding.value);
    if (!apply || !is_own(binding.var) || control_.contains(name_, binding.var)) return false;
    if (effects_.of(function, binding.value) == Effect::kState || !has_sizes(function.type(binding.var))) return false;
    for (const auto& [attr, value] : apply->computed) {
      if (std::holds_alternative<Atom>(value)) return false;
    }
    bool own = false;
    for (const Atom& arg : apply->args) {
      const auto* var = std::get_if<VarId>(&arg);
      if (var && !has_sizes(function.type(*var))) return false;
      own |= var && is_own(*var);
    }
    return own;
  }

  // Finds the variables that may depend on the result of a unit, of any call before; the others are known as soon as
  // the control flow is.
  void find_late() {
    for (const auto& [name, origins] : sharing_.origins) late_[name].assign(origins.size(), false);
    const auto set_late = [&](Symbol function, VarId var, bool late) {
      if (!late || late_.at(function)[index(var)]) return;
      late_.at(function)[index(var)] = true;
      changed_ = true;
    };
    const auto all_late = [&](Symbol name) {
      if (const Function* function = late_.contains(name) ? module_.function(name) : nullptr) {
        for (const VarId param : function->params) set_late(name, param, true);
      }
    };
    do {
      changed_ = false;
      for (const auto& [name, origins] : sharing_.origins) {
        name_ = name;
        const Function& function = *module_.function(name);
        for_each_binding(function.body, [&](const Binding& binding) {
          context_.visit();
          bool late = false;
          for_each_operand(binding.value, [&](const Atom& atom) {
            late |= is_late(atom);
            if (const auto* global = std::get_if<Symbol>(&atom)) all_late(*global);  // it may be called with anything
          });
          if (const auto* call = std::get_if<Call>(&binding.value)) {
            const auto* callee = std::get_if<Symbol>(&call->callee);
            if (const Function* other = callee && late_.contains(*callee) ? module_.function(*callee) : nullptr) {
              for (size_t i = 0; i < call->args.size(); ++i)
                set_late(*callee, other->params[i], is_late(call->args[i]));
              const auto* result = std::get_if<VarId>(&other->body.result);
              late = result && late_.at(*callee)[index(*result)];
            } else {
              late |= !callee || !module_.loop_function(*callee);
            }
          } else if (const auto* lambda = std::get_if<Lambda>(&binding.value)) {
            for (const VarId param : lambda->params) set_late(name, param, true);
          } else if (const auto* match = std::get_if<Case>(&binding.value)) {
            for (const Arm& arm : match->arms) {
              for_each_variable(arm.pattern, [&](const VarId& part) { set_late(name, part, is_late(match->subject)); });
            }
          }
          if (!std::holds_alternative<Lambda>(binding.value))
            for_each_block(binding.value, [&](const Block& arm) { late |= is_late(arm.result); });
          late |= is_work(function, binding) || std::holds_alternative<ReadReference>(binding.value);
          set_late(name, binding.var, late);
        });
      }
    } while (changed_);
  }

  void block(Block& block) {
    const Dependencies graph = dependencies([&](const Value& value) { return effects_.of(function_, value); }, block);
    ConvexGroups groups(graph.follows);
    const std::vector<Dims> rows = find_rows(block, graph);
    const std::vector<bool> member = merge(block, graph, rows, groups);
    for (Binding& binding : block.bindings) for_each_block(binding.value, [&](Block& inner) { this->block(inner); });
    std::vector<std::vector<size_t>> members(block.bindings.size());
    for (uint32_t i = 0; i < block.bindings.size(); ++i) members[groups.find(i)].push_back(i);
    std::vector<Binding> bindings;
    for (const uint32_t root : groups.topological()) {
      if (member[root] && unit(block, members[root], rows, bindings)) continue;
      for (const size_t i : members[root]) bindings.push_back(std::move(block.bindings[i]));
    }
    block.bindings = std::move(bindings);
  }

  // The first dims of the operator's operands and result along which its rows are independent, `most` at most.
  Dims rows_of(const Binding& binding, int64_t most = INT64_MAX) const {
    const auto& apply = std::get<Apply>(binding.value);
    std::vector<Type> types;
    std::vector<bool> own;
    for (const Atom& arg : apply.args) {
      const auto* var = std::get_if<VarId>(&arg);
      const auto* constant = std::get_if<ConstId>(&arg);
      if (!var && !constant) return {};
      types.push_back(var ? function_.type(*var) : context_.type_of(module_.constant(*constant)));
      own.push_back(var && is_own(*var));
    }
    const Type result = function_.type(binding.var);
    const TensorType* tensor = (result.tuple() ? result.tuple()->fields[0] : result).tensor();
    if (!tensor) return {};
    if (const int64_t axes = independent_rows(apply, types, own, result, most); axes > 0)
      return {tensor->dims.begin(), tensor->dims.begin() + axes};
    return tensor->rank() > 0 && are_rows_of(apply, types, own, result, tensor->dims[0]) ? Dims{tensor->dims[0]}
                                                                                         : Dims();
  }

  // Whether the rows along a first dim that is an expression, as n*t, are independent: as if it were a variable.
  bool are_rows_of(const Apply& apply, std::vector<Type> types, const std::vector<bool>& own, Type result,
                   Dim rows) const {
    if (rows.constant() || rows.variable()) return false;
    std::set<Symbol> names;
    for_each_variable(rows, [&](Symbol name) { names.insert(name); });
    const Dim variable = context_.dim(context_.symbol("%rows"));
    bool depends = false;  // another size
    const auto renamed = [&](Type type) {
      return context_.map_sizes(type, [&](Dim dim) {
        if (dim == rows) return variable;
        for_each_variable(dim, [&](Symbol name) { depends |= names.contains(name); });
        return dim;
      });
    };
    for (Type& type : types) type = renamed(type);
    result = renamed(result);
    return !depends && independent_rows(apply, types, own, result, 1) == 1;
  }

  // The first dims of a tensor that a reshape joins to one, or that it separates, where all others stay: as n, t of
  // [n, t, k] and [n*t, k]. Nothing of any other binding.
  Dims reshaped_rows(const Binding& binding) const {
    const auto* apply = std::get_if<Apply>(&binding.value);
    const auto* arg = apply && apply->op->is(ops::kReshape) ? std::get_if<VarId>(&apply->args[0]) : nullptr;
    if (!arg || !is_work(function_, binding)) return {};
    const Dims *joined = &function_.type(*arg).tensor()->dims, *separated = &function_.type(binding.var).tensor()->dims;
    if (joined->size() > separated->size()) std::swap(joined, separated);
    if (joined->empty() || (*joined)[0].constant() || (*joined)[0].variable()) return {};
    const size_t axes = separated->size() - joined->size() + 1;
    if (!(*separated)[axes - 1].variable()) return {};  // calls are joined along this axis
    Dim product = context_.dim(1);
    std::set<Dim> names;
    for (size_t i = 0; i < axes; ++i) {
      const Dim dim = (*separated)[i];
      if (dim.constant() != 1 && (!dim.variable() || !names.insert(dim).second)) return {};
      product = context_.multiply(product, dim);
    }
    const bool fits = product == (*joined)[0] &&
                      std::equal(joined->begin() + 1, joined->end(), separated->begin() + static_cast<ptrdiff_t>(axes));
    return fits ? Dims(separated->begin(), separated->begin() + static_cast<ptrdiff_t>(axes)) : Dims();
  }

  // By binding: the rows that calls of its unit are joined by, whatever their sizes are; none: it is joined with calls
  // of equal sizes. Rows are worth a unit of their own where a product with a matrix that all instances share computes
  // them: the matrix is read once for all of them, and tiles of rows are full.
  std::vector<Dims> find_rows(const Block& block, const Dependencies& graph) const {
    std::map<Dim, Dims> axes_of;  // a product: those that reshapes join to it
    std::vector<Dims> reshaped;
    for (const Binding& binding : block.bindings) {
      reshaped.push_back(reshaped_rows(binding));
      Dim product = context_.dim(1);
      for (const Dim dim : reshaped.back()) product = context_.multiply(product, dim);
      if (!reshaped.back().empty()) axes_of.try_emplace(product, reshaped.back());
    }
    const auto separate = [&](Dims rows) {
      const auto axes = rows.size() == 1 ? axes_of.find(rows[0]) : axes_of.end();
      return axes == axes_of.end() ? rows : axes->second;
    };
    std::set<Dims> products;
    for (const Binding& binding : block.bindings) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (!apply || apply->op->pattern != OpPattern::kAnchor || !is_work(function_, binding)) continue;
      const bool shares = std::ranges::any_of(apply->args, [&](const Atom& arg) {
        const auto* var = std::get_if<VarId>(&arg);
        return !var || !is_own(*var);
      });
      if (Dims rows = shares ? rows_of(binding) : Dims(); !rows.empty()) products.insert(separate(std::move(rows)));
    }
    std::vector<Dims> found(block.bindings.size());
    for (uint32_t i = 0; i < block.bindings.size() && !products.empty(); ++i) {
      const Binding& binding = block.bindings[i];
      if (std::holds_alternative<Project>(binding.value) && !graph.reads[i].empty()) {
        found[i] = found[graph.reads[i].front()];
      } else if (std::holds_alternative<Apply>(binding.value) && is_work(function_, binding)) {
        for (const Dims& rows : products) {
          const Dims own = reshaped[i] == rows ? rows : separate(rows_of(binding, std::ssize(rows)));
          if (own == rows && own.size() > found[i].size()) found[i] = own;
        }
      }
    }
    return found;
  }

  // By binding: one more than the index of the layer over a sequence of unknown length that it is, or a field of; 0: of
  // none. Such a layer is a unit of its own, whose calls are joined whatever their lengths are.
  std::vector<uint32_t> find_layers(const Block& block, const Dependencies& graph) const {
    std::vector<uint32_t> layers(block.bindings.size(), 0);
    for (uint32_t i = 0; i < block.bindings.size(); ++i) {
      const Binding& binding = block.bindings[i];
      if (const auto* apply = std::get_if<Apply>(&binding.value)) {
        const auto* x = find_batching(apply->op->id).sequences ? std::get_if<VarId>(&apply->args[0]) : nullptr;
        if (x && is_own(*x) && is_work(function_, binding) && function_.type(*x).tensor()->dims[0].variable())
          layers[i] = i + 1;
      } else if (std::holds_alternative<Project>(binding.value) && !graph.reads[i].empty()) {
        layers[i] = layers[graph.reads[i].front()];
      }
    }
    return layers;
  }

  // Merges the operators that wait for the same bindings; returns which bindings are members of units.
  std::vector<bool> merge(const Block& block, const Dependencies& graph, const std::vector<Dims>& rows,
                          ConvexGroups& groups) {
    using Waits = std::vector<uint32_t>;
    struct Key {
      Waits waits;
      bool late;  // an operator that needs no result of any unit but this one is hoisted out of those that do
      Dims rows;
      uint32_t layer;
      auto operator<=>(const Key&) const = default;
    };
    const auto count = static_cast<uint32_t>(block.bindings.size());
    std::vector<Waits> waits(count);
    std::vector<bool> member(count), pending(count), late(count);
    const std::vector<uint32_t> layers = find_layers(block, graph);
    std::map<Key, uint32_t> first;  // the last group of these operators
    for (uint32_t i = 0; i < count; ++i) {
      context_.visit();
      const Binding& binding = block.bindings[i];
      for (const uint32_t before : graph.follows[i]) {
        Waits both;
        std::ranges::set_union(waits[i], waits[before], std::back_inserter(both));
        waits[i] = std::move(both);
        pending[i] = pending[i] || pending[before] || member[before];
      }
      const auto* project = std::get_if<Project>(&binding.value);
      // A field of an operator's result belongs to its unit.
      const bool field = project && std::ranges::any_of(graph.reads[i], [&](uint32_t from) { return member[from]; }) &&
                         is_own(binding.var) && !control_.contains(name_, binding.var);
      member[i] = field || is_work(function_, binding);
      if (member[i]) {
        late[i] = is_late_member(block, graph.reads[i], binding, member, late);
        const auto [group, is_new] = first.try_emplace({waits[i], late[i], rows[i], layers[i]}, i);
        if (!is_new && !groups.merge(group->second, i)) group->second = i;
      } else if (stops(binding.value, pending[i])) {
        waits[i].insert(std::ranges::upper_bound(waits[i], i), i);
      }
    }
    coarsen(block, graph, rows, layers, member, late, groups);
    return member;
  }

  // Merges each late group into the one that alone reads its values, after a call that it need not wait for: one node
  // more would be none the earlier. Groups that are not late stay hoisted.
  void coarsen(const Block& block, const Dependencies& graph, const std::vector<Dims>& rows,
               const std::vector<uint32_t>& layers, const std::vector<bool>& member, const std::vector<bool>& late,
               ConvexGroups& groups) const {
    const auto count = static_cast<uint32_t>(block.bindings.size());
    std::map<uint32_t, std::set<uint32_t>> readers;  // by group: the groups that read it
    std::set<uint32_t> final;                        // groups with the block's result
    for (uint32_t i = 0; i < count; ++i) {
      for (const uint32_t from : graph.reads[i]) {
        if (groups.find(from) != groups.find(i)) readers[groups.find(from)].insert(i);
      }
      if (block.result == Atom(block.bindings[i].var)) final.insert(groups.find(i));
    }
    for (uint32_t i = count; i-- > 0;) {
      if (!member[i] || !late[i] || groups.find(i) != i || final.contains(i)) continue;
      std::set<uint32_t> roots;
      for (const uint32_t reader : readers[i]) roots.insert(groups.find(reader));
      if (roots.size() != 1) continue;
      const uint32_t reader = *readers[i].begin();
      if (member[reader] && late[reader] && rows[reader] == rows[i] && layers[reader] == layers[i])
        groups.merge(i, reader);
    }
  }
  // Whether a member of a unit needs the result of another unit: of one before, or of a late one in this block.
  bool is_late_member(const Block& block, const std::vector<uint32_t>& reads, const Binding& binding,
                      const std::vector<bool>& member, const std::vector<bool>& late) const {
    bool found = false;
    for_each_operand(binding.value, [&](const Atom& atom) {
      const auto* var = std::get_if<VarId>(&atom);
      const auto from = std::ranges::find_if(reads, [&](uint32_t i) { return var && block.bindings[i].var == *var; });
      found |= from != reads.end() && member[*from] ? late[*from] : is_late(atom);
    });
    return found;
  }
  // Whether what follows a binding waits for it: for a call or an arm, and for an operator outside of all units that
  // reads a unit's result.
  static bool stops(const Value& value, bool pending) {
    if (std::holds_alternative<Apply>(value)) return pending;
    return !std::holds_alternative<Tuple>(value) && !std::holds_alternative<Project>(value) &&
           !std::holds_alternative<Construct>(value) && !std::holds_alternative<Lambda>(value) &&
           !std::holds_alternative<DimValue>(value);
  }

  // Makes a unit of the members and appends a call of it; false, with nothing changed, where there is none.
  bool unit(const Block& block, const std::vector<size_t>& members, const std::vector<Dims>& rows_of_all,
            std::vector<Binding>& out) {
    const bool works =
        std::ranges::any_of(members, [&](size_t i) { return std::holds_alternative<Apply>(block.bindings[i].value); });
    std::vector<VarId> results = values_used_outside(block, members);
    if (!works || results.empty()) return false;
    auto outlined = outline(context_, module_, function_, block, members, results);
    if (!outlined) return false;  // it computes with a size that no operand has
    outlined->function.composite = "unit";
    const Dims& rows = rows_of_all[members[0]];
    const bool joins = join_rows(outlined->function, outlined->args, rows);
    const Symbol name = fresh_global(context_, module_, fmt::format("{}.unit", context_.name(name_)));
    Unit unit{name, {}};
    for (const VarId arg : outlined->args) unit.own.push_back(is_own(arg));
    module_.globals.emplace(name, std::move(outlined->function));
    Value call = Call{name, Atoms(outlined->args.begin(), outlined->args.end())};
    const auto found = infer_value(context_, module_, function_, call);
    std::vector<Type> types;
    for (const VarId var : results) types.push_back(function_.type(var));
    if (!found || *found != (types.size() == 1 ? types[0] : context_.tuple(types))) {
      module_.globals.erase(name);
      return false;
    }
    if (!joins) make_batched(unit);
    const auto length = sequence_length(module_, *module_.function(name));
    unit.note = length ? fmt::format("calls are joined as sequences, of any length {}", context_.str(*length))
                       : note(block, members, rows_of_all, joins);
    units_.push_back(std::move(unit));
    if (results.size() == 1) {
      out.push_back({results[0], std::move(call)});
      return true;
    }
    const auto tuple = static_cast<VarId>(function_.vars.size());
    function_.vars.push_back({*found, context_.symbol(""), function_.info(results.back()).span});
    out.push_back({tuple, std::move(call)});
    for (uint32_t i = 0; i < results.size(); ++i) out.push_back({results[i], Project{tuple, i}});
    return true;
  }

  // Lets several calls of the unit be one call that computes all of their rows. False where it has a parameter that
  // is own, or a result, without rows. The sizes of one instance say nothing about all of them.
  bool join_rows(Function& unit, std::span<const VarId> args, const Dims& rows) const {
    if (rows.empty()) return false;
    const TupleType* results = unit.result.tuple();
    const auto has_rows = [&](Type type) {
      const TensorType* tensor = type.tensor();
      return tensor && tensor->dims.size() >= rows.size() && std::equal(rows.begin(), rows.end(), tensor->dims.begin());
    };
    if (results ? !std::ranges::all_of(results->fields, has_rows) : !has_rows(unit.result)) return false;
    for (const VarId arg : args) {
      const Type type = function_.type(arg);
      if (!type.tensor() || (is_own(arg) && !has_rows(type))) return false;
    }
    unit.joined_axes = static_cast<uint32_t>(rows.size());
    for (const Dim dim : rows) {
      if (const auto name = dim.variable()) unit.bounds.erase(*name);
    }
    return true;
  }

  // For people: by what calls of the unit are joined. Nothing where no unit of the block has rows, as all are joined by
  // equal sizes.
  std::string note(const Block& block, const std::vector<size_t>& members, const std::vector<Dims>& rows,
                   bool joins) const {
    if (joins) {
      std::vector<std::string> sizes;
      for (const Dim dim : rows[members[0]]) sizes.push_back(context_.str(dim));
      return fmt::format("calls are joined by rows, of any {}", fmt::join(sizes, " x "));
    }
    if (std::ranges::all_of(rows, &Dims::empty)) return {};
    for (const size_t i : members) {
      const auto* apply = std::get_if<Apply>(&block.bindings[i].value);
      if (!apply || !rows[i].empty()) continue;
      return fmt::format(
          "calls of equal sizes are joined, others are calls of their own: {} does not compute each row "
          "alone ({})",
          apply->op->name, module_.span(function_.info(block.bindings[i].var).span).str());
    }
    return "calls of equal sizes are joined, others are calls of their own";
  }

  void make_batched(Unit& unit) {
    const Function function = *module_.function(unit.name);
    const bool of_sequences = is_of_sequences(function, unit.own);
    auto made = batched(context_, module_, function, unit.own, of_sequences);
    if (!made) {
      unit.why = std::move(made.error());
      return;
    }
    unit.batched = context_.symbol(fmt::format("{}.batched", context_.name(unit.name)));
    made->function.composite = "unit";
    unit.own_results = std::move(made->own);
    module_.globals.insert_or_assign(*unit.batched, std::move(made->function));
    module_.function(unit.name)->batched = unit.batched;
  }

  Context& context_;
  Module& module_;
  Effects effects_;
  ControlSlice control_;
  Sharing sharing_;
  std::map<Symbol, std::vector<bool>> late_;  // by variable
  bool changed_ = false;
  Symbol name_{};
  Function function_;
  std::vector<Unit> units_;
};

}  // namespace

Expected<std::vector<bool>> own_inputs(const Context& context, const Function& entry,
                                       const std::vector<std::string>& shared) {
  std::vector<bool> own;
  std::vector<std::string_view> names, unknown(shared.begin(), shared.end());
  for (const VarId param : entry.params) {
    names.push_back(context.name(entry.info(param).name));
    own.push_back(std::erase_if(unknown, [&](std::string_view name) {
                    return name == names.back() || (name.starts_with('%') && name.substr(1) == names.back());
                  }) == 0);
  }
  if (unknown.empty()) return own;
  return error(fmt::format("no input is named '{}'", unknown[0]), {},
               names.empty() ? "there are no inputs" : fmt::format("the inputs are {}", fmt::join(names, ", ")),
               Fault::kUsage);
}

Units make_units(Context& context, Module module, Symbol entry, const std::vector<bool>& own) {
  Units made{std::move(module), {}};
  made.units = UnitMaker(context, made.module, entry, own).run();
  return made;
}

std::vector<Symbol> release(Units& units) {
  std::vector<Symbol> names;
  for (const Unit& unit : units.units) {
    names.push_back(unit.name);
    units.module.function(unit.name)->composite.clear();
    if (unit.batched) units.module.function(*unit.batched)->composite.clear();
  }
  return names;
}

std::string explain(const Context& context, const Units& units) {
  std::string lines;
  for (const Unit& unit : units.units) {
    const Function& function = *units.module.function(unit.name);
    std::vector<std::string> operators, params;
    for (const Binding& binding : function.body.bindings) {
      if (const auto* apply = std::get_if<Apply>(&binding.value)) operators.push_back(apply->op->name);
    }
    for (size_t i = 0; i < function.params.size(); ++i) {
      const VarInfo& info = function.info(function.params[i]);
      const std::string_view variable = context.name(info.name);
      params.push_back(fmt::format("{}{}{}", unit.own[i] ? "" : "shared ",
                                   variable.empty() ? "" : fmt::format("%{}: ", variable), context.str(info.type)));
    }
    lines += fmt::format("@{}({}): {}\n", context.name(unit.name), fmt::join(params, ", "), fmt::join(operators, ", "));
    if (!unit.note.empty()) lines += fmt::format("  {}\n", unit.note);
    if (unit.why) lines += fmt::format("  not batched: {} ({})\n", unit.why->what, unit.why->where);
  }
  return lines;
}

}  // namespace tenon::compiler::batch
