#include "runtime/run/runner.h"

#include "support/file.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

void add_help(Diagnostic& diagnostic, const std::string& sentence) {
  if (!sentence.empty()) diagnostic.help += (diagnostic.help.empty() ? "" : "\n  ") + sentence;
}

}  // namespace

Expected<Runner> Runner::create(const Executable& executable, SessionOptions options, std::string bundle) {
  TENON_TRY_ASSIGN(session, Session::create(executable, options));
  return Runner(executable, std::move(options), std::move(bundle), std::move(*session));
}

Expected<std::vector<Value>> Runner::run(std::span<const Tensor> inputs, FunctionRef<std::string()> command,
                                         const ExpectedBytes& expected) {
  auto results = session_->run_values(std::vector<Value>(inputs.begin(), inputs.end()));
  if (results || options_.accelerator == nullptr) return results;  // on the CPU there is no launch to keep
  close();  // the device's memory is for the runs that find the launch
  Diagnostic failure = std::move(results.error());
  const MismatchNote note{command(), failure.what, bundle_};
  add_help(failure, keep_failure(*executable_, options_, inputs, note, expected));
  return std::unexpected(std::move(failure));
}

Diagnostic Runner::keep_difference(Diagnostic differs, Runner& good, Runner& wrong, std::span<const Tensor> inputs,
                                   const std::string& command) {
  good.close();
  wrong.close();
  if (good.options_.accelerator == nullptr || wrong.options_.accelerator == nullptr) return differs;
  const MismatchNote note{command, differs.what, good.bundle_};
  add_help(differs, runtime::keep_difference(*good.executable_, good.options_, *good.options_.accelerator,
                                             *wrong.options_.accelerator, inputs, note));
  return differs;
}

Expected<std::unique_ptr<driver::Accelerator>> open_device(const std::string& uri) {
  if (uri.empty()) return nullptr;
  return driver::open(uri);
}

Status write_profile(const ReportInput& input, const std::string& report_file, const std::string& trace_file) {
  if (!report_file.empty()) TENON_TRY(write_file(report_file, make_report(input)));
  if (!trace_file.empty()) TENON_TRY(write_file(trace_file, make_trace(input)));
  return {};
}

}  // namespace tenon::runtime
