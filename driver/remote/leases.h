// Who holds each device of a server, and who waits for it.
//
// Semantics: the clients of a device form a queue in the order of their arrival, whose first holds the device. A Lease
// is a client's entry in a queue, from join() to its destruction. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/serve.h"
#include "support/clock.h"

namespace tenon::driver::remote {

class Leases {
 public:
  // Devices by name and URI.
  explicit Leases(const std::vector<std::pair<std::string, std::string>>& devices);

  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : leases_(std::exchange(other.leases_, nullptr)), device_(other.device_), id_(other.id_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    size_t device() const { return device_; }
    // Waits until the device is held, or the limit has passed; returns whether it is held.
    bool wait(std::chrono::nanoseconds limit) const;
    size_t ahead() const;        // clients before this one
    std::string holder() const;  // who holds the device, and for how long

   private:
    friend class Leases;
    Lease(Leases* leases, size_t device, uint64_t id) : leases_(leases), device_(device), id_(id) {}
    Leases* leases_;
    size_t device_;
    uint64_t id_;
  };

  // Joins the queue of the named device, or the shortest queue where the name is empty.
  Expected<Lease> join(std::string_view name, std::string client);
  std::vector<ServedDevice> list() const;

 private:
  struct Entry {
    uint64_t id;
    std::string client;
    Stopwatch since;  // it holds the device
  };
  struct Device {
    std::string name, uri;
    std::list<Entry> queue;
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Device> devices_;
  uint64_t next_id_ = 0;
};

}  // namespace tenon::driver::remote
