// Any bytes are the side file of a module or an error.
#include "compiler/ir/text.h"

using namespace tenon::compiler;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kText =
      "#[version = \"1\", side = \"s.npz\"]\n"
      "const $w: Tensor[(2, 2), f32] = side;\n"
      "def @main() -> Tensor[(2, 2), f32] { $w }\n";
  Context context;
  (void)parse(context, kText, std::as_bytes(std::span(data, size)));
  return 0;
}
