// Encodes one instruction for the configuration named on the command line, decodes it, and prints it.
#include <cstdio>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"

int main(int count, char** arguments) {
  const auto config = tenon::spec::load_config(count > 1 ? arguments[1] : "default");
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().str().c_str());
    return 1;
  }
  const tenon::spec::Isa isa(*config);
  tenon::spec::native::Gemm gemm;
  gemm.first = 1;
  gemm.y = 3;
  std::vector<tenon::spec::Slot> stream;
  if (auto status = isa.encode(gemm, stream); !status) return 1;
  const auto decoded = isa.decode_all(stream, tenon::spec::Profile::kNative);
  if (!decoded) return 1;
  std::printf("%s: %s\n", config->name.c_str(), isa.disassemble(decoded->at(0).instruction).c_str());
}
