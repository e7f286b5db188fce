// The command `tenon` on damaged files of every kind: it accepts them or reports an error, and never crashes or hangs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "runtime/executable/executable.h"
#include "runtime/executable/layout.h"
#include "runtime/npy.h"
#include "tests/cli/hostile/mutate.h"
#include "tests/rounds.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kFiles = 300;    // damaged files of a kind
constexpr int kLongest = 300;  // seconds for one; most take some hundredths, a model with huge pads many
constexpr int kSanitizerExitCode = 99;

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }
std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Hostile : public testing::Test {
 protected:
  Hostile()
      : directory_(fs::temp_directory_path() / ("tenon-hostile-" + std::to_string(getpid()) + "-" +
                                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(directory_);
    const std::string codes = "exitcode=" + std::to_string(kSanitizerExitCode);
    setenv("ASAN_OPTIONS", (codes + ":allocator_may_return_null=1:max_allocation_size_mb=4096").c_str(), 1);
    setenv("UBSAN_OPTIONS", codes.c_str(), 1);
  }
  ~Hostile() override {
    if (!HasFailure()) fs::remove_all(directory_);
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  // The exit code, or minus the signal that ended it; the output is in output_.
  int tenon(Words words) {
    words.insert(words.begin(), TENON_COMMAND);
    const pid_t child = fork();
    if (child == 0) {
      const int out = ::open(path("output.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      if (!kSanitized) {  // a sanitizer reserves terabytes
        const rlimit memory{.rlim_cur = rlim_t{4} << 30, .rlim_max = rlim_t{4} << 30};
        setrlimit(RLIMIT_AS, &memory);
      }
      alarm(kLongest);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    output_ = read(path("output.txt"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // `commands` on `good`, which must be accepted, and on damaged copies of it with the same name.
  void attack(const std::string& name, const std::string& good, std::function<std::string(Random&)> damage,
              const std::vector<Words>& commands) {
    write(path(name), good);
    for (const Words& command : commands) ASSERT_EQ(tenon(command), 0) << output_;
    int refused = 0;
    const char* variable = std::getenv("TENON_HOSTILE_SEED");  // instead of the fixed seed
    const int first = variable ? std::atoi(variable) : 0;
    for (int seed = first; seed < first + kFiles; ++seed) {
      Random random(static_cast<unsigned>(seed));
      const std::string bad = damage(random);
      write(path(name), bad);
      for (const Words& command : commands) {
        const int code = tenon(command);
        refused += code != 0;
        const bool reported = output_.find("rror: ") != std::string::npos;
        const bool sane = code == 0 || ((code == 1 || code == 2) && reported);
        if (sane && output_.find("runtime error:") == std::string::npos) continue;
        write(path("bad-" + std::to_string(seed) + "-" + name), bad);
        ADD_FAILURE() << "seed " << seed << ": exit code " << code << " of tenon " << ::testing::PrintToString(command)
                      << "; the file is kept as bad-" << seed << "-" << name << "\n"
                      << output_.substr(0, 2000);
      }
    }
    EXPECT_GT(refused, kFiles / 4) << "damage that is never noticed is none";
    RecordProperty("refused", refused);
  }

  // Four samples for the model, small enough to be read often, and enough not to be warned of.
  std::string data() const {
    if (!fs::exists(path("x.npy"))) {
      runtime::Tensor tensor(runtime::DType::kF32, {4, 1, 28, 28});
      for (size_t i = 0; i < tensor.data<float>().size(); ++i)
        tensor.data<float>()[i] = static_cast<float>(i % 17) / 17;
      write(path("x.npy"), as_text(runtime::to_npy(tensor)));
    }
    return path("x.npy");
  }
  Words on_device(const std::string& model, const std::string& device) const {
    return {"run", model, "--data", data(), "--quiet", "--device", device, "--limit", "1", "--launch-limit", "10"};
  }
  Words quantized(Words words) const {
    words.insert(words.end(), {"--shapes", "N=1", "--calibrate", data(), "--check"});
    return words;
  }

  fs::path directory_;
  std::string output_;
};

constexpr const char* kModel = TENON_SOURCE_DIR "/tests/models/tiny_digits.onnx";

TEST_F(Hostile, Models) {
  const std::string good = read(kModel);
  attack("model.onnx", good,
         [&](Random& random) { return random() % 4 ? mutate_protobuf(good, random) : mutate_bytes(good, random); },
         {quantized(on_device(path("model.onnx"), "behavioral:tiny"))});
}

TEST_F(Hostile, QuantizedModels) {
  const std::string good = read(TENON_SOURCE_DIR "/tests/models/resnet8_digits_int8_qdq.onnx");
  attack("model.onnx", good, [&](Random& random) { return mutate_protobuf(good, random); },
         {{"compile", path("model.onnx"), "--config", "default", "--shapes", "N=1", "-o", path("model.tnx")}});
}

TEST_F(Hostile, Texts) {
  ASSERT_EQ(tenon({"compile", kModel, "--config", "tiny", "--shapes", "N=1", "--calibrate", data(), "--print",
                   "partitioned", "-o", path("m.tnx")}),
            0)
      << output_;
  const std::string good = output_;  // its side file is in the same directory
  attack("m.tn", good, [&](Random& random) { return mutate_text(good, random); },
         {on_device(path("m.tn"), "behavioral:tiny")});
}

// The hash in the preface is recomputed: otherwise it would report all damage.
TEST_F(Hostile, Executables) {
  data();
  ASSERT_EQ(
      tenon({"compile", kModel, "--config", "tiny", "--shapes", "N=1", "--calibrate", data(), "-o", path("m.tnx")}), 0)
      << output_;
  const std::string good = read(path("m.tnx"));
  const auto damage = [&](Random& random) {
    runtime::Preface preface;
    std::memcpy(&preface, good.data(), sizeof preface);
    std::string header = good.substr(sizeof preface, preface.header_bytes),
                remaining_bytes = good.substr(sizeof preface + header.size());
    if (random() % 8 == 0) return mutate_bytes(good, random);
    if (random() % 4 == 0) remaining_bytes = mutate_bytes(remaining_bytes, random);
    else header = mutate_bytes(header, random);
    preface.header_bytes = header.size();
    preface.file_bytes = sizeof preface + header.size() + remaining_bytes.size();
    preface.header_hash = runtime::sha256(std::as_bytes(std::span(header)));
    return std::string(reinterpret_cast<const char*>(&preface), sizeof preface) + header + remaining_bytes;
  };
  attack("model.tnx", good, damage, {on_device(path("model.tnx"), "behavioral:tiny"), {"disasm", path("model.tnx")}});
}

TEST_F(Hostile, Arrays) {
  const std::string npy = read(data()), npz = read(TENON_SOURCE_DIR "/tests/models/resnet8_digits_test.npz");
  const auto both = [](const std::string& good) {
    return [&good](Random& random) {
      return random() % 3 ? mutate_bytes(good, random) : mutate_text(good.substr(0, 128), random) + good.substr(128);
    };
  };
  attack("a.npy", npy, both(npy), {{"run", kModel, "--shapes", "N=1", "--cpu", "--data", path("a.npy")}});
  attack("a.npz", npz, both(npz),
         {{"run", kModel, "--shapes", "N=1", "--cpu", "--limit", "1", "--data", path("a.npz") + ":x", "--labels",
           path("a.npz") + ":y"}});
}

TEST_F(Hostile, Configurations) {
  const std::string good = read(TENON_SOURCE_DIR "/hw/configs/tiny.json");
  attack("c.json", good, [&](Random& random) { return mutate_text(good, random); },
         {{"hw", "show", path("c.json")},
          {"hw", "generate", "--config", path("c.json"), "-o", path("rtl")},
          quantized(on_device(kModel, "behavioral:" + path("c.json")))});
}

TEST_F(Hostile, Assembly) {
  const std::string good = "sync engine=ldi signal=gemm # a token\nmac wait=ldi first=1 r0=1 r1=1 r2=1 y=3 x=4\nend\n";
  attack("a.txt", good, [&](Random& random) { return mutate_text(good, random); },
         {{"asm", path("a.txt"), "-o", path("a.bin")}});
  ASSERT_EQ((write(path("a.txt"), good), tenon({"asm", path("a.txt"), "-o", path("a.bin")})), 0);
  const std::string stream = read(path("a.bin"));
  attack("s.bin", stream, [&](Random& random) { return mutate_bytes(stream, random); }, {{"disasm", path("s.bin")}});
}

TEST_F(Hostile, StepLogs) {
  const std::string good = read(TENON_SOURCE_DIR "/tests/runtime/remat/data/unet.log");
  attack("step.log", good, [&](Random& random) { return mutate_text(good, random); },
         {{"dtr-sim", path("step.log"), "--ratio", "0.6,0.4"}});
}

TEST_F(Hostile, Xclbin) {
  ASSERT_EQ(tenon({"xclbin", "write", "--config", "tiny", "-o", path("good.xclbin")}), 0) << output_;
  const std::string good = read(path("good.xclbin"));
  attack("d.xclbin", good, [&](Random& random) { return mutate_bytes(good, random); },
         {{"xclbin", "show", path("d.xclbin")},
          {"xclbin", "annotate", path("d.xclbin"), "--config", "tiny", "-o", path("annotated.xclbin")}});
}

}  // namespace
}  // namespace tenon::test
