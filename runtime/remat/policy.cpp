// Names of policies and releases.
#include "runtime/remat/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "support/printable.h"
#include "support/suggest.h"

namespace tenon::runtime::remat {

std::string_view name(Policy policy) {
  switch (policy) {
    case Policy::kEq: return "eq";
    case Policy::kDtr: return "dtr";
    case Policy::kLocal: return "local";
    case Policy::kLru: return "lru";
    case Policy::kSize: return "size";
    case Policy::kMsps: return "msps";
  }
  return "";
}

std::string_view name(Release release) {
  switch (release) {
    case Release::kEvict: return "evict";
    case Release::kPrompt: return "prompt";
    case Release::kForget: return "forget";
    case Release::kBanish: return "banish";
  }
  return "";
}

Expected<Policy> find_policy(std::string_view wanted) {
  std::vector<std::string_view> names;
  for (const Policy policy : kPolicies) {
    if (name(policy) == wanted) return policy;
    names.push_back(name(policy));
  }
  const std::string meant = suggest(wanted, names);
  return error(fmt::format("no policy is called \"{}\"", printable(wanted)), "",
               fmt::format("{}{}the policies are: {}", meant, meant.empty() ? "" : " ", fmt::join(names, ", ")),
               Fault::kUsage);
}

}  // namespace tenon::runtime::remat
