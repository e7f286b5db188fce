// Encodes one instruction for the configuration named on the command line and prints it; opens that configuration's
// behavioral simulator; and says what the compiler's front end can read.
#include <cstdio>

#include "compiler/frontend/onnx.h"
#include "driver/accelerator.h"
#include "hw/spec/config.h"
#include "hw/spec/isa.h"

namespace {

int fail(const tenon::Diagnostic& fault) {
  std::fprintf(stderr, "%s\n", fault.str().c_str());
  return static_cast<int>(fault.fault);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "default";
  const auto config = tenon::spec::load_config(name);
  if (!config) return fail(config.error());
  const tenon::spec::Isa isa(*config);
  tenon::spec::native::Gemm gemm;
  gemm.first = 1;
  gemm.y = 3;
  std::vector<tenon::spec::Slot> stream;
  if (auto status = isa.encode(gemm, stream); !status) return fail(status.error());
  const auto decoded = isa.decode_all(stream, tenon::spec::Profile::kNative);
  if (!decoded) return 3;
  std::printf("%s: %s\n", config->name.c_str(), isa.disassemble(decoded->at(0).instruction).c_str());

  const auto device = tenon::driver::open("behavioral:" + name);
  if (!device) return fail(device.error());
  std::printf("%s is ready\n", (*device)->info().uri.c_str());
  std::printf("%zu ONNX operators\n", tenon::compiler::onnx_operators().size());
}
