// The real driver on the pins of a routed netlist: what the tools made of the accelerator computes what the
// behavioral model does. TENON_NETLIST names the shared object of the netlist (netlist_test.sh makes it).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "driver/accelerator.h"
#include "driver/bringup/programs.h"
#include "driver/bringup/replay.h"
#include "tests/driver/serial/emulated_board.h"
#include "tests/hw/rtl/pins.h"
#include "tests/seed.h"

namespace tenon::driver {
namespace {

constexpr int kClocksPerBit = 4;  // the board's clock divided by its baud rate

class Netlist final : public Design {
 public:
  explicit Netlist(void* library)
      : clock_(find<void(void*, bool)>(library, "netlist_clock")),
        tx_(find<bool(void*)>(library, "netlist_tx")),
        destroy_(find<void(void*)>(library, "netlist_destroy")),
        model_(find<void*()>(library, "netlist_create")()) {
    for (int i = 0; i < 1024; ++i) clock(true);  // the reset at power-on
  }
  ~Netlist() override { destroy_(model_); }
  void clock(bool rx) override { clock_(model_, rx); }
  bool tx() override { return tx_(model_); }

 private:
  template <class F>
  static F* find(void* library, const char* name) {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  void (*clock_)(void*, bool);
  bool (*tx_)(void*);
  void (*destroy_)(void*);
  void* model_;
};

Expected<std::unique_ptr<serial::Line>> make_pins() {
  const char* path = std::getenv("TENON_NETLIST");
  void* library = dlopen(path == nullptr ? "" : path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return error("the netlist's model cannot be opened", path == nullptr ? "TENON_NETLIST" : path);
  return std::make_unique<Pins>(std::make_unique<Netlist>(library), kClocksPerBit);
}

TEST(NetlistPins, ProductsAndAConvolutionEqualTheBehavioralModel) {
  const EmulatedBoard board(make_pins);
  auto accelerator = open(board.uri("&timeout=60000"));
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  const spec::Config& config = (*accelerator)->info().config;
  auto behavioral = open("behavioral:" + config.name);
  ASSERT_TRUE(behavioral) << behavioral.error().str();
  for (const Reproducer& reproducer : {gemm(config, spec::Profile::kBase, test_seed(41)),
                                       loopback(config, 8, 1, test_seed(42)), convolution(config, 8, test_seed(43))}) {
    for (Accelerator* device : {behavioral->get(), accelerator->get()}) {
      const auto difference = replay(*device, reproducer);
      ASSERT_TRUE(difference) << device->info().uri << ": " << difference.error().str();
      EXPECT_EQ(*difference, "") << device->info().uri;
    }
  }
}

}  // namespace
}  // namespace tenon::driver
