#include "driver/remote/pool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>
#include <thread>

#include "support/clock.h"

namespace tenon::driver::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 300ms;          // before the servers are asked again
constexpr size_t kReasons = 8;          // in a message
constexpr size_t kRequestsAtOnce = 64;  // each is a thread

// What every server answers.
std::vector<Expected<Devices>> ask_all(const std::vector<Site>& sites, const ListDevices& list) {
  std::vector<Expected<Devices>> answers;
  for (size_t begin = 0; begin < sites.size(); begin += kRequestsAtOnce) {
    std::vector<std::future<Expected<Devices>>> requests;
    for (size_t i = begin; i < std::min(sites.size(), begin + kRequestsAtOnce); ++i)
      requests.push_back(std::async(std::launch::async, [&list, &site = sites[i]] { return list(site); }));
    for (auto& request : requests) answers.push_back(request.get());
  }
  return answers;
}

// The free devices, and of each server without any the reason.
struct Offers {
  std::vector<Site> free;
  std::vector<std::string> reasons;
};

Offers offers(const std::vector<Site>& sites, const ListDevices& list) {
  Offers result;
  std::set<std::string> taken;  // a device that is named twice counts once
  const auto answers = ask_all(sites, list);
  for (size_t i = 0; i < sites.size(); ++i) {
    const auto& [address, device] = sites[i];
    if (!answers[i]) {
      result.reasons.push_back(fmt::format("{}: {}", address, answers[i].error().what));
      continue;
    }
    std::string held;
    bool known = false;
    for (const ServedDevice& served : *answers[i]) {
      if (!device.empty() && served.name != device) continue;
      known = true;
      if (!served.holder.empty()) held = fmt::format("{}/{} is held by {}", address, served.name, served.holder);
      else if (taken.insert(address + "/" + served.name).second) result.free.push_back({address, served.name});
    }
    if (!known) result.reasons.push_back(fmt::format("{} has no device \"{}\"", address, device));
    else if (!held.empty()) result.reasons.push_back(held);
  }
  return result;
}

}  // namespace

Expected<std::unique_ptr<Accelerator>> open_free(const std::vector<Site>& sites, std::chrono::nanoseconds wait,
                                                 const std::string& uri, const ListDevices& list,
                                                 const OpenDevice& open) {
  const Stopwatch stopwatch;
  while (true) {
    Offers offered = offers(sites, list);
    if (!offered.free.empty()) {
      const size_t first = static_cast<size_t>(::getpid()) % offered.free.size();
      std::ranges::rotate(offered.free, offered.free.begin() + static_cast<std::ptrdiff_t>(first));
    }
    for (const Site& site : offered.free) {
      auto opened = open(site);
      if (opened) return opened;
      offered.reasons.push_back(fmt::format("{}/{}: {}", site.address, site.device, opened.error().what));
    }
    if (stopwatch.elapsed() >= wait) {
      std::string reasons;
      for (size_t i = 0; i < std::min(offered.reasons.size(), kReasons); ++i)
        reasons += fmt::format("{}{}", i == 0 ? "" : "; ", offered.reasons[i]);
      if (offered.reasons.size() > kReasons) reasons += fmt::format("; and {} more", offered.reasons.size() - kReasons);
      return error(fmt::format("no device of {} servers could be taken: {}", sites.size(), reasons), uri,
                   "wait for one with ?wait=SECONDS, or see who holds them: tenon devices --remote");
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kPause, wait - stopwatch.elapsed()));
  }
}

Expected<Devices> list_all(const std::vector<Site>& sites, const ListDevices& list) {
  Devices all;
  bool answered = false;
  auto answers = ask_all(sites, list);
  for (size_t i = 0; i < sites.size(); ++i) {
    const auto& [address, device] = sites[i];
    if (!answers[i]) {
      all.push_back({.name = address, .uri = "-", .holder = answers[i].error().what});
      continue;
    }
    answered = true;
    for (ServedDevice& served : *answers[i]) {
      if (!device.empty() && served.name != device) continue;
      served.name = fmt::format("{}/{}", address, served.name);
      all.push_back(std::move(served));
    }
  }
  if (!answered) return std::unexpected(std::move(answers.front().error()));
  return all;
}

}  // namespace tenon::driver::remote
