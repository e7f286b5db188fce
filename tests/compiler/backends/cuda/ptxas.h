// NVIDIA's assembler, for tests: it checks PTX on machines without a GPU.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace tenon::compiler {

// The path of ptxas: $TENON_PTXAS, in $PATH, or in the wheel nvidia-cuda-nvcc of python3's packages.
inline std::optional<std::string> find_ptxas() {
  if (const char* given = std::getenv("TENON_PTXAS"); given && *given) return given;
  const std::string out = testing::TempDir() + "ptxas_path";
  const std::string probe = fmt::format(
      "command -v ptxas >{0} 2>/dev/null || python3 -c \"import glob, os, nvidia; print(next(p for d in "
      "nvidia.__path__ "
      "for p in glob.glob(os.path.join(d, '*', 'bin', 'ptxas'))))\" >{0} 2>/dev/null",
      out);
  if (std::system(probe.c_str()) != 0) return std::nullopt;
  std::string path;
  std::getline(std::ifstream(out), path);
  return path.empty() ? std::nullopt : std::optional(path);
}

constexpr const char* kNoPtxas =
    "ptxas is not installed, so that PTX is not assembled: pip install nvidia-cuda-nvcc, or set TENON_PTXAS";

// What ptxas prints; empty if it accepts the text.
inline std::string assemble(const std::string& ptxas, const std::string& ptx, const std::string& level) {
  const std::string base = testing::TempDir() + level;
  std::ofstream(base + ".ptx") << ptx;
  const int status =
      std::system(fmt::format("'{}' -arch={} {}.ptx -o {}.cubin >{}.log 2>&1", ptxas, level, base, base, base).c_str());
  std::stringstream log;
  log << std::ifstream(base + ".log").rdbuf();
  return status == 0 ? "" : fmt::format("exit status {}: {}", status, log.str());
}

}  // namespace tenon::compiler
