// oneDNN as a target: convolutions and matrix products with what follows them, as calls of runtime/library. No oneDNN
// is needed to compile for it.
#pragma once

#include "compiler/partition/target_record.h"

namespace tenon::compiler::dnnl {

Target make_target();
std::vector<TargetRecord> records();

}  // namespace tenon::compiler::dnnl
