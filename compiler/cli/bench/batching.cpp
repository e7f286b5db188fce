// tenon bench batching: many instances of a dynamic model one by one and in batches, and the policies that order
// batches on graphs of known models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cli/bench/instances.h"
#include "compiler/cli/model_options.h"
#include "compiler/cli/pass_options.h"
#include "runtime/batch/families.h"
#include "runtime/native/native.h"
#include "runtime/temporary.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "support/json.h"
#include "support/number.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

constexpr int64_t kWords = 5000;

// A binary TreeLSTM, as tests/examples/tree_lstm.tn has it, of H hidden units.
constexpr std::string_view kTreeLstm = R"(#[version = "1", side = "tree_lstm.npz"]
const $embedding: Tensor[(5000, H), f32] = side;
const $leaf: Tensor[(H, 3H), f32] = side;
const $left: Tensor[(H, 5H), f32] = side;
const $right: Tensor[(H, 5H), f32] = side;
const $bias: Tensor[(5H,), f32] = side;
const $classes: Tensor[(H, 5), f32] = side;
type Tree { Leaf(Tensor[(1,), i64]), Node(Tree, Tree) }
def @read(%tree: Tree) -> (Tensor[(1, H), f32], Tensor[(1, H), f32]) {
  match %tree {
    Leaf(%word) => {
      let %gates = split(matmul(gather($embedding, %word), $leaf), sizes=[H, H, H], axis=1);
      let %memory = sigmoid(%gates.0) * tanh(%gates.2);
      (%memory, sigmoid(%gates.1) * tanh(%memory))
    },
    Node(%left, %right) => {
      let %l = @read(%left);
      let %r = @read(%right);
      let %sum = matmul(%l.1, $left) + matmul(%r.1, $right) + $bias;
      let %gates = split(%sum, sizes=[H, H, H, H, H], axis=1);
      let %new = sigmoid(%gates.0) * tanh(%gates.4);
      let %memory = %new + sigmoid(%gates.1) * %l.0 + sigmoid(%gates.2) * %r.0;
      (%memory, sigmoid(%gates.3) * tanh(%memory))
    },
  }
}
def @main(%tree: Tree) -> Tensor[(1, 5), f32] { matmul(@read(%tree).1, $classes) }
)";

// The text with a number and H replaced by their product.
std::string with_hidden(std::string_view text, int64_t hidden) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_size =
        text[i] == 'H' && i + 1 < text.size() && !std::isalpha(static_cast<unsigned char>(text[i + 1]));
    if (!is_size) {
      made += text[i];
      continue;
    }
    int64_t factor = 1;
    if (std::isdigit(static_cast<unsigned char>(made.back()))) {
      factor = made.back() - '0';
      made.pop_back();
    }
    made += std::to_string(factor * hidden);
  }
  return made;
}

Status write_tree_lstm(const std::filesystem::path& folder, int64_t hidden) {
  Random random(1);
  const auto weights = [&](runtime::Shape shape, double scale) {
    return random_tensor(random, std::move(shape), scale);
  };
  const double scale = std::sqrt(3.0 / static_cast<double>(hidden));
  TENON_TRY(runtime::save_npz(folder / "tree_lstm.npz", {{"embedding", weights({kWords, hidden}, 0.2)},
                                                         {"leaf", weights({hidden, 3 * hidden}, scale)},
                                                         {"left", weights({hidden, 5 * hidden}, scale)},
                                                         {"right", weights({hidden, 5 * hidden}, scale)},
                                                         {"bias", weights({5 * hidden}, 0.1)},
                                                         {"classes", weights({hidden, 5}, scale)}}));
  TENON_TRY(write_file(folder / "tree_lstm.tn", with_hidden(kTreeLstm, hidden)));
  std::string trees;
  constexpr size_t kTrees = 256;
  for (const runtime::WordTree& tree : runtime::word_trees(kTrees)) {
    std::vector<std::string> texts;
    for (const runtime::WordTree::Node& node : tree.nodes) {
      texts.push_back(node.left == runtime::WordTree::kLeaf
                          ? fmt::format("Leaf(Tensor[(1,), i64] [{}])", node.word)
                          : fmt::format("Node({}, {})", texts[node.left], texts[node.right]));
    }
    trees += texts.back() + "\n";
  }
  return write_file(folder / "trees.txt", trees);
}

struct BenchBatching {
  ModelOptions model;
  std::string instances, policy = "height", batches = "1,8,64";
  std::vector<std::string> shared;
  int64_t hidden = 128, rounds = 5;
  bool graphs = false, json = false;

  Status run() {
    Json out;
    out.begin_object();
    TENON_TRY(graphs ? count(out) : measure(out));
    if (json) print_stdout("{}", out.end().str());
    return {};
  }

 private:
  // The batches of each policy on graphs of known models.
  Status count(Json& out) const {
    out.key("families").begin_array();
    if (!json) print_stdout("batches of four mini-batches of 8 instances\n{:<16}{:>8}", "graphs", "nodes");
    for (const std::string_view name : runtime::kBatchPolicies) {
      if (!json) print_stdout("{:>10}", name);
    }
    if (!json) print_stdout("\n");
    for (const runtime::CallFamily& family : runtime::call_families()) {
      size_t nodes = 0;
      for (const runtime::CallGraph& graph : family.graphs) nodes += graph.size();
      out.begin_object().field("name", family.name).field("nodes", nodes);
      if (!json) print_stdout("{:<16}{:>8}", family.name, nodes);
      for (const std::string_view name : runtime::kBatchPolicies) {
        size_t steps = 0;
        for (const runtime::CallGraph& graph : family.graphs)
          steps += runtime::batch_order(graph, *runtime::parse_batch_policy(name)).ends.size();
        out.field(name, steps);
        if (!json) print_stdout("{:>10}", steps);
      }
      out.end();
      if (!json) print_stdout("   {}\n", family.description);
    }
    out.end();
    return {};
  }

  Status measure(Json& out) {
    const runtime::TemporaryDirectory folder;
    const bool is_built_in = model.model.empty();
    if (is_built_in) {
      TENON_TRY(write_tree_lstm(folder.path(), hidden));
      model.model = folder.path() + "/tree_lstm.tn";
      instances = folder.path() + "/trees.txt";
    } else if (instances.empty()) {
      return error("a model requires instances", model.model, "give a file of them with --instances", Fault::kUsage);
    }
    std::vector<size_t> sizes;
    for (const std::string& text : split(batches)) {
      constexpr int64_t kMost = 1 << 20;
      TENON_TRY_ASSIGN(size, read_number<int64_t>("--batches", text, {1, kMost}));
      sizes.push_back(static_cast<size_t>(*size));
    }
    model.quiet = true;
    model.for_this_machine = true;
    TENON_TRY_ASSIGN(loaded, load(model));
    const auto order = *runtime::parse_batch_policy(policy);
    InstanceBench alone, together;
    TENON_TRY(alone.compile(*loaded, model, {.batch_policy = order}));
    model.batch = shared;
    TENON_TRY(together.compile(*loaded, model, {.batch_policy = order}));
    TENON_TRY_ASSIGN(values, read_instances(*loaded, *alone.executable, instances));
    TENON_TRY_ASSIGN(expected, alone.results(*values, 1));
    TENON_TRY_ASSIGN(single, alone.seconds(*values, 1, rounds));
    const std::string name = is_built_in ? fmt::format("TreeLSTM H{}", hidden) : model.model;
    const auto count = static_cast<double>(values->size());
    out.field("model", name).field("instances", values->size()).field("one_by_one_us", *single * 1e6);
    out.key("batches").begin_array();
    if (!json) {
      print_stdout("{}: {} instances, one thread, CPU time of an instance, the least of {}\n", name, values->size(),
                   rounds);
      print_stdout("{:<14}{:>10.1f} us\n", "one by one", *single * 1e6);
    }
    for (const size_t size : sizes) {
      TENON_TRY_ASSIGN(found, together.results(*values, size));
      TENON_TRY(check_results(*expected, *found, fmt::format("batches of {}", size), name));
      TENON_TRY_ASSIGN(seconds, together.seconds(*values, size, rounds));
      together.session->clear_profile();
      TENON_TRY(together.results(*values, size));
      const runtime::BatchCounts counts = together.session->batches();
      out.begin_object().field("batch", size).field("us", *seconds * 1e6).field("ratio", *seconds / *single);
      out.field("nodes", counts.nodes).field("calls", counts.calls).field("flushes", counts.flushes);
      out.field("bytes_gathered", counts.bytes_gathered).field("bytes_in_place", counts.bytes_in_place).end();
      if (json) continue;
      print_stdout(
          "batch {:<8}{:>10.1f} us, {:.2f} of one by one; an instance: {:.1f} nodes in {:.1f} calls, {:.0f} bytes of "
          "operands gathered, {:.0f} in place; {} flushes\n",
          size, *seconds * 1e6, *seconds / *single, static_cast<double>(counts.nodes) / count,
          static_cast<double>(counts.calls) / count, static_cast<double>(counts.bytes_gathered) / count,
          static_cast<double>(counts.bytes_in_place) / count, counts.flushes);
    }
    out.end();
    return {};
  }
};

}  // namespace

Action bench_batching(Options& options) {
  auto command = std::make_shared<BenchBatching>();
  options.option(command->model.model, "-m,--model", "MODULE", "a .tn module; without: a TreeLSTM");
  options.option(command->instances, "--instances", "FILE", "--model: the inputs, as those of tenon run");
  options.option(command->model.entry, "--entry", "NAME", "--model: the function to run");
  options.option(command->hidden, "--hidden", "N", "hidden units of the TreeLSTM", {1, 4096});
  options.option(command->batches, "--batches", "N,...", "instances that run together");
  options.choice(command->policy, "--policy", {std::begin(runtime::kBatchPolicies), std::end(runtime::kBatchPolicies)},
                 "the order of batches");
  options.option(command->rounds, "--rounds", "N", "measurements of each, the least of which counts", {1, 1000});
  options.flag(command->graphs, "--graphs", "count the batches of all policies on graphs of known models instead");
  options.flag(command->json, "--json", "print JSON");
  options.footer(
      "tenon bench batching --hidden 256 --batches 1,64\n"
      "tenon bench batching --model tests/examples/tree_lstm.tn --entry classify --instances tests/examples/trees.txt\n"
      "tenon bench batching --graphs");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
