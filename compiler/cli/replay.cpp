// tenon replay: repeats a mismatch from its bundle.
#include "driver/bringup/replay.h"

#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "runtime/temporary.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct Replay {
  std::string directory, device;
  bool json = false;

  Status run() const {
    TENON_TRY_ASSIGN(bundle, driver::load_bundle(directory));
    const runtime::TemporaryDirectory scratch;
    const std::string uri = device.empty() ? bundle->device : device;
    TENON_TRY_ASSIGN(opened, driver::open_for(*bundle, uri, scratch.path()));
    TENON_TRY_ASSIGN(found, driver::replay(**opened, *bundle));
    const bool same = *found == bundle->found;
    if (json) {
      Json out;
      out.begin_object().field("bundle", directory).field("device", uri).field("origin", bundle->origin);
      out.field("seed", bundle->seed).field("reported", bundle->reported).field("then", bundle->found);
      out.field("now", *found).field("differs", !found->empty()).field("same", same).end();
      print_stdout("{}", out.str());
    } else {
      print_stdout("bundle    {}, by {}\nseen on   {}, configuration {}\n", directory, bundle->version, bundle->device,
                   bundle->config.name);
      if (!bundle->origin.empty()) print_stdout("doing     {}\n", bundle->origin);
      if (bundle->seed != 0) print_stdout("seed      {}\n", bundle->seed);
      print_stdout("reported  {}\nthen      {}\nnow       {}\n", bundle->reported,
                   bundle->found.empty() ? "no difference" : bundle->found, found->empty() ? "no difference" : *found);
    }
    if (found->empty()) {
      if (!json) print_stdout("{} shows no difference\n", uri);
      return {};
    }
    return error(same ? "the same mismatch again" : "a mismatch, but not the recorded one", uri,
                 fmt::format("step through it: tenon debug {}", directory));
  }
};

}  // namespace

Action replay(Options& options) {
  auto command = std::make_shared<Replay>();
  options.argument(command->directory, "BUNDLE", "directory of the bundle");
  options.option(command->device, "--device", "URI", "another device than the one of the bundle");
  options.flag(command->json, "--json", "print JSON");
  options.footer(
      "Exit code 0: no difference; 1: a mismatch, the same or another.\nExample: tenon replay mismatch-1 "
      "--device lockstep:default");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
