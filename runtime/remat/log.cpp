// Reads logs line by line, resolves names, and refuses everything that a replay could not rely on.
#include "runtime/remat/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "support/file.h"
#include "support/json.h"
#include "support/number.h"
#include "support/printable.h"
#include "support/try.h"

namespace tenon::runtime::remat {
namespace {

using nlohmann::json;

constexpr std::string_view kInstructions =
    "ANNOTATE, CONSTANT, MEMORY, CALL, ALIAS, MUTATE, COPY, COPY_FROM and RELEASE";

class LogReader {
 public:
  LogReader(std::string_view text, std::string_view name) : text_(text) { log_.name = name; }

  Expected<StepLog> read() {
    TENON_TRY(skip_to_start());
    while (true) {
      TENON_TRY_ASSIGN(more, next_line());
      if (!*more) break;
      TENON_TRY_ASSIGN(instruction, text_member("INSTRUCTION"));
      TENON_TRY(read_instruction(*instruction));
    }
    if (log_.calls.empty()) return error("the log has no CALL, must have one at least", log_.name, kHelp);
    std::vector<char> added(log_.bytes.size());
    for (const uint32_t tensor : named_) {
      if (references_[tensor] > 0 && !std::exchange(added[tensor], 1)) log_.results.push_back(tensor);
    }
    return std::move(log_);
  }

 private:
  static constexpr const char* kHelp = "record the step again, or see runtime/remat/log.h for the format";

  struct Name {
    uint32_t tensor = 0;
    size_t order = 0;     // in named_
    size_t released = 0;  // the line
  };

  std::unexpected<Diagnostic> fail(std::string what) const {
    return error(std::move(what), fmt::format("{}:{}", log_.name, line_number_), kHelp);
  }

  // Puts the next line that is not empty into line_; false at the end.
  Expected<bool> next_line() {
    while (at_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      at_ = end + 1;
      ++line_number_;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      try {
        line_ = json::parse(line);
      } catch (const json::exception& problem) {
        return fail(fmt::format("not valid JSON: {}", json_problem(problem.what())));
      }
      if (!line_.is_object()) return fail(fmt::format("the line is a JSON {}, must be an object", line_.type_name()));
      return true;
    }
    return false;
  }

  // A log without START is a step as a whole.
  Status skip_to_start() {
    while (true) {
      TENON_TRY_ASSIGN(more, next_line());
      if (!*more) break;
      const auto is = [&](const char* key, std::string_view value) {
        const auto found = line_.find(key);
        return found != line_.end() && found->is_string() && found->get_ref<const std::string&>() == value;
      };
      if (!is("INSTRUCTION", "ANNOTATE") || !is("ANNOTATION", "START")) continue;
      has_start_ = true;
      return {};
    }
    at_ = line_number_ = 0;
    return {};
  }

  Expected<const json*> member(const char* key) const {
    const auto found = line_.find(key);
    if (found == line_.end()) return fail(fmt::format("the line has no {}", key));
    return &*found;
  }
  std::unexpected<Diagnostic> wrong_member(const char* key, const json& value, std::string_view expected) const {
    // A list or an object may be nested without a limit, and dump() is recursive.
    const std::string text = value.is_structured() ? fmt::format("a JSON {}", value.type_name())
                                                   : value.dump(-1, ' ', true, json::error_handler_t::replace);
    return fail(fmt::format("{} is {}, must be {}", key, printable(text), expected));
  }
  Expected<std::string> text_member(const char* key) const {
    TENON_TRY_ASSIGN(value, member(key));
    if (!(*value)->is_string()) return wrong_member(key, **value, "a string");
    return (*value)->get<std::string>();
  }
  Expected<int64_t> integer(const char* key, const json& value, const Bounds<int64_t>& bounds) const {
    std::optional<int64_t> number;
    if (value.is_string()) number = parse_number<int64_t>(value.get_ref<const std::string&>());
    else if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
      number.reset();
    else if (value.is_number_integer()) number = value.get<int64_t>();
    if (!number || !bounds.contain(*number)) return wrong_member(key, value, bounds.str());
    return *number;
  }
  Expected<int64_t> integer_member(const char* key, const Bounds<int64_t>& bounds) const {
    TENON_TRY_ASSIGN(value, member(key));
    return integer(key, **value, bounds);
  }
  Expected<const json*> list_member(const char* key) const {
    TENON_TRY_ASSIGN(value, member(key));
    if (!(*value)->is_array()) return wrong_member(key, **value, "a list");
    return *value;
  }
  Expected<std::vector<std::string>> names_member(const char* key) const {
    TENON_TRY_ASSIGN(list, list_member(key));
    std::vector<std::string> names;
    for (const json& value : **list) {
      if (!value.is_string()) return wrong_member(key, value, "a list of strings");
      names.push_back(value.get<std::string>());
    }
    return names;
  }

  // A sum of the log after this value, within the limit.
  Status add(int64_t value, int64_t& sum, std::string_view what) const {
    if (value > kLargestSum - sum) {
      return fail(fmt::format("the {} of the log are more than {} in sum", what, kLargestSum));
    }
    sum += value;
    return {};
  }

  Expected<Name*> find(const std::string& name) {
    const auto found = names_.find(name);
    if (found == names_.end()) return fail(fmt::format("no tensor is called \"{}\" here", printable(name)));
    if (found->second.released > 0) {
      return fail(fmt::format("\"{}\" was released in line {}", printable(name), found->second.released));
    }
    return &found->second;
  }
  Status define(const std::string& name, uint32_t tensor) {
    const auto [entry, added] = names_.try_emplace(name, Name{tensor, named_.size(), 0});
    if (!added) return fail(fmt::format("\"{}\" is defined a second time", printable(name)));
    named_.push_back(tensor);
    return {};
  }
  void event(StepLog::Kind kind, size_t index) { log_.events.push_back({kind, static_cast<uint32_t>(index)}); }
  void drop(uint32_t tensor) {
    --references_[tensor];
    event(StepLog::Kind::kRelease, tensor);
  }
  Expected<uint32_t> add_tensor(int64_t bytes) {
    if (log_.bytes.size() == std::numeric_limits<uint32_t>::max()) return fail("the log has too many tensors");
    log_.bytes.push_back(bytes);
    references_.push_back(1);
    return static_cast<uint32_t>(log_.bytes.size() - 1);
  }

  // Reads the next line, which must have this instruction and be about this name.
  Status require_line(std::string_view instruction, const std::string& name) {
    TENON_TRY_ASSIGN(more, next_line());
    if (!*more) {
      return fail(fmt::format("the log ends here, expected {} of \"{}\"", instruction, printable(name)));
    }
    TENON_TRY_ASSIGN(found, text_member("INSTRUCTION"));
    if (*found != instruction) {
      return fail(fmt::format("expected {} of \"{}\", got {}", instruction, printable(name), printable(*found)));
    }
    TENON_TRY_ASSIGN(other, text_member("NAME"));
    if (*other != name) {
      return fail(
          fmt::format("expected {} of \"{}\", got that of \"{}\"", instruction, printable(name), printable(*other)));
    }
    return {};
  }
  Expected<int64_t> read_memory(const std::string& name) {
    TENON_TRY(require_line("MEMORY", name));
    return integer_member("MEMORY", {0, kLargestSum});
  }

  Status read_instruction(const std::string& instruction) {
    if (instruction == "ANNOTATE") {
      TENON_TRY_ASSIGN(annotation, text_member("ANNOTATION"));
      if (*annotation == "START") return fail("the step starts a second time");
      return {};
    }
    if (instruction == "CONSTANT") return read_constant();
    if (instruction == "CALL") return read_call();
    if (instruction == "MUTATE") return read_mutate();
    if (instruction == "RELEASE") return read_release();
    if (instruction == "COPY" || instruction == "COPY_FROM") return read_copy(instruction == "COPY");
    if (instruction == "MEMORY" || instruction == "ALIAS") {
      return fail(fmt::format("{} does not follow the line of its CONSTANT or CALL", instruction));
    }
    return fail(fmt::format("INSTRUCTION is \"{}\", must be one of {}", printable(instruction), kInstructions));
  }

  Status read_constant() {
    TENON_TRY_ASSIGN(name, text_member("NAME"));
    TENON_TRY_ASSIGN(bytes, read_memory(*name));
    TENON_TRY(add(*bytes, bytes_, "bytes"));
    TENON_TRY_ASSIGN(tensor, add_tensor(*bytes));
    TENON_TRY(define(*name, *tensor));
    event(StepLog::Kind::kConstant, *tensor);
    return {};
  }

  // The name, the arguments and the time of a CALL or MUTATE.
  Expected<StepLog::Call> read_operator() {
    StepLog::Call call;
    TENON_TRY_ASSIGN(name, text_member("NAME"));
    TENON_TRY_ASSIGN(args, names_member("ARGS"));
    TENON_TRY_ASSIGN(time, integer_member("TIME", {0, kLargestSum}));
    TENON_TRY(add(*time, time_, "times"));
    call.name = std::move(*name);
    call.cost = *time;
    for (const std::string& arg : *args) {
      TENON_TRY_ASSIGN(found, find(arg));
      call.args.push_back((*found)->tensor);
    }
    return call;
  }

  Status read_call() {
    TENON_TRY_ASSIGN(call, read_operator());
    TENON_TRY_ASSIGN(names, names_member("RESULT"));
    if (names->empty()) return fail("RESULT is empty, must have one name at least");
    for (const std::string& name : *names) {
      TENON_TRY_ASSIGN(bytes, read_memory(name));
      TENON_TRY(require_line("ALIAS", name));
      TENON_TRY_ASSIGN(alias, integer_member("ALIAS", {-1, static_cast<int64_t>(call->args.size()) - 1}));
      NewResult& result = call->results.emplace_back();
      int64_t storage_bytes = *bytes;
      if (*alias >= 0) {
        result.view_of = static_cast<uint32_t>(*alias);
        storage_bytes = log_.bytes[call->args[*result.view_of]];
      } else {
        TENON_TRY(add(*bytes, bytes_, "bytes"));
        result.bytes = *bytes;
      }
      TENON_TRY_ASSIGN(tensor, add_tensor(storage_bytes));
      TENON_TRY(define(name, *tensor));
    }
    event(StepLog::Kind::kCall, log_.calls.size());
    log_.calls.push_back(std::move(*call));
    return {};
  }

  Status read_mutate() {
    TENON_TRY_ASSIGN(call, read_operator());
    TENON_TRY_ASSIGN(args, names_member("ARGS"));
    TENON_TRY_ASSIGN(indices, list_member("MUTATE"));
    if ((*indices)->empty()) return fail("MUTATE is empty, must have one index at least");
    std::vector<uint32_t> old_tensors;
    std::vector<Name*> renamed;
    for (const json& value : **indices) {
      TENON_TRY_ASSIGN(index, integer("MUTATE", value, {0, static_cast<int64_t>(call->args.size()) - 1}));
      TENON_TRY_ASSIGN(found, find((*args)[static_cast<size_t>(*index)]));
      if (std::ranges::find(renamed, *found) != renamed.end()) {
        return fail(fmt::format("MUTATE names argument {} twice", *index));
      }
      renamed.push_back(*found);
      const int64_t bytes = log_.bytes[(*found)->tensor];
      TENON_TRY(add(bytes, bytes_, "bytes"));
      call->results.push_back({bytes, std::nullopt});
      TENON_TRY_ASSIGN(tensor, add_tensor(bytes));
      old_tensors.push_back(std::exchange((*found)->tensor, *tensor));
      named_[(*found)->order] = *tensor;
    }
    event(StepLog::Kind::kCall, log_.calls.size());
    log_.calls.push_back(std::move(*call));
    for (const uint32_t tensor : old_tensors) drop(tensor);
    return {};
  }

  Status read_release() {
    TENON_TRY_ASSIGN(name, text_member("NAME"));
    if (has_start_ && !names_.contains(*name)) {
      ++log_.ignored_releases;
      return {};
    }
    TENON_TRY_ASSIGN(found, find(*name));
    (*found)->released = line_number_;
    drop((*found)->tensor);
    return {};
  }

  Status read_copy(bool is_new) {
    TENON_TRY_ASSIGN(to, text_member("DST"));
    TENON_TRY_ASSIGN(from, text_member("SRC"));
    TENON_TRY_ASSIGN(source, find(*from));
    const uint32_t tensor = (*source)->tensor;
    // The new reference comes first, so that a copy onto itself keeps its tensor.
    ++references_[tensor];
    event(StepLog::Kind::kRetain, tensor);
    if (is_new) return define(*to, tensor);
    TENON_TRY_ASSIGN(target, find(*to));
    drop(std::exchange((*target)->tensor, tensor));
    named_[(*target)->order] = tensor;
    return {};
  }

  std::string_view text_;
  size_t at_ = 0, line_number_ = 0;
  bool has_start_ = false;
  json line_;
  StepLog log_;
  int64_t bytes_ = 0, time_ = 0;
  std::unordered_map<std::string, Name> names_;
  std::vector<uint32_t> named_;      // the tensor of each name, in the order of the definitions
  std::vector<int64_t> references_;  // of each tensor
};

}  // namespace

int64_t StepLog::constant_bytes() const {
  int64_t sum = 0;
  for (const Event& event : events) {
    if (event.kind == Kind::kConstant) sum += bytes[event.index];
  }
  return sum;
}

int64_t StepLog::cost() const {
  int64_t sum = 0;
  for (const Call& call : calls) sum += call.cost;
  return sum;
}

std::vector<uint32_t> StepLog::first_results() const {
  std::vector<uint32_t> first(calls.size());
  uint32_t next = 0;
  for (const Event& event : events) {
    if (event.kind == Kind::kConstant) ++next;
    if (event.kind != Kind::kCall) continue;
    first[event.index] = next;
    next += static_cast<uint32_t>(calls[event.index].results.size());
  }
  return first;
}

Expected<StepLog> parse_log(std::string_view text, std::string_view name) { return LogReader(text, name).read(); }

Expected<StepLog> read_log(const std::string& path) {
  TENON_TRY_ASSIGN(text, read_text(path));
  return parse_log(*text, path);
}

}  // namespace tenon::runtime::remat
