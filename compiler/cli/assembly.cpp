// tenon asm | disasm: instructions as text and back. A stream is a file of 16-byte slots.
#include <fmt/format.h>

#include <cstring>

#include "compiler/cli/command.h"
#include "compiler/cli/program_text.h"
#include "hw/spec/isa.h"
#include "runtime/executable/executable.h"
#include "runtime/executable/layout.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct Assemble {
  std::string config = "default", input, output;

  Status run() const {
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    TENON_TRY_ASSIGN(text, read_file(input));
    const spec::Isa isa(*loaded);
    TENON_TRY_ASSIGN(
        instructions,
        isa.assemble_all(std::string_view(reinterpret_cast<const char*>(text->data()), text->size()), input));
    std::vector<spec::Slot> stream;
    for (const spec::Instruction& instruction : *instructions) {
      TENON_TRY(isa.encode(instruction, stream));
    }
    TENON_TRY(write_file(output, std::as_bytes(std::span(stream))));
    print_stdout("{}: {} instructions, {} slots\n", output, instructions->size(), stream.size());
    return {};
  }
};

// One instruction a line with its slot as a comment, so that the output is input of `tenon asm` again.
void print_line(const spec::Isa& isa, const spec::Decoded& decoded, std::string_view note) {
  print_stdout("{:<100} # {}{}{}\n", isa.disassemble(decoded.instruction), decoded.index, note.empty() ? "" : " ",
               note);
}

Status print_stream(const spec::Isa& isa, std::span<const spec::Slot> stream, spec::Profile profile,
                    const std::string& where) {
  auto decoded = isa.decode_all(stream, profile);
  if (!decoded) {
    const auto& fault = decoded.error();
    return error(fmt::format("{}: {}", describe(fault.code), fault.message),
                 fmt::format("{}: slot {}", where, fault.index),
                 fmt::format("read as the {} profile of configuration {}; --profile and --config select others",
                             name(profile), isa.config().name));
  }
  for (const auto& line : *decoded) print_line(isa, line, {});
  return {};
}

struct Disassemble {
  std::string config = "default", input, profile = "native";

  Status run() const {
    TENON_TRY_ASSIGN(bytes, read_file(input));
    if (is_executable(*bytes)) return print_executable(*bytes);
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    if (bytes->size() % spec::kSlotBytes != 0) {
      return error(fmt::format("{} bytes are neither an executable nor a stream of {}-byte slots", bytes->size(),
                               spec::kSlotBytes),
                   input);
    }
    std::vector<spec::Slot> stream(bytes->size() / spec::kSlotBytes);
    std::memcpy(stream.data(), bytes->data(), bytes->size());
    const auto kind = profile == "base" ? spec::Profile::kBase : spec::Profile::kNative;
    return print_stream(spec::Isa(*loaded), stream, kind, input);
  }

  static bool is_executable(std::span<const std::byte> bytes) {
    return bytes.size() >= sizeof runtime::kMagic &&
           std::memcmp(bytes.data(), &runtime::kMagic, sizeof runtime::kMagic) == 0;
  }

  Status print_executable(std::span<const std::byte> bytes) const {
    TENON_TRY_ASSIGN(executable, runtime::deserialize(bytes, input));
    if (executable->programs.empty()) print_stdout("# {} has no program for the accelerator\n", executable->name);
    for (const auto& program : executable->programs) {
      TENON_TRY(print_program(program, input));
    }
    return {};
  }
};

}  // namespace

// An instruction's note names the tile operation and the operator of the model from which it was made.
Status print_program(const runtime::AcceleratorProgram& program, const std::string& where) {
  const spec::Isa isa(program.config);
  const auto decoded = isa.decode_all(program.instructions, program.profile);
  if (!decoded) return error(decoded.error().message, where, {}, Fault::kInternal);  // loading has checked it
  print_stdout("# program {}: {} instructions of the {} profile for configuration {}\n", program.name, decoded->size(),
               name(program.profile), program.config.name);
  auto note = program.notes.begin();
  uint32_t layer = UINT32_MAX;
  for (const auto& line : *decoded) {
    while (note != program.notes.end() && note->slot < line.index) ++note;
    const bool noted = note != program.notes.end() && note->slot == line.index;
    if (noted && note->layer != layer && note->layer < program.layers.size()) {
      layer = note->layer;
      print_stdout("# {}: {}\n", program.layers[layer].name, program.layers[layer].op);
    }
    print_line(isa, line, noted ? note->tile : std::string_view());
  }
  return {};
}

Action assemble(Options& options) {
  auto command = std::make_shared<Assemble>();
  options.argument(command->input, "FILE", "assembly text: one instruction a line, # starts a comment");
  options.required(command->output, "-o,--output", "FILE", "the instruction stream, in 16-byte slots");
  options.option(command->config, "-c,--config", "NAME", "the configuration, which sets the widths of the fields");
  return [command] { return command->run(); };
}

Action disassemble(Options& options) {
  auto command = std::make_shared<Disassemble>();
  options.argument(command->input, "FILE", "an executable (.tnx), or an instruction stream in 16-byte slots");
  options.option(command->config, "-c,--config", "NAME", "the configuration of a stream; an executable holds its own");
  options.choice(command->profile, "-p,--profile", {"base", "native"}, "the instruction set of a stream");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
