#include "compiler/plugin/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/context.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/partition/partition.h"
#include "compiler/partition/pattern_text.h"
#include "compiler/plugin/samples.h"
#include "runtime/vm/session.h"
#include "support/try.h"

namespace tenon::compiler::plugin {
namespace {

using runtime::Tensor;

constexpr float kTolerance = 1e-4f;

// Where the results differ; empty: nowhere.
std::string difference(const Tensor& found, const Tensor& wanted) {
  const auto type = [](const Tensor& tensor) {
    return fmt::format("{} {}", runtime::name(tensor.dtype()), runtime::to_string(tensor.shape()));
  };
  if (found.dtype() != wanted.dtype() || found.shape() != wanted.shape())
    return fmt::format("the result is {}, must be {}", type(found), type(wanted));
  if (found == wanted) return {};
  if (found.dtype() != DType::kF32) {
    const auto [a, b] = std::ranges::mismatch(found.bytes(), wanted.bytes());
    const auto element = (a - found.bytes().begin()) / static_cast<ptrdiff_t>(runtime::bytes(found.dtype()));
    return fmt::format("element {} of the result, {}, has other bits than the interpreter's", element, type(found));
  }
  const auto a = found.data<float>(), b = wanted.data<float>();
  float largest = 1;
  for (const float x : b) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) || std::abs(a[i] - b[i]) <= kTolerance * largest)
      continue;
    return fmt::format("element {} of the result is {}, must be {}", i, a[i], b[i]);
  }
  return {};
}

std::string difference(std::span<const Tensor> found, std::span<const Tensor> wanted) {
  if (found.size() != wanted.size()) return fmt::format("{} results, must be {}", found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string differs = difference(found[i], wanted[i]);
    if (!differs.empty()) return found.size() == 1 ? differs : fmt::format("result {}: {}", i, differs);
  }
  return {};
}

// What the executable computes otherwise than `wanted`, or why it does not run; empty: nothing.
Expected<std::string> run_in_child(const runtime::Executable& executable, std::span<const Tensor> inputs,
                                   std::span<const Tensor> wanted, const Limits& limits) {
  return call_in_child(
      [&](ChildOutput& output) {
        output.step("the kernel");
        auto session = runtime::Session::create(executable, {.threads = 1});
        auto results = session ? session->run(inputs) : std::unexpected(session.error());
        output.answer(results ? difference(*results, wanted) : results.error().str());
      },
      limits);
}

// Checks the row on samples from `seed` on.
class RowChecker {
 public:
  RowChecker(const Target& target, const TargetPattern& row, const CheckOptions& options)
      : row_(row), options_(options), target_(target) {
    // Other rows would match first; a row for the results of others needs them.
    if (!row.of_own_results) target_.patterns = {row};
  }

  Expected<RowCheck> run() {
    RowCheck check{.composite = row_.composite, .pattern = to_string(row_.pattern), .samples = 0, .refused = {}};
    for (int attempt = 0; attempt < options_.attempts && check.samples < options_.samples; ++attempt) {
      const uint64_t seed = options_.seed + static_cast<uint64_t>(attempt);
      Context context;
      Random random(seed);
      auto sample = sample_of(context, row_.pattern, random);
      if (!sample) continue;
      TENON_TRY(check_sample(context, *sample, seed, check));
    }
    return check;
  }

 private:
  Status check_sample(Context& context, PatternSample& sample, uint64_t seed, RowCheck& check) {
    const Symbol main = context.symbol("main");
    const auto wanted = interpret(context, sample.module, main, std::span<const Tensor>(sample.inputs));
    if (!wanted) return {};  // some arguments of the right types are none that the operator is for
    const std::string text = print(context, sample.module).text;
    TENON_TRY_ASSIGN(placements, partition(context, sample.module, main, std::span(&target_, 1)));
    const auto failed = [&](std::string_view what) {
      return error(fmt::format("{}, sample {}: {}\n{}", row_.composite, seed, what, text), {},
                   fmt::format("tenon plugin check --seed {} repeats it", seed));
    };
    if (const auto failure = failure_of(target_)) return failed(failure->what);
    const auto supported = std::ranges::find(*placements, row_.composite, &Placement::composite);
    if (supported == placements->end()) {
      if (!placements->empty()) check.refused = placements->back().reason;
      return {};
    }
    const auto executable = lower(context, std::as_const(sample.module), main, std::span(&target_, 1),
                                  {.name = row_.composite, .facts = {}});
    if (!executable) return failed(executable.error().what);
    auto differs = run_in_child(*executable, sample.inputs, *wanted, options_.limits);
    const std::string what = differs ? *differs : differs.error().what;
    if (!what.empty()) return failed(what);
    ++check.samples;
    return {};
  }

  const TargetPattern& row_;
  const CheckOptions& options_;
  Target target_;
};

}  // namespace

Expected<std::vector<RowCheck>> check_rows(const Target& target, const CheckOptions& options) {
  std::vector<RowCheck> checks;
  for (const TargetPattern& row : target.patterns) {
    TENON_TRY_ASSIGN(check, RowChecker(target, row, options).run());
    checks.push_back(*std::move(check));
  }
  return checks;
}

}  // namespace tenon::compiler::plugin
