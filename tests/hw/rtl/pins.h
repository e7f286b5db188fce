// The far end of the serial line of a simulated board design: drives its receiver and samples its transmitter, bit by
// bit.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <utility>

#include "tests/driver/serial/emulated_board.h"

namespace tenon::driver {

// The pins of a design.
class Design {
 public:
  virtual ~Design() = default;
  virtual void clock(bool rx) = 0;  // one cycle
  virtual bool tx() = 0;
};

// The model that Verilator has made of a board design: reset, and run until its memory is ready. An SDRAM is
// initialized for 200 us after power-up, at 25 MHz, and no request is answered before.
template <class Top>
class VerilatedBoard final : public Design {
 public:
  VerilatedBoard() {
    top_.rst_ni = 0;
    for (int i = 0; i < 4; ++i) clock(true);
    top_.rst_ni = 1;
    for (int i = 0; i < kPowerUpClocks; ++i) clock(true);
  }
  void clock(bool rx) override {
    top_.rx_i = rx;
    top_.clk_i = 0;
    top_.eval();
    top_.clk_i = 1;
    top_.eval();
  }
  bool tx() override { return top_.tx_o; }

 private:
  static constexpr int kPowerUpClocks = 6000;
  Top top_;
};

// Time passes while bytes arrive and until the design is quiet.
class Pins final : public serial::Line {
 public:
  Pins(std::unique_ptr<Design> design, int clocks_per_bit)
      : design_(std::move(design)), clocks_per_bit_(clocks_per_bit) {}

  void receive(std::span<const uint8_t> bytes, serial::Bytes& sent) override {
    for (const uint8_t byte : bytes) {
      const unsigned bits = 1u << 9 | unsigned{byte} << 1;  // stop bit, data, start bit
      for (int bit = 0; bit < 10; ++bit) send_bit((bits >> bit & 1) != 0, sent);
    }
    for (int quiet = 0; quiet < kQuietBits; ++quiet) {
      if (send_bit(true, sent)) quiet = 0;
    }
  }

 private:
  static constexpr int kQuietBits = 400;  // after these the design has nothing more to send

  // Returns whether the design sends.
  bool send_bit(bool value, serial::Bytes& sent) {
    for (int i = 0; i < clocks_per_bit_; ++i) {
      design_->clock(value);
      sample(sent);
    }
    return sampling_;
  }

  void sample(serial::Bytes& sent) {
    if (!sampling_) {
      if (design_->tx()) return;
      sampling_ = true;
      clocks_ = 0;
      bits_ = 0;
      return;
    }
    if (++clocks_ % clocks_per_bit_ != clocks_per_bit_ / 2) return;
    const int bit = clocks_ / clocks_per_bit_;
    bits_ |= unsigned{design_->tx()} << bit;
    if (bit < 9) return;
    EXPECT_EQ(bits_ & 0x201, 0x200u) << "start and stop bit";
    sent.push_back(static_cast<uint8_t>(bits_ >> 1));
    sampling_ = false;
  }

  std::unique_ptr<Design> design_;
  int clocks_per_bit_;
  bool sampling_ = false;
  int clocks_ = 0;
  unsigned bits_ = 0;
};

}  // namespace tenon::driver
