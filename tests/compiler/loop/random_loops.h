// Random loop functions and random steps of schedules, for tests that compare what they compute.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t below(size_t count) { return engine_() % count; }
  template <class T>
  const T& one_of(const std::vector<T>& items) {
    return items[below(items.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// Some stages on a matrix of n times a constant, each reading those before it.
inline std::string random_program(Random& random) {
  const size_t m = 1 + random.below(7), stages = 2 + random.below(3);
  const std::string size = fmt::format("(n, {}), i32]", m);
  std::string text =
      fmt::format("loop @p[n](%x: Tensor[{}, %w: Tensor[({}, {}), i32]) -> (%y: Tensor[{}) {{\n", size, m, m, size);
  std::vector<std::string> values{"x"};
  std::string body;
  for (size_t s = 0; s < stages; ++s) {
    const bool last = s + 1 == stages;
    const std::string to = last ? "y" : fmt::format("t{}", s), from = random.one_of(values),
                      other = random.one_of(values);
    if (!last) text += fmt::format("alloc %{}: Tensor[{} {{\n", to, size);
    const std::string axes = fmt::format("i in (n) at (i), j in ({0}) at (j)", m);
    const std::string loops = fmt::format("for i in (n) {{ for j in ({}) {{ ", m);
    switch (random.below(5)) {
      case 0:
        body += fmt::format("{}stage s{}({}) {{ %{}[i, j] = %{}[i, j] * i32(3) - %{}[i, j]; }} }} }}\n", loops, s, axes,
                            to, from, other);
        break;
      case 1: {  // neighbours, 0 outside
        const int shift = static_cast<int>(random.below(5)) - 2;
        body += fmt::format(
            "{0}stage s{1}({2}) {{ %{3}[i, j] = select(index(0) <= index(i + {5}) and index(i + {5}) < index(n), "
            "%{4}[i + {5}, j], "
            "i32(-1)) + %{6}[i, {7} - j]; }} }} }}\n",
            loops, s, axes, to, from, shift, other, m - 1);
        break;
      }
      case 2:  // a product with the weights
        body += fmt::format(
            "{0}for k in ({1}) {{ stage s{2}({3}, reduce k in ({1}) at (k)) {{ init {{ %{4}[i, j] = %{6}[i, j]; }} "
            "%{4}[i, j] = "
            "%{4}[i, j] + %{5}[i, k] * %w[k, j]; }} }} }} }}\n",
            loops, m, s, axes, to, from, other);
        break;
      case 3:  // a window of three rows
        body += fmt::format(
            "{0}for r in (3) {{ stage s{1}({2}, reduce r in (3) at (r)) {{ init {{ %{3}[i, j] = i32(0); }} if "
            "(index(0) <= index(i + "
            "r - 1) and index(i + r - 1) < index(n)) {{ %{3}[i, j] = %{3}[i, j] + %{4}[i + r - 1, j]; }} }} }} }} }}\n",
            loops, s, axes, to, from);
        break;
      default:  // a running sum along the rows
        body += fmt::format(
            "for i in (n) {{ for j in ({0}) {{ stage s{1}(scan i in (n) at (i), j in ({0}) at (j)) {{ if (index(i) < "
            "index(1)) {{ "
            "%{2}[i, j] = %{3}[i, j]; }} else {{ %{2}[i, j] = %{2}[i - 1, j] + %{3}[i, j]; }} }} }} }}\n",
            m, s, to, from);
        break;
    }
    values.push_back(to);
  }
  text += body;
  for (size_t s = 0; s + 1 < stages; ++s) text += "}\n";
  return text + "}\n";
}

inline std::string random_step(Context& context, const Function& function, Random& random) {
  struct Place {
    std::string stage;
    std::vector<std::string> loops;
  };
  std::vector<Place> places;
  std::vector<std::string> loops;
  const std::function<void(const Stmt&)> visit = [&](const Stmt& stmt) {
    const auto* loop = std::get_if<For>(&stmt.form);
    if (loop) loops.emplace_back(context.name(loop->var));
    if (const auto* stage = std::get_if<Stage>(&stmt.form))
      places.push_back({std::string(context.name(stage->name)), loops});
    for_each_body(stmt, [&](const Body& body) { std::ranges::for_each(body, visit); });
    if (loop) loops.pop_back();
  };
  std::ranges::for_each(function.body, visit);
  const Place& place = random.one_of(places);
  const Place& other = random.one_of(places);
  if (place.loops.empty()) return "inline(" + place.stage + ")";
  const std::string& loop = random.one_of(place.loops);
  switch (random.below(10)) {
    case 0:
    case 1: return fmt::format("split({}, {}, {})", place.stage, loop, 1 + random.below(4));
    case 2: return fmt::format("fuse({}, {}, {})", place.stage, loop, random.one_of(place.loops));
    case 3: {
      std::vector<std::string> order = place.loops;
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      order.resize(std::min<size_t>(order.size(), 2 + random.below(3)));
      std::string step = fmt::format("reorder({}", place.stage);
      for (const std::string& one : order) step += ", " + one;
      return step + ")";
    }
    case 4:
      return fmt::format("mark({}, {}, {})", place.stage, loop,
                         random.one_of<std::string>({"parallel", "vector", "unroll"}));
    case 5: return fmt::format("inline({})", place.stage);
    case 6: return fmt::format("compute_at({}, {}, {})", other.stage, place.stage, loop);
    case 7: return fmt::format("split_init({}, {})", place.stage, loop);
    case 8: return fmt::format("cache_read({}, {})", place.stage, random.one_of<std::string>({"x", "w", "t0", "t1"}));
    default: return fmt::format("cache_write({})", place.stage);
  }
}

}  // namespace tenon::compiler::loop
