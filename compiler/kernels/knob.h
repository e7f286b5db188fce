// Tuning knobs: what the loops of an operator leave open between programs that compute the same results in different
// times.
//
// Semantics: a lowering or a template calls KernelKnobs::choose() with the options of a knob and the cost of each by
// the cost model. The cheapest option is selected, the first one of equal cost, unless measurements say otherwise: a
// record, or a search that tries one option after the other (compiler/tune). All options give the same results bit for
// bit: each sum has the same terms in the same order. The options of a later knob may depend on the options of earlier
// ones. Names that are not an option, as those in a record of an older version, are ignored: settings make a kernel
// slow at worst.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/schedules/option.h"

namespace tenon::compiler::kernels {

using schedules::Option;
struct Knob {
  std::string name;
  std::vector<Option> options;
  size_t selected = 0;  // index into options
};

// Names of options by names of knobs.
using KnobSettings = std::map<std::string, std::string, std::less<>>;
std::string str(const KnobSettings& settings);            // "outer=weights tile=14x2"
KnobSettings parse_knob_settings(std::string_view text);  // ignores tokens without '='

// An operator with everything that its knobs depend on: attributes that differ from their defaults, types, and which
// arguments are constant. "conv2d(Tensor[(1, 3, 8, 8), f32], const Tensor[(4, 3, 3, 3), f32], padding=(1, 1, 1, 1))".
std::string operator_key(const Operator& op, const Attrs& attrs, const std::vector<std::string>& args);

// Returns the measured settings of an operator by its key; empty settings where none were measured.
using KnobLookup = std::function<KnobSettings(const std::string& key)>;

// The knobs of one operator of a kernel.
struct OperatorKnobs {
  std::string key;
  std::vector<Knob> knobs;
  KnobSettings settings() const;
};

// The knobs of a kernel's operators while its loops are emitted and scheduled.
class KernelKnobs {
 public:
  // The next operator; `settings` preselects options.
  void begin_operator(std::string key, KnobSettings settings);
  // The index of the operator that began last.
  size_t current();
  // The index of the selected option of a knob of an operator; requires at least one option.
  size_t choose(size_t op, std::string_view knob, std::vector<Option> options);
  // Those of operators that have knobs.
  std::vector<OperatorKnobs> take() &&;

 private:
  std::vector<OperatorKnobs> operators_;
  std::vector<KnobSettings> settings_;  // of each operator
};

}  // namespace tenon::compiler::kernels
