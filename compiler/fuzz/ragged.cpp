#include "compiler/fuzz/ragged.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/backends/llvm/compile.h"
#include "compiler/fuzz/random_loops.h"
#include "compiler/loop/access.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/text.h"
#include "runtime/native/native.h"
#include "support/try.h"

namespace tenon::compiler::fuzz {
namespace {

using runtime::Tensor;

constexpr int kStepsOfProgram = 12;
constexpr int64_t kProgramsOfLibrary = 50;  // functions that are compiled together

struct RaggedCase {
  uint64_t seed = 0;
  std::string text;
  std::vector<Tensor> params, expected;
  std::vector<std::string> steps;
  loop::Function scheduled;
};

std::string shown(const TypeContext& context, const RaggedCase& failing, std::string_view problem) {
  return fmt::format("seed {}: {}\n{}\n{}\n{}", failing.seed, problem, failing.text, fmt::join(failing.steps, "\n"),
                     loop::print(context, failing.scheduled));
}

// What is wrong with the program under the steps, in the evaluator; empty: nothing.
std::string problem_of(TypeContext& context, const loop::Function& program, RaggedCase& checked) {
  loop::Schedule schedule(context, program);
  for (const std::string& step : checked.steps) (void)schedule.apply(step);
  checked.scheduled = schedule.function();
  const auto found = loop::evaluate(context, checked.scheduled, checked.params);
  if (!found) return found.error().str();
  if (*found != checked.expected) return "the results differ from those of the plain loops";
  const auto read = loop::parse(context, loop::print(context, checked.scheduled), "again.tn");
  if (!read) return "the text is not read: " + read.error().str();
  return equal(*read, checked.scheduled) ? "" : "the text is read as another function";
}

// Tries steps that pad loops over rows without their storage, all of which must be refused. Returns the one that is
// not.
std::optional<std::string> padding_beyond_storage(TypeContext& context, const loop::Function& program,
                                                  RaggedResult& result) {
  std::optional<std::string> accepted;
  for_each_statement(program.body, [&](const loop::Stmt& stmt) {
    const auto* stage = std::get_if<loop::Stage>(&stmt.form);
    if (!stage || accepted) return;
    for_each_access(*stage, [&](const loop::Access& access) {
      const loop::Buffer& buffer = program.buffer(access.buffer);
      if (!access.writes || packed_axes(buffer) < 2 || buffer.rank() < 2 || !access.indices[1].variable()) return;
      const auto axis = std::ranges::find(stage->axes, *access.indices[1].variable(), &loop::Axis::var);
      if (axis == stage->axes.end() || axis->kind != loop::AxisKind::kSpatial) return;
      const std::string name(context.name(stage->name)), rows(context.name(axis->var)), to(context.name(buffer.name));
      for (const auto& [storage, multiple] : {std::pair(0, 2), {0, 3}, {2, 3}, {2, 4}, {4, 8}}) {
        loop::Schedule schedule(context, program);
        if (storage > 0) (void)schedule.apply(fmt::format("align_storage({}, 1, {})", to, storage));
        const std::string step = fmt::format("pad({}, {}, {})", name, rows, multiple);
        if (schedule.apply(step)) accepted = step;
        else ++result.paddings_refused;
      }
    });
  });
  return accepted;
}

// Compiles the functions together and compares their results.
Expected<std::optional<std::string>> check_native(TypeContext& context, const std::vector<RaggedCase>& cases,
                                                  runtime::ThreadPool& pool, RaggedResult& result) {
  std::vector<const RaggedCase*> compiled;
  std::vector<const loop::Function*> functions;
  for (const RaggedCase& checked : cases) {
    if (!native::supported(context, checked.scheduled)) continue;
    compiled.push_back(&checked);
    functions.push_back(&checked.scheduled);
  }
  if (functions.empty()) return std::nullopt;
  native::Options options;
  if (!runtime::host_levels().empty()) options.levels = {std::string(runtime::host_levels().front())};
  TENON_TRY_ASSIGN(code, native::compile(context, functions, options));
  TENON_TRY_ASSIGN(library, runtime::NativeLibrary::load(*code));
  for (size_t i = 0; i < compiled.size(); ++i) {
    ++result.native;
    const auto found = library->call(i, compiled[i]->params, pool);
    if (!found) return shown(context, *compiled[i], "native code: " + found.error().str());
    if (*found != compiled[i]->expected)
      return shown(context, *compiled[i], "the results of native code differ from those of the plain loops");
  }
  return std::nullopt;
}

}  // namespace

Expected<RaggedResult> ragged_campaign(uint64_t seed, int64_t count, FunctionRef<void(int64_t done)> progress) {
  RaggedResult result;
  runtime::ThreadPool pool(2);
  while (result.programs < count && !result.failure) {
    TypeContext context;
    std::vector<RaggedCase> cases;
    for (int64_t i = std::min(kProgramsOfLibrary, count - result.programs); i > 0; --i) {
      RaggedCase checked;
      checked.seed = seed + static_cast<uint64_t>(result.programs++);
      Random random(checked.seed);
      loop::RaggedProgram drawn = loop::random_ragged_program(random);
      checked.text = std::move(drawn.text), checked.params = std::move(drawn.params);
      checked.text.replace(checked.text.find("@p["), 2, fmt::format("@p{}", checked.seed));
      TENON_TRY_ASSIGN(program, loop::parse(context, checked.text, "ragged.tn"));
      TENON_TRY_ASSIGN(expected, loop::evaluate(context, *program, checked.params));
      checked.expected = std::move(*expected);
      loop::Schedule schedule(context, *program);
      for (int step = 0; step < kStepsOfProgram; ++step) {
        for (const std::string& text : loop::random_steps(context, schedule.function(), random)) {
          const Status status = schedule.apply(text);
          RaggedResult::Steps& counted = result.steps[text.substr(0, text.find('('))];
          ++(status ? counted.accepted : counted.refused);
          if (!status && status.error().what.empty())
            result.failure = shown(context, checked, text + " is refused without a reason");
        }
      }
      checked.steps = schedule.steps();
      if (const auto accepted = padding_beyond_storage(context, *program, result))
        result.failure = shown(context, checked, *accepted + " is accepted beyond the storage of the rows");
      if (std::string problem = problem_of(context, *program, checked); !problem.empty()) {
        for (size_t step = checked.steps.size(); step-- > 0;) {  // without the steps that it does not need
          RaggedCase fewer = checked;
          fewer.steps.erase(fewer.steps.begin() + static_cast<std::ptrdiff_t>(step));
          if (std::string other = problem_of(context, *program, fewer); !other.empty())
            checked = std::move(fewer), problem = std::move(other);
        }
        (void)problem_of(context, *program, checked);
        result.failure = shown(context, checked, problem);
      }
      if (result.failure) return result;
      cases.push_back(std::move(checked));
    }
    TENON_TRY_ASSIGN(failure, check_native(context, cases, pool, result));
    result.failure = std::move(*failure);
    progress(result.programs);
  }
  return result;
}

}  // namespace tenon::compiler::fuzz
