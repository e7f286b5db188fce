#include "hw/spec/isa.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "hw/spec/isa_tables.h"
#include "tests/seed.h"

namespace tenon::spec {
namespace {

Isa isa_of(const std::string& name) { return Isa(*load_config(name)); }

const Field& field_of(const Isa& isa, std::string_view mnemonic, std::string_view name) {
  for (const Format& format : isa.formats()) {
    if (format.mnemonic != mnemonic) continue;
    for (const Field& field : format.fields) {
      if (field.name == name) return field;
    }
  }
  throw std::runtime_error("no such field");
}

struct FieldBits {
  std::string_view mnemonic, name;
  int msb, lsb;
};

void expect_layout(std::initializer_list<FieldBits> fields) {
  const Isa isa = isa_of("default");
  for (const FieldBits& expected : fields) {
    const Field& field = field_of(isa, expected.mnemonic, expected.name);
    EXPECT_EQ(field.lsb, expected.lsb) << expected.mnemonic << "." << expected.name;
    EXPECT_EQ(field.lsb + field.width - 1, expected.msb) << expected.mnemonic << "." << expected.name;
  }
}

// A random legal instruction of the alternative with index `alternative`.
Instruction random_instruction(const Isa& isa, size_t alternative, std::mt19937_64& random) {
  Instruction instruction = make_instruction(alternative);
  const Format& format = isa.formats()[alternative];
  for (size_t i = 0; i < format.fields.size(); ++i) {
    const Field& field = format.fields[i];
    int64_t value = field.min() + static_cast<int64_t>(random() % static_cast<uint64_t>(field.max() - field.min() + 1));
    if (field.name == "wait" || field.name == "signal") value &= ~int64_t{bit(Engine::kDw)};
    if (field.name == "function") value %= 5;
    if (field.name == "alu_opcode") value %= isa.config().alu_multiply_passes > 0 ? 5 : 4;
    if (field.name == "engine") value = std::array{0, 1, 2, 3, 5, 6}[random() % 6];
    if (field.name == "memory_type") value = format.mnemonic == "store" ? 4 : std::array{0, 1, 2, 3, 5}[random() % 5];
    if (format.mnemonic == "store" && field.name.find("pad") != std::string_view::npos) value = 0;
    set_field(instruction, i, value);
  }
  if (auto* g = std::get_if<native::Gemm>(&instruction); g != nullptr && g->own != 0) {
    if (!isa.config().own_lanes) g->own = 0;
    else g->r0 %= 2, g->r1 %= 3, g->r2 %= isa.config().block_in / 3 + 1;
  }
  if (auto* q = std::get_if<native::Requantize>(&instruction)) {
    if (!isa.config().results_to_inp) q->to_inp = 0;
    if (!isa.config().window_maximum) q->win_rows = q->win_cols = q->win_pitch = q->win_carry = 0;
    if (q->has_window()) q->residual = 0;
  }
  return instruction;
}

TEST(Isa, BaseLayoutIsThatOfTheDefaultTable) {
  expect_layout({{"load", "memory_type", 9, 7},
                 {"load", "sram_base", 25, 10},
                 {"load", "dram_base", 57, 26},
                 {"load", "y_size", 79, 64},
                 {"load", "x_stride", 111, 96},
                 {"load", "x_pad_right", 127, 124},
                 {"gemm", "reset", 7, 7},
                 {"gemm", "uop_begin", 20, 8},
                 {"gemm", "uop_end", 34, 21},
                 {"gemm", "iter_in", 62, 49},
                 {"gemm", "dst_factor_out", 74, 64},
                 {"gemm", "src_factor_in", 107, 97},
                 {"gemm", "wgt_factor_in", 127, 118},
                 {"alu", "alu_opcode", 110, 108},
                 {"alu", "imm", 127, 112}});
  const Isa isa = isa_of("default");
  EXPECT_EQ(isa.uop_fields()[1].lsb, 11);
  EXPECT_EQ(isa.uop_fields()[2].lsb, 22);
}

TEST(Isa, NativeLayoutIsFrozen) {
  expect_layout({{"move", "wait", 13, 7},
                 {"move", "signal", 20, 14},
                 {"move", "base", 31, 29},
                 {"move", "offset", 63, 32},
                 {"move", "source_rows", 227, 212},
                 {"mac", "first", 21, 21},
                 {"mac", "own", 22, 22},
                 {"mac", "r0", 41, 32},
                 {"mac", "dst_base", 95, 82},
                 {"mac", "wgt_r2", 243, 232},
                 {"rq", "residual", 21, 21},
                 {"rq", "rows", 31, 22},
                 {"rq", "r_shift", 220, 216},
                 {"rq", "to_inp", 221, 221},
                 {"rq", "win_rows", 224, 222},
                 {"rq", "win_cols", 227, 225},
                 {"rq", "win_pitch", 239, 228},
                 {"rq", "win_carry", 240, 240}});
}

TEST(Isa, FieldsOfAFormatDoNotOverlap) {
  for (const std::string& name : named_configs()) {
    const Isa isa = isa_of(name);
    for (const Format& format : isa.formats()) {
      int last = 3;
      for (const Field& field : format.fields) {
        if (field.name == "function" || field.name == "engine") continue;  // inside [6:3]
        EXPECT_GE(field.lsb, last) << name << " " << format.mnemonic << "." << field.name;
        last = field.lsb + field.width;
      }
      EXPECT_LE(last, format.profile == Profile::kBase ? 128 : 256);
    }
  }
}

TEST(Isa, AMultiplicationIsRefusedWithoutMultipliers) {
  Config config = *load_config("default");
  config.alu_multiply_passes = 0;
  std::vector<Slot> stream;
  base::Alu multiply;
  multiply.alu_opcode = static_cast<int64_t>(base::AluOp::kMul);
  const auto status = Isa(config).encode(multiply, stream);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().str().find("the ALU of configuration default cannot multiply"), std::string::npos);
}

// The encoder, the assembler and decode refuse the same windows, with one message.
TEST(Isa, WindowsThatOwnLanesCannotHoldAreRefused) {
  Config config = *load_config("default");
  config.own_lanes = true;
  const auto refused = [](const Config& of, std::string_view fields, std::string_view message, std::string_view help) {
    const Isa isa(of);
    const std::string line = fmt::format("mac own=1 {}", fields);
    const auto assembled = isa.assemble(line, "line 1");
    ASSERT_FALSE(assembled) << line;
    EXPECT_NE(assembled.error().str().find(message), std::string::npos) << assembled.error().str();
    EXPECT_NE(assembled.error().str().find("line 1"), std::string::npos) << assembled.error().str();
    EXPECT_NE(assembled.error().help.find(help), std::string::npos) << assembled.error().str();
    auto gemm = std::get<native::Gemm>(*isa.assemble(fmt::format("mac {}", fields), "line 1"));
    std::vector<Slot> stream;
    ASSERT_TRUE(isa.encode(gemm, stream));
    stream[0][0] |= 1u << 22;
    const auto decoded = isa.decode(stream, 0, Profile::kNative);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, StopCode::kBadField);
    EXPECT_NE(decoded.error().message.find(message), std::string::npos) << decoded.error().message;
    gemm.own = 1;
    const auto encoded = isa.encode(gemm, stream);
    ASSERT_FALSE(encoded);
    EXPECT_NE(encoded.error().str().find(message), std::string::npos) << encoded.error().str();
  };
  refused(config, "r0=2 r1=3 r2=3", "r0 is 2, must be at most 1", "a command for each value of r0");
  refused(config, "r0=1 r1=4 r2=1", "at most 3 rows, and r1 is 4", "divide the window: r1 at most 3");
  refused(config, "r0=1 r1=3 r2=6",
          "a window of own lanes of 3 x 6 positions needs 18 bytes of weights, and a lane has 16",
          "3 (r2 - 1) + r1 at most 16");
  refused(*load_config("wide-8x16"), "r0=1 r1=1 r2=1",
          "configuration wide-8x16 has no own lanes, which require equal blocks", "multiply by diagonal matrices");
  config.own_lanes = false;
  refused(config, "r0=1 r1=1 r2=1", "configuration default has no own lanes", "a configuration with own_lanes");
}

TEST(Isa, ResultsForInpAreRefusedWhereTheyCannotGo) {
  Config config = *load_config("default");
  config.results_to_inp = true;
  const Instruction instruction = *Isa(config).assemble("rq to_inp=1 rows=1 cols=1", "line 1");
  std::vector<Slot> stream;
  ASSERT_TRUE(Isa(config).encode(instruction, stream));
  EXPECT_EQ(*Isa(config).decode(stream, 0, Profile::kNative), instruction);
  config.results_to_inp = false;
  for (const auto& [of, message] :
       {std::pair{config, "the requantizer of configuration default does not write to inp"},
        {*load_config("wide-8x16"), "configuration wide-8x16 does not write to inp, which requires equal blocks"}}) {
    const auto assembled = Isa(of).assemble("rq to_inp=1 rows=1 cols=1", "line 1");
    ASSERT_FALSE(assembled);
    EXPECT_NE(assembled.error().str().find(message), std::string::npos) << assembled.error().str();
    EXPECT_NE(assembled.error().help.find("a configuration with results_to_inp"), std::string::npos);
    const auto encoded = Isa(of).encode(instruction, stream);
    ASSERT_FALSE(encoded);
    EXPECT_NE(encoded.error().str().find(message), std::string::npos) << encoded.error().str();
    const auto decoded = Isa(of).decode(stream, 0, Profile::kNative);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, StopCode::kBadField);
    EXPECT_NE(decoded.error().message.find(message), std::string::npos) << decoded.error().message;
  }
}

TEST(Isa, WindowsAreRefusedWhereTheyCannotBe) {
  Config config = *load_config("default");
  Config without = config;
  without.window_maximum = false;
  const auto refused = [&](const Config& of, std::string_view fields, std::string_view message, std::string_view help) {
    const auto line = fmt::format("rq rows=1 cols=1 {}", fields);
    const auto assembled = Isa(of).assemble(line, "line 1");
    ASSERT_FALSE(assembled) << line;
    EXPECT_NE(assembled.error().str().find(message), std::string::npos) << assembled.error().str();
    EXPECT_NE(assembled.error().help.find(help), std::string::npos) << assembled.error().help;
  };
  for (const auto* fields : {"win_rows=2", "win_cols=7", "win_pitch=1", "win_carry=1"}) {
    const Instruction instruction = *Isa(config).assemble(fmt::format("rq rows=1 cols=1 {}", fields), "line 1");
    std::vector<Slot> stream;
    ASSERT_TRUE(Isa(config).encode(instruction, stream));
    EXPECT_EQ(*Isa(config).decode(stream, 0, Profile::kNative), instruction);
    refused(without, fields, "the requantizer of configuration default has no maximum over windows",
            "a configuration with window_maximum");
    const auto encoded = Isa(without).encode(instruction, stream);
    ASSERT_FALSE(encoded);
    EXPECT_NE(encoded.error().str().find("has no maximum over windows"), std::string::npos) << encoded.error().str();
    const auto decoded = Isa(without).decode(stream, 0, Profile::kNative);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, StopCode::kBadField);
    EXPECT_NE(decoded.error().message.find("has no maximum over windows"), std::string::npos);
    refused(config, fmt::format("residual=1 {}", fields), "a window has no residual", "the maximum of its results");
    auto with_residual = std::get<native::Requantize>(instruction);
    with_residual.residual = 1;
    const auto residual = Isa(config).encode(with_residual, stream);
    ASSERT_FALSE(residual);
    EXPECT_NE(residual.error().str().find("a window has no residual"), std::string::npos) << residual.error().str();
  }
  refused(config, "win_rows=8", "win_rows", "");
  refused(config, "win_cols=8", "win_cols", "");
  refused(config, "win_pitch=4096", "win_pitch", "");
  refused(config, "win_carry=2", "win_carry", "");
}

TEST(Isa, EncodeAndDecodeRoundTrip) {
  std::mt19937_64 random(test_seed(1));
  for (const std::string& name : named_configs()) {
    const Isa isa = isa_of(name);
    for (size_t alternative = 0; alternative < std::variant_size_v<Instruction>; ++alternative) {
      for (int i = 0; i < 200; ++i) {
        const Instruction instruction = random_instruction(isa, alternative, random);
        std::vector<Slot> stream;
        const auto status = isa.encode(instruction, stream);
        ASSERT_TRUE(status) << status.error().str();
        const auto decoded = isa.decode(stream, 0, profile_of(instruction));
        ASSERT_TRUE(decoded) << decoded.error().message << " in " << isa.disassemble(instruction);
        EXPECT_EQ(*decoded, instruction) << isa.disassemble(instruction);
      }
    }
  }
}

TEST(Isa, MicroOpsRoundTrip) {
  std::mt19937 random(test_seed(2));
  const Isa isa = isa_of("default");
  for (int i = 0; i < 1000; ++i) {
    const base::Uop uop{static_cast<uint32_t>(random() % 2048), static_cast<uint32_t>(random() % 2048),
                        static_cast<uint32_t>(random() % 1024)};
    EXPECT_EQ(isa.decode_uop(isa.encode_uop(uop)), uop);
  }
}

TEST(Isa, DecodeRefusesIllegalInstructions) {
  const Isa isa = isa_of("default");
  const auto code = [&](const std::vector<Slot>& stream, Profile profile) {
    const auto decoded = isa.decode_all(stream, profile);
    return decoded ? StopCode::kNone : decoded.error().code;
  };
  const Slot zero{0, 0};
  EXPECT_EQ(code({{5, 0}}, Profile::kBase), StopCode::kBadOpcode);                    // MOVE in the base profile
  EXPECT_EQ(code({{0, 0}, zero}, Profile::kNative), StopCode::kBadOpcode);            // LOAD in the native profile
  EXPECT_EQ(code({{6 | 1 << 3, 0}, zero}, Profile::kNative), StopCode::kBadOpcode);   // DW
  EXPECT_EQ(code({{7 | 12 << 3, 0}, zero}, Profile::kNative), StopCode::kBadOpcode);  // SYNC on DW
  EXPECT_EQ(code({{7 | 15 << 3, 0}, zero}, Profile::kNative), StopCode::kBadOpcode);  // no such engine
  EXPECT_EQ(code({{5 | 5 << 3, 0}, zero}, Profile::kNative), StopCode::kBadOpcode);   // no such MOVE
  EXPECT_EQ(code({{5 | 1u << 21, 0}, zero}, Profile::kNative), StopCode::kBadField);  // reserved bit
  EXPECT_EQ(code({{7 | 8 << 3 | 1 << 11, 0}, zero}, Profile::kNative), StopCode::kBadField);  // token of DW
  EXPECT_EQ(code({{5, 0}}, Profile::kNative), StopCode::kTruncated);
  EXPECT_EQ(code({{3, 0}, {3, 0}}, Profile::kBase), StopCode::kAfterFinish);
  EXPECT_EQ(code({{0 | 4 << 7, 1ull << 16}}, Profile::kBase), StopCode::kBadField);               // LOAD of out
  EXPECT_EQ(code({{0 | 4 << 7, 0}}, Profile::kBase), StopCode::kNone);                            // only synchronizes
  EXPECT_EQ(code({{1 | 3 << 7, 1ull << 16}}, Profile::kBase), StopCode::kBadField);               // STORE of acc
  EXPECT_EQ(code({{1 | 4 << 7, 1ull << 16 | 1ull << 48}}, Profile::kBase), StopCode::kBadField);  // STORE with pads
  EXPECT_EQ(code({{4, 5ull << 44}}, Profile::kBase), StopCode::kBadField);                        // ALU opcode 5
  EXPECT_EQ(code({}, Profile::kBase), StopCode::kNone);
}

TEST(Isa, EncodeRefusesValuesThatDoNotFit) {
  const Isa isa = isa_of("default");
  std::vector<Slot> stream;
  native::Gemm gemm;
  gemm.r0 = 1024;
  const auto status = isa.encode(gemm, stream);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().str().find("r0 is 1024, its field holds 0 .. 1023"), std::string::npos)
      << status.error().str();
}

TEST(Isa, BaseTokensBecomeTheMatrixOfTheClasses) {
  base::Gemm gemm;
  gemm.pop_prev = gemm.push_next = 1;
  EXPECT_EQ(engine_of(gemm), Engine::kGemm);
  EXPECT_EQ(tokens_of(gemm), (TokenMasks{bit(Engine::kLdi), bit(Engine::kSt)}));
  base::Load load;
  load.memory_type = static_cast<int>(base::MemoryType::kWgt);
  load.pop_prev = load.pop_next = load.push_next = 1;
  EXPECT_EQ(engine_of(load), Engine::kLdi);
  EXPECT_EQ(tokens_of(load), (TokenMasks{bit(Engine::kGemm), bit(Engine::kGemm)}));
  load.memory_type = static_cast<int>(base::MemoryType::kUop);
  EXPECT_EQ(engine_of(load), Engine::kGemm);
}

}  // namespace
}  // namespace tenon::spec
