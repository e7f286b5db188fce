#include "driver/remote/refusals.h"

#include "support/output.h"

namespace tenon::driver::remote {
namespace {

constexpr size_t kMostAddresses = 10'000;

std::string_view address_of(std::string_view peer) { return peer.substr(0, peer.rfind(':')); }

}  // namespace

Refusals::Late::~Late() {
  const std::lock_guard lock(owner.mutex_);
  --owner.delayed_;
}

bool Refusals::is_crowded(std::string_view peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(address_of(peer));
  return delayed_ >= kMostDelayed && found != counts_.end() && found->second >= kPrompt;
}

std::unique_ptr<Refusals::Late> Refusals::add(std::string_view peer, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (counts_.size() >= kMostAddresses) counts_.clear();  // the addresses of a flood need no more memory than this
  const uint64_t count = ++counts_[std::string(address_of(peer))];
  print_stderr("refused a client at {}: {} ({} from this address)\n", peer, reason, count);
  if (count <= kPrompt) return nullptr;
  ++delayed_;
  return std::make_unique<Late>(*this);
}

void Refusals::forget(std::string_view peer) {
  const std::lock_guard lock(mutex_);
  if (const auto found = counts_.find(address_of(peer)); found != counts_.end()) counts_.erase(found);
}

}  // namespace tenon::driver::remote
