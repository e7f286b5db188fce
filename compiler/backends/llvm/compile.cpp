#include "compiler/backends/llvm/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

#include "compiler/backends/llvm/emit.h"
#include "compiler/backends/llvm/link.h"
#include "compiler/backends/llvm/object.h"
#include "compiler/loop/bindings.h"
#include "compiler/loop/in_place.h"
#include "compiler/loop/tables.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::native {
namespace {

// The tables that tn_library_get returns.
class LibraryTable {
 public:
  explicit LibraryTable(llvm::Module& module) : module_(module), b_(module.getContext()) {}

  void make(std::span<const runtime::NativeKernel> kernels, std::span<const Level> levels,
            const std::vector<std::vector<llvm::Function*>>& functions, const FaultSites& sites,
            const ExternalFunctions& called) {
    const bool has_tables =
        std::ranges::any_of(kernels, [](const auto& kernel) { return !kernel.signature.tables.empty(); });
    llvm::Type *pointer = b_.getPtrTy(), *integer = b_.getInt32Ty();
    std::vector<llvm::Constant*> names, variants, fault_sites;
    for (const auto& kernel : kernels) names.push_back(text(kernel.name));
    auto* variant_type = llvm::StructType::get(pointer, pointer);
    for (size_t i = 0; i < levels.size(); ++i) {
      const std::vector<llvm::Constant*> row(functions[i].begin(), functions[i].end());
      variants.push_back(
          llvm::ConstantStruct::get(variant_type, {text(std::string(levels[i].name)), array(pointer, row)}));
    }
    auto* site_type = llvm::StructType::get(integer, pointer);
    for (const auto& [fault, where] : sites.list)
      fault_sites.push_back(llvm::ConstantStruct::get(site_type, {count(fault), text(where)}));
    std::vector<llvm::Constant*> parts{count(has_tables            ? TN_ABI
                                             : called.list.empty() ? 1
                                                                   : TN_ABI_FUNCTIONS),
                                       count(kernels.size()),
                                       array(pointer, names),
                                       count(variants.size()),
                                       count(fault_sites.size()),
                                       array(variant_type, variants),
                                       array(site_type, fault_sites)};
    if (has_tables || !called.list.empty()) {  // without them older runtimes accept the library, too
      auto* called_type = llvm::StructType::get(pointer, pointer);
      std::vector<llvm::Constant*> rows;
      for (const auto& [name, caller] : called.list)
        rows.push_back(llvm::ConstantStruct::get(called_type, {text(name), text(caller)}));
      parts.push_back(count(rows.size()));
      parts.push_back(array(called_type, rows));
    }
    if (has_tables) parts.insert(parts.end(), 3, llvm::ConstantPointerNull::get(b_.getPtrTy()));  // doc, open, close
    auto* library = global(llvm::ConstantStruct::getAnon(parts));
    auto* get = llvm::Function::Create(llvm::FunctionType::get(pointer, false), llvm::GlobalValue::ExternalLinkage,
                                       "tn_library_get", module_);
    // Compiled for the last level's processor: initializing another one takes a millisecond.
    if (!functions.back().empty())
      get->addFnAttrs(llvm::AttrBuilder(b_.getContext(), functions.back()[0]->getAttributes().getFnAttrs()));
    llvm::IRBuilder<>(llvm::BasicBlock::Create(b_.getContext(), "", get)).CreateRet(library);
  }

 private:
  llvm::Constant* count(size_t value) { return b_.getInt32(static_cast<uint32_t>(value)); }
  llvm::Constant* global(llvm::Constant* value) {
    return new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::InternalLinkage, value);
  }
  llvm::Constant* array(llvm::Type* type, const std::vector<llvm::Constant*>& values) {
    return global(llvm::ConstantArray::get(llvm::ArrayType::get(type, values.size()), values));
  }
  llvm::Constant* text(const std::string& string) {
    return global(llvm::ConstantDataArray::getString(b_.getContext(), string));
  }

  llvm::Module& module_;
  llvm::IRBuilder<> b_;
};

// A function for one level, and the indices of its tables, which are its last parameters, in the signature.
struct LevelFunction {
  loop::Function function;
  std::vector<size_t> tables;
};

// The functions of each level, as they are emitted; adds their tables to the signatures.
Expected<std::vector<std::vector<LevelFunction>>> prepare(TypeContext& context,
                                                          std::span<const loop::Function* const> functions,
                                                          std::span<const Level> levels, const Options& options,
                                                          runtime::NativeCode& code) {
  std::vector<std::vector<LevelFunction>> prepared;
  for (const Level& level : levels) {
    auto& row = prepared.emplace_back();
    const auto of_level = options.overrides.find(std::string(level.name));
    for (size_t i = 0; i < functions.size(); ++i) {
      const loop::Function* function = functions[i];
      if (of_level != options.overrides.end()) {
        if (const auto found = of_level->second.find(i); found != of_level->second.end()) function = found->second;
      }
      LevelFunction& result = row.emplace_back(loop::unbound(*function));
      loop::remove_single_iterations(context, result.function);
      loop::add_offset_tables(context, result.function);
      if (result.function.tables.empty()) continue;
      TENON_TRY_ASSIGN(signature, signature_of(context, result.function));
      auto& tables = code.kernels[i].signature.tables;
      for (size_t k = 0; k < signature->tables.size(); ++k) {
        const auto found = std::ranges::find(tables, signature->tables[k]);
        result.tables.push_back(static_cast<size_t>(found - tables.begin()));
        if (found == tables.end()) tables.push_back(signature->tables[k]);
        // A dim applies the table as it does the elements of a parameter.
        const loop::Table& table = result.function.tables[k];
        loop::Buffer buffer{.name = table.name, .dtype = runtime::DType::kI64, .axes = {{Symbol{}, table.count}}};
        result.function.params.push_back(static_cast<BufferId>(result.function.buffers.size()));
        result.function.buffers.push_back(std::move(buffer));
      }
    }
  }
  return prepared;
}

}  // namespace

Expected<std::vector<std::string>> levels_of(const std::string& triple) {
  TENON_TRY_ASSIGN(target, find_target(triple));
  std::vector<std::string> names;
  for (const Level& level : target->levels) names.emplace_back(level.name);
  return names;
}

Expected<runtime::NativeCode> compile(TypeContext& context, std::span<const loop::Function* const> functions,
                                      const Options& options) {
  TENON_TRY_ASSIGN(target, find_target(options.triple));
  std::vector<Level> levels;
  for (const std::string& name : options.levels) {
    const auto found = std::ranges::find(target->levels, name, &Level::name);
    if (found == target->levels.end()) {
      TENON_TRY_ASSIGN(supported_levels, levels_of(target->triple));
      return error(fmt::format("{} has no level '{}'", target->triple, name), {},
                   fmt::format("the levels are {}", fmt::join(*supported_levels, ", ")));
    }
    levels.push_back(*found);
  }
  if (levels.empty()) {
    levels = target->levels;
    if (!std::ranges::any_of(functions, [](const loop::Function* function) { return loop::has_dots(*function); }))
      std::erase_if(levels, [](const Level& level) { return level.for_dots(); });
  }

  runtime::NativeCode code;
  code.triple = target->triple;
  for (const Level& level : levels) code.levels.emplace_back(level.name);
  std::set<std::string> names;
  for (const loop::Function* function : functions) {
    const std::string name(context.name(function->name));
    if (!names.insert(name).second) return error(fmt::format("two loop functions have the name @{}", name));
    TENON_TRY(supported(context, *function));
    TENON_TRY_ASSIGN(signature, signature_of(context, *function));
    signature->tables.clear();  // those of the functions of all levels follow
    signature->in_place = loop::find_in_place(context, loop::unbound(*function));
    code.kernels.push_back({name, std::move(*signature)});
  }
  for (const auto& [level, overrides] : options.overrides) {
    for (const auto& [i, function] : overrides) {
      auto& pairs = code.kernels[i].signature.in_place;
      if (pairs.empty()) continue;
      const auto of_level = loop::find_in_place(context, loop::unbound(*function));
      std::erase_if(pairs, [&](const runtime::InPlace& pair) { return !std::ranges::count(of_level, pair); });
    }
  }

  llvm::LLVMContext llvm_context;
  llvm::Module module("tenon", llvm_context);
  llvm::TargetMachine& machine = machine_for(*target, levels.back());
  module.setTargetTriple(target->triple);
  module.setDataLayout(machine.createDataLayout());
  TENON_TRY_ASSIGN(prepared, prepare(context, functions, levels, options, code));
  FaultSites sites;
  ExternalFunctions called;
  std::vector<std::vector<llvm::Function*>> kernels;
  std::vector<std::set<size_t>> used(functions.size());  // of the tables of each function
  for (const Level& level : levels) {
    auto& row = kernels.emplace_back();
    Unit unit{context, module, sites, called, level, options.contract};
    for (size_t i = 0; i < functions.size(); ++i) {
      runtime::NativeKernel& kernel = code.kernels[i];
      const LevelFunction& function = (*prepared)[kernels.size() - 1][i];
      FunctionEmitter emitter(unit, function.function, kernel.signature, function.tables,
                              fmt::format("{}.{}", kernel.name, level.name));
      row.push_back(emitter.run());
      for (const size_t table : emitter.used_tables()) used[i].insert(table);
    }
  }
  for (size_t i = 0; i < used.size(); ++i) {
    auto& tables = code.kernels[i].signature.tables;
    for (size_t table = 0; table < tables.size(); ++table)
      if (!used[i].contains(table)) tables[table] = {};
  }
  LibraryTable(module).make(code.kernels, levels, kernels, sites, called);
  if constexpr (TENON_SANITIZED) {  // in other builds too slow: a thirtieth of the compilation
    [[maybe_unused]] const bool is_broken = llvm::verifyModule(module, &llvm::errs());
    assert(!is_broken);
  }
  const auto object = make_object(module, machine);
  TENON_TRY_ASSIGN(shared, link({object.data(), object.size()}));
  code.object = std::move(*shared);
  return code;
}

}  // namespace tenon::compiler::native
