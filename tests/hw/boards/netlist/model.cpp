// The Verilated netlist as a shared object: pins by a C interface, which pins_test.cpp opens.
#include "Vnetlist.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

extern "C" {

__attribute__((visibility("default"))) void* netlist_create() { return new Vnetlist; }
__attribute__((visibility("default"))) void netlist_destroy(void* model) { delete static_cast<Vnetlist*>(model); }
__attribute__((visibility("default"))) void netlist_clock(void* model, bool rx) {
  auto& top = *static_cast<Vnetlist*>(model);
  top.rx_i = rx;
  top.clk_i = 0;
  top.eval();
  top.clk_i = 1;
  top.eval();
}
__attribute__((visibility("default"))) bool netlist_tx(void* model) { return static_cast<Vnetlist*>(model)->tx_o; }

}  // extern "C"
