// What both ends of a connection agree on.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::driver::remote {

inline constexpr char kMethod[] = "/tenon.driver.remote.wire.Remote/Session";
inline constexpr char kTokenKey[] = "authorization";
inline constexpr char kTokenPrefix[] = "Bearer ";

// The server asks whether a silent client is still there after kPing, and gives it kPong for the answer: a client whose
// machine or network is lost frees its lease within 5 s. (The kernel tells at once about a client that ends.) The
// client asks the server in the same way.
inline constexpr std::chrono::milliseconds kPing{1000}, kPong{3500};

// The arguments of a channel or a server, by name.
std::vector<std::pair<std::string, int>> channel_arguments();

// An error of wrong usage unless the address is HOST:PORT, with a port from `least` to 65535.
Status check_address(const std::string& address, uint64_t least, const std::string& where);

// The contents of a text file without surrounding white space, which must not be empty.
Expected<std::string> read_token(const std::string& file);
// The contents of a file, or nothing where the name is empty.
Expected<std::string> read_if_given(const std::string& file);

// The logs of gRPC and protobuf go nowhere, unless the environment variable GRPC_VERBOSITY is set: what they report is
// in our errors.
void quiet_grpc();

}  // namespace tenon::driver::remote
