// tenon fuzz ir: random well-typed modules through text, inference, interpreter and passes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>

#include "compiler/cli/command.h"
#include "compiler/fuzz/campaign.h"
#include "compiler/ir/text.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

// For one module: of the processor, and by the clock, which other work on the machine makes longer.
constexpr unsigned kSeconds = 120, kClockSeconds = 1800;

// The seed at hand, for a crash or a hang to be told with; signal handlers see nothing else.
std::atomic<uint64_t> seed_at_hand;

void tell_seed(int signal) {
  char text[96] = "tenon fuzz ir: crashed or hung; again: tenon fuzz ir --count 1 --seed ";
  size_t end = 0;
  while (text[end]) ++end;
  char digits[24];
  size_t count = 0;
  uint64_t seed = seed_at_hand;
  do digits[count++] = static_cast<char>('0' + seed % 10);
  while (seed /= 10);
  while (count > 0) text[end++] = digits[--count];
  text[end++] = '\n';
  if (write(STDERR_FILENO, text, end) < 0) _exit(3);
  std::signal(signal, SIG_DFL);
  std::raise(signal == SIGALRM || signal == SIGPROF ? SIGABRT : signal);
}

// No module may need more; a sanitizer's shadow does.
void limit_memory() {
  if (TENON_SANITIZED) return;
  constexpr rlim_t kBytes = rlim_t{8} << 30;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, kBytes);
  setrlimit(RLIMIT_AS, &limit);
}

void watch(uint64_t seed) {
  seed_at_hand = seed;
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = kSeconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(kClockSeconds);
}

void unwatch() {
  const itimerval none{};
  setitimer(ITIMER_PROF, &none, nullptr);
  alarm(0);
}

struct FuzzIr {
  uint64_t seed = 0;
  int64_t count = 1000, size = 24, mutants = 2, shrink = 4000, native = 0, budgets = 0;
  std::vector<std::string> passes;
  std::string file, directory = ".";
  bool graphs = false, gradients = false, batch = false, print = false, json = false, quiet = false;

  Status run() const {
    compiler::fuzz::CampaignOptions options;
    options.seed =
        seed != 0 ? seed : static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    options.count = count;
    options.generator = {.size = static_cast<int>(size), .control = !graphs, .floats = {}};
    if (gradients) {
      options.generator.floats = runtime::DType::kF64;
      options.generator.derivable = true;
      options.oracle.gradients = true;
    }
    options.shrink_budget = static_cast<int>(shrink);
    options.directory = directory;
    options.oracle.mutants = static_cast<int>(mutants);
    options.oracle.native = static_cast<uint64_t>(native);
    options.oracle.budgets = static_cast<int>(budgets);
    options.oracle.passes = compiler::all_passes();
    if (!passes.empty() || batch) {
      TENON_TRY_ASSIGN(found, compiler::find_passes(passes));
      options.oracle.passes = std::move(*found);
      options.oracle.pipeline = options.oracle.text = options.oracle.machine = false;
      options.oracle.batch = batch;
      options.oracle.mutants = 0;
    }
    if (print) return show(options);
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM, SIGPROF}) std::signal(signal, tell_seed);
    limit_memory();
    return file.empty() ? many(options) : again(options);
  }

  // The modules themselves.
  static Status show(const compiler::fuzz::CampaignOptions& options) {
    for (int64_t i = 0; i < options.count; ++i) {
      compiler::Context context;
      const uint64_t seed = options.seed + static_cast<uint64_t>(i);
      const auto module = compiler::fuzz::random_module(context, seed, options.generator);
      print_stdout("// seed {}\n{}", seed, compiler::print(context, module).text);
    }
    return {};
  }

  Status again(const compiler::fuzz::CampaignOptions& options) const {
    compiler::Context context;
    TENON_TRY_ASSIGN(module, compiler::load(context, file));
    compiler::fuzz::Counts counts;
    watch(options.seed);
    const auto violation = compiler::fuzz::replay(context, *module, options, counts);
    if (!violation) {
      print_stdout("{}: holds\n", file);
      return {};
    }
    return error(fmt::format("{}: {}", violation->check, violation->problem.str()), file);
  }

  Status many(const compiler::fuzz::CampaignOptions& options) const {
    const auto begin = std::chrono::steady_clock::now();
    int64_t done = 0;
    const auto result = compiler::fuzz::campaign(options, [&](uint64_t next) {
      watch(next);
      if (!quiet && done > 0 && done % 500 == 0) {
        print_stderr("{} of {} modules, at seed {}\n", done, options.count, next);
      }
      ++done;
    });
    unwatch();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const compiler::fuzz::Counts& counts = result.counts;
    if (json) {
      Json out;
      out.begin_object()
          .field("seed", options.seed)
          .field("modules", counts.modules)
          .field("bindings", counts.bindings);
      out.field("runs", counts.runs).field("stopped_by_a_check", counts.failing).field("too_long", counts.endless);
      out.field("compiled", counts.compiled)
          .field("native", counts.native)
          .field("budgeted", counts.budgeted)
          .field("compiled_limited", counts.limited);
      out.field("changed_by_passes", counts.changed).field("mutants_rejected", counts.rejected);
      out.field("mutants_accepted", counts.accepted).field("seconds", seconds.count());
      out.field("units", counts.units).field("batches", counts.batches);
      out.field("put_off", counts.put_off).field("joined", counts.joined);
      out.field("derivatives", counts.derivatives).field("kinks", counts.kinks);
      out.key("operators").begin_object();
      for (const auto& [name, times] : counts.operators) out.field(name, times);
      out.end().key("uncovered").begin_array();
      for (const std::string& name : result.uncovered) out.value(name);
      out.end().field("failure", result.failure ? result.failure->report : "");
      print_stdout("{}", out.end().str());
    }
    // A finding, not a fault of this run.
    if (result.failure) return error(fmt::format("a promise does not hold\n{}", result.failure->report), "fuzz");
    if (json) return {};
    print_stdout("{} modules, {} bindings, seeds {} to {}: all promises hold, {:.0f} s\n", counts.modules,
                 counts.bindings, options.seed, options.seed + static_cast<uint64_t>(options.count) - 1,
                 seconds.count());
    print_stdout("{} runs ({} stopped by a check, {} too long to run, {} with infinities), {} changed by a pass\n",
                 counts.runs, counts.failing, counts.endless, counts.unbounded, counts.changed);
    print_stdout("{} runs equal, compiled, bit by bit; {} with native kernels; {} ended at a limit of the machine\n",
                 counts.compiled, counts.native, counts.limited);
    if (budgets > 0)
      print_stdout("{} runs under a budget of memory equal, {} refused\n", counts.budgeted, counts.refused);
    print_stdout("{} mutants: {} rejected with a location, {} still modules\n", counts.rejected + counts.accepted,
                 counts.rejected, counts.accepted);
    if (gradients) {
      int64_t without = 0;
      for (const auto& [reason, times] : counts.underivable) without += times;
      print_stdout("{} derivatives agree with central differences, {} at kinks, {} programs without a derivative\n",
                   counts.derivatives, counts.kinks, without);
      for (const auto& [reason, times] : counts.underivable) print_stdout("  {}: {}\n", reason, times);
    }
    if (counts.units > 0) {
      print_stdout("{} units, {} batches of them equal their calls; not batched because of:", counts.units,
                   counts.batches);
      for (const auto& [reason, times] : counts.unbatched) print_stdout(" {} {}", reason, times);
      print_stdout("\n{} calls of units put off by instances that run together, {} of them joined to others\n",
                   counts.put_off, counts.joined);
    }
    print_stdout("operators: {} applied, {} not: {}\n", counts.operators.size(), result.uncovered.size(),
                 fmt::join(result.uncovered, ", "));
    return {};
  }
};

}  // namespace

Action fuzz_ir(Options& options) {
  auto command = std::make_shared<FuzzIr>();
  options.option(command->count, "-n,--count", "N", "modules", {.least = 1});
  options.option(command->seed, "--seed", "N", "seed of the first module, the next ones count up; 0: from the clock",
                 {});
  options.option(command->passes, "--pass", "NAME", "check only these passes");
  options.flag(command->batch, "--batch", "check only the units of batches, and the passes of --pass");
  options.option(command->size, "--size", "N", "statements of @main, at most", {1, 1000});
  options.flag(command->graphs, "--graphs", "operators and tuples only, as in a model's graph");
  options.flag(command->gradients, "--gradients",
               "derivatives of the modules, first and second, beside central differences in f64");
  options.option(command->mutants, "--mutants", "N",
                 "mutations (ill-typed modules and ill-formed texts) of each module", {0, INT32_MAX});
  options.option(command->native, "--native", "N",
                 "compile each module whose seed is a multiple of N with native kernels too; 0: none", {.least = 0});
  options.option(command->budgets, "--budget", "N",
                 "run each module under N budgets of memory too, which tensors must be given up for", {0, 1000});
  options.option(command->shrink, "--shrink", "N", "largest number of proposals that shrink a failing module",
                 {0, INT32_MAX});
  options.option(command->file, "--file", "PATH",
                 "check this module instead of random ones; --seed determines its inputs");
  options.option(command->directory, "-o,--output", "DIR", "directory for a failing module");
  options.flag(command->print, "--print", "print the modules and do nothing else");
  options.flag(command->quiet, "-q,--quiet", "no progress");
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
