// Executes PTX on the CPU, for tests on machines without a GPU: the subset that the back end emits, without the
// instructions of tensor cores (NVIDIA, "Parallel Thread Execution ISA").
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::compiler {

class PtxMachine {
 public:
  // Errors: an instruction that the machine does not have.
  static Expected<PtxMachine> load(const std::string& text);
  PtxMachine(PtxMachine&&) noexcept;
  ~PtxMachine();

  // Executes all threads of all blocks. The threads of a warp go on in lock-step, the lowest address first; warps run
  // one after another from barrier to barrier. `arguments`: of 64 bits; pointers are the host's. Errors: no such entry;
  // a shuffle that some thread of a warp does not execute; a barrier that some thread does not reach.
  Status launch(const std::string& entry, const std::array<uint32_t, 3>& grid, const std::array<uint32_t, 3>& threads,
                const std::vector<uint64_t>& arguments);

  struct Program;

 private:
  explicit PtxMachine(std::unique_ptr<Program> program);

  std::unique_ptr<Program> program_;
};

}  // namespace tenon::compiler
