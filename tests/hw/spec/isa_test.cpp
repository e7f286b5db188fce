#include "hw/spec/isa.h"

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
                 {"mac", "r0", 41, 32},
                 {"mac", "dst_base", 95, 82},
                 {"mac", "wgt_r2", 243, 232},
                 {"rq", "residual", 21, 21},
                 {"rq", "rows", 31, 22},
                 {"rq", "r_shift", 220, 216}});
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
