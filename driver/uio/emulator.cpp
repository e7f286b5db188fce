#include "driver/uio/emulator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "driver/uio/emulated.h"
#include "driver/uio/files.h"
#include "driver/uio/memory.h"
#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "sim/verilator/verilated.h"
#include "support/file.h"
#include "support/number.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::driver::uio {
namespace {

namespace fs = std::filesystem;
namespace reg = spec::reg;

constexpr uint64_t kCyclesAtATime = 1 << 16;
constexpr char kUio[] = "/dev/uio0", kUioAttributes[] = "/sys/class/uio/uio0/";
constexpr char kMemory[] = "/dev/udmabuf0", kMemoryAttributes[] = "/sys/class/u-dma-buf/udmabuf0/";
constexpr char kManager[] = "/sys/class/fpga_manager/fpga0/";

enum class Role : uint8_t { kInterrupt, kRegisters, kSyncForCpu, kSyncForDevice, kFirmware };

class Simulated final : public Emulator {
 public:
  explicit Simulated(EmulatorOptions options)
      : options_(std::move(options)), files_(options_.root), dram_(options_.physical + options_.memory_bytes) {}

  Status lay_out() {
    if (dram_.span().empty()) {
      return system_error(fmt::format("reserve {} bytes", options_.physical + options_.memory_bytes), "memory", errno);
    }
    if (!options_.empty) {
      TENON_TRY(load(options_.config));
    }
    for (const auto& [attribute, text] : std::initializer_list<std::pair<std::string, std::string>>{
             {std::string(kUioAttributes) + "name", "tenon"},
             {std::string(kUioAttributes) + "maps/map0/addr", "0x43c00000"},
             {std::string(kUioAttributes) + "maps/map0/size", fmt::format("{:#x}", spec::kRegisterSpaceBytes)},
             {std::string(kUioAttributes) + "maps/map0/offset", "0x0"},
             {std::string(kMemoryAttributes) + "phys_addr", fmt::format("{:#x}", options_.physical)},
             {std::string(kMemoryAttributes) + "size", fmt::format("{}", options_.memory_bytes)},
             {std::string(kMemoryAttributes) + "dma_coherent", "0"},
             {std::string(kManager) + "name", "Tenon's emulated board"},
             {std::string(kManager) + "flags", "0"},
             {std::string(kManager) + "state", options_.empty ? "unknown" : "operating"}}) {
      TENON_TRY(put(attribute, text));
    }
    std::error_code fault;
    fs::create_directories(files_.path("/lib/firmware"), fault);
    fs::create_directories(files_.path("/dev"), fault);
    const Fd memory(::open(files_.path(kMemory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (memory.get() < 0 || ::ftruncate(memory.get(), static_cast<off_t>(options_.memory_bytes)) != 0) {
      return system_error("create the memory", files_.path(kMemory), errno);
    }
    TENON_TRY_ASSIGN(cache, Mapping::map(memory, options_.memory_bytes, 0, files_.path(kMemory)));
    cache_ = std::move(*cache);
    for (const auto& [path, role] : std::initializer_list<std::pair<std::string, Role>>{
             {kUio, Role::kInterrupt},
             {std::string(kUio) + kRegistersSuffix, Role::kRegisters},
             {std::string(kMemoryAttributes) + "sync_for_cpu", Role::kSyncForCpu},
             {std::string(kMemoryAttributes) + "sync_for_device", Role::kSyncForDevice},
             {std::string(kManager) + "firmware", Role::kFirmware}}) {
      TENON_TRY(listen(path, role));
    }
    return {};
  }

  Status run() override {
    while (true) {
      std::vector<pollfd> events;
      for (const auto* list : {&listeners_, &clients_}) {
        for (const Socket& s : *list) events.push_back({.fd = s.fd.get(), .events = POLLIN, .revents = 0});
      }
      const bool runs = options_.own_clock && busy_;
      if (::poll(events.data(), events.size(), runs ? 0 : -1) < 0 && errno != EINTR) {
        return system_error("wait for clients", options_.root, errno);
      }
      const size_t listeners = listeners_.size();
      for (size_t i = clients_.size(); i-- > 0;) {  // from the end, because a disconnected client is erased
        if (events[listeners + i].revents != 0 && !serve(clients_[i])) {
          clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
      for (size_t i = 0; i < listeners; ++i) {
        if (events[i].revents == 0) continue;
        Fd fd(::accept4(listeners_[i].fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (fd.get() >= 0) clients_.push_back({std::move(fd), listeners_[i].role});
      }
      if (options_.own_clock && busy_) {
        busy_ = simulator_->advance(kCyclesAtATime);
        raise();
      }
    }
  }

 private:
  struct Socket {
    Fd fd;
    Role role;
  };

  std::byte* dram() const { return dram_.span().data() + options_.physical; }

  Status put(const std::string& on_board, const std::string& text) {
    const fs::path file = files_.path(on_board);
    std::error_code fault;
    fs::create_directories(file.parent_path(), fault);
    std::ofstream stream(file);
    stream << text << '\n';
    stream.close();
    if (!stream) return error("cannot write the file", file.string());
    return {};
  }

  Status listen(const std::string& on_board, Role role) {
    const std::string path = files_.path(on_board);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
      return error("the path is too long for a socket", path, "use a root with a shorter path", Fault::kUsage);
    }
    std::memcpy(address.sun_path, path.c_str(), path.size());
    ::unlink(path.c_str());
    Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (fd.get() < 0 || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd.get(), 16) != 0) {
      return system_error("listen", path, errno);
    }
    listeners_.push_back({std::move(fd), role});
    return {};
  }

  Status load(const spec::Config& config) {
    sim::BehavioralOptions behavioral;
    behavioral.memory = dram_.span();
    sim::VerilatedOptions rtl;
    rtl.memory = dram_.span();
    TENON_TRY_ASSIGN(made, options_.rtl ? sim::make_verilated(config, rtl) : sim::make_behavioral(config, behavioral));
    simulator_ = std::move(*made);
    busy_ = false;
    return {};
  }

  // Answers one message; returns false where the client has disconnected.
  bool serve(Socket& client) {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(client.fd.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    const std::string_view text(bytes.data(), static_cast<size_t>(got));
    switch (client.role) {
      case Role::kInterrupt:
        unmasked_ = text.size() == sizeof(int32_t) && text[0] != 0;
        raise();
        return true;
      case Role::kRegisters: {
        Request request;
        if (text.size() != sizeof request) return false;
        std::memcpy(&request, text.data(), sizeof request);
        const Answer answer = access(request, client);
        return ::send(client.fd.get(), &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
      }
      case Role::kSyncForCpu:
      case Role::kSyncForDevice: return reply(client, sync(text, client.role));
      case Role::kFirmware: return reply(client, firmware(std::string(text)));
    }
    return false;
  }

  static bool reply(const Socket& client, int32_t code) {
    return ::send(client.fd.get(), &code, sizeof code, MSG_NOSIGNAL) == sizeof code;
  }

  Answer access(const Request& request, const Socket& client) {
    if (simulator_ == nullptr) return {};  // an empty PL has no bus slave
    const bool inside = request.offset % 4 == 0 && request.offset < spec::kRegisterSpaceBytes;
    switch (request.kind) {
      case Request::Kind::kRead: return {inside ? simulator_->read_register(request.offset) : 0};
      case Request::Kind::kWrite:
        if (!inside) return {};
        simulator_->write_register(request.offset, static_cast<uint32_t>(request.value));
        busy_ = (simulator_->read_register(reg::kStatus) & spec::kStatusBusy) != 0;
        raise();
        return {};
      case Request::Kind::kWait:
        if (options_.own_clock) return {kRunsFreely};
        for (uint64_t remaining = request.value; remaining > 0 && busy_ && !disconnected(client);) {
          const uint64_t cycles = std::min(remaining, kCyclesAtATime);
          busy_ = simulator_->advance(cycles);
          remaining -= cycles;
        }
        raise();
        return {};
    }
    return {};
  }

  static bool disconnected(const Socket& client) {
    pollfd event{.fd = client.fd.get(), .events = POLLRDHUP, .revents = 0};
    return ::poll(&event, 1, 0) > 0 && (event.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  }

  // The interrupt as UIO delivers it: level-triggered, and masked after each delivery.
  void raise() {
    if (!options_.interrupt || !unmasked_ || simulator_ == nullptr ||
        (simulator_->read_register(reg::kGlobalInterruptEnable) & 1) == 0 ||
        (simulator_->read_register(reg::kInterruptEnable) & simulator_->read_register(reg::kInterruptStatus)) == 0) {
      return;
    }
    unmasked_ = false;
    ++interrupts_;
    for (const Socket& s : clients_) {
      if (s.role == Role::kInterrupt) ::send(s.fd.get(), &interrupts_, sizeof interrupts_, MSG_NOSIGNAL);
    }
  }

  int32_t sync(std::string_view text, Role role) {
    const auto read = parse_number<uint64_t>(text);
    if (!read) return EINVAL;
    const uint64_t word = *read;
    uint64_t begin = word >> 32, bytes = word & 0xffff'fff0;
    const auto direction = word >> 2 & 3;
    if ((word & 1) == 0) return 0;
    if (bytes == 0 || begin > options_.memory_bytes || bytes > options_.memory_bytes - begin) return EINVAL;
    const uint64_t end = std::min((begin + bytes + kCacheLine - 1) / kCacheLine * kCacheLine, options_.memory_bytes);
    begin = begin / kCacheLine * kCacheLine;
    if (role == Role::kSyncForDevice && (direction == 0 || direction == 1)) {
      std::memcpy(dram() + begin, cache_.data() + begin, end - begin);
    }
    if (role == Role::kSyncForCpu && (direction == 0 || direction == 2)) {
      std::memcpy(cache_.data() + begin, dram() + begin, end - begin);
    }
    return 0;
  }

  int32_t firmware(const std::string& name) {
    const auto state = [&](const char* now, int32_t code) {
      return put(std::string(kManager) + "state", now) ? code : EIO;
    };
    const std::string file = files_.path("/lib/firmware/" + name);
    const auto bytes = read_file(file);
    if (!bytes) return state("firmware request error", ENOENT);
    const auto config = spec::parse_config({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, file);
    const auto flags = files_.read_integer(std::string(kManager) + "flags");
    const bool partial = flags && (*flags & 1) != 0;
    // A partial bitstream requires a loaded design.
    if (!config || (partial && simulator_ == nullptr)) return state("write error", EINVAL);
    return load(*config) ? state("operating", 0) : state("write complete error", EINVAL);
  }

  const EmulatorOptions options_;
  const Files files_;
  Pages dram_;     // of the accelerator: physical addresses from 0
  Mapping cache_;  // the memory as the client's CPU sees it
  std::unique_ptr<sim::Simulator> simulator_;
  bool busy_ = false, unmasked_ = false;
  uint32_t interrupts_ = 0;
  std::vector<Socket> listeners_, clients_;
};

}  // namespace

Expected<std::unique_ptr<Emulator>> Emulator::create(EmulatorOptions options) {
  auto emulator = std::make_unique<Simulated>(std::move(options));
  TENON_TRY(emulator->lay_out());
  return emulator;
}

}  // namespace tenon::driver::uio
