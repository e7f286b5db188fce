#include "compiler/backends/accel/prefetch.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "compiler/backends/accel/estimate.h"
#include "compiler/backends/accel/tokens.h"
#include "sim/timing/model.h"

namespace tenon::compiler::accel {
namespace {

namespace native = spec::native;

// The maximum distance that a load moves, in operations: bounds the time of the pass.
constexpr size_t kMaxDistance = 1000;
constexpr std::array<int64_t, 4> kLeads{1000, 2000, 4000, 8000};
constexpr size_t kMaxInstructions = 30000;  // of a program that is simulated once per lead

bool moves(const spec::Instruction& instruction, Prefetch which) {
  const auto* move = std::get_if<native::Move>(&instruction);
  if (!move) return false;
  switch (static_cast<native::MoveFunction>(move->function)) {
    case native::MoveFunction::kWgt:
    case native::MoveFunction::kPar: return true;
    case native::MoveFunction::kInp:
    case native::MoveFunction::kRes: return which == Prefetch::kAll;
    case native::MoveFunction::kOut: return false;
  }
  return false;
}

bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  for (const Access& x : a) {
    for (const Access& y : b) {
      if ((x.write || y.write) && x.memory == y.memory && x.base == y.base && x.begin < y.end && y.begin < x.end)
        return true;
    }
  }
  return false;
}

int64_t products(const spec::Config& config, const spec::Instruction& instruction) {
  const auto* g = std::get_if<native::Gemm>(&instruction);
  if (g != nullptr && g->own != 0) return static_cast<int64_t>(sim::timing::steps(config, instruction));
  return g ? g->r0 * g->r1 * g->r2 * g->y * g->x : 0;
}

}  // namespace

std::vector<TileOp> prefetched(const spec::Config& config, const std::vector<TileOp>& ops, Prefetch which,
                               int64_t lead) {
  std::vector<size_t> order;  // indices into ops
  std::vector<std::vector<Access>> touched;
  for (const TileOp& op : ops) touched.push_back(accesses(config, op.instruction));
  for (size_t i = 0; i < ops.size(); ++i) {
    size_t at = order.size();
    if (moves(ops[i].instruction, which)) {
      int64_t passed = 0;
      const auto engine = spec::engine_of(ops[i].instruction);
      for (size_t distance = 0; at > 0 && distance < kMaxDistance; ++distance, --at) {
        const spec::Instruction& before = ops[order[at - 1]].instruction;
        passed += products(config, before);
        if (passed > lead || spec::engine_of(before) == engine || conflict(touched[order[at - 1]], touched[i])) break;
      }
    }
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), i);
  }
  std::vector<TileOp> result;
  result.reserve(ops.size());
  for (const size_t i : order) result.push_back(ops[i]);
  return result;
}

std::vector<TileOp> prefetched(const spec::Config& config, const std::vector<TileOp>& ops,
                               const spec::MemoryTiming& memory) {
  if (ops.size() > kMaxInstructions) return prefetched(config, ops, Prefetch::kConstants, kLeads[1]);
  double best = simulate(config, ops, memory);
  std::vector<TileOp> chosen = ops;
  for (const Prefetch which : {Prefetch::kConstants, Prefetch::kAll}) {
    for (const int64_t lead : kLeads) {
      std::vector<TileOp> candidate = prefetched(config, ops, which, lead);
      const double cycles = simulate(config, candidate, memory);
      if (cycles < best) best = cycles, chosen = std::move(candidate);
    }
  }
  return chosen;
}

}  // namespace tenon::compiler::accel
