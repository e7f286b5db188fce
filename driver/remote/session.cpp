#include "driver/remote/session.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <future>

#include "driver/control.h"
#include "driver/identity.h"
#include "driver/remote/channel.h"
#include "driver/remote/convert.h"
#include "support/printable.h"
#include "support/try.h"

namespace tenon::driver::remote {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr auto kFirstRequest = 10s;  // a client's limit for its first request
constexpr auto kSend = 10s;          // a client's limit for taking an answer
constexpr auto kAlive = 500ms;       // the interval of signs of life; the client waits for kSilence (transport.cpp)
constexpr auto kPoll = 20ms;         // how long the server does not look whether the client is still there
constexpr auto kFirstSlice = 100us;  // of a wait on the device: an empty launch is over by then

grpc::Status ended(grpc::StatusCode code, std::string why) { return {code, std::move(why)}; }

wire::Answer done() {
  wire::Answer answer;
  answer.mutable_done();
  return answer;
}

bool equal(std::string_view a, std::string_view b) {  // in a time that tells nothing about the bytes
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Session::~Session() {
  accelerator_.reset();  // before the next client holds the device
  lease_.reset();
}

void Session::run() {
  const grpc::Status status = serve();
  accelerator_.reset();
  lease_.reset();
  if (!gone()) refuse(status, kSend);
}

void Session::refuse(const grpc::Status& status, nanoseconds limit) {
  rpc_.Finish(status, completions_.begin(Completions::kFinished));
  if (!completions_.wait(Completions::kEnded, limit)) context_.TryCancel();
}

// Whether the client has ended, or is lost.
bool Session::gone() { return completions_.wait(Completions::kEnded, 0ns).has_value(); }

grpc::Status Session::check_token() {
  if (shared_.token.empty()) return grpc::Status::OK;
  const std::string peer = context_.peer();
  if (shared_.refusals.is_crowded(peer))  // its token is not even looked at
    return ended(grpc::UNAUTHENTICATED, "too many clients at this address have no right token: try again later");
  const auto& metadata = context_.client_metadata();
  const auto found = metadata.find(kTokenKey);
  const bool given = found != metadata.end();
  if (given && equal({found->second.data(), found->second.size()}, kTokenPrefix + shared_.token)) {
    shared_.refusals.forget(peer);
    return grpc::Status::OK;
  }
  const auto late = shared_.refusals.add(peer, given ? "a wrong token" : "no token");
  if (late) completions_.wait(Completions::kEnded, late->delay);
  return ended(grpc::UNAUTHENTICATED,
               given ? "the token is not the server's" : "the server requires a token: ?token-file=FILE");
}

grpc::Status Session::serve() {
  if (auto status = check_token(); !status.ok()) return status;
  nanoseconds limit = kFirstRequest;
  while (true) {
    wire::Command command;
    switch (stream_.receive(command, data_, limit)) {
      case Transfer::kGood: break;
      case Transfer::kEnded: return grpc::Status::OK;
      case Transfer::kMalformed: return ended(grpc::INVALID_ARGUMENT, "a request is malformed");
      case Transfer::kLate:
        return ended(grpc::DEADLINE_EXCEEDED,
                     fmt::format("the lease has ended: no request came for {:.3g} s, the server's limit",
                                 std::chrono::duration<double>(limit).count()));
    }
    if (auto status = obey(command); !status.ok()) return status;
    if (accelerator_) limit = shared_.options.max_idle;
  }
}

Transfer Session::answer(const wire::Answer& answer, std::span<const std::byte> data) {
  since_answer_ = {};
  return stream_.send(answer, data, kSend);
}

void Session::answer_alive(wire::Alive alive) {
  if (since_answer_.elapsed() < kAlive) return;
  wire::Answer message;
  *message.mutable_alive() = std::move(alive);
  (void)answer(message);  // a client that is gone is noticed by gone()
}

Transfer Session::fail(const Diagnostic& diagnostic) {
  wire::Answer message;
  *message.mutable_failure() = to_wire(diagnostic);
  return answer(message);
}

// Executes the request and answers; an error ends the session.
grpc::Status Session::obey(const wire::Command& command) {
  since_answer_ = {};
  Expected<wire::Answer> result = done();
  if (deferred_) {
    if (command.posted()) return grpc::Status::OK;
    result = std::unexpected(*std::exchange(deferred_, std::nullopt));
  } else {
    result = execute(command);
  }
  if (command.posted()) {
    if (!result) deferred_ = std::move(result.error());
    return grpc::Status::OK;
  }
  const Transfer sent = result ? answer(*result) : fail(result.error());
  if (sent == Transfer::kGood) return grpc::Status::OK;
  return ended(grpc::DEADLINE_EXCEEDED, "the client takes no answers");
}

Expected<wire::Answer> Session::execute(const wire::Command& command) {
  using Kind = wire::Command::KindCase;
  wire::Answer answer = done();
  const Kind kind = command.kind_case();
  if (kind == Kind::kList) return listing();
  if (kind == Kind::kOpen) {
    TENON_TRY(open(command.open()));
    const Info& info = accelerator_->info();
    wire::Opened& opened = *answer.mutable_opened();
    opened.set_server(shared_.server_id);
    opened.set_name(shared_.leases.list()[lease_->device()].name);
    opened.set_uri(info.uri);
    opened.set_config(spec::to_json(info.config));
    opened.set_simulated(info.simulated);
    opened.set_cycle_accurate(info.cycle_accurate);
    opened.set_clock_hz(info.clock_hz);
    opened.set_launch_limit(to_wire(shared_.options.max_launch));
    return answer;
  }
  if (!accelerator_) return error("the session holds no device", {}, "open one first");
  switch (kind) {
    case Kind::kList:
    case Kind::kOpen:
    case Kind::KIND_NOT_SET: return error("the server does not know this request", {}, "use the same build of Tenon");
    case Kind::kAllocate: return allocate(command.allocate());
    case Kind::kFree: TENON_TRY(free(from_wire(command.free()))); return answer;
    case Kind::kWrite: TENON_TRY(write(command.write())); return answer;
    case Kind::kRead: {
      TENON_TRY(read(command.read()));
      answer.mutable_data()->set_last(true);
      return answer;
    }
    case Kind::kReadRegister: {
      TENON_TRY_ASSIGN(value, accelerator_->read_register(command.read_register()));
      answer.set_value(*value);
      return answer;
    }
    case Kind::kWriteRegister:
      TENON_TRY(accelerator_->write_register(command.write_register().offset(), command.write_register().value()));
      return answer;
    case Kind::kWaitIdle: {
      TENON_TRY_ASSIGN(idle, wait_idle(limit_from_wire(command.wait_idle())));
      answer.set_idle(*idle);
      return answer;
    }
    case Kind::kExplain: answer.set_text(accelerator_->explain()); return answer;
    case Kind::kStart: {
      TENON_TRY_ASSIGN(launch, from_wire(command.start()));
      TENON_TRY(driver::start(*accelerator_, *launch));
      return answer;
    }
    case Kind::kFinish: return finish(command.finish());
    case Kind::kReadCounters: {
      TENON_TRY_ASSIGN(counters, driver::read_counters(*accelerator_));
      *answer.mutable_counters() = to_wire(*counters);
      return answer;
    }
  }
  return error("the server does not know this request", {}, "use the same build of Tenon");
}

wire::Answer Session::listing() const {
  wire::Answer answer;
  wire::Listing& listing = *answer.mutable_listing();
  listing.set_server(shared_.server_id);
  for (const ServedDevice& device : shared_.leases.list()) {
    wire::Device& entry = *listing.add_devices();
    entry.set_name(device.name);
    entry.set_uri(device.uri);
    entry.set_holder(device.holder);
    entry.set_held(to_wire(device.held));
    entry.set_queued(static_cast<uint32_t>(device.queued));
  }
  return answer;
}

Status Session::open(const wire::Open& request) {
  if (lease_) return error("the session holds a device already", {}, "one session is one device");
  TENON_TRY_ASSIGN(lease, shared_.leases.join(request.device(), printable(request.client())));
  const Deadline deadline(limit_from_wire(request.wait()));
  while (!lease->wait(std::min<nanoseconds>(kPoll, std::max<nanoseconds>(deadline.remaining(), 0ns)))) {
    if (gone()) return error("the client is gone");
    if (deadline.passed()) {
      const size_t others = lease->ahead() - 1;
      return error(fmt::format("the device is busy: {} holds it{}", lease->holder(),
                               others == 0 ? "" : fmt::format(", and {} more wait for it", others)),
                   {}, "wait for it, ?wait=SECONDS, or use another device");
    }
    wire::Alive alive;
    alive.set_queued(static_cast<uint32_t>(lease->ahead()));
    alive.set_holder(lease->holder());
    answer_alive(std::move(alive));
  }
  // The first opening of a Verilated model builds it, which takes minutes.
  const std::string uri = shared_.leases.list()[lease->device()].uri;
  auto opening = std::async(std::launch::async, [&uri] { return driver::open(uri); });
  while (opening.wait_for(kPoll) != std::future_status::ready) answer_alive({});
  TENON_TRY_ASSIGN(opened, opening.get());
  accelerator_ = std::move(*opened);
  lease_.emplace(std::move(*lease));
  return {};
}

Expected<wire::Answer> Session::allocate(const wire::Allocate& request) {
  const uint64_t available = shared_.options.max_bytes - std::min(allocated_, shared_.options.max_bytes);
  if (request.bytes() > available) {
    return error(
        fmt::format("a buffer of {} bytes: a lease may have {} bytes of buffers on this server, this one has {}",
                    request.bytes(), shared_.options.max_bytes, allocated_),
        {}, "free buffers, or request less");
  }
  TENON_TRY_ASSIGN(buffer, accelerator_->allocate(request.bytes(), request.alignment()));
  buffers_.push_back(*buffer);
  allocated_ += buffer->size;
  wire::Answer answer;
  *answer.mutable_allocated() = to_wire(*buffer);
  return answer;
}

// The client's word is not enough: a device ends its process at a wrong free().
Status Session::free(const Buffer& buffer) {
  const auto found = std::ranges::find_if(
      buffers_, [&](const Buffer& b) { return b.address == buffer.address && b.size == buffer.size; });
  if (found == buffers_.end()) {
    return error(
        fmt::format("free of a buffer that is not alive: address {:#x}, {} bytes", buffer.address, buffer.size));
  }
  accelerator_->free(buffer);
  allocated_ -= buffer.size;
  buffers_.erase(found);
  return {};
}

Status Session::write(const wire::Transfer& request) {
  return accelerator_->write(from_wire(request.buffer()), request.offset(), data_);
}

// Sends all but the end of the data, which is the answer.
Status Session::read(const wire::Transfer& request) {
  const Buffer buffer = from_wire(request.buffer());
  TENON_TRY(accelerator_->read(buffer, request.offset(), {}));
  if (request.offset() > buffer.size || request.bytes() > buffer.size - request.offset()) {
    return error(
        fmt::format("read of {} bytes at {} of a buffer of {} bytes", request.bytes(), request.offset(), buffer.size));
  }
  for (uint64_t at = 0; at < request.bytes();) {
    data_.resize(std::min<uint64_t>(request.bytes() - at, kMaxData));
    TENON_TRY(accelerator_->read(buffer, request.offset() + at, data_));
    wire::Answer part;
    part.mutable_data()->set_last(false);
    if (answer(part, data_) != Transfer::kGood) return error("the client takes no answers");
    at += data_.size();
  }
  return {};
}

// Waits in slices: between them the server looks whether the client is still there, and tells it that the run goes on.
Expected<bool> Session::wait_idle(nanoseconds limit) {
  const Deadline deadline(shared_.options.max_launch);
  nanoseconds remaining = limit, slice = kFirstSlice;
  while (true) {
    const nanoseconds now = std::min(slice, remaining);
    const Stopwatch stopwatch;
    TENON_TRY_ASSIGN(idle, accelerator_->wait_idle(now));
    remaining -= now;
    if (*idle || remaining <= 0ns) return *idle;
    slice = stopwatch.elapsed() < kPoll ? 2 * slice : std::max<nanoseconds>(slice / 2, kFirstSlice);
    if (gone()) return error("the client is gone");
    if (deadline.passed()) {
      TENON_TRY(driver::reset(*accelerator_));
      return error(fmt::format("the launch has taken {:.3g} s, the server's limit",
                               std::chrono::duration<double>(shared_.options.max_launch).count()),
                   {}, "launch less at a time, or raise the limit where the server runs: tenon serve --max-launch");
    }
    if (since_answer_.elapsed() >= kAlive) {
      wire::Alive alive;
      TENON_TRY_ASSIGN(instructions, read_register64(*accelerator_, spec::reg::kInstructionsDone));
      alive.set_instructions(*instructions);
      answer_alive(std::move(alive));
    }
  }
}

Expected<wire::Answer> Session::finish(const wire::Finish& request) {
  const nanoseconds limit = limit_from_wire(request.limit());
  TENON_TRY_ASSIGN(idle, wait_idle(limit));
  TENON_TRY(driver::conclude(*accelerator_, *idle, limit));
  wire::Answer answer = done();
  if (!request.counters()) return answer;
  TENON_TRY_ASSIGN(counters, driver::read_counters(*accelerator_));
  *answer.mutable_counters() = to_wire(*counters);
  return answer;
}

}  // namespace tenon::driver::remote
