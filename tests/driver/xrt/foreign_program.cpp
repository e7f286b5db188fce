// A third-party XRT program: it uses XRT's API and the register map, none of Tenon's code, and links libxrt_coreutil
// alone. It runs two units at once by xrt::kernel, from one thread and from several, a unit by xrt::ip, copies a
// buffer, and checks the effect of a missing sync. Arguments: an xclbin of configuration tiny with two units; launches
// to time.
#include <experimental/xrt_ip.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

int failures = 0;
void check(bool good, const char* claim) {
  std::printf("%s: %s\n", good ? "ok" : "WRONG", claim);
  failures += !good;
}

constexpr uint32_t kBytes = 160;  // 40 elements of four lanes

// LOAD of 40 accumulators from bytes with a token to the store, STORE of them, FINISH: a copy.
std::vector<uint64_t> copy_program() {
  const uint64_t size = 1ull | 40ull << 16 | 40ull << 32;  // y_size, x_size, x_stride
  return {0ull | 1ull << 6 | 5ull << 7, size, 1ull | 1ull << 3 | 4ull << 7, size, 3ull, 0ull};
}

}  // namespace

int main(int, char** argv) try {
  xrt::device device(0);
  const auto uuid = device.load_xclbin(std::string(argv[1]));
  const auto program = copy_program();
  const auto buffer = [&] { return xrt::bo(device, 4096, 0); };
  xrt::bo code = buffer(), source = buffer(), target[2] = {buffer(), buffer()};
  code.write(program.data(), program.size() * 8, 0);
  code.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  for (uint32_t i = 0; i < 4096; ++i) source.map<uint8_t*>()[i] = static_cast<uint8_t>(7 * i + 1);
  source.sync(XCL_BO_SYNC_BO_TO_DEVICE);

  const auto equal = [&](xrt::bo& bo) {
    bo.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    return std::memcmp(bo.map<uint8_t*>(), source.map<uint8_t*>(), kBytes) == 0;
  };
  {
    xrt::kernel first(device, uuid, "tenon_kernel:{tenon_1}"), second(device, uuid, "tenon_kernel:{tenon_2}");
    xrt::run runs[2] = {xrt::run(first), xrt::run(second)};
    for (int u = 0; u < 2; ++u) {
      runs[u].set_arg(0, code);
      runs[u].set_arg(1, static_cast<uint32_t>(program.size() / 2));
      runs[u].set_arg(2, 0u);
      for (int b = 0; b < 8; ++b) runs[u].set_arg(3 + b, b == 4 ? target[u] : source);
    }
    for (auto& run : runs) run.start();
    for (auto& run : runs)
      check(run.wait(std::chrono::milliseconds(10000)) == ERT_CMD_STATE_COMPLETED, "a run completes");
    check(equal(target[0]) && equal(target[1]), "two units copied the data");

    // Each thread launches, allocates and synchronizes independently, on any free unit.
    xrt::kernel any(device, uuid, "tenon_kernel");
    int right[4] = {};
    std::vector<std::thread> threads;
    for (int& count : right) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          xrt::bo mine = buffer();
          xrt::run run(any);
          run.set_arg(0, code);
          run.set_arg(1, static_cast<uint32_t>(program.size() / 2));
          run.set_arg(2, 0u);
          for (int b = 0; b < 8; ++b) run.set_arg(3 + b, b == 4 ? mine : source);
          run.start();
          if (run.wait(std::chrono::milliseconds(10000)) != ERT_CMD_STATE_COMPLETED) continue;
          mine.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
          count += std::memcmp(mine.map<uint8_t*>(), source.map<uint8_t*>(), kBytes) == 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    check(right[0] + right[1] + right[2] + right[3] == 80, "four threads copied the data twenty times each");

    runs[0].set_arg(1, 0u);  // an empty stream
    const int times = std::atoi(argv[2]);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) runs[0].start(), runs[0].wait();
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    std::printf("empty launch: %.1f us of %d\n", us / times, times);

    bool refused = false;
    try {
      xrt::ip ip(device, uuid, "tenon_kernel:{tenon_1}");
    } catch (const std::exception&) {
      refused = true;
    }
    check(refused, "xrt::ip on a unit of an xrt::kernel is an error");
  }
  {
    xrt::ip ip(device, uuid, "tenon_kernel:{tenon_2}");
    const auto write64 = [&](uint32_t at, uint64_t v) {
      ip.write_register(at, static_cast<uint32_t>(v));
      ip.write_register(at + 4, static_cast<uint32_t>(v >> 32));
    };
    xrt::bo result = buffer();
    write64(0x10, code.address());
    ip.write_register(0x18, static_cast<uint32_t>(program.size() / 2));
    ip.write_register(0x1c, 0);
    for (uint32_t b = 0; b < 8; ++b) write64(0x20 + 8 * b, b == 4 ? result.address() : source.address());
    ip.write_register(0, 1);
    int polls = 0;
    while ((ip.read_register(0) & 2) == 0 && polls < 100000) ++polls;
    check(equal(result), "a launch by registers copied the data");
    // The second launch waits for the unit's interrupt: enabled for ap_done, received, cleared by toggling.
    auto interrupt = ip.create_interrupt_notify();
    ip.write_register(4, 1);
    ip.write_register(8, 1);
    check(interrupt.wait(std::chrono::milliseconds(1)) == std::cv_status::timeout, "an idle unit raises no interrupt");
    ip.write_register(0, 1);
    check(interrupt.wait(std::chrono::milliseconds(10000)) == std::cv_status::no_timeout, "ap_done interrupts");
    check((ip.read_register(0) & 2) != 0, "the launch is over when its interrupt arrives");
    ip.write_register(0xc, ip.read_register(0xc));
    check(interrupt.wait(std::chrono::milliseconds(1)) == std::cv_status::timeout, "an interrupt is seen once");
    ip.write_register(4, 0);
  }
  xrt::bo copied = buffer();
  copied.copy(source, kBytes);
  check(equal(copied), "xrt::bo::copy copied the data");
  xrt::bo unsynced = buffer();  // has the contents of an earlier buffer, without a 7
  unsynced.map<uint8_t*>()[0] = 7;
  unsynced.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  check(unsynced.map<uint8_t*>()[0] != 7, "bytes that were not synchronized are not on the device");
  // Memory is reused: the sum of these buffers exceeds the device's memory.
  for (int i = 0; i < 64; ++i) xrt::bo(device, 1 << 18, 0);
  check(true, "freed memory is allocated again");
  bool refused = false;
  try {
    xrt::bo(device, 1 << 22, 0);
  } catch (const std::exception&) {
    refused = true;
  }
  check(refused, "a buffer larger than the memory is an error");
  return failures != 0;
} catch (const std::exception& e) {
  std::printf("exception: %s\n", e.what());
  return 2;
}
