#include "driver/identity.h"

#include <fmt/format.h>

#include <optional>

#include "support/try.h"

namespace tenon::driver {
namespace {

// The limit of a soft reset, which drains the outstanding transfers.
constexpr auto kResetLimit = std::chrono::milliseconds(100);

// The named configuration that has this hash.
std::optional<spec::Config> find_config(uint64_t hash) {
  for (const std::string& name : spec::named_configs()) {
    auto config = spec::load_config(name);
    if (config && spec::hash(*config) == hash) return *config;
  }
  return {};
}

}  // namespace

Expected<uint64_t> read_hash(Accelerator& accelerator) { return read_register64(accelerator, spec::reg::kConfigHash); }

Status check_identity(Accelerator& accelerator) {
  TENON_TRY_ASSIGN(found, read_hash(accelerator));
  if (*found == accelerator.config_hash()) return {};
  const Info& info = accelerator.info();
  std::string what = fmt::format("the device's configuration hash is {:016x}, configuration {} has {:016x}", *found,
                                 info.config.name, accelerator.config_hash());
  if (const auto config = find_config(*found)) {
    what += fmt::format("; the device (here) has configuration {}, {} (there) differs:\n{}", config->name,
                        info.config.name, spec::difference(*config, info.config));
    while (what.ends_with('\n')) what.pop_back();
  }
  return error(std::move(what), info.uri,
               "load the bitstream of this configuration, or name the configuration of this bitstream");
}

Expected<spec::Config> stated_config(const std::string& name) {
  return name.empty() ? Expected<spec::Config>(spec::Config()) : spec::load_config(name);
}

Expected<spec::Config> identify(Accelerator& accelerator, bool is_stated) {
  spec::Config config = accelerator.info().config;
  if (is_stated) {
    TENON_TRY(check_identity(accelerator));
  } else {
    TENON_TRY_ASSIGN(hash, read_hash(accelerator));
    auto found = find_config(*hash);
    if (!found) {
      return error(fmt::format("no named configuration has the device's hash {:016x}", *hash), accelerator.info().uri,
                   "name the configuration of the device: ?config=FILE.json");
    }
    config = std::move(*found);
  }
  TENON_TRY(reset(accelerator));
  return config;
}

Status reset(Accelerator& accelerator) {
  TENON_TRY(accelerator.write_register(spec::reg::kCommand, spec::kSoftReset | spec::kTokenClear));
  TENON_TRY_ASSIGN(idle, accelerator.wait_idle(kResetLimit));
  if (!*idle) {
    return error("the accelerator does not become idle after a soft reset", accelerator.info().uri,
                 "reload the bitstream or power-cycle the board", Fault::kInternal);
  }
  TENON_TRY(accelerator.read_register(spec::reg::kControl));  // clears ap_done
  return {};
}

}  // namespace tenon::driver
