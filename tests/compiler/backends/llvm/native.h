// Compilation and execution of loop functions in this process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "compiler/backends/llvm/compile.h"
#include "support/try.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::native {

using loop::must_parse;

// Options for the best level of this machine only, which saves compilation.
inline Options host_options() {
  Options options;
  const auto levels = levels_of({});
  for (const std::string& level : *levels) {
    const auto host_levels = runtime::host_levels();
    if (options.levels.empty() && std::ranges::find(host_levels, level) != host_levels.end())
      options.levels.push_back(level);
  }
  return options;
}

inline Expected<std::vector<runtime::Tensor>> compile_and_run(TypeContext& context, const loop::Function& function,
                                                              std::span<const runtime::Tensor> params,
                                                              const Options& options = host_options()) {
  const loop::Function* functions[] = {&function};
  TENON_TRY_ASSIGN(code, compile(context, functions, options));
  TENON_TRY_ASSIGN(library, runtime::NativeLibrary::load(*code));
  runtime::ThreadPool pool(2);
  return library->call(size_t{0}, params, pool);
}

}  // namespace tenon::compiler::native
