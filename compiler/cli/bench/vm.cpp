// tenon bench vm: the cost of the virtual machine's instructions, and of modules that use it.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/backends/llvm/compile_functions.h"
#include "compiler/cli/bench/vm.h"
#include "compiler/cli/command.h"
#include "runtime/vm/session.h"
#include "support/clock.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Branch;
using runtime::CallClosure;
using runtime::CallFunction;
using runtime::Construct;
using runtime::Executable;
using runtime::LoadConstant;
using runtime::MakeClosure;
using runtime::MakeReference;
using runtime::Move;
using runtime::ReadField;
using runtime::ReadReference;
using runtime::Register;
using runtime::Return;
using runtime::ScalarCompute;
using runtime::ScalarOp;
using runtime::Switch;
using runtime::Tensor;
using runtime::WriteReference;

// Loops of n iterations; `instructions` of them in each iteration.
struct MachineLoop {
  std::string name;
  double instructions = 0;
  Executable executable;
};

Tensor integer_scalar(int64_t value) { return Tensor::of<int64_t>({}, std::span<const int64_t>(&value, 1)); }

// main(n): r1 = 0; r2 = 1; do { BODY; r1 = r1 + r2 } while (r1 < n), with registers 5 to 8 for the body.
MachineLoop machine_loop(std::string name, std::vector<runtime::Operation> body,
                         std::vector<runtime::Function> callees = {}) {
  Executable e;
  e.name = name;
  e.types = {{"Pair", {{"Pair", 2}, {"None", 0}}}};
  e.constants = {integer_scalar(0), integer_scalar(1)};
  const double instructions = static_cast<double>(body.size()) + 3;
  runtime::Function main{.name = "main",
                         .params = {{"n", runtime::DType::kI64, {}}},
                         .results = {{"count", runtime::DType::kI64, {}}},
                         .registers = 9,
                         .code = {{LoadConstant{1, 0}, ""}, {LoadConstant{2, 1}, ""}, {Move{5, 1}, ""}}};
  for (uint32_t r = 6; r < 9; ++r) main.code.push_back({Move{r, 1}, ""});
  const auto begin = static_cast<uint32_t>(main.code.size());
  for (runtime::Operation& operation : body) {
    if (auto* select = std::get_if<Switch>(&operation)) {
      for (uint32_t& target : select->targets) target += begin;
    }
    main.code.push_back({std::move(operation), ""});
  }
  main.code.push_back({ScalarCompute{ScalarOp::kAdd, runtime::DType::kI64, 1, 1, 2}, ""});
  main.code.push_back({ScalarCompute{ScalarOp::kGreaterEqual, runtime::DType::kI64, 3, 1, 0}, ""});
  main.code.push_back({Branch{3, begin}, ""});
  main.code.push_back({Return{{1}}, ""});
  e.functions.push_back(std::move(main));
  std::ranges::move(callees, std::back_inserter(e.functions));
  return {std::move(name), instructions, std::move(e)};
}

std::vector<MachineLoop> machine_loops() {
  const auto add = [](Register to, Register a, Register b) {
    return ScalarCompute{ScalarOp::kAdd, runtime::DType::kI64, to, a, b};
  };
  const runtime::Port value{.name = "x", .type = "value"};
  const runtime::Function identity{
      .name = "identity", .params = {value}, .results = {value}, .registers = 1, .code = {{Return{{0}}, ""}}};
  return {
      machine_loop("simple", {add(5, 5, 2), Move{6, 5}, add(7, 6, 5), Move{8, 7}}),
      machine_loop("call", {CallFunction{1, {1}, {5}}}, {identity}),
      machine_loop("closure", {MakeClosure{6, 1, {}}, CallClosure{6, {1}, {5}}}, {identity}),
      machine_loop("data", {Construct{5, 0, 0, {1, 2}}, Switch{5, 0, {2, 2}}, ReadField{6, 5, 0}, runtime::Kill{{5}}}),
      machine_loop("reference", {MakeReference{5, 1}, WriteReference{5, 2}, ReadReference{6, 5}, runtime::Kill{{5}}}),
  };
}

struct BenchVm {
  int64_t iterations = 2'000'000;
  std::string models;
  bool json = false, ahead_of_time = false;

  Status run() const {
    Json out;
    out.begin_object().field("iterations", iterations).field("ahead_of_time", ahead_of_time).key("loops").begin_array();
    for (MachineLoop& loop : machine_loops()) {
      TENON_TRY(verify(loop.executable, loop.name));
      if (ahead_of_time) {
        TENON_TRY_ASSIGN(compiled, compiler::native::compile_functions(loop.executable));
        loop.executable.compiled = std::move(*compiled);
      }
      TENON_TRY_ASSIGN(session, runtime::Session::create(loop.executable, {}));
      std::vector<double> seconds;
      for (int i = 0; i < 5; ++i) {
        const double begin = cpu_seconds();
        TENON_TRY(session->run(std::vector{integer_scalar(iterations)}));
        seconds.push_back(cpu_seconds() - begin);
      }
      std::ranges::sort(seconds);
      const double iteration = seconds[seconds.size() / 2] * 1e9 / static_cast<double>(iterations);
      out.begin_object().field("name", loop.name).field("instructions", loop.instructions);
      out.field("ns_per_iteration", iteration).field("ns_per_instruction", iteration / loop.instructions).end();
      if (!json) {
        print_stdout("{:<10} {:7.1f} ns an iteration of {} instructions: {:.1f} ns an instruction\n", loop.name,
                     iteration, loop.instructions, iteration / loop.instructions);
      }
    }
    out.end();
    if (!models.empty()) TENON_TRY(bench_vm_models(models, out, json));
    if (json) print_stdout("{}", out.end().str());
    return {};
  }
};

}  // namespace

Action bench_vm(Options& options) {
  auto command = std::make_shared<BenchVm>();
  options.option(command->iterations, "-n,--iterations", "N", "iterations of each loop", {1, 1'000'000'000});
  options.option(command->models, "--models", "NAME", "measure modules too: calls, lstm, decoder, dense, or all");
  options.flag(command->ahead_of_time, "--ahead-of-time", "compile the loops to machine code");
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
