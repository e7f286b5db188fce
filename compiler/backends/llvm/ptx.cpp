#include "compiler/backends/llvm/ptx.h"

#include <fmt/format.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Vectorize/LoadStoreVectorizer.h>

#include <algorithm>
#include <memory>

#include "compiler/backends/llvm/compile.h"
#include "compiler/backends/llvm/emit.h"
#include "compiler/backends/llvm/target.h"
#include "support/try.h"

namespace tenon::compiler::native {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";

// The entry of a kernel: makes the call (tn_call) on its stack, which becomes registers once the body is inlined.
void make_entry(llvm::Module& module, llvm::Function& body, const std::string& name, size_t buffers, size_t dims,
                const std::array<int64_t, 3>& threads) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  std::vector<llvm::Type*> params(buffers, b.getPtrTy());
  params.resize(buffers + dims, b.getInt64Ty());
  auto* entry = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), params, false),
                                       llvm::GlobalValue::ExternalLinkage, name, module);
  entry->addFnAttrs(llvm::AttrBuilder(context, body.getAttributes().getFnAttrs()));
  body.addFnAttr(llvm::Attribute::AlwaysInline);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", entry));
  auto* call_type = llvm::StructType::get(b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy());
  Value* call = b.CreateAlloca(call_type);
  Value* addresses = b.CreateAlloca(llvm::ArrayType::get(b.getPtrTy(), std::max<size_t>(buffers, 1)));
  Value* sizes = b.CreateAlloca(llvm::ArrayType::get(b.getInt64Ty(), std::max<size_t>(dims, 1)));
  for (unsigned i = 0; i < buffers; ++i)
    b.CreateStore(entry->getArg(i), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), addresses, i));
  for (unsigned i = 0; i < dims; ++i)
    b.CreateStore(entry->getArg(static_cast<unsigned>(buffers) + i),
                  b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), sizes, i));
  b.CreateStore(addresses, b.CreateStructGEP(call_type, call, 2));
  b.CreateStore(sizes, b.CreateStructGEP(call_type, call, 3));
  b.CreateCall(body.getFunctionType(), &body, {call});
  b.CreateRetVoid();

  const auto annotate = [&](const char* key, int64_t value) {
    llvm::Metadata* const fields[] = {llvm::ValueAsMetadata::get(entry), llvm::MDString::get(context, key),
                                      llvm::ConstantAsMetadata::get(b.getInt32(static_cast<uint32_t>(value)))};
    module.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(context, fields));
  };
  annotate("kernel", 1);
  annotate("maxntidx", threads[0]);
  annotate("maxntidy", threads[1]);
  annotate("maxntidz", threads[2]);
}

Status check_supported(TypeContext& context, const loop::Function& function) {
  const std::string where = fmt::format("@{}", context.name(function.name));
  for (const loop::Buffer& buffer : function.buffers) {
    if (is_ragged(buffer))
      return error(fmt::format("%{} is ragged", context.name(buffer.name)), where,
                   "GPU code supports buffers whose axes have equal sizes for all indices");
  }
  if (!function.tables.empty())
    return error(fmt::format("the sizes are those of the table '{}'", context.name(function.tables[0].name)), where,
                 "GPU code supports loops whose sizes are over the function's dims");
  return {};
}

// Inlines the bodies, puts their memory into registers, finds out which pointers are those of shared memory, unrolls
// short loops, whose loads are then together, and narrows comparisons to the 32 bits of indices.
void simplify(llvm::Module& module, const llvm::TargetMachine& compiler) {
  llvm::legacy::PassManager passes;
  passes.add(llvm::createTargetTransformInfoWrapperPass(compiler.getTargetIRAnalysis()));
  passes.add(llvm::createAlwaysInlinerLegacyPass());
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass());
  passes.add(llvm::createCFGSimplificationPass());
  passes.add(llvm::createInferAddressSpacesPass());
  passes.add(llvm::createLoopUnrollPass(2, false, false, -1, -1, 0, 0));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass(true));
  passes.add(llvm::createInstructionCombiningPass());
  passes.add(llvm::createEarlyCSEPass(true));
  passes.add(llvm::createCFGSimplificationPass());
  passes.run(module);
}

// The functions that the module calls and does not define are those of the C library and of the runtime.
Status check_defined(const llvm::Module& module, const std::string& where) {
  for (const llvm::Function& called : module) {
    if (!called.isDeclaration() || called.isIntrinsic() || called.use_empty()) continue;
    return error(fmt::format("GPU code has no function '{}'", called.getName().str()), where,
                 "compute the function on the CPU");
  }
  return {};
}

// LLVM's compiler for a level of GPUs.
struct GpuCompiler {
  const Machine* machine = nullptr;
  std::unique_ptr<llvm::TargetMachine> target;

  static Expected<GpuCompiler> of(const std::string& level) {
    const Machine* const machine = find_machine(level);
    if (!machine || machine->family != Machine::Family::kNvidia)
      return error(fmt::format("'{}' is not a GPU that code is generated for", level), {}, "expected sm_80 or sm_90");
    const llvm::Target* const target = find_llvm_target(kTriple);
    if (!target) return error("this LLVM has no NVPTX target", {}, "install an LLVM with it; Debian's has it");
    return GpuCompiler{
        machine, std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
                     kTriple, llvm::StringRef(machine->cpu), llvm::StringRef(machine->features), llvm::TargetOptions{},
                     llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default))};
  }
};

// Emits the functions into the module, without any pass: what the back end of LLVM then makes of it has no errors.
Status emit_functions(TypeContext& context, std::span<const PtxFunction> functions, const GpuCompiler& compiler,
                      llvm::Module& module, FaultSites& sites) {
  module.setTargetTriple(kTriple);
  module.setDataLayout(compiler.target->createDataLayout());
  ExternalFunctions called;
  for (const auto& [function, kernels] : functions) {
    TENON_TRY(check_supported(context, *function));
    TENON_TRY_ASSIGN(signature, signature_of(context, *function));
    for (const loop::Kernel& kernel : kernels) {
      Unit unit{
          context, module, sites, called, *compiler.machine, true, kernel.launch.threads, &kernel.launch.exchanged};
      const std::string& name = kernel.name;
      llvm::Function* body = FunctionEmitter(unit, kernel.function, *signature, {}, name + ".body").run();
      make_entry(module, *body, name, kernel.function.params.size() + kernel.function.results.size(),
                 signature->dims.size(), kernel.launch.threads);
    }
    TENON_TRY(check_defined(module, fmt::format("@{}", context.name(function->name))));
  }
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems))
    return error(fmt::format("invalid code: {}", problem), {}, "report it as a bug", Fault::kInternal);
  return {};
}

}  // namespace

Status check_ptx(TypeContext& context, std::span<const PtxFunction> functions, const std::string& level) {
  TENON_TRY_ASSIGN(compiler, GpuCompiler::of(level));
  llvm::LLVMContext llvm_context;
  llvm::Module module("tenon", llvm_context);
  FaultSites sites;
  return emit_functions(context, functions, *compiler, module, sites);
}

Expected<Ptx> make_ptx(TypeContext& context, std::span<const PtxFunction> functions, const std::string& level) {
  TENON_TRY_ASSIGN(compiler, GpuCompiler::of(level));
  llvm::LLVMContext llvm_context;
  llvm::Module module("tenon", llvm_context);
  FaultSites sites;
  TENON_TRY(emit_functions(context, functions, *compiler, module, sites));

  simplify(module, *compiler->target);
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  passes.add(llvm::createTargetTransformInfoWrapperPass(compiler->target->getTargetIRAnalysis()));
  passes.add(llvm::createLoadStoreVectorizerPass());
  if (compiler->target->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return error("this LLVM cannot emit PTX", {}, "install an LLVM with the NVPTX target");
  passes.run(module);
  return Ptx{std::string(text.data(), text.size()), sites.list};
}

}  // namespace tenon::compiler::native
