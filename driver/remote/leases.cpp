#include "driver/remote/leases.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::driver::remote {

Leases::Leases(const std::vector<std::pair<std::string, std::string>>& devices) {
  for (const auto& [name, uri] : devices) devices_.push_back({.name = name, .uri = uri, .queue = {}});
}

Expected<Leases::Lease> Leases::join(std::string_view name, std::string client) {
  const std::scoped_lock lock(mutex_);
  auto device = std::ranges::find(devices_, name, &Device::name);
  if (name.empty()) device = std::ranges::min_element(devices_, {}, [](const Device& d) { return d.queue.size(); });
  if (device == devices_.end()) {
    std::string names;
    for (const Device& d : devices_) names += fmt::format("{}{}", names.empty() ? "" : ", ", d.name);
    return error(fmt::format("the server has no device \"{}\"", name), {}, "its devices are: " + names);
  }
  device->queue.push_back({.id = next_id_, .client = std::move(client), .since = {}});
  return Lease(this, static_cast<size_t>(device - devices_.begin()), next_id_++);
}

std::vector<ServedDevice> Leases::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ServedDevice> result;
  for (const Device& device : devices_) {
    ServedDevice served{.name = device.name, .uri = device.uri, .holder = {}};
    if (!device.queue.empty()) {
      served.holder = device.queue.front().client;
      served.held = device.queue.front().since.elapsed();
      served.queued = device.queue.size() - 1;
    }
    result.push_back(std::move(served));
  }
  return result;
}

Leases::Lease::~Lease() {
  if (leases_ == nullptr) return;
  {
    const std::scoped_lock lock(leases_->mutex_);
    std::list<Entry>& queue = leases_->devices_[device_].queue;
    const bool held = queue.front().id == id_;
    queue.remove_if([&](const Entry& entry) { return entry.id == id_; });
    if (held && !queue.empty()) queue.front().since = {};
  }
  leases_->changed_.notify_all();
}

bool Leases::Lease::wait(std::chrono::nanoseconds limit) const {
  std::unique_lock lock(leases_->mutex_);
  const std::list<Entry>& queue = leases_->devices_[device_].queue;
  return leases_->changed_.wait_for(lock, limit, [&] { return queue.front().id == id_; });
}

size_t Leases::Lease::ahead() const {
  const std::scoped_lock lock(leases_->mutex_);
  const std::list<Entry>& queue = leases_->devices_[device_].queue;
  return static_cast<size_t>(
      std::distance(queue.begin(), std::ranges::find(queue, id_, [](const Entry& entry) { return entry.id; })));
}

std::string Leases::Lease::holder() const {
  const ServedDevice device = leases_->list()[device_];
  return fmt::format("{} (for {} s)", device.holder,
                     std::chrono::duration_cast<std::chrono::seconds>(device.held).count());
}

}  // namespace tenon::driver::remote
