// oneDNN as a target: what it takes computes what the interpreter does, within a tolerance; what it cannot, it says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "compiler/backends/dnnl/target.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/partition/partition.h"
#include "runtime/library/library.h"
#include "runtime/temporary.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

bool is_there() { return runtime::open_library("dnnl").has_value(); }

Tensor random_tensor(const runtime::Shape& shape, std::mt19937& random) {
  Tensor tensor(DType::kF32, shape);
  for (float& x : tensor.data<float>()) x = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 500;
  return tensor;
}

// A layer as a function of its first operand, and of what is added; weights and bias are constants.
struct Case {
  Context context;
  Module module;
  Symbol main = context.symbol("main");
  std::vector<Tensor> inputs;
  std::string text;  // for messages

  Case(std::mt19937& random, const std::string& op, const runtime::Shape& x, const runtime::Shape& w, Attrs attrs,
       int bias, int add, const std::string& activation) {
    Function function;
    Builder b(context, module, function);
    inputs.push_back(random_tensor(x, random));
    const Atom input = b.param(context.type_of(inputs[0]), "x");
    text = fmt::format("{} {} {} bias {} add {} {}", op, runtime::to_string(x), runtime::to_string(w), bias, add,
                       activation);
    Atom y = *b.apply(op, {input, b.constant(random_tensor(w, random))}, std::move(attrs));
    // The builder's types know the result's shape.
    const auto shape = [&](const Atom& atom) { return *function.type(std::get<VarId>(atom)).tensor()->shape(); };
    const bool conv = op == "conv2d";
    const int64_t channels = conv ? shape(y)[1] : shape(y).back();
    if (bias) {
      y = *b.apply("bias_add", {y, b.constant(random_tensor({channels}, random))},
                   {{"axis", static_cast<int64_t>(conv ? 1 : -1)}});
    }
    if (add) {
      inputs.push_back(random_tensor(shape(y), random));
      const Atom other = b.param(context.type_of(inputs[1]), "other");
      y = add == 1 ? *b.apply("add", {y, other}) : *b.apply("add", {other, y});
    }
    if (activation == "clip") y = *b.apply("clip", {y}, {{"min", -0.5}, {"max", 6.0}});
    else if (!activation.empty()) y = *b.apply(activation, {y});
    b.finish(y);
    module.globals.emplace(main, std::move(function));
  }

  Expected<std::vector<Placement>> partition() {
    const Target targets[] = {dnnl::make_target()};
    return compiler::partition(context, module, main, targets);
  }
  Expected<runtime::Executable> lower() {
    const Target targets[] = {dnnl::make_target()};
    return compiler::lower(context, module, main, targets, {.name = "case", .facts = {}});
  }
};

void expect_near(const Tensor& found, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(found.shape(), wanted.shape()) << what;
  float largest = 1, difference = 0;
  for (size_t i = 0; i < wanted.data<float>().size(); ++i) {
    largest = std::max(largest, std::abs(wanted.data<float>()[i]));
    difference = std::max(difference, std::abs(wanted.data<float>()[i] - found.data<float>()[i]));
  }
  EXPECT_LT(difference / largest, 1e-5f) << what;
}

void run(Case& one) {
  const auto wanted = interpret(one.context, one.module, one.main, std::span<const Tensor>(one.inputs));
  ASSERT_TRUE(wanted) << wanted.error().str();
  const auto placements = one.partition();
  ASSERT_TRUE(placements) << placements.error().str();
  for (const Placement& placement : *placements) EXPECT_EQ(placement.target, "dnnl") << one.text << placement.reason;
  const auto executable = one.lower();
  ASSERT_TRUE(executable) << executable.error().str();
  EXPECT_TRUE(executable->natives.empty());
  if (!is_there()) return;
  auto session = runtime::Session::create(*executable, {.threads = 1});
  ASSERT_TRUE(session) << session.error().str();
  for (int turn = 0; turn < 2; ++turn) {  // the second time weights lie as oneDNN wants them
    const auto found = session->run(one.inputs);
    ASSERT_TRUE(found) << one.text << found.error().str();
    expect_near(found->at(0), wanted->at(0), one.text);
  }
}

TEST(Dnnl, RandomLayersComputeWhatTheInterpreterDoes) {
  std::mt19937 random(test_seed(7));
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const char* const activations[] = {"", "relu", "clip"};
  for (int i = 0; i < 60; ++i) {
    const int bias = static_cast<int>(below(2)), add = static_cast<int>(below(3));
    const std::string activation = activations[below(3)];
    if (i % 3 == 2) {
      const int64_t n = 1 + below(5), k = 1 + below(40), m = 1 + below(40);
      if (below(2) == 0) {
        Case one(random, "dense", {n, k}, {m, k}, {}, bias, add, activation);
        run(one);
      } else {
        runtime::Shape x{n, k}, w{k, m};
        for (int64_t d = below(3); d > 0; --d) x.insert(x.begin(), d + 1), w.insert(w.begin(), d + 1);
        Case one(random, "matmul", x, w, {}, bias, add, activation);
        run(one);
      }
      continue;
    }
    const int64_t groups = i % 5 == 0 ? 1 + below(4) : 1, in = groups * (1 + below(i % 7 == 0 ? 1 : 17)),
                  out = groups * (1 + below(17)), kh = 1 + below(4), kw = 1 + below(4);
    const std::vector<int64_t> strides{1 + below(3), 1 + below(3)}, dilation{1 + below(2), 1 + below(2)},
        padding{below(kh), below(kw), below(kh), below(kw)};
    Case one(random, "conv2d", {1 + below(2), in, 8 + below(9), 8 + below(9)}, {out, in / groups, kh, kw},
             {{"strides", strides}, {"dilation", dilation}, {"padding", padding}, {"groups", groups}}, bias, add,
             activation);
    run(one);
  }
  if (!is_there()) GTEST_SKIP() << "oneDNN is not here: layers were compiled, and not run";
}

TEST(Dnnl, SaysWhatItDoesNotTake) {
  const auto reason = [](const std::string& params, const std::string& body) {
    Context context;
    auto module = parse(context, fmt::format("#[version = \"1\"]\ndef @main({}) {{ {} }}\n", params, body));
    EXPECT_TRUE(module) << module.error().str();
    const Target targets[] = {dnnl::make_target()};
    const auto placements = partition(context, *module, context.symbol("main"), targets);
    EXPECT_TRUE(placements) << placements.error().str();
    EXPECT_TRUE(placements->back().target.empty()) << body;
    return placements->back().reason;
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  std::string why = reason("%x: Tensor[(2, 3), i8], %w: Tensor[(3, 2), i8]", "matmul(%x, %w)");
  EXPECT_TRUE(has(why, "only f32 is left to oneDNN")) << why;
  why = reason("%x: Tensor[(4, 2, 3), f32], %w: Tensor[(3, 2), f32]", "matmul(%x, %w)");
  EXPECT_TRUE(has(why, "different batches")) << why;
  why = reason("%x: Tensor[(0, 3), f32], %w: Tensor[(3, 2), f32]", "matmul(%x, %w)");
  EXPECT_TRUE(has(why, "is empty")) << why;
  why = reason("%x: Tensor[(2, 3), f32]", "sigmoid(%x)");
  EXPECT_TRUE(has(why, "dnnl has no pattern with sigmoid")) << why;
}

TEST(Dnnl, TrustsNothingInAnExecutable) {
  const auto refused = [](std::string_view name, const Attrs& attrs = {}) {
    const auto kernel = runtime::library_kernel(name, attrs);
    return kernel ? "made" : kernel.error().what;
  };
  EXPECT_EQ(refused("../../evil.kernel"), "there is no library of kernels ''");
  EXPECT_EQ(refused("evil.kernel"),
            "the library of kernels 'evil' is not installed: there is no tenon-kernels-evil.so");
  if (!is_there()) GTEST_SKIP() << "oneDNN is not here";
  EXPECT_EQ(refused("dnnl.nonsense"), "the library dnnl has no kernel 'nonsense'");
  EXPECT_EQ(refused("dnnl.dense"), "dnnl: the activation is not supported");
  const Attrs good{{"activation", std::string()},
                   {"groups", int64_t{2}},
                   {"strides", std::vector<int64_t>{1, 1}},
                   {"dilation", std::vector<int64_t>{1, 1}},
                   {"padding", std::vector<int64_t>{0, 0, 0, 0}}};
  for (const auto& [name, value] : std::map<std::string, runtime::Attr>{{"groups", int64_t{0}},
                                                                        {"strides", std::vector<int64_t>{0, 1}},
                                                                        {"padding", std::vector<int64_t>{-9, 0, 0, 0}},
                                                                        {"dilation", std::vector<int64_t>{1}}}) {
    Attrs bad = good;
    bad[name] = value;
    EXPECT_EQ(refused("dnnl.conv2d", bad), "dnnl.conv2d: strides, dilation, padding or groups are not supported");
  }
  const auto kernel = runtime::library_kernel("dnnl.conv2d", good);
  ASSERT_TRUE(kernel);
  std::mt19937 random(test_seed(1));
  const auto call = [&](const std::vector<Tensor>& args) {
    std::vector<Tensor> results;
    runtime::CallMemory memory;
    const runtime::OperatorCall how{.outputs = 1, .pool = &runtime::ThreadPool::of_process()};
    const auto done = kernel->call(args, how, results, memory);
    return done ? "computed" : done.error().what;
  };
  const Tensor x = random_tensor({1, 4, 5, 5}, random);
  EXPECT_EQ(call({x, random_tensor({6, 2, 3, 3}, random)}), "computed");
  EXPECT_EQ(call({x}), "dnnl: wrong number of operands");
  EXPECT_EQ(call({x, Tensor(DType::kI32, {6, 2, 3, 3})}), "dnnl: an operand is empty, or not f32");
  for (const runtime::Shape& w : {runtime::Shape{6, 4, 3, 3}, {5, 2, 3, 3}, {6, 2, 6, 3}, {6, 2, 3}})
    EXPECT_EQ(call({x, random_tensor(w, random)}), "dnnl: the shapes of the operands do not match");
  EXPECT_EQ(call({x, random_tensor({6, 2, 3, 3}, random)}), "computed");
}

TEST(Dnnl, IsMissedWhenAModelIsLoaded) {
  std::mt19937 random(test_seed(3));
  Case one(random, "dense", {2, 3}, {4, 3}, {}, 1, 0, "relu");
  ASSERT_TRUE(one.partition());
  const auto executable = one.lower();
  ASSERT_TRUE(executable) << executable.error().str();
  // A program that no library lies beside.
  const runtime::TemporaryDirectory scratch;
  const std::string model = scratch.path() + "/m.tnx", log = scratch.path() + "/log";
  ASSERT_TRUE(runtime::save(*executable, model));
  const std::string line =
      fmt::format("cp {0}/bin/tenon-run {1} && cd {1} && ! env -u TENON_DRIVER_PATH ./tenon-run {2} >{3} 2>&1",
                  TENON_BINARY_DIR, scratch.path(), model, log);
  EXPECT_EQ(std::system(line.c_str()), 0);
  const auto said = read_file(log);
  ASSERT_TRUE(said);
  const std::string text(reinterpret_cast<const char*>(said->data()), said->size());
  EXPECT_NE(text.find("the library of kernels 'dnnl' is not installed: there is no tenon-kernels-dnnl.so"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tenon::compiler
