// tenon selftest: checks whether a device works, and says where to look if it does not.
#include "driver/bringup/selftest.h"

#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "driver/bringup/keep.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct Selftest {
  std::string device, directory;
  uint64_t memory_kib = 1024, seed = 1;
  bool json = false;

  Status run() const {
    TENON_TRY_ASSIGN(opened, driver::open(device));
    const auto checks = driver::selftest(**opened, {.memory_bytes = memory_kib << 10, .seed = seed});
    Json out;
    out.begin_object().field("device", device).field("configuration", (*opened)->info().config.name);
    out.key("checks").begin_array();
    std::string failed;
    int reproducers = 0;
    for (const driver::Check& check : checks) {
      std::string kept;
      if (check.reproducer) {  // the second gets a directory of its own
        ++reproducers;
        const bool more = reproducers > 1 && !directory.empty();
        kept = driver::keep_mismatch(*check.reproducer, **opened,
                                     more ? fmt::format("{}-{}", directory, reproducers) : directory);
      }
      out.begin_object().field("name", check.name).field("passed", check.passed);
      out.field("figure", check.figure).field("failure", check.failure).field("next", check.next).end();
      if (!json) {
        print_stdout("{:<26}{:<5}{}\n", check.name, check.passed ? "good" : "FAIL",
                     check.passed ? check.figure : check.failure);
        if (!check.passed) print_stdout("{:<31}next: {}\n", "", check.next);
        if (!kept.empty()) print_stdout("{:<31}{}\n", "", kept);
      }
      if (!check.passed) failed += (failed.empty() ? "" : ", ") + check.name;
    }
    if (json) print_stdout("{}", out.end().end().str());
    if (failed.empty()) return {};
    return error("the device does not work; failed: " + failed, device,
                 "the first failure is often the cause of the others");
  }
};

}  // namespace

Action selftest(Options& options) {
  auto command = std::make_shared<Selftest>();
  options.argument(command->device, "DEVICE", "the device's URI, as xrt:0?xclbin=FILE or behavioral:default");
  options.option(command->memory_kib, "--memory", "KIB", "size of the memory that the patterns cover", {1, 1 << 20});
  options.option(command->seed, "--seed", "N", "of random data", {});
  options.option(
      command->directory, "--reproducer", "DIR",
      "directory for the reproducer that repeats a failed launch; default: mismatch-N in the working directory");
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
