// Any bytes are a model that verifies, or an error.
#include <cstdlib>
#include <span>

#include "compiler/frontend/onnx.h"
#include "compiler/ir/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::compiler::Context context;
  const auto module =
      tenon::compiler::import_onnx(context, std::as_bytes(std::span(data, size)), {.file = "input", .shapes = {}});
  if (module && !tenon::compiler::verify(context, *module)) std::abort();
  return 0;
}
