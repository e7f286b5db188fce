// The AXI memory model with a master that the test drives: data, latency, errors, and every protocol rule.
#include "sim/verilator/axi_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace tenon::sim {
namespace {

using testing::HasSubstr;

struct AxiMemoryTest : testing::Test {
  AxiMemoryTest() : bytes(8192) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
    options.memory = bytes.data();
    options.memory_bytes = bytes.size();
    options.read_latency = 10;
    options.write_latency = 5;
  }

  static AxiMemory::Address burst(uint64_t addr, uint32_t beats, uint32_t id = 0) {
    return {true, addr, beats - 1, 3, 1, id};
  }

  // Drives an address until the memory accepts it.
  void send(AxiMemory& memory, AxiMemory::Inputs& in, AxiMemory::Address AxiMemory::Inputs::*channel,
            bool AxiMemory::Outputs::*ready, const AxiMemory::Address& address) {
    in.*channel = address;
    bool taken = false;
    while (!taken) {
      taken = memory.outputs().*ready;
      memory.clock(in);
    }
    (in.*channel).valid = false;
  }

  void write_beat(AxiMemory& memory, AxiMemory::Inputs& in, uint64_t strobe, uint8_t value, bool last) {
    in.w.valid = true;
    in.w.last = last;
    in.w.strobe = strobe;
    in.w.bytes.fill(value);
    bool taken = false;
    for (int i = 0; i < 1000 && !taken; ++i) {
      taken = memory.outputs().w_ready;
      memory.clock(in);
    }
    EXPECT_TRUE(taken);
    in.w.valid = false;
  }

  uint32_t wait_response(AxiMemory& memory, AxiMemory::Inputs& in) {
    in.b_ready = true;
    while (!memory.outputs().b_valid) memory.clock(in);
    const uint32_t resp = memory.outputs().b_resp;
    memory.clock(in);
    return resp;
  }

  std::vector<uint8_t> bytes;
  AxiMemoryOptions options;
};

TEST_F(AxiMemoryTest, AnswersAReadAfterItsLatencyWithABeatPerCycle) {
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  in.r_ready = true;
  memory.clock(in);
  send(memory, in, &AxiMemory::Inputs::ar, &AxiMemory::Outputs::ar_ready, burst(64, 4));
  int waited = 0;
  while (!memory.outputs().r_valid) memory.clock(in), ++waited;
  EXPECT_EQ(waited, 10);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(memory.outputs().r_valid);
    EXPECT_EQ(std::memcmp(memory.outputs().r_bytes.data(), bytes.data() + 64 + 8 * i, 8), 0);
    EXPECT_EQ(memory.outputs().r_last, i == 3);
    EXPECT_EQ(memory.outputs().r_resp, AxiMemory::kOkay);
    memory.clock(in);
  }
  EXPECT_TRUE(memory.idle());
}

TEST_F(AxiMemoryTest, AWriteBecomesVisibleWithItsResponseAndNotBefore) {
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  std::vector<std::pair<uint64_t, uint32_t>> written;
  memory.on_write([&](uint32_t tag, uint64_t address, const uint8_t*, uint32_t count) {
    EXPECT_EQ(tag, 17u);
    written.emplace_back(address, count);
  });
  in.w.tag = 17;
  const uint8_t before = bytes[65];
  send(memory, in, &AxiMemory::Inputs::aw, &AxiMemory::Outputs::aw_ready, burst(64, 1));
  write_beat(memory, in, 0b11100110, 0xee, true);
  EXPECT_EQ(bytes[65], before);
  EXPECT_EQ(wait_response(memory, in), AxiMemory::kOkay);
  EXPECT_EQ(bytes[65], 0xee);
  EXPECT_EQ(bytes[64], static_cast<uint8_t>(64 * 7));
  EXPECT_EQ(written, (std::vector<std::pair<uint64_t, uint32_t>>{{65, 2}, {69, 3}}));
  EXPECT_EQ(memory.failure(), "");
}

TEST_F(AxiMemoryTest, BeatsPastTheEndAreErrorsAndWriteNothing) {
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  in.r_ready = true;
  send(memory, in, &AxiMemory::Inputs::ar, &AxiMemory::Outputs::ar_ready, burst(8192, 1));
  while (!memory.outputs().r_valid) memory.clock(in);
  EXPECT_EQ(memory.outputs().r_resp, AxiMemory::kSlvErr);
  memory.clock(in);
  send(memory, in, &AxiMemory::Inputs::aw, &AxiMemory::Outputs::aw_ready, burst(UINT64_MAX - 7, 1));
  write_beat(memory, in, 0xff, 1, true);
  EXPECT_EQ(wait_response(memory, in), AxiMemory::kSlvErr);
  // Strobes of 0 finish an aborted burst: no write, so no error.
  send(memory, in, &AxiMemory::Inputs::aw, &AxiMemory::Outputs::aw_ready, burst(8192, 1));
  write_beat(memory, in, 0, 1, true);
  EXPECT_EQ(wait_response(memory, in), AxiMemory::kOkay);
  EXPECT_EQ(memory.failure(), "");
}

TEST_F(AxiMemoryTest, StallsAndInterleavingKeepEveryBurstsOrder) {
  options.stall_percent = 40;
  options.interleave = true;
  bool mixed = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    options.seed = seed;
    AxiMemory memory(options);
    AxiMemory::Inputs in;
    std::mt19937 random(static_cast<unsigned>(seed));
    std::map<uint32_t, std::vector<std::pair<uint64_t, bool>>> expected;  // by ID: address of each beat, last
    int sent = 0, beats = 0;
    uint32_t last_id = 0;
    bool inside = false;
    for (int cycle = 0; cycle < 3000; ++cycle) {
      if (!in.ar.valid && sent < 12) {
        in.ar = burst(random() % 500 * 8, 1 + random() % 8, random() % 4);
        in.ar.addr = std::min<uint64_t>(in.ar.addr, 4096 - 64);
      }
      in.r_ready = random() % 2;
      const bool taken = in.ar.valid && memory.outputs().ar_ready;
      const auto& out = memory.outputs();
      if (out.r_valid && in.r_ready) {
        auto& queue = expected[out.r_id];
        ASSERT_FALSE(queue.empty());
        EXPECT_EQ(std::memcmp(out.r_bytes.data(), bytes.data() + queue.front().first, 8), 0);
        EXPECT_EQ(out.r_last, queue.front().second);
        queue.erase(queue.begin());
        mixed = mixed || (inside && out.r_id != last_id);
        inside = !out.r_last;
        last_id = out.r_id;
        ++beats;
      }
      if (taken) {
        for (uint32_t i = 0; i <= in.ar.len; ++i) expected[in.ar.id].emplace_back(in.ar.addr + 8 * i, i == in.ar.len);
        ++sent;
      }
      memory.clock(in);
      if (taken) in.ar.valid = false;
    }
    EXPECT_EQ(sent, 12);
    EXPECT_GT(beats, 12);
    EXPECT_TRUE(memory.idle());
    EXPECT_EQ(memory.failure(), "");
  }
  EXPECT_TRUE(mixed);
}

// A burst of two beats, whose data and address are offered together; returns the order in which the memory takes them.
std::string order_of_handshakes(AxiMemory& memory) {
  AxiMemory::Inputs in;
  in.aw = AxiMemoryTest::burst(64, 2);
  in.w = {.valid = true, .strobe = 0xff, .bytes = {1, 2, 3}};
  in.b_ready = true;
  std::string order;
  for (int cycle = 0; cycle < 100 && !memory.outputs().b_valid; ++cycle) {
    const bool aw = in.aw.valid && memory.outputs().aw_ready, w = in.w.valid && memory.outputs().w_ready;
    memory.clock(in);
    if (aw) order += 'a', in.aw.valid = false;
    if (w) order += 'w', in.w.valid = !in.w.last, in.w.last = true;
  }
  if (memory.outputs().b_valid) order += 'b';
  return order;
}

TEST_F(AxiMemoryTest, EachWriteOrderTakesAddressAndDataInItsOrder) {
  const auto order = [&](WriteOrder write_order, bool late_ready) {
    options.write_order = write_order;
    options.late_ready = late_ready;
    bytes[64] = 0;
    AxiMemory memory(options);
    const std::string found = order_of_handshakes(memory);
    EXPECT_EQ(memory.failure(), "");
    EXPECT_EQ(bytes[64], 1);
    EXPECT_EQ(memory.traffic().write_bursts, 1u);
    EXPECT_EQ(memory.traffic().write_beats, 2u);
    return found;
  };
  EXPECT_EQ(order(WriteOrder::kAddressFirst, false), "awwb");
  EXPECT_EQ(order(WriteOrder::kAddressFirst, true), "awwb");
  EXPECT_EQ(order(WriteOrder::kDataFirst, false), "wwab");
  EXPECT_EQ(order(WriteOrder::kDataFirst, true), "wwab");
  EXPECT_EQ(order(WriteOrder::kTogether, false), "awwb");
  EXPECT_EQ(order(WriteOrder::kAny, false), "awwb");
}

TEST_F(AxiMemoryTest, ReadyWaitsForValidWhereItIsLate) {
  options.late_ready = true;
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  for (int cycle = 0; cycle < 10; ++cycle) memory.clock(in);
  EXPECT_FALSE(memory.outputs().ar_ready || memory.outputs().aw_ready || memory.outputs().w_ready);
  in.ar = burst(0, 1);
  memory.clock(in);
  EXPECT_TRUE(memory.outputs().ar_ready);
}

// Data that comes before its address, by up to several bursts, is written to the right addresses.
TEST_F(AxiMemoryTest, DataBeforeItsAddressIsKept) {
  options.write_order = WriteOrder::kAny;
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  for (uint8_t value = 1; value <= 3; ++value) write_beat(memory, in, 0xff, value, true);
  for (uint64_t i = 0; i < 3; ++i) {
    send(memory, in, &AxiMemory::Inputs::aw, &AxiMemory::Outputs::aw_ready, burst(128 * i, 1));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(wait_response(memory, in), AxiMemory::kOkay);
  for (uint8_t i = 0; i < 3; ++i) EXPECT_EQ(bytes[128u * i], i + 1);
  EXPECT_TRUE(memory.idle());
}

TEST_F(AxiMemoryTest, AMasterWhoseDataWaitsForTheAddressIsNamed) {
  options.write_order = WriteOrder::kDataFirst;
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  in.aw = burst(0, 1);
  for (uint64_t cycle = 0; cycle <= AxiMemory::kPatience; ++cycle) memory.clock(in);
  EXPECT_THAT(memory.failure(), HasSubstr("the data of a write waits for AWREADY"));
}

// Each violation of the protocol is named.
TEST_F(AxiMemoryTest, ABurstAcross4KibIsNamed) {
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  send(memory, in, &AxiMemory::Inputs::ar, &AxiMemory::Outputs::ar_ready, burst(4096 - 8, 1));
  EXPECT_EQ(memory.failure(), "");
  send(memory, in, &AxiMemory::Inputs::ar, &AxiMemory::Outputs::ar_ready, burst(4096 - 8, 2));
  EXPECT_THAT(memory.failure(), HasSubstr("AR crosses 4 KiB: address 4088, 2 beats"));
}

TEST_F(AxiMemoryTest, ALongBurstIsNamed) {
  options.max_beats = 16;
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  send(memory, in, &AxiMemory::Inputs::aw, &AxiMemory::Outputs::aw_ready, burst(0, 17));
  EXPECT_THAT(memory.failure(), HasSubstr("AW has 17 beats"));
}

TEST_F(AxiMemoryTest, AWrongLastIsNamed) {
  for (const bool early : {true, false}) {
    AxiMemory memory(options);
    AxiMemory::Inputs in;
    send(memory, in, &AxiMemory::Inputs::aw, &AxiMemory::Outputs::aw_ready, burst(0, 2));
    write_beat(memory, in, 0xff, 1, early);
    if (!early) write_beat(memory, in, 0xff, 1, false);
    EXPECT_THAT(memory.failure(), HasSubstr(early ? "WLAST is wrong in beat 1" : "WLAST is wrong in beat 2"));
  }
}

TEST_F(AxiMemoryTest, APayloadThatChangesUnderStallIsNamed) {
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  in.w.valid = true;  // never ready before an address
  in.w.strobe = 1;
  memory.clock(in);
  memory.clock(in);
  EXPECT_EQ(memory.failure(), "");
  in.w.strobe = 2;
  memory.clock(in);
  EXPECT_THAT(memory.failure(), HasSubstr("W changes while valid waits for ready"));
}

TEST_F(AxiMemoryTest, NarrowAndNonIncrementingBurstsAreNamed) {
  AxiMemory memory(options);
  AxiMemory::Inputs in;
  auto narrow = burst(0, 1);
  narrow.size = 2;
  send(memory, in, &AxiMemory::Inputs::ar, &AxiMemory::Outputs::ar_ready, narrow);
  EXPECT_THAT(memory.failure(), HasSubstr("AR has beats narrower than the bus"));
  AxiMemory other(options);
  auto fixed = burst(0, 1);
  fixed.burst = 0;
  send(other, in, &AxiMemory::Inputs::ar, &AxiMemory::Outputs::ar_ready, fixed);
  EXPECT_THAT(other.failure(), HasSubstr("AR must be an INCR burst"));
}

}  // namespace
}  // namespace tenon::sim
