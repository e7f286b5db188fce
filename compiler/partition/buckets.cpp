#include "compiler/partition/buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/dependencies.h"
#include "compiler/ir/groups.h"
#include "compiler/ir/rewrite.h"
#include "compiler/partition/composites.h"
#include "compiler/partition/size_dispatch.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// Rows of programs of which joined rows are composed. Fewer rows take an accelerator no less time, whose weights are
// loaded for them; each program more has its own copy of the weights.
constexpr int64_t kRowsOfPrograms[] = {512, 256, 128, 64, 32, 16};

bool has_unknown_size(Type type) {
  return std::ranges::any_of(type.parts(), [](Type part) {
    return part.tensor() && std::ranges::any_of(part.tensor()->dims, [](Dim dim) { return !dim.constant(); });
  });
}

// The parts of one function, which it replaces.
class Bucketing {
 public:
  Bucketing(Context& context, Module& module, Function& function, std::span<const Target> targets,
            std::span<const DimValues> buckets, bool any_rows = false)
      : context_(context),
        module_(module),
        function_(function),
        targets_(targets),
        buckets_(buckets),
        any_rows_(any_rows),
        effects_(context, module) {}

  Expected<std::vector<Bucketed>> run() {
    // At the sizes of a bucket, with the same bindings and variables.
    Function bound = function_;
    std::map<Symbol, Dim> values;
    for (const auto& [name, size] : buckets_.front()) values.emplace(name, context_.dim(size));
    substitute(context_, bound, values);
    std::erase_if(bound.dims, [&](Symbol dim) { return values.contains(dim); });
    std::erase_if(bound.bounds, [&](const auto& bound_of) { return values.contains(bound_of.first); });
    TENON_TRY(visit(function_.body, bound, bound.body));
    TENON_TRY_ASSIGN(renumbered,
                     rewrite(context_, module_, function_, [](Builder&, Binding&) { return std::nullopt; }));
    function_ = std::move(*renumbered);
    return std::move(parts_);
  }

 private:
  // A group of bindings of one target.
  struct Group {
    const Target* target = nullptr;
    bool rows = true;
    std::vector<size_t> members;  // ascending
  };

  Status visit(Block& block, const Function& bound, Block& bound_block) {
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      std::vector<Block*> inner;
      for_each_block(bound_block.bindings[i].value, [&](Block& arm) { inner.push_back(&arm); });
      size_t next = 0;
      Status status;
      for_each_block(block.bindings[i].value, [&](Block& arm) {
        Block& arm_at_sizes = *inner[next++];
        if (status) status = visit(arm, bound, arm_at_sizes);
      });
      TENON_TRY(status);
    }
    TENON_TRY_ASSIGN(composites, find_composites(context_, module_, bound, bound_block, targets_, answers_));
    std::erase_if(composites->found, [&](const Composite& found) { return !is_unknown(block, found); });
    return composites->found.empty() ? Status() : replace(block, *composites);
  }

  bool is_unknown(const Block& block, const Composite& composite) const {
    return std::ranges::any_of(composite.bindings, [&](size_t i) {
      bool unknown = has_unknown_size(function_.type(block.bindings[i].var));
      for_each_operand(block.bindings[i].value, [&](const Atom& atom) {
        const auto* var = std::get_if<VarId>(&atom);
        unknown |= var && has_unknown_size(function_.type(*var));
      });
      return unknown;
    });
  }

  Status replace(Block& block, const Composites& composites) {
    const auto count = block.bindings.size();
    std::vector<const Composite*> owner(count);
    for (const Composite& composite : composites.found) {
      for (const size_t i : composite.bindings) owner[i] = &composite;
    }
    const Dependencies graph = dependencies([&](const Value& value) { return effects_.of(function_, value); }, block);
    ConvexGroups merged(graph.follows);
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i = 0; i < count; ++i) {
        for (const uint32_t operand : owner[i] ? graph.reads[i] : std::vector<uint32_t>()) {
          // Operators that compute any number of rows merge only with each other: one that cannot would deprive the
          // group of it.
          const bool joins = owner[operand] && owner[operand]->target == owner[i]->target &&
                             owner[operand]->row->rows == owner[i]->row->rows;
          if (joins && merged.find(operand) != merged.find(i)) changed |= merged.merge(operand, i);
        }
      }
    }
    std::vector<Group> groups(count);
    for (uint32_t i = 0; i < count; ++i) {
      Group& group = groups[merged.find(i)];
      group.members.push_back(i);
      if (!owner[i]) continue;
      group.target = owner[i]->target;
      group.rows = owner[i]->row->rows;  // the same of all members
    }
    std::vector<Binding> replaced;
    for (const uint32_t id : merged.topological()) {
      if (groups[id].target && emit(block, groups[id], replaced)) continue;
      for (const size_t i : groups[id].members) replaced.push_back(std::move(block.bindings[i]));
    }
    block.bindings = std::move(replaced);
    return {};
  }

  // The group as a function and the selection of its copy; false where no copy can be made: the group stays as it is.
  bool emit(const Block& block, const Group& group, std::vector<Binding>& out) {
    auto outlined =
        outline(context_, module_, function_, block, group.members, values_used_outside(block, group.members));
    if (!outlined || outlined->results.empty()) return false;
    SizeDispatch dispatch(context_, module_, function_, *std::move(outlined));
    if (!dispatch.add_copies(group.target->name, buckets_, group.rows)) return false;
    if (any_rows_ && !dispatch.pads()) {
      dispatch.remove_copies();
      return false;
    }
    auto bindings = dispatch.bindings(any_rows_);
    if (!bindings) return false;
    std::ranges::move(*bindings, std::back_inserter(out));
    parts_.push_back({.name = dispatch.name(),
                      .target = group.target->name,
                      .operators = group.members.size(),
                      .sizes = dispatch.sizes(),
                      .pads = dispatch.pads(),
                      .any_rows = any_rows_});
    return true;
  }

  Context& context_;
  Module& module_;
  Function& function_;
  std::span<const Target> targets_;
  std::span<const DimValues> buckets_;
  bool any_rows_;
  const Effects effects_;
  TargetAnswers answers_;
  std::vector<Bucketed> parts_;
};

}  // namespace

Expected<std::vector<Bucketed>> make_buckets(Context& context, Module& module, Symbol entry,
                                             std::span<const Target> targets, std::span<const DimValues> buckets) {
  if (buckets.empty() || targets.empty()) return std::vector<Bucketed>();
  Function function = *module.function(entry);
  TENON_TRY_ASSIGN(parts, Bucketing(context, module, function, targets, buckets).run());
  *module.function(entry) = std::move(function);
  return *std::move(parts);
}

Expected<std::vector<Bucketed>> make_row_programs(Context& context, Module& module, Symbol unit,
                                                  std::span<const Target> targets) {
  Function function = *module.function(unit);
  if (targets.empty() || function.joined_axes == 0) return std::vector<Bucketed>();
  const TupleType* results = function.result.tuple();
  const Dims& dims = (results ? results->fields[0] : function.result).tensor()->dims;
  std::vector<DimValues> buckets;
  for (const int64_t rows : kRowsOfPrograms) {
    DimValues& values = buckets.emplace_back();
    for (uint32_t axis = 0; axis < function.joined_axes; ++axis) {
      if (const auto name = dims[axis].variable()) values[*name] = axis + 1 == function.joined_axes ? rows : 1;
    }
  }
  TENON_TRY_ASSIGN(parts, Bucketing(context, module, function, targets, buckets, true).run());
  if (!parts->empty()) *module.function(unit) = std::move(function);
  return *std::move(parts);
}

std::string report(const Context& context, std::span<const Bucketed> parts) {
  if (parts.empty()) return "no operator of unknown sizes has a program for given ones\n";
  std::string text;
  for (const Bucketed& part : parts) {
    const char* const which = part.any_rows ? "at any size, by programs of" : part.pads ? "up to" : "at";
    text += fmt::format("@{}: {} operators of unknown sizes, on {} {} {}{}\n", context.name(part.name), part.operators,
                        part.target, which, fmt::join(part.sizes, " or "), part.any_rows ? "" : "; others on the CPU");
  }
  return text;
}

}  // namespace tenon::compiler
