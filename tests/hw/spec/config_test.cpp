#include "hw/spec/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "hw/spec/registers.h"

namespace tenon::spec {
namespace {

// The default configuration without its extensions.
std::string default_text() {
  std::ifstream stream(TENON_SOURCE_DIR "/hw/configs/default.json");
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto offset = text.find(",\n  \"extensions\"");
  EXPECT_NE(offset, std::string::npos);
  return text.replace(offset, std::string::npos, "\n}\n");
}

// The default configuration with a part of its text replaced.
Expected<Config> parse_with(const std::string& from, const std::string& to) {
  std::string text = default_text();
  const auto offset = text.find(from);
  EXPECT_NE(offset, std::string::npos) << from;
  text.replace(offset, from.size(), to);
  return parse_config(text, "test.json");
}

void expect_message(const Expected<Config>& config, const std::string& part) {
  ASSERT_FALSE(config.has_value()) << "accepted; wanted: " << part;
  EXPECT_NE(config.error().str().find(part), std::string::npos) << config.error().str();
  EXPECT_NE(config.error().str().find("test.json"), std::string::npos) << config.error().str();
}

TEST(Config, DefaultHasTheDepthsOfTheBaseInstructionSet) {
  const auto config = load_config("default");
  ASSERT_TRUE(config) << config.error().str();
  EXPECT_EQ(config->depth(Memory::kUop), 8192);
  EXPECT_EQ(config->depth(Memory::kInp), 2048);
  EXPECT_EQ(config->depth(Memory::kWgt), 1024);
  EXPECT_EQ(config->depth(Memory::kAcc), 2048);
  EXPECT_EQ(config->units_per_element(Memory::kWgt), 16);
  EXPECT_EQ(config->units_per_element(Memory::kPar), 8);
}

TEST(Config, EveryNamedConfigurationIsValidAndRoundTrips) {
  ASSERT_GE(named_configs().size(), 4u);
  for (const std::string& name : named_configs()) {
    const auto config = load_config(name);
    ASSERT_TRUE(config) << config.error().str();
    EXPECT_EQ(config->name, name);
    const auto again = parse_config(to_json(*config), name);
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(*again, *config);
    EXPECT_EQ(hash(*again), hash(*config));
  }
}

TEST(Config, HashDependsOnEveryFieldButTheName) {
  const Config config = *load_config("default");
  Config other = config;
  other.name = "another";
  EXPECT_EQ(hash(other), hash(config));
  other.axi_data_bits = 128;
  EXPECT_NE(hash(other), hash(config));
  EXPECT_EQ(difference(config, other), "axi_data_bits: 64 here, 128 there\n");
  other = config;
  other.native = false;
  EXPECT_NE(hash(other), hash(config));
  EXPECT_EQ(difference(config, other), "profiles.1: \"native\" here, absent there\n");
}

TEST(Config, BadInputIsDiagnosed) {
  expect_message(parse_with("\"version\": 1", "\"version\": 7"), "version is 7, this build reads version 1");
  expect_message(parse_with("{", "{{"), "not valid JSON");
  expect_message(parse_config("[]", "test.json"), "a configuration must be a JSON object");
  expect_message(parse_with("\"block_in\": 16", "\"block_in\": 12"),
                 "block_in is 12, must be a power of two in 2 .. 64");
  expect_message(parse_with("\"block_in\": 16", "\"block_in\": \"x\""), "block_in is \"x\", must be an integer");
  expect_message(parse_with("\"block_in\": 16", "\"block_in\": 99999999999"), "block_in is 99999999999");
  expect_message(parse_with("\"block_in\": 16,", ""), "\"block_in\" is missing");
  expect_message(parse_with("\"block_in\": 16", "\"block_in\": 16, \"colour\": 1"), "unknown key \"colour\"");
  expect_message(parse_with("\"res\": 8192", "\"res\": 8192, \"x\": 1"), "unknown key \"x\"");
  expect_message(parse_with("\"axi_data_bits\": 64", "\"axi_data_bits\": 16"), "axi_data_bits is 16");
  expect_message(parse_with("\"max_burst_beats\": 64", "\"max_burst_beats\": 512"), "at most 256 beats");
  expect_message(parse_with("\"queue_depth\": 32", "\"queue_depth\": 0"), "queue_depth is 0");
  expect_message(parse_with("[\"base\", \"native\"]", "[]"), "profiles is empty");
  expect_message(parse_with("[\"base\", \"native\"]", "[\"turbo\"]"), "unknown profile \"turbo\"");
  expect_message(parse_with("[\"base\", \"native\"]", "3"), "profiles must be an array");
  expect_message(parse_with("\"inp\": 32768", "\"inp\": 30000"), "a power of two of elements");
  expect_message(parse_with("\"inp\": 32768", "\"inp\": 0"), "at least 2");
  expect_message(parse_with("\"uop\": 32768", "\"uop\": 65536"), "at most 8192 elements");
  expect_message(parse_with("\"acc\": 131072", "\"acc\": 262144"), "a micro-op needs 34 bits");
  expect_message(
      parse_with("\"wgt\": 262144, \"inp\": 32768, \"acc\": 131072", "\"wgt\": 512, \"inp\": 32768, \"acc\": 262144"),
      "2 x (12 + 12) bits");
  expect_message(parse_with("\"default\"", "\"a/b\""), "name is \"a/b\"");
}

// The default configuration with `extensions`.
Expected<Config> parse_extended(const std::string& extensions, const std::string& profiles = "[\"base\", \"native\"]") {
  return parse_with("\"profiles\": [\"base\", \"native\"],",
                    fmt::format("\"profiles\": {}, \"extensions\": {},", profiles, extensions));
}

TEST(Config, ExtensionsHaveDefaultsAndCountInTheHash) {
  const Config plain = *parse_config(default_text(), "test.json");
  const auto same = parse_extended("{}");
  ASSERT_TRUE(same) << same.error().str();
  EXPECT_EQ(*same, plain);
  const auto other = parse_extended("{\"counters\": false, \"address_bits\": 40, \"requantizer_passes\": 4}");
  ASSERT_TRUE(other) << other.error().str();
  EXPECT_FALSE(other->counters);
  EXPECT_EQ(other->address_mask(), (uint64_t{1} << 40) - 1);
  EXPECT_EQ(other->requantizer_passes, 4);
  EXPECT_NE(hash(*other), hash(plain));
  EXPECT_NE(difference(plain, *other).find("extensions.counters: true here, false there"), std::string::npos);
  EXPECT_EQ(capabilities(plain), 0x01406f1fU);
  EXPECT_EQ(capabilities(*other), 0x04286f1bU);
  EXPECT_EQ(capabilities(*parse_extended("{\"window_maximum\": true}")), 0x81406f1fU);
}

TEST(Config, ExtensionsThatDoNotFitTogetherAreRefused) {
  const std::string native = "[\"native\"]", base = "[\"base\"]";
  expect_message(parse_extended("3"), "extensions must be an object");
  expect_message(parse_extended("{\"turbo\": true}"), "unknown key \"turbo\"");
  expect_message(parse_extended("{\"counters\": 1}"), "counters is 1, must be true or false");
  expect_message(parse_extended("{\"address_bits\": \"x\"}"), "address_bits is \"x\", must be an integer");
  expect_message(parse_extended("{\"address_bits\": 11}"), "extensions.address_bits is 11, must be 12 .. 64");
  expect_message(parse_extended("{\"alu_multiply_passes\": 3}"), "extensions.alu_multiply_passes is 3");
  expect_message(parse_extended("{\"requantizer_passes\": 3}"), "must be a power of two in 1 .. 64");
  expect_message(parse_extended("{\"requantizer_passes\": 32}"), "must be at most block_out = 16");
  expect_message(parse_extended("{\"requantizer_passes\": 2}", base), "only the native profile has a requantizer");
  expect_message(parse_extended("{\"weight_engine\": false}"), "the native profile loads inputs and weights at a time");
  expect_message(parse_extended("{\"requantizer_passes\": 2, \"alu_multiply_passes\": 2}"),
                 "requires a multiplier for each of the 16 lanes, and requantizer_passes leaves 8");
  expect_message(parse_extended("{\"alu_multiply_passes\": 0}", native), "only the base profile has an ALU");
  expect_message(parse_extended("{\"alu_passes\": 8}"), "extensions.alu_passes is 8, must be a power of two in 1 .. 4");
  expect_message(parse_extended("{\"alu_passes\": 2}", native),
                 "alu_passes is set, and only the base profile has an ALU");
  expect_message(parse_extended("{\"alu_passes\": 2, \"alu_multiply_passes\": 2}"),
                 "multiplies whole elements, and alu_passes is set");
  expect_message(parse_extended("{\"accumulator_engine\": false}"),
                 "one engine that loads everything else comes first");
  expect_message(parse_extended("{\"in_order\": true}"), "the native profile's engines run free of each other");
  expect_message(parse_extended("{\"in_order\": true}", base), "in_order is true, and queue_depth is 32");
  expect_message(parse_extended("{\"serial_products\": true, \"packed_products\": true}"), "which has no multipliers");
  expect_message(parse_extended("{\"in_order\": true, \"overlapping_stores\": true}", base),
                 "in_order is true, and queue_depth is 32");
  expect_message(parse_with("\"queue_depth\": 32,\n  \"profiles\": [\"base\", \"native\"]",
                            "\"queue_depth\": 1, \"profiles\": [\"base\"], "
                            "\"extensions\": {\"in_order\": true, \"overlapping_stores\": true}"),
                 "overlapping_stores is true: no instruction begins before the last ends");
  expect_message(parse_extended("{\"own_lanes\": true}", base), "only the native profile has the instruction");
  expect_message(parse_with("\"block_out\": 16", "\"block_out\": 8, \"extensions\": {\"own_lanes\": true}"),
                 "own_lanes is true, and block_in is 16, block_out 8");
  expect_message(parse_extended("{\"results_to_inp\": true}", base), "only the native profile has a requantizer");
  expect_message(parse_with("\"block_out\": 16", "\"block_out\": 8, \"extensions\": {\"results_to_inp\": true}"),
                 "results_to_inp is true, and block_in is 16, block_out 8");
  expect_message(parse_extended("{\"window_maximum\": true}", base), "only the native profile has a requantizer");
  std::string small = default_text();
  small.replace(small.find("\"inp\": 32768"), 12, "\"inp\": 32");
  small.replace(small.find("\"native\"],"), 10, "\"native\"], \"extensions\": {\"own_lanes\": true},");
  expect_message(parse_config(small, "test.json"), "inp has 2 vectors, must be at least 4");
  expect_message(parse_extended("{\"read_beats\": 2048}"), "extensions.read_beats is 2048, must be 0 .. 1024");
  expect_message(parse_extended("{\"read_beats\": 32}"),
                 "extensions.read_beats is 32, must be 0 or a power of two in 64 .. 1024");
  expect_message(parse_extended("{\"read_beats\": 192}"), "has room for a burst");
  const auto narrow = parse_with("\"block_out\": 16", "\"block_out\": 2, \"extensions\": {\"alu_passes\": 4}");
  expect_message(narrow, "extensions.alu_passes is 4, must be at most block_out = 2");
}

TEST(Config, LoadsReadAheadTwoBurstsWhereTheFileSaysNothingElse) {
  EXPECT_EQ(parse_extended("{}")->read_fifo_beats(), 128);
  EXPECT_EQ(parse_with("\"max_burst_beats\": 64", "\"max_burst_beats\": 4")->read_fifo_beats(), 32);
  const auto deep = parse_extended("{\"read_beats\": 512}"), shallow = parse_extended("{\"read_beats\": 64}");
  ASSERT_TRUE(deep) << deep.error().str();
  EXPECT_EQ(deep->read_fifo_beats(), 512);
  EXPECT_EQ(deep->base_read_beats(), 128);
  EXPECT_EQ(shallow->base_read_beats(), 64);
}

TEST(Config, ArgumentRegistersKeepTheBitsThatAddressesHave) {
  const auto small = parse_extended("{\"address_bits\": 14, \"weight_engine\": false}", "[\"base\"]");
  ASSERT_TRUE(small) << small.error().str();
  EXPECT_EQ(argument_bits(*small, reg::kInstructions), 0x3fffU);
  EXPECT_EQ(argument_bits(*small, reg::kInstructions + 4), 0U);
  EXPECT_EQ(argument_bits(*small, reg::kCount), 0x7ffU);  // as many slots as fit the addresses, and one bit more
  EXPECT_EQ(argument_bits(*small, reg::kBase0 + 8 * 4), 0x3fffU);
  EXPECT_EQ(argument_bits(*small, reg::kBase0 + 8 * 5), 0U);  // the base profile has five memories
  const Config plain = *load_config("default");
  for (const uint32_t offset : {reg::kInstructions + 4, reg::kCount, reg::kMode, reg::kBase0 + 60}) {
    EXPECT_EQ(argument_bits(plain, offset), ~0U) << offset;
  }
}

TEST(Config, EveryJsonNumberIsAcceptedOrRefused) {
  const std::vector<std::string> non_integers = {
      "1.5",       "16.0", "1e3", "-1e-400", "18446744073709551615", "null", "false", "[[1]]", "9223372036854775808",
      "{\"a\": 1}"};
  const std::vector<std::string> out_of_range = {
      "-1", "0", "-0", "2147483648", "-2147483649", "9223372036854775807", "-9223372036854775808"};
  const std::vector<std::string> beyond_double = {"1e31072", "-1e400", "1" + std::string(400, '0')};
  for (const char* key : {"version", "block_in", "axi_data_bits", "max_burst_beats", "queue_depth", "uop", "res"}) {
    const std::string text = default_text();
    const auto begin = text.find(':', text.find('"' + std::string(key) + '"')) + 1;
    const auto end = text.find_first_of(",}\n", begin);
    const auto with = [&](const std::string& number) {
      SCOPED_TRACE(fmt::format("{}: {}", key, number));
      return parse_config(text.substr(0, begin) + number + text.substr(end), "test.json");
    };
    for (const std::string& number : non_integers) expect_message(with(number), "must be an integer");
    for (const std::string& number : out_of_range) expect_message(with(number), key);
    for (const std::string& number : beyond_double) expect_message(with(number), "not valid JSON");
  }
}

TEST(Config, DeepNestingAndDuplicateKeysAreRefused) {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  expect_message(parse_with("[\"base\", \"native\"]", deep), "more than 8 nested values");
  expect_message(parse_with("[\"base\", \"native\"]", "[[[[]]]]"), "unknown profile an array");
  expect_message(parse_config(std::string(1000000, '['), "test.json"), "not valid JSON");
  expect_message(parse_with("\"block_in\": 16", "\"block_in\": 16, \"block_in\": 32"), "duplicate key \"block_in\"");
  expect_message(parse_with("\"res\": 8192", "\"res\": 8192, \"res\": 4096"), "duplicate key \"res\"");
}

TEST(Config, UnknownNameListsTheKnownOnes) {
  const auto config = load_config("nowhere");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().str().find("no configuration is called \"nowhere\""), std::string::npos);
  EXPECT_NE(config.error().str().find("default"), std::string::npos);
  const auto file = load_config("/nonexistent/x.json");
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().str().find("cannot read the configuration"), std::string::npos);
}

}  // namespace
}  // namespace tenon::spec
