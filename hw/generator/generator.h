// Everything that is generated from hw/spec for one configuration: the RTL package and the reference pages.
//
// Semantics: pure functions from a valid configuration to text; equal configurations give equal text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw/spec/config.h"
#include "support/diagnostic.h"

namespace tenon::generator {

// tenon_pkg.sv: sizes, encodings, stop codes and register offsets as localparams, and the types that follow from them.
std::string package_text(const spec::Config& config);

// All sources that are generated: tenon_pkg.sv, and lists of ports that the others include.
struct SourceText {
  std::string file, text;
};
std::vector<SourceText> generated_sources(const spec::Config& config);

// The reference page of the instruction set: every format with its bits, for this configuration's widths.
std::string isa_page(const spec::Config& config);

// The reference page of the register map.
std::string register_page();

// Writes the accelerator of one configuration into `directory`: the generated sources, those of hw/rtl with
// their ordered list files.f, config.json, isa.md and registers.md. Returns the files written.
Expected<std::vector<std::filesystem::path>> generate(const spec::Config& config,
                                                      const std::filesystem::path& directory);

// The directory of the RTL sources: in the source tree, or share/tenon/hw/rtl of the installation.
Expected<std::filesystem::path> rtl_directory();

}  // namespace tenon::generator
