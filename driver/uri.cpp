#include "driver/uri.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace tenon::driver {

Expected<Options> Options::parse(std::string_view uri, std::string_view rest) {
  Options options;
  options.uri_ = uri;
  const size_t mark = rest.find('?');
  options.name_ = rest.substr(0, mark);
  if (mark == std::string_view::npos) return options;
  for (std::string_view left = rest.substr(mark + 1); !left.empty();) {
    const size_t end = std::min(left.find('&'), left.size());
    const std::string_view item = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    const size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return error(fmt::format("option \"{}\" is not KEY=VALUE", item), options.uri_, "write NAME?KEY=VALUE&KEY=VALUE",
                   Fault::kUsage);
    }
    const std::string key(item.substr(0, equals));
    if (std::ranges::any_of(options.entries_, [&](const Entry& entry) { return entry.key == key; })) {
      return error(fmt::format("option {} is given twice", key), options.uri_, {}, Fault::kUsage);
    }
    options.entries_.push_back({key, std::string(item.substr(equals + 1))});
  }
  return options;
}

const std::string* Options::find(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  for (Entry& entry : entries_) {
    if (entry.key != key) continue;
    entry.asked = true;
    return &entry.value;
  }
  return nullptr;
}

void Options::fail(std::string_view key, std::string_view value, std::string constraint) {
  if (!status_) return;
  status_ = error(fmt::format("option {} is \"{}\", must be {}", key, value, constraint), uri_, {}, Fault::kUsage);
}

uint64_t Options::parse_number(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max, bool suffix) {
  const std::string* value = find(key);
  if (value == nullptr) return fallback;
  uint64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [next, code] = std::from_chars(value->data(), end, number);
  int shift = 0;
  bool ok = code == std::errc();
  if (ok && next != end) {
    const size_t unit = suffix && next + 1 == end ? std::string_view("KMG").find(*next) : std::string_view::npos;
    ok = unit != std::string_view::npos;
    shift = ok ? 10 * (static_cast<int>(unit) + 1) : 0;
  }
  ok = ok && number <= (UINT64_MAX >> shift);
  number <<= shift;
  if (ok && number >= min && number <= max) return number;
  fail(key, *value,
       fmt::format("{} in [{}, {}]", suffix ? "a number of bytes (K, M, G behind it)" : "a number", min, max));
  return fallback;
}

uint64_t Options::number(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max) {
  return parse_number(key, fallback, min, max, false);
}

uint64_t Options::bytes(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max) {
  return parse_number(key, fallback, min, max, true);
}

bool Options::flag(std::string_view key, bool fallback) {
  const std::string* value = find(key);
  if (value == nullptr) return fallback;
  if (*value == "on" || *value == "1") return true;
  if (*value == "off" || *value == "0") return false;
  fail(key, *value, "on or off");
  return fallback;
}

std::string Options::text(std::string_view key, std::string_view fallback) {
  const std::string* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->empty()) fail(key, *value, "a text of at least one letter");
  return *value;
}

Status Options::finish() {
  for (const Entry& entry : entries_) {
    if (entry.asked || !status_) continue;
    status_ = error(fmt::format("there is no option {}", entry.key), uri_,
                    known_.empty() ? "this device takes no options" : fmt::format("known: {}", fmt::join(known_, ", ")),
                    Fault::kUsage);
  }
  return std::exchange(status_, Status{});
}

}  // namespace tenon::driver
