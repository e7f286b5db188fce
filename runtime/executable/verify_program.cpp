#include "runtime/executable/verify_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "hw/spec/registers.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

using spec::native::MoveFunction;

// Size of the extent that the instruction touches, from base + offset on; 0 if it touches no byte. See isa.h, MOVE.
int64_t extent(const spec::native::Move& m, const spec::Config& config) {
  auto function = static_cast<MoveFunction>(m.function);
  bool input_side = function == MoveFunction::kInp || function == MoveFunction::kWgt;
  int64_t unit = input_side ? config.block_in : config.block_out;
  if (m.valid != 0) unit = std::min(unit, m.valid);
  int64_t row = std::min(m.rows - m.top, m.source_rows) - 1;
  int64_t column = std::min(m.row_bytes, (m.vectors - 1) * m.x_step - m.left + unit) - 1;
  if (m.rows == 0 || m.vectors == 0 || row < 0 || column < 0) return 0;
  return row * m.y_step + column + 1;
}

}  // namespace

Status verify_program(const AcceleratorProgram& program, std::string_view where) {
  auto fail = [&](std::string what) {
    return error(fmt::format("program '{}': {}", program.name, what), std::string(where));
  };
  TENON_TRY(spec::validate(program.config, where));
  if (program.profile != spec::Profile::kNative) {
    return fail("it uses the base profile, and executables hold native programs only");
  }
  if (program.instructions.empty()) return fail("it has no instructions");
  if (program.instructions.size() > std::numeric_limits<uint32_t>::max()) return fail("it has more than 2^32 slots");

  struct Base {
    std::string name;
    uint64_t size = 0;
    bool writable = false;
  };
  std::array<Base, spec::kBases> bases;
  bases[kBaseConstants] = {"the constants", program.constants.size(), false};
  bases[kBaseWorkspace] = {"the workspace", program.workspace_bytes, true};
  int next = kBaseFirstTensor;
  for (bool output : {false, true}) {
    for (const TensorSlot& slot : output ? program.outputs : program.inputs) {
      auto size = checked_bytes(slot.dtype, slot.shape);
      if (!size)
        return fail(fmt::format("'{}' has the shape {}, must have at most {} axes and 2^48 bytes, and no negative size",
                                slot.name, to_string(slot.shape), kMaxRank));
      if (next == spec::kBases)
        return fail(fmt::format("more than {} inputs and outputs", spec::kBases - kBaseFirstTensor));
      if (slot.base != next)
        return fail(fmt::format("'{}' has base register {}, must be {}", slot.name, slot.base, next));
      bases[next++] = {fmt::format("'{}'", slot.name), static_cast<uint64_t>(*size), output};
    }
  }

  spec::Isa isa(program.config);
  auto decoded = isa.decode_all(program.instructions, program.profile);
  if (!decoded) return fail(fmt::format("instruction {}: {}", decoded.error().index, decoded.error().message));
  for (const auto& [instruction, index] : *decoded) {
    const auto* move = std::get_if<spec::native::Move>(&instruction);
    if (!move) continue;
    int64_t size = extent(*move, program.config);
    if (size == 0) continue;
    const Base& base = bases[static_cast<size_t>(move->base)];
    if (base.name.empty())
      return fail(fmt::format("instruction {}: base register {} has no buffer", index, move->base));
    if (static_cast<uint64_t>(move->offset + size) > base.size) {
      return fail(fmt::format("instruction {}: bytes [{}, {}) of {}, which has {}", index, move->offset,
                              move->offset + size, base.name, base.size));
    }
    if (static_cast<MoveFunction>(move->function) == MoveFunction::kOut && !base.writable) {
      return fail(fmt::format("instruction {}: a store into {}", index, base.name));
    }
  }
  uint32_t previous = 0;
  for (const InstructionNote& note : program.notes) {
    if (note.slot < previous || note.slot >= program.instructions.size() || note.layer >= program.layers.size()) {
      return fail(fmt::format("a note of slot {} and layer {} after slot {}, with {} slots and {} layers", note.slot,
                              note.layer, previous, program.instructions.size(), program.layers.size()));
    }
    previous = note.slot;
  }
  for (const LayerNote& layer : program.layers) {
    if (layer.macs < 0 || layer.padded_macs < 0 || layer.read_bytes < 0 || layer.write_bytes < 0) {
      return fail(fmt::format("layer '{}' has a negative count", layer.name));
    }
  }
  for (const Probe& probe : program.probes) {
    auto size = checked_bytes(probe.dtype, probe.shape);
    if (!size || probe.offset > program.workspace_bytes ||
        static_cast<uint64_t>(*size) > program.workspace_bytes - probe.offset) {
      return fail(fmt::format("tensor '{}' of shape {} at byte {} of a workspace of {}", probe.name,
                              to_string(probe.shape), probe.offset, program.workspace_bytes));
    }
  }
  return {};
}

}  // namespace tenon::runtime
