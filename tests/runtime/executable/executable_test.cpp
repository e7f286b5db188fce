#include "runtime/executable/executable.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>

#include "runtime/executable/layout.h"
#include "support/file.h"
#include "support/function_ref.h"
#include "tests/runtime/sample.h"
#include "tests/seed.h"

namespace tenon::runtime {
namespace {

// Recomputes the file's hashes, so that damage passes them.
void rehash(std::vector<std::byte>& file) {
  if (file.size() < sizeof(Preface)) return;
  Preface preface;
  std::memcpy(&preface, file.data(), sizeof(preface));
  preface.header_bytes = std::min<uint64_t>(preface.header_bytes, file.size() - sizeof(preface));
  preface.file_bytes = file.size();
  auto header = std::span(file).subspan(sizeof(preface), preface.header_bytes);
  preface.header_hash = sha256(header);
  std::memcpy(file.data(), &preface, sizeof(preface));
}

std::string load_error(std::span<const std::byte> file) {
  auto result = deserialize(file, "m.tnx");
  return result ? "loaded" : result.error().str();
}

std::string verify_error(FunctionRef<void(Executable&)> damage) {
  Executable e = sample::executable();
  damage(e);
  auto status = verify(e, "m.tnx");
  return status ? "verified" : status.error().str();
}

TEST(Executable, RoundTripsThroughMemoryAndFile) {
  Executable e = sample::executable();
  auto file = serialize(e);
  ASSERT_TRUE(file) << file.error().str();
  auto again = deserialize(*file, "memory");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(*again, e);
  EXPECT_EQ(serialize(*again), *file) << "equal executables have equal bytes";
  auto path = std::filesystem::temp_directory_path() / ("tenon-" + std::to_string(getpid()) + ".tnx");
  ASSERT_TRUE(save(e, path));
  EXPECT_EQ(load(path).value(), e);
  std::filesystem::remove(path);
}

// Constants are parts of the memory that the file was read into, aligned as tensors are, and outlive the executable.
TEST(Executable, ConstantsOfAFileAreUsedWhereItWasRead) {
  Executable e = sample::executable();
  e.constants.push_back(Tensor::of<float>({3}, std::array<float, 3>{1, 2, 3}));
  const auto path = std::filesystem::temp_directory_path() / ("tenon-constants-" + std::to_string(getpid()) + ".tnx");
  ASSERT_TRUE(save(e, path));
  auto loaded = load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(loaded) << loaded.error().str();
  ASSERT_EQ(loaded->constants, e.constants);
  const auto owner = loaded->constants.front().storage().memory;
  for (const Tensor& constant : loaded->constants) {
    EXPECT_FALSE(owner.owner_before(constant.storage().memory) || constant.storage().memory.owner_before(owner));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(constant.bytes().data()) % kSectionAlignment, 0);
  }
  const Tensor last = loaded->constants.back();
  *loaded = Executable();
  EXPECT_EQ(last, e.constants.back());
}

TEST(Executable, NamesOfAFileControlNoTerminal) {
  Executable executable = sample::executable();
  executable.name = executable.functions[0].params[0].name = "x\x1b[2J\nerror: fake";
  const auto loaded = deserialize(serialize(executable).value(), "x.tnx");
  ASSERT_TRUE(loaded) << loaded.error().str();
  EXPECT_EQ(loaded->name, "x\\x1b[2J\\nerror: fake");
  EXPECT_EQ(loaded->functions[0].params[0].name, "x\\x1b[2J\\nerror: fake");
  executable.functions[0].params[0].name = std::string(1'000'000, 'n');
  EXPECT_LT(to_string(executable.functions[0].params[0]).size(), 1000u);
}

TEST(Executable, EveryKindOfAttributeRoundTrips) {
  Executable e = sample::executable();
  auto& call = std::get<CallKernel>(e.functions[0].code[5].operation);
  call.attrs = {{"i", int64_t{-5}},
                {"d", 0.1},
                {"s", std::string("same")},
                {"is", std::vector<int64_t>{1, -2}},
                {"ds", std::vector<double>{}},
                {"empty", std::string()}};
  EXPECT_EQ(deserialize(serialize(e).value(), "memory").value(), e);
}

TEST(Executable, SectionsAreAlignedForDma) {
  auto file = serialize(sample::executable()).value();
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  auto w = sample::weights();
  EXPECT_EQ(text.find(std::string_view(reinterpret_cast<const char*>(w.data()), w.size())) % 64, 0u);
}

TEST(Executable, ADamagedFileSaysWhatIsWrong) {
  auto good = serialize(sample::executable()).value();
  auto has = [&](std::vector<std::byte> file, std::string_view text) {
    EXPECT_NE(load_error(file).find(text), std::string::npos) << load_error(file);
  };
  has({}, "not an executable: 0 bytes");
  auto bad = good;
  bad[0] = std::byte{0};
  has(bad, "does not begin with Tenon's signature");
  bad = good;
  bad[8] = std::byte{9};
  has(bad, "format version 9, this runtime reads 4");
  bad[8] = std::byte{2};  // a file of an earlier version of Tenon
  has(bad, "executable of format version 2, this runtime reads 4");
  has(bad, "compile the model again with this version's tenon compile");
  bad = good;
  bad.pop_back();
  has(bad, "its preface says");
  bad = good;
  bad[200] ^= std::byte{1};
  has(bad, "the header does not match its SHA-256");
  Executable slow = sample::executable();
  slow.programs.at(0).memory.write_latency = 0;
  has(serialize(slow).value(),
      "the write latency of the memory of program 'region_0' is '0', must be an integer from 1 to 100000");
  bad = good;
  bad.back() ^= std::byte{1};
  has(bad, "does not match its SHA-256");
  EXPECT_NE(load("/nonexistent.tnx").error().str().find("No such file"), std::string::npos);
}

TEST(Executable, VerifyNamesEveryBrokenRule) {
  struct Case {
    std::string_view message;
    std::function<void(Executable&)> damage;
  };
  using E = Executable&;
  auto code = [](E e, size_t i) -> Operation& { return e.functions[0].code[i].operation; };
  auto rewrite = [](E e, uint32_t slot, FunctionRef<void(spec::native::Move&)> change) {
    AcceleratorProgram& p = e.programs[0];
    spec::Isa isa(p.config);
    auto move = std::get<spec::native::Move>(isa.decode(p.instructions, slot, p.profile).value());
    change(move);
    std::vector<spec::Slot> slots;
    ASSERT_TRUE(isa.encode(move, slots));
    std::copy(slots.begin(), slots.end(), p.instructions.begin() + slot);
  };
  const Case cases[] = {
      {"the entry is function 7 of 2", [](E e) { e.entry = 7; }},
      {"constant 1 is empty", [](E e) { e.constants[1] = {}; }},
      {"function 'main': instruction 4: constant 9 of 2",
       [&](E e) {
         code(e, 4) = LoadConstant{3, 9};
       }},
      {"instruction 4: register 5 of 5",
       [&](E e) {
         code(e, 4) = LoadConstant{5, 0};
       }},
      {"instruction 0: a jump to instruction 7 of 7",
       [&](E e) {
         code(e, 0) = Branch{1, 7};
       }},
      {"instruction 2: a jump to instruction 8 of 7", [&](E e) { code(e, 2) = Jump{8}; }},
      {"instruction 1: function 2 of 2",
       [&](E e) {
         code(e, 1) = CallFunction{2, {0}, {2}};
       }},
      {"instruction 1: 2 arguments, must be 1",
       [&](E e) {
         code(e, 1) = CallFunction{1, {0, 0}, {2}};
       }},
      {"instruction 1: program 1 of 1",
       [&](E e) {
         code(e, 1) = CallProgram{1, {0}, {2}};
       }},
      {"instruction 1: 0 results, must be 1",
       [&](E e) {
         code(e, 1) = CallProgram{0, {0}, {}};
       }},
      {"instruction 1: program 1 of 1",
       [&](E e) {
         code(e, 1) = StartProgram{1, {0}};
       }},
      {"instruction 1: 2 arguments, must be 1",
       [&](E e) {
         code(e, 1) = StartProgram{0, {0, 0}};
       }},
      {"two results go to one register",
       [&](E e) {
         code(e, 5) = CallKernel{"k", {}, {0}, {4, 4}};
       }},
      {"instruction 6: 2 values, must be 1",
       [&](E e) {
         code(e, 6) = Return{{4, 4}};
       }},
      {"the last instruction is neither return nor jump",
       [&](E e) {
         code(e, 6) = Move{4, 3};
       }},
      {"it has no instructions", [](E e) { e.functions[1].code.clear(); }},
      {"it has 1000000 registers, its code mentions", [](E e) { e.functions[1].registers = 1000000; }},
      {"2 parameters do not fit 1 registers", [](E e) { e.functions[0].registers = 1; }},
      {"two ports are named 'x'", [](E e) { e.functions[0].params[1].name = "x"; }},
      {"'x' is List[A], and has the shape (-1,)",
       [](E e) { e.functions[0].params[0] = {.name = "x", .shape = {kAnySize}, .symbols = {"n"}, .type = "List[A]"}; }},
      {"'x' has the shape (-2,)", [](E e) { e.functions[0].params[0].shape = {-2}; }},
      {"state 0: it is parameter 7 and result 0 of 2 and 1",
       [](E e) {
         e.states = {{7, 0, std::nullopt}};
       }},
      {"state 0: it is parameter 0 and result 1 of 2 and 1",
       [](E e) {
         e.states = {{0, 1, std::nullopt}};
       }},
      {"state 0: 'x' is i8 (2, 4), the result that replaces it i8 (2, 5)",
       [](E e) {
         e.functions[0].params[0].shape = {2, 4};
         e.functions[0].params[0].symbols.clear();
         e.functions[0].results[0].dtype = e.functions[0].params[0].dtype = DType::kI8;
         e.functions[0].results[0].shape = {2, 5};
         e.functions[0].results[0].symbols.clear();
         e.states = {{0, 0, std::nullopt}};
       }},
      {"state 0: its first value is constant 9 of 2",
       [](E e) {
         e.functions[0].results[0] = e.functions[0].params[0];
         e.states = {{0, 0, 9}};
       }},
      {"state 1: 'x' is a state before",
       [](E e) {
         e.functions[0].results[0] = e.functions[0].params[0];
         e.states = {{0, 0, std::nullopt}, {0, 0, std::nullopt}};
       }},
      {"state 1: the result 'y' replaces a state before",
       [](E e) {
         e.functions[0].results[0] = e.functions[0].params[0];
         e.functions[0].results[0].name = "y";
         e.functions[0].params[1] = e.functions[0].params[0];
         e.functions[0].params[1].name = "z";
         e.states = {{0, 0, std::nullopt}, {1, 0, std::nullopt}};
       }},
      {"unit 0: it is function 2 of 2", [](E e) { e.units[0].function = 2; }},
      {"unit 0: it is function 9 of 2", [](E e) { e.units[0].batched = 9; }},
      {"takes 1 words, the unit 2",
       [](E e) {
         e.units[0].own = {true, true};
       }},
      {"unit 0: it has no result", [](E e) { e.units[0].own_results.clear(); }},
      {"unit 0: its calls share all parameters", [](E e) { e.units[0].own[0] = false; }},
      {"unit 0: its calls are joined by rows, and it has a function for several calls",
       [](E e) { e.units[0].joined_axes = 1; }},
      {"unit 0: its calls are joined by rows, and share a result",
       [](E e) {
         e.units[0] = {.function = 1, .batched = {}, .own = {true}, .own_results = {false}, .joined_axes = 1};
       }},
      {"unit 0: its calls share all parameters",
       [](E e) {
         e.units[0] = {.function = 1, .batched = {}, .own = {false}, .own_results = {true}, .joined_axes = 1};
       }},
      {"takes 1 words, the unit 2", [](E e) { e.units[0].sequences = {true}, e.units[0].sequence_results = {true}; }},
      {"unit 0: its calls are joined as sequences, and it has no function for several calls",
       [](E e) {
         e.units[0] = {.function = 1, .batched = {}, .own = {true}, .own_results = {true}, .sequences = {true}};
       }},
      {"unit 0: its calls share a sequence, or the sequences are not those of its parameters and results",
       [](E e) { e.units[0].sequences = {true}; }},
      {"unit 0: its calls are joined as sequences, and none of its parameters is one",
       [](E e) { e.units[0].sequences = {false}, e.units[0].sequence_results = {false}; }},
      {"unit 1: function 1 is a unit before", [](E e) { e.units.push_back(e.units[0]); }},
      {"the graph has 3 nodes and an edge from 0 to 3", [](E e) { e.graph.edges[0].to = 3; }},
      {"block_in is 3, must be", [](E e) { e.programs[0].config.block_in = 3; }},
      {"executables hold native programs only", [](E e) { e.programs[0].profile = spec::Profile::kBase; }},
      {"program 'region_0': it has no instructions", [](E e) { e.programs[0].instructions.clear(); }},
      {"instruction 0: ",
       [](E e) {
         e.programs[0].instructions[0] = {~0ull, ~0ull};
       }},
      {"'y' has base register 2, must be 3", [](E e) { e.programs[0].outputs[0].base = 2; }},
      {"more than 6 inputs and outputs",
       [](E e) {
         e.programs.push_back(e.programs[0]);
         for (int i = 4; i < 9; ++i) e.programs[1].outputs.push_back({"o", DType::kI8, {1}, i});
       }},
      {"bytes [0, 64) of 'x', which has 48",
       [](E e) {
         e.programs[0].inputs[0].shape = {3, 16};
       }},
      {"bytes [256, 384) of the constants, which has 383", [](E e) { e.programs[0].constants.pop_back(); }},
      {"bytes [4294967295, 4294967359) of 'x'", [&](E e) { rewrite(e, 0, [](auto& m) { m.offset = 0xffffffff; }); }},
      {"base register 5 has no buffer", [&](E e) { rewrite(e, 0, [](auto& m) { m.base = 5; }); }},
      {"a store into the constants", [&](E e) { rewrite(e, 10, [](auto& m) { m.base = 0; }); }},
      {"a store into 'x'", [&](E e) { rewrite(e, 10, [](auto& m) { m.base = 2; }); }},
      {"a note of slot 99", [](E e) { e.programs[0].notes[3].slot = 99; }},
      {"a note of slot 2 and layer 5", [](E e) { e.programs[0].notes[1].layer = 5; }},
      {"layer 'dense_1' has a negative count", [](E e) { e.programs[0].layers[0].macs = -1; }},
      {"tensor 'hidden' of shape (4, 16) at byte 200 of a workspace of 256",
       [](E e) { e.programs[0].probes[0].offset = 200; }},
  };
  for (const Case& c : cases) {
    std::string found = verify_error(c.damage);
    EXPECT_NE(found.find(c.message), std::string::npos) << "expected: " << c.message << "\nfound: " << found;
  }
  EXPECT_EQ(verify_error([](E) {}), "verified");
}

// Padding and strides may extend past a buffer as long as no byte there is touched.
TEST(Executable, OnlyTouchedBytesCountAgainstABuffer) {
  Executable e = sample::executable();
  AcceleratorProgram& p = e.programs[0];
  spec::Isa isa(p.config);
  auto inp = std::get<spec::native::Move>(isa.decode(p.instructions, 0, p.profile).value());
  inp.rows = 3, inp.top = 1, inp.source_rows = 1, inp.y_step = 1 << 20, inp.left = -8, inp.vectors = 5;
  std::vector<spec::Slot> slots;
  ASSERT_TRUE(isa.encode(inp, slots));
  std::copy(slots.begin(), slots.end(), p.instructions.begin());
  EXPECT_TRUE(verify(e, "memory"));
}

// Damage anywhere, with the hashes recomputed: an error or a sound executable, never a crash or unbounded memory.
TEST(Executable, MutatedFilesNeverCrash) {
  std::mt19937 random(test_seed(40));
  Executable sample = sample::executable();
  const Size size{{SizeStep::Op::kDim, 0}, {SizeStep::Op::kConstant, 2}, {SizeStep::Op::kMultiply}};
  const SignatureBuffer buffer{"x", DType::kI8, {size}};
  sample.natives.push_back({"x86_64-unknown-linux-gnu",
                            {"x86-64-v3", "x86-64-v2"},
                            std::vector<std::byte>(100),
                            {{"twice", {{{"n", 0, 0, 2, {{SizeStep::Op::kConstant, 0}}}}, {buffer}, {buffer}}}}});
  sample.natives.push_back({std::string(kGpuTriple),
                            {"sm_80"},
                            std::vector<std::byte>(100, std::byte{'x'}),
                            {{"half",
                              {{{"n", 0, 0, 2, {{SizeStep::Op::kConstant, 0}}}}, {buffer}, {buffer}},
                              {buffer},
                              {{"half_0", {0, 2}, {size}, {size, size, size}, {32, 2, 1}}}}},
                            {{TN_FAULT_DIVISION, "@half"}}});
  auto good = serialize(sample).value();
  Preface preface;
  std::memcpy(&preface, good.data(), sizeof(preface));
  int loaded = 0, refused = 0;
  const int rounds = 30000;
  for (int i = 0; i < rounds; ++i) {
    auto bad = good;
    for (unsigned n = random() % 3 + 1; n-- > 0;) {
      size_t at = random() % 4 == 0 ? random() % bad.size() : sizeof(preface) + random() % preface.header_bytes;
      switch (random() % 3) {
        case 0: bad[at] = static_cast<std::byte>(random()); break;
        case 1: bad[at] ^= static_cast<std::byte>(1u << random() % 8); break;
        case 2: {
          uint32_t value =
              random() % 2 ? random() : std::array<uint32_t, 5>{0, 1, 0x7fffffff, 0xffffffff, 64}[random() % 5];
          std::memcpy(&bad[std::min(at & ~size_t{3}, bad.size() - 4)], &value, 4);
          break;
        }
      }
    }
    if (random() % 20 == 0) bad.resize(random() % bad.size());
    rehash(bad);
    auto result = deserialize(bad, "fuzz");
    ++(result ? loaded : refused);
    if (result) {
      // An executable that loads must round-trip: it is as sound as the compiler's.
      auto bytes = serialize(*result);
      ASSERT_TRUE(bytes) << bytes.error().str();
      auto again = deserialize(*bytes, "again");
      ASSERT_TRUE(again) << again.error().str();
      EXPECT_EQ(serialize(*again).value(), *bytes);
    }
  }
  EXPECT_GT(loaded, rounds / 100);
  EXPECT_GT(refused, rounds / 10);
}

TEST(Port, NamesOfFilesAreDifferentAndStayInTheirDirectory) {
  const auto port = [](std::string name) { return Port{.name = std::move(name)}; };
  const std::string longest(300, 'y');
  const std::vector<Port> ports = {port("a/b"),   port("a_b"),         port("../../x"),
                                   port("a_b.1"), port("b\n"),         port(""),
                                   port(longest), port(longest + "z"), port(std::string("n\0l", 3))};
  const std::string cut(200, 'y');
  EXPECT_EQ(file_names(ports),
            (std::vector<std::string>{"a_b", "a_b.1", ".._.._x", "a_b.1.3", "b_", "", cut, cut + ".7", "n_l"}));
}

}  // namespace
}  // namespace tenon::runtime
