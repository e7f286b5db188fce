// Remote devices beyond the conformance suite: leases and their queue, limits, who may connect, and what a client is
// told when a server, a network or a device is lost.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "driver/accelerator.h"
#include "driver/serve.h"
#include "support/clock.h"
#include "support/try.h"
#include "tests/driver/remote/served.h"
#include "tests/driver/remote/use.h"
#include "tests/driver/uio/emulated_zynq.h"

namespace tenon::driver {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string failure(const std::string& uri) {
  const auto opened = open(uri);
  return opened ? "opened" : opened.error().what;
}

// A stream without end: a launch that its limit stops.
Expected<Launch> long_launch(Accelerator& accelerator) {
  const spec::Isa isa(accelerator.info().config);
  spec::base::Load load;
  load.memory_type = static_cast<int64_t>(spec::base::MemoryType::kAcc8);
  load.y_size = 1, load.x_size = 40, load.x_stride = 40;
  std::vector<spec::Slot> slots;
  for (int i = 0; i < 5000; ++i) TENON_TRY(isa.encode(load, slots));
  TENON_TRY_ASSIGN(stream, accelerator.allocate(slots.size() * spec::kSlotBytes));
  TENON_TRY_ASSIGN(data, accelerator.allocate(4096));
  TENON_TRY(accelerator.write(*stream, 0, std::as_bytes(std::span(slots))));
  Launch launch{
      .profile = spec::Profile::kBase, .instructions = stream->address, .count = static_cast<uint32_t>(slots.size())};
  launch.bases.fill(data->address);
  return launch;
}

TEST(RemoteTest, CountersAndErrorsAreThoseOfTheDevice) {
  Served server({"--device", "fast=behavioral:tiny?memory=1M"});
  const auto remote = open(server.uri("/fast")), local = open("behavioral:tiny?memory=1M");
  ASSERT_TRUE(remote) << remote.error().str();
  EXPECT_EQ((*remote)->info().config, (*local)->info().config);
  EXPECT_TRUE((*remote)->info().simulated);
  Counters counters[2];
  std::string errors[2];
  for (int i = 0; i < 2; ++i) {
    Accelerator& accelerator = i == 0 ? **remote : **local;
    for (int run = 0; run < 3; ++run) {  // counters are sent with the end of the launch from the second on
      const auto launch = long_launch(accelerator);
      ASSERT_TRUE(launch) << launch.error().str();
      ASSERT_TRUE(start(accelerator, *launch));
      const auto finished = finish(accelerator, 1s);
      ASSERT_TRUE(finished) << finished.error().str();
      counters[i] = read_counters(accelerator).value();
      EXPECT_EQ(read_counters(accelerator)->cycles, counters[i].cycles);
    }
    auto launch = *long_launch(accelerator);
    launch.bases.fill(uint64_t{1} << 33);
    ASSERT_TRUE(start(accelerator, launch));
    const auto failed = finish(accelerator, 1s);
    ASSERT_FALSE(failed);
    errors[i] = failed.error().what;
    EXPECT_EQ(failed.error().where, accelerator.info().uri);
  }
  EXPECT_EQ(counters[0].cycles, counters[1].cycles);
  EXPECT_EQ(counters[0].instructions, counters[1].instructions);
  EXPECT_EQ(counters[0].busy, counters[1].busy);
  EXPECT_EQ(counters[0].stall, counters[1].stall);
  EXPECT_EQ(errors[0], errors[1] + " (on the server: behavioral:tiny?memory=1M)");
}

TEST(RemoteTest, AFailureOfAPostedRequestIsTheNextAnswer) {
  Served server({"--device", "behavioral:tiny?memory=1M"});
  const auto accelerator = open(server.uri());
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  // Another configuration's hash cannot be forged, but a start while a launch runs can: by the registers alone.
  const auto launch = long_launch(**accelerator);
  ASSERT_TRUE(start(**accelerator, *launch));
  ASSERT_FALSE((*accelerator)->wait_idle(10us).value());
  const auto second = start(**accelerator, *launch);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what, HasSubstr("busy with another launch"));
  EXPECT_TRUE(finish(**accelerator, 1s));
  EXPECT_EQ(use(**accelerator).has_value(), true);
}

TEST(RemoteTest, ClientsQueueInTheOrderOfTheirArrival) {
  Served server({"--device", "a=behavioral:tiny?memory=1M"});
  auto first = open(server.uri("/a"));
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_THAT(failure(server.uri("/a")), AllOf(StartsWith("the device is busy: "), HasSubstr(" holds it")));
  std::vector<int> order;
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] {
      const auto opened = open(server.uri("/a?wait=60"));
      ASSERT_TRUE(opened) << opened.error().str();
      order.push_back(i);  // one at a time: it holds the device
    });
    while (list_served(server.address()).value().at(0).queued != static_cast<uint64_t>(i) + 1) {
      std::this_thread::sleep_for(1ms);
    }
  }
  EXPECT_THAT(failure(server.uri("/a")), HasSubstr("and 3 more wait for it"));
  const auto devices = list_served(server.address()).value();
  EXPECT_EQ(devices[0].uri, "behavioral:tiny?memory=1M");
  EXPECT_THAT(devices[0].holder, HasSubstr(fmt::format(" {}", getpid())));
  first->reset();
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2));
}

TEST(RemoteTest, WithoutANameTheShortestQueueIsJoined) {
  Served server({"--device", "behavioral:tiny?memory=1M", "--device", "behavioral:default?memory=1M"});
  const auto first = open(server.uri()), second = open(server.uri());
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)->info().config.name, "tiny");
  EXPECT_EQ((*second)->info().config.name, "default");
  EXPECT_THAT(failure(server.uri("/2")), HasSubstr("the server has no device \"2\""));
  EXPECT_THAT(failure(server.uri()), HasSubstr("is busy: "));
}

TEST(RemoteTest, ABrokenDeviceIsItsClientsErrorAndTheServerContinues) {
  Served server({"--device", "behavioral:nonesuch", "--device", "behavioral:tiny"});
  EXPECT_THAT(failure(server.uri("/0")), HasSubstr("nonesuch"));
  EXPECT_EQ(use(server.uri("/1")), "");
  EXPECT_THAT(failure(server.uri("/0")), HasSubstr("nonesuch"));
}

TEST(RemoteTest, LimitsOfALeaseHold) {
  Served server({"--device", "behavioral:tiny", "--max-memory", "100000", "--max-launch", "0.2", "--max-idle", "0.5"});
  auto accelerator = open(server.uri());
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  const auto buffer = (*accelerator)->allocate(60000);
  ASSERT_TRUE(buffer);
  const auto refused = (*accelerator)->allocate(60000);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what,
              HasSubstr("a lease may have 100000 bytes of buffers on this server, this one has 60000"));
  (*accelerator)->free(*buffer);
  EXPECT_TRUE((*accelerator)->allocate(60000));

  std::this_thread::sleep_for(600ms);
  const auto late = (*accelerator)->read_register(0);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().what, HasSubstr("no request came for 0.5 s"));
}

TEST(RemoteTest, AServerHasNoMoreClientsThanItsLimit) {
  Served server({"--device", "behavioral:tiny", "--device", "behavioral:tiny", "--max-clients", "2"});
  const auto first = open(server.uri("/0")), second = open(server.uri("/1"));
  ASSERT_TRUE(first && second);
  EXPECT_THAT(failure(server.uri()), HasSubstr("the server has 2 clients, its limit"));
}

TEST(RemoteTest, AClientThatIsKilledOrLostFreesItsDevice) {
  Served server({"--device", "behavioral:tiny"});
  for (const int signal : {SIGKILL, SIGTERM, SIGSTOP}) {  // a stopped client answers as little as a lost machine
    Process client({kTenon, "bench", "launch", "--launches", "100000000", "--device", server.uri()}, true);
    while (list_served(server.address()).value().at(0).holder.empty()) std::this_thread::sleep_for(5ms);
    client.signal(signal);
    const Stopwatch stopwatch;
    EXPECT_EQ(use(server.uri("?wait=20")), "") << signal;
    EXPECT_LT(stopwatch.seconds(), signal == SIGSTOP ? 15 : 5) << signal;  // 5 s on an idle machine
  }
}

TEST(RemoteTest, AClientWithoutRequestsForSecondsKeepsItsDevice) {
  Served server({"--device", "behavioral:tiny"});
  auto accelerator = open(server.uri());
  ASSERT_TRUE(accelerator);
  std::this_thread::sleep_for(6s);
  const auto used = use(**accelerator);
  EXPECT_TRUE(used) << used.error().str();
}

TEST(RemoteTest, ARestartedServerIsToldApartFromALostOne) {
  auto server = std::make_unique<Served>(std::vector<std::string>{"--device", "behavioral:tiny"});
  const std::string address = server->address();
  auto first = open(server->uri()), second = open(server->uri("?wait=0"));
  ASSERT_TRUE(first);
  server->process().kill();
  const auto lost = (*first)->read_register(0);
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().what, AllOf(HasSubstr("the server is lost"), HasSubstr("refused")));
  EXPECT_EQ((*first)->read_register(0).error().what, lost.error().what);
  server = std::make_unique<Served>(std::vector<std::string>{"--device", "behavioral:tiny"}, address);
  ASSERT_EQ(server->address(), address);
  first = open(server->uri());
  ASSERT_TRUE(first) << first.error().str();
  server->process().kill();
  server = std::make_unique<Served>(std::vector<std::string>{"--device", "behavioral:tiny"}, address);
  const auto restarted = (*first)->read_register(0);
  ASSERT_FALSE(restarted);
  EXPECT_THAT(restarted.error().what, HasSubstr("the server was restarted"));
  EXPECT_EQ(use(server->uri()), "");
}

TEST(RemoteTest, AServerThatDoesNotRunOrSpeaksOtherwiseIsAnError) {
  EXPECT_THAT(failure("remote:127.0.0.1:1"), AllOf(HasSubstr("cannot connect to the server"), HasSubstr("refused")));
  EXPECT_THAT(failure("remote:board"), HasSubstr("is not HOST:PORT"));
  EXPECT_THAT(failure("remote:127.0.0.1:1?speed=9"), HasSubstr("there is no option speed"));
  EXPECT_THAT(failure("remote:127.0.0.1:1?tls-cert=x&tls-key="), HasSubstr("a client's certificate requires its key"));
  EXPECT_THAT(failure("remote:127.0.0.1:1?tls-cert=x"), HasSubstr("requires its key"));
  EXPECT_THAT(list_served("127.0.0.1:1").error().what, HasSubstr("cannot connect"));
}

std::string serve_error(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {kTenon, "serve"});
  Process server(std::move(arguments), true);
  const std::string text = server.text();
  EXPECT_NE(server.wait(), 0);
  return text;
}

TEST(RemoteTest, WrongOptionsOfAServerAreErrors) {
  EXPECT_THAT(serve_error({"--listen", "0.0.0.0:0"}), HasSubstr("any client would be served"));
  EXPECT_THAT(serve_error({"--listen", "here"}), HasSubstr("\"here\" is not HOST:PORT"));
  EXPECT_THAT(serve_error({"--device", "nonesuch:x"}), HasSubstr("unknown device scheme \"nonesuch\""));
  EXPECT_THAT(serve_error({"--device", "a=behavioral:", "--device", "a=behavioral:"}),
              HasSubstr("two devices are called \"a\""));
  EXPECT_THAT(serve_error({"--max-launch", "0"}), HasSubstr("--max-launch is '0', must be a number above 0"));
  EXPECT_THAT(serve_error({"--max-clients", "0"}), HasSubstr("--max-clients is '0'"));
  EXPECT_THAT(serve_error({"--tls-cert", "x"}), HasSubstr("TLS requires both"));
  EXPECT_THAT(serve_error({"--token-file", "/nonexistent"}), HasSubstr("/nonexistent"));
  const Served server({});
  EXPECT_THAT(serve_error({"--listen", server.address()}), HasSubstr("cannot listen"));
}

TEST(RemoteTest, OnlyClientsWithTheTokenAreServed) {
  const Scratch scratch;
  const std::string good = scratch.path() / "good", wrong = scratch.path() / "wrong";
  std::ofstream(good) << "a-long-token\n";
  std::ofstream(wrong) << "a-long-tokem\n";
  std::ofstream(scratch.path() / "empty") << " \n";
  Served server({"--token-file", good});
  EXPECT_EQ(use(server.uri("?token-file=" + good)), "");
  EXPECT_THAT(failure(server.uri()), HasSubstr("the server requires a token"));
  EXPECT_THAT(failure(server.uri("?token-file=" + wrong)), HasSubstr("the token is not the server's"));
  EXPECT_THAT(failure(server.uri("?token-file=" + (scratch.path() / "empty").string())), HasSubstr("has no token"));
  EXPECT_THAT(list_served(server.address()).error().what, HasSubstr("requires a token"));
  EXPECT_EQ(list_served(server.address() + "?token-file=" + good)->size(), 1u);
}

TEST(RemoteTest, RefusedTokensAreLoggedAndNotShown) {
  const Scratch scratch;
  const std::string good = scratch.path() / "good", wrong = scratch.path() / "wrong";
  std::ofstream(good) << "a-long-token\n";
  std::ofstream(wrong) << "a-long-tokem\n";
  Process server({kTenon, "serve", "--listen", "127.0.0.1:0", "--token-file", good}, true);
  const std::string line = server.line(), address = line.substr(line.rfind(' ') + 1);
  EXPECT_THAT(failure("remote:" + address + "?token-file=" + wrong), HasSubstr("the token is not the server's"));
  EXPECT_THAT(failure("remote:" + address), HasSubstr("the server requires a token"));
  server.signal(SIGTERM);
  const std::string log = server.text();
  EXPECT_THAT(log, HasSubstr(": a wrong token (1 from this address)\n"));
  EXPECT_THAT(log, HasSubstr(": no token (2 from this address)\n"));
  EXPECT_THAT(log, HasSubstr("refused a client at ipv4:127.0.0.1:"));
  EXPECT_THAT(log, Not(HasSubstr("a-long")));
}

TEST(RemoteTest, PortsAreChecked) {
  EXPECT_THAT(failure("remote:board:99999"), HasSubstr("the port is '99999', must be an integer from 1 to 65535"));
  EXPECT_THAT(serve_error({"--listen", "127.0.0.1:99999"}),
              HasSubstr("the port is '99999', must be an integer from 0"));
  EXPECT_THAT(serve_error({"--listen", "127.0.0.1:x"}), HasSubstr("the port is 'x'"));
}

// An authority, and two certificates by it.
void make_certificates(const std::filesystem::path& directory) {
  const auto run = [&](const std::string& arguments) {
    const std::string command = fmt::format("cd {} && openssl {} 2>/dev/null", directory.string(), arguments);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  };
  const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  run(fmt::format("req -x509 {} -keyout ca.key -out ca.crt -days 2 -subj /CN=authority", key));
  for (const std::string name : {"server", "client"}) {
    run(fmt::format("req {} -keyout {}.key -out {}.csr -subj /CN=board -addext subjectAltName=DNS:board", key, name,
                    name));
    run(fmt::format(
        "x509 -req -in {}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out {}.crt -days 2 -copy_extensions copy", name,
        name));
  }
}

TEST(RemoteTest, TlsAuthenticatesTheServerAndTheClient) {
  if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "requires the command openssl";
  const Scratch scratch, other;
  make_certificates(scratch.path());
  make_certificates(other.path());
  const auto options = [&](const Scratch& from, bool client) {
    const std::string d = from.path();
    return fmt::format("?wait=20&tls-name=board&tls-ca={}/ca.crt", d) +
           (client ? fmt::format("&tls-cert={0}/client.crt&tls-key={0}/client.key", d) : "");
  };
  const std::string d = scratch.path();
  const std::vector<std::string> tls = {"--tls-cert", d + "/server.crt", "--tls-key", d + "/server.key"};
  Served server(tls);
  EXPECT_EQ(use(server.uri(options(scratch, false))), "");
  EXPECT_THAT(failure(server.uri(options(other, false))), HasSubstr("cannot connect"));
  EXPECT_THAT(failure(server.uri()), HasSubstr("cannot connect"));
  auto mutual = tls;
  mutual.insert(mutual.end(), {"--tls-client-ca", d + "/ca.crt"});
  Served strict(mutual);
  EXPECT_EQ(use(strict.uri(options(scratch, true))), "");
  EXPECT_NE(use(strict.uri(options(scratch, false))), "");
  const std::string stranger = fmt::format(
      "?tls-name=board&tls-ca={0}/ca.crt&tls-cert={1}/client.crt&tls-key={1}/client.key", d, other.path().string());
  EXPECT_NE(use(strict.uri(stranger)), "");
  EXPECT_EQ(use(strict.uri(options(scratch, true))), "");
}

TEST(RemoteTest, ADeviceWhoseProcessIsKilledIsAnErrorAndWorksAfterItsRestart) {
  const uio::EmulatorOptions options{.root = {}, .config = spec::load_config("tiny").value(), .memory_bytes = 1 << 20};
  auto board = std::make_unique<EmulatedZynq>(options);
  Served server({"--device", board->uri()});
  auto accelerator = open(server.uri());
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  board->kill();
  const auto read = (*accelerator)->read_register(0);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().what, HasSubstr("does not answer any more"));
  accelerator->reset();
  EXPECT_NE(use(server.uri("?wait=5")), "");
  board->restart();
  EXPECT_EQ(use(server.uri("?wait=5")), "");
}

}  // namespace
}  // namespace tenon::driver
