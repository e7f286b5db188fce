// The part of a device's URI behind its scheme: NAME?KEY=VALUE&KEY=VALUE, and the reading of its options.
//
// Semantics: a transport asks for each option that it knows with a fallback and limits; finish() then names the first
// wrong value, or the first key that nobody asked for together with all that were. So what is known is written once.
// Sizes take the suffixes K, M and G (powers of 1024).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::driver {

class Options {
 public:
  // `uri` is the whole, for messages; `rest` what stands behind its scheme's colon.
  static Expected<Options> parse(std::string_view uri, std::string_view rest);

  const std::string& uri() const { return uri_; }
  const std::string& name() const { return name_; }  // what stands before '?'; may be empty

  uint64_t number(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max);
  uint64_t bytes(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max);
  bool flag(std::string_view key, bool fallback);  // on, off, 1, 0
  std::string text(std::string_view key, std::string_view fallback);

  Status finish();

 private:
  struct Entry {
    std::string key, value;
    bool asked = false;
  };
  const std::string* find(std::string_view key);
  void fail(std::string_view key, std::string_view value, std::string constraint);
  uint64_t parse_number(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max, bool suffix);

  std::string uri_, name_;
  std::vector<Entry> entries_;
  std::vector<std::string> known_;
  Status status_;
};

}  // namespace tenon::driver
