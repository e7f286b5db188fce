#include "compiler/backends/accel/estimate.h"

#include "compiler/backends/accel/tokens.h"
#include "sim/timing/model.h"

namespace tenon::compiler::accel {

Estimate estimate(const spec::Config& config, const std::vector<TileOp>& ops, const spec::MemoryTiming& memory) {
  std::vector<spec::Instruction> instructions;
  instructions.reserve(ops.size() + 1);
  for (const TileOp& op : ops) instructions.push_back(op.instruction);
  derive_tokens(config, instructions);
  instructions.emplace_back(spec::native::Finish{});
  std::vector<spec::Decoded> stream;
  stream.reserve(instructions.size());
  for (const spec::Instruction& instruction : instructions) {
    stream.push_back({instruction, static_cast<uint32_t>(2 * stream.size())});
  }
  sim::timing::Launch launch;
  for (int base = 0; base < spec::kBases; ++base) launch.bases[base] = (uint64_t{1} + base) << 40;
  const sim::timing::Result result = sim::timing::run(config, launch, stream, false, {.memory = memory});
  return {static_cast<double>(result.cycles), static_cast<double>(result.read_beats + result.write_beats)};
}

double simulate(const spec::Config& config, const std::vector<TileOp>& ops, const spec::MemoryTiming& memory) {
  return estimate(config, ops, memory).cycles;
}

}  // namespace tenon::compiler::accel
