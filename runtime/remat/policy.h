// Eviction policies of rematerialization: which resident storage is given up when memory is short, and what becomes of
// those that nothing refers to.
//
// Semantics: a policy gives every evictable storage a score, and the smallest one is evicted. With c the cost to
// compute the storage again from its operands, m its bytes, and s the time since its last access:
//   eq     (c + costs of the classes of its evicted neighbours) / (m s): the union-find approximation of dtr
//   dtr    (c + costs of its evicted ancestors and descendants) / (m s): exact
//   local  c / (m s)
//   lru    its last access
//   size   1 / m
//   msps   (c + costs of its evicted ancestors) / m
// Source: Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, section 4.1 and appendix C; msps is of Peng et
// al., Capuchin, ASPLOS 2020. Where m or s is 0, a quotient is infinite.
#pragma once

#include <span>
#include <string_view>

#include "support/diagnostic.h"

namespace tenon::runtime::remat {

enum class Policy : unsigned char { kEq, kDtr, kLocal, kLru, kSize, kMsps };

inline constexpr Policy kPolicies[] = {Policy::kEq,  Policy::kDtr,  Policy::kLocal,
                                       Policy::kLru, Policy::kSize, Policy::kMsps};

// What becomes of a storage without references.
enum class Release : unsigned char {
  kEvict,   // evicted at its release; computed again as an operand of others, it stays until the policy evicts it
  kPrompt,  // evicted whenever no operator in execution reads it
  // As kPrompt, but what is computed again for a call stays until that call has ended or the policy evicts it, because
  // several of the operators that are computed again may read it. Its node is removed as soon as no storage was
  // computed from it, so that values that die take no memory at all.
  kForget,
  // As kPrompt, and its node is removed as soon as no evicted storage depends on it (banishing, section 4.2 of the
  // paper). Resident storages that were computed from it are not evictable from then on, and are freed by their
  // release.
  kBanish,
};

inline constexpr Release kReleases[] = {Release::kEvict, Release::kPrompt, Release::kForget, Release::kBanish};

std::string_view name(Policy policy);
std::string_view name(Release release);

// The policy of this name; an error of wrong usage where there is none.
Expected<Policy> find_policy(std::string_view name);

}  // namespace tenon::runtime::remat
