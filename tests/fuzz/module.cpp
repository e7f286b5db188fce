// Any bytes are a module in the binary form or an error; a module survives both forms.
#include <cstdlib>

#include "compiler/ir/text.h"

using namespace tenon::compiler;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Context context;
  const auto module = from_binary(context, std::as_bytes(std::span(data, size)));
  if (!module) return 0;
  const auto again = from_binary(context, to_binary(context, *module));
  if (!again || !equal(*module, *again)) std::abort();
  return 0;
}
