#include "runtime/vm/accelerator_device.h"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "runtime/vm/call_operands.h"
#include "support/try.h"

namespace tenon::runtime {

bool StartedWork::is(const Work& work, std::span<const Tensor> args) const {
  return work == work_ &&
         std::ranges::equal(args, addresses_, {}, [](const Tensor& arg) { return arg.bytes().data(); });
}

// A launch of a program, which holds its device.
class Launch final : public StartedWork {
 public:
  Launch(RunState& run, const Work& work, std::span<const Tensor> args, AcceleratorDevice& device,
         std::unique_lock<std::mutex> held)
      : StartedWork(work, args), run_(run), device_(device), held_(std::move(held)) {}
  ~Launch() override {
    if (end_.valid()) end_.wait();
    if (recorded_) device_.programs_.at(work().code).launched = false;  // the next launch is recorded instead
    record_timeline(false);
  }

  // `how`: it is waited for by a thread of its own, or by this one.
  Status start(std::span<const Tensor> args, std::launch how) {
    auto& [program, launched] = device_.programs_.at(work().code);
    const bool first = !std::exchange(launched, true);
    record_.program = work().code;
    record_.begin_ns = run_.session.now();
    if (run_.session.options.timeline && first) recorded_ = device_.accelerator_.simulator();
    record_timeline(true);
    device_.copies_.begin(run_.number);
    TENON_TRY(program.start(args, device_.copies_));
    end_ = std::async(how, [&session = run_.session, &program] {
      Status status = program.finish(session.options.launch_limit);
      return End{std::move(status), session.now()};
    });
    return {};
  }

  Status finish(CallOperands& operands) override {
    auto [status, end_ns] = end_.get();
    record_.end_ns = end_ns;
    if (recorded_) {
      const auto timeline = recorded_->timeline();
      record_.timeline.assign(timeline.begin(), timeline.end());
      record_timeline(false);
    }
    TENON_TRY(status);
    ProgramOnDevice& program = device_.programs_.at(work().code).program;
    TENON_TRY_ASSIGN(results, program.outputs(device_.copies_));
    operands.made = std::move(*results);
    TENON_TRY_ASSIGN(counters, driver::read_counters(device_.accelerator_));
    record_.counters = *counters;
    if (run_.session.options.hook) {
      for (const Probe& probe : run_.executable.programs[work().code].probes) {
        TENON_TRY_ASSIGN(value, program.read(probe));
        operands.probes.push_back({&probe, std::move(*value)});
      }
    }
    // A run that serves requests may never end.
    constexpr size_t kMostUnasked = 1 << 14;
    if (run_.session.options.profile || run_.profile.launches.size() < kMostUnasked) {
      operands.launch = static_cast<int32_t>(run_.profile.launches.size());
      run_.profile.launches.push_back(std::move(record_));
    }
    return {};
  }

 private:
  // The end of a launch, and when it was.
  struct End {
    Status status;
    int64_t time_ns = 0;
  };

  void record_timeline(bool on) {
    if (recorded_) recorded_->record_timeline(on);
    if (!on) recorded_ = nullptr;
  }

  RunState& run_;
  AcceleratorDevice& device_;
  std::unique_lock<std::mutex> held_;
  LaunchRecord record_;
  sim::Simulator* recorded_ = nullptr;  // whose timeline is being recorded
  std::future<End> end_;
};

Status AcceleratorDevice::upload(uint32_t index, const AcceleratorProgram& program) {
  TENON_TRY_ASSIGN(uploaded, ProgramOnDevice::upload(accelerator_, program));
  programs_.emplace(index, Loaded{std::move(*uploaded)});
  return {};
}

Expected<std::unique_ptr<StartedWork>> AcceleratorDevice::start(RunState& run, const Work& work,
                                                                std::span<const Tensor> args, Start how) {
  const bool async = how == Start::kAsync;
  std::unique_lock held(mutex_, std::defer_lock);
  if (!async) held.lock();
  else if (!held.try_lock()) return nullptr;
  auto launch = std::make_unique<Launch>(run, work, args, *this, std::move(held));
  TENON_TRY(launch->start(args, async ? std::launch::async : std::launch::deferred));
  return launch;
}

void AcceleratorDevice::clear_profile() {
  const std::lock_guard lock(mutex_);
  for (auto& [index, loaded] : programs_) loaded.launched = false;
}

}  // namespace tenon::runtime
