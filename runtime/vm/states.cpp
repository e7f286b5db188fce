#include "runtime/vm/states.h"

#include <algorithm>
#include <variant>

#include "runtime/executable/liveness.h"

namespace tenon::runtime {
namespace {

// From the end of the code, since a register may have had other values before.
std::optional<States::FirstResult> find_first_result(const Function& main, uint32_t result) {
  const auto returns = [](const Instruction& i) { return std::holds_alternative<Return>(i.operation); };
  const auto end = std::ranges::find_if(main.code, returns);
  if (end == main.code.end() || std::find_if(end + 1, main.code.end(), returns) != main.code.end()) return std::nullopt;
  States::FirstResult found{.result = result, .in = std::get<Return>(end->operation).values[result]};
  found.returned = static_cast<uint32_t>(end - main.code.begin());
  std::vector<bool> is_target(main.code.size(), false);
  for (const Instruction& i : main.code)
    for_each_target(i.operation, [&](uint32_t target) { is_target[target] = true; });
  for (uint32_t i = found.returned; i-- > 0;) {
    if (is_target[i + 1] || ends_block(main.code[i].operation)) return std::nullopt;
    bool writes = false;
    for_each_write(main.code[i].operation, [&](Register r) { writes |= r == found.in; });
    if (!writes) continue;
    found.made = i;
    return found;
  }
  return std::nullopt;
}

}  // namespace

States::States(const Executable& of_session) : executable(of_session) {
  if (executable.states.empty()) return;
  const Function& main = executable.main();
  inputs.resize(main.params.size());
  results.resize(main.results.size());
  std::vector<bool> is_input(inputs.size(), true), is_result(results.size(), true);
  for (const StateTensor& state : executable.states) {
    const Port& port = main.params[state.param];
    inputs[state.param] = state.first ? executable.constants[*state.first] : Tensor(port.dtype, port.shape);
    is_input[state.param] = is_result[state.result] = false;
  }
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (is_input[i]) other_inputs.push_back(i);
  }
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (is_result[i]) other_results.push_back(i);
  }
  if (!other_results.empty()) first_result = find_first_result(main, other_results.front());
}

void States::replace() {
  for (const StateTensor& state : executable.states) std::swap(inputs[state.param], results[state.result]);
}

void States::lose(Diagnostic& failure) {
  for (const StateTensor& state : executable.states) inputs[state.param] = Tensor();
  failure.what += "; the run had replaced some of the states already, so that all of them are lost";
  failure.help = "set them again, as to those that were saved last";
}

bool States::is_lost() const {
  return std::ranges::any_of(executable.states, [&](const StateTensor& state) { return !inputs[state.param]; });
}

void States::take_results(std::vector<Tensor>& to) {
  const Tensor none;  // assigned as a copy, it leaves a shape its capacity
  to.resize(other_results.size());
  for (size_t i = 0; i < to.size(); ++i) to[i] = results[other_results[i]];
  for (Tensor& result : results) result = none;
  for (const uint32_t i : other_inputs) inputs[i] = none;
}

std::vector<InPlace> arguments_at_last_use(const Function& function, uint32_t instruction, const CallNative& call,
                                           const Signature& signature) {
  const auto* kill =
      instruction + 1 < function.code.size() ? std::get_if<Kill>(&function.code[instruction + 1].operation) : nullptr;
  const auto has = [](const Registers& registers, Register r) { return std::ranges::count(registers, r) == 1; };
  std::vector<InPlace> found;
  for (const InPlace& pair : signature.in_place) {
    const Register from = call.args[pair.param];
    const bool ends = has(call.results, from) || (kill && has(kill->registers, from));
    const bool is_taken = std::ranges::any_of(
        found, [&](const InPlace& other) { return other.result == pair.result || other.param == pair.param; });
    if (ends && has(call.args, from) && !is_taken) found.push_back(pair);
  }
  return found;
}

}  // namespace tenon::runtime
