// tenon plugin check: whether a code generator of the user's computes what the interpreter does.
#include <fmt/format.h>

#include "compiler/cli/model_options.h"
#include "compiler/plugin/check.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct PluginCheck {
  std::string file;
  PluginOptions plugins;
  uint64_t seed = 1;
  int64_t samples = 100;

  Status run() {
    plugins.files = {file};
    TENON_TRY_ASSIGN(records, plugins.open());
    TENON_TRY(plugins.use_kernels());
    const compiler::Target target = records->front().make({});
    TENON_TRY_ASSIGN(checks,
                     compiler::plugin::check_rows(
                         target, {.seed = seed, .samples = static_cast<int>(samples), .limits = plugins.limits()}));
    size_t unchecked = 0;
    for (const compiler::plugin::RowCheck& check : *checks) {
      print_stdout("{:<24} {:>3} samples, equal to the interpreter  {}\n", check.composite, check.samples,
                   check.pattern);
      if (check.samples > 0) continue;
      ++unchecked;
      if (!check.refused.empty()) print_stdout("{:<24} no sample is supported: {}\n", "", check.refused);
    }
    if (unchecked == 0) return {};
    return error(fmt::format("{} of {} rows of {} have no samples", unchecked, checks->size(), target.name), file,
                 "another --seed may find some");
  }
};

}  // namespace

Action check_plugin(Options& options) {
  auto command = std::make_shared<PluginCheck>();
  options.argument(command->file, "FILE", "a shared object with a target and its kernels (compiler/plugin/target.h)");
  options.option(command->samples, "--samples", "N", "of each row", {.least = 1, .most = 1000});
  options.option(command->seed, "--seed", "S", "of the samples", {});
  command->plugins.declare_limits(options);
  options.footer("tenon plugin check ./macs.so");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
