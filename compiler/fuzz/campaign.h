// Many random modules one after the other: the library behind `tenon fuzz ir`.
//
// Semantics: module i has seed `seed` + i, so that a failure is repeated by its seed alone. The first failure ends the
// campaign: it is shrunk with the same checks, written as text, and reported with the command that repeats it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "compiler/fuzz/generator.h"
#include "compiler/fuzz/oracle.h"

namespace tenon::compiler::fuzz {

struct CampaignOptions {
  uint64_t seed = 1;
  int64_t count = 1000;
  Options generator = {};
  OracleOptions oracle = {};
  int shrink_budget = 4000;               // proposals; 0: the module is not shrunk
  std::string command = "fuzz ir";        // that repeats a failure
  std::filesystem::path directory = ".";  // where a failing module is written
};

struct Failure {
  uint64_t seed = 0;
  Violation violation;  // of the module as generated
  std::string text;     // of the smallest module that fails the same check
  std::string file;     // path of the written text; empty: it could not be written
  std::string report;   // the whole failure for people
};

struct CampaignResult {
  Counts counts;
  std::vector<std::string> uncovered;  // operators that no module applied
  std::optional<Failure> failure;
};

// `before`, where set, is called with the seed of each module before it is generated.
CampaignResult campaign(const CampaignOptions& options, const std::function<void(uint64_t seed)>& before = {});

// Runs the checks of a campaign on one module.
std::optional<Violation> replay(Context& context, const Module& module, const CampaignOptions& options, Counts& counts);

}  // namespace tenon::compiler::fuzz
