// xclbin files: round trip, metadata, and damaged files.
#include "driver/xrt/xclbin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/seed.h"

namespace tenon::driver {
namespace {

using testing::HasSubstr;

std::vector<std::byte> a_file(int units = 2) {
  Xclbin xclbin =
      make_xclbin(spec::load_config("tiny").value(), {.units = units, .memory_bytes = 1 << 20, .bitstream = {}});
  return to_bytes(xclbin);
}

TEST(Xclbin, AFileRoundTrips) {
  const auto read = read_xclbin(a_file(), "x");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(spec::hash(*read->config), spec::hash(spec::load_config("tiny").value()));
  const auto design = design_of(*read, "x");
  ASSERT_TRUE(design) << design.error().str();
  ASSERT_EQ(design->memories.size(), 1u);
  EXPECT_EQ(design->memories[0].bytes, 1u << 20);
  EXPECT_TRUE(design->memories[0].used);
  ASSERT_EQ(design->units.size(), 2u);
  EXPECT_EQ(design->units[1].name, "tenon_kernel:tenon_2");
  EXPECT_EQ(design->clock_mhz, 100u);
}

TEST(Xclbin, EqualDesignsAreEqualFilesAndOthersHaveAnotherUuid) {
  EXPECT_EQ(a_file(), a_file());
  EXPECT_NE(read_xclbin(a_file(1), "x")->uuid, read_xclbin(a_file(2), "x")->uuid);
}

TEST(Xclbin, SealingAgainKeepsOneSeal) {
  auto xclbin = read_xclbin(a_file(), "x").value();
  const size_t sections = xclbin.sections.size();
  add_metadata(xclbin, spec::load_config("default").value());
  EXPECT_EQ(xclbin.sections.size(), sections);
  const auto again = read_xclbin(to_bytes(xclbin), "x");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->config->name, "default");
}

TEST(Xclbin, AFileWithoutSealIsReadButNamesNoConfiguration) {
  auto xclbin = read_xclbin(a_file(), "x").value();
  xclbin.sections.pop_back();
  const auto again = read_xclbin(to_bytes(xclbin), "x");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_FALSE(again->config);
}

TEST(Xclbin, DamageIsNamed) {
  const auto message = [](std::vector<std::byte> file) {
    const auto read = read_xclbin(file, "x");
    return read ? std::string("good") : read.error().what;
  };
  auto file = a_file();
  EXPECT_THAT(message({}), HasSubstr("not an xclbin file: its 0 bytes"));
  EXPECT_THAT(message({file.begin(), file.end() - 8}), HasSubstr("its header says"));
  file[file.size() - 1] ^= std::byte{1};
  EXPECT_THAT(message(file), HasSubstr("the file is damaged: its SHA-256 differs from its metadata"));
  file = a_file();
  file[450] = std::byte{1};  // the count of sections
  EXPECT_THAT(message(file), HasSubstr("too short for 65542 section headers"));
  file = a_file();
  file[456 + 24 + 5] = std::byte{1};  // the first section's offset
  EXPECT_THAT(message(file), HasSubstr("section 0 has bytes ["));
}

// Without metadata, every length and count in every section must be checked.
TEST(Xclbin, CorruptedSectionsAreErrorsOrReadable) {
  std::mt19937_64 random(test_seed(3));
  int refused = 0;
  const auto good = read_xclbin(a_file(), "x").value();
  for (int i = 0; i < 10000; ++i) {
    auto xclbin = good;
    xclbin.sections.pop_back();
    auto& data = xclbin.sections[random() % 4].data;
    for (int n = 0; n < 3; ++n) data[random() % std::min<size_t>(data.size(), 16)] = std::byte(random());
    if (random() % 4 == 0) data.resize(random() % data.size());
    refused += !design_of(xclbin, "x");
  }
  EXPECT_GT(refused, 1000);
}

TEST(Xclbin, TenThousandMutatedFilesAreErrors) {
  const auto good = a_file();
  std::mt19937_64 random(test_seed(1));
  for (int i = 0; i < 10000; ++i) {
    auto file = good;
    switch (random() % 4) {
      case 0: file[random() % file.size()] ^= std::byte(1 << random() % 8); break;
      case 1: file.resize(random() % file.size()); break;
      case 2: {  // a word somewhere in the header or the tables
        const uint64_t value = random() % 2 != 0 ? random() : random() % 1024;
        std::memcpy(file.data() + random() % (456 + 40 * 6), &value, 8);
        break;
      }
      default: file.insert(file.begin() + static_cast<ptrdiff_t>(random() % file.size()), std::byte(random())); break;
    }
    if (file == good) continue;
    const auto read = read_xclbin(file, "x");
    // A device is opened only with a file that can be read and has metadata.
    EXPECT_FALSE(read && read->config) << "mutation " << i;
    EXPECT_TRUE(read || !read.error().what.empty());
  }
}

}  // namespace
}  // namespace tenon::driver
