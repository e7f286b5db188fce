// tenon devices: the kinds of devices and what each needs on this machine; or the devices of a server.
#include <fmt/format.h>

#include <chrono>

#include "compiler/cli/command.h"
#include "driver/accelerator.h"
#include "driver/serve.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct Devices {
  bool json = false;
  std::string remote;

  Status run() const { return remote.empty() ? list_kinds() : list_remote(); }

  Status list_kinds() const {
    Json out;
    out.begin_array();
    for (const auto& transport : driver::transports()) {
      const std::string missing = transport.missing();
      out.begin_object().field("scheme", transport.scheme).field("doc", transport.doc).field("missing", missing).end();
      if (json) continue;
      print_stdout("{:<13}{}\n", transport.scheme + ":", transport.doc);
      if (!missing.empty()) print_stdout("{:<13}not usable on this machine: {}\n", "", missing);
    }
    if (json) print_stdout("{}", out.end().str());
    else
      print_stdout(
          "\nA device is SCHEME:CONFIGURATION, as behavioral:default; `tenon hw list` names configurations.\n");
    return {};
  }

  Status list_remote() const {
    TENON_TRY_ASSIGN(devices, driver::list_served(remote));
    Json out;
    out.begin_array();
    for (const driver::ServedDevice& device : *devices) {
      const auto seconds = std::chrono::duration<double>(device.held).count();
      out.begin_object().field("name", device.name).field("uri", device.uri).field("holder", device.holder);
      out.field("held_seconds", seconds).field("queued", device.queued).end();
      if (json) continue;
      print_stdout("{:<11} {}\n", device.name, device.uri);
      if (device.holder.empty()) print_stdout("{:<12}free\n", "");
      else
        print_stdout("{:<12}held by {} for {:.0f} s; {} more in its queue\n", "", device.holder, seconds,
                     device.queued);
    }
    if (json) print_stdout("{}", out.end().str());
    return {};
  }
};

}  // namespace

Action list_devices(Options& options) {
  auto command = std::make_shared<Devices>();
  options.option(command->remote, "--remote", "HOST:PORT", "the devices of the server there, and who holds them");
  options.flag(command->json, "--json", "print JSON");
  options.footer(
      "Example: tenon devices --remote board:8461\n"
      "HOST:PORT may have options of remote: devices: 'board:8461?token-file=FILE'");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
