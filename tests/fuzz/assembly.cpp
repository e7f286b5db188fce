// Any text is assembled or refused; what was assembled prints as text that assembles to the same, and any slots decode
// or are refused.
#include <cstdlib>
#include <cstring>

#include "hw/spec/isa.h"

using namespace tenon::spec;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Isa isa(*load_config("default"));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto program = isa.assemble_all(text, "input")) {
    for (const Instruction& instruction : *program) {
      if (*isa.assemble(isa.disassemble(instruction), "again") != instruction) std::abort();
    }
  }
  std::vector<Slot> stream(size / sizeof(Slot));
  if (!stream.empty()) std::memcpy(stream.data(), data, stream.size() * sizeof(Slot));
  for (const Profile profile : {Profile::kBase, Profile::kNative}) {
    if (const auto decoded = isa.decode_all(stream, profile)) {
      for (const Decoded& d : *decoded) (void)isa.disassemble(d.instruction);
    }
  }
  return 0;
}
