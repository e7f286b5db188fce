// tenon bench launch: the cost of a launch without work.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "compiler/cli/command.h"
#include "driver/accelerator.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr auto kLimit = std::chrono::seconds(10);
constexpr int64_t kMostLaunches = 100'000'000;  // whose times are kept

struct BenchLaunch {
  std::string device = "behavioral:default";
  int64_t launches = 5000;
  bool json = false;

  Status run() const {
    TENON_TRY_ASSIGN(accelerator, driver::open(device));
    TENON_TRY_ASSIGN(stream, (*accelerator)->allocate(spec::kSlotBytes, spec::kSlotBytes));
    const driver::Launch nothing{.instructions = stream->address, .count = 0};
    std::vector<double> times;
    for (int64_t i = -launches / 10; i < launches; ++i) {  // the first are not counted
      const auto begin = Clock::now();
      TENON_TRY(driver::start(**accelerator, nothing));
      TENON_TRY(driver::finish(**accelerator, kLimit));
      if (i >= 0) times.push_back(Microseconds(Clock::now() - begin).count());
    }
    std::ranges::sort(times);
    const auto at = [&](double share) {
      return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
    };
    if (!json) {
      print_stdout("{}: an empty launch, started and finished {} times\n", device, launches);
      print_stdout(
          "median {:.2f} us; one in ten is below {:.2f}, one in ten above {:.2f}, all between {:.2f} and {:.2f}\n",
          at(0.5), at(0.1), at(0.9), times.front(), times.back());
      return {};
    }
    Json out;
    out.begin_object().field("device", device).field("launches", launches).field("median_us", at(0.5));
    out.field("tenth_us", at(0.1)).field("ninth_tenth_us", at(0.9)).field("min_us", times.front());
    print_stdout("{}", out.field("max_us", times.back()).end().str());
    return {};
  }
};

}  // namespace

Action bench_launch(Options& options) {
  auto command = std::make_shared<BenchLaunch>();
  options.option(command->device, "-d,--device", "URI", "the device; tenon devices lists the kinds");
  options.option(command->launches, "--launches", "N", "how often", {1, kMostLaunches});
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
