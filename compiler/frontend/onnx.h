// The ONNX importer: converts ONNX models to modules.
//
// Semantics: the graph becomes the function @main, its inputs the parameters, its outputs the result (a tuple where
// there are several). Unknown sizes become dim variables, unless they are bound. Every variable has a span that names
// its node. Shape arithmetic on constants is folded; all other nodes are imported unchanged, including QuantizeLinear
// and DequantizeLinear. Functions of the model are inlined. If becomes `if`, Loop and Scan become recursive closures,
// a sequence of a known length is a tuple and any other a list, an optional value is the value itself.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct ImportOptions {
  std::string file = "model";             // for messages and spans
  std::map<std::string, int64_t> shapes;  // values of named unknown sizes, as N = 1
  // Where the files of external tensors lie, or below it; none: a model with such tensors is refused.
  std::optional<std::filesystem::path> folder = {};
};

Expected<Module> import_onnx(Context& context, std::span<const std::byte> bytes, const ImportOptions& options);
Expected<Module> load_onnx(Context& context, const std::filesystem::path& path,
                           const std::map<std::string, int64_t>& shapes = {});

// "N=1,T=64" as ImportOptions::shapes.
Expected<std::map<std::string, int64_t>> parse_shapes(std::string_view text);

// The ONNX operators that the importer supports, sorted.
std::vector<std::string> onnx_operators();

}  // namespace tenon::compiler
