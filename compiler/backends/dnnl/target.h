// oneDNN as a target: convolutions and matrix products with what follows them, as calls of runtime/library. No oneDNN
// is needed to compile for it.
#pragma once

#include "compiler/partition/target.h"

namespace tenon::compiler::dnnl {

Target make_target();

}  // namespace tenon::compiler::dnnl
