// A printed module in parts: the text and the constants of the side file.
#pragma once

#include "compiler/ir/text.h"
#include "runtime/npy.h"

namespace tenon::compiler {

struct PrintedModule {
  std::string text;
  runtime::NamedTensors side;  // the constants that are not in the text
};
PrintedModule print_parts(const Context& context, const Module& module, const PrintOptions& options);

}  // namespace tenon::compiler
