// The target of a device's URI, which follows its scheme: NAME?KEY=VALUE&KEY=VALUE, and the parser of its options.
//
// Semantics: a transport reads each option that it supports, with a fallback and limits; finish() then reports the
// first wrong value, or the first unsupported key together with all supported keys. So the list of supported keys needs
// no second definition. Sizes may have the suffixes K, M and G (powers of 1024).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::driver {

class Options {
 public:
  // `uri` is the whole URI, for messages; `target` is the part after the scheme's colon.
  static Expected<Options> parse(std::string_view uri, std::string_view target);

  const std::string& uri() const { return uri_; }
  const std::string& name() const { return name_; }  // the part before '?'; may be empty

  uint64_t integer(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max);
  uint64_t bytes(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max);
  bool flag(std::string_view key, bool fallback);                                                 // on, off, 1, 0
  size_t one_of(std::string_view key, std::span<const std::string_view> names, size_t fallback);  // an index
  std::string text(std::string_view key, std::string_view fallback);

  Status finish();

 private:
  struct Entry {
    std::string key, value;
    bool read = false;
  };
  const std::string* find(std::string_view key);
  void fail(std::string_view key, std::string_view value, std::string constraint);
  uint64_t parse_integer(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max, bool suffix);

  std::string uri_, name_;
  std::vector<Entry> entries_;
  std::vector<std::string> keys_;  // that were read
  Status status_;
};

}  // namespace tenon::driver
