// The memory that `tenon compile` takes for a model with large weights.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "support/file.h"
#include "support/function_ref.h"
#include "tests/rounds.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

// A message of protobuf.
class Message {
 public:
  Message& add(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& add(int field, std::string_view text) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(text.size());
    bytes_ += text;
    return *this;
  }
  Message& add(int field, const Message& message) { return add(field, message.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

Message value(const std::string& name, uint64_t rows, uint64_t columns) {
  Message shape;
  for (const uint64_t size : {rows, columns}) shape.add(1, Message().add(1, size));
  return Message().add(1, name).add(2, Message().add(1, Message().add(1, uint64_t{1}).add(2, shape)));
}

// Layers of `size` x `size` random weights, which are packed for the product of 64 rows.
bool write_model(const fs::path& path, uint64_t layers, uint64_t size) {
  std::mt19937 random(1);
  Message graph;
  for (uint64_t i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    std::string weights(size * size * sizeof(float), '\0');
    for (size_t at = 0; at < weights.size(); at += sizeof(float)) {
      const auto element = static_cast<float>(random()) * 0x1p-37F;
      std::memcpy(weights.data() + at, &element, sizeof(element));
    }
    graph.add(5, Message().add(1, size).add(1, size).add(2, uint64_t{1}).add(8, "w" + n).add(9, weights));
    graph.add(1, Message().add(1, "x" + n).add(1, "w" + n).add(2, "y" + n).add(3, "product" + n).add(4, "MatMul"));
    graph.add(1, Message().add(1, "y" + n).add(2, "x" + std::to_string(i + 1)).add(3, "relu" + n).add(4, "Relu"));
  }
  graph.add(11, value("x0", 64, size)).add(12, value("x" + std::to_string(layers), 64, size));
  const Message model = Message().add(1, uint64_t{8}).add(8, Message().add(2, uint64_t{17})).add(7, graph);
  return write_file(path, std::string_view(model.bytes())).has_value();
}

// The peak resident memory of a process that runs the function, in bytes.
int64_t peak_of(FunctionRef<bool()> run) {
  const pid_t child = fork();
  if (child == 0) _exit(run() ? 0 : 1);
  int status = -1;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0);
  return int64_t{usage.ru_maxrss} * 1024;
}

bool compile_file(const fs::path& from, const fs::path& to) {
  return std::freopen("/dev/null", "w", stdout) &&
         execl(TENON_COMMAND, TENON_COMMAND, "compile", from.c_str(), "--cpu", "-o", to.c_str(), nullptr) == 0;
}

TEST(Memory, CompilationTakesLessThanTwiceTheModelsFile) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  const fs::path folder = fs::temp_directory_path() / ("tenon_memory_test." + std::to_string(getpid()));
  fs::create_directory(folder);
  const fs::path small = folder / "small.onnx", large = folder / "large.onnx", result = folder / "model.tnx";
  peak_of([&] { return write_model(small, 8, 64) && write_model(large, 8, 1024); });
  const int64_t before = peak_of([&] { return compile_file(small, result); });
  const int64_t after = peak_of([&] { return compile_file(large, result); });
  const auto bytes = static_cast<int64_t>(fs::file_size(large));
  EXPECT_GE(fs::file_size(result), bytes) << "the executable lacks weights";
  EXPECT_LT(after - before, 2 * bytes) << "peaks of " << before << " and " << after << " bytes";
  RecordProperty("growth_by_file", std::to_string(static_cast<double>(after - before) / static_cast<double>(bytes)));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tenon::test
