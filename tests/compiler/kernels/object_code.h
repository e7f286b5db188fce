// The innermost loops of compiled kernels for x86-64, disassembled.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tenon::compiler::kernels {

struct InnerLoop {
  std::vector<std::string> instructions;  // in AT&T syntax: "vfmadd231ps\t-64(%rax), %zmm1, %zmm2"
  bool has_frame_pointer = false;         // %rbp is the frame's address

  // The number of instructions whose names begin with one of these texts.
  int count(std::initializer_list<std::string_view> names) const;
  // The instructions that load from or store to a fixed offset in the stack frame.
  std::vector<std::string> frame_accesses() const;
  // The instructions that store to an address which the loop loads from, too.
  std::vector<std::string> updates() const;
};

// All innermost loops of a shared object's code; none where it has no section of code.
std::vector<InnerLoop> inner_loops(std::span<const std::byte> object);

}  // namespace tenon::compiler::kernels
