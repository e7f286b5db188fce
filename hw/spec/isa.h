// The instruction set: every instruction's fields, their bit offsets, and the semantics of execution. The RTL package,
// the encoder, the decoder, the assembler and the reference page (hw/spec/isa.md) are generated from these tables.
//
// Common to both profiles
//   An instruction stream is a sequence of 16-byte slots; `count` in the register map counts slots. Instructions after
//   FINISH are an error; a stream without FINISH is complete when all queues have drained. Each engine executes its
//   own instructions in order; only tokens order two engines. The index of an instruction, in errors and
//   traces, is the index of its first slot. An extent or trip count of 0 moves or computes nothing and still handles
//   tokens. Accumulators wrap (two's complement). An address outside its scratchpad is an error.
//
// Base profile (VTA's instruction set, one slot each)
//   Three classes in order: load (LOAD of inp and wgt), store (STORE), compute (everything else). pop_prev/pop_next
//   take a token from the class before/after before the instruction starts, push_prev/push_next give one when it is
//   done; the order of classes is load, compute, store. A pop or push beyond the ends (load's prev, store's next) is
//   ignored. On the token matrix, load is LDI, compute is GEMM, store is ST. Free bits are ignored.
//   LOAD   fills (pad_top + y_size + pad_bottom) x (pad_left + x_size + pad_right) elements from sram_base on; the
//          pads with zeros, row y of the remaining elements from element dram_base + y * x_stride of the memory type's
//          base address. x_size = 0 moves nothing, pads included, whatever the type; y_size = 0 writes pads only. Type
//          5 reads block_out-byte elements and sign-extends them into acc.
//   STORE  writes the low byte of each lane of acc[sram_base + i] for i over y_size rows of x_size elements to
//          element dram_base + y * x_stride. Type 4 and no pads, else an error; x_size = 0 ignores both.
//   GEMM   for y < iter_out, x < iter_in, u in [uop_begin, uop_end): dst, src, wgt = uop[u] + y * factor_out
//          + x * factor_in; acc[dst] = reset ? 0 : acc[dst] + inp[src] . wgt[wgt]^T. A reset uses only dst.
//   ALU    same loops; acc[dst] = op(acc[dst], use_imm ? imm : acc[src]) on every lane. With use_imm src is not used.
//          MIN, MAX, ADD, SHR (n >= 0: x >> min(n, 31), n < 0: x << min(-n, 31), wrapping), MUL (low 32 bits).
//          Results equal sequential execution at any index distance.
//   A micro-op is 32 bits: dst, src, wgt from bit 0 on, as wide as log2 of the depths of acc, max(inp, acc), wgt.
//   In a stream of 16-byte slots a field that would cross bit 64 starts at bit 64.
//
// Native profile (two slots each)
//   Seven engines with a queue each. `wait` has a bit for each producer: one token is taken from counter (producer,
//   this engine) before the instruction starts; `signal` a bit for each consumer: one token is added to counter (this
//   engine, consumer) when its effects are visible (for ST: after the last write response). Counters hold 0 .. 255; a
//   push into a full counter stalls. Reserved bits must be 0.
//   MOVE   by function: 0 inp (LDI), 1 wgt (LDW), 2 par, 3 res (LDM), 4 out (ST). The unit is block_in bytes for inp
//          and wgt, block_out bytes for par, res and out; an element of wgt is block_out units, of par 8, else 1.
//          Vector (y, x), y < rows, x < vectors, is unit y * vectors + x after the first of element sram_base. Its
//          byte j has k = x * x_step - left + j and is stored in DRAM at base[base] + offset + (y - top) * y_step + k
//          if 0 <= k < row_bytes and 0 <= y - top < source_rows. A load writes 0 to bytes j >= valid (valid = 0 means
//          all bytes are valid), else the byte of DRAM, or pad_value if it has none. A store writes only bytes j <
//          valid that have an address in DRAM, in the order of (y, x).
//   GEMM   for r0, r1, r2, y, x below their extents, outermost first: dst = dst_base + y * dst_y + x * dst_x,
//          src = src_base + r0 * src_r0 + ... + x * src_x, wgt = wgt_base + r0 * wgt_r0 + r1 * wgt_r1 + r2 * wgt_r2;
//          acc[dst] = (first and r0 = r1 = r2 = 0 ? 0 : acc[dst]) + inp[src] . wgt[wgt]^T.
//          With `own` a lane multiplies a window of its own channel, r1 rows of r2 columns: for y, x below their
//          extents acc[dst] lane l = (first ? 0 : acc[dst] lane l) + the sum over i < r1, j < r2 of
//          inp[src_base + i * src_r1 + j * src_r2 + y * src_y + x * src_x] lane l * byte i + 3 (r2 - 1 - j) of
//          wgt[wgt_base] lane l: bytes of a column together, the last column first. r0 is at most 1, r1 at most 3, and
//          a lane has the weights: 3 (r2 - 1) + r1 <= block_in. src_r0 and the factors of wgt are not used. A
//          configuration without the extension `own_lanes` refuses it.
//   RQ     for y < rows, x < cols: out[out_base + y * out_pitch + x] = requantize (requantize.h) of lane c of
//          acc[acc_base + y * acc_pitch + x * acc_step] with parameters par[par_base] lane c and, if `residual` is
//          set, res[res_base + y * res_pitch + x] lane c. With `to_inp` the results go to inp instead of out, so that
//          GEMM reads them without DRAM; a configuration without the extension `results_to_inp` refuses it.
//          With a window, where any of the four fields is not 0, a result is the maximum of the results of
//          acc[(acc_base + y * acc_pitch + x * acc_step + i * win_pitch + j) mod acc's depth], i < max(win_rows, 1) and
//          j < max(win_cols, 1), so that rows of a map may be a ring in acc; with `win_carry` and x > 0 the last column
//          of the window before, that of x - 1, counts too. A window has no residual. A configuration without the
//          extension `window_maximum` refuses it.
//   SYNC   tokens only, on the engine with index function - 8.
//   FINISH opcode 3, everything else 0.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::spec {

inline constexpr int kIsaVersion = 1;
inline constexpr int kSlotBytes = 16;

enum class Profile : uint8_t { kBase, kNative };
std::string_view name(Profile profile);  // "base", "native"

// The names of a closed set stand beside it, in its order; text, RTL package and counts follow from them.
enum class Engine : uint8_t { kLdi, kLdw, kLdm, kGemm, kDw, kRq, kSt };
inline constexpr auto kEngineNames = std::to_array<std::string_view>({"ldi", "ldw", "ldm", "gemm", "dw", "rq", "st"});
inline constexpr int kEngines = kEngineNames.size();
static_assert(kEngines <= 8, "the register map, the functions of SYNC and its 3 bits for an engine hold eight");
std::string_view name(Engine engine);
inline constexpr unsigned bit(Engine engine) { return 1u << static_cast<unsigned>(engine); }
// Engines that have an index and tokens, but no hardware yet.
inline constexpr unsigned kAbsentEngines = bit(Engine::kDw);
inline constexpr unsigned kPresentEngines = ((1u << kEngines) - 1) & ~kAbsentEngines;

// The units that execute: the engines, with the base profile's ALU at the index of the absent engine; kNone: tokens
// only.
enum class Unit : uint8_t { kLdi, kLdw, kLdm, kGemm, kAlu, kRq, kSt, kNone };
inline constexpr auto kUnitNames =
    std::to_array<std::string_view>({"ldi", "ldw", "ldm", "gemm", "alu", "rq", "st", "none"});
inline constexpr int kUnits = kUnitNames.size();
static_assert(kUnits == kEngines + 1 && static_cast<int>(Unit::kNone) == kEngines,
              "a unit of the native profile has the index of its engine");

inline constexpr int kMaxTokens = 255;

enum class Opcode : uint8_t { kLoad, kStore, kGemm, kFinish, kAlu, kMove, kMac, kPost };
inline constexpr auto kOpcodeNames =
    std::to_array<std::string_view>({"load", "store", "gemm", "finish", "alu", "move", "mac", "post"});
inline constexpr int kSyncFunction = 8;  // of SYNC on engine 0

// Why the accelerator stopped; the status register holds the code's value.
enum class StopCode : uint8_t {
  kNone = 0,
  kBadOpcode = 1,        // unknown opcode or function, one of the other profile, or one of an absent engine
  kBadField = 2,         // reserved bits set, a token of an absent engine, or a combination that isa.h excludes
  kScratchpadRange = 3,  // an element outside its scratchpad
  kReadError = 4,        // the memory answered a read with an error
  kWriteError = 5,       // the memory answered a write with an error
  kAfterFinish = 6,      // an instruction after FINISH
  kTruncated = 7,        // the stream ends inside an instruction
  kDeadlock = 8,         // every engine that has work waits for tokens that no engine will push
  kUnaligned = 9,        // the address of the instructions is not a multiple of 16
  kProfileOff = 10,      // the configuration does not have the profile of this launch
  kRace = 64,            // simulator only: two accesses that no token orders
  kUninitialised = 65,   // simulator only: a scratchpad element is read before it is written
  kDivergence = 66,      // lockstep only: two simulators leave different values
};
// The code's name in the RTL package, and what it means.
struct StopCodeText {
  std::string_view name, meaning;
};
StopCodeText text_of(StopCode code);
inline std::string_view describe(StopCode code) { return text_of(code).meaning; }
inline constexpr int kHardwareStopCodes = static_cast<int>(StopCode::kProfileOff) + 1;  // the others are simulators'

// The fields of the instructions. Every member is one field of the encoding, in its order; int64_t holds each of them.
namespace base {

struct Tokens {
  int64_t pop_prev = 0, pop_next = 0, push_prev = 0, push_next = 0;
  bool operator==(const Tokens&) const = default;
};
enum class MemoryType : uint8_t { kUop, kWgt, kInp, kAcc, kOut, kAcc8 };
inline constexpr auto kMemoryTypeNames = std::to_array<std::string_view>({"uop", "wgt", "inp", "acc", "out", "acc8"});
struct Transfer : Tokens {
  int64_t memory_type = 0, sram_base = 0, dram_base = 0, y_size = 0, x_size = 0, x_stride = 0;
  int64_t y_pad_top = 0, y_pad_bottom = 0, x_pad_left = 0, x_pad_right = 0;
  bool operator==(const Transfer&) const = default;
};
struct Load : Transfer {};
struct Store : Transfer {};
struct Gemm : Tokens {
  int64_t reset = 0, uop_begin = 0, uop_end = 0, iter_out = 0, iter_in = 0;
  int64_t dst_factor_out = 0, dst_factor_in = 0, src_factor_out = 0, src_factor_in = 0;
  int64_t wgt_factor_out = 0, wgt_factor_in = 0;
  bool operator==(const Gemm&) const = default;
};
enum class AluOp : uint8_t { kMin, kMax, kAdd, kShr, kMul };
inline constexpr auto kAluOpNames = std::to_array<std::string_view>({"min", "max", "add", "shr", "mul"});
struct Alu : Tokens {
  int64_t reset = 0, uop_begin = 0, uop_end = 0, iter_out = 0, iter_in = 0;
  int64_t dst_factor_out = 0, dst_factor_in = 0, src_factor_out = 0, src_factor_in = 0;
  int64_t alu_opcode = 0, use_imm = 0, imm = 0;
  bool operator==(const Alu&) const = default;
};
struct Finish : Tokens {};

// A decoded micro-op; see uop_fields() for its encoding.
struct Uop {
  uint32_t dst = 0, src = 0, wgt = 0;
  bool operator==(const Uop&) const = default;
};

}  // namespace base

namespace native {

struct Tokens {
  int64_t wait = 0, signal = 0;
  bool operator==(const Tokens&) const = default;
};
enum class MoveFunction : uint8_t { kInp, kWgt, kPar, kRes, kOut };
inline constexpr auto kMoveFunctionNames = std::to_array<std::string_view>({"inp", "wgt", "par", "res", "out"});
struct Move : Tokens {
  int64_t function = 0;
  int64_t base = 0, offset = 0, sram_base = 0, rows = 0, vectors = 0, x_step = 0, y_step = 0, row_bytes = 0;
  int64_t left = 0, top = 0, pad_value = 0, valid = 0, source_rows = 0;
  bool operator==(const Move&) const = default;
};
struct Gemm : Tokens {
  int64_t first = 0, own = 0;
  int64_t r0 = 0, r1 = 0, r2 = 0, y = 0, x = 0;
  int64_t dst_base = 0, src_base = 0, wgt_base = 0;
  int64_t dst_y = 0, dst_x = 0, src_r0 = 0, src_r1 = 0, src_r2 = 0, src_y = 0, src_x = 0;
  int64_t wgt_r0 = 0, wgt_r1 = 0, wgt_r2 = 0;
  bool operator==(const Gemm&) const = default;
};
// The rows of a window of own lanes at most: a column has so many bytes of the weights of a lane.
inline constexpr int kOwnRows = 3;
struct Requantize : Tokens {
  int64_t residual = 0;
  int64_t rows = 0, cols = 0, acc_base = 0, acc_pitch = 0, acc_step = 0, out_base = 0, out_pitch = 0, par_base = 0;
  int64_t v_lo = -2048, v_hi = 2047, zero = 0, lo = -128, hi = 127;
  int64_t res_base = 0, res_pitch = 0, r_zero = 0, r_multiplier = 0, r_shift = 0;
  int64_t to_inp = 0;
  int64_t win_rows = 0, win_cols = 0, win_pitch = 0, win_carry = 0;
  bool has_window() const { return (win_rows | win_cols | win_pitch | win_carry) != 0; }
  int64_t window_rows() const { return win_rows == 0 ? 1 : win_rows; }
  int64_t window_cols() const { return win_cols == 0 ? 1 : win_cols; }
  int64_t window_size() const { return window_rows() * window_cols(); }  // accumulators that are read for a result
  bool operator==(const Requantize&) const = default;
};
struct Sync : Tokens {
  int64_t engine = 0;
  bool operator==(const Sync&) const = default;
};
struct Finish {
  bool operator==(const Finish&) const = default;
};

}  // namespace native

using Instruction = std::variant<base::Load, base::Store, base::Gemm, base::Alu, base::Finish, native::Move,
                                 native::Gemm, native::Requantize, native::Sync, native::Finish>;

Profile profile_of(const Instruction& instruction);
// The engine whose queue takes the instruction. Base: the engine that represents its class (LDI, GEMM, ST), see above.
Engine engine_of(const Instruction& instruction);
// The tokens on the matrix: bit p of `wait` pops from (p, engine), bit c of `signal` pushes to (engine, c).
struct TokenMasks {
  unsigned wait = 0, signal = 0;
  bool operator==(const TokenMasks&) const = default;
};
TokenMasks tokens_of(const Instruction& instruction);

// One field of a format: bits [lsb, lsb + width) of the instruction.
struct Field {
  std::string_view name;
  int lsb = 0;
  int width = 0;
  bool is_signed = false;
  std::string_view doc;
  int64_t min() const { return is_signed ? -(int64_t{1} << (width - 1)) : 0; }
  int64_t max() const { return (int64_t{1} << (is_signed ? width - 1 : width)) - 1; }
};
// One instruction's encoding; `fields` are in the order of the struct's members, opcode and function left out.
struct Format {
  std::string_view mnemonic;  // unique: "load", "store", "gemm", "alu", "finish", "move", "mac", "rq", "sync", "end"
  Profile profile = Profile::kBase;
  Opcode opcode = Opcode::kLoad;
  int fixed_function = -1;  // the value of [6:3] in native formats, or -1 if it is a field or does not exist
  std::vector<Field> fields;
  std::string_view doc;
};

using Slot = std::array<uint64_t, 2>;  // one 16-byte slot, low word first

// A decoded stream: `index` is the slot of each instruction.
struct Decoded {
  Instruction instruction;
  uint32_t index = 0;
};
// Why decode, like the hardware, refuses an instruction: the code, the slot, and a message.
struct DecodeError {
  StopCode code = StopCode::kNone;
  uint32_t index = 0;
  std::string message;
};

// The instruction set of one configuration: the tables, and the encoder, decoder and assembler that they define.
class Isa {
 public:
  explicit Isa(const Config& config);

  const Config& config() const { return config_; }
  std::span<const Format> formats() const { return formats_; }  // index = Instruction::index()
  std::span<const Field> uop_fields() const { return uop_fields_; }

  // Appends the instruction's slots. A field out of range is an error that names field, value and limits.
  Status encode(const Instruction& instruction, std::vector<Slot>& stream) const;
  // Decodes the instruction at slot `index` of the stream, with the checks of the hardware's decoder.
  std::expected<Instruction, DecodeError> decode(std::span<const Slot> stream, uint32_t index, Profile profile) const;
  // Decodes a whole stream, FINISH rules included.
  std::expected<std::vector<Decoded>, DecodeError> decode_all(std::span<const Slot> stream, Profile profile) const;

  uint32_t encode_uop(const base::Uop& uop) const;
  base::Uop decode_uop(uint32_t word) const;

  // Assembly text: "mac wait=ldi,ldw signal=rq first=1 r0=3 ..."; fields that are 0 are left out, `#` starts a comment.
  std::string disassemble(const Instruction& instruction) const;
  Expected<Instruction> assemble(std::string_view line, std::string_view where) const;
  Expected<std::vector<Instruction>> assemble_all(std::string_view text, std::string_view where) const;

 private:
  Config config_;
  std::vector<Format> formats_;
  std::vector<Field> uop_fields_;
};

}  // namespace tenon::spec
