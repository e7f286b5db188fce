#include "driver/remote/channel.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <cstdlib>

#include "driver/remote/frame.h"
#include "support/file.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::driver::remote {

std::vector<std::pair<std::string, int>> channel_arguments() {
  constexpr int kMaxMessage = static_cast<int>(kMaxHeader + kMaxData);
  return {{GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kMaxMessage},
          {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, kMaxMessage},
          // A frame of HTTP/2 has a whole message, and the window has several.
          {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxMessage},
          {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 * kMaxMessage},
          {GRPC_ARG_ENABLE_RETRIES, 0},  // a request is not repeated: the device has a state
          {GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(kPing.count())},
          {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(kPong.count())},
          {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
          {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, static_cast<int>(kPing.count()) / 4},
          {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0}};
}

Status check_address(const std::string& address, uint64_t least, const std::string& where) {
  constexpr char kHelp[] = "an address is HOST:PORT, as board:8461";
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return error(fmt::format("\"{}\" is not HOST:PORT", address), where, kHelp, Fault::kUsage);
  const auto port = read_number<uint64_t>("the port", address.substr(colon + 1), {least, UINT16_MAX});
  return port ? Status() : error(port.error().what, where, kHelp, Fault::kUsage);
}

Expected<std::string> read_if_given(const std::string& file) {
  if (file.empty()) return std::string();
  return read_text(file);
}

Expected<std::string> read_token(const std::string& file) {
  TENON_TRY_ASSIGN(text, read_if_given(file));
  constexpr char kSpace[] = " \t\r\n";
  const size_t begin = text->find_first_not_of(kSpace);
  const std::string token =
      begin == std::string::npos ? "" : text->substr(begin, text->find_last_not_of(kSpace) + 1 - begin);
  if (token.empty() && !file.empty()) return error("the file has no token", file);
  for (const char c : token) {
    if (c < '!' || c > '~') return error("a token is a word of printable ASCII characters", file);
  }
  return token;
}

void quiet_grpc() {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;
  gpr_set_log_function([](gpr_log_func_args*) {});
  google::protobuf::SetLogHandler(nullptr);
}

}  // namespace tenon::driver::remote
