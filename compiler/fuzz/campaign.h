// Many random modules one after the other: the library behind `tenon fuzz ir`.
//
// Semantics: module i has seed `seed` + i, so that a failure is repeated by its seed alone. The first failure ends the
// campaign: it is made small with the same checks, written as text, and reported with the command that repeats it.
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
  int shrink_budget = 4000;               // proposals; 0: the module is reported as it is
  std::filesystem::path directory = ".";  // where a failing module is written
};

struct Failure {
  uint64_t seed = 0;
  Violation violation;  // of the module as it was made
  std::string text;     // of the smallest one that fails the same check
  std::string file;     // where that was written; empty: it could not be
  std::string report;   // all of it for people
};

struct CampaignResult {
  Counts counts;
  std::vector<std::string> uncovered;  // operators that no module applied
  std::optional<Failure> failure;
};

// `before`, where set, is called with the seed of each module before it is made.
CampaignResult campaign(const CampaignOptions& options, const std::function<void(uint64_t seed)>& before = {});

// The same checks on a module that is there.
std::optional<Violation> replay(Context& context, const Module& module, const CampaignOptions& options, Counts& counts);

}  // namespace tenon::compiler::fuzz
