// One client of a server: its requests, the device that it holds, and their answers.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <functional>
#include <memory>
#include <optional>

#include "driver/accelerator.h"
#include "driver/remote/leases.h"
#include "driver/remote/refusals.h"
#include "driver/remote/remote.pb.h"
#include "driver/remote/stream.h"

namespace tenon::driver::remote {

// What all sessions of a server share.
struct Shared {
  ServeOptions options;
  std::string token;  // empty: none is required
  uint64_t server_id = 0;
  Leases leases;
  Refusals refusals;
};

class Session {
 public:
  explicit Session(Shared& shared) : shared_(shared), stream_(rpc_, completions_) {}
  ~Session();

  // Before the client's call has come: what the completion queue of the server is given.
  grpc::GenericServerContext& context() { return context_; }
  grpc::GenericServerAsyncReaderWriter& rpc() { return rpc_; }
  Completions& completions() { return completions_; }

  // Refuses the client whose call has come; returns when the client knows, or the limit has passed.
  void refuse(const grpc::Status& status, std::chrono::nanoseconds limit);
  // Serves the client until one of the two ends.
  void run();

 private:
  grpc::Status serve();
  grpc::Status check_token();
  bool gone();
  Transfer answer(const wire::Answer& answer, std::span<const std::byte> data = {});
  void answer_alive(wire::Alive alive);
  Transfer fail(const Diagnostic& diagnostic);

  grpc::Status obey(const wire::Command& command);
  Status open(const wire::Open& request);
  Expected<wire::Answer> execute(const wire::Command& command);
  Expected<wire::Answer> allocate(const wire::Allocate& request);
  Status free(const Buffer& buffer);
  Status write(const wire::Transfer& request);
  Status read(const wire::Transfer& request);
  Expected<bool> wait_idle(std::chrono::nanoseconds limit);
  Expected<wire::Answer> finish(const wire::Finish& request);
  wire::Answer listing() const;

  Shared& shared_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter rpc_{&context_};
  Completions completions_;
  MessageStream<grpc::GenericServerAsyncReaderWriter> stream_;

  std::optional<Leases::Lease> lease_;
  std::unique_ptr<Accelerator> accelerator_;
  std::vector<Buffer> buffers_;
  uint64_t allocated_ = 0;
  std::optional<Diagnostic> deferred_;  // the failure of a posted request
  std::vector<std::byte> data_;         // of the current request
  Stopwatch since_answer_;
};

}  // namespace tenon::driver::remote
