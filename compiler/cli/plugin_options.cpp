#include "compiler/cli/plugin_options.h"

#include <chrono>
#include <utility>

#include "runtime/library/library.h"
#include "support/try.h"

namespace tenon::cli {

void PluginOptions::declare(Options& options) {
  options.repeated(files, "--plugin", "FILE",
                   "shared object with a target of your own, which is preferred to others unless --targets names it "
                   "(compiler/plugin/target.h), and with the kernels that it calls; may be repeated");
  declare_limits(options);
}

void PluginOptions::declare_limits(Options& options) {
  options.option(seconds, "--plugin-seconds", "S", "limit of each call of a plugin's function",
                 {.least = 0.001, .most = 1e6});
  options.option(mebibytes, "--plugin-memory", "MIB", "limit of its memory", {.least = 1, .most = 1e6});
}

compiler::plugin::Limits PluginOptions::limits() const {
  return {.time = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)),
          .memory = static_cast<uint64_t>(mebibytes) << 20};
}

Expected<std::vector<compiler::TargetRecord>> PluginOptions::open() const {
  std::vector<compiler::TargetRecord> records;
  for (const std::string& file : files) {
    TENON_TRY_ASSIGN(record, compiler::plugin::open(file, limits()));
    records.push_back(*std::move(record));
  }
  return records;
}

Status PluginOptions::use_kernels() const {
  for (const std::string& file : files) TENON_TRY(runtime::use_library(file));
  return {};
}

}  // namespace tenon::cli
