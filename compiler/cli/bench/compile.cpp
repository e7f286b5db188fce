// tenon bench compile: how the compiler's work grows with the module.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/cli/command.h"
#include "compiler/pipeline/compile_speed.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using compiler::Speed, compiler::SpeedShape;

constexpr std::pair<std::string_view, SpeedShape> kShapes[] = {{"mixed", SpeedShape::kMixed},
                                                               {"line", SpeedShape::kLine},
                                                               {"calls", SpeedShape::kCalls},
                                                               {"types", SpeedShape::kTypes}};

struct BenchCompile {
  std::vector<std::string> sizes = {"1000", "10000", "100000"};
  std::string shape = "mixed";
  bool json = false;

  Status run() const {
    std::vector<Speed> speeds;
    const auto chosen = std::ranges::find(kShapes, shape, &std::pair<std::string_view, SpeedShape>::first)->second;
    for (const std::string& text : sizes) {
      TENON_TRY_ASSIGN(operators, read_number<uint64_t>("--operators", text, {100, 10'000'000}));
      TENON_TRY_ASSIGN(speed, compiler::measure_speed(*operators, chosen));
      speeds.push_back(std::move(*speed));
    }
    if (json) print_json(speeds);
    else print(speeds);
    return {};
  }

  static double visits_each(const Speed& speed, uint64_t visits) {
    return static_cast<double>(visits) / static_cast<double>(speed.operators);
  }

  static void print(const std::vector<Speed>& speeds) {
    print_stdout("{:<18}", "operators");
    for (const Speed& speed : speeds) print_stdout("{:>24}", speed.operators);
    print_stdout("\n{:<18}", "");
    for (size_t i = 0; i < speeds.size(); ++i) print_stdout("{:>24}", "visits/op       us/op");
    const auto row = [&](std::string_view name, const Speed& speed, uint64_t visits, double seconds) {
      if (&speed == &speeds[0]) print_stdout("\n{:<18}", name);
      print_stdout("{:>12.2f}{:>12.2f}", visits_each(speed, visits),
                   seconds * 1e6 / static_cast<double>(speed.operators));
    };
    for (size_t i = 0; i < speeds[0].stages.size(); ++i) {
      for (const Speed& speed : speeds)
        row(speed.stages[i].name, speed, speed.stages[i].visits, speed.stages[i].seconds);
    }
    for (const Speed& speed : speeds) row("all", speed, speed.visits(), speed.seconds());
    print_stdout("\n");
  }

  static void print_json(const std::vector<Speed>& speeds) {
    Json out;
    out.begin_object().key("modules").begin_array();
    for (const Speed& speed : speeds) {
      out.begin_object().field("operators", speed.operators).field("visits", speed.visits());
      out.field("seconds", speed.seconds()).key("stages").begin_array();
      for (const auto& stage : speed.stages) {
        out.begin_object()
            .field("name", stage.name)
            .field("visits", stage.visits)
            .field("seconds", stage.seconds)
            .end();
      }
      out.end().end();
    }
    print_stdout("{}", out.end().end().str());
  }
};

}  // namespace

Action bench_compile(Options& options) {
  auto command = std::make_shared<BenchCompile>();
  options.option(command->sizes, "-n,--operators", "N", "sizes of the modules");
  options.choice(
      command->shape, "--shape", {"mixed", "line", "calls", "types"},
      "a network of all kinds of values; one long line; functions that call each other twice; types that are "
      "nested 1,000 deep");
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
