// The transport remote: -- a device of another machine, which `tenon serve` lends.
//
// Writes, starts and frees are posted: the next answer has their error. So a launch with its inputs costs two round
// trips: the end of the launch with its counters, and the results.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "driver/checks.h"
#include "driver/control.h"
#include "driver/identity.h"
#include "driver/plugin_export.h"
#include "driver/remote/channel.h"
#include "driver/remote/connection.h"
#include "driver/remote/convert.h"
#include "driver/remote/farm.h"
#include "driver/remote/pool.h"
#include "driver/remote/server.h"
#include "driver/uri.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

using namespace std::chrono_literals;
using remote::Connection;
using remote::Endpoint;
using remote::Site;
using std::chrono::nanoseconds;
namespace wire = remote::wire;

constexpr nanoseconds kLimit = 10s;               // of a request that does not wait for a launch
constexpr nanoseconds kOpenLimit = 30min;         // the first opening of a Verilated model builds it
constexpr uint64_t kMaxWait = 30 * 24 * 60 * 60;  // seconds

class RemoteAccelerator final : public Accelerator, public Launcher {
 public:
  RemoteAccelerator(Info info, std::unique_ptr<Connection> connection, nanoseconds launch_limit)
      : info_(std::move(info)), connection_(std::move(connection)), launch_limit_(launch_limit) {}

  const Info& info() const override { return info_; }
  Launcher* launcher() override { return this; }

  Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment) override {
    wire::Command command;
    command.mutable_allocate()->set_bytes(bytes);
    command.mutable_allocate()->set_alignment(alignment);
    TENON_TRY_ASSIGN(answer, ask(std::move(command), wire::Answer::kAllocated));
    const Buffer buffer = remote::from_wire(answer->allocated());
    buffers_[buffer.address] = buffer.size;
    return buffer;
  }

  void free(const Buffer& buffer) override {
    const auto found = buffers_.find(buffer.address);
    if (found == buffers_.end() || found->second != buffer.size) {
      print_stderr("{}: no live buffer has address {:#x} and {} bytes: freed twice, or never allocated\n", info_.uri,
                   buffer.address, buffer.size);
      std::abort();
    }
    buffers_.erase(found);
    wire::Command command;
    *command.mutable_free() = remote::to_wire(buffer);
    (void)connection_->post(std::move(command));
  }

  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    TENON_TRY(check_access(is_live(buffer), buffer, offset, data.size(), "write", info_.uri));
    counters_.reset();
    while (!data.empty()) {
      const auto part = data.first(std::min(data.size(), remote::kMaxData));
      wire::Command command;
      *command.mutable_write() = transfer(buffer, offset, part.size());
      TENON_TRY(connection_->post(std::move(command), part));
      data = data.subspan(part.size());
      offset += part.size();
    }
    return {};
  }

  Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    TENON_TRY(check_access(is_live(buffer), buffer, offset, data.size(), "read", info_.uri));
    if (data.empty()) return {};
    wire::Command command;
    *command.mutable_read() = transfer(buffer, offset, data.size());
    TENON_TRY_ASSIGN(answer, ask(std::move(command), wire::Answer::kData));
    while (!answer->data().last()) {
      const auto part = connection_->data();
      if (part.size() > data.size()) return unexpected_answer();
      std::memcpy(data.data(), part.data(), part.size());
      data = data.subspan(part.size());
      answer = checked(connection_->answer(kLimit), wire::Answer::kData);
      TENON_TRY(answer);
    }
    return data.empty() ? Status{} : unexpected_answer();
  }

  Expected<uint32_t> read_register(uint32_t offset) override {
    TENON_TRY(check_register(offset, info_.uri));
    wire::Command command;
    command.set_read_register(offset);
    TENON_TRY_ASSIGN(answer, ask(std::move(command), wire::Answer::kValue));
    return answer->value();
  }

  Status write_register(uint32_t offset, uint32_t value) override {
    TENON_TRY(check_register(offset, info_.uri));
    counters_.reset();
    wire::Command command;
    command.mutable_write_register()->set_offset(offset);
    command.mutable_write_register()->set_value(value);
    return connection_->post(std::move(command));
  }

  Expected<bool> wait_idle(nanoseconds limit) override {
    wire::Command command;
    command.set_wait_idle(remote::to_wire(limit));
    TENON_TRY_ASSIGN(answer, ask(std::move(command), wire::Answer::kIdle, launch_limit_));
    return answer->idle();
  }

  std::string explain() override {
    wire::Command command;
    command.mutable_explain();
    const auto answer = ask(std::move(command), wire::Answer::kText);
    return answer ? answer->text() : std::string();
  }

  // A start is posted; but where the end of the one before is not known yet, the answer may be that the device is busy.
  Status start(const Launch& launch) override {
    counters_.reset();
    wire::Command command;
    *command.mutable_start() = remote::to_wire(launch);
    if (!std::exchange(started_, true)) return connection_->post(std::move(command));
    TENON_TRY(ask(std::move(command), wire::Answer::kDone));
    return {};
  }

  Status finish(nanoseconds limit) override {
    started_ = false;
    wire::Command command;
    command.mutable_finish()->set_limit(remote::to_wire(limit));
    command.mutable_finish()->set_counters(wants_counters_);
    TENON_TRY_ASSIGN(answer, ask(std::move(command), wants_counters_ ? wire::Answer::kCounters : wire::Answer::kDone,
                                 launch_limit_));
    if (answer->has_counters()) counters_ = remote::from_wire(answer->counters());
    return {};
  }

  // From the second launch on, the end of a launch comes with its counters.
  Expected<Counters> read_counters() override {
    if (counters_) return *counters_;
    wants_counters_ = true;
    wire::Command command;
    command.mutable_read_counters();
    TENON_TRY_ASSIGN(answer, ask(std::move(command), wire::Answer::kCounters));
    return remote::from_wire(answer->counters());
  }

 private:
  static wire::Transfer transfer(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
    wire::Transfer message;
    *message.mutable_buffer() = remote::to_wire(buffer);
    message.set_offset(offset);
    message.set_bytes(bytes);
    return message;
  }

  bool is_live(const Buffer& buffer) const {
    const auto next = buffers_.upper_bound(buffer.address);
    if (next == buffers_.begin()) return false;
    const auto& [address, bytes] = *std::prev(next);
    return buffer.address - address <= bytes && buffer.size <= bytes - (buffer.address - address);
  }

  std::unexpected<Diagnostic> unexpected_answer() const {
    return error("the server's answer does not belong to the request", info_.uri,
                 "use the same build of Tenon on both machines", Fault::kInternal);
  }

  Expected<wire::Answer> checked(Expected<wire::Answer> answer, wire::Answer::KindCase kind) const {
    if (answer && answer->kind_case() != kind) return unexpected_answer();
    return answer;
  }

  Expected<wire::Answer> ask(wire::Command command, wire::Answer::KindCase kind, nanoseconds limit = kLimit) {
    return checked(connection_->ask(std::move(command), limit), kind);
  }

  const Info info_;
  std::unique_ptr<Connection> connection_;
  nanoseconds launch_limit_;
  std::map<uint64_t, uint64_t> buffers_;  // address -> bytes
  bool started_ = false;
  bool wants_counters_ = false;
  std::optional<Counters> counters_;  // of the last launch
};

// "ann@desk, tenon 1234"
std::string client_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"?"};
  const char* const user = std::getenv("USER");
  return fmt::format("{}@{}, {} {}", user == nullptr ? "?" : user, host.data(), program_invocation_short_name,
                     ::getpid());
}

// What a URI says about servers: one, or the list of a pool.
struct Target {
  std::vector<Site> sites;
  bool pool = false;
  Endpoint endpoint;  // of the first
  std::string query;  // the options from the '?' on
};

Expected<Target> read_target(std::string_view target, Options& options) {
  Target result;
  result.pool = options.name().starts_with('@');
  const auto port = static_cast<uint16_t>(options.integer("port", 0, 0, 65535));
  if (result.pool) {
    TENON_TRY_ASSIGN(sites, remote::read_farm(options.name(), port));
    result.sites = std::move(*sites);
  } else {
    result.sites = {remote::parse_site(options.name())};
  }
  TENON_TRY_ASSIGN(endpoint, Endpoint::read(result.sites.front().address, options));
  result.endpoint = std::move(*endpoint);
  result.query = target.substr(std::min(target.find('?'), target.size()));
  return result;
}

// What is sent to open a device.
struct Request {
  std::string uri;
  std::chrono::seconds wait{};
  std::optional<spec::Config> config;
};

Expected<std::unique_ptr<Accelerator>> open_device(Endpoint endpoint, const std::string& device, Request request) {
  auto& [uri, wait, config] = request;
  auto connection = std::make_unique<Connection>(std::move(endpoint), uri);
  wire::Command command;
  command.mutable_open()->set_device(device);
  command.mutable_open()->set_client(client_name());
  command.mutable_open()->set_wait(remote::to_wire(wait));
  TENON_TRY_ASSIGN(answer, connection->ask(std::move(command), wait + kOpenLimit));
  if (!answer->has_opened()) {
    return error("the server's answer does not belong to the request", uri,
                 "use the same build of Tenon on both machines");
  }
  const wire::Opened& opened = answer->opened();
  connection->set_server(opened.server());
  if (!config) {
    TENON_TRY_ASSIGN(parsed, spec::parse_config(opened.config(), uri));
    config = std::move(*parsed);
  }
  Info info{.uri = uri,
            .config = std::move(*config),
            .simulated = opened.simulated(),
            .cycle_accurate = opened.cycle_accurate(),
            .clock_hz = opened.clock_hz()};
  auto accelerator = std::make_unique<RemoteAccelerator>(std::move(info), std::move(connection),
                                                         remote::limit_from_wire(opened.launch_limit()));
  TENON_TRY(check_identity(*accelerator));
  return accelerator;
}

Expected<std::vector<ServedDevice>> list_server(Endpoint endpoint, const std::string& uri) {
  Connection connection(std::move(endpoint), uri);
  wire::Command command;
  command.mutable_list();
  TENON_TRY_ASSIGN(answer, connection.ask(std::move(command), kLimit));
  std::vector<ServedDevice> devices;
  for (const wire::Device& device : answer->listing().devices()) {
    devices.push_back({.name = device.name(),
                       .uri = device.uri(),
                       .holder = device.holder(),
                       .held = remote::limit_from_wire(device.held()),
                       .queued = device.queued()});
  }
  return devices;
}

// The servers of a pool have the token and the certificates in common.
Endpoint at(Endpoint endpoint, const Site& site) {
  endpoint.address = site.address;
  return endpoint;
}

remote::ListDevices lister(const Endpoint& endpoint) {
  return
      [endpoint](const Site& site) { return list_server(at(endpoint, site), fmt::format("remote:{}", site.address)); };
}

Expected<std::unique_ptr<Accelerator>> open_remote(std::string_view target) {
  Request request{.uri = fmt::format("remote:{}", target), .config = {}};
  TENON_TRY_ASSIGN(options, Options::parse(request.uri, target));
  TENON_TRY_ASSIGN(read, read_target(target, *options));
  const auto wait = std::chrono::seconds(options->integer("wait", 0, 0, kMaxWait));
  const std::string config_name = options->text("config", "");
  TENON_TRY(options->finish());
  if (!config_name.empty()) {
    TENON_TRY_ASSIGN(loaded, spec::load_config(config_name));
    request.config = std::move(*loaded);
  }
  remote::quiet_grpc();
  if (!read->pool) {
    request.wait = wait;
    return open_device(read->endpoint, read->sites.front().device, std::move(request));
  }
  const auto open = [&](const Site& site) {
    Request one = request;
    one.uri = fmt::format("remote:{}/{}{}", site.address, site.device, read->query);
    return open_device(at(read->endpoint, site), site.device, std::move(one));
  };
  return remote::open_free(read->sites, wait, request.uri, lister(read->endpoint), open);
}

Expected<std::vector<ServedDevice>> list_remote(std::string_view server) {
  const std::string uri = fmt::format("remote:{}", server);
  TENON_TRY_ASSIGN(options, Options::parse(uri, server));
  TENON_TRY_ASSIGN(read, read_target(server, *options));
  TENON_TRY(options->finish());
  remote::quiet_grpc();
  if (read->pool) return remote::list_all(read->sites, lister(read->endpoint));
  return list_server(std::move(read->endpoint), uri);
}

}  // namespace
}  // namespace tenon::driver

tenon::driver::Transport tenon::driver::transport() {
  return {
      .scheme = "remote",
      .doc =
          "a device that `tenon serve` lends on another machine: remote:HOST:PORT[/DEVICE], or the first free one of "
          "several servers: remote:@FILE or remote:@slurm; then "
          "[?wait=SECONDS&port=PORT&config=NAME&token-file=FILE&tls=on&tls-ca=FILE&tls-cert=FILE&tls-key=FILE&tls-name="
          "NAME]",
      .open = open_remote,
      .serve = remote::start_server,
      .list = list_remote};
}
