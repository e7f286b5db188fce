#include "sim/lockstep/write_log.h"

#include <algorithm>
#include <cstring>

namespace tenon::sim {

WriteLog::Value& WriteLog::value(Record& record, Location location, uint32_t size) {
  const auto [entry, is_new] = record.values.try_emplace(key(location));
  if (is_new) {
    entry->second = {0, static_cast<uint32_t>(record.bytes.size()), size};
    record.bytes.resize(record.bytes.size() + size);
  }
  return entry->second;
}

void WriteLog::on_write(const Write& write) {
  Record& record = open_[write.instruction];
  if (write.memory != spec::Memory::kDram) {
    const auto size = static_cast<uint32_t>(write.value.size());
    const Value& kept = value(record, {write.memory, write.address}, size);
    std::memcpy(record.bytes.data() + kept.offset, write.value.data(), std::min(size, kept.size));
  } else {
    uint64_t address = write.address;
    for (auto remaining = write.value; !remaining.empty();) {
      const uint64_t at = address % kBlock, count = std::min<uint64_t>(kBlock - at, remaining.size());
      Value& kept = value(record, {spec::Memory::kDram, address / kBlock}, kBlock);
      std::memcpy(record.bytes.data() + kept.offset + at, remaining.data(), count);
      kept.written |= (count == kBlock ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << at;
      address += count;
      remaining = remaining.subspan(count);
    }
  }
  if (observer_ != nullptr) observer_->on_write(write);
}

void WriteLog::on_done(uint32_t instruction) {
  // An instruction that writes nothing has an empty record.
  done_[instruction] = std::move(open_[instruction]);
  open_.erase(instruction);
  newly_done_.push_back(instruction);
  if (observer_ != nullptr) observer_->on_done(instruction);
}

void WriteLog::clear() {
  open_.clear();
  done_.clear();
  newly_done_.clear();
}

}  // namespace tenon::sim
