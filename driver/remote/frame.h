// A message of remote.proto on the wire: a header, and bytes that are not copied into a message object.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <span>
#include <vector>

namespace tenon::driver::remote {

// The bytes of one message: a tensor is cut into several.
inline constexpr size_t kMaxData = size_t{1} << 20;
// Everything else in a message: a configuration or a diagnostic is the longest.
inline constexpr size_t kMaxHeader = size_t{1} << 20;

// The message with this header and, unless it is empty, this data, which is copied.
grpc::ByteBuffer to_frame(const google::protobuf::MessageLite& header, std::span<const std::byte> data = {});

// Reads a message: the header into `header`, the data into `data`. False where the bytes are no such message.
bool from_frame(grpc::ByteBuffer& frame, google::protobuf::MessageLite& header, std::vector<std::byte>& data);

}  // namespace tenon::driver::remote
