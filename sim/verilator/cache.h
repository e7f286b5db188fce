// The cache of built models: locks for building, and the removal of interrupted builds.
//
// Semantics: an entry is built in its work directory under its lock; the finished directory appears by one rename. The
// lock ends with the process that holds it, even after a crash, so a work directory whose lock is free belongs to no
// process any more.
#pragma once

#include <filesystem>
#include <string>

#include "support/diagnostic.h"
#include "support/file_lock.h"

namespace tenon::sim {

// TENON_CACHE, else XDG_CACHE_HOME/tenon, else ~/.cache/tenon; created if necessary.
Expected<std::filesystem::path> cache_directory();

// The paths of one entry.
struct CacheEntry {
  CacheEntry(const std::filesystem::path& cache, const std::string& name)
      : ready(cache / name),
        work(cache / (name + ".build")),
        log(cache / (name + ".log")),
        lock(cache / (name + ".lock")) {}
  std::filesystem::path ready;  // the finished directory: complete, or does not exist
  std::filesystem::path work;
  std::filesystem::path log;  // of a running or a failed build
  std::filesystem::path lock;
};

// Removes a directory that tools of an interrupted build may still be writing into.
void discard(const std::filesystem::path& directory);
// Removes the files of an earlier build of the entry. The caller holds the lock.
void remove_work(const CacheEntry& entry);
// Removes the files of interrupted builds of all entries. Running builds, and the logs of failed builds, stay.
void remove_interrupted(const std::filesystem::path& cache);

}  // namespace tenon::sim
