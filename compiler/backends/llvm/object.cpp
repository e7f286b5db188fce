#include "compiler/backends/llvm/object.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

namespace tenon::compiler::native {
namespace {

// Leaves out passes that take much of the compilation and improve little in the emitter's code, whose strength
// reduction is its own (ControlEmitter::make_inductions()).
class PassFilter : public llvm::legacy::PassManagerBase {
 public:
  explicit PassFilter(llvm::legacy::PassManager& passes) : passes_(passes) {}
  void add(llvm::Pass* pass) override {
    const auto is_in = [name = std::string_view(pass->getPassName())](const auto& list) {
      return std::ranges::find(list, name) != std::end(list);
    };
    if (!is_in(kSkipped) && !is_in(kNothingToDo)) passes_.add(pass);
    else delete pass;
  }

 private:
  static constexpr std::string_view kSkipped[] = {"Loop Strength Reduction",
                                                  "Canonicalize Freeze Instructions in Loops",
                                                  "Merge contiguous icmps into a memcmp",
                                                  "Expand memcmp() to load/stores",
                                                  "Constant Hoisting",
                                                  "Replace intrinsics with calls to vector library",
                                                  "Partially inline calls to library functions",
                                                  "Interleaved Access Pass",
                                                  "Early If-Conversion",
                                                  "Early Tail Duplication",
                                                  "Tail Duplication",
                                                  "Optimize machine instruction PHIs",
                                                  "Detect Dead Lanes",
                                                  "Rename Disconnected Subregister Components",
                                                  "Machine InstCombiner",
                                                  "Machine Common Subexpression Elimination",
                                                  "Machine code sinking",
                                                  "PostRA Machine Sink",
                                                  "Live Range Shrink",
                                                  "Shrink Wrapping analysis",
                                                  "Machine Late Instructions Cleanup Pass",
                                                  "Post RA top-down list latency scheduler",
                                                  "Live DEBUG_VALUE analysis",
                                                  "X86 Partial Reduction",
                                                  "X86 Domain Reassignment Pass",
                                                  "X86 Avoid Store Forwarding Blocks",
                                                  "X86 LEA Optimize",
                                                  "X86 LEA Fixup",
                                                  "X86 Fixup SetCC",
                                                  "X86 Byte/Word Instruction Fixup",
                                                  "X86 cmov Conversion"};
  // Passes that lower features which no emitted function uses: exceptions, garbage collection, thread-local and atomic
  // memory, integers beyond 64 bits, matrix registers, profiles, debugging, hardening against speculation.
  static constexpr std::string_view kNothingToDo[] = {
      "Lower AMX intrinsics",
      "Lower AMX type for load/store",
      "Tile Register Pre-configure",
      "Tile Register Configure",
      "X86 Lower Tile Copy",
      "Expand large div/rem",
      "Expand large fp convert",
      "Expand Atomic instructions",
      "Lower Garbage Collection Instructions",
      "Shadow Stack GC Lowering",
      "Fixup Statepoint Caller Saved",
      "Analyze Machine Code For Garbage Collection",
      "StackMap Liveness Analysis",
      "Expand vector predication intrinsics",
      "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
      "Insert fentry calls",
      "Insert XRay ops",
      "Implement the 'patchable-function' attribute",
      "Pseudo Probe Inserter",
      "TLS Variable Hoist",
      "Local Dynamic TLS Access Clean-up",
      "Expand indirectbr instructions",
      "Exception handling preparation",
      "Prepare callbr",
      "Contiguously Lay Out Funclets",
      "X86 Windows Fixup Buffer Security Check",
      "Safe Stack instrumentation pass",
      "Insert stack protectors",
      "Insert KCFI indirect call checks",
      "Check CFA info and insert CFI instructions if needed",
      "Machine Sanitizer Binary Metadata",
      "Remove Redundant DEBUG_VALUE analysis",
      "Stack Frame Layout Analysis",
      "Register Allocation Pass Scoring",
      "X86 Insert Cache Prefetches",
      "X86 Discriminate Memory Operands",
      "X86 insert wait instruction",
      "X86 Atom pad short functions",
      "X86 speculative load hardening",
      "X86 Load Value Injection (LVI) Load Hardening",
      "X86 Load Value Injection (LVI) Ret-Hardening",
      "X86 Speculative Execution Side Effect Suppression",
      "X86 Indirect Branch Tracking",
      "X86 Indirect Thunks",
      "X86 Return Thunks"};
  llvm::legacy::PassManager& passes_;
};

}  // namespace

llvm::TargetMachine& machine_for(const Target& target, const Level& level) {
  thread_local std::map<std::tuple<std::string, std::string, std::string>, std::unique_ptr<llvm::TargetMachine>>
      machines;
  auto& machine = machines[{target.triple, std::string(level.cpu), std::string(level.features)}];
  if (!machine)
    machine.reset(target.target->createTargetMachine(target.triple, llvm::StringRef(level.cpu),
                                                     llvm::StringRef(level.features), llvm::TargetOptions{},
                                                     llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  return *machine;
}

llvm::SmallVector<char, 0> make_object(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager passes;
  // Must be the first pass: a pass that requires it earlier creates one without a processor, which all others then use.
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass());
  passes.add(llvm::createCFGSimplificationPass());
  PassFilter chosen(passes);
  [[maybe_unused]] const bool failed =
      machine.addPassesToEmitFile(chosen, out, nullptr, llvm::CodeGenFileType::ObjectFile);
  assert(!failed && "find_target() has checked that the target can");
  passes.run(module);
  return object;
}

}  // namespace tenon::compiler::native
