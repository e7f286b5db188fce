#include "driver/remote/frame.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <array>
#include <string>

namespace tenon::driver::remote {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// The keys of the two fields: their numbers, and wire type 2, a length and its bytes.
constexpr uint32_t kHeaderKey = 1 << 3 | 2, kDataKey = 2 << 3 | 2;
constexpr size_t kMaxPrefix = 12;  // a key and a length

size_t put_prefix(uint32_t key, size_t bytes, uint8_t* at) {
  uint8_t* const end = CodedOutputStream::WriteVarint64ToArray(bytes, CodedOutputStream::WriteVarint32ToArray(key, at));
  return static_cast<size_t>(end - at);
}

}  // namespace

grpc::ByteBuffer to_frame(const google::protobuf::MessageLite& header, std::span<const std::byte> data) {
  const size_t bytes = header.ByteSizeLong();
  std::vector<uint8_t> head(bytes + 2 * kMaxPrefix);
  size_t used = put_prefix(kHeaderKey, bytes, head.data());
  header.SerializeWithCachedSizesToArray(head.data() + used);
  used += bytes;
  if (data.empty()) {
    const grpc::Slice slice(head.data(), used);
    return {&slice, 1};
  }
  used += put_prefix(kDataKey, data.size(), head.data() + used);
  const std::array<grpc::Slice, 2> slices = {grpc::Slice(head.data(), used), grpc::Slice(data.data(), data.size())};
  return {slices.data(), slices.size()};
}

bool from_frame(grpc::ByteBuffer& frame, google::protobuf::MessageLite& header, std::vector<std::byte>& data) {
  data.clear();
  header.Clear();
  if (!frame.Valid() || frame.Length() > kMaxHeader + kMaxData) return false;
  grpc::ProtoBufferReader reader(&frame);
  CodedInputStream in(&reader);
  bool has_data = false;
  while (const uint32_t key = in.ReadTag()) {
    uint32_t bytes = 0;
    if (has_data || !in.ReadVarint32(&bytes)) return false;
    if (key == kHeaderKey) {
      std::string text;
      if (bytes > kMaxHeader || !in.ReadString(&text, static_cast<int>(bytes)) || !header.MergeFromString(text)) {
        return false;
      }
    } else if (key == kDataKey) {
      if (bytes > kMaxData) return false;
      data.resize(bytes);
      if (!in.ReadRaw(data.data(), static_cast<int>(bytes))) return false;
      has_data = true;
    } else {
      return false;
    }
  }
  return in.ConsumedEntireMessage();
}

}  // namespace tenon::driver::remote
