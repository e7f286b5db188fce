// What surrounds the interpreter's instructions: the limits of a run, the hook, and the locations of errors.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "runtime/vm/interpreter.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr uint64_t kSlice = 1 << 14;  // instructions between two checks of the limits

}  // namespace

Status Interpreter::refill() {
  const SessionOptions& options = run_.session.options;
  if (run_.has_written_states()) left_ = UINT64_MAX;  // which only a run that ends makes good
  if (--left_ == 0) return error(fmt::format("the run takes more than {} instructions", options.max_steps));
  TENON_TRY(run_.check_stop());
  machine_.budget = std::min(left_, kSlice);
  left_ -= machine_.budget - 1;
  return {};
}

void Interpreter::put_off(PendingCalls* calls, AddRoots roots) {
  calls_ = calls;
  roots_ = std::move(roots);
}

void Interpreter::collect() {
  std::vector<std::span<const Word>> roots{run_.frames.live()};
  if (roots_) roots_(roots);
  run_.heap.collect(roots);
}

Expected<Word> Interpreter::call(const Words& function, std::span<const Word> args) {
  Frames& frames = run_.frames;
  auto registers = frames.reserve_entry(function);
  if (!registers) {
    for (const Word& word : args) run_.heap.release(word);
    return std::unexpected(std::move(registers.error()));
  }
  std::ranges::copy(args, *registers);
  Status status = frames.enter_entry(function);
  if (status) status = execute();
  Word result;
  if (status && returned_.size() == 1) result = frames.at(returned_[0]);
  if (status && result.tag == Tag::kEmpty) status = error("a unit returns no value, or several ones");
  if (!status) status.error() = located(std::move(status.error()));
  Heap::retain(result);
  launches_.abandon();
  frames.abandon(function);
  if (!status) return std::unexpected(std::move(status.error()));
  return result;
}

Status Interpreter::show(const Words& words, uint32_t index) {
  const Instruction& instruction = words.function->code[index];
  Status status = run_.session.options.hook(
      {words.function, index, &instruction, operands_.args, operands_.results, operands_.probes});
  operands_.args.clear();
  operands_.results.clear();
  operands_.probes.clear();
  // The instruction may have left its frame.
  if (!status) {
    status.error() = at_instruction(words, index, std::move(status.error()));
    located_ = true;
  }
  return status;
}

Diagnostic Interpreter::at_instruction(const Words& words, uint32_t index, Diagnostic diagnostic) const {
  const std::string& layer = words.function->code[index].layer;
  std::string location =
      fmt::format("{}: function '{}', instruction {}", run_.executable.name, words.function->name, index);
  if (!layer.empty()) location += fmt::format(" ({})", layer);
  diagnostic.where = diagnostic.where.empty() ? location : fmt::format("{}: {}", location, diagnostic.where);
  return diagnostic;
}

Diagnostic Interpreter::located(Diagnostic diagnostic) const {
  if (located_ || run_.frames.empty()) return diagnostic;
  const Words& words = *run_.frames.back().words;
  // A frame that has just been entered or left has executed nothing.
  const std::less<> before;
  const bool is_inside =
      now_ && !before(now_, words.code.data()) && before(now_, words.code.data() + words.code.size());
  const uint32_t index = is_inside ? words.origin[static_cast<size_t>(now_ - words.code.data())] : 0;
  return at_instruction(words, index, std::move(diagnostic));
}

}  // namespace tenon::runtime
