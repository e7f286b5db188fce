// Native kernels: threads, signatures, and a library written in C.
#include "runtime/native/native.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <set>
#include <thread>

#include "runtime/native/functions.h"
#include "runtime/vm/session.h"
#include "support/file.h"

namespace tenon::runtime {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// --- Threads ---

TEST(ThreadPool, RunsEachIndexOnce) {
  for (unsigned threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      EXPECT_EQ(pool.run(count, [&](Arena&, int64_t i) { return ++seen[static_cast<size_t>(i)], true; }), -1);
      for (auto& one : seen) EXPECT_EQ(one, 1);
    }
  }
}

TEST(ThreadPool, TheSmallestFailingIndexIsReportedWhateverTheThreads) {
  for (unsigned threads : {1u, 2u, 4u}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int64_t> ran = 0;
      EXPECT_EQ(pool.run(1000, [&](Arena&, int64_t i) { return ++ran, i < 37 || i % 3 != 0; }), 39);
      EXPECT_GE(ran, 40);
      EXPECT_LT(ran, 1000) << "what comes after a failure is not begun";
    }
  }
}

TEST(ThreadPool, CallsInsideACallAndFromOtherThreadsRunInTheirOwnThread) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum = 0;
  auto outer = [&] {
    EXPECT_EQ(pool.run(10,
                       [&](Arena&, int64_t i) {
                         const auto self = std::this_thread::get_id();
                         return pool.run(10, [&](Arena&, int64_t k) {
                           EXPECT_EQ(std::this_thread::get_id(), self);
                           sum += i * 10 + k;
                           return true;
                         }) == -1;
                       }),
              -1);
  };
  {
    std::jthread a(outer), b(outer);
    outer();
  }
  EXPECT_EQ(sum, 3 * 4950);
}

TEST(ThreadPool, HasAsManyThreadsAsItsProcessorsAreUsable) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(usable_processors(), static_cast<unsigned>(CPU_COUNT(&all)));
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);  // as taskset does
  EXPECT_EQ(ThreadPool().threads(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(Arena, MemoryIsAStackThatStays) {
  Arena arena;
  void* a = arena.allocate(100);
  void* b = arena.allocate(1 << 20);
  void* c = arena.allocate(0);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ((std::set<void*>{a, b, c}.size()), 3u);
  for (void* one : {a, b, c}) EXPECT_EQ(reinterpret_cast<uintptr_t>(one) % 64, 0u);
  std::memset(a, 1, 100), std::memset(b, 2, 1 << 20);
  arena.release(b);
  EXPECT_EQ(arena.allocate(1 << 19), b);
  const size_t mark = arena.mark();
  void* d = arena.allocate(5000);
  arena.reset(mark);
  EXPECT_EQ(arena.allocate(5000), d);
  EXPECT_EQ(arena.allocate(-1), nullptr);
  EXPECT_EQ(arena.allocate(int64_t{1} << 47), nullptr);
}

// --- Signatures ---

using Op = SizeStep::Op;

// f(x: (2*n + 1, m), lengths: (n,), r: (b: n, lengths(b), m)) -> (m // n,), (b: n, lengths(b))
Signature sample_signature() {
  const Size n{{Op::kDim, 0}}, m{{Op::kDim, 1}};
  const Size odd{{Op::kConstant, 2}, {Op::kDim, 0}, {Op::kMultiply}, {Op::kConstant, 1}, {Op::kAdd}};
  const Size lengths{{Op::kIndex, 0}, {Op::kElement, 1}};
  return {
      {{"n", 0, 0, 2, {{Op::kConstant, 1}}}, {"m", 0, 1, 1, {{Op::kConstant, 0}}}},
      {{"x", DType::kF32, {odd, m}}, {"lengths", DType::kI32, {n}}, {"r", DType::kI8, {n, lengths, m}}},
      {{"y", DType::kF64, {{{Op::kDim, 1}, {Op::kDim, 0}, {Op::kFloorDivide}}}}, {"rows", DType::kI16, {n, lengths}}}};
}

TEST(Signature, BindsDimsAndMakesResults) {
  const Signature signature = sample_signature();
  ASSERT_TRUE(verify(signature, "f")) << verify(signature, "f").error().str();
  std::vector<Tensor> params{Tensor(DType::kF32, {5, 7}), Tensor::of<int32_t>({2}, std::vector<int32_t>{3, 1}),
                             Tensor(DType::kI8, {4, 7})};
  const auto dims = bind_dims(signature, params);
  ASSERT_TRUE(dims) << dims.error().str();
  EXPECT_EQ(*dims, (std::vector<int64_t>{2, 7}));
  const auto results = make_results(signature, *dims, params);
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ((*results)[0].shape(), (Shape{3}));
  EXPECT_EQ((*results)[1].shape(), (Shape{4}));
  auto message = [&](std::vector<Tensor> wrong) { return bind_dims(signature, wrong).error().str(); };
  EXPECT_HAS(message({params[0]}), "takes 3 parameters, 1 are given");
  EXPECT_HAS(message({params[0], params[1], Tensor()}), "'r' is missing");
  EXPECT_HAS(message({params[1], params[1], params[2]}), "'x' is f32, not i32");
  EXPECT_HAS(message({Tensor(DType::kF32, {5}), params[1], params[2]}), "'x' has 2 axes in its tensor, not 1");
  EXPECT_HAS(message({Tensor(DType::kF32, {4, 7}), params[1], params[2]}),
             "axis 0 of 'x' has 4 elements, which no 'n' gives");
  EXPECT_HAS(message({params[0], params[1], Tensor(DType::kI8, {5, 7})}), "'r' is a (4, 7), not a (5, 7)");
  params[1].data<int32_t>()[0] = -3;
  EXPECT_HAS(message(params), "axis 1 of 'r' would have -3 elements");
}

TEST(Signature, VerifyFindsWhatIsMalformed) {
  const std::vector<std::pair<std::string, std::function<void(Signature&)>>> cases = {
      {"dim 'n' comes of no parameter", [](Signature& s) { s.dims[0].param = 3; }},
      {"dim 'n' comes of axis 2 of 'x'", [](Signature& s) { s.dims[0].axis = 2; }},
      {"dim 'n' comes of axis 0 of 'r'", [](Signature& s) { s.dims[0].param = 2; }},
      {"divided by 0", [](Signature& s) { s.dims[0].factor = 0; }},
      {"dim 'n' has a malformed size",
       [](Signature& s) {
         s.dims[0].rest = {{Op::kDim, 0}};
       }},
      {"axis 0 of 'x' has a malformed size", [](Signature& s) { s.params[0].axes[0].pop_back(); }},
      {"axis 0 of 'x' has a malformed size", [](Signature& s) { s.params[0].axes[0] = {{Op::kAdd}}; }},
      {"axis 0 of 'lengths' has a malformed size",
       [](Signature& s) {
         s.params[1].axes[0] = {{Op::kDim, 2}};
       }},
      {"axis 0 of 'y' has a malformed size",
       [](Signature& s) {
         s.results[0].axes[0] = {{Op::kIndex, 0}};
       }},
      {"axis 1 of 'r' has a malformed size",
       [](Signature& s) {
         s.params[2].axes[1] = {{Op::kElement, 1}};
       }},
      {"axis 0 of 'y' has a malformed size", [](Signature& s) { s.results[0].axes[0] = {}; }},
      {"'y' has 33 axes",
       [](Signature& s) {
         s.results[0].axes.assign(33, {{Op::kConstant, 1}});
       }},
  };
  for (const auto& [message, damage] : cases) {
    Signature signature = sample_signature();
    damage(signature);
    const auto status = verify(signature, "f");
    ASSERT_FALSE(status) << message;
    EXPECT_HAS(status.error().str(), message);
  }
}

// --- A library written by hand ---

NativeCode sample_code() {
  const Size n{{Op::kDim, 0}};
  const Signature add{{{"n", 0, 0, 1, {{Op::kConstant, 0}}}}, {{"x", DType::kI32, {n}}}, {{"y", DType::kI32, {n}}}};
  auto object = read_file(TENON_NATIVE_SAMPLE);
  EXPECT_TRUE(object) << object.error().str();
  return {std::string(host_architecture()) + "-unknown-linux-gnu", {"any"}, *object, {{"add", add}, {"greedy", {}}}};
}

Tensor numbers(int64_t count) {
  Tensor x(DType::kI32, {count});
  std::iota(x.data<int32_t>().begin(), x.data<int32_t>().end(), 100);
  return x;
}

TEST(NativeLibrary, CallsAKernel) {
  const NativeCode code = sample_code();
  const auto library = NativeLibrary::load(code);
  ASSERT_TRUE(library) << library.error().str();
  EXPECT_NE(library->level(), "a level of the future");
  for (unsigned threads : {1u, 2u, 3u}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 1000}) {
      const auto results = library->call("add", std::vector{numbers(count)}, pool);
      ASSERT_TRUE(results) << results.error().str();
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ((*results)[0].data<int32_t>()[static_cast<size_t>(i)], 101 + i);
    }
    Tensor bad = numbers(1000);
    for (size_t at : {900u, 500u, 510u}) bad.data<int32_t>()[at] = 13;
    EXPECT_EQ(library->call("add", std::vector{bad}, pool).error().str(),
              "@add, by hand: error: the index 500 is not in 0 .. 999");
    EXPECT_HAS(library->call("greedy", {}, pool).error().str(), "@greedy: error: not enough memory for");
    EXPECT_HAS(library->call("sub", {}, pool).error().str(), "there is no native kernel 'sub'");
    EXPECT_HAS(library->call("add", {}, pool).error().str(), "@add: error: takes 1 parameters, 0 are given");
  }
}

TEST(NativeLibrary, SaysWhyItCannotBeLoaded) {
  auto message = [](const std::function<void(NativeCode&)>& damage, std::string_view level = {}) {
    NativeCode code = sample_code();
    damage(code);
    auto library = NativeLibrary::load(code, level);
    return library ? "loaded" : library.error().str();
  };
  EXPECT_HAS(message([](NativeCode& c) { c.triple = "pdp11-dec-unix"; }), "is for pdp11-dec-unix, this processor is a");
  EXPECT_HAS(message([](NativeCode& c) { c.object.resize(100); }), "cannot be loaded");
  EXPECT_HAS(message([](NativeCode& c) { c.kernels.pop_back(); }), "has 2 kernels, 1 are named");
  EXPECT_HAS(message([](NativeCode& c) { c.kernels[0].name = "sub"; }),
             "kernel 0 of the native code is 'add', not 'sub'");
  EXPECT_HAS(message([](NativeCode&) {}, "x86-64-v9"), "x86-64-v9 is not one that this processor has too");
  EXPECT_EQ(message([](NativeCode&) {}), "loaded");
}

// --- Functions that are called by name ---

TEST(Functions, AreThoseOfTheLibrariesThatWereOpened) {
  EXPECT_HAS(
      find_function("halve").error().str(),
      "the library function 'halve' is not there\n  help: open the shared object that has it: --library FILE.so");
  ASSERT_TRUE(open_functions(TENON_FUNCTIONS_SAMPLE));
  ASSERT_TRUE(open_functions(TENON_FUNCTIONS_SAMPLE)) << "again is nothing";
  const auto halve = find_function("halve"), sort = find_function("sort.rows"), fails = find_function("fails");
  ASSERT_TRUE(halve && sort && fails);
  EXPECT_HAS(find_function("third").error().str(), "none of the libraries that were opened has it");
  ThreadPool pool(2);
  std::vector<Tensor> x{Tensor::of<float>({2, 3}, std::vector<float>{5, 3, 4, 1, 9, 8})},
      y{Tensor(DType::kF32, {2, 3})};
  ASSERT_TRUE(call_function(**halve, x, y, pool));
  EXPECT_EQ(y[0], Tensor::of<float>({2, 3}, std::vector<float>{2.5, 1.5, 2, 0.5, 4.5, 4}));
  ASSERT_TRUE(call_function(**sort, x, y, pool));
  EXPECT_EQ(y[0], Tensor::of<float>({2, 3}, std::vector<float>{3, 4, 5, 1, 8, 9}));
  const std::string file = TENON_FUNCTIONS_SAMPLE;
  EXPECT_EQ(call_function(**fails, x, y, pool).error().str(),
            "library function 'fails' of " + file + ": error: the library function failed");
  x[0].data<float>()[4] = 13;
  EXPECT_EQ(call_function(**halve, x, y, pool).error().str(),
            "library function 'halve' of " + file + ": halving: error: the index 4 is not in 0 .. 5");
  x[0] = Tensor(DType::kI32, {2, 3});
  EXPECT_HAS(call_function(**halve, x, y, pool).error().str(), "it takes f32");
}

TEST(Functions, OfWhatIsNoLibrary) {
  EXPECT_HAS(open_functions("nowhere.so").error().str(), "nowhere.so: error: the library cannot be opened: ");
  EXPECT_HAS(open_functions("libm.so.6").error().str(), "the library cannot be opened") << "no folder is searched";
  Dl_info here{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::set_terminate), &here), 0);  // libstdc++
  EXPECT_HAS(open_functions(here.dli_fname).error().str(), "it is no library of functions: there is no tn_library_get");
}

Executable executable() {
  Executable e;
  e.name = "natives";
  const Port x{"x", DType::kI32, {50}}, y{"y", DType::kI32, {50}};
  e.functions.push_back(
      {"main", {x}, {y}, 2, {{CallNative{0, 0, {0}, {1}}, "add_1"}, {Kill{{0}}, ""}, {Return{{1}}, ""}}});
  e.natives.push_back(sample_code());
  return e;
}

TEST(NativeLibrary, IsPartOfAnExecutable) {
  const Executable e = executable();
  const auto bytes = serialize(e);
  ASSERT_TRUE(bytes) << bytes.error().str();
  const auto loaded = deserialize(*bytes, "memory");
  ASSERT_TRUE(loaded) << loaded.error().str();
  EXPECT_EQ(*loaded, e);
  auto damaged = *bytes;
  damaged.back() ^= std::byte{1};  // the last section is the native code
  EXPECT_HAS(deserialize(damaged, "memory").error().str(), "does not match its SHA-256");

  auto session = Session::create(*loaded, {.threads = 2});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = session->run(std::vector{numbers(50)});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ((*results)[0].data<int32_t>()[49], 150);
  ASSERT_EQ(session->profile().calls.size(), 1u);
  EXPECT_EQ(session->profile().calls[0].name, "add");
  EXPECT_EQ(session->profile().calls[0].layer, "add_1");
  EXPECT_EQ(session->profile().calls[0].device, "cpu");

  Tensor bad = numbers(50);
  bad.data<int32_t>()[20] = 13;
  EXPECT_HAS(session->run(std::vector{bad}).error().str(),
             "natives: function 'main', instruction 0 (add_1): @add, by hand: error: the index 20 is not in 0 .. 49");
  EXPECT_HAS(Session::create(*loaded, {.native = false}).error().str(),
             "natives: error: the executable has native code, which was forbidden");
  EXPECT_HAS(Session::create(*loaded, {.native_level = "x86-64-v9"}).error().str(), "x86-64-v9");
}

TEST(NativeLibrary, CallsOfItAreVerified) {
  auto message = [](const std::function<void(Executable&)>& damage) {
    Executable e = executable();
    damage(e);
    const auto status = verify(e, "m.tnx");
    return status ? "verified" : status.error().str();
  };
  auto call = [](Executable & e) -> auto& { return std::get<CallNative>(e.functions[0].code[0].operation); };
  EXPECT_HAS(message([&](Executable& e) { call(e).code = 1; }), "instruction 0: native code 1 of 1");
  EXPECT_HAS(message([&](Executable& e) { call(e).kernel = 2; }), "instruction 0: native kernel 2 of 2");
  EXPECT_HAS(message([&](Executable& e) { call(e).args = {}; }), "instruction 0: 0 arguments, must be 1");
  EXPECT_HAS(message([&](Executable& e) { call(e).kernel = 1; }), "instruction 0: 1 arguments, must be 0");
  EXPECT_HAS(message([&](Executable& e) { call(e).args = {7}; }), "instruction 0: register 7 of 2");
  EXPECT_HAS(message([&](Executable& e) { e.natives[0].kernels[0].signature.dims[0].param = 4; }),
             "native kernel 'add': error: dim 'n' comes of no parameter");
  EXPECT_EQ(message([](Executable&) {}), "verified");
}

// x + 3 in three calls, the first two results in an arena, which two frames have one after the other.
Executable planned() {
  Executable e;
  e.name = "planned";
  const Port x{"x", DType::kI32, {50}}, y{"y", DType::kI32, {50}};
  e.functions.push_back(
      {.name = "main",
       .params = {x},
       .results = {y},
       .registers = 3,
       .code = {{CallFunction{1, {0}, {1}}, ""}, {CallFunction{1, {1}, {2}}, ""}, {Return{{2}}, ""}}});
  e.functions.push_back({.name = "add_3",
                         .params = {x},
                         .results = {y},
                         .registers = 4,
                         .code = {{CallNative{0, 0, {0}, {1}, {{0, 256}}}, "first"},
                                  {CallNative{0, 0, {1}, {2}, {{256, 256}}}, "second"},
                                  {Kill{{1}}, ""},
                                  {CallNative{0, 0, {2}, {3}}, "third"},
                                  {Return{{3}}, ""}},
                         .arena_bytes = 512});
  e.natives.push_back(sample_code());
  return e;
}

TEST(NativeLibrary, ResultsLieWhereThePlanSays) {
  Executable e = planned();
  e = deserialize(serialize(e).value(), "memory").value();
  EXPECT_EQ(e, planned());
  std::vector<const void*> places;
  auto session = Session::create(e, {.threads = 2, .hook = [&](const Step& step) -> Status {
                                       if (!step.results.empty()) places.push_back(step.results[0].bytes().data());
                                       return {};
                                     }});
  ASSERT_TRUE(session) << session.error().str();
  const auto first = session->run(std::vector{numbers(50)});
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_EQ(session->profile().memory.arena_bytes, 1024u) << "two frames";
  EXPECT_EQ(session->profile().memory.allocations, 2u) << "what leaves a frame is its own";
  EXPECT_EQ(session->profile().memory.peak_bytes, 512u + 200 + 200);
  const auto second = session->run(std::vector{numbers(50)});
  ASSERT_TRUE(second) << second.error().str();
  for (const auto* results : {&*first, &*second}) {
    for (int i = 0; i < 50; ++i) EXPECT_EQ((*results)[0].data<int32_t>()[static_cast<size_t>(i)], 106 + i);
  }
  ASSERT_EQ(places.size(), 12u);
  EXPECT_EQ(places[0], places[3]) << "the next frame takes the arena again";
  EXPECT_EQ(places[0], places[6]) << "so does the next run";
  EXPECT_EQ(static_cast<const std::byte*>(places[1]) - static_cast<const std::byte*>(places[0]), 256);

  auto call = [](Executable & changed, size_t i) -> auto& {
    return std::get<CallNative>(changed.functions[1].code[i].operation);
  };
  Executable small = planned();
  call(small, 0).places = {{0, 64}};
  auto own = Session::create(small, {.threads = 1});
  EXPECT_EQ(own->run(std::vector{numbers(50)}).value(), *first) << "what is too large for its place lies elsewhere";
  EXPECT_EQ(own->profile().memory.allocations, 4u);
}

TEST(NativeLibrary, PlansOfMemoryAreVerified) {
  auto message = [](const std::function<void(Function&)>& damage) {
    Executable e = planned();
    damage(e.functions[1]);
    const auto status = verify(e, "m.tnx");
    return status ? "verified" : status.error().str();
  };
  auto places = [](Function & f, size_t i) -> auto& { return std::get<CallNative>(f.code[i].operation).places; };
  EXPECT_HAS(message([&](Function& f) { places(f, 0) = {{0, 256}, {0, 256}}; }), "2 places, must be 1");
  EXPECT_HAS(message([&](Function& f) { places(f, 1)[0].offset = 192; }), "the place of result 0 is in use");
  EXPECT_HAS(message([&](Function& f) { places(f, 1)[0].offset = 0; }),
             "instruction 1: the place of result 0 is in use");
  EXPECT_HAS(message([&](Function& f) { places(f, 1)[0].offset = 320; }),
             "the place of result 0 is 256 bytes at 320 in an arena of 512");
  EXPECT_HAS(message([&](Function& f) { places(f, 1)[0].offset = UINT64_MAX - 63; }), "in an arena of 512");
  EXPECT_HAS(message([&](Function& f) { places(f, 1)[0] = {264, 200}; }), "200 bytes at 264");
  EXPECT_HAS(message([&](Function& f) {
               places(f, 3) = {{0, 256}};
             }),
             "instruction 3: the place of result 0 may outlive the call");
  EXPECT_HAS(message([&](Function& f) {
               f.code[2].operation = Kill{{1}};
               for (size_t i : {0, 1}) places(f, i).clear();
             }),
             "it has an arena, and nothing that lies there");
  // A view of it, in another register, keeps it alive; so does a way on which that register has it.
  auto reuse = [&](std::vector<Instruction> between) {
    return message([&](Function& f) {
      std::vector<Instruction> code{{CallNative{0, 0, {0}, {1}, {{0, 256}}}, ""}};
      code.insert(code.end(), between.begin(), between.end());
      code.push_back({Kill{{1}}, ""});
      code.push_back({CallNative{0, 0, {0}, {2}, {{0, 256}}}, ""});
      code.push_back({CallNative{0, 0, {3}, {3}}, ""});
      code.push_back({Return{{3}}, ""});
      f.code = code;
    });
  };
  const Instruction load{Move{3, 0}, ""};
  EXPECT_EQ(reuse({load}), "verified");
  EXPECT_HAS(reuse({{CallKernel{"reshape", {}, {1}, {3}}, ""}}), "is in use");
  EXPECT_HAS(reuse({{Move{3, 1}, ""}}), "is in use");
  EXPECT_HAS(reuse({load, {Branch{0, 4}, ""}, {Move{3, 1}, ""}}), "is in use");
  EXPECT_HAS(reuse({load, {Branch{0, 5}, ""}, {Move{3, 1}, ""}, {Jump{6}, ""}, {Move{3, 0}, ""}}), "is in use");
  EXPECT_EQ(reuse({load, {Branch{0, 4}, ""}, {Kill{{1}}, ""}}), "verified");
  EXPECT_HAS(reuse({load, {Branch{0, 0}, ""}}), "may outlive the call") << "a jump back";
}

TEST(ThreadPool, SessionsThatAskForNoNumberShareTheProcesss) {
  EXPECT_EQ(&ThreadPool::of_process(), &ThreadPool::of_process());
  EXPECT_EQ(ThreadPool::of_process().threads(), usable_processors());
  const Executable e = planned();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&e] {
      auto session = Session::create(e, {});
      for (int run = 0; run < 50; ++run) {
        const auto result = session->run(std::vector{numbers(50)});
        EXPECT_TRUE(result && (*result)[0].data<int32_t>()[49] == 155);
      }
    });
  }
}

}  // namespace
}  // namespace tenon::runtime
