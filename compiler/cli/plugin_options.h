// The options that name plugins and limit their calls.
#pragma once

#include <string>
#include <vector>

#include "compiler/cli/command.h"
#include "compiler/partition/target_record.h"
#include "compiler/plugin/plugin.h"

namespace tenon::cli {

// Code generators of the user's (compiler/plugin).
struct PluginOptions {
  std::vector<std::string> files;
  double seconds = 60, mebibytes = 4096;   // of a call
  std::vector<std::string> left_out = {};  // names of targets whose files are none of `files` any more

  void declare(Options& options);
  void declare_limits(Options& options);  // without the files
  compiler::plugin::Limits limits() const;
  Expected<std::vector<compiler::TargetRecord>> open() const;
  // Where the executable calls kernels of the plugins, it finds them in these files.
  Status use_kernels() const;
};

}  // namespace tenon::cli
