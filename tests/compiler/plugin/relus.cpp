// A plugin for plugin_test.cpp: ReLU and products with one number, one after the other. TENON_TEST_PLUGIN names what it
// does wrong, or in another way; without it, it is right.
#include <dlfcn.h>
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

// By the name of the file, of which a test has a copy.
std::string_view own_name() {
  static const char here = 0;
  Dl_info info{};
  const bool is_copy = dladdr(&here, &info) != 0 && std::string_view(info.dli_fname).ends_with("/others.so");
  return is_copy ? "others" : "relus";
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

// A line for each question: its operators.
void list(const char* question, const tn_region* region) {
  if (!does("list")) return;
  std::printf("%s:", question);
  for (uint32_t i = 0; i < region->nodes; ++i) std::printf(" %s", region->node[i].op);
  std::printf("\n");
}

int32_t accepts(const tn_region* region, char* message, uint32_t bytes) {
  list("accepts", region);
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
  if (does("tuples") || does("several results")) return 0;
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
  list("boundary", region);
  if (does("several results")) layouts[region->params + region->results - 2] = "NHWC";  // the first part of a split
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
  if (does("tuples")) return artifact->kernel = "sum_of_halves", 0;
  if (does("several results")) {
    artifact->kernel = "split", artifact->data = "rs" + (2 - region->nodes), artifact->bytes = region->nodes;
    return 0;
  }
  for (uint32_t i = 0; i < region->nodes; ++i) {
    const tn_node& node = region->node[i];
    code.push_back(std::strcmp(node.op, "sqrt") == 0 ? 's' : node.inputs == 1 ? 'r' : 'm');
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
  if (does("crash in the kernel of others") && own_name() == "others") std::raise(SIGSEGV);
  if (does("wait in the kernel")) pause();
  if (does("fail in the kernel")) return 1;
  uint32_t factor = 2;
  for (const char op : code) {
    const float by = op == 'm' ? *static_cast<const float*>(call->buffers[factor++]) : 1;
    for (size_t i = 0; i < count; ++i)
      y[i] = op == 'm' ? y[i] * by : op == 's' ? std::sqrt(y[i]) : std::max(y[i], 0.0f);
  }
  if (does("wrong value") && count > 2) y[2] += 1;
  return 0;
}

// Of a split of C into halves, their sum.
int32_t sum_of_halves(tn_call* call) {
  const int64_t* x_sizes = call->dims + 1;
  const int64_t sizes[] = {x_sizes[0], 1, x_sizes[2], x_sizes[3]};
  auto* y = static_cast<float*>(call->result(call, 0, TN_F32, 4, sizes));
  if (!y) return 1;
  const auto* x = static_cast<const float*>(call->buffers[1]);
  const int64_t half = sizes[2] * sizes[3];
  for (int64_t i = 0; i < half; ++i) y[i] = x[i] + x[i + half];
  return 0;
}

// The last axis of NCHW is split into its first column, stored as NHWC, and the others; before, for "rs", the ReLU of
// the operand is a result of its own.
int32_t split(tn_call* call) {
  const std::string_view code(static_cast<const char*>(call->buffers[0]), static_cast<size_t>(call->dims[0]));
  const int64_t *x_sizes = call->dims + 1, n = x_sizes[0], c = x_sizes[1], h = x_sizes[2], w = x_sizes[3];
  const auto* given = static_cast<const float*>(call->buffers[1]);
  std::vector<float> x(given, given + n * c * h * w);
  uint32_t result = 0;
  if (code == "rs") {
    for (float& value : x) value = std::max(value, 0.0F);
    auto* relu = static_cast<float*>(call->result(call, result++, TN_F32, 4, x_sizes));
    if (!relu) return 1;
    std::copy(x.begin(), x.end(), relu);
  }
  const int64_t first_sizes[] = {n, h, 1, c}, other_sizes[] = {n, c, h, w - 1};
  auto* first = static_cast<float*>(call->result(call, result++, TN_F32, 4, first_sizes));
  auto* other = static_cast<float*>(call->result(call, result, TN_F32, 4, other_sizes));
  if (!first || !other) return 1;
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t column = i % w, row = i / w % h, channel = i / w / h % c, image = i / w / h / c;
    if (column == 0) first[(image * h + row) * c + channel] = x[static_cast<size_t>(i)];
    else *other++ = x[static_cast<size_t>(i)];
  }
  return 0;
}

}  // namespace

extern "C" const tn_target* tn_target_get() {
  static const tn_row rows[] = {{"relu", "relu(_: f32)", 0}, {"scale", "multiply(_: f32, const)", 0}};
  static const tn_row everything[] = {{"all", "relu(_) | _", 0}};
  static const tn_row wrong[] = {{"relu", "relu(_: f33)", 0}};
  static const tn_row no_samples[] = {{"path", "relu(_: f32(100003))", 0}};
  static const tn_row paths[] = {{"path", "path(relu(_: f32), sqrt(_), multiply(_, const))", 0}};
  static const tn_row tuples[] = {{"halves", "add((%s: split[axis=1](_)).0, (%s: split).1)", 0}};
  static const tn_row several[] = {{"relu", "relu(_: f32)", 0}, {"split", "split[axis=3](_)", 0}};
  static const tn_row branches[] = {{"branch", "if(_, relu(_), _)", 0}};
  static const tn_row functions[] = {{"function", "relu(fn(relu(_)))", 0}};
  static const tn_row tuple_root[] = {{"tuple", "(relu(_), _)", 0}};
  static const tn_row field_root[] = {{"field", "relu(_) | split(_).0", 0}};
  static const tn_row twice[] = {{"relu", "relu(_)", 0}, {"relu", "multiply(_, _)", 0}};
  static tn_target target{.abi = TN_TARGET_ABI,
                          .flags = 0,
                          .name = own_name().data(),
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
  if (does("no samples")) target.row = no_samples, target.rows = 1;
  if (does("paths")) target.row = paths, target.rows = 1;
  if (does("tuples")) target.row = tuples, target.rows = 1;
  if (does("several results")) target.row = several;
  if (does("branches")) target.row = branches, target.rows = 1;
  if (does("functions")) target.row = functions, target.rows = 1;
  if (does("tuple root")) target.row = tuple_root, target.rows = 1;
  if (does("field root")) target.row = field_root, target.rows = 1;
  if (does("no compile")) target.compile = nullptr;
  if (does("another name")) target.name = "others";
  if (does("no name")) target.name = nullptr;
  if (does("regions") || does("layout") || does("list") || does("several results")) target.flags = TN_TARGET_REGIONS;
  return &target;
}

extern "C" const tn_library* tn_library_get() {
  static const char* const names[] = {"run", "sum_of_halves", "split"};
  static const tn_kernel kernels[] = {run, sum_of_halves, split};
  static const tn_variant variants[] = {{"x86-64", kernels}, {"armv8-a", kernels}, {"generic", kernels}};
  static const tn_library library{.abi = TN_ABI,
                                  .count = 3,
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
