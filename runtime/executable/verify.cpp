// Checks all that execution of an executable relies on.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/executable/executable.h"
#include "runtime/executable/verify_arena.h"
#include "runtime/executable/verify_instruction.h"
#include "runtime/executable/verify_program.h"
#include "support/printable.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

class Verifier {
 public:
  Verifier(const Executable& executable, std::string_view where) : executable_(executable), where_(where) {}

  Status run() {
    if (executable_.entry >= executable_.functions.size()) {
      return fail(fmt::format("the entry is function {} of {}", executable_.entry, executable_.functions.size()));
    }
    for (size_t i = 0; i < executable_.constants.size(); ++i) {
      if (!executable_.constants[i]) return fail(fmt::format("constant {} is empty", i));
    }
    if (const Function& main = executable_.main(); main.filled() != main.params.size()) {
      return fail(fmt::format("the entry '{}' is a closure with {} captures", main.name, main.captures));
    }
    for (const Function& function : executable_.functions) {
      TENON_TRY(check(function));
    }
    for (const AcceleratorProgram& program : executable_.programs) {
      TENON_TRY(verify_program(program, where_));
    }
    for (const NativeCode& native : executable_.natives) TENON_TRY(verify(native, where_));
    TENON_TRY(check_units());
    TENON_TRY(check_states());
    return check(executable_.graph);
  }

 private:
  std::unexpected<Diagnostic> fail(std::string what) const { return error(std::move(what), where_); }

  Status check(const Function& f) {
    auto fail_in = [&](std::string what) { return fail(fmt::format("function '{}': {}", f.name, what)); };
    for (auto* ports : {&f.params, &f.results}) {
      std::set<std::string_view> names;
      for (const Port& port : *ports) {
        if (!port.is_tensor() && !port.shape.empty())
          return fail_in(
              fmt::format("'{}' is {}, and has the shape {}", port.name, printable(port.type), to_string(port.shape)));
        Shape smallest = port.shape;
        std::ranges::replace(smallest, kAnySize, 0);
        if (!checked_bytes(port.dtype, smallest))
          return fail_in(
              fmt::format("'{}' has the shape {}, must have at most {} axes and 2^48 bytes, and no negative size",
                          port.name, to_string(port.shape), kMaxRank));
        if (!port.symbols.empty() && port.symbols.size() != port.shape.size())
          return fail_in(
              fmt::format("'{}' has {} sizes for {} axes", port.name, port.symbols.size(), port.shape.size()));
        if (!names.insert(port.name).second) return fail_in(fmt::format("two ports are named '{}'", port.name));
      }
    }
    if (f.filled() > f.registers) {
      return fail_in(fmt::format("{} parameters do not fit {} registers", f.filled(), f.registers));
    }
    if (f.code.empty()) return fail_in("it has no instructions");
    // A hostile register count would be memory that nothing else in the file pays for.
    uint64_t mentions = f.filled();
    for (size_t i = 0; i < f.code.size(); ++i) {
      auto problem = check_instruction(executable_, f, f.code[i].operation, mentions);
      if (!problem.empty()) return fail_in(fmt::format("instruction {}: {}", i, problem));
    }
    if (f.registers > mentions) {
      return fail_in(fmt::format("it has {} registers, its code mentions {} at most", f.registers, mentions));
    }
    if (falls_through(f.code.back().operation)) return fail_in("the last instruction is neither return nor jump");
    if (auto problem = check_arena(f, executable_.natives); !problem.empty()) return fail_in(std::move(problem));
    return {};
  }

  // What is wrong with the sequences of a unit's calls, if anything.
  static std::optional<std::string_view> wrong_sequences(const Unit& unit) {
    if (unit.sequences.empty() && unit.sequence_results.empty()) return std::nullopt;
    if (!unit.batched) return "its calls are joined as sequences, and it has no function for several calls";
    const auto within = [](const std::vector<bool>& flags, const std::vector<bool>& own) {
      bool all = flags.size() == own.size();
      for (size_t i = 0; all && i < own.size(); ++i) all = own[i] || !flags[i];
      return all;
    };
    if (!within(unit.sequences, unit.own) || !within(unit.sequence_results, unit.own_results))
      return "its calls share a sequence, or the sequences are not those of its parameters and results";
    if (std::ranges::find(unit.sequences, true) == unit.sequences.end())
      return "its calls are joined as sequences, and none of its parameters is one";
    return std::nullopt;
  }

  Status check_units() const {
    std::set<uint32_t> functions;
    for (size_t i = 0; i < executable_.units.size(); ++i) {
      const Unit& unit = executable_.units[i];
      const auto fail_in = [&](std::string_view what) { return fail(fmt::format("unit {}: {}", i, what)); };
      if (const auto wrong = wrong_sequences(unit)) return fail_in(*wrong);
      for (const bool of_batch : {false, true}) {
        const uint32_t index = of_batch ? unit.batched.value_or(unit.function) : unit.function;
        if (index >= executable_.functions.size())
          return fail_in(fmt::format("it is function {} of {}", index, executable_.functions.size()));
        const Function& function = executable_.functions[index];
        const size_t words = unit.own.size() + (of_batch && !unit.sequences.empty() ? 1 : 0);
        if (function.params.size() != words || function.filled() != function.params.size())
          return fail_in(fmt::format("'{}' takes {} words, the unit {}", function.name, function.filled(), words));
      }
      if (unit.own_results.empty()) return fail_in("it has no result");
      if (unit.batched && unit.joined_axes > 0)
        return fail_in("its calls are joined by rows, and it has a function for several calls");
      if (unit.joined_axes > 0 && std::ranges::find(unit.own_results, false) != unit.own_results.end())
        return fail_in("its calls are joined by rows, and share a result");
      if ((unit.batched || unit.joined_axes > 0) && std::ranges::find(unit.own, true) == unit.own.end())
        return fail_in("its calls share all parameters, and it has a function for several calls");
      if (!functions.insert(unit.function).second)
        return fail_in(fmt::format("function {} is a unit before", unit.function));
    }
    return {};
  }

  Status check_states() const {
    const Function& main = executable_.main();
    std::set<uint32_t> params, results;
    for (size_t i = 0; i < executable_.states.size(); ++i) {
      const StateTensor& state = executable_.states[i];
      const auto fail_in = [&](std::string_view what) { return fail(fmt::format("state {}: {}", i, what)); };
      if (state.param >= main.params.size() || state.result >= main.results.size())
        return fail_in(fmt::format("it is parameter {} and result {} of {} and {}", state.param, state.result,
                                   main.params.size(), main.results.size()));
      const Port &param = main.params[state.param], &result = main.results[state.result];
      if (!param.is_static() || !result.is_tensor() || result.dtype != param.dtype || result.shape != param.shape)
        return fail_in(
            fmt::format("'{}' is {}, the result that replaces it {}", param.name, type_text(param), type_text(result)));
      if (state.first &&
          (*state.first >= executable_.constants.size() || !param.accepts(executable_.constants[*state.first])))
        return fail_in(fmt::format("its first value is constant {} of {}, which is not {}", *state.first,
                                   executable_.constants.size(), type_text(param)));
      if (!params.insert(state.param).second) return fail_in(fmt::format("'{}' is a state before", param.name));
      if (!results.insert(state.result).second)
        return fail_in(fmt::format("the result '{}' replaces a state before", result.name));
    }
    return {};
  }

  Status check(const Graph& graph) const {
    for (const GraphEdge& edge : graph.edges) {
      if (edge.from >= graph.nodes.size() || edge.to >= graph.nodes.size()) {
        return fail(
            fmt::format("the graph has {} nodes and an edge from {} to {}", graph.nodes.size(), edge.from, edge.to));
      }
    }
    return {};
  }

  const Executable& executable_;
  std::string where_;
};

}  // namespace

std::vector<const spec::Config*> configurations(const Executable& executable) {
  std::vector<const spec::Config*> found;
  std::set<uint64_t> known;
  for (const AcceleratorProgram& program : executable.programs) {
    if (known.insert(spec::hash(program.config)).second) found.push_back(&program.config);
  }
  return found;
}

std::vector<std::string> file_names(std::span<const Port> ports) {
  constexpr size_t kLongest = 200;
  std::vector<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string name = ports[i].name;
    std::ranges::replace_if(
        name, [](char c) { return c == '/' || static_cast<uint8_t>(c) < ' '; }, '_');
    if (name.size() > kLongest) name.resize(kLongest);
    while (std::ranges::find(names, name) != names.end()) name += fmt::format(".{}", i);
    names.push_back(std::move(name));
  }
  return names;
}

bool Port::is_static() const { return is_tensor() && std::ranges::find(shape, kAnySize) == shape.end(); }

bool Port::accepts(const Tensor& tensor) const {
  return tensor && is_tensor() && tensor.dtype() == dtype &&
         std::ranges::equal(shape, tensor.shape(),
                            [](int64_t size, int64_t found) { return size == kAnySize || size == found; });
}

std::string to_string(std::span<const Port> ports) {
  std::string text;
  for (const Port& port : ports) text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(port));
  return text.empty() ? "none" : text;
}

std::string type_text(const Port& port) {
  if (!port.is_tensor()) return port.type;
  std::string sizes;
  for (size_t i = 0; i < port.shape.size(); ++i) {
    const std::string any = port.symbols.empty() || port.symbols[i].empty() ? "?" : port.symbols[i];
    sizes += fmt::format("{}{}", i == 0 ? "" : ", ", port.shape[i] == kAnySize ? any : std::to_string(port.shape[i]));
  }
  return fmt::format("{} ({}{})", name(port.dtype), sizes, port.shape.size() == 1 ? "," : "");
}

std::string to_string(const Port& port) { return fmt::format("{}: {}", printable(port.name), type_text(port)); }

Status verify(const Executable& executable, std::string_view where) { return Verifier(executable, where).run(); }

}  // namespace tenon::runtime
