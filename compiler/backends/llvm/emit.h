// One loop function as LLVM IR, for one level of a processor. Internal to this folder: LLVM's headers are included
// here.
//
// Why the code is fast without LLVM's passes for loops: every index is a polynomial of loop variables, and each part of
// it is computed where its last variable gets its value (emit_index.h); small buffers with constant indices become
// registers by LLVM's SROA; vector loops are computed in lock-step (emit_statement.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/backends/llvm/emit_control.h"
#include "compiler/backends/llvm/emit_expr.h"
#include "compiler/backends/llvm/emit_frame.h"
#include "compiler/backends/llvm/emit_index.h"
#include "compiler/backends/llvm/emit_memory.h"
#include "compiler/backends/llvm/emit_statement.h"
#include "runtime/native/signature.h"

namespace tenon::compiler::native {

// An error that names the unsupported feature if the function cannot be compiled.
Status supported(TypeContext& context, const loop::Function& function);

class FunctionEmitter {
 public:
  // `tables`: the indices in the signature of the function's tables, which are its last parameters.
  FunctionEmitter(Unit& unit, const loop::Function& function, const runtime::Signature& signature,
                  std::span<const size_t> tables, std::string symbol);

  // A tn_kernel.
  llvm::Function* run();
  // The indices of the tables that the kernel reads.
  std::vector<size_t> used_tables() const;

 private:
  void load_arguments();

  const loop::Function& function_;
  const runtime::Signature& signature_;
  const std::span<const size_t> tables_;
  std::vector<llvm::Value*> table_memory_;  // of each table
  FrameEmitter frames_;
  IndexEmitter indices_;
  ControlEmitter control_;
  MemoryEmitter memory_;
  ExprEmitter exprs_;
  StatementEmitter statements_;
};

}  // namespace tenon::compiler::native
