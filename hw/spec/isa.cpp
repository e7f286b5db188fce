#include "hw/spec/isa.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "hw/spec/isa_tables.h"
#include "support/try.h"
#include "support/visitor.h"

namespace tenon::spec {
namespace {

using Bits = std::array<uint64_t, 4>;  // an instruction of one or two slots

uint64_t extract(const Bits& bits, int lsb, int width) {
  const int word = lsb / 64, shift = lsb % 64;
  uint64_t value = bits[word] >> shift;
  if (shift + width > 64) value |= bits[word + 1] << (64 - shift);
  return width == 64 ? value : value & ((uint64_t{1} << width) - 1);
}

void insert(Bits& bits, int lsb, int width, uint64_t value) {
  if (width < 64) value &= (uint64_t{1} << width) - 1;
  const int word = lsb / 64, shift = lsb % 64;
  bits[word] |= value << shift;
  if (shift + width > 64) bits[word + 1] |= value >> (64 - shift);
}

int64_t extract(const Bits& bits, const Field& field) {
  const uint64_t raw = extract(bits, field.lsb, field.width);
  if (!field.is_signed) return static_cast<int64_t>(raw);
  const int unused = 64 - field.width;
  return static_cast<int64_t>(raw << unused) >> unused;
}

// The bits of a native format that opcode, function and fields use.
Bits used_bits(const Format& format) {
  Bits used{};
  insert(used, 0, 7, 0x7f);
  for (const Field& field : format.fields) insert(used, field.lsb, field.width, ~uint64_t{0});
  return used;
}

std::unexpected<DecodeError> refuse(StopCode code, uint32_t index, std::string message) {
  return std::unexpected(DecodeError{code, index, std::move(message)});
}

}  // namespace

Status check_combination(const Config& config, const Instruction& instruction) {
  const auto refuse = [](std::string what, std::string help) { return error(std::move(what), {}, std::move(help)); };
  const auto transfer = [&](const base::Transfer& t, bool store) -> Status {
    if (t.x_size == 0) return {};
    const bool out = t.memory_type == static_cast<int>(base::MemoryType::kOut);
    if (!store && !out && t.memory_type <= static_cast<int>(base::MemoryType::kAcc8)) return {};
    if (!store)
      return refuse(fmt::format("memory_type {} cannot be loaded", t.memory_type),
                    "use 0 to 3, or 5 for acc from int8");
    if (!out) {
      return refuse(fmt::format("memory_type {} cannot be stored", t.memory_type),
                    "use 4, which stores the low bytes of acc");
    }
    if (t.y_pad_top || t.y_pad_bottom || t.x_pad_left || t.x_pad_right)
      return refuse("a store has no pads", "set the pads to 0, or x_size to 0");
    return {};
  };
  const auto tokens = [&](const native::Tokens& t) -> Status {
    if (((t.wait | t.signal) & kAbsentEngines) == 0) return {};
    return refuse("a token of an engine that is absent", "leave the engine out of wait and signal");
  };
  const auto own_lanes = [&](const native::Gemm& g) -> Status {
    if (g.own == 0) return {};
    const auto largest = fmt::format("divide the window: r1 at most {}, and {} (r2 - 1) + r1 at most {}",
                                     native::kOwnRows, native::kOwnRows, config.block_in);
    if (!config.own_lanes) {
      return refuse(fmt::format("configuration {} has no own lanes{}", config.name,
                                config.block_in != config.block_out ? ", which require equal blocks" : ""),
                    "leave own out, and multiply by diagonal matrices, or compile for a configuration with own_lanes");
    }
    if (g.r0 > 1) {
      return refuse(fmt::format("own lanes have two reduction loops, and r0 is {}, must be at most 1", g.r0),
                    "use r1 and r2, and a command for each value of r0");
    }
    if (g.r1 > native::kOwnRows) {
      return refuse(fmt::format("a window of own lanes has at most {} rows, and r1 is {}", native::kOwnRows, g.r1),
                    largest);
    }
    if (g.r1 + native::kOwnRows * g.r2 > config.block_in + native::kOwnRows) {
      return refuse(
          fmt::format("a window of own lanes of {} x {} positions needs {} bytes of weights, and a lane has {}", g.r1,
                      g.r2, native::kOwnRows * (g.r2 - 1) + g.r1, config.block_in),
          largest);
    }
    return {};
  };
  const auto requantize = [&](const native::Requantize& q) -> Status {
    if (q.to_inp != 0 && !config.results_to_inp) {
      return refuse(fmt::format("the requantizer of configuration {} does not write to inp{}", config.name,
                                config.block_in != config.block_out ? ", which requires equal blocks" : ""),
                    "leave to_inp out, and store and load the results, or compile for a configuration with "
                    "results_to_inp");
    }
    if (!q.has_window()) return {};
    if (!config.window_maximum) {
      return refuse(fmt::format("the requantizer of configuration {} has no maximum over windows", config.name),
                    "leave out win_rows, win_cols, win_pitch and win_carry, and compute the maximum on the host, or "
                    "compile for a configuration with window_maximum");
    }
    if (q.residual != 0) {
      return refuse("a window has no residual: its maximum would be that of the accumulators alone",
                    "add the residual by a command without a window, and compute the maximum of its results");
    }
    return {};
  };
  return std::visit(Overloaded{
                        [&](const base::Load& x) { return transfer(x, false); },
                        [&](const base::Store& x) { return transfer(x, true); },
                        [](const base::Gemm&) { return Status(); },
                        [&](const base::Alu& x) -> Status {
                          const bool multiplies = x.alu_opcode == static_cast<int>(base::AluOp::kMul);
                          if (multiplies && config.alu_multiply_passes == 0) {
                            return refuse(
                                fmt::format("the ALU of configuration {} cannot multiply", config.name),
                                "use shifts and additions, or a configuration whose alu_multiply_passes is not 0");
                          }
                          if (x.alu_opcode <= static_cast<int>(base::AluOp::kMul)) return {};
                          return refuse(fmt::format("unknown alu_opcode {}", x.alu_opcode),
                                        "use 0 MIN, 1 MAX, 2 ADD, 3 SHR or 4 MUL");
                        },
                        [](const base::Finish&) { return Status(); },
                        [&](const native::Move& x) { return tokens(x); },
                        [&](const native::Gemm& x) -> Status {
                          TENON_TRY(own_lanes(x));
                          return tokens(x);
                        },
                        [&](const native::Requantize& x) -> Status {
                          TENON_TRY(requantize(x));
                          return tokens(x);
                        },
                        [&](const native::Sync& x) { return tokens(x); },
                        [](const native::Finish&) { return Status(); },
                    },
                    instruction);
}

std::string_view name(Profile profile) { return profile == Profile::kBase ? "base" : "native"; }

std::string_view name(Engine engine) { return kEngineNames[static_cast<size_t>(engine)]; }

StopCodeText text_of(StopCode code) {
  switch (code) {
    case StopCode::kNone: return {"NONE", "no error"};
    case StopCode::kBadOpcode:
      return {"BAD_OPCODE", "unknown opcode or function, or one that this configuration or profile lacks"};
    case StopCode::kBadField: return {"BAD_FIELD", "reserved bits are set, or a combination of fields is not allowed"};
    case StopCode::kScratchpadRange: return {"SCRATCHPAD_RANGE", "an element outside its scratchpad"};
    case StopCode::kReadError: return {"READ_ERROR", "the memory answered a read with an error"};
    case StopCode::kWriteError: return {"WRITE_ERROR", "the memory answered a write with an error"};
    case StopCode::kAfterFinish: return {"AFTER_FINISH", "an instruction after FINISH"};
    case StopCode::kTruncated: return {"TRUNCATED", "the stream ends inside an instruction"};
    case StopCode::kDeadlock: return {"DEADLOCK", "deadlock: every engine that has work waits for tokens"};
    case StopCode::kUnaligned: return {"UNALIGNED", "the address of the instructions is not a multiple of 16"};
    case StopCode::kProfileOff: return {"PROFILE_OFF", "this configuration does not have the profile of the launch"};
    case StopCode::kRace: return {"RACE", "race: two accesses that no token orders"};
    case StopCode::kUninitialised: return {"UNINITIALISED", "a scratchpad element is read before it is written"};
    case StopCode::kDivergence: return {"DIVERGENCE", "two simulators in lockstep differ"};
  }
  return {"UNKNOWN", "unknown stop code"};
}

Profile profile_of(const Instruction& instruction) {
  return instruction.index() < 5 ? Profile::kBase : Profile::kNative;
}

Engine engine_of(const Instruction& instruction) {
  const auto load = [](const base::Load& x) {
    const auto type = static_cast<base::MemoryType>(x.memory_type);
    return type == base::MemoryType::kInp || type == base::MemoryType::kWgt ? Engine::kLdi : Engine::kGemm;
  };
  const auto move = [](const native::Move& x) {
    switch (static_cast<native::MoveFunction>(x.function)) {
      case native::MoveFunction::kInp: return Engine::kLdi;
      case native::MoveFunction::kWgt: return Engine::kLdw;
      case native::MoveFunction::kPar:
      case native::MoveFunction::kRes: return Engine::kLdm;
      case native::MoveFunction::kOut: return Engine::kSt;
    }
    return Engine::kLdi;
  };
  return std::visit(Overloaded{
                        [&](const base::Load& x) { return load(x); },
                        [](const base::Store&) { return Engine::kSt; },
                        [](const base::Gemm&) { return Engine::kGemm; },
                        [](const base::Alu&) { return Engine::kGemm; },
                        [](const base::Finish&) { return Engine::kGemm; },
                        [&](const native::Move& x) { return move(x); },
                        [](const native::Gemm&) { return Engine::kGemm; },
                        [](const native::Requantize&) { return Engine::kRq; },
                        [](const native::Sync& x) { return static_cast<Engine>(x.engine); },
                        [](const native::Finish&) { return Engine::kGemm; },
                    },
                    instruction);
}

TokenMasks tokens_of(const Instruction& instruction) {
  const Engine engine = engine_of(instruction);
  const auto of_base = [&](const base::Tokens& t) {
    unsigned prev = 0, next = 0;
    if (engine == Engine::kLdi) next = bit(Engine::kGemm);
    if (engine == Engine::kSt) prev = bit(Engine::kGemm);
    if (engine == Engine::kGemm) prev = bit(Engine::kLdi), next = bit(Engine::kSt);
    return TokenMasks{.wait = (t.pop_prev ? prev : 0) | (t.pop_next ? next : 0),
                      .signal = (t.push_prev ? prev : 0) | (t.push_next ? next : 0)};
  };
  const auto of_native = [](const native::Tokens& t) {
    return TokenMasks{.wait = static_cast<unsigned>(t.wait), .signal = static_cast<unsigned>(t.signal)};
  };
  return std::visit(
      [&]<class T>(const T& x) {
        if constexpr (std::is_base_of_v<base::Tokens, T>) return of_base(x);
        else if constexpr (std::is_base_of_v<native::Tokens, T>) return of_native(x);
        else return TokenMasks{};
      },
      instruction);
}

Isa::Isa(const Config& config)
    : config_(config), formats_(make_formats(config)), uop_fields_(make_uop_fields(config)) {}

Status Isa::encode(const Instruction& instruction, std::vector<Slot>& stream) const {
  const Format& format = formats_[instruction.index()];
  Bits bits{};
  insert(bits, 0, 3, static_cast<uint64_t>(format.opcode));
  if (format.fixed_function >= 0) insert(bits, 3, 4, static_cast<uint64_t>(format.fixed_function));
  if (std::holds_alternative<native::Sync>(instruction)) insert(bits, 6, 1, 1);
  for (size_t i = 0; i < format.fields.size(); ++i) {
    const Field& field = format.fields[i];
    const int64_t value = get_field(instruction, i);
    if (value < field.min() || value > field.max()) {
      return error(fmt::format("{} is {}, its field holds {} .. {}", field.name, value, field.min(), field.max()),
                   disassemble(instruction), {}, Fault::kInternal);
    }
    insert(bits, field.lsb, field.width, static_cast<uint64_t>(value));
  }
  if (const Status legal = check_combination(config_, instruction); !legal) {
    return error(legal.error().what, disassemble(instruction), legal.error().help, Fault::kInternal);
  }
  stream.push_back({bits[0], bits[1]});
  if (format.profile == Profile::kNative) stream.push_back({bits[2], bits[3]});
  return {};
}

std::expected<Instruction, DecodeError> Isa::decode(std::span<const Slot> stream, uint32_t index,
                                                    Profile profile) const {
  assert(index < stream.size());
  Bits bits{stream[index][0], stream[index][1], 0, 0};
  const auto opcode = static_cast<Opcode>(bits[0] & 7);
  const int function = static_cast<int>(extract(bits, 3, 4));
  if (profile == Profile::kNative) {
    if (index + 1 >= stream.size()) {
      return refuse(StopCode::kTruncated, index, "a native instruction has two slots, and the stream ends after one");
    }
    bits[2] = stream[index + 1][0];
    bits[3] = stream[index + 1][1];
  }

  size_t which = formats_.size();
  for (size_t i = 0; i < formats_.size(); ++i) {
    const Format& format = formats_[i];
    if (format.profile != profile || format.opcode != opcode) continue;
    if (format.fixed_function >= 0 && format.fixed_function != function) continue;
    if (format.mnemonic == "move" && function > static_cast<int>(native::MoveFunction::kOut)) continue;
    if (format.mnemonic == "sync" &&
        (function < kSyncFunction || (kPresentEngines >> (function - kSyncFunction) & 1) == 0)) {
      continue;
    }
    which = i;
    break;
  }
  if (which == formats_.size()) {
    return refuse(StopCode::kBadOpcode, index,
                  fmt::format("opcode {}, function {} is not an instruction of the {} profile",
                              static_cast<int>(opcode), function, name(profile)));
  }
  const Format& format = formats_[which];
  if (profile == Profile::kNative) {
    const Bits used = used_bits(format);
    for (int word = 0; word < 4; ++word) {
      if ((bits[word] & ~used[word]) != 0) {
        return refuse(StopCode::kBadField, index, fmt::format("reserved bits of {} are set", format.mnemonic));
      }
    }
  }
  Instruction instruction = make_instruction(which);
  for (size_t i = 0; i < format.fields.size(); ++i) set_field(instruction, i, extract(bits, format.fields[i]));
  if (const Status legal = check_combination(config_, instruction); !legal)
    return refuse(StopCode::kBadField, index, legal.error().what);
  return instruction;
}

std::expected<std::vector<Decoded>, DecodeError> Isa::decode_all(std::span<const Slot> stream, Profile profile) const {
  std::vector<Decoded> decoded;
  const uint32_t step = profile == Profile::kNative ? 2 : 1;
  bool finished = false;
  for (uint32_t index = 0; index < stream.size(); index += step) {
    if (finished) return refuse(StopCode::kAfterFinish, index, "an instruction after FINISH");
    TENON_TRY_ASSIGN(instruction, decode(stream, index, profile));
    finished =
        std::holds_alternative<base::Finish>(*instruction) || std::holds_alternative<native::Finish>(*instruction);
    decoded.push_back({std::move(*instruction), index});
  }
  return decoded;
}

uint32_t Isa::encode_uop(const base::Uop& uop) const {
  const std::array<uint32_t, 3> values = {uop.dst, uop.src, uop.wgt};
  uint32_t word = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    assert(values[i] <= uop_fields_[i].max());
    if (uop_fields_[i].width > 0) word |= values[i] << uop_fields_[i].lsb;
  }
  return word;
}

base::Uop Isa::decode_uop(uint32_t word) const {
  const auto field = [&](int i) {
    return static_cast<uint32_t>((uint64_t{word} >> uop_fields_[i].lsb) & static_cast<uint64_t>(uop_fields_[i].max()));
  };
  return {.dst = field(0), .src = field(1), .wgt = field(2)};
}

}  // namespace tenon::spec
