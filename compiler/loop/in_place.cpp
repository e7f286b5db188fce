#include "compiler/loop/in_place.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/schedule/region.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::loop {
namespace {

// How the statements of a function access one of its parameters or results.
struct Uses {
  std::map<Symbol, std::vector<Access>> accesses;  // by stage, with those of instructions, which are blocks
  bool outside_stages = false;                     // in a library call, or in a statement that is in no stage
};

// Whether the dim is computed from elements of a buffer.
bool applies(Dim dim) {
  return std::ranges::any_of(dim.node->terms, [](const DimTerm& term) {
    return std::ranges::any_of(term.factors, [](const DimAtom* factor) {
      return factor->kind == DimAtom::Kind::kApply || std::ranges::any_of(factor->args, applies);
    });
  });
}

class Finder {
 public:
  Finder(TypeContext& context, const Function& function) : context_(context), function_(function) {}

  std::vector<runtime::InPlace> run() {
    for (const Buffer& buffer : function_.buffers) {
      if (packed_axes(buffer) > 0) return {};
    }
    uses_.resize(function_.buffers.size());
    collect(function_.body);
    if (reads_elements_) return {};
    std::vector<runtime::InPlace> pairs;
    for (uint32_t r = 0; r < function_.results.size(); ++r) {
      for (uint32_t p = 0; p < function_.params.size(); ++p) {
        if (fits(function_.results[r], function_.params[p])) pairs.push_back({r, p});
      }
    }
    return pairs;
  }

 private:
  void collect(const Body& body, bool in_loop = false) {
    for (const Stmt& stmt : body) {
      if (!in_loop) ++nest_;
      if (const auto* loop = std::get_if<For>(&stmt.form)) reads_elements_ |= applies(loop->extent);
      if (const auto* stage = std::get_if<Stage>(&stmt.form)) {
        nest_of_.emplace(stage->name, nest_);
        for (const Axis& axis : stage->axes) reads_elements_ |= applies(axis.extent) || applies(axis.value);
        for (const Guard& guard : stage->where) reads_elements_ |= applies(guard.left) || applies(guard.right);
        for_each_access(
            *stage, [&](const Access& access) { uses_[index(access.buffer)].accesses[stage->name].push_back(access); });
        continue;
      }
      if (const auto* call = std::get_if<CallLibrary>(&stmt.form)) {
        for (const auto* ids : {&call->inputs, &call->outputs}) {
          for (const BufferId id : *ids) uses_[index(id)].outside_stages = true;
        }
        continue;
      }
      for_each_direct_access(stmt, [&](const Access& access) { uses_[index(access.buffer)].outside_stages = true; });
      const bool repeats = in_loop || !std::holds_alternative<Alloc>(stmt.form);
      for_each_body(stmt, [&](const Body& inner) { collect(inner, repeats); });
    }
  }

  bool fits(BufferId result, BufferId param) {
    const Buffer &written = function_.buffer(result), &read = function_.buffer(param);
    if (written.dtype != read.dtype || written.rank() != read.rank()) return false;
    for (size_t axis = 0; axis < written.rank(); ++axis) {
      if (written.axes[axis].extent != read.axes[axis].extent) return false;
    }
    const Uses &writes = uses_[index(result)], &reads = uses_[index(param)];
    if (writes.outside_stages || reads.outside_stages) return false;
    std::vector<Symbol> writers;
    for (const auto& [stage, accesses] : writes.accesses) {
      if (std::ranges::any_of(accesses, &Access::writes)) writers.push_back(stage);
    }
    // Who else reads the parameter must have ended before.
    for (const auto& [stage, accesses] : reads.accesses) {
      const bool is_writer = std::ranges::find(writers, stage) != writers.end();
      const auto precedes = [&, reader = stage](Symbol writer) { return nest_of_.at(reader) < nest_of_.at(writer); };
      if (!is_writer && !std::ranges::all_of(writers, precedes)) return false;
    }
    const auto replaces_there = [&](Symbol stage) {
      const auto read = reads.accesses.find(stage);
      return read != reads.accesses.end() && replaces(stage, result, param, writes.accesses.at(stage), read->second);
    };
    return !writers.empty() && std::ranges::all_of(writers, replaces_there) &&
           (writers.size() == 1 || are_disjoint(result));
  }

  // Whether the stage writes elements of the result once, and reads only those with the same indices, and not
  // afterwards.
  bool replaces(Symbol stage, BufferId result, BufferId param, const std::vector<Access>& writes,
                const std::vector<Access>& reads) {
    const Access& write = writes.front();
    if (writes.size() != 1 || !write.writes || !write.sizes.empty()) return false;
    const bool same_element = std::ranges::all_of(
        reads, [&](const Access& access) { return access.sizes.empty() && access.indices == write.indices; });
    return same_element && writes_elements_once(stage, result, param);
  }

  // Whether no element is written by two stages, as those of full blocks and of tails: the boxes of their elements are
  // disjoint.
  bool are_disjoint(BufferId result) {
    Function copy = function_;
    const std::set<Symbol> dims(copy.dims.begin(), copy.dims.end());
    std::vector<Box> boxes;
    for (const Use& use : uses_of(context_, copy.body, result)) {
      if (use.writes) boxes.push_back(box_of(context_, copy, result, use, 0, dims));
    }
    for (size_t i = 0; i < boxes.size(); ++i) {
      for (size_t k = i + 1; k < boxes.size(); ++k) {
        if (!are_disjoint(boxes[i], boxes[k])) return false;
      }
    }
    return true;
  }
  bool are_disjoint(const Box& a, const Box& b) {
    const DimProver prover(context_, function_.bounds);
    for (size_t axis = 0; axis < a.size(); ++axis) {
      if (a[axis] && b[axis] &&
          (prover.less(a[axis]->hi, b[axis]->lo) == Answer::kYes ||
           prover.less(b[axis]->hi, a[axis]->lo) == Answer::kYes))
        return true;
    }
    return false;
  }

  // Whether the stage is stores, at most once at each of its points, one of which has the stage's axes as the indices
  // of the result, reads the parameter, and is the last one that does.
  bool writes_elements_once(Symbol name, BufferId result, BufferId param) {
    Function copy = function_;
    const auto path = find_stage(context_, copy, name);
    if (!path) return false;
    Stage& stage = path->stage();
    if (!stage.init.empty()) return false;
    const Store* store = nullptr;
    for (const Stmt& stmt : stage.body) {
      const auto* next = std::get_if<Store>(&stmt.form);
      if (!next) return false;
      bool reads = false;
      for_each_direct_access(stmt, [&](const Access& access) { reads |= access.buffer == param; });
      if (store && reads) return false;
      if (next->buffer != result) continue;
      if (!reads) return false;
      store = next;
    }
    if (!store) return false;
    // Outer loops that the stage knows as given axes distinguish none of its points.
    std::erase_if(stage.axes, [](const Axis& axis) { return axis.kind == AxisKind::kGiven; });
    std::set<Symbol> open;
    for (const Axis& axis : stage.axes) {
      if (axis.kind != AxisKind::kSpatial) return false;
      open.insert(axis.var);
    }
    for (const Dim index : store->indices) {
      const auto var = index.variable();
      if (!var || open.erase(*var) == 0) {
        if (index.constant() != 0) return false;
      }
    }
    return open.empty() && visits_points_once(context_, function_, *path, 0);
  }

  TypeContext& context_;
  const Function& function_;
  std::vector<Uses> uses_;            // by buffer
  size_t nest_ = 0;                   // of what is visited: the statement that is in no loop, counted in their order
  std::map<Symbol, size_t> nest_of_;  // by stage
  bool reads_elements_ = false;       // of parameters, for the sizes of loops
};

}  // namespace

std::vector<runtime::InPlace> find_in_place(TypeContext& context, const Function& function) {
  return Finder(context, function).run();
}

}  // namespace tenon::compiler::loop
