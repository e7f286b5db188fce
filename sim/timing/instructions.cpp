// Resources of an instruction: the unit that executes it, and its steps on the unit.
#include <algorithm>

#include "hw/spec/own_lanes.h"
#include "sim/timing/model.h"
#include "support/visitor.h"

namespace tenon::sim::timing {

namespace {

constexpr uint64_t kSerialPasses = 8;  // a bit of the inputs each

// The steps of GEMM with own lanes.
uint64_t own_steps(const spec::Config& config, const spec::native::Gemm& g) {
  if (g.r0 * g.r1 * g.r2 * g.y * g.x == 0) return 0;
  const int64_t row = spec::own_row_steps({.rows = g.r1,
                                           .columns = g.r2,
                                           .row_distance = g.src_r1,
                                           .moves = g.src_x == g.src_r2       ? 1
                                                    : g.src_x == 2 * g.src_r2 ? 2
                                                                              : 0,
                                           .outputs = g.x},
                                          config.packed_products ? 2 : 1);
  const int64_t serial = config.serial_products ? g.x * static_cast<int64_t>(kSerialPasses - 1) : 0;
  return static_cast<uint64_t>(g.y * (row + serial));
}

}  // namespace

Unit unit_of(const spec::Config& config, const spec::Instruction& instruction) {
  const auto moves = [&](Unit unit) {
    const auto dma = dma_of(config, instruction, {});
    return dma && dma->units() > 0 ? unit : Unit::kNone;
  };
  return std::visit(Overloaded{
                        [&](const spec::base::Load& l) {
                          switch (static_cast<spec::base::MemoryType>(l.memory_type)) {
                            case spec::base::MemoryType::kInp: return moves(Unit::kLdi);
                            case spec::base::MemoryType::kWgt:
                              return moves(config.weight_engine ? Unit::kLdw : Unit::kLdi);
                            case spec::base::MemoryType::kUop:
                            case spec::base::MemoryType::kAcc:
                            case spec::base::MemoryType::kAcc8:
                            case spec::base::MemoryType::kOut: break;
                          }
                          return moves(config.accumulator_engine ? Unit::kLdm : Unit::kLdi);
                        },
                        [&](const spec::base::Store&) { return moves(Unit::kSt); },
                        [](const spec::base::Gemm&) { return Unit::kGemm; },
                        [](const spec::base::Alu&) { return Unit::kAlu; },
                        [](const spec::base::Finish&) { return Unit::kNone; },
                        [&](const spec::native::Move& m) {
                          switch (static_cast<spec::native::MoveFunction>(m.function)) {
                            case spec::native::MoveFunction::kInp: return moves(Unit::kLdi);
                            case spec::native::MoveFunction::kWgt: return moves(Unit::kLdw);
                            case spec::native::MoveFunction::kPar:
                            case spec::native::MoveFunction::kRes: return moves(Unit::kLdm);
                            case spec::native::MoveFunction::kOut: break;
                          }
                          return moves(Unit::kSt);
                        },
                        [](const spec::native::Gemm&) { return Unit::kGemm; },
                        [](const spec::native::Requantize&) { return Unit::kRq; },
                        [](const spec::native::Sync&) { return Unit::kNone; },
                        [](const spec::native::Finish&) { return Unit::kNone; },
                    },
                    instruction);
}

uint64_t steps(const spec::Config& config, const spec::Instruction& instruction) {
  const auto loops = [](const auto& i) {
    return i.uop_end <= i.uop_begin ? uint64_t{0}
                                    : static_cast<uint64_t>((i.uop_end - i.uop_begin) * i.iter_out * i.iter_in);
  };
  const auto transfer = [&] {
    const auto dma = dma_of(config, instruction, {});
    if (!dma) return uint64_t{0};
    const auto per_vector = std::max<int64_t>(dma->vector_bytes / config.axi_bytes(), 1);
    return static_cast<uint64_t>(dma->units() * per_vector);
  };
  // A single micro-op that updates the same element repeatedly waits for its own result.
  const auto same = [](const auto& i) {
    return i.uop_end - i.uop_begin == 1 && (i.iter_in > 1 ? i.dst_factor_in == 0 : i.dst_factor_out == 0);
  };
  const auto alu = [&](const spec::base::Alu& a) {
    const bool twice = a.alu_opcode == static_cast<int64_t>(spec::base::AluOp::kMul) && config.alu_multiply_passes == 2;
    const int reads = 1 + (a.use_imm != 0 ? 0 : 1) + (twice ? 1 : 0);
    return loops(a) * static_cast<uint64_t>(std::max(config.alu_passes * reads, same(a) ? reads + 2 : 0));
  };
  return std::visit(Overloaded{
                        [&](const spec::base::Load&) { return transfer(); },
                        [&](const spec::base::Store&) { return transfer(); },
                        [&](const spec::base::Gemm& g) {
                          if (g.reset != 0) return loops(g);
                          const bool waits = config.in_order && same(g);  // for the sum that it continues
                          return loops(g) * (config.serial_products ? kSerialPasses : waits ? 2 : 1);
                        },
                        [&](const spec::base::Alu& a) { return alu(a); },
                        [&](const spec::base::Finish&) { return uint64_t{0}; },
                        [&](const spec::native::Move&) { return transfer(); },
                        [&](const spec::native::Gemm& g) {
                          if (g.own != 0) return own_steps(config, g);
                          return static_cast<uint64_t>(g.r0 * g.r1 * g.r2 * g.y * g.x) *
                                 (config.serial_products ? kSerialPasses : 1);
                        },
                        [&](const spec::native::Requantize& q) {
                          return static_cast<uint64_t>(q.rows * q.cols * q.window_size() * config.requantizer_passes);
                        },
                        [&](const spec::native::Sync&) { return uint64_t{0}; },
                        [&](const spec::native::Finish&) { return uint64_t{0}; },
                    },
                    instruction);
}

}  // namespace tenon::sim::timing
