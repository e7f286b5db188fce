#include "sim/verilator/cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace tenon::sim {

namespace fs = std::filesystem;

Expected<fs::path> cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  fs::path cache = variable("TENON_CACHE");
  if (cache.empty() && !variable("XDG_CACHE_HOME").empty()) cache = variable("XDG_CACHE_HOME") / "tenon";
  if (cache.empty() && !variable("HOME").empty()) cache = variable("HOME") / ".cache" / "tenon";
  // No fallback to a directory that other users may write to: the cache contains code that is executed.
  if (cache.empty()) {
    return error("no directory for the cache: TENON_CACHE, XDG_CACHE_HOME and HOME are not set", {},
                 "set TENON_CACHE to a directory of your own");
  }
  std::error_code fault;
  fs::create_directories(cache, fault);
  if (fault) {
    return error(fmt::format("cannot create the cache directory: {}", fault.message()), cache.string(),
                 "set TENON_CACHE to a writable directory");
  }
  return fs::absolute(cache);
}

// The directory is renamed first: a tool that outlives its build continues under the new name, apart from the next
// build.
void discard(const fs::path& directory) {
  const fs::path name = fmt::format("{}.discarded-{}", directory.string(), getpid());
  std::error_code ignored;
  fs::remove_all(name, ignored);
  fs::rename(directory, name, ignored);
  fs::remove_all(name, ignored);
}

void remove_work(const CacheEntry& entry) {
  std::error_code ignored;
  discard(entry.work);
  fs::remove(entry.log, ignored);
}

void remove_interrupted(const fs::path& cache) {
  std::error_code fault;
  std::vector<std::string> names;
  for (fs::directory_iterator file(cache, fault), end; !fault && file != end; file.increment(fault)) {
    names.push_back(file->path().filename().string());
  }
  for (const std::string& name : names) {
    std::error_code ignored;
    if (name.find(".build.discarded-") != std::string::npos) fs::remove_all(cache / name, ignored);
    if (!name.ends_with(".build")) continue;
    const CacheEntry entry(cache, name.substr(0, name.rfind('.')));
    if (FileLock(entry.lock, FileLock::kTry).held()) remove_work(entry);
  }
}

}  // namespace tenon::sim
