// Finds transports and opens devices by URI.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "driver/behavioral.h"
#include "driver/plugin.h"
#include "driver/serve.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

namespace fs = std::filesystem;

void add_plugins(const fs::path& directory, std::vector<Transport>& transports) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    if (file.extension() != ".so" || !stem.starts_with(kPluginPrefix)) continue;
    const std::string scheme = stem.substr(sizeof kPluginPrefix - 1);
    if (std::ranges::any_of(transports, [&](const Transport& t) { return t.scheme == scheme; })) continue;
    // The library is never closed: devices that it opened run its code. RTLD_LOCAL keeps its symbols private.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* const failure = library == nullptr ? dlerror() : nullptr;
    const auto function =
        library ? reinterpret_cast<decltype(&tenon_driver_transport)>(dlsym(library, kPluginFunction)) : nullptr;
    Transport transport;
    if (function == nullptr || !function(kPluginAbi, &transport)) {
      const std::string reason =
          failure ? fmt::format("{} cannot be opened: {}", file.string(), failure)
                  : fmt::format("{} belongs to another build of Tenon; build and install Tenon again", file.string());
      transport.scheme = scheme;
      transport.doc = "(unusable)";
      transport.missing = [reason] { return reason; };
      transport.open = [reason, scheme](std::string_view target) -> Expected<std::unique_ptr<Accelerator>> {
        return error(reason, fmt::format("{}:{}", scheme, target));
      };
    }
    transports.push_back(std::move(transport));
  }
}

// Transports that a build omits where their libraries are missing.
struct Optional {
  std::string_view scheme, doc, library, remedy;
};
constexpr Optional kOptional[] = {
    {"remote", "a device that `tenon serve` lends on another machine", "gRPC", "apt-get install libgrpc++-dev"},
    {"systemc", "a virtual platform in SystemC", "SystemC", "apt-get install libsystemc-dev"},
    {"xrt", "a board with XRT", "XRT", "apt-get install libxrt-dev uuid-dev"},
};

// `alone`: no library of any transport was found, so that nothing is known about this build's.
Transport absent(const Optional& optional, bool alone) {
  const std::string scheme(optional.scheme);
  std::string reason = fmt::format("this build of Tenon does not include {}", optional.library);
  std::string help = fmt::format("{}, then configure and build Tenon again", optional.remedy);
  if (alone) {
    std::vector<std::string> folders;
    for (const fs::path& folder : plugin_directories()) folders.push_back(folder.string());
    reason = fmt::format("there is no {}{}.so in {}", kPluginPrefix, scheme, fmt::join(folders, ", "));
    help = "the folder lib of Tenon belongs beside bin: copy both";
  }
  return {.scheme = scheme,
          .doc = std::string(optional.doc),
          .open = [=](std::string_view target) -> Expected<std::unique_ptr<Accelerator>> {
            return error(reason, fmt::format("{}:{}", scheme, target), help);
          },
          .missing = [=] { return fmt::format("{}; {}", reason, help); }};
}

}  // namespace

std::vector<fs::path> plugin_directories() {
  std::vector<fs::path> directories;
  if (const char* variable = std::getenv("TENON_DRIVER_PATH")) {
    std::istringstream stream(variable);
    for (std::string part; std::getline(stream, part, ':');) {
      if (!part.empty()) directories.emplace_back(part);
    }
  }
  const fs::path file = own_file();
  if (file.empty()) return directories;
  for (const char* relative : {".", "tenon", "../lib", "../lib/tenon", "../" TENON_INSTALLED_DRIVERS}) {
    const fs::path directory = (file.parent_path() / relative / "").lexically_normal().parent_path();
    if (std::ranges::find(directories, directory) == directories.end()) directories.push_back(directory);
  }
  return directories;
}

std::vector<Transport> transports() {
  std::vector<Transport> list;
  list.push_back(behavioral_transport());
  for (const fs::path& directory : plugin_directories()) add_plugins(directory, list);
  const bool alone = list.size() == 1;
  for (const Optional& optional : kOptional) {
    if (std::ranges::find(list, optional.scheme, &Transport::scheme) == list.end())
      list.push_back(absent(optional, alone));
  }
  return list;
}

Expected<std::unique_ptr<Accelerator>> open(std::string_view uri) {
  const auto available = transports();
  const size_t colon = uri.find(':');
  if (colon != std::string_view::npos) {
    for (const Transport& transport : available) {
      if (transport.scheme == uri.substr(0, colon)) return transport.open(uri.substr(colon + 1));
    }
  }
  std::vector<std::string> schemes;
  for (const Transport& transport : available) schemes.push_back(transport.scheme + ":");
  return error(colon == std::string_view::npos ? fmt::format("\"{}\" is not a device URI: it has no scheme", uri)
                                               : fmt::format("unknown device scheme \"{}\"", uri.substr(0, colon)),
               std::string(uri),
               fmt::format("expected one of {}; for example behavioral:default", fmt::join(schemes, ", ")),
               Fault::kUsage);
}

namespace {

// The transport that serves, or the error that this build has none.
Expected<Transport> remote_transport(std::string_view where) {
  for (Transport& transport : transports()) {
    if (transport.scheme != "remote") continue;
    if (transport.serve) return std::move(transport);
    return error(transport.missing(), std::string(where));
  }
  return error("this build of Tenon has no transport to other machines", std::string(where));
}

}  // namespace

Expected<std::unique_ptr<Server>> serve(const ServeOptions& options) {
  TENON_TRY_ASSIGN(transport, remote_transport(options.listen));
  return transport->serve(options);
}

Expected<std::vector<ServedDevice>> list_served(std::string_view server) {
  TENON_TRY_ASSIGN(transport, remote_transport(server));
  return transport->list(server);
}

}  // namespace tenon::driver
