#include "hw/estimate/estimate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "hw/estimate/fit.h"
#include "hw/estimate/memories.h"
#include "support/file.h"

namespace tenon::estimate {
namespace {

constexpr Family kFamilies[] = {Family::kIce40, Family::kEcp5, Family::kXilinx};

// The families with a table.
std::vector<std::pair<Family, std::vector<Row>>> tables() {
  std::vector<std::pair<Family, std::vector<Row>>> list;
  for (const Family family : kFamilies) {
    if (auto rows = read_table(family)) list.emplace_back(family, *std::move(rows));
  }
  return list;
}

TEST(Fit, FindsTheCoefficientsOfALinearRelation) {
  std::vector<std::vector<double>> features;
  std::vector<double> values;
  for (int i = 1; i <= 8; ++i) {
    features.push_back({1, static_cast<double>(i), static_cast<double>(i * i % 7)});
    values.push_back(100 + 20 * features.back()[1]);
  }
  const Fit found = fit(features, values);
  EXPECT_NEAR(found.coefficients[0], 100, 10);
  EXPECT_NEAR(found.coefficients[1], 20, 2);
  EXPECT_NEAR(found.coefficients[2], 0, 4);
  EXPECT_NEAR(found({1, 20, 3}), 500, 25);  // beyond the rows
  EXPECT_LT(found.largest_error, 0.1);
}

TEST(Fit, HasNoNegativeCoefficientAndSaysItsError) {
  const Fit found = fit({{1, 1}, {1, 2}, {1, 3}, {1, 4}}, {40, 30, 20, 10});
  for (const double coefficient : found.coefficients) EXPECT_GE(coefficient, 0);
  EXPECT_GT(found.largest_error, 0.3);
  EXPECT_GE(found.largest_error, found.mean_error);
}

TEST(Estimate, MultipliersAndBlockRamEqualEveryRowOfTheTables) {
  const auto all = tables();
  ASSERT_FALSE(all.empty());
  for (const auto& [family, rows] : all) {
    for (const Row& row : rows) {
      double ram = 0;
      for (const MemoryShape& memory : memories(row.config)) ram += block_rams(family, memory);
      EXPECT_EQ(ram, row.cells.ram) << name(family) << " " << row.config.name;
      EXPECT_EQ(multipliers(family, row.config), row.cells.dsp) << name(family) << " " << row.config.name;
    }
  }
}

// What yosys 0.23 maps zynq7020 to, as hw/rtl/README.md has it.
TEST(Estimate, MultipliersAndBlockRamOfAZynqAreThoseOfItsSynthesis) {
  const auto config = *spec::load_config("zynq7020");
  double ram = 0;
  for (const MemoryShape& memory : memories(config)) ram += block_rams(Family::kXilinx, memory);
  EXPECT_EQ(ram, 75.5);
  EXPECT_EQ(multipliers(Family::kXilinx, config), 178);
}

// Each row predicted from the others.
TEST(Estimate, LookUpTablesOfARowAreWithinTheErrorOfTheOthers) {
  struct Limits {
    double lut, lut_mean, ff;
  };
  constexpr Limits kLimits[] = {{0.10, 0.03, 0.11}, {0.09, 0.04, 0.10}, {0.15, 0.05, 0.15}};  // by Family
  for (const auto& [family, rows] : tables()) {
    const auto model = Model::create(family, rows);
    ASSERT_TRUE(model) << model.error().str();
    const Estimate estimate = (*model)(*spec::load_config("lite"));
    const Limits& limits = kLimits[static_cast<size_t>(family)];
    EXPECT_GE(estimate.rows, 12u);
    EXPECT_LE(estimate.lut_error, limits.lut) << name(family);
    EXPECT_LE(estimate.lut_mean_error, limits.lut_mean) << name(family);
    EXPECT_LE(estimate.ff_error, limits.ff) << name(family);
    EXPECT_LE(estimate.lut_mean_error, estimate.lut_error);
  }
}

std::vector<Row> held_out(Family family) {
  const auto file =
      std::filesystem::path(TENON_SOURCE_DIR) / "tests/hw/estimate/held_out" / fmt::format("{}.jsonl", name(family));
  const auto text = read_text(file);
  auto rows = parse_table(text ? *text : "", file.string());
  return rows ? *std::move(rows) : std::vector<Row>();
}

double relative_error(const Row& row, const Cells& estimate) {
  return std::abs(static_cast<double>(estimate.lut - row.cells.lut)) / static_cast<double>(row.cells.lut);
}

// Configurations drawn at random. No feature was fitted to them or chosen by them.
TEST(Estimate, HeldOutConfigurationsAreWithin15PercentAndExactInMultipliersAndBlockRam) {
  for (const Family family : {Family::kIce40, Family::kEcp5}) {
    const auto known = *read_table(family), rows = held_out(family);
    const auto model = *Model::create(family, known);
    EXPECT_GE(rows.size(), 10u) << name(family);
    for (const Row& row : rows) {
      EXPECT_FALSE(std::ranges::any_of(known, [&](const Row& k) { return hash(k.config) == hash(row.config); }));
      const Cells cells = model(row.config).cells;
      EXPECT_LE(relative_error(row, cells), 0.15)
          << name(family) << " " << row.config.name << ": " << cells.lut << " LUT, " << row.cells.lut << " synthesized";
      EXPECT_EQ(cells.dsp, row.cells.dsp) << name(family) << " " << row.config.name;
      EXPECT_EQ(cells.ram, row.cells.ram) << name(family) << " " << row.config.name;
    }
  }
}

TEST(Estimate, AModelOfOtherCellsIsNotWithin15PercentOfTheHeldOutOnes) {
  for (const Family family : {Family::kIce40, Family::kEcp5}) {
    auto known = *read_table(family);
    for (Row& row : known) row.cells.lut += row.cells.lut / 4;
    const auto model = *Model::create(family, known);
    EXPECT_TRUE(std::ranges::any_of(held_out(family), [&](const Row& row) {
      return relative_error(row, model(row.config).cells) > 0.15;
    })) << name(family);
  }
}

TEST(Estimate, WhatDoesNotFitIsNamedWithWhatToChange) {
  const auto model = Model::create(Family::kEcp5);
  ASSERT_TRUE(model) << model.error().str();
  const auto config = *spec::load_config("zynq7020");
  const Cells cells = (*model)(config).cells;
  EXPECT_TRUE(exceeded(cells, {}).empty());
  const Capacity capacity{.lut = cells.lut + 1, .ff = cells.ff - 1, .dsp = cells.dsp, .ram = cells.ram - 40};
  const auto excess = exceeded(cells, capacity);
  ASSERT_EQ(excess.size(), 2u);
  EXPECT_TRUE(excess[0].starts_with("FF ")) << excess[0];
  EXPECT_TRUE(excess[1].starts_with("RAM ")) << excess[1];
  const auto list = changes(*model, config, capacity);
  ASSERT_FALSE(list.empty());
  EXPECT_TRUE(list.front().fits) << list.front().text;
  for (const Change& change : list) {
    EXPECT_TRUE(change.cells.ff < cells.ff || change.cells.ram < cells.ram) << change.text;
    EXPECT_EQ(change.fits, exceeded(change.cells, capacity).empty()) << change.text;
  }
}

TEST(Table, DamagedLinesAndTooFewAreErrors) {
  const auto fails = [](const char* text) { return parse_table(text, "t.jsonl").error().str(); };
  EXPECT_EQ(fails("nothing"),
            "t.jsonl:1: error: the line is not a JSON object\n  help: write the line again: scripts/cells --record");
  const std::string config = "{\"config\": " + spec::to_json(*spec::load_config("tiny"));
  std::string line = config;
  std::erase(line, '\n');
  EXPECT_NE(fails(("\n" + line + "}").c_str()).find("t.jsonl:2: error: the line is no row of cells:"),
            std::string::npos);
  const std::string cells = ", \"ff\": 1, \"dsp\": 2, \"ram\": 2.5}";
  EXPECT_NE(fails((line + ", \"lut\": 0" + cells).c_str()).find("\"lut\" must be positive"), std::string::npos);
  const auto rows = parse_table(line + ", \"lut\": 9" + cells, "t.jsonl");
  ASSERT_TRUE(rows) << rows.error().str();
  EXPECT_EQ(rows->front().cells.ram, 2.5);
  const auto few = Model::create(Family::kIce40, *rows);
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().str(),
            "error: 1 configurations were synthesized for ice40, at least 12 are required\n"
            "  help: synthesize more: scripts/cells --target ice40 --record CONFIG...");
  EXPECT_EQ(find_family("gowin").error().what, "there is no family of chips \"gowin\"");
}

}  // namespace
}  // namespace tenon::estimate
