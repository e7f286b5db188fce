// tenon bench vm: modules of loops and symbolic sizes, in one thread and CPU time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bench/vm_models.h"
#include "compiler/cli/bench/vm.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/passes.h"
#include "runtime/native/native.h"
#include "runtime/vm/session.h"
#include "support/clock.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::bench::VmModel;
using runtime::Tensor;

constexpr int kRounds = 7;
constexpr double kRoundSeconds = 0.01;  // at least

// A compiled model, and a session of one thread that keeps no profile.
class Measured {
 public:
  Status compile(const VmModel& model) {
    compiler::Context context;
    TENON_TRY_ASSIGN(module, compiler::parse(context, model.text));
    module = run_passes(context, std::move(*module), compiler::standard_passes());
    if (module) module = run_passes(context, std::move(*module), compiler::kernel_passes());
    if (!module) return std::unexpected(std::move(module.error()));
    const compiler::CpuOptions cpu{.levels = {std::string(runtime::host_levels().front())}};
    TENON_TRY_ASSIGN(executable,
                     lower(context, *module, context.symbol("main"), {}, {.name = "bench", .facts = {}, .cpu = cpu}));
    executable_ = std::make_unique<runtime::Executable>(std::move(*executable));
    TENON_TRY_ASSIGN(session, runtime::Session::create(*executable_, {.profile = false, .threads = 1}));
    session_ = std::make_unique<runtime::Session>(std::move(*session));
    return {};
  }

  // Seconds of one run; as many runs as fill a round.
  Expected<double> seconds(const std::vector<Tensor>& inputs) {
    int64_t runs = 0;
    const double begin = thread_cpu_seconds();
    double end = begin;
    for (; end - begin < kRoundSeconds; ++runs, end = thread_cpu_seconds())
      TENON_TRY(session_->run_into(inputs, results_));
    return (end - begin) / static_cast<double>(runs);
  }
  Expected<double> median(const std::vector<Tensor>& inputs) {
    std::vector<double> all;
    for (int i = 0; i < kRounds; ++i) {
      TENON_TRY_ASSIGN(one, seconds(inputs));
      all.push_back(*one);
    }
    std::ranges::sort(all);
    return all[all.size() / 2];
  }

 private:
  std::unique_ptr<runtime::Executable> executable_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<Tensor> results_;
};

struct Report {
  Json& out;
  const bool json;

  void time(const std::string& name, double seconds, const std::string& of) const {
    out.begin_object().field("name", name).field("us", seconds * 1e6).end();
    if (!json) print_stdout("{:<24} {:9.3f} us {}\n", name, seconds * 1e6, of);
  }
  void ratio(const std::string& name, double ratio) const {
    out.begin_object().field("name", name).field("ratio", ratio).end();
    if (!json) print_stdout("{:<24} {:9.3f} times the constant size's time\n", name, ratio);
  }
};

// One executable for all sizes beside one for each, interleaved.
Status bench_dense(const Report& report) {
  constexpr int64_t kBound = 64;
  Measured symbolic;
  TENON_TRY(symbolic.compile(compiler::bench::dense_model(1, kBound)));
  double log_sum = 0, worst = 0;
  int count = 0;
  for (const int64_t m : {1, 2, 3, 4, 7, 8, 12, 16, 17, 31, 32, 48, 63, 64}) {
    const VmModel model = compiler::bench::dense_model(m, 0);
    Measured constant;
    TENON_TRY(constant.compile(model));
    std::vector<double> ratios;
    for (int i = 0; i < kRounds; ++i) {
      TENON_TRY_ASSIGN(ours, symbolic.seconds(model.inputs));
      TENON_TRY_ASSIGN(theirs, constant.seconds(model.inputs));
      ratios.push_back(*ours / *theirs);
    }
    std::ranges::sort(ratios);
    const double ratio = ratios[ratios.size() / 2];
    report.ratio(fmt::format("dense m={}", m), ratio);
    log_sum += std::log(ratio);
    worst = std::max(worst, ratio);
    ++count;
  }
  report.ratio("dense geomean", std::exp(log_sum / count));
  report.ratio("dense worst", worst);
  return {};
}

Status bench_calls(const Report& report) {
  constexpr int64_t kCalls = 1000;
  for (const int64_t bound : {0, 64}) {
    const VmModel model = compiler::bench::call_model(kCalls, bound);
    Measured measured;
    TENON_TRY(measured.compile(model));
    TENON_TRY_ASSIGN(seconds, measured.median(model.inputs));
    report.time(bound > 0 ? "call, any size" : "call", *seconds / static_cast<double>(kCalls), "a call of a kernel");
  }
  return {};
}

Status bench_lstm(const Report& report) {
  constexpr int64_t kSteps = 100;
  for (const int64_t hidden : {128, 256}) {
    for (const bool hoisted : {false, true}) {
      const VmModel model = compiler::bench::lstm_model(kSteps, hidden, hoisted);
      Measured measured;
      TENON_TRY(measured.compile(model));
      TENON_TRY_ASSIGN(seconds, measured.median(model.inputs));
      report.time(fmt::format("lstm {}{}", hidden, hoisted ? " hoisted" : ""), *seconds,
                  fmt::format("for {} steps of a cell", kSteps));
    }
  }
  return {};
}

Status bench_decoder(const Report& report) {
  constexpr int64_t kTokens = 512;
  const VmModel model = compiler::bench::decoder_model(4, 256, kTokens, kTokens - 1);
  Measured measured;
  TENON_TRY(measured.compile(model));
  TENON_TRY_ASSIGN(seconds, measured.median(model.inputs));
  report.time("decoder 4 x 256", *seconds / static_cast<double>(kTokens),
              fmt::format("a token, the mean of {} with a KV cache", kTokens));
  return {};
}

}  // namespace

Status bench_vm_models(const std::string& name, Json& out, bool json) {
  const std::vector<std::pair<std::string, Status (*)(const Report&)>> benches{
      {"calls", bench_calls}, {"lstm", bench_lstm}, {"decoder", bench_decoder}, {"dense", bench_dense}};
  bool found = false;
  const Report report{out, json};
  out.key("models").begin_array();
  for (const auto& [its_name, bench] : benches) {
    if (name != its_name && name != "all") continue;
    found = true;
    TENON_TRY(bench(report));
  }
  out.end();
  if (found) return {};
  return error(fmt::format("--models is '{}', must be calls, lstm, decoder, dense or all", name), {}, {},
               Fault::kUsage);
}

}  // namespace tenon::cli
