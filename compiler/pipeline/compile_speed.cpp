#include "compiler/pipeline/compile_speed.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "support/clock.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr int kWidth = 4;

class ModuleText {
 public:
  std::string build(size_t operators) {
    const size_t straight = operators / 2;
    text_ = "#[version = \"1\"]\ntype List[A] { Nil, Cons(A, List[A]) }\n";
    constants();
    text_ += "def @small[n](%a: Tensor[(n, 4), f32]) -> Tensor[(n, 4), f32] { relu(tanh(%a)) }\n";
    text_ +=
        "def @fold[n](%l: List[Tensor[(n, 4), f32]], %a: Tensor[(n, 4), f32]) -> Tensor[(n, 4), f32] {\n"
        "  match %l { Nil => %a, Cons(%h, %t) => @fold(%t, add(%a, tanh(%h))) }\n}\n";
    count_ = 4;
    size_t functions = 0;
    for (; count_ + straight < operators; ++functions) {
      function(fmt::format("part{}", functions), 200);
    }
    text_ += "def @main[n](%x: Tensor[(n, 4), f32], %c: Tensor[(), bool]) -> Tensor[(n, 4), f32] {\n";
    last_ = "%x";
    skips_ = {"%x"};
    while (count_ < operators) step();
    for (size_t i = 0; i < functions; ++i) {
      text_ += fmt::format("  let %p{} = @part{}({}, %c);\n", i, i, last_);
      last_ = fmt::format("%p{}", i);
    }
    text_ += fmt::format("  {}\n}}\n", last_);
    return std::move(text_);
  }

 private:
  void constants() {
    for (int i = 0; i < 8; ++i) {
      text_ += fmt::format("const ${}: Tensor[(4, 4), f32] = [", i);
      for (int k = 0; k < kWidth * kWidth; ++k)
        text_ += fmt::format("{}{}", k ? ", " : "", 0.0625 * (1 + (k * 7 + i) % 11));
      text_ += fmt::format("];\nconst ${}: Tensor[(4,), f32] = [{}, 0.5, 0.75, 1.25];\n", 8 + i, i + 1);
    }
  }

  void function(const std::string& name, size_t operators) {
    text_ += fmt::format("def @{}[n](%x: Tensor[(n, 4), f32], %c: Tensor[(), bool]) -> Tensor[(n, 4), f32] {{\n", name);
    last_ = "%x";
    skips_ = {"%x"};
    for (const size_t end = count_ + operators; count_ < end;) step();
    text_ += fmt::format("  {}\n}}\n", last_);
  }

  void let(std::string_view expression, size_t operators) {
    text_ += fmt::format("  let %v{} = {};\n", next_, expression);
    last_ = fmt::format("%v{}", next_++);
    count_ += operators;
    skips_.push_back(last_);
  }

  // Ten kinds of layers, in rotation.
  void step() {
    const std::string x = last_, near = skips_[skips_.size() - std::min<size_t>(skips_.size(), 3)],
                      far = skips_[skips_.size() / 2];
    const size_t w = turn_ % 8;
    switch (turn_++ % 10) {
      case 0: let(fmt::format("relu(bias_add(dense({}, ${}), ${}))", x, w, 8 + w), 3); break;
      case 1: let(fmt::format("bias_add(multiply(dense({}, ${}), ${}), ${})", x, w, 8 + w, 8 + (w + 1) % 8), 3); break;
      case 2: let(fmt::format("relu(add({}, {}))", x, near), 2); break;
      case 3: let(fmt::format("transpose(sigmoid(transpose({}, axes=[1, 0])), axes=[1, 0])", x), 3); break;
      case 4: let(fmt::format("reshape(reshape({}, shape=[-1, 2, 2]), shape=[-1, 4])", x), 2); break;
      case 5: let(fmt::format("add(tanh({}), tanh({}))", x, x), 3); break;
      case 6: let(fmt::format("if (%c) {{ relu(multiply({}, ${})) }} else {{ @small({}) }}", x, 8 + w, x), 3); break;
      case 7:
        text_ += fmt::format("  let %f{} = fn (%z: Tensor[(n, 4), f32]) {{ add(relu(%z), {}) }};\n", next_, near);
        let(fmt::format("%f{}(tanh({}))", next_, x), 3);
        break;
      case 8: let(fmt::format("@fold(Cons({}, Cons({}, Nil)), {})", x, near, far), 1); break;
      case 9:
        text_ += fmt::format("  let %t{} = ({}, softmax({}));\n", next_, x, x);
        let(fmt::format("subtract(%t{}.1, %t{}.0)", next_, next_), 2);
        break;
    }
  }

  std::string text_, last_;
  std::vector<std::string> skips_;
  size_t count_ = 0, next_ = 0, turn_ = 0;
};

constexpr std::string_view kSpeedHeader = "#[version = \"1\"]\n";
constexpr std::string_view kSpeedSignature = "[n](%x: Tensor[(n, 4), f32]) -> Tensor[(n, 4), f32] {";

std::string line_text(size_t operators) {
  std::string text = fmt::format("{}def @main{}\n", kSpeedHeader, kSpeedSignature), last = "%x";
  for (size_t i = 0; i < operators / 2; ++i) {
    text += fmt::format("  let %v{} = tanh({} + %x);\n", i, last);
    last = fmt::format("%v{}", i);
  }
  return text + fmt::format("  {}\n}}\n", last);
}

std::string calls_text(size_t operators) {
  std::string text = fmt::format("{}def @f0{} tanh(%x) }}\n", kSpeedHeader, kSpeedSignature);
  const size_t functions = operators / 3;
  for (size_t i = 1; i <= functions; ++i)
    text += fmt::format("def @f{}{} tanh(@f{}(@f{}(%x))) }}\n", i, kSpeedSignature, i - 1, i - 1);
  return text + fmt::format("def @main{} @f{}(%x) }}\n", kSpeedSignature, functions);
}

std::string nested_types_text(size_t operators) {
  constexpr size_t kDepth = 1000;
  std::string text = fmt::format("{}def @main{}\n", kSpeedHeader, kSpeedSignature), last = "%x";
  size_t next = 0;
  const auto let = [&](const std::string& expression) {
    text += fmt::format("  let %v{} = {};\n", next, expression);
    last = fmt::format("%v{}", next++);
  };
  for (size_t count = 0; count < operators; count += kDepth) {
    for (size_t i = 0; i < kDepth; ++i) let(fmt::format("({}, {})", last, last));
    for (size_t i = 0; i < kDepth; ++i) let(fmt::format("{}.{}", last, i % 2));
    for (size_t i = 0; i < std::min(kDepth, operators - count); ++i) let(fmt::format("tanh({})", last));
  }
  return text + fmt::format("  {}\n}}\n", last);
}

}  // namespace

std::string speed_module(size_t operators, SpeedShape shape) {
  switch (shape) {
    case SpeedShape::kMixed: return ModuleText().build(operators);
    case SpeedShape::kLine: return line_text(operators);
    case SpeedShape::kCalls: return calls_text(operators);
    case SpeedShape::kTypes: return nested_types_text(operators);
  }
  return {};
}

uint64_t Speed::visits() const {
  uint64_t sum = 0;
  for (const SpeedStage& stage : stages) sum += stage.visits;
  return sum;
}
double Speed::seconds() const {
  double sum = 0;
  for (const SpeedStage& stage : stages) sum += stage.seconds;
  return sum;
}

Expected<Speed> measure_speed(size_t operators, SpeedShape shape) {
  Context context;
  Speed speed;
  const std::string text = speed_module(operators, shape);
  uint64_t visits = 0;
  double start = thread_cpu_seconds();
  const auto stage = [&](std::string name) {
    const double now = thread_cpu_seconds();
    speed.stages.push_back({std::move(name), context.visits() - visits, now - start});
    visits = context.visits();
    start = now;
  };
  TENON_TRY_ASSIGN(module, parse(context, text));
  stage("parse");
  for_each_function(*module, [&](Symbol, const Function& function) {
    for_each_binding(function.body, [&](const Binding& binding) {
      speed.operators += std::holds_alternative<Apply>(binding.value) || std::holds_alternative<Call>(binding.value);
    });
  });
  for (const auto* passes : {&standard_passes(), &kernel_passes()}) {
    for (const Pass& pass : *passes) {
      start = thread_cpu_seconds();
      TENON_TRY_ASSIGN(after, run_passes(context, std::move(*module), std::span(&pass, 1), {.verify = false}));
      *module = std::move(*after);
      stage(pass.name);
    }
  }
  TENON_TRY(verify(context, *module));
  stage("verify");
  return speed;
}

}  // namespace tenon::compiler
