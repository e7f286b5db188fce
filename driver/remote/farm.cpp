#include "driver/remote/farm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "support/file.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::driver::remote {
namespace {

constexpr size_t kMostServers = 4096;
constexpr std::string_view kSlurm = "@slurm", kSlurmNodes = "SLURM_JOB_NODELIST";
constexpr std::string_view kHelp = "an entry is HOST:PORT, HOST:PORT/DEVICE or node[01-16]:PORT";

// The text without comments, split at white space and at commas outside brackets.
std::vector<std::string> entries_of(std::string_view text) {
  std::vector<std::string> entries(1);
  bool comment = false, bracket = false;
  for (const char c : text) {
    if (c == '\n') comment = false;
    if (c == '#') comment = true;
    if (comment) continue;
    if (c == '[') bracket = true;
    if (c == ']') bracket = false;
    const bool separator = c == ' ' || c == '\t' || c == '\r' || c == '\n' || (c == ',' && !bracket);
    if (!separator) entries.back() += c;
    else if (!entries.back().empty()) entries.emplace_back();
  }
  if (entries.back().empty()) entries.pop_back();
  return entries;
}

// Appends what the range "01-03", or the number "7", stands for; the digits keep their count.
bool expand_range(std::string_view range, std::vector<std::string>& list) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  const auto from = parse_number<uint64_t>(first), to = parse_number<uint64_t>(last);
  if (!from || !to || *from > *to || *to - *from >= kMostServers) return false;
  for (uint64_t i = *from; i <= *to; ++i) list.push_back(fmt::format("{:0{}}", i, first.size()));
  return true;
}

// Appends the entries that one with brackets stands for.
bool expand(const std::string& entry, std::vector<std::string>& list) {
  const size_t open = entry.find('['), close = entry.find(']');
  if (open == std::string::npos && close == std::string::npos) return list.push_back(entry), true;
  if (open == std::string::npos || close == std::string::npos || close < open) return false;
  std::vector<std::string> middles;
  std::string_view inside = std::string_view(entry).substr(open + 1, close - open - 1);
  while (true) {
    const size_t comma = inside.find(',');
    if (!expand_range(inside.substr(0, comma), middles)) return false;
    if (comma == std::string_view::npos) break;
    inside.remove_prefix(comma + 1);
  }
  return std::ranges::all_of(middles, [&](const std::string& middle) {
    return list.size() < kMostServers && expand(entry.substr(0, open) + middle + entry.substr(close + 1), list);
  });
}

}  // namespace

Site parse_site(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  return {.address = std::string(text.substr(0, slash)),
          .device = std::string(text.substr(std::min(slash + 1, text.size())))};
}

Expected<std::vector<Site>> parse_farm(std::string_view text, std::string_view where, uint16_t port) {
  std::vector<Site> sites;
  for (const std::string& entry : entries_of(text)) {
    std::vector<std::string> expanded;
    if (!expand(entry, expanded)) {
      return error(fmt::format("the entry \"{}\" is no server, or one range of more than {}", entry, kMostServers),
                   std::string(where), std::string(kHelp));
    }
    for (const std::string& one : expanded) {
      Site site = parse_site(one);
      if (!site.address.contains(':')) {
        if (port == 0) {
          return error(fmt::format("the server \"{}\" has no port", site.address), std::string(where),
                       "write HOST:PORT, or give the port of all: ?port=PORT");
        }
        site.address += fmt::format(":{}", port);
      }
      sites.push_back(std::move(site));
    }
  }
  if (sites.empty()) return error("the list names no server", std::string(where), std::string(kHelp));
  return sites;
}

Expected<std::vector<Site>> read_farm(std::string_view name, uint16_t port) {
  if (name == kSlurm) {
    const char* const nodes = std::getenv(kSlurmNodes.data());
    if (nodes != nullptr) return parse_farm(nodes, kSlurmNodes, port);
    return error(fmt::format("{} is not set", kSlurmNodes), std::string(name),
                 "run this inside a job of Slurm's, or name a file: remote:@FILE");
  }
  const std::string file(name.substr(1));
  TENON_TRY_ASSIGN(text, read_text(file));
  return parse_farm(*text, file, port);
}

}  // namespace tenon::driver::remote
