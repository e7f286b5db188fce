// The way to run a model on a device: a session over any number of samples, which keeps the launch that goes wrong.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/accelerator.h"
#include "runtime/profile/report.h"
#include "runtime/vm/mismatch.h"
#include "runtime/vm/session.h"
#include "support/function_ref.h"

namespace tenon::runtime {

class Runner {
 public:
  // `reproducer`: the directory for the launch that goes wrong; empty: mismatch-N in the working directory. The
  // executable outlives the runner.
  static Expected<Runner> create(const Executable& executable, SessionOptions options, std::string reproducer);

  // One run. After an error of an accelerator or of the hook the runner is closed, the launch is kept as a reproducer,
  // and the error's help says where. `command` is what repeats the run; `expected`: see keep_failure().
  Expected<std::vector<Value>> run(std::span<const Tensor> inputs, FunctionRef<std::string()> command,
                                   const ExpectedBytes& expected = {});

  // Another device gave other results than `good`: closes both, keeps the first launch on `wrong` whose outputs differ,
  // and adds where to the help of `differs`.
  static Diagnostic keep_difference(Diagnostic differs, Runner& good, Runner& wrong, std::span<const Tensor> inputs,
                                    const std::string& command);

  // Frees what the session holds on its device; profile() and run() are not allowed any more.
  void close() { session_.reset(); }
  const Profile& profile() const { return session_->profile(); }

 private:
  Runner(const Executable& executable, SessionOptions options, std::string reproducer, Session session)
      : executable_(&executable),
        options_(std::move(options)),
        reproducer_(std::move(reproducer)),
        session_(std::move(session)) {}

  const Executable* executable_;
  SessionOptions options_;
  std::string reproducer_;
  std::optional<Session> session_;
};

// The accelerators of a run, each of another configuration.
using Devices = std::vector<std::unique_ptr<driver::Accelerator>>;

Expected<Devices> open_devices(std::span<const std::string> uris);
// URIs of simulators, one for each configuration that the executable has programs for.
std::vector<std::string> default_devices(const Executable& executable);
std::vector<driver::Accelerator*> accelerators(const Devices& devices);
// Those that the executable has programs for.
std::vector<driver::Accelerator*> used_accelerators(const Executable& executable, const Devices& devices);
std::vector<const driver::Info*> infos(std::span<driver::Accelerator* const> accelerators);
// "behavioral:default, behavioral:tiny".
std::string uris(std::span<driver::Accelerator* const> accelerators);

// Writes the report and the timeline; an empty path is left out.
Status write_profile(const ReportInput& input, const std::string& report_file, const std::string& trace_file);

}  // namespace tenon::runtime
