// The devices that the conformance suite runs on, one a column of its table, each of configuration tiny with 1 MiB of
// memory; and the means of its cases: a program that copies, and a second process that holds a device.
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
  bool in_process = false;  // a simulator of this process's own, without a second client and another memory
  bool one_opening = false;
  uint64_t memory_end = 1 << 20;                // the first address behind its memory
  std::function<std::string()> uri = {};        // empty: this build lacks it
  std::function<std::string()> wrong_uri = {};  // of hardware that is not what the URI says
};
std::ostream& operator<<(std::ostream& stream, const Column& column);

const std::vector<Column>& all_columns();
std::vector<Column> columns();  // those that this build has

inline constexpr int64_t kCopiedElements = 40, kCopied = 4 * kCopiedElements;  // bytes
// Copies kCopiedElements accumulators' low bytes: a load of type ACC8 and a store, tied by one token, `times` over.
std::vector<spec::Instruction> copy_program(int times = 1);

#ifdef TENON_XRT_SHIM
// A file with that many accelerators of the configuration, and the environment in which XRT takes it.
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

// What that process does; its exit code.
int hold(const std::string& uri, bool running);

}  // namespace tenon::driver
