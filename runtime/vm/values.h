// The values that a run takes and gives, as words and back.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/executable/value.h"
#include "runtime/vm/run_state.h"

namespace tenon::runtime {

// The word of an input, which the caller owns.
Expected<Word> import_word(RunState& run, const Tensor& tensor);
Expected<Word> import_word(RunState& run, const Value& value);

// The values of objects that have been exported before, so that an object is one value.
using ExportedObjects = std::unordered_map<const Object*, Value>;
Value export_word(const Word& word, ExportedObjects& made);
// The results of the entry; an error where one is not what its port says.
Expected<std::vector<Value>> export_results(const RunState& run, std::span<const Word> words);

}  // namespace tenon::runtime
