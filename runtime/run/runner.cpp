#include "runtime/run/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/vm/program_on_device.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

void add_help(Diagnostic& diagnostic, const std::string& sentence) {
  if (!sentence.empty()) diagnostic.help += (diagnostic.help.empty() ? "" : "\n  ") + sentence;
}

}  // namespace

Expected<Runner> Runner::create(const Executable& executable, SessionOptions options, std::string reproducer) {
  TENON_TRY_ASSIGN(session, Session::create(executable, options));
  return Runner(executable, std::move(options), std::move(reproducer), std::move(*session));
}

Expected<std::vector<Value>> Runner::run(std::span<const Tensor> inputs, FunctionRef<std::string()> command,
                                         const ExpectedBytes& expected) {
  auto results = session_->run_values(std::vector<Value>(inputs.begin(), inputs.end()));
  if (results || options_.accelerators.empty()) return results;  // on the CPU there is no launch to keep
  close();  // the device's memory is for the runs that find the launch
  Diagnostic failure = std::move(results.error());
  const MismatchNote note{command(), failure.what, reproducer_};
  add_help(failure, keep_failure(*executable_, options_, inputs, note, expected));
  return std::unexpected(std::move(failure));
}

Diagnostic Runner::keep_difference(Diagnostic differs, Runner& good, Runner& wrong, std::span<const Tensor> inputs,
                                   const std::string& command) {
  good.close();
  wrong.close();
  if (good.options_.accelerators.empty() || wrong.options_.accelerators.empty()) return differs;
  const MismatchNote note{command, differs.what, good.reproducer_};
  add_help(differs, runtime::keep_difference(*good.executable_, good.options_, good.options_.accelerators,
                                             wrong.options_.accelerators, inputs, note));
  return differs;
}

Expected<Devices> open_devices(std::span<const std::string> uris) {
  Devices devices;
  for (const std::string& uri : uris) {
    if (uri.empty()) {
      return error("a device's URI is empty", {}, "name one, as behavioral:default, or omit the option", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(opened, driver::open(uri));
    devices.push_back(std::move(*opened));
  }
  return devices;
}

std::vector<std::string> default_devices(const Executable& executable) {
  std::vector<std::string> uris;
  for (const spec::Config* config : configurations(executable)) uris.push_back("behavioral:" + config->name);
  return uris;
}

std::vector<driver::Accelerator*> accelerators(const Devices& devices) {
  std::vector<driver::Accelerator*> all;
  for (const auto& device : devices) all.push_back(device.get());
  return all;
}

std::vector<driver::Accelerator*> used_accelerators(const Executable& executable, const Devices& devices) {
  std::vector<driver::Accelerator*> used = accelerators(devices);
  std::erase_if(used, [&](const driver::Accelerator* device) { return !is_used(executable.programs, *device); });
  return used;
}

std::vector<const driver::Info*> infos(std::span<driver::Accelerator* const> accelerators) {
  std::vector<const driver::Info*> all;
  for (const driver::Accelerator* accelerator : accelerators) all.push_back(&accelerator->info());
  return all;
}

std::string uris(std::span<driver::Accelerator* const> accelerators) {
  std::vector<std::string_view> all;
  for (const driver::Accelerator* accelerator : accelerators) all.push_back(accelerator->info().uri);
  return fmt::format("{}", fmt::join(all, ", "));
}

Status write_profile(const ReportInput& input, const std::string& report_file, const std::string& trace_file) {
  if (!report_file.empty()) TENON_TRY(write_file(report_file, make_report(input)));
  if (!trace_file.empty()) TENON_TRY(write_file(trace_file, make_trace(input)));
  return {};
}

}  // namespace tenon::runtime
