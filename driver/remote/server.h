// The server of remote devices: accepts clients, each of which is a session (session.h).
#pragma once

#include <memory>

#include "driver/serve.h"

namespace tenon::driver::remote {

Expected<std::unique_ptr<Server>> start_server(const ServeOptions& options);

}  // namespace tenon::driver::remote
