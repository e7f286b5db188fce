// The client's end of a session: requests, answers with limits, and what became of a server that does not answer.
//
// Semantics: after a failure of the connection every request has the same error. The error says whether the server
// still runs (then the connection was interrupted), was restarted, or cannot be found.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "driver/remote/remote.pb.h"
#include "driver/remote/stream.h"
#include "driver/uri.h"
#include "support/diagnostic.h"

namespace tenon::driver::remote {

// Where a server is and how it is spoken to.
struct Endpoint {
  std::string address;  // HOST:PORT
  std::string token;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::string tls_name;  // the name in the server's certificate, where it is not its host's

  // Reads the options token-file, tls, tls-ca, tls-cert, tls-key and tls-name.
  static Expected<Endpoint> read(std::string address, Options& options);
};

class Connection {
 public:
  // Nothing is sent before the first request.
  Connection(Endpoint endpoint, std::string uri);
  ~Connection();

  // Sends a request that is answered only if it fails.
  Status post(wire::Command command, std::span<const std::byte> data = {});
  // Sends a request and waits for its answer, at most `limit` in all, and as long as the server gives signs of life.
  Expected<wire::Answer> ask(wire::Command command, std::chrono::nanoseconds limit);
  // Waits for the next part of an answer.
  Expected<wire::Answer> answer(std::chrono::nanoseconds limit);
  // The bytes of the last answer.
  std::span<const std::byte> data() const { return data_; }

  void set_server(uint64_t id) { server_ = id; }

 private:
  using Rpc = grpc::GenericClientAsyncReaderWriter;
  Status send(const wire::Command& command, std::span<const std::byte> data);
  std::unexpected<Diagnostic> lost(Transfer how);
  Diagnostic diagnose(Transfer how);
  Diagnostic find_server(std::string_view message) const;

  Endpoint endpoint_;
  std::string uri_;
  uint64_t server_ = 0;  // 0: not yet known
  std::optional<Diagnostic> failure_;
  std::shared_ptr<grpc::Channel> channel_;
  // A thread that waits for nothing: gRPC reads a socket only while a thread waits, and a client that computes for
  // seconds must answer whether it is still there.
  grpc::CompletionQueue idle_queue_;
  std::thread idle_;
  grpc::ClientContext context_;
  Completions completions_;
  std::unique_ptr<Rpc> rpc_;
  std::optional<MessageStream<Rpc>> stream_;
  std::vector<std::byte> data_;
};

}  // namespace tenon::driver::remote
