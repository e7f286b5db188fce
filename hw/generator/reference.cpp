// The reference pages of instruction set and registers, as Markdown.
#include <fmt/format.h>

#include <cstdlib>

#include "hw/generator/generator.h"
#include "hw/spec/data_path.h"
#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::generator {
namespace {

namespace fs = std::filesystem;
using namespace spec;

std::string bits(const Field& field) {
  return field.width == 1 ? std::to_string(field.lsb) : fmt::format("{}:{}", field.lsb + field.width - 1, field.lsb);
}

}  // namespace

std::string isa_page(const Config& config) {
  const Isa isa(config);
  std::string text = fmt::format(
      "# Instruction set, version {}\n\nGenerated from hw/spec for the configuration `{}`; hw/spec/isa.h defines "
      "its semantics.\nWidths of micro-op indices, element indices and factors follow the depths of the scratchpads.\n",
      kIsaVersion, config.name);
  for (const Format& format : isa.formats()) {
    text += fmt::format("\n## {}: {}\n\n{} profile, {} bits, opcode {} in 2:0", format.mnemonic, format.doc,
                        name(format.profile), format.profile == Profile::kBase ? 128 : 256,
                        static_cast<int>(format.opcode));
    if (format.fixed_function >= 0) text += fmt::format(", function {} in 6:3", format.fixed_function);
    if (format.mnemonic == "sync") text += ", bit 6 is 1";
    text += ".\n\n";
    if (format.fields.empty()) continue;
    text += "| field | bits | values | meaning |\n| --- | --- | --- | --- |\n";
    for (const Field& field : format.fields) {
      text +=
          fmt::format("| {} | {} | {} .. {} | {} |\n", field.name, bits(field), field.min(), field.max(), field.doc);
    }
  }
  text += "\n## Micro-op, 32 bits\n\n| field | bits | meaning |\n| --- | --- | --- |\n";
  for (const Field& field : isa.uop_fields())
    text += fmt::format("| {} | {} | {} |\n", field.name, bits(field), field.doc);
  text += "\n## Stop codes\n\n| code | meaning |\n| --- | --- |\n";
  for (int code = 0; code <= static_cast<int>(StopCode::kProfileOff); ++code) {
    text += fmt::format("| {} | {} |\n", code, describe(static_cast<StopCode>(code)));
  }
  return text;
}

std::string register_page() {
  std::string text = fmt::format(
      "# Register map, version {}\n\nGenerated from hw/spec; hw/spec/registers.h describes the sequence of a launch. "
      "Registers are 32 bits wide.\n\n| offset | name | access | meaning |\n| --- | --- | --- | --- |\n",
      kRegisterMapVersion);
  for (const Register& r : registers())
    text += fmt::format("| 0x{:03x} | {} | {} | {} |\n", r.offset, r.name, r.access, r.doc);
  return text;
}

Expected<fs::path> rtl_directory() {
  const auto candidates = spec::data_path("hw/rtl");
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate / "files.f", ignored)) return candidate;
  }
  return error("the RTL sources are missing", candidates.back().string(),
               "install Tenon again, or keep its source tree");
}

Expected<std::vector<fs::path>> generate(const Config& config, const fs::path& directory) {
  TENON_TRY_ASSIGN(rtl, rtl_directory());
  std::error_code fault;
  fs::create_directories(directory, fault);
  if (fault) return error(fmt::format("cannot create the directory: {}", fault.message()), directory.string());

  std::vector<fs::path> written;
  std::vector<SourceText> texts = generated_sources(config);
  texts.push_back({"config.json", to_json(config)});
  texts.push_back({"isa.md", isa_page(config)});
  texts.push_back({"registers.md", register_page()});
  for (const SourceText& source : texts) {
    written.push_back(directory / source.file);
    TENON_TRY(write_file(written.back(), source.text));
  }
  for (const auto& entry : fs::directory_iterator(*rtl, fault)) {
    if (entry.path().extension() != ".sv" && entry.path().filename() != "files.f") continue;
    written.push_back(directory / entry.path().filename());
    fs::copy_file(entry.path(), written.back(), fs::copy_options::overwrite_existing, fault);
    if (fault)
      return error(fmt::format("cannot copy {}: {}", entry.path().string(), fault.message()), directory.string());
  }
  if (fault) return error(fmt::format("cannot read the RTL sources: {}", fault.message()), rtl->string());
  return written;
}

}  // namespace tenon::generator
