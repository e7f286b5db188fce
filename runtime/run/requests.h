// Requests as JSON lines: the way of a server's front end to a session.
//
// A line is {"id": ID, "inputs": INPUTS}. ID is a string or an integer; without it, it is the index of the line from 1
// on. INPUTS is an object with a value for each input of the model, or the list of these values in the model's order.
// Of a tensor, a value is a number, nested lists of numbers, or {"dtype", "shape", "data"}; of other types it is what
// write_json() prints: a tuple as a list, {"constructor", "fields"}, and tensors inside as {"dtype", "shape", "data"}.
// Empty lines are no requests.
//
// The answer is the line {"id": ID, "outputs": {NAME: VALUE}}, or {"id": ID, "error": {"what", "where", "help"}}.
// Answers are in the order in which the requests end, and each is flushed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable/value.h"
#include "runtime/value_reader.h"
#include "runtime/vm/session.h"

namespace tenon::runtime {

struct JsonRequest {
  std::string id;  // as JSON
  Expected<std::vector<Value>> inputs;
};
// Reads a line. The error of the inputs has FILE:LINE:COLUMN, what is expected and what was found.
JsonRequest read_request(const Executable& executable, std::string_view line, const TextOrigin& origin);
// The answer as a line with its line end.
std::string answer_line(const Executable& executable, const std::string& id,
                        const Expected<std::vector<Value>>& answer);

// Answers the requests of a file ("-": standard input) on standard output, until its end, and all of them. At most
// `max_queue` requests are open: then the next line waits for an answer. An error where a request had one.
Status serve_requests(const Executable& executable, Session& session, const std::string& file, size_t max_queue);

}  // namespace tenon::runtime
