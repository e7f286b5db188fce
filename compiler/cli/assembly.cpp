// tenon asm | disasm: instruction streams as text and back. A stream is a file of 16-byte slots.
#include <fmt/format.h>

#include <cstring>

#include "compiler/cli/command.h"
#include "hw/spec/isa.h"
#include "runtime/file.h"

namespace tenon::cli {
namespace {

struct Assemble {
  std::string config = "default", input, output;

  Status run() const {
    auto loaded = spec::load_config(config);
    if (!loaded) return forward_error(loaded);
    auto text = runtime::read_file(input);
    if (!text) return forward_error(text);
    const spec::Isa isa(*loaded);
    auto instructions =
        isa.assemble_all(std::string_view(reinterpret_cast<const char*>(text->data()), text->size()), input);
    if (!instructions) return forward_error(instructions);
    std::vector<spec::Slot> stream;
    for (const spec::Instruction& instruction : *instructions) {
      if (auto status = isa.encode(instruction, stream); !status) return status;
    }
    if (auto status = runtime::write_file(output, std::as_bytes(std::span(stream))); !status) return status;
    fmt::print("{}: {} instructions, {} slots\n", output, instructions->size(), stream.size());
    return {};
  }
};

struct Disassemble {
  std::string config = "default", input, profile = "native";

  Status run() const {
    auto loaded = spec::load_config(config);
    if (!loaded) return forward_error(loaded);
    auto bytes = runtime::read_file(input);
    if (!bytes) return forward_error(bytes);
    if (bytes->size() % spec::kSlotBytes != 0) {
      return error(fmt::format("{} bytes are no stream of {}-byte slots", bytes->size(), spec::kSlotBytes), input);
    }
    std::vector<spec::Slot> stream(bytes->size() / spec::kSlotBytes);
    std::memcpy(stream.data(), bytes->data(), bytes->size());
    return print(spec::Isa(*loaded), stream);
  }

  Status print(const spec::Isa& isa, std::span<const spec::Slot> stream) const {
    const auto kind = profile == "base" ? spec::Profile::kBase : spec::Profile::kNative;
    auto decoded = isa.decode_all(stream, kind);
    if (!decoded) {
      const auto& fault = decoded.error();
      return error(fmt::format("{}: {}", describe(fault.code), fault.message),
                   fmt::format("{}: slot {}", input, fault.index),
                   fmt::format("read as the {} profile of configuration {}; --profile and --config choose others",
                               profile, isa.config().name));
    }
    // The slot as a comment: the output is input of `tenon asm`.
    for (const auto& [instruction, index] : *decoded) fmt::print("{:<100} # {}\n", isa.disassemble(instruction), index);
    return {};
  }
};

}  // namespace

Action assemble(Options& options) {
  auto command = std::make_shared<Assemble>();
  options.argument(command->input, "FILE", "assembly text: one instruction a line, # starts a comment");
  options.required(command->output, "-o,--output", "FILE", "the instruction stream, in 16-byte slots");
  options.option(command->config, "-c,--config", "NAME", "the configuration, which decides the fields' widths");
  return [command] { return command->run(); };
}

Action disassemble(Options& options) {
  auto command = std::make_shared<Disassemble>();
  options.argument(command->input, "FILE", "an instruction stream in 16-byte slots");
  options.option(command->config, "-c,--config", "NAME", "the configuration, which decides the fields' widths");
  options.choice(command->profile, "-p,--profile", {"base", "native"}, "the instruction set of the stream");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
