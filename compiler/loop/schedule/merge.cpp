#include "compiler/loop/schedule/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "compiler/loop/access.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"

namespace tenon::compiler::loop {
namespace {

// The loops from a statement inwards, each the only statement of the one before.
std::vector<const For*> chain_of(const Stmt& stmt) {
  std::vector<const For*> loops;
  for (const Stmt* inner = &stmt; inner;) {
    const auto* loop = std::get_if<For>(&inner->form);
    if (!loop || loop->kind != LoopKind::kSerial) break;
    loops.push_back(loop);
    inner = loop->body.size() == 1 ? &loop->body.front() : nullptr;
  }
  return loops;
}

class Merger {
 public:
  Merger(TypeContext& context, Function function, const MergeOptions& options)
      : context_(context), function_(std::move(function)), options_(options) {}

  Function run() {
    Body flat;
    std::vector<Alloc> allocs;
    flatten(function_.body, flat, allocs);
    if (cut_iterations(flat)) {
      flat.clear(), allocs.clear();
      flatten(function_.body, flat, allocs);
    }
    auto [nests, depths, counts] = joined(flat);
    for (Alloc& alloc : std::views::reverse(allocs)) {
      alloc.body = std::move(nests);
      nests.clear();
      nests.push_back(Stmt{std::move(alloc)});
    }
    function_.body = std::move(nests);
    move_buffers_inside(depths);
    sum_in_registers(depths);
    return std::move(function_);
  }

 private:
  // The statements in their order, without the allocations around them.
  static void flatten(Body body, Body& flat, std::vector<Alloc>& allocs) {
    for (Stmt& stmt : body) {
      if (auto* alloc = std::get_if<Alloc>(&stmt.form)) {
        Body inner = std::move(alloc->body);
        allocs.push_back({.buffer = alloc->buffer, .scope = alloc->scope, .body = {}});
        flatten(std::move(inner), flat, allocs);
      } else {
        flat.push_back(std::move(stmt));
      }
    }
  }

  struct Joined {
    Body nests;
    std::vector<size_t> depths;  // of merged loops; 0: of a single nest
    std::vector<size_t> counts;  // of statements in each nest
  };
  Joined joined(const Body& flat) {
    Joined result;
    for (const Stmt& stmt : flat) {
      if (!result.nests.empty()) {
        if (auto both = join(result.nests.back(), result.depths.back(), stmt)) {
          std::tie(result.nests.back(), result.depths.back()) = std::move(*both);
          ++result.counts.back();
          continue;
        }
      }
      result.nests.push_back(stmt), result.depths.push_back(0), result.counts.push_back(1);
    }
    return result;
  }

  // Splits the innermost loops that are going to be merged, into blocks and the iterations of a block, which stay in
  // the nests. Whether any was split.
  bool cut_iterations(const Body& flat) {
    const Joined whole = joined(flat);
    bool any = false;
    for (size_t nest = 0, first = 0; nest < whole.nests.size(); first += whole.counts[nest++]) {
      if (whole.depths[nest] == 0) continue;
      const int64_t iterations = iterations_of_block(whole.nests[nest], whole.depths[nest]);
      if (iterations == 1) continue;
      any |= cut_loops({flat.data() + first, whole.counts[nest]}, whole.depths[nest], iterations);
    }
    return any;
  }
  // Of all of these nests, or of none.
  bool cut_loops(std::span<const Stmt> nests, size_t depth, int64_t iterations) {
    Function function = function_;
    std::set<Symbol> inner;
    for (const Stmt& nest : nests) {
      const std::optional<Symbol> stage = only_stage(nest);
      if (!stage) return false;
      auto cut = split(context_, function, *stage, chain_of(nest)[depth - 1]->var, {&iterations, 1});
      if (!cut) return false;
      function = std::move(*cut);
      inner.insert(all_loops(*find_stage(context_, function, *stage))[depth]->var);
    }
    function_ = std::move(function);
    of_block_.merge(inner);
    return true;
  }
  // The iterations that a block computes at a time, a divisor of their number; 1 where a size is not constant.
  int64_t iterations_of_block(const Stmt& nest, size_t depth) const {
    const std::vector<const For*> loops = chain_of(nest);
    int64_t blocks = 1;
    for (size_t i = 0; i < depth; ++i) {
      const auto extent = loops[i]->extent.constant();
      if (!extent || __builtin_mul_overflow(blocks, *extent, &blocks)) return 1;
    }
    const int64_t points = most_points(loops[depth - 1]->body, {}), extent = *loops[depth - 1]->extent.constant();
    if (points <= 1) return 1;  // each iteration is one thread's
    int64_t iterations = std::min({options_.points / points, blocks / options_.blocks, options_.iterations});
    while (iterations > 1 && extent % iterations != 0) --iterations;
    return std::max<int64_t>(iterations, 1);
  }
  static std::optional<Symbol> only_stage(const Stmt& stmt) {
    std::vector<Symbol> stages;
    const Body body{stmt};
    for_each_statement(body, [&](const Stmt& inner) {
      if (const auto* stage = std::get_if<Stage>(&inner.form)) stages.push_back(stage->name);
    });
    return stages.size() == 1 ? std::optional(stages.front()) : std::nullopt;
  }

  // One nest, with the number of its merged loops, the most that can be.
  std::optional<std::pair<Stmt, size_t>> join(const Stmt& first, size_t depth, const Stmt& second) {
    const std::vector<const For*> a = chain_of(first), b = chain_of(second);
    size_t most = 0;
    while (most < std::min(a.size(), b.size()) && a[most]->extent == b[most]->extent &&
           !of_block_.contains(a[most]->var))
      ++most;
    if (depth > 0 && most < depth) return std::nullopt;
    for (size_t count = depth > 0 ? depth : most; count > 0; --count) {
      Stmt joined = first;
      Body* to = &std::get<For>(joined.form).body;
      for (size_t i = 1; i < count; ++i) to = &std::get<For>(to->front().form).body;
      std::map<Symbol, Dim> renamed;
      for (size_t i = 0; i < count; ++i) renamed[b[i]->var] = context_.dim(a[i]->var);
      for (Stmt inner : b[count - 1]->body) {
        substitute(context_, function_, inner, renamed);
        to->push_back(std::move(inner));
      }
      if (has_few_points(*to) && is_independent(joined, count)) return std::pair(std::move(joined), count);
      if (depth > 0) break;
    }
    return std::nullopt;
  }

  // Whether the threads of a block compute the points of each stage in one iteration.
  bool has_few_points(const Body& body) const { return most_points(body, {}) <= options_.threads; }
  // The points of the stage with the most; INT64_MAX where a size is not constant. `loops`: those around the body that
  // count.
  static int64_t most_points(const Body& body, std::vector<const For*> loops) {
    int64_t most = 0;
    for (const Stmt& stmt : body) {
      if (const auto* loop = std::get_if<For>(&stmt.form)) loops.push_back(loop);
      if (const auto* stage = std::get_if<Stage>(&stmt.form)) most = std::max(most, points_of(*stage, loops));
      else for_each_body(stmt, [&](const Body& inner) { most = std::max(most, most_points(inner, loops)); });
      if (std::holds_alternative<For>(stmt.form)) loops.pop_back();
    }
    return most;
  }
  static int64_t points_of(const Stage& stage, const std::vector<const For*>& loops) {
    int64_t points = 1;
    for (const For* loop : loops) {
      const auto extent = loop->extent.constant();
      if (feeds(stage, loop->var, AxisKind::kSpatial) && (!extent || __builtin_mul_overflow(points, *extent, &points)))
        return INT64_MAX;
    }
    return points;
  }

  bool is_independent(const Stmt& stmt, size_t count) {
    Function function = function_;
    function.body = {stmt};
    const Stage* inside = nullptr;
    for_each_statement(function.body, [&](const Stmt& inner) {
      if (const auto* stage = std::get_if<Stage>(&inner.form); stage && !inside) inside = stage;
    });
    if (!inside) return false;
    const Symbol stage = inside->name;
    const std::vector<const For*> loops = chain_of(stmt);
    return std::all_of(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(count), [&](const For* loop) {
      return has_independent_iterations(context_, function, stage, loop->var);
    });
  }

  // Buffers of one merged nest alone: a block's, in shared memory or in registers.
  void move_buffers_inside(const std::vector<size_t>& depths) {
    std::vector<std::pair<Symbol, CachePlacement>> moves;  // by stage
    std::vector<Symbol> buffers;
    const Body& body =
        nests_of(function_, [&](const Alloc& alloc) { buffers.push_back(function_.buffer(alloc.buffer).name); });
    for (size_t i = 0; i < body.size(); ++i) {
      if (depths[i] == 0) continue;
      const Symbol loop = chain_of(body[i])[depths[i] - 1]->var;
      bool first = true;
      const Body nest{body[i]};
      for_each_statement(nest, [&](const Stmt& stmt) {
        const auto* stage = std::get_if<Stage>(&stmt.form);
        if (stage && std::exchange(first, false)) moves.emplace_back(stage->name, CachePlacement{loop, Scope::kHeap});
      });
    }
    for (const Symbol buffer : buffers) {
      for (const auto& [stage, placement] : moves) {
        auto moved = store_at(context_, function_, stage, buffer, placement);
        if (!moved || !is_small(*moved, buffer)) continue;
        function_ = std::move(*moved);
        index_single_elements(buffer);
      }
    }
  }
  // A reduction in a nest of its own adds up in an element of the innermost loop over results, which becomes a
  // register, where reading and writing memory for each term would take most of the time.
  void sum_in_registers(const std::vector<size_t>& depths) {
    std::vector<std::pair<Symbol, Symbol>> sums;  // stages, and loops
    const Body& body = nests_of(function_);
    for (size_t i = 0; i < body.size(); ++i) {
      const std::vector<const For*> loops = chain_of(body[i]);
      if (depths[i] > 0 || loops.empty() || loops.back()->body.size() != 1) continue;
      const auto* stage = std::get_if<Stage>(&loops.back()->body.front().form);
      if (!stage || stage->init.empty()) continue;
      const auto is_term = [&](const For* loop) { return feeds(*stage, loop->var, AxisKind::kReduce); };
      const auto first = std::ranges::find_if(loops, is_term);
      const bool innermost = std::all_of(first, loops.end(), is_term);
      if (first != loops.begin() && innermost) sums.emplace_back(stage->name, (*(first - 1))->var);
    }
    for (const auto& [stage, loop] : sums) {
      auto cached = cache_write(context_, function_, stage, CachePlacement{loop, Scope::kHeap});
      if (!cached) continue;
      function_ = std::move(*cached);
      index_single_elements(context_.symbol(fmt::format("{}_cache", context_.name(stage))));
    }
  }

  // The only index of an axis of one element is 0, which a register needs to know.
  void index_single_elements(Symbol name) {
    Function indexed = function_;
    const auto buffer = std::ranges::find(indexed.buffers, name, &Buffer::name);
    const auto id = static_cast<BufferId>(buffer - indexed.buffers.begin());
    for (Stmt& stmt : indexed.body) {
      for_each_stage(stmt, [&](Stage& stage) {
        for_each_index(stage, id, [&](size_t axis, Dim& index) {
          if (buffer->axes[axis].extent.constant() == 1) index = context_.dim(0);
        });
      });
    }
    if (verify(context_, indexed)) function_ = std::move(indexed);
  }
  bool is_small(const Function& function, Symbol name) const {
    const auto buffer = std::ranges::find(function.buffers, name, &Buffer::name);
    const auto most = options_.buffer_bytes / static_cast<int64_t>(runtime::bytes(buffer->dtype));
    return constant_elements(*buffer).value_or(most + 1) <= most;
  }

  TypeContext& context_;
  Function function_;
  const MergeOptions options_;
  std::set<Symbol> of_block_;  // loops over the iterations of a block, which are not merged
};

}  // namespace

Function merged(TypeContext& context, Function function, const MergeOptions& options) {
  return Merger(context, std::move(function), options).run();
}

}  // namespace tenon::compiler::loop
