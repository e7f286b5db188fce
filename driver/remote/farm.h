// Several servers under one name: a list in a file, or the nodes of a job of Slurm's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::driver::remote {

// A device of a server; an empty name: any of its devices.
struct Site {
  std::string address;  // HOST:PORT
  std::string device;
};

// "HOST:PORT/DEVICE"
Site parse_site(std::string_view text);

// Entries HOST[:PORT][/DEVICE], separated by white space or commas, with the ranges of Slurm's node lists, as
// node[01-03,7]; a # begins a comment. `port` is that of entries without one; 0: each must have its own.
Expected<std::vector<Site>> parse_farm(std::string_view text, std::string_view where, uint16_t port);

// The list of a URI's name "@FILE", or "@slurm" for the nodes of the job that this process belongs to.
Expected<std::vector<Site>> read_farm(std::string_view name, uint16_t port);

}  // namespace tenon::driver::remote
