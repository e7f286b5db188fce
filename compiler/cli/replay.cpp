// tenon replay: repeats a mismatch from its reproducer.
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
    TENON_TRY_ASSIGN(reproducer, driver::load_reproducer(directory));
    const runtime::TemporaryDirectory scratch;
    const std::string uri = device.empty() ? reproducer->device : device;
    TENON_TRY_ASSIGN(opened, driver::open_for(*reproducer, uri, scratch.path()));
    TENON_TRY_ASSIGN(found, driver::replay(**opened, *reproducer));
    const bool same = *found == reproducer->found;
    if (json) {
      Json out;
      out.begin_object().field("reproducer", directory).field("device", uri).field("origin", reproducer->origin);
      out.field("seed", reproducer->seed).field("reported", reproducer->reported).field("then", reproducer->found);
      out.field("now", *found).field("differs", !found->empty()).field("same", same).end();
      print_stdout("{}", out.str());
    } else {
      print_stdout("reproducer  {}, by {}\nseen on     {}, configuration {}\n", directory, reproducer->version,
                   reproducer->device, reproducer->config.name);
      if (!reproducer->origin.empty()) print_stdout("doing       {}\n", reproducer->origin);
      if (reproducer->seed != 0) print_stdout("seed        {}\n", reproducer->seed);
      print_stdout("reported    {}\nthen        {}\nnow         {}\n", reproducer->reported,
                   reproducer->found.empty() ? "no difference" : reproducer->found,
                   found->empty() ? "no difference" : *found);
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
  options.argument(command->directory, "REPRODUCER", "directory of the reproducer");
  options.option(command->device, "--device", "URI", "another device than the one of the reproducer");
  options.flag(command->json, "--json", "print JSON");
  options.footer(
      "Exit code 0: no difference; 1: a mismatch, the same or another.\nExample: tenon replay mismatch-1 "
      "--device lockstep:default");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
