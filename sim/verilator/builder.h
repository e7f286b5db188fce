// The Verilated model of a configuration: one shared object, built at its first use and cached.
//
// Semantics: the object is stored in CACHE/verilator-HASH/model.so; HASH covers all inputs: the generated package, all
// RTL, the harness, the tools (path, size, date) and the flags. So a model is never stale and needs no command to be
// refreshed. CACHE is TENON_CACHE, else XDG_CACHE_HOME/tenon, else ~/.cache/tenon. Of two processes that require the
// same model, one builds it and the other waits. The output of a failed build stays in CACHE/verilator-HASH.log; the
// next call removes all files of an interrupted build.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::sim {

struct BuildOptions {
  bool vcd = false;                                       // build a model that can write waves, which is slower
  bool coverage = false;                                  // build a model that counts the lines of the RTL that run
  bool fast_dot = true;                                   // dot.sv as simulators like it; false: as it is synthesized
  std::function<void(const std::string&)> progress = {};  // called with one line before and after a build
};

Expected<std::filesystem::path> build_verilated_model(const spec::Config& config, const BuildOptions& options = {});

// The tools for building models that this machine lacks, with the command that installs them; empty if none.
std::string missing_verilator_tools();

}  // namespace tenon::sim
