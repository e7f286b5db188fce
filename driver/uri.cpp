#include "driver/uri.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "support/number.h"

namespace tenon::driver {

Expected<Options> Options::parse(std::string_view uri, std::string_view target) {
  Options options;
  options.uri_ = uri;
  const size_t question = target.find('?');
  options.name_ = target.substr(0, question);
  if (question == std::string_view::npos) return options;
  for (std::string_view remaining = target.substr(question + 1); !remaining.empty();) {
    const size_t end = std::min(remaining.find('&'), remaining.size());
    const std::string_view item = remaining.substr(0, end);
    remaining.remove_prefix(std::min(end + 1, remaining.size()));
    const size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return error(fmt::format("option \"{}\" is not KEY=VALUE", item), options.uri_, "use NAME?KEY=VALUE&KEY=VALUE",
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
  if (std::ranges::find(keys_, key) == keys_.end()) keys_.emplace_back(key);
  for (Entry& entry : entries_) {
    if (entry.key != key) continue;
    entry.read = true;
    return &entry.value;
  }
  return nullptr;
}

void Options::fail(std::string_view key, std::string_view value, std::string constraint) {
  if (!status_) return;
  status_ = error(fmt::format("option {} is \"{}\", must be {}", key, value, constraint), uri_, {}, Fault::kUsage);
}

uint64_t Options::parse_integer(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max, bool suffix) {
  const std::string* value = find(key);
  if (value == nullptr) return fallback;
  std::string_view digits = *value;
  const size_t unit = suffix && !digits.empty() ? std::string_view("KMG").find(digits.back()) : std::string_view::npos;
  const int shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<int>(unit) + 1);
  if (shift > 0) digits.remove_suffix(1);
  const auto integer = parse_number<uint64_t>(digits);
  if (integer && *integer <= (UINT64_MAX >> shift) && *integer << shift >= min && *integer << shift <= max)
    return *integer << shift;
  fail(key, *value,
       fmt::format("{} in [{}, {}]", suffix ? "a size in bytes (or with suffix K, M, G)" : "an integer", min, max));
  return fallback;
}

uint64_t Options::integer(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max) {
  return parse_integer(key, fallback, min, max, false);
}

uint64_t Options::bytes(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max) {
  return parse_integer(key, fallback, min, max, true);
}

bool Options::flag(std::string_view key, bool fallback) {
  const std::string* value = find(key);
  if (value == nullptr) return fallback;
  if (*value == "on" || *value == "1") return true;
  if (*value == "off" || *value == "0") return false;
  fail(key, *value, "on or off");
  return fallback;
}

size_t Options::one_of(std::string_view key, std::span<const std::string_view> names, size_t fallback) {
  const std::string* value = find(key);
  if (value == nullptr) return fallback;
  if (const auto found = std::ranges::find(names, *value); found != names.end()) {
    return static_cast<size_t>(found - names.begin());
  }
  fail(key, *value, fmt::format("one of {}", fmt::join(names, ", ")));
  return fallback;
}

std::string Options::text(std::string_view key, std::string_view fallback) {
  const std::string* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->empty()) fail(key, *value, "a non-empty string");
  return *value;
}

Status Options::finish() {
  for (const Entry& entry : entries_) {
    if (entry.read || !status_) continue;
    status_ =
        error(fmt::format("there is no option {}", entry.key), uri_,
              keys_.empty() ? "this device has no options" : fmt::format("expected one of {}", fmt::join(keys_, ", ")),
              Fault::kUsage);
  }
  return std::exchange(status_, Status{});
}

}  // namespace tenon::driver
