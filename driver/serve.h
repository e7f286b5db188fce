// Devices for other machines: a server that lends the devices of this machine, and the list of what a server has.
//
// Semantics: a client leases a device by opening it, and holds it until it closes it, ends, or is lost. Clients that
// ask for the same device wait in the order of their arrival. The server opens a device for each lease and closes it
// after, so that no client finds the memory or the tokens of another.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::driver {

struct ServeOptions {
  std::vector<std::string> devices;       // URIs, or NAME=URI; the name of a device without one is its index
  std::string listen = "127.0.0.1:8461";  // port 0: a free one
  // Clients must present the token in this file, of which surrounding white space is no part.
  std::string token_file;
  // The server's certificate and key; with `tls_client_ca` each client must have a certificate of this authority.
  std::string tls_cert, tls_key, tls_client_ca;
  uint64_t max_bytes = uint64_t{1} << 40;                        // of all buffers of a lease
  std::chrono::nanoseconds max_launch = std::chrono::hours(1);   // wall time
  std::chrono::nanoseconds max_idle = std::chrono::minutes(10);  // between two requests of a lease
  uint64_t max_clients = 64;
};

// Serves until it is destroyed; clients are told then.
class Server {
 public:
  virtual ~Server() = default;
  virtual std::string address() const = 0;  // HOST:PORT, for clients
};

// An error if an option is wrong, or the build has no gRPC.
Expected<std::unique_ptr<Server>> serve(const ServeOptions& options);

struct ServedDevice {
  std::string name, uri;  // the URI as on the server
  std::string holder;     // empty: the device is free
  std::chrono::nanoseconds held{};
  uint64_t queued = 0;  // clients that wait for it
};

// `server` is HOST:PORT with the options of a remote: URI, as "board:8461?token-file=F".
Expected<std::vector<ServedDevice>> list_served(std::string_view server);

}  // namespace tenon::driver
