#include "runtime/run/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/value_parts.h"
#include "support/json.h"
#include "support/number.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

using Kind = JsonEvent::Kind;

// What the text has where an event is, without the quote of a string.
std::string found_here(std::string_view text, const JsonEvent& event) {
  const bool quoted = event.kind == Kind::kString || event.kind == Kind::kKey;
  return found_at(text, event.offset + (quoted ? 1 : 0));
}

// The tensor of a JSON text, whose dtype and rank are known.
class TensorTarget : public ValueTarget {
 public:
  TensorTarget(DType dtype, Shape shape, std::string type)
      : level_{.dtype = dtype, .shape = std::move(shape)}, type_(std::move(type)) {}
  Level level(Type /*type*/) override { return level_; }
  std::optional<Constructor> constructor(Type /*type*/, std::string_view /*name*/) override { return std::nullopt; }
  std::vector<std::string_view> constructors(Type /*type*/) override { return {}; }
  std::string str(Type /*type*/) override { return type_; }
  void make_tensor(Tensor tensor) override { made = std::move(tensor); }
  void make_tuple(size_t /*fields*/) override {}
  void make_data(Type /*type*/, uint32_t /*constructor*/, size_t /*fields*/) override {}

  Tensor made;

 private:
  Level level_;
  std::string type_;
};

Expected<Value> read_tensor(std::string_view text, const TextOrigin& origin, DType dtype, Shape shape,
                            std::string type) {
  TensorTarget target(dtype, std::move(shape), std::move(type));
  TENON_TRY(read_value_json(text, origin, nullptr, target));
  return Value(std::move(target.made));
}

// A value of another type than a tensor, of which the executable knows the constructors by name. Nothing recurs.
class DataReader {
 public:
  DataReader(const Executable& executable, const Port& port, std::string_view text, const TextOrigin& origin)
      : executable_(executable), port_(port), text_(text), origin_(origin) {}

  Expected<Value> read() {
    Status status;
    const auto fault = read_json(text_, [&](const JsonEvent& event) {
      status = on(event);
      return status.has_value();
    });
    TENON_TRY(status);
    if (fault) return error(fmt::format("expected JSON: {}", fault->problem), location(text_, fault->offset, origin_));
    return std::move(made_[0]);
  }

 private:
  struct Open {
    enum class Form : uint8_t { kTuple, kFields, kObject, kSkipped };  // kSkipped: a list of a tensor's object
    Form form = Form::kTuple;
    size_t first = 0;  // of its fields in made_
    size_t begin = 0;  // kObject: in the text
    std::string key = {}, constructor = {};
    std::optional<DType> dtype = {};
    size_t rank = 0;
  };
  using Form = Open::Form;

  Status on(const JsonEvent& event) {
    if (open_.empty()) return value(event);
    switch (open_.back().form) {
      case Form::kTuple:
        if (event.kind != Kind::kEndArray) return value(event);
        push(Value::tuple(take()));
        return {};
      case Form::kFields:
        if (event.kind != Kind::kEndArray) return value(event);
        open_.pop_back();
        return {};
      case Form::kSkipped: return skip(event);
      case Form::kObject: return member(event);
    }
    return {};
  }

  Status value(const JsonEvent& event) {
    if (event.kind != Kind::kBeginArray && event.kind != Kind::kBeginObject) {
      return fail(event,
                  "expected a list, or an object with \"constructor\" or with \"dtype\", \"shape\" and \"data\"");
    }
    const Form form = event.kind == Kind::kBeginArray ? Form::kTuple : Form::kObject;
    open_.push_back({.form = form, .first = made_.size(), .begin = event.offset});
    return {};
  }

  Status skip(const JsonEvent& event) {
    if (event.kind == Kind::kEndArray) {
      const size_t rank = open_.back().rank;
      open_.pop_back();
      if (open_.back().key == "shape") open_.back().rank = rank;
    } else if (event.kind == Kind::kBeginArray || event.kind == Kind::kBeginObject) {
      return fail(event, "expected numbers of a tensor");
    } else {
      ++open_.back().rank;
    }
    return {};
  }

  Status member(const JsonEvent& event) {
    Open& object = open_.back();
    if (event.kind == Kind::kKey) {
      object.key = event.text;
      return {};
    }
    if (event.kind == Kind::kEndObject) return end_object(event);
    if (object.key == "constructor" && event.kind == Kind::kString) {
      object.constructor = event.text;
      return {};
    }
    if (object.key == "fields" && event.kind == Kind::kBeginArray) {
      open_.push_back({.form = Form::kFields});
      return {};
    }
    if (object.key == "dtype" && event.kind == Kind::kString) {
      const auto dtype = parse_dtype(event.text);
      if (!dtype) return fail(event, "expected a dtype");
      object.dtype = *dtype;
      return {};
    }
    if ((object.key == "shape" || object.key == "data") && event.kind == Kind::kBeginArray) {
      open_.push_back({.form = Form::kSkipped});
      return {};
    }
    return fail(event, fmt::format("\"{}\" of a value is not supported, or has a wrong kind of JSON", object.key));
  }

  Status end_object(const JsonEvent& event) {
    const Open object = open_.back();
    if (object.dtype) {
      const std::string_view text = text_.substr(object.begin, event.offset + 1 - object.begin);
      TENON_TRY_ASSIGN(tensor, read_tensor(text, origin_at(text_, object.begin, origin_), *object.dtype,
                                           Shape(object.rank, -1), fmt::format("a tensor in {}", type_text(port_))));
      take();
      made_.push_back(std::move(*tensor));
      return {};
    }
    const auto found = find_constructor(executable_, object.constructor);
    if (!found) return fail(event, fmt::format("the model has no constructor '{}'", object.constructor));
    std::vector<Value> fields = take();
    const size_t count = executable_.types[found->type].constructors[found->constructor].fields;
    if (fields.size() != count) {
      return fail(event, fmt::format("expected {} field{} of {}, which has {} here", count, count == 1 ? "" : "s",
                                     object.constructor, fields.size()));
    }
    made_.push_back(Value::data(found->type, found->constructor, std::move(fields)));
    return {};
  }

  void push(Value value) { made_.push_back(std::move(value)); }
  // The fields of the innermost value, which ends.
  std::vector<Value> take() {
    const auto first = made_.begin() + static_cast<std::ptrdiff_t>(open_.back().first);
    std::vector<Value> fields(std::make_move_iterator(first), std::make_move_iterator(made_.end()));
    made_.erase(first, made_.end());
    open_.pop_back();
    return fields;
  }
  std::unexpected<Diagnostic> fail(const JsonEvent& event, const std::string& what) const {
    return error(fmt::format("{}, found {}", what, found_here(text_, event)), location(text_, event.offset, origin_),
                 fmt::format("input '{}' is {}", port_.name, type_text(port_)));
  }

  const Executable& executable_;
  const Port& port_;
  std::string_view text_;
  const TextOrigin& origin_;
  std::vector<Open> open_;
  std::vector<Value> made_;  // in postfix order
};

// The text of the value that begins at the offset, where it is neither a list nor an object.
std::string_view scalar_text(std::string_view text, size_t begin) {
  size_t end = begin + 1;
  if (text[begin] == '"') {
    while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    ++end;
  } else {
    end = std::min(text.find_first_of(",]} \t\r\n", begin), text.size());
  }
  return text.substr(begin, end - begin);
}

// The parts of a request's line: what they are is not known yet.
class RequestLine {
 public:
  struct Part {
    std::string name;  // of an input that has one
    std::string_view text;
    size_t offset = 0;  // in the line
  };

  Status read(std::string_view line, const TextOrigin& origin) {
    line_ = line;
    Status status;
    const auto fault = read_json(line, [&](const JsonEvent& event) {
      status = on(event, origin);
      return status.has_value();
    });
    TENON_TRY(status);
    if (fault)
      return error(fmt::format("expected a JSON request: {}", fault->problem), location(line, fault->offset, origin));
    if (has_inputs_) return {};
    return error("expected \"inputs\" of the request", location(line, line.size(), origin),
                 R"(a request is {"id": 1, "inputs": {"NAME": VALUE}})");
  }

  std::string id;  // as JSON; empty: none
  std::vector<Part> inputs;
  bool has_names = false;

 private:
  Status on(const JsonEvent& event, const TextOrigin& origin) {
    const bool begins = event.kind == Kind::kBeginArray || event.kind == Kind::kBeginObject;
    const bool ends = event.kind == Kind::kEndArray || event.kind == Kind::kEndObject;
    if (ends) --depth_;
    const int depth = depth_;
    if (begins) ++depth_;
    const auto wrong = [&](std::string_view what) {
      return error(fmt::format("expected {}, found {}", what, found_here(line_, event)),
                   location(line_, event.offset, origin), R"(a request is {"id": 1, "inputs": {"NAME": VALUE}})");
    };
    if (depth == 0) {
      if (event.kind == Kind::kBeginObject || event.kind == Kind::kEndObject) return {};
      return wrong("a request");
    }
    if (depth == 1) {
      if (event.kind == Kind::kKey) {
        key_ = event.text;
        if (key_ != "id" && key_ != "inputs") return wrong("\"id\" or \"inputs\"");
        return {};
      }
      if (ends) return {};
      if (key_ == "id") {
        const bool whole = event.kind == Kind::kNumber && parse_number<int64_t>(event.text);
        if (!whole && event.kind != Kind::kString) return wrong("a string or an integer as id");
        id = scalar_text(line_, event.offset);
        return {};
      }
      if (!begins || has_inputs_) return wrong("one object or list of inputs");
      has_inputs_ = true;
      has_names = event.kind == Kind::kBeginObject;
      return {};
    }
    if (depth > 2 || key_ != "inputs") return {};
    if (event.kind == Kind::kKey) {
      name_ = event.text;
    } else if (ends) {
      Part& part = inputs.back();
      part.text = line_.substr(part.offset, event.offset + 1 - part.offset);
    } else {
      inputs.push_back({has_names ? name_ : std::string(),
                        begins ? std::string_view() : scalar_text(line_, event.offset), event.offset});
    }
    return {};
  }

  std::string_view line_;
  std::string key_, name_;
  int depth_ = 0;
  bool has_inputs_ = false;
};

Expected<Value> read_input(const Executable& executable, const Port& port, const RequestLine::Part& part,
                           const TextOrigin& origin) {
  if (!port.is_tensor()) return DataReader(executable, port, part.text, origin).read();
  Shape shape = port.shape;
  std::ranges::replace(shape, kAnySize, int64_t{-1});
  return read_tensor(part.text, origin, port.dtype, std::move(shape), to_string(port));
}

Expected<std::vector<Value>> read_request_inputs(const Executable& executable, const RequestLine& request,
                                                 std::string_view line, const TextOrigin& origin) {
  const std::vector<Port>& ports = executable.main().params;
  const std::string all = fmt::format("the model takes {}", to_string(std::span<const Port>(ports)));
  std::vector<Value> values(ports.size());
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const RequestLine::Part& part = request.inputs[i];
    const TextOrigin where = origin_at(line, part.offset, origin);
    const auto found = request.has_names ? std::ranges::find(ports, part.name, &Port::name)
                                         : ports.begin() + static_cast<std::ptrdiff_t>(std::min(i, ports.size()));
    if (found == ports.end()) {
      return error(request.has_names ? fmt::format("no input is named '{}'", part.name)
                                     : fmt::format("more than {} inputs were given", ports.size()),
                   location(line, part.offset, origin), all);
    }
    const auto index = static_cast<size_t>(found - ports.begin());
    if (values[index])
      return error(fmt::format("input '{}' is given twice", part.name), location(line, part.offset, origin));
    TENON_TRY_ASSIGN(value, read_input(executable, *found, part, where));
    values[index] = std::move(*value);
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    if (values[i]) continue;
    return error(fmt::format("input '{}' is missing", ports[i].name), location(line, line.size(), origin), all);
  }
  return values;
}

}  // namespace

JsonRequest read_request(const Executable& executable, std::string_view line, const TextOrigin& origin) {
  RequestLine request;
  Status read = request.read(line, origin);
  std::string id = request.id.empty() ? std::to_string(origin.line) : request.id;
  if (!read) return {std::move(id), std::unexpected(std::move(read.error()))};
  return {std::move(id), read_request_inputs(executable, request, line, origin)};
}

std::string answer_line(const Executable& executable, const std::string& id,
                        const Expected<std::vector<Value>>& answer) {
  tenon::Json out;
  out.begin_object();
  if (answer) {
    out.key("outputs").begin_object();
    for (size_t i = 0; i < answer->size(); ++i) {
      out.key(executable.main().results[i].name);
      write_json(out, (*answer)[i], [&](const Value& value) { return view(executable, value); });
    }
  } else {
    out.key("error").begin_object().field("what", answer.error().what);
    out.field("where", answer.error().where).field("help", answer.error().help);
  }
  return fmt::format("{{\"id\":{},{}", id, out.end().end().str(true).substr(1));
}

Status serve_requests(const Executable& executable, Session& session, const std::string& file, size_t max_queue) {
  std::ifstream opened;
  const bool is_standard = file == "-";
  if (!is_standard) {
    opened.open(file);
    if (!opened) return error(fmt::format("cannot be read: {}", std::strerror(errno)), file);
  }
  std::istream& in = is_standard ? std::cin : opened;
  std::mutex mutex;  // guards all below, and standard output
  std::condition_variable answered;
  size_t open = 0, failed = 0, count = 0;
  Status written;
  const auto answer = [&](const std::string& id, const Expected<std::vector<Value>>& result) {
    const std::string line = answer_line(executable, id, result);
    const std::lock_guard lock(mutex);
    write_stdout(line);
    if (Status status = flush_output(); !status && written) written = std::move(status);
    if (!result) ++failed;
    --open;
    answered.notify_all();
  };
  // Answers come until the last request has one, also where this function ends by an exception.
  struct Drain {
    std::mutex& mutex;
    std::condition_variable& answered;
    const size_t& open;
    ~Drain() {
      std::unique_lock lock(mutex);
      answered.wait(lock, [&] { return open == 0; });
    }
  };
  TextOrigin origin{is_standard ? "standard input" : file, 0};
  {
    const Drain drain{mutex, answered, open};
    for (std::string line; std::getline(in, line);) {
      ++origin.line;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      JsonRequest request = read_request(executable, line, origin);
      {
        std::unique_lock lock(mutex);
        answered.wait(lock, [&] { return open < max_queue; });
        if (!written) break;
        ++open;
        ++count;
      }
      if (!request.inputs) {
        answer(request.id, request.inputs);
        continue;
      }
      const auto submitted = [&]() -> Status {
        try {
          TENON_TRY(session.submit(std::move(*request.inputs),
                                   [&answer, id = request.id](const auto& result) { answer(id, result); }));
          return {};
        } catch (const std::bad_alloc&) {
          return error("there is not enough memory for the request", origin.file, "", Fault::kInternal);
        }
      }();
      if (!submitted) answer(request.id, std::unexpected(submitted.error()));
    }
  }
  TENON_TRY(written);
  if (in.bad()) return error(fmt::format("cannot be read: {}", std::strerror(errno)), origin.file);
  if (failed == 0) return {};
  return error(fmt::format("{} of {} requests failed", failed, count), origin.file,
               "the others have their answers; the lines with \"error\" say why");
}

}  // namespace tenon::runtime
