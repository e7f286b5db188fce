// The memory of m_axi: an AXI4 slave, cycle by cycle, with latency, back-pressure and protocol checks.
//
// Semantics: clock() is one rising edge. It takes the signals of the master before the edge and those of the slave (the
// last Outputs), and computes the Outputs after the edge; so every output is registered. Reads are answered
// read_latency cycles after their address, one beat per cycle, in order, or beat by beat in random order between IDs.
// Writes change the memory when their response is given, as late as AXI allows: a master that does not wait for the
// response reads the old bytes. A beat past the memory's end is answered with SLVERR and writes nothing; so is, alone
// in its burst, the beat of read_error, as a memory with error correction does.
//
// AXI4 lets a slave order the handshakes of a write as it likes, and wait for valid before it raises ready (A3.3.1):
// WriteOrder and late_ready choose such slaves. A master that waits for one of them hangs with another.
//
// Checked: full-width INCR bursts that stay in 4 KiB and within max_beats; payload stable while valid waits for
// ready; WLAST in the last beat and only there; data that does not wait for its address's handshake.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace tenon::sim {

// When the memory takes the data of a write burst, and when its address.
enum class WriteOrder : uint32_t {
  kAddressFirst,  // WREADY only after the burst's address
  kDataFirst,     // AWREADY only after the burst's last beat of data
  kTogether,      // AWREADY only while AWVALID and WVALID wait; WREADY after that
  kAny,           // each channel by itself
};

inline constexpr std::string_view kWriteOrders[] = {"address", "data", "together", "any"};

struct AxiMemoryOptions {
  uint8_t* memory = nullptr;
  uint64_t memory_bytes = 0;  // a multiple of 4096
  uint32_t beat_bytes = 8;
  uint32_t read_latency = 60, write_latency = 40;
  uint32_t outstanding = 16;
  uint32_t max_beats = 256;
  uint32_t stall_percent = 0;
  bool interleave = false;
  uint64_t seed = 1;
  WriteOrder write_order = WriteOrder::kAddressFirst;
  bool late_ready = false;             // every ready waits for its valid
  uint64_t read_error = ~uint64_t{0};  // an address in memory whose beat is read with an error, and with its data
};

// What passed through the channels, since the memory was made.
struct AxiTraffic {
  uint64_t read_beats = 0, write_beats = 0, read_bursts = 0, write_bursts = 0;
};

class AxiMemory {
 public:
  static constexpr size_t kMaxBeatBytes = 64;
  static constexpr uint32_t kOkay = 0, kSlvErr = 2;
  static constexpr uint64_t kPatience = 20000;  // cycles that an address waits for data before the master is at fault

  struct Address {
    bool valid = false;
    uint64_t addr = 0;
    uint32_t len = 0, size = 0, burst = 1, id = 0;
    bool operator==(const Address&) const = default;
  };
  struct Data {
    bool valid = false;
    bool last = false;
    uint64_t strobe = 0;
    uint32_t tag = 0;  // the instruction that the beat belongs to; not a signal of AXI
    std::array<uint8_t, kMaxBeatBytes> bytes{};
    bool operator==(const Data&) const = default;
  };
  struct Inputs {
    Address ar, aw;
    Data w;
    bool r_ready = false, b_ready = false;
  };
  struct Outputs {
    bool ar_ready = false, aw_ready = false, w_ready = false;
    bool r_valid = false, r_last = false;
    uint32_t r_resp = 0, r_id = 0;
    std::array<uint8_t, kMaxBeatBytes> r_bytes{};
    bool b_valid = false;
    uint32_t b_resp = 0, b_id = 0;
  };
  // Called for each run of bytes that a beat writes: (tag, address, bytes, length).
  using WriteCallback = std::function<void(uint32_t, uint64_t, const uint8_t*, uint32_t)>;

  explicit AxiMemory(const AxiMemoryOptions& options) : options_(options), random_(options.seed * 2 + 1) {}

  void on_write(WriteCallback callback) { on_write_ = std::move(callback); }
  const Outputs& outputs() const { return out_; }
  const std::string& failure() const { return failure_; }
  bool idle() const {
    return reads_.empty() && writes_.empty() && ahead_.empty() && responses_.empty() && !out_.r_valid && !out_.b_valid;
  }
  const AxiTraffic& traffic() const { return traffic_; }

  void clock(const Inputs& in) {
    ++cycle_;
    check_stable(in);
    const bool ar = in.ar.valid && out_.ar_ready, aw = in.aw.valid && out_.aw_ready, w = in.w.valid && out_.w_ready;
    if (ar) accept(in.ar, "AR", reads_);
    if (aw) accept(in.aw, "AW", writes_);
    if (w) accept(in.w);
    traffic_.read_bursts += ar;
    traffic_.write_bursts += aw;
    traffic_.write_beats += w;
    traffic_.read_beats += out_.r_valid && in.r_ready;
    match();
    check_patience(in, aw);
    if (out_.r_valid && in.r_ready) out_.r_valid = false;
    if (out_.b_valid && in.b_ready) out_.b_valid = false;
    if (!out_.r_valid && !reads_.empty() && !stall()) next_read();
    if (!out_.b_valid && !responses_.empty() && responses_.front().due <= cycle_ && !stall()) respond();
    out_.ar_ready = reads_.size() < options_.outstanding && !stall();
    out_.aw_ready = takes_address(in, aw) && !stall();
    out_.w_ready = takes_data() && !stall();
    if (options_.late_ready) {
      out_.ar_ready = out_.ar_ready && in.ar.valid && !ar;
      out_.aw_ready = out_.aw_ready && in.aw.valid && !aw;
      out_.w_ready = out_.w_ready && in.w.valid && !w;
    }
  }

 private:
  struct Burst {
    uint64_t addr = 0;  // of the first beat, aligned
    uint32_t beats = 0, done = 0, id = 0;
    uint64_t due = 0;
  };
  struct Beat {
    uint64_t addr = 0, strobe = 0;
    std::array<uint8_t, kMaxBeatBytes> bytes{};
  };
  struct Response {
    uint32_t id = 0, resp = 0;
    uint64_t due = 0;
    std::deque<Beat> beats;
  };

  // xorshift64, not support/random.h: a cached model is built from the files of this folder alone, and the generator
  // determines the stalls, and so the cycles, of a seed.
  uint64_t random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
  }
  bool stall() { return options_.stall_percent != 0 && random() % 100 < options_.stall_percent; }

  void fail(const std::string& violation) {
    if (failure_.empty()) failure_ = "cycle " + std::to_string(cycle_) + ": AXI: " + violation;
  }

  void check_stable(const Inputs& in) {
    const auto check = [this](auto& before, const auto& now, bool ready, const char* channel) {
      if (before.valid && !(before == now)) fail(std::string(channel) + " changes while valid waits for ready");
      before.valid = false;
      if (now.valid && !ready) before = now;
    };
    check(waiting_.ar, in.ar, out_.ar_ready, "AR");
    check(waiting_.aw, in.aw, out_.aw_ready, "AW");
    check(waiting_.w, in.w, out_.w_ready, "W");
  }

  void accept(const Address& a, const char* channel, std::deque<Burst>& bursts) {
    const uint64_t width = options_.beat_bytes;
    const Burst burst{a.addr & ~(width - 1), a.len + 1, 0, a.id, cycle_ + options_.read_latency};
    if (uint64_t{1} << a.size != width) fail(std::string(channel) + " has beats narrower than the bus");
    if (a.burst != 1) fail(std::string(channel) + " must be an INCR burst");
    if (burst.beats > options_.max_beats) fail(std::string(channel) + " has " + std::to_string(burst.beats) + " beats");
    if ((burst.addr + burst.beats * width - 1) >> 12 != burst.addr >> 12) {
      fail(std::string(channel) + " crosses 4 KiB: address " + std::to_string(a.addr) + ", " +
           std::to_string(burst.beats) + " beats");
    }
    bursts.push_back(burst);
  }

  bool takes_address(const Inputs& in, bool taken) const {
    if (writes_.size() + responses_.size() >= options_.outstanding) return false;
    switch (options_.write_order) {
      case WriteOrder::kDataFirst: return bursts_ahead_ > 0;
      case WriteOrder::kTogether: return in.aw.valid && !taken && in.w.valid;
      case WriteOrder::kAddressFirst:
      case WriteOrder::kAny: break;
    }
    return true;
  }
  bool takes_data() const {
    switch (options_.write_order) {
      case WriteOrder::kAddressFirst:
      case WriteOrder::kTogether: return !writes_.empty();
      case WriteOrder::kDataFirst:
      case WriteOrder::kAny: break;
    }
    return bursts_ahead_ < options_.outstanding;
  }

  // A slave may wait for all data of a burst before it takes the address; a master has this data some time.
  void check_patience(const Inputs& in, bool taken) {
    const bool waits = in.aw.valid && !taken && !in.w.valid && bursts_ahead_ == 0;
    without_data_ = waits ? without_data_ + 1 : 0;
    if (without_data_ == kPatience) fail("the data of a write waits for AWREADY; a slave may require WVALID first");
  }

  bool inside(uint64_t addr) const {
    return addr < options_.memory_bytes && options_.memory_bytes - addr >= options_.beat_bytes;
  }

  void accept(const Data& w) {
    if (!writes_.empty() && ahead_.empty()) return match(writes_.front(), w);
    ahead_.push_back(w);
    bursts_ahead_ += w.last;
  }

  // Gives the data that was taken to the addresses that were taken, each in its order.
  void match() {
    for (; !writes_.empty() && !ahead_.empty(); ahead_.pop_front()) {
      bursts_ahead_ -= ahead_.front().last;
      match(writes_.front(), ahead_.front());
    }
  }

  void match(Burst& burst, const Data& w) {
    const uint64_t addr = burst.addr + uint64_t{burst.done} * options_.beat_bytes;
    ++burst.done;
    if (w.last != (burst.done == burst.beats)) fail("WLAST is wrong in beat " + std::to_string(burst.done));
    pending_.push_back({addr, w.strobe, w.bytes});
    if (on_write_ && inside(addr)) report(w, addr);
    if (burst.done < burst.beats) return;
    uint32_t resp = kOkay;
    for (const Beat& beat : pending_) resp = beat.strobe != 0 && !inside(beat.addr) ? kSlvErr : resp;
    responses_.push_back({burst.id, resp, cycle_ + options_.write_latency, std::move(pending_)});
    pending_.clear();
    writes_.pop_front();
  }

  void report(const Data& w, uint64_t addr) const {
    for (uint32_t i = 0; i < options_.beat_bytes; ++i) {
      if ((w.strobe >> i & 1) == 0) continue;
      const uint32_t begin = i;
      while (i < options_.beat_bytes && (w.strobe >> i & 1) != 0) ++i;
      on_write_(w.tag, addr + begin, w.bytes.data() + begin, i - begin);
    }
  }

  void next_read() {
    size_t chosen = 0;
    if (options_.interleave) {
      // A random burst of those that are due and the oldest of their ID.
      uint32_t candidates = 0;
      chosen = reads_.size();
      for (size_t i = 0; i < reads_.size(); ++i) {
        bool oldest = reads_[i].due <= cycle_;
        for (size_t j = 0; j < i && oldest; ++j) oldest = reads_[j].id != reads_[i].id;
        if (oldest && random() % ++candidates == 0) chosen = i;
      }
      if (chosen == reads_.size()) return;
    } else if (reads_.front().due > cycle_) {
      return;
    }
    Burst& burst = reads_[chosen];
    const uint64_t addr = burst.addr + uint64_t{burst.done} * options_.beat_bytes;
    ++burst.done;
    out_.r_valid = true;
    out_.r_id = burst.id;
    out_.r_last = burst.done == burst.beats;
    out_.r_resp = inside(addr) && options_.read_error - addr >= options_.beat_bytes ? kOkay : kSlvErr;
    if (inside(addr)) {
      std::memcpy(out_.r_bytes.data(), options_.memory + addr, options_.beat_bytes);
    } else {
      out_.r_bytes.fill(0xa5);
    }
    if (out_.r_last) reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(chosen));
  }

  void respond() {
    Response& response = responses_.front();
    for (const Beat& beat : response.beats) {
      if (!inside(beat.addr)) continue;
      for (uint32_t i = 0; i < options_.beat_bytes; ++i) {
        if ((beat.strobe >> i & 1) != 0) options_.memory[beat.addr + i] = beat.bytes[i];
      }
    }
    out_.b_valid = true;
    out_.b_id = response.id;
    out_.b_resp = response.resp;
    responses_.pop_front();
  }

  const AxiMemoryOptions options_;
  uint64_t random_;
  uint64_t cycle_ = 0;
  WriteCallback on_write_;
  Outputs out_;
  std::deque<Burst> reads_, writes_;
  std::deque<Data> ahead_;     // data whose address has not been taken
  uint32_t bursts_ahead_ = 0;  // last beats in ahead_
  uint64_t without_data_ = 0;  // cycles for which an address has waited, and no data
  AxiTraffic traffic_;
  std::deque<Beat> pending_;  // of the front of writes_
  std::deque<Response> responses_;
  Inputs waiting_;  // channels on which valid waited for ready
  std::string failure_;
};

}  // namespace tenon::sim
