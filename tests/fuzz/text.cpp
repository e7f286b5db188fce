// Any text is a module or an error; a module prints as text that parses to the same.
#include <cstdlib>

#include "compiler/ir/text.h"

using namespace tenon::compiler;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Context context;
  const auto module = parse(context, std::string_view(reinterpret_cast<const char*>(data), size));
  if (!module) return 0;
  const Text printed = print(context, *module);
  const auto again = parse(context, printed.text, printed.side);
  if (!again || !equal(*module, *again)) std::abort();
  return 0;
}
