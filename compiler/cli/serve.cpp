// tenon serve: lends devices of this machine to clients on others.
#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <cstdio>

#include "compiler/cli/command.h"
#include "driver/serve.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

constexpr Bounds<double> kSecondsBounds{.least = 0, .most = 365 * 24 * 3600, .above = true};

struct Serve {
  driver::ServeOptions options;
  double max_launch = 3600, max_idle = 600;

  Status run() {
    if (options.devices.empty()) options.devices = {"behavioral:default"};
    options.max_launch = nanoseconds(max_launch);
    options.max_idle = nanoseconds(max_idle);
    // The signals that end the server are for this thread, not for those that the server starts.
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    TENON_TRY_ASSIGN(server, driver::serve(options));
    print_stdout("serving {} device{} at {}\n", options.devices.size(), options.devices.size() == 1 ? "" : "s",
                 (*server)->address());
    std::fflush(stdout);
    int signal = 0;
    sigwait(&ends, &signal);
    print_stdout("ended by {}\n", signal == SIGINT ? "SIGINT" : "SIGTERM");
    return {};
  }

  static std::chrono::nanoseconds nanoseconds(double seconds) {
    return std::chrono::nanoseconds(static_cast<int64_t>(1e9 * seconds));
  }
};

}  // namespace

Action serve_devices(Options& options) {
  auto command = std::make_shared<Serve>();
  driver::ServeOptions& serve = command->options;
  options.repeated(serve.devices, "-d,--device", "[NAME=]URI",
                   "a device to lend; clients call it NAME, or its index. Default: behavioral:default");
  options.option(serve.listen, "--listen", "HOST:PORT", "the address; port 0: a free one");
  options.option(serve.token_file, "--token-file", "FILE", "clients must present the token in this file");
  options.option(serve.tls_cert, "--tls-cert", "FILE", "the server's certificate (PEM): connections by TLS");
  options.option(serve.tls_key, "--tls-key", "FILE", "its private key");
  options.option(serve.tls_client_ca, "--tls-client-ca", "FILE", "clients must have a certificate of this authority");
  options.option(serve.max_bytes, "--max-memory", "BYTES", "of the buffers of one client", {.least = 1});
  options.option(command->max_launch, "--max-launch", "SECONDS", "of one launch", kSecondsBounds);
  options.option(command->max_idle, "--max-idle", "SECONDS", "between two requests; then the client loses its device",
                 kSecondsBounds);
  options.option(serve.max_clients, "--max-clients", "N", "that are connected, waiting ones included", {.least = 1});
  options.footer(
      "Example: tenon serve --device pynq=uio: --listen 0.0.0.0:8461 --token-file token\n"
      "A client opens remote:HOST:8461/pynq?token-file=token");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
