// A lock between processes, by a file that is there for the lock alone.
#pragma once

#include <filesystem>

namespace tenon {

// An exclusive lock on a file, which is created, for the lifetime of the object: it ends with the process that holds
// it, even after a crash. Two objects of one process exclude each other, too.
class FileLock {
 public:
  enum Mode { kWait, kTry };  // kTry: held() is false at once where another object has the lock
  FileLock(const std::filesystem::path& file, Mode mode);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }
  // Removes the file, if the lock is held; whoever opened it meanwhile makes another one.
  void remove() const;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace tenon
