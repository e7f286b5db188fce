// Random functions that a pattern matches.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/partition/pattern.h"
#include "runtime/tensor.h"
#include "support/random.h"

namespace tenon::compiler {
class Context;
}

namespace tenon::compiler::plugin {

struct PatternSample {
  Module module;  // with the function @main
  std::vector<runtime::Tensor> inputs;
};

// Nothing where the guesses fail, which is often so, or the pattern has branches or functions. The
// pattern may not match: sizes are guessed too.
std::optional<PatternSample> sample_of(Context& context, const GraphPattern& pattern, Random& random);

}  // namespace tenon::compiler::plugin
