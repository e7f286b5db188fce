// The devices of the conformance suite, one for each column of its table, of configuration tiny with 1 MiB of memory;
// and the helpers of its cases: a program that copies, and a second process that holds a device.
#pragma once

#include <sys/types.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "driver/accelerator.h"
#include "hw/spec/isa.h"

namespace tenon::driver {

struct Column {
  std::string name;         // "uio_rtl"
  std::string doc;          // for the table
  bool in_process = false;  // a simulator inside this process: no second client, no other memory
  bool one_opening = false;
  bool remote = false;                          // the device is a server's, and its options too
  bool coherent = false;                        // no copy of its memory can be old
  uint64_t memory_end = 1 << 20;                // the first address after its memory
  std::function<std::string()> uri = {};        // empty: not in this build
  std::function<std::string()> wrong_uri = {};  // of hardware that differs from its URI
};
std::ostream& operator<<(std::ostream& stream, const Column& column);

const std::vector<Column>& all_columns();
std::vector<Column> columns();  // the devices of this build

inline constexpr int64_t kCopiedElements = 40, kCopied = 4 * kCopiedElements;  // bytes
// Copies kCopiedElements accumulators' low bytes: a load of type ACC8 and a store, tied by one token, `times` over.
std::vector<spec::Instruction> copy_program(int times = 1);

#ifdef TENON_XRT_SHIM
// A file with `units` accelerators of the configuration; sets the environment in which XRT loads it.
std::string xrt_design(int units, const std::string& config = "tiny");
#endif

// Another process that has opened the device and, if `running`, is in the middle of a launch.
class Holder {
 public:
  Holder(const std::string& uri, bool running);
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  bool holds() const { return holds_; }
  void kill();  // by SIGKILL
 private:
  pid_t process_ = -1;
  bool holds_ = false;
};

// The main function of that process; returns its exit code.
int hold(const std::string& uri, bool running);

}  // namespace tenon::driver
