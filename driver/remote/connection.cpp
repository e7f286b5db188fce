#include "driver/remote/connection.h"

#include <fmt/format.h>

#include "driver/remote/channel.h"
#include "driver/remote/convert.h"
#include "support/clock.h"
#include "support/try.h"

namespace tenon::driver::remote {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr auto kConnect = 10s;  // for the connection and the first message
constexpr auto kSilence = 10s;  // without an answer or a sign of life, of which a server gives two a second
constexpr auto kSearch = 3s;    // for a server that was lost

std::shared_ptr<grpc::Channel> make_channel(const Endpoint& endpoint) {
  grpc::ChannelArguments arguments;
  for (const auto& [name, value] : channel_arguments()) arguments.SetInt(name, value);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  if (!endpoint.tls_name.empty()) arguments.SetSslTargetNameOverride(endpoint.tls_name);
  return grpc::CreateCustomChannel(endpoint.address, endpoint.credentials, arguments);
}

}  // namespace

Expected<Endpoint> Endpoint::read(std::string address, Options& options) {
  const std::string token_file = options.text("token-file", ""), ca_file = options.text("tls-ca", "");
  const std::string cert_file = options.text("tls-cert", ""), key_file = options.text("tls-key", "");
  const std::string name = options.text("tls-name", "");
  const bool tls = options.flag("tls", !ca_file.empty() || !cert_file.empty());
  TENON_TRY(check_address(address, 1, options.uri()));
  if (cert_file.empty() != key_file.empty() || (!tls && !(ca_file + cert_file + name).empty())) {
    return error("a client's certificate requires its key and tls=on", options.uri(), "tls-cert=FILE&tls-key=FILE",
                 Fault::kUsage);
  }
  TENON_TRY_ASSIGN(token, read_token(token_file));
  TENON_TRY_ASSIGN(ca, read_if_given(ca_file));
  TENON_TRY_ASSIGN(cert, read_if_given(cert_file));
  TENON_TRY_ASSIGN(key, read_if_given(key_file));
  auto credentials =
      tls ? grpc::SslCredentials({.pem_root_certs = *ca, .pem_private_key = *key, .pem_cert_chain = *cert})
          : grpc::InsecureChannelCredentials();
  return Endpoint{.address = std::move(address),
                  .token = std::move(*token),
                  .credentials = std::move(credentials),
                  .tls_name = name};
}

Connection::Connection(Endpoint endpoint, std::string uri)
    : endpoint_(std::move(endpoint)), uri_(std::move(uri)), channel_(make_channel(endpoint_)) {
  idle_ = std::thread([this] {
    void* tag = nullptr;
    bool good = false;
    while (idle_queue_.Next(&tag, &good)) {
    }
  });
  if (!endpoint_.token.empty()) context_.AddMetadata(kTokenKey, kTokenPrefix + endpoint_.token);
  rpc_ = grpc::GenericStub(channel_).PrepareCall(&context_, kMethod, &completions_.queue());
  stream_.emplace(*rpc_, completions_);
  rpc_->StartCall(completions_.begin(Completions::kStarted));
  const auto started = completions_.wait(Completions::kStarted, kConnect);
  if (!started.value_or(false)) (void)lost(started ? Transfer::kEnded : Transfer::kLate);
}

Connection::~Connection() {
  context_.TryCancel();
  if (!failure_) {
    grpc::Status status;
    rpc_->Finish(&status, completions_.begin(Completions::kFinished));
    (void)completions_.wait(Completions::kFinished, kConnect);
  }
  idle_queue_.Shutdown();
  idle_.join();
}

Status Connection::send(const wire::Command& command, std::span<const std::byte> data) {
  if (failure_) return std::unexpected(*failure_);
  const Transfer sent = stream_->send(command, data, kSilence);
  if (sent != Transfer::kGood) return lost(sent);
  return {};
}

Status Connection::post(wire::Command command, std::span<const std::byte> data) {
  command.set_posted(true);
  return send(command, data);
}

Expected<wire::Answer> Connection::ask(wire::Command command, nanoseconds limit) {
  TENON_TRY(send(command, {}));
  return answer(limit);
}

Expected<wire::Answer> Connection::answer(nanoseconds limit) {
  if (failure_) return std::unexpected(*failure_);
  const Deadline deadline(limit + kSilence);
  wire::Answer answer;
  do {
    const Transfer received = stream_->receive(answer, data_, kSilence);
    if (received != Transfer::kGood) return lost(received);
    if (answer.has_failure()) {
      Diagnostic diagnostic = from_wire(answer.failure());
      if (!diagnostic.where.empty()) diagnostic.what += fmt::format(" (on the server: {})", diagnostic.where);
      diagnostic.where = uri_;
      return std::unexpected(std::move(diagnostic));
    }
    if (!answer.has_alive()) return answer;
  } while (!deadline.passed());
  return lost(Transfer::kLate);
}

std::unexpected<Diagnostic> Connection::lost(Transfer how) {
  failure_ = diagnose(how);
  return std::unexpected(*failure_);
}

Diagnostic Connection::diagnose(Transfer how) {
  if (how != Transfer::kEnded) context_.TryCancel();
  grpc::Status status;
  rpc_->Finish(&status, completions_.begin(Completions::kFinished));
  (void)completions_.wait(Completions::kFinished, kConnect);
  if (how == Transfer::kMalformed) {
    return {"the server's answer is malformed", uri_, "use the same build of Tenon on both machines"};
  }
  switch (status.error_code()) {
    case grpc::UNAUTHENTICATED:
    case grpc::RESOURCE_EXHAUSTED:
    case grpc::INVALID_ARGUMENT:
    case grpc::DEADLINE_EXCEEDED:
    case grpc::UNIMPLEMENTED: return {"the server refuses: " + status.error_message(), uri_, {}};
    default: return find_server(status.error_message());
  }
}

// The server is asked again, on a new connection.
Diagnostic Connection::find_server(std::string_view message) const {
  grpc::ClientContext context;
  if (!endpoint_.token.empty()) context.AddMetadata(kTokenKey, kTokenPrefix + endpoint_.token);
  Completions completions;
  const auto channel = make_channel(endpoint_);
  const auto rpc = grpc::GenericStub(channel).PrepareCall(&context, kMethod, &completions.queue());
  MessageStream stream(*rpc, completions);
  wire::Command list;
  list.mutable_list();
  wire::Answer answer;
  std::vector<std::byte> data;
  rpc->StartCall(completions.begin(Completions::kStarted));
  const bool answered = completions.wait(Completions::kStarted, kSearch).value_or(false) &&
                        stream.send(list, {}, kSearch) == Transfer::kGood &&
                        stream.receive(answer, data, kSearch) == Transfer::kGood;
  context.TryCancel();
  grpc::Status status;
  rpc->Finish(&status, completions.begin(Completions::kFinished));
  (void)completions.wait(Completions::kFinished, kSearch);
  if (!answered || !answer.has_listing()) {
    const std::string reason = status.error_message().empty() ? std::string(message) : status.error_message();
    if (server_ == 0) {
      return {fmt::format("cannot connect to the server: {}", reason), uri_,
              "start it there: tenon serve --device URI"};
    }
    return {fmt::format("the server is lost, and does not answer on a new connection: {}", reason), uri_,
            "look for its network and its machine; the device's memory is lost, open the device again"};
  }
  if (server_ == 0) return {fmt::format("the connection failed: {}", message), uri_, "open the device again"};
  if (answer.listing().server() != server_) {
    return {"the server was restarted; the lease and the device's memory are lost", uri_, "open the device again"};
  }
  return {"the connection was interrupted, and the server has ended the lease; it still runs", uri_,
          "open the device again"};
}

}  // namespace tenon::driver::remote
