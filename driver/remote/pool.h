// The devices of several servers as one pool: a free one is taken first.
//
// Semantics: the servers are asked all at once what they have, and the free devices are tried one after the other,
// beginning at a different one in each process. Where none is free the servers are asked again until the time is over;
// so a client of a pool does not queue at any server, and takes what becomes free first.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/accelerator.h"
#include "driver/remote/farm.h"
#include "driver/serve.h"

namespace tenon::driver::remote {

using Devices = std::vector<ServedDevice>;

// What a server has; called from several threads at once.
using ListDevices = std::function<Expected<Devices>(const Site&)>;
// Opens a device of a server without waiting for it.
using OpenDevice = std::function<Expected<std::unique_ptr<Accelerator>>(const Site&)>;

// `uri` names the pool in the error, which says of every server why nothing of it was taken.
Expected<std::unique_ptr<Accelerator>> open_free(const std::vector<Site>& sites, std::chrono::nanoseconds wait,
                                                 const std::string& uri, const ListDevices& list,
                                                 const OpenDevice& open);

// The devices of all servers, named HOST:PORT/DEVICE; those of a server that does not answer are one entry with the
// reason in place of the holder. An error where no server answers.
Expected<Devices> list_all(const std::vector<Site>& sites, const ListDevices& list);

}  // namespace tenon::driver::remote
