#include "hw/spec/arguments.h"

#include "hw/spec/registers.h"

namespace tenon::spec {

std::vector<Argument> arguments() {
  std::vector<Argument> list = {
      {"instructions", reg::kInstructions, true}, {"count", reg::kCount, false}, {"mode", reg::kMode, false}};
  for (uint32_t i = 0; i < kBases; ++i) list.push_back({"base" + std::to_string(i), reg::kBase0 + 8 * i, true});
  return list;
}

}  // namespace tenon::spec
