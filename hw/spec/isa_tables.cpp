#include "hw/spec/isa_tables.h"

#include <algorithm>
#include <cassert>

namespace tenon::spec {
namespace {

template <class T>
struct Row {
  int64_t T::*member;
  std::string_view name;
  int width;
  bool is_signed;
  std::string_view doc;
  int lsb = -1;  // -1: directly after the previous field
};

// The widths that depend on the configuration.
struct Widths {
  int uop = 0, dst = 0, src = 0, wgt = 0;
};

constexpr std::string_view kTokenDocs[] = {"takes a token from the class before", "takes a token from the class after",
                                           "gives a token to the class before", "gives a token to the class after"};

template <class T>
void append_base_tokens(std::vector<Row<T>>& rows) {
  rows.push_back({&T::pop_prev, "pop_prev", 1, false, kTokenDocs[0], 3});
  rows.push_back({&T::pop_next, "pop_next", 1, false, kTokenDocs[1]});
  rows.push_back({&T::push_prev, "push_prev", 1, false, kTokenDocs[2]});
  rows.push_back({&T::push_next, "push_next", 1, false, kTokenDocs[3]});
}
template <class T>
void append_native_tokens(std::vector<Row<T>>& rows) {
  rows.push_back({&T::wait, "wait", kEngines, false, "producers whose token is taken, a bit an engine, LDI first", 7});
  rows.push_back({&T::signal, "signal", kEngines, false, "consumers that get a token, a bit an engine, LDI first"});
}

template <class T>
void append_transfer(std::vector<Row<T>>& rows) {
  append_base_tokens(rows);
  rows.push_back({&T::memory_type, "memory_type", 3, false, "0 uop, 1 wgt, 2 inp, 3 acc, 4 out, 5 acc from int8"});
  rows.push_back({&T::sram_base, "sram_base", 16, false, "first element in the scratchpad"});
  rows.push_back({&T::dram_base, "dram_base", 32, false, "first element in DRAM, counted from the base address"});
  rows.push_back({&T::y_size, "y_size", 16, false, "rows", 64});
  rows.push_back({&T::x_size, "x_size", 16, false, "elements a row"});
  rows.push_back({&T::x_stride, "x_stride", 16, false, "elements from row to row in DRAM"});
  rows.push_back({&T::y_pad_top, "y_pad_top", 4, false, "rows of zeros above"});
  rows.push_back({&T::y_pad_bottom, "y_pad_bottom", 4, false, "rows of zeros below"});
  rows.push_back({&T::x_pad_left, "x_pad_left", 4, false, "elements of zeros before each row"});
  rows.push_back({&T::x_pad_right, "x_pad_right", 4, false, "elements of zeros after each row"});
}

template <class T>
void append_loops(std::vector<Row<T>>& rows, const Widths& w) {
  append_base_tokens(rows);
  rows.push_back({&T::reset, "reset", 1, false, "GEMM: acc[dst] = 0; ALU: not used"});
  rows.push_back({&T::uop_begin, "uop_begin", w.uop, false, "first micro-op"});
  rows.push_back({&T::uop_end, "uop_end", w.uop + 1, false, "one past the last micro-op"});
  rows.push_back({&T::iter_out, "iter_out", 14, false, "trips of the outer loop"});
  rows.push_back({&T::iter_in, "iter_in", 14, false, "trips of the inner loop"});
  rows.push_back({&T::dst_factor_out, "dst_factor_out", w.dst, false, "added to dst per outer trip"});
  rows.push_back({&T::dst_factor_in, "dst_factor_in", w.dst, false, "added to dst per inner trip"});
  rows.push_back({&T::src_factor_out, "src_factor_out", w.src, false, "added to src per outer trip"});
  rows.push_back({&T::src_factor_in, "src_factor_in", w.src, false, "added to src per inner trip"});
}

template <class T>
std::vector<Row<T>> rows_of(const Widths& w) {
  std::vector<Row<T>> rows;
  if constexpr (std::is_same_v<T, base::Load> || std::is_same_v<T, base::Store>) {
    append_transfer(rows);
  } else if constexpr (std::is_same_v<T, base::Gemm>) {
    append_loops(rows, w);
    rows.push_back({&T::wgt_factor_out, "wgt_factor_out", w.wgt, false, "added to wgt per outer trip"});
    rows.push_back({&T::wgt_factor_in, "wgt_factor_in", w.wgt, false, "added to wgt per inner trip"});
  } else if constexpr (std::is_same_v<T, base::Alu>) {
    append_loops(rows, w);
    rows.push_back({&T::alu_opcode, "alu_opcode", 3, false, "0 MIN, 1 MAX, 2 ADD, 3 SHR, 4 MUL", 108});
    rows.push_back({&T::use_imm, "use_imm", 1, false, "the second operand is imm, not acc[src]"});
    rows.push_back({&T::imm, "imm", 16, true, "immediate operand"});
  } else if constexpr (std::is_same_v<T, base::Finish>) {
    append_base_tokens(rows);
  } else if constexpr (std::is_same_v<T, native::Move>) {
    append_native_tokens(rows);
    rows.push_back({&T::function, "function", 4, false, "0 inp, 1 wgt, 2 par, 3 res, 4 out", 3});
    rows.push_back({&T::base, "base", 3, false, "base register", 29});
    rows.push_back({&T::offset, "offset", 32, false, "bytes from the base address"});
    rows.push_back({&T::sram_base, "sram_base", 16, false, "first element in the scratchpad"});
    rows.push_back({&T::rows, "rows", 16, false, "rows of vectors"});
    rows.push_back({&T::vectors, "vectors", 16, false, "vectors a row"});
    rows.push_back({&T::x_step, "x_step", 16, false, "bytes from vector to vector in DRAM"});
    rows.push_back({&T::y_step, "y_step", 32, false, "bytes from row to row in DRAM"});
    rows.push_back({&T::row_bytes, "row_bytes", 16, false, "bytes of a row in DRAM; bytes beyond them are padding"});
    rows.push_back({&T::left, "left", 12, true, "bytes of padding before a row"});
    rows.push_back({&T::top, "top", 8, false, "rows of padding above"});
    rows.push_back({&T::pad_value, "pad_value", 8, true, "value of padding bytes"});
    rows.push_back({&T::valid, "valid", 8, false, "bytes of a vector that are data, 0 for all"});
    rows.push_back({&T::source_rows, "source_rows", 16, false, "rows in DRAM; rows below them are padding"});
  } else if constexpr (std::is_same_v<T, native::Gemm>) {
    append_native_tokens(rows);
    rows.push_back({&T::first, "first", 1, false, "acc reads as 0 while r0 = r1 = r2 = 0"});
    rows.push_back({&T::own, "own", 1, false, "lanes multiply windows of r1 x r2 of their own channel"});
    rows.push_back({&T::r0, "r0", 10, false, "extent of the outermost reduction loop", 32});
    rows.push_back({&T::r1, "r1", 10, false, "extent of the middle reduction loop"});
    rows.push_back({&T::r2, "r2", 10, false, "extent of the inner reduction loop"});
    rows.push_back({&T::y, "y", 10, false, "rows"});
    rows.push_back({&T::x, "x", 10, false, "columns, innermost"});
    rows.push_back({&T::dst_base, "dst_base", 14, false, "first accumulator vector"});
    rows.push_back({&T::src_base, "src_base", 14, false, "first input vector"});
    rows.push_back({&T::wgt_base, "wgt_base", 14, false, "first weight matrix"});
    rows.push_back({&T::dst_y, "dst_y", 12, false, "added to dst per row"});
    rows.push_back({&T::dst_x, "dst_x", 12, false, "added to dst per column"});
    rows.push_back({&T::src_r0, "src_r0", 12, false, "added to src per r0"});
    rows.push_back({&T::src_r1, "src_r1", 12, false, "added to src per r1"});
    rows.push_back({&T::src_r2, "src_r2", 12, false, "added to src per r2"});
    rows.push_back({&T::src_y, "src_y", 12, false, "added to src per row"});
    rows.push_back({&T::src_x, "src_x", 12, false, "added to src per column"});
    rows.push_back({&T::wgt_r0, "wgt_r0", 12, false, "added to wgt per r0"});
    rows.push_back({&T::wgt_r1, "wgt_r1", 12, false, "added to wgt per r1"});
    rows.push_back({&T::wgt_r2, "wgt_r2", 12, false, "added to wgt per r2"});
  } else if constexpr (std::is_same_v<T, native::Requantize>) {
    append_native_tokens(rows);
    rows.push_back({&T::residual, "residual", 1, false, "adds res, scaled"});
    rows.push_back({&T::rows, "rows", 10, false, "rows"});
    rows.push_back({&T::cols, "cols", 10, false, "columns"});
    rows.push_back({&T::acc_base, "acc_base", 14, false, "first accumulator vector"});
    rows.push_back({&T::acc_pitch, "acc_pitch", 12, false, "accumulator vectors from row to row"});
    rows.push_back({&T::acc_step, "acc_step", 12, false, "accumulator vectors from column to column"});
    rows.push_back({&T::out_base, "out_base", 14, false, "first output vector, in out or inp"});
    rows.push_back({&T::out_pitch, "out_pitch", 12, false, "output vectors from row to row"});
    rows.push_back({&T::par_base, "par_base", 12, false, "parameter vector"});
    rows.push_back({&T::v_lo, "v_lo", 12, true, "lower clamp before the residual, in output steps"});
    rows.push_back({&T::v_hi, "v_hi", 12, true, "upper clamp before the residual"});
    rows.push_back({&T::zero, "zero", 8, true, "zero point of the output"});
    rows.push_back({&T::lo, "lo", 8, true, "lower clamp of the output"});
    rows.push_back({&T::hi, "hi", 8, true, "upper clamp of the output"});
    rows.push_back({&T::res_base, "res_base", 14, false, "first residual vector"});
    rows.push_back({&T::res_pitch, "res_pitch", 12, false, "residual vectors from row to row"});
    rows.push_back({&T::r_zero, "r_zero", 8, true, "zero point of the residual"});
    rows.push_back({&T::r_multiplier, "r_multiplier", 16, false, "multiplier of the residual"});
    rows.push_back({&T::r_shift, "r_shift", 5, false, "shift of the residual"});
    rows.push_back({&T::to_inp, "to_inp", 1, false, "writes to inp, not to out"});
    rows.push_back({&T::win_rows, "win_rows", 3, false, "rows of the window whose maximum is a result; 0: one"});
    rows.push_back({&T::win_cols, "win_cols", 3, false, "columns of the window; 0: one"});
    rows.push_back({&T::win_pitch, "win_pitch", 12, false, "accumulator vectors from row to row of a window"});
    rows.push_back(
        {&T::win_carry, "win_carry", 1, false, "the last column of a window counts in the next result of the row too"});
  } else if constexpr (std::is_same_v<T, native::Sync>) {
    append_native_tokens(rows);
    rows.push_back({&T::engine, "engine", 3, false, "the engine whose queue it goes through", 3});
  }
  return rows;
}

template <class T>
Format make_format(std::string_view mnemonic, Profile profile, Opcode opcode, int fixed_function, std::string_view doc,
                   const Widths& widths) {
  Format format{mnemonic, profile, opcode, fixed_function, {}, doc};
  int next = 0;
  for (const Row<T>& row : rows_of<T>(widths)) {
    int lsb = row.lsb >= 0 ? row.lsb : next;
    // In VTA's structs a field that would cross a 64-bit word starts the next one.
    if (profile == Profile::kBase && lsb < 64 && lsb + row.width > 64) lsb = 64;
    format.fields.push_back({row.name, lsb, row.width, row.is_signed, row.doc});
    next = lsb + row.width;
  }
  return format;
}

// The members in field order; widths do not matter here.
template <class T>
const std::vector<Row<T>>& members() {
  static const std::vector<Row<T>> rows = rows_of<T>({});
  return rows;
}

}  // namespace

std::vector<Format> make_formats(const Config& config) {
  const Widths w{.uop = config.index_bits(Memory::kUop),
                 .dst = config.index_bits(Memory::kAcc),
                 .src = std::max(config.index_bits(Memory::kInp), config.index_bits(Memory::kAcc)),
                 .wgt = config.index_bits(Memory::kWgt)};
  using P = Profile;
  std::vector<Format> formats;
  formats.push_back(make_format<base::Load>("load", P::kBase, Opcode::kLoad, -1, "fills a scratchpad from DRAM", w));
  formats.push_back(
      make_format<base::Store>("store", P::kBase, Opcode::kStore, -1, "writes accumulators' low bytes to DRAM", w));
  formats.push_back(make_format<base::Gemm>("gemm", P::kBase, Opcode::kGemm, -1, "micro-ops on the tensor core", w));
  formats.push_back(make_format<base::Alu>("alu", P::kBase, Opcode::kAlu, -1, "micro-ops on accumulators", w));
  formats.push_back(make_format<base::Finish>("finish", P::kBase, Opcode::kFinish, -1, "ends the stream", w));
  formats.push_back(make_format<native::Move>("move", P::kNative, Opcode::kMove, -1, "DRAM to scratchpad and back", w));
  formats.push_back(
      make_format<native::Gemm>("mac", P::kNative, Opcode::kMac, 0, "five nested loops on the tensor core", w));
  formats.push_back(
      make_format<native::Requantize>("rq", P::kNative, Opcode::kPost, 0, "accumulators to int8 outputs", w));
  formats.push_back(make_format<native::Sync>("sync", P::kNative, Opcode::kPost, -1, "tokens only", w));
  formats.push_back(make_format<native::Finish>("end", P::kNative, Opcode::kFinish, 0, "ends the stream", w));
  assert(formats.size() == std::variant_size_v<Instruction>);
  return formats;
}

std::vector<Field> make_uop_fields(const Config& config) {
  const int dst = config.index_bits(Memory::kAcc);
  const int src = std::max(config.index_bits(Memory::kInp), config.index_bits(Memory::kAcc));
  const int wgt = config.index_bits(Memory::kWgt);
  return {{"dst", 0, dst, false, "accumulator vector"},
          {"src", dst, src, false, "input vector (GEMM) or accumulator vector (ALU)"},
          {"wgt", dst + src, wgt, false, "weight matrix"}};
}

Instruction make_instruction(size_t alternative) {
  Instruction instruction;
  const auto make = [&]<size_t... I>(std::index_sequence<I...>) {
    ((alternative == I ? void(instruction = std::variant_alternative_t<I, Instruction>{}) : void()), ...);
  };
  make(std::make_index_sequence<std::variant_size_v<Instruction>>());
  return instruction;
}

int64_t get_field(const Instruction& instruction, size_t field) {
  return std::visit([&]<class T>(const T& x) -> int64_t { return x.*(members<T>()[field].member); }, instruction);
}

void set_field(Instruction& instruction, size_t field, int64_t value) {
  std::visit([&]<class T>(T& x) { x.*(members<T>()[field].member) = value; }, instruction);
}

}  // namespace tenon::spec
