#include "compiler/fuzz/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "compiler/fuzz/batches.h"
#include "compiler/fuzz/generator.h"
#include "compiler/fuzz/gradients.h"
#include "compiler/fuzz/inputs.h"
#include "compiler/fuzz/machine.h"
#include "compiler/fuzz/mutate.h"
#include "compiler/fuzz/strip.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text/format.h"
#include "compiler/ir/verifier.h"

namespace tenon::compiler::fuzz {
namespace {

constexpr int64_t kMaxTensorBytes = 1 << 22;  // of one tensor
constexpr std::string_view kSteps = "more than ", kBytes = "a tensor (";

// The observable effects of a run.
struct Run {
  Expected<RunValue> result;
  std::vector<std::string> log;  // the calls of library functions; floats by their indices in `logged`
  std::vector<RunValue> logged;
  double largest = 0;    // magnitude of a float in between
  bool finite = true;    // neither NaN nor infinity among them
  bool single = false;   // f32 among them
  bool compiled = true;  // false: the result is the compiler's error

  bool too_long() const {
    return !result && (result.error().what.starts_with(kSteps) || result.error().what.starts_with(kBytes));
  }
  // By a check of the language, or by an operator whose record says that it may fail. Another kernel that its operands
  // do not suit (a result too large) has no effect and may go.
  bool checked(const Context& context) const {
    if (result) return false;
    const std::string& what = result.error().what;
    const Operator* op = context.find_operator(what.substr(0, what.find(':')));
    return !op || op->may_fail;
  }
  bool internal() const { return !result && result.error().fault == Fault::kInternal; }
};

template <class T>
void look(const runtime::Tensor& tensor, Run& run) {
  for (const T element : tensor.data<T>()) {
    const auto value = static_cast<double>(element);
    run.finite &= std::isfinite(value);
    if (std::isfinite(value)) run.largest = std::max(run.largest, std::fabs(value));
  }
}
void look(const runtime::Tensor& tensor, Run& run) {
  if (!tensor) return;
  if (tensor.dtype() == DType::kF32) {
    run.single = true;
    look<float>(tensor, run);
  } else if (tensor.dtype() == DType::kF64) {
    look<double>(tensor, run);
  }
}

// The value of a binding. An operator with several results makes a tuple of tensors; fields of data are values of
// earlier bindings.
void look(const RunValue& value, Run& run) {
  look(value.tensor(), run);
  if (!value.object || value.object->kind != RunObject::Kind::kTuple) return;
  for (const RunValue& field : value.object->fields) look(field.tensor(), run);
}

// The library functions of a run, which log their calls in it.
Libraries logging(Run& run) {
  Libraries libraries;
  for (const char* name : kLibraries) {
    libraries[name] = [&run, name](std::span<const RunValue> args) -> Expected<RunValue> {
      run.log.emplace_back(name);
      run.logged.push_back(args[0]);
      return args[0];
    };
  }
  return libraries;
}

Run execute(Context& context, const Module& module, std::span<const RunValue> inputs, int64_t steps, bool observe) {
  Run run{.result = RunValue(), .log = {}, .logged = {}};
  const Libraries libraries = logging(run);
  Observer observer;
  if (observe) {
    for (const RunValue& input : inputs) look(input, run);
    observer = [&run](const Function&, VarId, const RunValue& value) { look(value, run); };
  }
  run.result = interpret(context, module, context.symbol("main"), inputs, observer, libraries,
                         {.steps = steps, .bytes = kMaxTensorBytes});
  return run;
}

// Compares values as programs see them: closures are equal; references correspond one to one.
class Comparison {
 public:
  Comparison(const Context& context, double tolerance, bool floats)
      : context_(context), tolerance_(tolerance), floats_(floats) {}

  // How they differ, or nothing.
  std::string compare(const RunValue& a, const RunValue& b) {
    std::vector<std::pair<const RunObject*, const RunObject*>> open{{a.object.get(), b.object.get()}};
    while (!open.empty()) {
      const auto [x, y] = open.back();
      open.pop_back();
      if (x == y) continue;
      if (!x || !y) return "a value is missing";
      if (x->kind != y->kind) return "one is of another kind";
      if (x->kind == RunObject::Kind::kReference) {
        auto [cell, added] = cells_.emplace(x, y);
        if (cell->second != y) return "one reference has become two";
        if (!added) continue;
      }
      if (x->kind == RunObject::Kind::kClosure) continue;
      if (x->kind == RunObject::Kind::kTensor) {
        if (std::string difference = tensors(x->tensor, y->tensor); !difference.empty()) return difference;
        continue;
      }
      if (x->constructor != y->constructor) {
        return fmt::format("{} became {}", context_.name(x->constructor), context_.name(y->constructor));
      }
      if (x->fields.size() != y->fields.size()) return "the counts of fields differ";
      for (size_t i = 0; i < x->fields.size(); ++i) {
        open.emplace_back(x->fields[i].object.get(), y->fields[i].object.get());
      }
    }
    return "";
  }

 private:
  std::string tensors(const runtime::Tensor& a, const runtime::Tensor& b) const {
    if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
      return fmt::format("{} {} became {} {}", runtime::name(a.dtype()), runtime::to_string(a.shape()),
                         runtime::name(b.dtype()), runtime::to_string(b.shape()));
    }
    if (a.dtype() == DType::kF32) return numbers<float>(a, b);
    if (a.dtype() == DType::kF64) return numbers<double>(a, b);
    return a == b ? "" : fmt::format("integers differ: {} {}", runtime::name(a.dtype()), runtime::to_string(a.shape()));
  }
  template <class T>
  std::string numbers(const runtime::Tensor& a, const runtime::Tensor& b) const {
    for (int64_t i = 0; floats_ && i < a.size(); ++i) {
      const double x = a.data<T>()[i], y = b.data<T>()[i];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (!(std::fabs(x - y) <= tolerance_)) return fmt::format("{} became {}, allowed are {}", x, y, tolerance_);
    }
    return "";
  }

  const Context& context_;
  double tolerance_;
  bool floats_;
  std::unordered_map<const RunObject*, const RunObject*> cells_;
};

class Examination {
 public:
  Examination(Context& context, const Module& module, uint64_t seed, const OracleOptions& options, Counts& counts)
      : context_(context), module_(module), seed_(seed), options_(options), counts_(counts) {}

  std::optional<Violation> run() {
    ++counts_.modules;
    counts_.count(module_);
    if (auto found = well_formed("verify", module_)) return found;
    if (options_.text) {
      if (auto found = text(module_)) return found;
      if (auto found = shadowing()) return found;
      if (auto found = inference()) return found;
    }
    if (options_.gradients) return gradient();
    if (auto found = passes(module_)) return found;
    return mutants();
  }

 private:
  static std::optional<Violation> violation(std::string check, std::string what) {
    return Violation{std::move(check),
                     Diagnostic{.what = std::move(what), .where = {}, .help = {}, .fault = Fault::kInternal}};
  }

  std::optional<Violation> well_formed(std::string check, const Module& module) {
    Status status = verify(context_, module);
    if (status) return std::nullopt;
    return Violation{std::move(check), std::move(status.error())};
  }

  // ": line 7, "A" became "B"" of two texts whose lines differ in more than the numbers of variables; else empty.
  static std::string first_difference(std::string_view before, std::string_view after) {
    const auto without_numbers = [](std::string_view line) {
      std::string text;
      for (size_t i = 0; i < line.size(); ++i) {
        text += line[i];
        if (line[i] != '%') continue;
        while (i + 1 < line.size() && line[i + 1] >= '0' && line[i + 1] <= '9') ++i;
      }
      return text;
    };
    for (int64_t line = 1; !before.empty() || !after.empty(); ++line) {
      const std::string_view a = before.substr(0, before.find('\n')), b = after.substr(0, after.find('\n'));
      if (without_numbers(a) != without_numbers(b)) return fmt::format(": line {}, \"{}\" became \"{}\"", line, a, b);
      before.remove_prefix(std::min(before.size(), a.size() + 1));
      after.remove_prefix(std::min(after.size(), b.size() + 1));
    }
    return "";
  }

  std::optional<Violation> text(const Module& module) {
    const Text text = print(context_, module);
    auto parsed = parse(context_, text.text, text.side, "module");
    if (!parsed) return Violation{"text", std::move(parsed.error())};
    if (!equal(module, *parsed)) {
      return violation("text", "the parsed module differs from the printed one" +
                                   first_difference(text.text, print(context_, *parsed).text));
    }
    if (const auto laid_out = format(text.text); !laid_out || *laid_out != text.text) {
      return violation("text", "fmt changes printed text");
    }
    auto unpacked = from_binary(context_, to_binary(context_, module), "module");
    if (!unpacked) return Violation{"binary", std::move(unpacked.error())};
    if (!equal(module, *unpacked)) return violation("binary", "the deserialized module differs from the written one");
    if (const Text again = print(context_, *parsed); again.text != text.text || again.side != text.side) {
      // Names that had to be made unique are the only thing that may differ, and only once.
      auto third = parse(context_, again.text, again.side, "module");
      if (!third || print(context_, *third).text != again.text) return violation("text", "printing is not stable");
    }
    return std::nullopt;
  }

  // Gives variables the names of others that are no longer used.
  std::optional<Violation> shadowing() {
    const Text text = print(context_, module_);
    Random random(seed_ ^ 0x5ade);
    const std::string edited = with_shadowing(text.text, random);
    auto parsed = parse(context_, edited, text.side, "module");
    if (!parsed) return Violation{"shadowing", std::move(parsed.error()), {edited, text.side}};
    if (equal(module_, *parsed)) return std::nullopt;
    auto found = violation("shadowing", "with variables of equal names the text is another module");
    found->mutant = {edited, text.side};
    return found;
  }

  // Leaves out the types of bindings and of lambdas; where inference needs more, those of bindings alone.
  std::optional<Violation> inference() {
    const Text text = print(context_, module_);
    for (const bool lambdas : {true, false}) {
      auto parsed = parse(context_, without_annotations(text.text, lambdas), text.side, "module");
      if (parsed) {
        if (equal(module_, *parsed)) return std::nullopt;
        return violation("infer", "without annotations the text is another module");
      }
      const std::string& what = parsed.error().what;
      const bool undecided = what.find("not determined") != std::string::npos ||
                             what.find("cannot be inferred") != std::string::npos ||
                             what.find("no argument determines") != std::string::npos;
      if (!undecided) return Violation{"infer", std::move(parsed.error())};
      if (lambdas) ++counts_.annotated;
    }
    return std::nullopt;
  }

  // Expands the derivatives.
  std::optional<Violation> gradient() {
    auto expanded = expand_gradients(context_, module_, counts_);
    if (!expanded) return Violation{"gradient", std::move(expanded.error())};
    if (!*expanded) return std::nullopt;
    if (auto found = well_formed("gradient", **expanded)) return found;
    const Function& main = *(*expanded)->function(context_.symbol("main"));
    Random random(seed_ ^ 0x5eed);
    const auto inputs = random_inputs(context_, **expanded, main, random);
    if (!inputs) return std::nullopt;
    const auto difference = disagreement(context_, **expanded, *inputs, seed_, options_.steps, counts_);
    if (difference) return violation("gradient", *difference);
    if (options_.text) {
      if (auto found = text(**expanded)) {
        found->check = "gradient, " + found->check;
        return found;
      }
    }
    return passes(**expanded);
  }

  // Runs the module before and after each pass.
  std::optional<Violation> passes(const Module& module) {
    const Function* main = module.function(context_.symbol("main"));
    if (!main) return std::nullopt;
    Random random(seed_ ^ 0x5eed);
    const auto inputs = random_inputs(context_, module, *main, random);
    if (!inputs) return std::nullopt;  // a mutant whose @main takes a function
    const Run before = execute(context_, module, *inputs, options_.steps, true);
    if (before.internal()) return Violation{"run", before.result.error()};
    if (before.too_long()) {
      ++counts_.endless;
      return std::nullopt;
    }
    ++counts_.runs;
    if (!before.result) {
      const std::string& what = before.result.error().what;
      ++counts_.failing;
      ++counts_.stops[what.substr(0, what.find(':'))];
    }
    counts_.unbounded += !before.finite;
    if (options_.machine) {
      if (auto found = machine(module, *inputs, before)) return found;
    }
    if (options_.batch) {
      const auto difference = batches_differ(context_, module, *inputs, seed_, options_.steps, counts_);
      if (difference) return violation("batch", *difference);
    }
    if (options_.native != 0 && seed_ % options_.native == 0) {
      if (auto found = native(module, *inputs, before)) return found;
    }
    for (const Pass& pass : options_.passes) {
      if (auto found = run_pipeline("pass " + pass.name, std::span(&pass, 1), module, *inputs, before)) return found;
    }
    if (!options_.pipeline) return std::nullopt;
    std::vector<Pass> passes = standard_passes();
    if (auto found = run_pipeline("pipeline", passes, module, *inputs, before)) return found;
    passes.insert(passes.end(), kernel_passes().begin(), kernel_passes().end());
    return run_pipeline("pipeline to kernels", passes, module, *inputs, before);
  }

  // The same module, compiled.
  std::optional<Violation> machine(const Module& module, std::span<const RunValue> inputs, const Run& before) {
    const std::optional<Run> run = compiled(module, inputs, NativeCode::kNone);
    if (!run) return std::nullopt;
    if (!run->compiled) return Violation{"machine", run->result.error()};
    ++counts_.compiled;
    if (auto found = differs("machine", before, *run, 0, true)) return found;
    const std::optional<Run> ahead = compiled(module, inputs, NativeCode::kFunctions);
    if (!ahead) return std::nullopt;
    if (!ahead->compiled) return Violation{"ahead of time", ahead->result.error()};
    if (auto found = differs("ahead of time", before, *ahead, 0, true)) return found;
    return budgeted(module, inputs, before);
  }

  // The same under budgets between nothing and what the module's tensors need.
  std::optional<Violation> budgeted(const Module& module, std::span<const RunValue> inputs, const Run& before) {
    constexpr uint64_t kPlenty = uint64_t{1} << 40;
    if (options_.budgets == 0) return std::nullopt;
    uint64_t peak = 0;
    const std::optional<Run> free = compiled(module, inputs, NativeCode::kNone, kPlenty, &peak);
    if (!free) return std::nullopt;
    if (auto found = differs("a budget of plenty", before, *free, 0, true)) return found;
    Random random(seed_ ^ 0xb4d9e7);
    for (int i = 0; i < options_.budgets && peak > 0; ++i) {
      const auto most = static_cast<int64_t>(peak);
      const auto budget = static_cast<uint64_t>(random.between((most + 1) / 2, most));
      const NativeCode native = i % 2 == 0 ? NativeCode::kNone : NativeCode::kFunctions;
      uint64_t used = 0;
      const std::optional<Run> run = compiled(module, inputs, native, budget, &used);
      counts_.refused += !run;
      if (!run) continue;
      ++counts_.budgeted;
      const std::string check = fmt::format("budget {}", budget);
      if (used > budget) return violation(check, fmt::format("the tensors have {} bytes", used));
      if (auto found = differs(check, before, *run, 0, true)) return found;
    }
    return std::nullopt;
  }

  // The module after all passes, compiled with native kernels.
  std::optional<Violation> native(const Module& module, std::span<const RunValue> inputs, const Run& before) {
    std::vector<Pass> passes = standard_passes();
    passes.insert(passes.end(), kernel_passes().begin(), kernel_passes().end());
    const auto after = run_passes(context_, clone(module), passes, {.verify = true});
    if (!after) return Violation{"native", after.error()};
    const std::optional<Run> run = compiled(*after, inputs, NativeCode::kKernels);
    if (!run) return std::nullopt;
    if (!run->compiled) return Violation{"native", run->result.error()};
    ++counts_.native;
    if (!before.result && !before.checked(context_)) return std::nullopt;
    return differs("native", before, *run, tolerance(before), before.finite);
  }

  // Nothing where the run ends at a limit. Instructions are shorter than bindings.
  std::optional<Run> compiled(const Module& module, std::span<const RunValue> inputs, NativeCode native,
                              uint64_t budget = 0, uint64_t* peak = nullptr) {
    Run run{.result = RunValue(), .log = {}, .logged = {}};
    CompiledRun made = run_compiled(context_, module, inputs, logging(run),
                                    {.steps = 100 * options_.steps, .bytes = kMaxTensorBytes}, native, budget);
    if (peak) *peak = made.peak;
    counts_.limited += made.limited;
    if (made.limited) return std::nullopt;
    run.result = std::move(made.result);
    run.compiled = made.compiled;
    return run;
  }

  static double tolerance(const Run& before) { return (before.single ? 1e-4 : 1e-9) * std::max(1.0, before.largest); }

  // How the effects of a run differ from those of the run before.
  std::optional<Violation> differs(const std::string& check, const Run& before, const Run& run, double tolerance,
                                   bool floats) {
    if (before.result && !run.result) return Violation{check, run.result.error()};
    if (run.result && !before.result)
      return violation(check, "the program no longer stops with an error: before, " + before.result.error().str());
    if (run.log != before.log) {
      return violation(check, fmt::format("library functions were called {} times, now {} times, or in another order",
                                          before.log.size(), run.log.size()));
    }
    for (size_t i = 0; i < run.logged.size(); ++i) {
      Comparison comparison(context_, tolerance, floats);
      if (std::string how = comparison.compare(before.logged[i], run.logged[i]); !how.empty())
        return violation(check, fmt::format("call {} of a library function: {}", i, how));
    }
    if (!run.result) return std::nullopt;
    const std::string how = Comparison(context_, tolerance, floats).compare(*before.result, *run.result);
    return how.empty() ? std::nullopt : violation(check, how);
  }

  std::optional<Violation> run_pipeline(const std::string& check, std::span<const Pass> passes, const Module& module,
                                        std::span<const RunValue> inputs, const Run& before) {
    auto after = run_passes(context_, clone(module), passes, {.verify = true});
    if (!after) return Violation{check, std::move(after.error())};
    if (equal(module, *after)) return std::nullopt;
    ++counts_.changed;
    const Run run = execute(context_, *after, inputs, 10 * options_.steps, false);
    if (run.internal() || (before.result && !run.result)) return Violation{check, run.result.error()};
    if (!before.result && !before.checked(context_)) return std::nullopt;
    return differs(check, before, run, tolerance(before), before.finite);
  }

  std::optional<Violation> mutants() {
    const PrintOptions named{.side = side_file(seed_)};
    const Text text = print(context_, module_, named);
    for (int i = 0; i < options_.mutants; ++i) {
      Random random(seed_ * 1000003 + static_cast<uint64_t>(i));
      const Module mutant = mutate(context_, module_, random);
      if (!verify(context_, mutant)) {
        ++counts_.rejected;
      } else if (auto broken = kept(mutant)) {
        broken->mutant = print(context_, mutant, named);
        return broken;
      }
      std::vector<std::byte> bytes = to_binary(context_, module_);
      for (int64_t flips = random.between(1, 4); flips > 0; --flips) {
        const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(bytes.size()) - 1));
        bytes[at] = static_cast<std::byte>(random.between(0, 255));
      }
      if (auto broken = taken(from_binary(context_, bytes, "module.tnb"))) return broken;
      const std::string damaged = mutate(text.text, random);
      if (auto broken = taken(parse(context_, damaged, text.side, "module.tn"))) {
        broken->mutant = {damaged, text.side};
        return broken;
      }
    }
    return std::nullopt;
  }

  // The result of a reader on a damaged text.
  std::optional<Violation> taken(Expected<Module> parsed) {
    if (!parsed) {
      ++counts_.rejected;
      if (!parsed.error().where.empty() && parsed.error().fault == Fault::kInput) return std::nullopt;
      return violation("mutant", "a text is rejected without a location: " + parsed.error().str());
    }
    if (auto broken = well_formed("mutant", *parsed)) {
      broken->problem.what = "the reader accepts a module that the verifier refuses: " + broken->problem.what;
      return broken;
    }
    return kept(*parsed);
  }

  // A mutant that is a module keeps all promises.
  std::optional<Violation> kept(const Module& mutant) {
    ++counts_.accepted;
    auto found = text(mutant);
    if (!found) found = passes(mutant);
    if (found) found->check = "mutant, " + found->check;
    return found;
  }

  Context& context_;
  const Module& module_;
  uint64_t seed_;
  const OracleOptions& options_;
  Counts& counts_;
};

}  // namespace

void Counts::count(const Module& module) {
  constexpr std::array kKinds{"apply", "call",       "tuple", "project", "construct", "lambda", "if",
                              "match", "match_cast", "ref",   "read",    "write",     "size",   "gradient"};
  static_assert(kKinds.size() == std::variant_size_v<Value>);
  for_each_function(module, [&](Symbol, const Function& function) {
    for_each_binding(function.body, [&](const Binding& binding) {
      ++bindings;
      ++values[kKinds[binding.value.index()]];
      if (auto* apply = std::get_if<Apply>(&binding.value)) ++operators[apply->op->name];
      auto* call = std::get_if<Call>(&binding.value);
      auto* callee = call ? std::get_if<Symbol>(&call->callee) : nullptr;
      loops += callee && module.loop_function(*callee);
    });
  });
}

std::string side_file(uint64_t seed) { return fmt::format("fuzz-ir-{}.npz", seed); }

std::optional<Violation> examine(Context& context, const Module& module, uint64_t seed, const OracleOptions& options,
                                 Counts& counts) {
  return Examination(context, module, seed, options, counts).run();
}

}  // namespace tenon::compiler::fuzz
