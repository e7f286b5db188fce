// The cache of built models: who may build what, and what becomes of a build that was interrupted.
//
// Semantics: an entry is built in its work directory under its lock; the finished directory appears by one rename.
// The lock ends with the process that holds it, however that ends, so that a work directory whose lock is free belongs
// to nobody any more.
#pragma once

#include <filesystem>
#include <string>

#include "support/diagnostic.h"

namespace tenon::sim {

// TENON_CACHE, else XDG_CACHE_HOME/tenon, else ~/.cache/tenon; made if need be.
Expected<std::filesystem::path> cache_directory();

// The paths of one entry.
struct CacheEntry {
  CacheEntry(const std::filesystem::path& cache, const std::string& name)
      : ready(cache / name),
        work(cache / (name + ".build")),
        log(cache / (name + ".log")),
        lock(cache / (name + ".lock")) {}
  std::filesystem::path ready;  // a directory: all of it or nothing
  std::filesystem::path work;
  std::filesystem::path log;  // of a build that runs or failed
  std::filesystem::path lock;
};

// An exclusive lock on a file, for as long as the object lives.
class FileLock {
 public:
  enum Patience { kWait, kTry };
  FileLock(const std::filesystem::path& file, Patience patience);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  int descriptor_;
  bool held_ = false;
};

// Removes a directory that tools of an interrupted build may still be writing into.
void discard(const std::filesystem::path& directory);
// Removes what an earlier build of the entry left. The caller holds the lock.
void remove_work(const CacheEntry& entry);
// Removes what interrupted builds of any entry left. Builds that run, and the logs of failed ones, stay.
void remove_interrupted(const std::filesystem::path& cache);

}  // namespace tenon::sim
