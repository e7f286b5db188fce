// A composite, or a region of several, as the flat arrays of the C interface (target.h).
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/plugin/target.h"
#include "support/diagnostic.h"

namespace tenon::compiler {
class Context;
}

namespace tenon::compiler::plugin {

// Owns the arrays of a region; constants stay the module's, which outlives it.
class FlatRegion {
 public:
  FlatRegion() = default;
  FlatRegion(FlatRegion&&) = default;
  FlatRegion& operator=(FlatRegion&&) = default;

  const tn_region& region() const { return region_; }
  // By value of the region: the constant; nullptr for others.
  std::span<const runtime::Tensor* const> constants() const { return constants_; }

 private:
  friend class Flattener;
  friend std::string key_of(const FlatRegion& flat);
  struct Node {
    std::string op, origin;
    std::vector<uint32_t> inputs, outputs;
    runtime::Attrs attrs;
    std::vector<tn_attribute> attributes;
  };
  std::deque<std::vector<int64_t>> sizes_;
  std::deque<Node> nodes_;
  std::vector<tn_value> value_;
  std::vector<tn_node> node_;
  std::vector<uint32_t> row_, param_, result_;
  std::deque<std::string> layouts_;
  std::vector<const char*> layout_;
  std::vector<const runtime::Tensor*> constants_;
  tn_region region_{};
};

// What the answers of `accepts` and `boundary` may depend on: all of the region but nodes' origins and the elements of
// large constants (kComparedBytes of function_key.h).
std::string key_of(const FlatRegion& flat);

// Errors: a value is no tensor of known sizes, or a composite does more than apply operators.
// A match of the row of that index, as a function of its own.
Expected<FlatRegion> flatten_composite(const Context& context, const Module& module, const Function& composite,
                                       uint32_t row);
// `region` calls composites, between layout_transforms at its boundary or without. `rows`: the composites of the
// target's rows, in order.
Expected<FlatRegion> flatten_region(const Context& context, const Module& module, const Function& region,
                                    std::span<const std::string> rows);

}  // namespace tenon::compiler::plugin
