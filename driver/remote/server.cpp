#include "driver/remote/server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <list>
#include <random>
#include <thread>

#include "driver/remote/channel.h"
#include "driver/remote/session.h"
#include "support/try.h"

namespace tenon::driver::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto kGoodbye = 200ms;     // for sessions to end by themselves when the server ends
constexpr auto kRefusal = 1s;        // for a client to take that it is refused
constexpr int kHandshake = 10;       // seconds for a new connection to say what it is
constexpr int kIdleConnection = 60;  // seconds until a connection without a session is closed

struct RunningSession {
  std::unique_ptr<Session> session;
  std::atomic<bool> finished = false;
  std::thread thread;
};

class GrpcServer final : public Server {
 public:
  GrpcServer(std::string address, std::unique_ptr<Shared> shared)
      : address_(std::move(address)), shared_(std::move(shared)) {}

  ~GrpcServer() override {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now() + kGoodbye);
    queue_->Shutdown();
    acceptor_.join();
    for (RunningSession& running : sessions_) running.thread.join();
  }

  Status start(std::shared_ptr<grpc::ServerCredentials> credentials);
  std::string address() const override { return address_; }

 private:
  void accept();
  std::unique_ptr<Session> expect_client();
  void admit(std::unique_ptr<Session> session);

  std::string address_;
  std::unique_ptr<Shared> shared_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::list<RunningSession> sessions_;  // of the acceptor's thread
  std::thread acceptor_;
};

Status GrpcServer::start(std::shared_ptr<grpc::ServerCredentials> credentials) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address_, std::move(credentials), &port);
  builder.RegisterAsyncGenericService(&service_);
  for (const auto& [name, value] : channel_arguments()) builder.AddChannelArgument(name, value);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two servers on a port would share the clients
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 1000 * kHandshake);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 1000 * kIdleConnection);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (!server_ || port == 0) {
    return error("cannot listen at this address", address_,
                 "is a server running there? --listen HOST:PORT, port 0: a free one");
  }
  address_ = fmt::format("{}:{}", address_.substr(0, address_.rfind(':')), port);
  acceptor_ = std::thread([this] { accept(); });
  return {};
}

std::unique_ptr<Session> GrpcServer::expect_client() {
  auto session = std::make_unique<Session>(*shared_);
  session->context().AsyncNotifyWhenDone(session->completions().begin(Completions::kEnded));
  service_.RequestCall(&session->context(), &session->rpc(), &session->completions().queue(), queue_.get(), nullptr);
  return session;
}

void GrpcServer::accept() {
  auto next = expect_client();
  void* tag = nullptr;
  for (bool called = false; queue_->Next(&tag, &called) && called; next = expect_client()) {
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      if (!it->finished) {
        ++it;
        continue;
      }
      it->thread.join();
      it = sessions_.erase(it);
    }
    admit(std::move(next));
  }
}

void GrpcServer::admit(std::unique_ptr<Session> session) {
  const bool full = sessions_.size() >= shared_->options.max_clients;
  if (full || session->context().method() != kMethod) {
    session->refuse(full ? grpc::Status(grpc::RESOURCE_EXHAUSTED,
                                        fmt::format("the server has {} clients, its limit", sessions_.size()))
                         : grpc::Status(grpc::UNIMPLEMENTED, "the server does not know this method"),
                    kRefusal);
    return;
  }
  RunningSession& running = sessions_.emplace_back();
  running.session = std::move(session);
  running.thread = std::thread([&running] {
    running.session->run();
    running.session.reset();
    running.finished = true;
  });
}

// NAME=URI, or a URI whose name is its index.
std::vector<std::pair<std::string, std::string>> named_devices(const std::vector<std::string>& devices) {
  constexpr char kNameCharacters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  std::vector<std::pair<std::string, std::string>> named;
  for (const std::string& device : devices) {
    const size_t end = device.find_first_not_of(kNameCharacters);
    if (end != std::string::npos && end > 0 && device[end] == '=') {
      named.emplace_back(device.substr(0, end), device.substr(end + 1));
    } else {
      named.emplace_back(fmt::format("{}", named.size()), device);
    }
  }
  return named;
}

Status check_devices(const std::vector<std::pair<std::string, std::string>>& devices) {
  if (devices.empty()) return error("no device is given", {}, "--device URI", Fault::kUsage);
  for (size_t i = 0; i < devices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (devices[i].first == devices[j].first) {
        return error(fmt::format("two devices are called \"{}\"", devices[i].first), {}, "--device NAME=URI",
                     Fault::kUsage);
      }
    }
    const std::string_view uri = devices[i].second;
    const auto known = transports();
    if (std::ranges::find(known, uri.substr(0, uri.find(':')), &Transport::scheme) == known.end()) {
      TENON_TRY(driver::open(uri));  // says what is wrong
    }
  }
  return {};
}

Expected<std::shared_ptr<grpc::ServerCredentials>> credentials_of(const ServeOptions& options) {
  if (options.tls_cert.empty() != options.tls_key.empty() ||
      (options.tls_cert.empty() && !options.tls_client_ca.empty())) {
    return error("TLS requires both the server's certificate and its key", {}, "--tls-cert FILE --tls-key FILE",
                 Fault::kUsage);
  }
  if (options.tls_cert.empty()) return grpc::InsecureServerCredentials();
  TENON_TRY_ASSIGN(cert, read_if_given(options.tls_cert));
  TENON_TRY_ASSIGN(key, read_if_given(options.tls_key));
  TENON_TRY_ASSIGN(ca, read_if_given(options.tls_client_ca));
  grpc::SslServerCredentialsOptions tls(ca->empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = *ca;
  tls.pem_key_cert_pairs.push_back({*key, *cert});
  return grpc::SslServerCredentials(tls);
}

// A device executes what its client sends, so strangers are not let in.
Status check_access(const ServeOptions& options) {
  TENON_TRY(check_address(options.listen, 0, "--listen"));
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  const bool local = host == "localhost" || host == "[::1]" || host.starts_with("127.");
  if (local || !options.token_file.empty() || !options.tls_client_ca.empty()) return {};
  return error(fmt::format("{} is an address that other machines have, and any client would be served", host), {},
               "--token-file FILE, or --tls-client-ca FILE, or --listen 127.0.0.1:PORT and a tunnel", Fault::kUsage);
}

}  // namespace

Expected<std::unique_ptr<Server>> start_server(const ServeOptions& options) {
  TENON_TRY(check_access(options));
  const auto devices = named_devices(options.devices);
  TENON_TRY(check_devices(devices));
  TENON_TRY_ASSIGN(token, read_token(options.token_file));
  quiet_grpc();
  TENON_TRY_ASSIGN(credentials, credentials_of(options));
  std::random_device random;
  std::unique_ptr<Shared> shared(new Shared{.options = options,
                                            .token = *token,
                                            .server_id = uint64_t{random()} << 32 | random(),
                                            .leases = Leases(devices),
                                            .refusals = {}});
  auto server = std::make_unique<GrpcServer>(options.listen, std::move(shared));
  TENON_TRY(server->start(*credentials));
  return server;
}

}  // namespace tenon::driver::remote
