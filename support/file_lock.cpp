#include "support/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace tenon {
namespace {

// Whether the open file is the one that has the name.
bool has_name(int descriptor, const std::filesystem::path& file) {
  struct stat open = {}, named = {};
  return fstat(descriptor, &open) == 0 && stat(file.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& file, Mode mode) : file_(file) {
  while (!held_) {
    descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) return;
    int locked = -1;
    do {
      locked = flock(descriptor_, mode == kTry ? LOCK_EX | LOCK_NB : LOCK_EX);
    } while (locked != 0 && errno == EINTR);
    if (locked != 0) return;
    held_ = has_name(descriptor_, file);  // else it was removed before the lock was taken
    if (!held_) close(descriptor_);
  }
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

void FileLock::remove() const {
  std::error_code ignored;
  if (held_) std::filesystem::remove(file_, ignored);
}

}  // namespace tenon
