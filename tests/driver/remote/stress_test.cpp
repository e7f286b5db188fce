// Servers under clients that send anything, and with clients, servers and devices that are killed: a few in the quick
// tier, and in the full tier (TENON_FULL_TIER) as many as the requirement names.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "driver/remote/channel.h"
#include "driver/remote/remote.pb.h"
#include "driver/remote/stream.h"
#include "support/clock.h"
#include "support/random.h"
#include "tests/driver/remote/served.h"
#include "tests/driver/remote/use.h"
#include "tests/driver/uio/emulated_zynq.h"
#include "tests/seed.h"

namespace tenon::driver {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

#ifdef TENON_FULL_TIER
constexpr int kRawConnections = 10000, kRequests = 100000, kKills = 100;
#else
constexpr int kRawConnections = 300, kRequests = 1000, kKills = 6;
#endif

// A sanitizer keeps freed memory for a while.
constexpr size_t kSlackKilobytes = TENON_SANITIZED ? 1000000 : 100000;

// What the kernel knows of a process.
struct Usage {
  size_t threads = 0, files = 0, kilobytes = 0;
  explicit Usage(pid_t process) {
    const std::string directory = fmt::format("/proc/{}/", process);
    std::ifstream status(directory + "status");
    for (std::string key; status >> key; status.ignore(1000, '\n')) {
      if (key == "Threads:") status >> threads;
      if (key == "VmRSS:") status >> kilobytes;
    }
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(directory + "fd")) ++files;
  }
};

int connect_to(const std::string& address) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&server), sizeof server) == 0) return socket;
  ::close(socket);
  return -1;
}

// Waits until a server has closed what its clients have closed: it lags where they are fast.
void wait_for_files(pid_t server, size_t files) {
  const Deadline deadline(60s);
  while (Usage(server).files > files && !deadline.passed()) std::this_thread::sleep_for(20ms);
}

// Bytes that are no HTTP/2, or begin as it does.
TEST(RemoteStressTest, BytesThatAreNoRequestsAreIgnored) {
  Served server({"--device", "behavioral:tiny"});
  ASSERT_EQ(use(server.uri()), "");
  const Usage before(server.process().id());
  Random random(test_seed(20));
  for (int i = 0; i < kRawConnections; ++i) {
    const int socket = connect_to(server.address());
    ASSERT_GE(socket, 0);
    std::string bytes = random.chance(50) ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "";
    for (int64_t n = random.between(0, 200); n > 0; --n) bytes += static_cast<char>(random.next());
    if (random.chance(30)) bytes.resize(bytes.size() / 2);
    (void)!::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(socket);
    if (i % 1000 == 999) wait_for_files(server.process().id(), before.files + 8);
  }
  wait_for_files(server.process().id(), before.files + 8);
  EXPECT_EQ(use(server.uri("?wait=5")), "");
  const Usage after(server.process().id());
  EXPECT_LE(after.threads, before.threads + 8);
  EXPECT_LE(after.files, before.files + 8);
  EXPECT_LE(after.kilobytes, before.kilobytes + kSlackKilobytes);
}

using remote::Completions;
using Rpc = grpc::GenericClientAsyncReaderWriter;
namespace wire = remote::wire;

// A session of a client that sends what it likes.
class Stranger {
 public:
  Stranger(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, const std::string& token) {
    context_.AddMetadata(remote::kTokenKey, token);
    rpc_ = grpc::GenericStub(channel).PrepareCall(&context_, method, &completions_.queue());
    stream_.emplace(*rpc_, completions_);
    rpc_->StartCall(completions_.begin(Completions::kStarted));
    completions_.wait(Completions::kStarted, kAnswer);
  }
  ~Stranger() {
    context_.TryCancel();
    if (!finished_) (void)finish();
  }

  // "failure: ..." where the server answers with one, "answer", the code of the status with which it ends the session,
  // or "nothing" where it does not answer.
  std::string send(const grpc::ByteBuffer& frame, bool last) {
    grpc::WriteOptions options;
    if (last) rpc_->WriteLast(frame, options, completions_.begin(Completions::kWritten));
    else rpc_->Write(frame, completions_.begin(Completions::kWritten));
    if (!completions_.wait(Completions::kWritten, kAnswer)) return "nothing";
    wire::Answer answer;
    std::vector<std::byte> data;
    switch (stream_->receive(answer, data, kAnswer)) {
      case remote::Transfer::kGood: return answer.has_failure() ? "failure: " + answer.failure().what() : "answer";
      case remote::Transfer::kEnded: return fmt::format("status {}", finish());
      case remote::Transfer::kLate:
      case remote::Transfer::kMalformed: break;
    }
    return "nothing";
  }

 private:
  static constexpr auto kAnswer = 20s;
  int finish() {
    grpc::Status status;
    finished_ = true;
    rpc_->Finish(&status, completions_.begin(Completions::kFinished));
    return completions_.wait(Completions::kFinished, kAnswer) ? status.error_code() : -1;
  }

  grpc::ClientContext context_;
  Completions completions_;
  std::unique_ptr<Rpc> rpc_;
  std::optional<remote::MessageStream<Rpc>> stream_;
  bool finished_ = false;
};

std::string bytes_of(const wire::Command& command, size_t data = 0) {
  grpc::ByteBuffer frame = remote::to_frame(command, std::vector<std::byte>(data));
  grpc::Slice slice;
  EXPECT_TRUE(frame.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

grpc::ByteBuffer frame_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

wire::Command open_command() {
  wire::Command command;
  command.mutable_open()->set_client("stranger");
  command.mutable_open()->set_wait(10'000'000'000);
  return command;
}

// A well-formed request that a device must refuse.
wire::Command wrong_command(Random& random) {
  wire::Command command;
  const auto buffer = [&](wire::Buffer& message) {
    message.set_address(random.next() >> random.between(0, 63));
    message.set_size(random.next() >> random.between(0, 63));
  };
  switch (random.between(0, 6)) {
    case 0: command.mutable_allocate()->set_bytes((uint64_t{1} << 21) + (random.next() >> 1)); break;
    case 1: buffer(*command.mutable_free()); break;
    case 2: buffer(*command.mutable_write()->mutable_buffer()); break;
    case 3:
      buffer(*command.mutable_read()->mutable_buffer());
      command.mutable_read()->set_bytes(random.next());
      break;
    case 4: command.set_read_register(static_cast<uint32_t>(random.next()) | 1); break;
    case 5: command.mutable_write_register()->set_offset(static_cast<uint32_t>(random.next()) | 2); break;
    default:
      for (int64_t n = random.between(0, 7); n > 0; --n) command.mutable_start()->add_bases(random.next());
      break;
  }
  return command;
}

// What is wrong with a session, and what the server must say.
void try_wrong_session(const std::shared_ptr<grpc::Channel>& channel, Random& random) {
  const std::string token = "Bearer right", method = remote::kMethod;
  const int64_t kind = random.between(0, 99);
  if (kind < 10) {  // unauthenticated
    const std::string wrong =
        random.of<const char*>({"", "right", "Bearer ", "Bearer righ", "Bearer right1", "bearer right"});
    EXPECT_EQ(Stranger(channel, method, wrong).send(frame_of(bytes_of(open_command())), false), "status 16") << wrong;
  } else if (kind < 15) {  // another method
    EXPECT_EQ(Stranger(channel, "/tenon.driver.remote.wire.Remote/Other", token).send(frame_of("x"), false),
              "status 12");
  } else if (kind < 17) {  // oversized
    const std::string large(remote::kMaxHeader + remote::kMaxData + 1, '\n');
    EXPECT_THAT(Stranger(channel, method, token).send(frame_of(large), false), StartsWith("status "));
  } else if (kind < 40) {  // truncated in its header
    std::string bytes = bytes_of(open_command());
    bytes.resize(static_cast<size_t>(random.between(1, static_cast<int64_t>(bytes.size()) - 1)));
    EXPECT_EQ(Stranger(channel, method, token).send(frame_of(bytes), false), "status 3");
  } else if (kind < 60) {  // random bytes that begin with no field of a request
    std::string bytes = "\xff";
    for (int64_t n = random.between(0, 300); n > 0; --n) bytes += static_cast<char>(random.next());
    EXPECT_EQ(Stranger(channel, method, token).send(frame_of(bytes), false), "status 3");
  } else if (kind < 80) {  // well-formed, without a device
    const auto command = wrong_command(random);
    EXPECT_THAT(Stranger(channel, method, token).send(frame_of(bytes_of(command)), false),
                StartsWith("failure: the session holds no"));
  } else if (kind < 95) {  // well-formed, and wrong for the device
    Stranger stranger(channel, method, token);
    ASSERT_EQ(stranger.send(frame_of(bytes_of(open_command())), false), "answer");
    for (int i = 0; i < 5; ++i) {
      const auto command = wrong_command(random);
      ASSERT_THAT(stranger.send(frame_of(bytes_of(command)), false), StartsWith("failure: ")) << bytes_of(command);
    }
  } else {  // any bytes of a request changed: what it means now is unknown, but the session ends
    std::string bytes = bytes_of(random.chance(50) ? wrong_command(random) : open_command(), 30);
    bytes[static_cast<size_t>(random.next() % bytes.size())] = static_cast<char>(random.next());
    EXPECT_NE(Stranger(channel, method, token).send(frame_of(bytes), true), "nothing");
  }
}

TEST(RemoteStressTest, WrongRequestsAreErrorsAndTheServerContinues) {
  const Scratch scratch;
  const std::string token = scratch.path() / "token";
  std::ofstream(token) << "right";
  Served server({"--device", "behavioral:tiny?memory=1M", "--token-file", token});
  const std::string uri = server.uri("?wait=10&token-file=" + token);
  const auto channel = grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials());
  Random random(test_seed(22));
  const auto try_many = [&](int count) {
    for (int i = 0; i < count; ++i) ASSERT_NO_FATAL_FAILURE(try_wrong_session(channel, random)) << i;
  };
  ASSERT_NO_FATAL_FAILURE(try_many(kRequests / 10));
  ASSERT_EQ(use(uri), "");
  const Usage before(server.process().id());
  ASSERT_NO_FATAL_FAILURE(try_many(kRequests));
  EXPECT_EQ(use(uri), "");
  const Usage after(server.process().id());
  EXPECT_LE(after.threads, before.threads + 8);
  EXPECT_LE(after.files, before.files + 8);
  EXPECT_LE(after.kilobytes, before.kilobytes + kSlackKilobytes);
}

// Kills the client, the server or the device in the middle of a client's work; then all work again.
void kill_at_random_moments(int rounds, uint32_t seed) {
  const uio::EmulatorOptions options{.root = {}, .config = spec::load_config("tiny").value(), .memory_bytes = 1 << 20};
  EmulatedZynq board(options);
  const std::vector<std::string> devices = {"--device", board.uri()};
  auto server = std::make_unique<Served>(devices);
  const std::string address = server->address();
  Random random(seed);
  for (int i = 0; i < rounds; ++i) {
    Process client(
        {kTenon, "bench", "transfer", "--rounds", "1000000", "--bytes", "100000", "--device", server->uri("?wait=10")},
        true);
    std::this_thread::sleep_for(std::chrono::milliseconds(random.between(0, 250)));
    const int64_t victim = random.between(0, 2);
    if (victim == 0) client.kill();
    if (victim == 1) server->process().kill();
    if (victim == 2) board.kill();
    const Stopwatch stopwatch;
    if (victim != 0) {
      const std::string said = client.text();
      EXPECT_GT(client.wait(), 0) << said;
      EXPECT_THAT(said, HasSubstr("error: "));
    }
    if (victim == 1) server = std::make_unique<Served>(devices, address);
    if (victim == 2) board.restart();
    ASSERT_EQ(use(server->uri("?wait=10")), "") << "round " << i << ", victim " << victim;
    EXPECT_LT(stopwatch.seconds(), 30) << "victim " << victim;
  }
}

TEST(RemoteStressTest, KillsAtRandomMomentsEndInAnErrorAndTheNextRunIsRight) {
  kill_at_random_moments(kKills, test_seed(21));
}

}  // namespace
}  // namespace tenon::driver
