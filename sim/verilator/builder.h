// The Verilated model of a configuration: one shared object, built when it is first asked for and kept.
//
// Semantics: the object lies in CACHE/verilator-HASH/model.so; HASH covers everything that shapes it: the generated
// package, all RTL, the harness, the tools (path, size, date) and the flags. So a model never is stale and needs no
// command to be refreshed. CACHE is TENON_CACHE, else XDG_CACHE_HOME/tenon, else ~/.cache/tenon. Two processes that
// want the same model do not both build it: one waits. What a failed build printed stays in CACHE/verilator-HASH.log;
// of an interrupted one the next call removes all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::sim {

struct BuildOptions {
  bool vcd = false;                                  // a model that can write waves; it is slower
  std::function<void(const std::string&)> progress;  // called with one line before a build starts and behind it
};

Expected<std::filesystem::path> build_verilated_model(const spec::Config& config, const BuildOptions& options = {});

// What this machine lacks for building models, with the command that installs it; empty if nothing.
std::string missing_verilator_tools();

}  // namespace tenon::sim
