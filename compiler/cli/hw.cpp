// tenon hw generate | list | show: configurations, and the RTL and references generated from them.
#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "hw/generator/generator.h"
#include "hw/spec/config.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using spec::Config;
using spec::Memory;

std::string shape(const Config& config) { return fmt::format("1x{}x{}", config.block_in, config.block_out); }

std::string profiles(const Config& config) {
  return fmt::format("{}{}{}", config.base ? "base" : "", config.base && config.native ? ", " : "",
                     config.native ? "native" : "");
}

int64_t scratchpad_bytes(const Config& config) {
  int64_t sum = 0;
  for (const int64_t bytes : config.bytes) sum += bytes;
  return sum;
}

std::string hash_text(const Config& config) { return fmt::format("{:016x}", hash(config)); }

void print_facts(const Config& config) {
  print_stdout("{:<16}{}\n", "name", config.name);
  print_stdout("{:<16}{} ({} multiply-accumulates a cycle)\n", "tensor core", shape(config), config.macs_per_cycle());
  print_stdout("{:<16}{} bits, bursts of at most {} beats\n", "memory port", config.axi_data_bits,
               config.max_burst_beats);
  print_stdout("{:<16}{} beats read ahead, {}\n", "", config.read_fifo_beats(),
               config.overlapping_stores ? "stores overlap" : "one store at a time");
  if (config.own_lanes) print_stdout("{:<16}lanes multiply windows of their own channel too\n", "");
  if (config.results_to_inp) print_stdout("{:<16}results become inputs without DRAM\n", "");
  if (config.window_maximum) print_stdout("{:<16}results are maxima over windows too\n", "");
  print_stdout("{:<16}{} commands each\n", "engine queues", config.queue_depth);
  print_stdout("{:<16}{}\n", "profiles", profiles(config));
  print_stdout("{:<16}{}\n\n", "hash", hash_text(config));
  print_stdout("{:<12}{:>10}{:>10}{:>18}\n", "scratchpad", "bytes", "elements", "bytes an element");
  for (int i = 0; i < spec::kScratchpads; ++i) {
    const auto memory = static_cast<Memory>(i);
    print_stdout("{:<12}{:>10}{:>10}{:>18}\n", name(memory), config.bytes[static_cast<size_t>(i)], config.depth(memory),
                 config.element_bytes(memory));
  }
}

struct Generate {
  std::string config = "default", directory;

  Status run() const {
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    TENON_TRY_ASSIGN(files, generator::generate(*loaded, directory));
    print_stdout("{} ({}), hash {}: {} files\n", loaded->name, shape(*loaded), hash_text(*loaded), files->size());
    for (const auto& file : *files) print_stdout("  {}\n", file.string());
    return {};
  }
};

struct List {
  bool json = false;

  Status run() const {
    Json out;
    out.begin_array();
    if (!json)
      print_stdout("{:<16}{:<10}{:>6}{:>12}  {:<14}{}\n", "name", "core", "axi", "scratchpads", "profiles", "hash");
    Status status;  // one broken file hides no other
    for (const std::string& name : spec::named_configs()) {
      auto config = spec::load_config(name);
      if (!config) {
        print_stderr("{}\n", config.error().str());
        status = error("a named configuration is broken, see above");
        continue;
      }
      const int64_t bytes = scratchpad_bytes(*config);
      out.begin_object().field("name", name).field("block_in", config->block_in).field("block_out", config->block_out);
      out.field("axi_data_bits", config->axi_data_bits).field("scratchpad_bytes", bytes);
      out.field("base", config->base).field("native", config->native).field("hash", hash_text(*config)).end();
      if (!json) {
        print_stdout("{:<16}{:<10}{:>6}{:>8} KiB  {:<14}{}\n", name, shape(*config), config->axi_data_bits,
                     bytes / 1024, profiles(*config), hash_text(*config));
      }
    }
    if (json) print_stdout("{}", out.end().str());
    return status;
  }
};

struct ShowConfig {
  std::string config;
  bool json = false;

  Status run() const {
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    if (json) print_stdout("{}", spec::to_json(*loaded));
    else print_facts(*loaded);
    return {};
  }
};

}  // namespace

Action hw_generate(Options& options) {
  auto command = std::make_shared<Generate>();
  options.option(command->config, "-c,--config", "NAME", "a named configuration, or the path of a .json file");
  options.required(command->directory, "-o,--output", "DIR", "directory of the files, created if needed");
  options.footer("Example: tenon hw generate --config default -o accelerator");
  return [command] { return command->run(); };
}

Action hw_list(Options& options) {
  auto command = std::make_shared<List>();
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

Action hw_show(Options& options) {
  auto command = std::make_shared<ShowConfig>();
  options.argument(command->config, "NAME", "a named configuration, or the path of a .json file");
  options.flag(command->json, "--json", "print the configuration file itself, in its canonical form");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
