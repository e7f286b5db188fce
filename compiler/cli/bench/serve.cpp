// tenon bench serve: requests that come at random times, answered one by one and by batches that requests join.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compiler/cli/bench/instances.h"
#include "support/clock.h"
#include "support/json.h"
#include "support/output.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Value;
using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct BenchServe {
  ModelOptions model;
  std::string instances;
  uint64_t requests = 1000, max_batch = 64, max_wait_us = 0, threads = 1, seed = 1, rounds = 3;
  double load = 2;
  bool json = false;

  Status run() {
    if (model.model.empty() || instances.empty()) {
      return error("a model and instances are required", "tenon bench serve",
                   "give them with --model FILE and --instances FILE", Fault::kUsage);
    }
    model.quiet = true;
    model.for_this_machine = true;
    TENON_TRY_ASSIGN(loaded, cli::load(model));
    runtime::SessionOptions options{.threads = static_cast<unsigned>(threads)};
    options.max_queue = requests;
    options.max_wait = std::chrono::microseconds(max_wait_us);
    options.max_batch = 1;
    InstanceBench alone, together;
    TENON_TRY(alone.compile(*loaded, model, options));
    model.batch.emplace();
    options.max_batch = max_batch;
    TENON_TRY(together.compile(*loaded, model, options));
    TENON_TRY_ASSIGN(values, read_instances(*loaded, *alone.executable, instances));
    TENON_TRY_ASSIGN(expected, alone.results(*values, 1));
    TENON_TRY_ASSIGN(rate, rate_alone(alone, *values));
    Measured single, batched;  // interleaved, since other work of the machine disturbs both
    for (uint64_t round = 0; round < rounds; ++round) {
      for (auto& [bench, best] : {std::pair(&alone, &single), std::pair(&together, &batched)}) {
        TENON_TRY_ASSIGN(measured, serve(*bench, *values, *expected, load * *rate));
        if (measured->rate > best->rate) *best = *measured;
      }
    }
    print(*rate, single, batched);
    return {};
  }

 private:
  struct Measured {
    double rate = 0;          // answers a second, from the first arrival to the last answer
    double p50 = 0, p99 = 0;  // seconds from arrival to answer
  };

  // How many requests a second a session sustains that runs one after the other: the best of three passes.
  static Expected<double> rate_alone(InstanceBench& bench, const Instances& all) {
    double least = INFINITY;
    constexpr int kPasses = 3;
    for (int pass = 0; pass < kPasses; ++pass) {
      const Clock::time_point begin = Clock::now();
      TENON_TRY(bench.results(all, 1));
      least = std::min(least, seconds_between(begin, Clock::now()));
    }
    return static_cast<double>(all.size()) / least;
  }

  // Requests with exponentially distributed times between arrivals, and each answer beside that of its run alone.
  Expected<Measured> serve(InstanceBench& bench, const Instances& all, const Instances& expected,
                           double arrivals) const {
    Random random(seed);
    std::vector<size_t> which;
    std::vector<double> times;  // seconds after the first one
    double time = 0;
    for (uint64_t i = 0; i < requests; ++i) {
      which.push_back(random.below(all.size()));
      times.push_back(time);
      constexpr double kSteps = 1 << 30;
      time -= std::log((static_cast<double>(random.below(1 << 30)) + 1) / kSteps) / arrivals;
    }
    std::vector<double> latencies(requests);
    std::vector<runtime::Ticket> tickets;
    tickets.reserve(requests);
    // Callbacks write to what stands above until the last request has its answer.
    struct Drain {
      const std::vector<runtime::Ticket>& tickets;
      ~Drain() {
        for (const runtime::Ticket& ticket : tickets) ticket.cancel();
        for (const runtime::Ticket& ticket : tickets) static_cast<void>(ticket.wait());
      }
    };
    const Clock::time_point begin = Clock::now();
    const auto at = [&](double seconds) {
      return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    const Drain drain{tickets};
    for (uint64_t i = 0; i < requests; ++i) {
      std::this_thread::sleep_until(at(times[i]));
      auto ticket = bench.session->submit(
          all[which[i]], [&, i](const auto&) { latencies[i] = seconds_between(at(times[i]), Clock::now()); });
      TENON_TRY(ticket);
      tickets.push_back(std::move(*ticket));
    }
    double last = 0;
    for (uint64_t i = 0; i < requests; ++i) {
      const auto answer = tickets[i].wait();
      TENON_TRY(answer);
      TENON_TRY(check_results({&expected[which[i]], 1}, {&*answer, 1}, fmt::format("request {}", i), model.model));
      last = std::max(last, times[i] + latencies[i]);
    }
    std::ranges::sort(latencies);
    const auto percentile = [&](double part) {
      return latencies[std::min(latencies.size() - 1, static_cast<size_t>(part * static_cast<double>(requests)))];
    };
    return Measured{static_cast<double>(requests) / last, percentile(0.5), percentile(0.99)};
  }

  void print(double rate, const Measured& single, const Measured& batched) const {
    const double ratio = batched.rate / single.rate;
    if (json) {
      Json out;
      out.begin_object().field("model", model.model).field("requests", requests).field("one_by_one_rate", rate);
      out.field("load", load);
      for (const auto& [name, measured] : {std::pair("one_by_one", single), std::pair("batches", batched)}) {
        out.key(name).begin_object().field("rate", measured.rate);
        out.field("p50_ms", measured.p50 * 1e3).field("p99_ms", measured.p99 * 1e3).end();
      }
      print_stdout("{}", out.field("ratio", ratio).end().str());
      return;
    }
    print_stdout("{}: {} requests at {:.0f} a second, {} times what one by one sustains, {} thread{}\n", model.model,
                 requests, load * rate, load, threads, threads == 1 ? "" : "s");
    for (const auto& [name, measured] : {std::pair("one by one", single), std::pair("batches", batched)}) {
      print_stdout("{:<12}{:>10.0f} answers a second, p50 {:.2f} ms, p99 {:.2f} ms\n", name, measured.rate,
                   measured.p50 * 1e3, measured.p99 * 1e3);
    }
    print_stdout("batches of at most {} answer {:.2f} times as many a second; all answers are those of single runs\n",
                 max_batch, ratio);
  }
};

}  // namespace

Action bench_serve(Options& options) {
  auto command = std::make_shared<BenchServe>();
  options.option(command->model.model, "-m,--model", "MODEL", "the model, as a .tn module or an .onnx file");
  options.option(command->instances, "--instances", "FILE",
                 "inputs of the requests, as those of tenon run; each request draws one of them");
  options.option(command->model.entry, "--entry", "NAME", "the function to run");
  options.option(command->requests, "--requests", "N", "number of requests", {1, 1 << 24});
  options.option(command->load, "--load", "FACTOR", "arrivals a second, as a multiple of what one by one sustains",
                 {1e-3, 1e3});
  options.option(command->max_batch, "--max-batch", "N", "requests that run together", {1, 1 << 20});
  options.option(command->max_wait_us, "--max-wait-us", "US",
                 "longest wait of the first request for others, where none runs", {0, uint64_t{1} << 40});
  options.option(command->threads, "--threads", "N", "threads of native kernels", {1, 1024});
  options.option(command->rounds, "--rounds", "N", "measurements of each, interleaved, the fastest of which counts",
                 {1, 1000});
  options.option(command->seed, "--seed", "N", "of the arrivals", {});
  options.flag(command->json, "--json", "print JSON");
  options.footer("tenon bench serve --model tests/examples/generate.tn --instances seeds.txt --load 2");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
