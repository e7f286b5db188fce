// tenon xclbin write | show | annotate: the container in which a design reaches XRT.
#include "driver/xrt/xclbin.h"

#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "support/file.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

Status save(driver::Xclbin& xclbin, const std::string& path) {
  const auto bytes = driver::to_bytes(xclbin);
  TENON_TRY(write_file(path, bytes));
  print_stdout("{}: {} bytes, configuration {}, uuid {}\n", path, bytes.size(), xclbin.config->name, uuid_text(xclbin));
  return {};
}

struct Write {
  std::string config = "default", output, bitstream;
  int64_t units = 1, memory_mib = 256, clock = 100;

  Status run() const {
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    driver::XclbinOptions options{.units = static_cast<int>(units),
                                  .memory_bytes = static_cast<uint64_t>(memory_mib) << 20,
                                  .clock_mhz = static_cast<uint32_t>(clock),
                                  .bitstream = {}};
    if (!bitstream.empty()) {
      TENON_TRY_ASSIGN(bytes, read_file(bitstream));
      if (bytes->empty()) return error("the bitstream is empty", bitstream);
      options.bitstream = std::move(*bytes);
    }
    auto xclbin = driver::make_xclbin(*loaded, options);
    return save(xclbin, output);
  }
};

struct ShowXclbin {
  std::string file;
  bool json = false;

  Status run() const {
    TENON_TRY_ASSIGN(xclbin, driver::load_xclbin(file));
    TENON_TRY_ASSIGN(design, driver::design_of(*xclbin, file));
    const std::string config = xclbin->config ? xclbin->config->name : "";
    if (json) {
      Json out;
      out.begin_object().field("platform", xclbin->platform).field("uuid", driver::uuid_text(*xclbin));
      out.field("configuration", config).field("clock_mhz", uint64_t{design->clock_mhz}).key("units").begin_array();
      for (const auto& unit : design->units)
        out.begin_object().field("name", unit.name).field("address", unit.base).end();
      out.end().key("memories").begin_array();
      for (const auto& memory : design->memories) {
        out.begin_object().field("name", memory.name).field("address", memory.base).field("bytes", memory.bytes).end();
      }
      print_stdout("{}", out.end().end().str());
      return {};
    }
    print_stdout("platform       {}\nuuid           {}\nconfiguration  {}\nclock          {} MHz\n", xclbin->platform,
                 driver::uuid_text(*xclbin),
                 config.empty() ? "unknown: the file has no metadata section of Tenon" : config, design->clock_mhz);
    for (const auto& unit : design->units) print_stdout("unit           {} at {:#x}\n", unit.name, unit.base);
    for (const auto& memory : design->memories) {
      print_stdout("memory         {} at {:#x}, {} KiB{}\n", memory.name, memory.base, memory.bytes / 1024,
                   memory.used ? "" : ", unused");
    }
    for (const auto& section : xclbin->sections) {
      const auto kind = driver::name(section.kind);
      print_stdout("section        {}{}, {} bytes\n",
                   kind.empty() ? fmt::format("of kind {}", static_cast<uint32_t>(section.kind)) : std::string(kind),
                   section.name.empty() ? "" : " " + section.name, section.data.size());
    }
    return {};
  }
};

struct Annotate {
  std::string file, config, output;

  Status run() const {
    TENON_TRY_ASSIGN(xclbin, driver::load_xclbin(file));
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    driver::add_metadata(*xclbin, *loaded);
    return save(*xclbin, output);
  }
};

}  // namespace

Action xclbin_write(Options& options) {
  auto command = std::make_shared<Write>();
  options.option(command->config, "-c,--config", "NAME", "a named configuration, or the path of a .json file");
  options.required(command->output, "-o,--output", "FILE", "where to write");
  options.option(command->units, "--units", "N", "accelerators in the design", {1, 15});
  options.option(command->memory_mib, "--memory", "MIB", "memory of an emulated device", {1, 65536});
  options.option(command->clock, "--clock", "MHZ", "the accelerators' clock", {1, 1000});
  options.option(command->bitstream, "--bitstream", "FILE", "bitstream to include; emulated devices need none");
  return [command] { return command->run(); };
}

Action xclbin_show(Options& options) {
  auto command = std::make_shared<ShowXclbin>();
  options.argument(command->file, "FILE", "an .xclbin file");
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

Action xclbin_annotate(Options& options) {
  auto command = std::make_shared<Annotate>();
  options.argument(command->file, "FILE", "an .xclbin file, as v++ writes it");
  options.required(command->config, "-c,--config", "NAME", "the configuration of the accelerator in it");
  options.required(command->output, "-o,--output", "FILE", "where to write");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
