// tenon bench ragged: the layer of a transformer on sentences of different lengths: one by one, padded to the longest,
// and the rows of all of them at once.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/cli/bench/instances.h"
#include "compiler/loop/work.h"
#include "runtime/npy.h"
#include "runtime/temporary.h"
#include "support/file.h"
#include "support/json.h"
#include "support/memory.h"
#include "support/number.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Tensor;
using runtime::Value;

constexpr int64_t kLongest = 1 << 16;  // scores of a longer sentence are of no use here

struct BenchRagged {
  std::string lengths;
  int64_t batch = 32, width = 512, heads = 8, inner = 2048, rounds = 5, threads = 1;
  bool json = false;

  Status run() {
    if (width % heads != 0) {
      return error(fmt::format("--width {} is not a multiple of --heads {}", width, heads), {},
                   "each head has width / heads elements of a token", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(sizes, read_lengths());
    // The padded batch and the scores of its attention.
    const auto most = static_cast<double>(std::ranges::max(*sizes)),
               sentences_count = static_cast<double>(sizes->size());
    const double bytes = 4 * sentences_count * most * (static_cast<double>(width) + static_cast<double>(heads) * most);
    TENON_TRY(check_memory(static_cast<uint64_t>(std::min(bytes, 9e18)), "a batch of these lengths", lengths));
    const runtime::TemporaryDirectory folder;
    TENON_TRY(write_layer(folder.path()));
    ModelOptions model;
    model.model = folder.path() + "/layer.tn";
    model.quiet = true;
    model.for_this_machine = true;
    TENON_TRY_ASSIGN(loaded, load(model));
    const runtime::SessionOptions options{.threads = static_cast<unsigned>(threads)};
    InstanceBench alone, together;
    TENON_TRY(alone.compile(*loaded, model, options));
    model.batch.emplace();
    model.keep_functions = true;
    TENON_TRY(together.compile(*loaded, model, options));
    Random random(1);
    std::vector<std::vector<Value>> sentences;
    for (const int64_t size : *sizes) sentences.push_back({random_tensor(random, {1, size, width}, 1.7)});
    const int64_t longest = std::ranges::max(*sizes), count = std::ssize(*sizes);
    const std::vector<std::vector<Value>> padded{{random_tensor(random, {count, longest, width}, 1.7)}};
    TENON_TRY_ASSIGN(expected, alone.results(sentences, 1));
    TENON_TRY_ASSIGN(found, together.results(sentences, sentences.size()));
    TENON_TRY(check_results(*expected, *found, "the sentences together", lengths));
    TENON_TRY_ASSIGN(single, alone.seconds(sentences, 1, rounds));
    TENON_TRY_ASSIGN(all, together.seconds(sentences, sentences.size(), rounds));
    TENON_TRY_ASSIGN(whole, alone.seconds(padded, 1, rounds));
    together.session->clear_profile();
    TENON_TRY(together.results(sentences, sentences.size()));
    TENON_TRY_ASSIGN(executed, count_products(*loaded->model.context, together, sentences));
    report(*sizes, *single * static_cast<double>(count), *all * static_cast<double>(count), *whole, *executed,
           together.session->batches());
    return {};
  }

 private:
  // The first `batch` lengths of the file, a line each.
  Expected<std::vector<int64_t>> read_lengths() const {
    TENON_TRY_ASSIGN(text, read_text(lengths));
    std::vector<int64_t> sizes;
    std::istringstream lines(*text);
    int64_t line = 0;
    for (std::string word; std::getline(lines, word);) {
      ++line;
      if (word.empty()) continue;
      auto size = read_number<int64_t>(fmt::format("{}:{}", lengths, line), word, {0, kLongest});
      TENON_TRY(size);
      sizes.push_back(*size);
      if (std::ssize(sizes) == batch) break;
    }
    if (sizes.empty()) return error("the file has no lengths", lengths, "a line has the length of a sentence");
    return sizes;
  }

  // Attention of `heads` heads and two dense layers with ReLU, each with a residual and a normalization after it: an
  // encoder layer as PyTorch has it by default.
  Status write_layer(const std::string& folder) const {
    Random random(2);
    const auto weights = [&](int64_t rows, int64_t columns) {
      return random_tensor(random, {rows, columns}, std::sqrt(3.0 / static_cast<double>(rows)));
    };
    const auto vector = [&](int64_t size) { return random_tensor(random, {size}, 1); };
    TENON_TRY(runtime::save_npz(folder + "/layer.npz", {{"qkv", weights(width, 3 * width)},
                                                        {"qkv_bias", vector(3 * width)},
                                                        {"joined", weights(width, width)},
                                                        {"joined_bias", vector(width)},
                                                        {"first", weights(width, inner)},
                                                        {"first_bias", vector(inner)},
                                                        {"second", weights(inner, width)},
                                                        {"second_bias", vector(width)},
                                                        {"scale1", vector(width)},
                                                        {"shift1", vector(width)},
                                                        {"scale2", vector(width)},
                                                        {"shift2", vector(width)}}));
    const int64_t size = width / heads;
    std::string text = "#[version = \"1\", side = \"layer.npz\"]\n";
    const auto constant = [&](std::string_view name, std::string_view sizes) {
      text += fmt::format("const ${}: Tensor[({}), f32] = side;\n", name, sizes);
    };
    constant("qkv", fmt::format("{}, {}", width, 3 * width));
    constant("qkv_bias", fmt::format("{},", 3 * width));
    constant("joined", fmt::format("{0}, {0}", width));
    constant("first", fmt::format("{}, {}", width, inner));
    constant("first_bias", fmt::format("{},", inner));
    constant("second", fmt::format("{}, {}", inner, width));
    for (const char* name : {"joined_bias", "second_bias", "scale1", "shift1", "scale2", "shift2"})
      constant(name, fmt::format("{},", width));
    text += fmt::format(
        R"(def @main[n, t](%x: Tensor[(n, t, {0}), f32]) -> Tensor[(n, t, {0}), f32] {{
  let %qkv = split(matmul(%x, $qkv) + $qkv_bias, sizes=[{0}, {0}, {0}], axis=2);
  let %q = transpose(reshape(%qkv.0, shape=[0, 0, {1}, {2}]), axes=[0, 2, 1, 3]);
  let %k = transpose(reshape(%qkv.1, shape=[0, 0, {1}, {2}]), axes=[0, 2, 3, 1]);
  let %v = transpose(reshape(%qkv.2, shape=[0, 0, {1}, {2}]), axes=[0, 2, 1, 3]);
  let %shares = softmax(matmul(%q, %k) * {3}f32);
  let %joined = reshape(transpose(matmul(%shares, %v), axes=[0, 2, 1, 3]), shape=[0, 0, {0}]);
  let %y = layer_norm(%x + (matmul(%joined, $joined) + $joined_bias), $scale1, $shift1);
  layer_norm(%y + (matmul(relu(matmul(%y, $first) + $first_bias), $second) + $second_bias), $scale2, $shift2)
}}
)",
        width, heads, size, 1 / std::sqrt(static_cast<double>(size)));
    return write_file(folder + "/layer.tn", text);
  }

  // Multiply-adds of dense layers and of attention.
  struct Products {
    double dense = 0, attention = 0;

    double flops() const { return 2 * (dense + attention); }
  };
  // Those of a sentence.
  Products work(int64_t size) const {
    const auto l = static_cast<double>(size), d = static_cast<double>(width), f = static_cast<double>(inner);
    return {.dense = l * (4 * d * d + 2 * d * f), .attention = 2 * l * l * d};
  }
  // Those that kernels execute of all sentences together, as their loops visit them: tails of tiles and masked lanes
  // count. Dense layers are the kernels that read a matrix of constant sizes.
  static Expected<Products> count_products(compiler::Context& context, const InstanceBench& bench,
                                           const std::vector<std::vector<Value>>& sentences) {
    std::map<std::pair<std::string, std::map<compiler::Symbol, int64_t>>, int64_t> calls;
    runtime::SessionOptions options{.profile = false, .threads = 1, .compiled = false};
    options.observe_native = [&](const runtime::NativeKernel& kernel, std::span<const int64_t> dims) {
      std::map<compiler::Symbol, int64_t> values;
      for (size_t i = 0; i < dims.size(); ++i) values.emplace(context.symbol(kernel.signature.dims[i].name), dims[i]);
      ++calls[{kernel.name, std::move(values)}];
    };
    TENON_TRY_ASSIGN(session, runtime::Session::create(*bench.executable, std::move(options)));
    for (const auto& result : session->run_many(sentences)) TENON_TRY(result);
    Products executed;
    for (const auto& [call, count] : calls) {
      const auto function = std::ranges::find_if(bench.functions, [&](const compiler::loop::Function& candidate) {
        return context.name(candidate.name) == call.first;
      });
      if (function == bench.functions.end())
        return error(fmt::format("the kernel '{}' has no loop function", call.first), {}, {}, Fault::kInternal);
      TENON_TRY_ASSIGN(work, compiler::loop::work_of(context, *function, call.second));
      const bool is_dense = std::ranges::any_of(function->params, [&](compiler::loop::BufferId param) {
        const std::vector<compiler::loop::BufferAxis>& axes = function->buffer(param).axes;
        const auto is_constant = [](const compiler::loop::BufferAxis& axis) {
          return axis.extent.constant() != std::nullopt;
        };
        return axes.size() > 1 && std::ranges::all_of(axes, is_constant);
      });
      (is_dense ? executed.dense : executed.attention) += static_cast<double>(work->products * count);
    }
    return executed;
  }

  void report(const std::vector<int64_t>& sizes, double single, double all, double padded, const Products& executed,
              const runtime::BatchCounts& counts) const {
    const int64_t longest = std::ranges::max(sizes), tokens = std::reduce(sizes.begin(), sizes.end());
    Products least;
    for (const int64_t size : sizes) least.dense += work(size).dense, least.attention += work(size).attention;
    const double ideal = least.flops();
    const double waste = ideal == 0 ? 1 : work(longest).flops() * static_cast<double>(sizes.size()) / ideal;
    const double dense = least.dense == 0 ? 1 : executed.dense / least.dense,
                 attention = least.attention == 0 ? 1 : executed.attention / least.attention;
    if (json) {
      Json out;
      out.begin_object().field("threads", threads).field("sentences", sizes.size());
      out.field("tokens", tokens).field("longest", longest);
      out.field("ideal_flops", ideal).field("padded_over_ideal", waste);
      out.field("one_by_one_ms", single * 1e3).field("padded_ms", padded * 1e3).field("together_ms", all * 1e3);
      out.field("dense_executed_over_ideal", dense).field("attention_executed_over_ideal", attention);
      out.field("calls", counts.calls).field("bytes_gathered", counts.bytes_gathered);
      print_stdout("{}", out.field("bytes_in_place", counts.bytes_in_place).end().str());
      return;
    }
    print_stdout("{} sentences of {} tokens, the longest of {}; {:.2f} GFLOP, padded {:.2f} times as many\n",
                 sizes.size(), tokens, longest, ideal / 1e9, waste);
    print_stdout("{}, the least of {}; results together equal those one by one, bit for bit\n",
                 threads == 1 ? "one thread, CPU time" : fmt::format("{} threads, wall time", threads), rounds);
    for (const auto& [name, seconds] :
         {std::pair("one by one", single), std::pair("padded", padded), std::pair("together", all)})
      print_stdout("{:<12}{:>10.2f} ms{:>10.1f} GFLOP/s of the sentences\n", name, seconds * 1e3,
                   ideal / 1e9 / seconds);
    print_stdout(
        "together: multiply-adds executed over those of the sentences: dense layers {:.3f}, attention {:.3f}\n", dense,
        attention);
    print_stdout("together: {} calls, {} bytes of operands gathered, {} in place\n", counts.calls,
                 counts.bytes_gathered, counts.bytes_in_place);
  }
};

}  // namespace

Action bench_ragged(Options& options) {
  auto command = std::make_shared<BenchRagged>();
  options.required(command->lengths, "--lengths", "FILE", "the lengths of sentences, a line each");
  options.option(command->batch, "--batch", "N", "sentences that run together: the first ones of the file",
                 {1, 1 << 16});
  options.option(command->width, "--width", "N", "elements of a token", {1, 1 << 14});
  options.option(command->heads, "--heads", "N", "heads of the attention", {1, 1 << 10});
  options.option(command->inner, "--inner", "N", "elements of a token between the two dense layers", {1, 1 << 16});
  options.option(command->rounds, "--rounds", "N", "measurements of each, the least of which counts", {.least = 1});
  options.option(command->threads, "--threads", "N", "threads of each", {1, 1 << 10});
  options.flag(command->json, "--json", "print JSON");
  options.footer("tenon bench ragged --lengths mnli.txt --batch 32");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
