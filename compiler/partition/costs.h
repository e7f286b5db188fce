// What operators cost on the processor and on devices: figures of a machine, from a costs file, and prices made of
// them.
//
// A costs file is JSON, as `tenon tune --costs FILE` measures it and as a board's may be written by hand:
//
//   {"version": 1,
//    "cpu": {"gmacs_f32": 50, "gmacs_i8": 120, "gbytes": 9, "call_ns": 400},
//    "devices": {"accel": {"launch_ns": 20000, "gbytes": 0.8, "mhz": 100},
//                "cuda": {"launch_ns": 9000, "gbytes": 12, "gmacs_f32": 9000, "gmacs_i8": 9000, "memory_gbytes": 900}}}
//
// gmacs: 10^9 multiply-accumulates a second; gbytes: 10^9 bytes a second, of the processor's memory or, of a device, of
// copies between it and the processor (absent: the device computes in the processor's memory); call_ns: what a kernel
// of the processor costs besides its work; launch_ns: the same of a region of a device; mhz: the clock of an
// accelerator. Several accelerators are "accel:default" and "accel:tiny"; one without an entry has that of "accel".
// Totals are sums, although devices may work at the same time.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct Costs {
  struct Device {
    double launch_ns = 0;
    std::optional<double> gbytes = {}, mhz = {}, gmacs_f32 = {}, gmacs_i8 = {}, memory_gbytes = {};
  };
  std::string source;  // the file, for messages
  double gmacs_f32 = 0, gmacs_i8 = 0, gbytes = 0, call_ns = 0;
  std::map<std::string, Device, std::less<>> devices;  // by target

  // The entry of the target, else that of its kind; nullptr where there is none.
  const Device* device(std::string_view target) const;
};

// Reads a costs file. An error names the entry that is missing, unknown, or not a number above 0.
Expected<Costs> parse_costs(std::string_view text, const std::string& source);
Expected<Costs> read_costs(const std::filesystem::path& path);
std::string to_json(const Costs& costs);

// Of one price: more is a mistake.
inline constexpr double kMostSeconds = 1000;

// What a user reads of a cost.
struct Price {
  double seconds = 0;
  std::string source;  // "3.2e+07 MACs at 50 GMAC/s", "740212 cycles at 100 MHz"
};

// The work of some operators that are computed together.
struct Work {
  double macs = 0;          // of products; 1 for each element of the result of an operator without products
  bool bytes_wide = false;  // whether the factors of most products are integers of a byte
  double bytes = 0;         // of the values read and written, and of the constants
};
// Of bindings of a block of the function. A size that is not known counts as 1.
Work work_of(const Module& module, const Function& function, const Block& block, std::span<const size_t> bindings);
// The bytes of a value; 0 for values that are no tensors or tuples of tensors.
double bytes_of(Type type);

// Of a kernel on the processor: the slower of its products and its bytes, and the call.
Price cpu_price(const Costs& costs, const Work& work);
// Of a kernel on a device, by the figures of the file, without the launch of its region. An error names the entry that
// the file lacks.
Expected<Price> device_price(const Costs& costs, const std::string& target, const Work& work);

}  // namespace tenon::compiler
