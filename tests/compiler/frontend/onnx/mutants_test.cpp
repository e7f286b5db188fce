// Mutated model files: each is a consistent module, which also runs where it is small, or an error. The seeds are the
// models of the operators' stored cases, and whole networks. Child processes import the mutants, in bounded memory and
// time: a crash, a hang or an unbounded allocation ends a child, and names the mutant that did it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "compiler/frontend/onnx.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/verifier.h"
#include "tests/cli/hostile/mutate.h"
#include "tests/compiler/ir/operators/cases.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

constexpr rlim_t kMemory = rlim_t{2} << 30;  // of a child, which maps some hundred MB before the first mutant
constexpr unsigned kLongest = 60;            // seconds for one mutant; most take milliseconds

struct SeedModel {
  std::string name, bytes;
  std::vector<runtime::Tensor> inputs;  // none: the model is not run
};

std::vector<SeedModel> seed_models() {
  std::vector<SeedModel> seeds;
  for (auto& [name, one] : operator_cases()) {
    if (!one.model.empty()) seeds.push_back({name, one.model, one.inputs});
  }
  for (const std::string name : {"tiny_digits", "odd_names", "resnet8_digits_int8_qdq"}) {
    std::ifstream file(std::string(TENON_SOURCE_DIR) + "/tests/models/" + name + ".onnx", std::ios::binary);
    // As many mutants as of a tenth of the operators: most of their bytes are weights, and the import takes longer.
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    for (int i = 0; i < 10; ++i) seeds.push_back({name, bytes, {}});
  }
  return seeds;
}

// Whether the interpreter may run the function: without control flow, and with values of known and moderate sizes.
bool is_small(const Module& module, const Function& function) {
  constexpr int64_t kMostElements = 1 << 16;
  if (!first_order(module, function)) return false;
  return std::ranges::all_of(function.vars, [](const VarInfo& var) {
    const TensorType* type = var.type.tensor();
    const auto shape = type ? type->shape() : std::nullopt;
    if (!shape) return false;
    int64_t elements = 1;
    for (const int64_t size : *shape) {
      if (size > kMostElements || (elements *= std::max<int64_t>(size, 1)) > kMostElements) return false;
    }
    return true;
  });
}

// Empty, or what is wrong.
std::string examine(const SeedModel& seed, const std::string& bytes) try {
  Context context;
  auto module = import_onnx(context, std::as_bytes(std::span(bytes)), {.file = "mutant.onnx", .shapes = {}});
  if (!module) return module.error().str().find("mutant.onnx") == std::string::npos ? module.error().str() : "";
  if (const Status status = verify(context, *module); !status) return status.error().str();
  const Symbol main = context.symbol("main");
  if (seed.inputs.empty() || !is_small(*module, *module->function(main))) return "";
  // Other inputs than the mutant's are an error too.
  (void)interpret(context, *module, main, seed.inputs);
  return "";
} catch (const std::bad_alloc&) {
  return "it requires more memory than there is";
}

// In a child process: mutants `first`, first + 1, ... The index of the current one is in `current`.
[[noreturn]] void examine_mutants(const std::vector<SeedModel>& seeds, uint32_t base, int first, int count,
                                  volatile int* current) {
  if (!kSanitized) {  // a sanitizer reserves terabytes
    const rlimit memory{.rlim_cur = kMemory, .rlim_max = kMemory};
    setrlimit(RLIMIT_AS, &memory);
  }
  for (int i = first; i < count; ++i) {
    *current = i;
    alarm(kLongest);
    test::Random random(base + static_cast<uint32_t>(i));
    const SeedModel& seed = seeds[random() % seeds.size()];
    const std::string mutant =
        random() % 4 ? test::mutate_protobuf(seed.bytes, random) : test::mutate_bytes(seed.bytes, random);
    const std::string wrong = examine(seed, mutant);
    if (wrong.empty()) continue;
    std::fprintf(stderr, "%s\n", wrong.c_str());
    _exit(1);
  }
  *current = count;
  _exit(0);
}

TEST(OnnxMutants, AreRefusedOrConsistent) {
  const std::vector<SeedModel> seeds = seed_models();
  ASSERT_GT(seeds.size(), 200u);
  const uint32_t base = test_seed(20261);
  constexpr int kCount = static_cast<int>(rounds(TENON_MUTANTS));
  void* shared = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* current = static_cast<volatile int*>(shared);
  int failures = 0;
  const char* begin = std::getenv("TENON_FIRST_MUTANT");  // to repeat one of a seed
  for (int first = begin ? std::atoi(begin) : 0; first < kCount && failures < 10; first = *current + 1) {
    *current = first;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) examine_mutants(seeds, base, first, kCount, current);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    ++failures;
    test::Random random(base + static_cast<uint32_t>(*current));
    ADD_FAILURE() << "mutant " << *current << " of " << seeds[random() % seeds.size()].name << ", seed " << base
                  << (WIFSIGNALED(status) ? ": signal " + std::to_string(WTERMSIG(status)) : ": inconsistent");
  }
  munmap(shared, sizeof(int));
}

}  // namespace
}  // namespace tenon::compiler
