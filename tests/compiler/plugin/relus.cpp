// A plugin for plugin_test.cpp: ReLU and products with one number, one after the other. TENON_TEST_PLUGIN names what it
// does wrong, or in another way; without it, it is right.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "compiler/plugin/target.h"

namespace {

bool does(std::string_view what) {
  const char* chosen = std::getenv("TENON_TEST_PLUGIN");
  return chosen && what == chosen;
}

struct Loader {
  Loader() {
    if (does("crash when opened")) std::raise(SIGSEGV);
  }
} loader;

void take_all_memory() {
  constexpr size_t kStep = size_t{16} << 20;
  for (;;) {
    void* memory = std::malloc(kStep);
    if (!memory) std::abort();
    std::memset(memory, 1, kStep);
  }
}

int32_t accepts(const tn_region* region, char* message, uint32_t bytes) {
  if (does("crash in accepts")) std::raise(SIGSEGV);
  if (does("throw in accepts")) throw std::runtime_error("no such layer");
  if (does("exit in accepts")) std::exit(5);
  if (does("wait in accepts")) pause();
  if (does("close all in accepts")) {
    for (int file = 3; file < 1024; ++file) close(file);
    pause();
  }
  if (does("leave a process in accepts")) {
    if (fork() == 0) pause();
    std::raise(SIGSEGV);
  }
  if (does("take memory in accepts")) take_all_memory();
  if (does("print in accepts")) std::puts("a line of the plugin");
  if (does("refuse all")) return std::snprintf(message, bytes, "it is a bad day"), 1;
  if (region->params != 1 || region->results != 1) return std::snprintf(message, bytes, "it is no chain"), 1;
  for (uint32_t i = 0; i < region->nodes; ++i) {
    const tn_node& node = region->node[i];
    if (node.inputs == 1) continue;
    const tn_value& factor = region->value[node.input[1]];
    if (factor.rank > region->value[node.input[0]].rank) return std::snprintf(message, bytes, "it adds axes"), 1;
    if (factor.bytes != sizeof(float)) return std::snprintf(message, bytes, "the factor is not a scalar"), 1;
  }
  return 0;
}

int32_t cost(const tn_region*, double* seconds, char* message, uint32_t bytes) {
  *seconds = does("NaN")        ? std::nan("")
             : does("negative") ? -1e-6
             : does("1e300")    ? 1e300
             : does("a year")   ? 31536000
                                : 1e-9;
  if (does("no cost")) return std::snprintf(message, bytes, "the table is empty"), 1;
  return 0;
}

int32_t boundary(const tn_region* region, const char** layouts, char*, uint32_t) {
  if (does("layout")) {
    for (uint32_t i = 0; i < region->params + region->results; ++i) layouts[i] = "NHWC";
  }
  if (does("unknown layout")) layouts[0] = "XYZ";
  return 0;
}

// The kernel's name for each node, and the factors.
int32_t compile(const tn_region* region, tn_artifact* artifact, char* message, uint32_t bytes) {
  static std::vector<char> code;
  static std::vector<uint32_t> factors;
  if (does("crash in compile")) std::raise(SIGFPE);
  if (does("fail in compile")) return std::snprintf(message, bytes, "too many layers"), 1;
  if (does("NULL in compile")) return artifact->bytes = 100, 0;
  if (does("too much in compile")) return artifact->data = "", artifact->bytes = uint64_t{1} << 60, 0;
  for (uint32_t i = 0; i < region->nodes; ++i) {
    const tn_node& node = region->node[i];
    code.push_back(node.inputs == 1 ? 'r' : 'm');
    if (node.inputs == 2) factors.push_back(node.input[1]);
  }
  if (does("no constant")) factors.push_back(region->param[0]);
  if (does("layout") && std::string_view(region->layout[0]) != "NHWC")
    return std::snprintf(message, bytes, "the layout is '%s'", region->layout[0]), 1;
  artifact->data = code.data(), artifact->bytes = code.size();
  artifact->constant = factors.data(), artifact->constants = static_cast<uint32_t>(factors.size());
  return 0;
}

int32_t run(tn_call* call) {
  const std::string_view code(static_cast<const char*>(call->buffers[0]), static_cast<size_t>(call->dims[0]));
  std::vector<int64_t> sizes(call->dims + 1, call->dims + 1 + call->operands[1].rank);
  size_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<size_t>(size);
  if (does("wrong size")) ++sizes[0];
  const uint32_t dtype = does("wrong type") ? TN_I32 : TN_F32;
  auto* y = static_cast<float*>(call->result(call, 0, dtype, static_cast<uint32_t>(sizes.size()), sizes.data()));
  if (!y) return 1;
  std::copy_n(static_cast<const float*>(call->buffers[1]), count, y);
  if (does("crash in the kernel")) std::raise(SIGSEGV);
  uint32_t factor = 2;
  for (const char op : code) {
    const float by = op == 'm' ? *static_cast<const float*>(call->buffers[factor++]) : 1;
    for (size_t i = 0; i < count; ++i) y[i] = op == 'm' ? y[i] * by : std::max(y[i], 0.0f);
  }
  if (does("wrong value") && count > 2) y[2] += 1;
  return 0;
}

}  // namespace

extern "C" const tn_target* tn_target_get() {
  static const tn_row rows[] = {{"relu", "relu(_: f32)", 0}, {"scale", "multiply(_: f32, const)", 0}};
  static const tn_row everything[] = {{"all", "relu(_) | _", 0}};
  static const tn_row wrong[] = {{"relu", "relu(_: f33)", 0}};
  static const tn_row paths[] = {{"path", "path(relu(_), relu(_), relu(_))", 0}};
  static const tn_row twice[] = {{"relu", "relu(_)", 0}, {"relu", "multiply(_, _)", 0}};
  static tn_target target{.abi = TN_TARGET_ABI,
                          .flags = 0,
                          .name = "relus",
                          .doc = "ReLU and factors",
                          .rows = 2,
                          .row = rows,
                          .accepts = accepts,
                          .cost = cost,
                          .boundary = boundary,
                          .compile = compile};
  if (does("NULL")) return nullptr;
  if (does("newer version")) target.abi = TN_TARGET_ABI + 1;
  if (does("everything")) target.row = everything, target.rows = 1;
  if (does("wrong pattern")) target.row = wrong, target.rows = 1;
  if (does("two of a name")) target.row = twice;
  if (does("no rows")) target.rows = 0;
  if (does("no samples")) target.row = paths, target.rows = 1;
  if (does("no compile")) target.compile = nullptr;
  if (does("another name")) target.name = "others";
  if (does("no name")) target.name = nullptr;
  if (does("regions") || does("layout")) target.flags = TN_TARGET_REGIONS;
  return &target;
}

extern "C" const tn_library* tn_library_get() {
  static const char* const names[] = {"run"};
  static const tn_kernel kernels[] = {run};
  static const tn_variant variants[] = {{"x86-64", kernels}, {"armv8-a", kernels}, {"generic", kernels}};
  static const tn_library library{.abi = TN_ABI,
                                  .count = 1,
                                  .names = names,
                                  .variants = 3,
                                  .sites = 0,
                                  .variant = variants,
                                  .site = nullptr,
                                  .functions = 0,
                                  .function = nullptr,
                                  .doc = "the kernels of the plugin relus",
                                  .open = nullptr,
                                  .close = nullptr};
  return &library;
}
