#include "compiler/fuzz/random_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/loop/access.h"

namespace tenon::compiler::loop {

std::string random_program(Random& random) {
  const size_t m = 1 + random.below(7), stages = 2 + random.below(3);
  const std::string size = fmt::format("(n, {}), i32]", m);
  std::string text =
      fmt::format("loop @p[n](%x: Tensor[{}, %w: Tensor[({}, {}), i32]) -> (%y: Tensor[{}) {{\n", size, m, m, size);
  // An instruction that multiplies a row by the weights.
  text += fmt::format(
      "intrinsic @row(%a: Tensor[({0},), i32], %b: Tensor[({0}, {0}), i32]) -> (%z: Tensor[({0},), i32]) {{ for j in "
      "({0}) {{ for k in ({0}) {{ stage dot(j in ({0}) at (j), reduce k in ({0}) at (k)) {{ %z[j] = %z[j] + %a[k] * "
      "%b[k, j]; }} }} }} }}\n",
      m);
  std::vector<std::string> values{"x"};
  std::string body;
  size_t states = 0;
  for (size_t s = 0; s < stages; ++s) {
    const bool last = s + 1 == stages;
    const std::string to = last ? "y" : fmt::format("t{}", s), from = random.one_of(values),
                      other = random.one_of(values);
    if (!last) text += fmt::format("alloc %{}: Tensor[{} {{\n", to, size);
    const std::string axes = fmt::format("i in (n) at (i), j in ({0}) at (j)", m);
    const std::string loops = fmt::format("for i in (n) {{ for j in ({}) {{ ", m);
    switch (random.below(6)) {
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
      case 4:  // a scan state, whose every value is also a result
        text += fmt::format("alloc %h{0}: Tensor[(n + 1, {1}), i32] {{\n", s, m);
        ++states;
        body +=
            fmt::format("for j in ({0}) {{ stage s{1}_first(j in ({0}) at (j)) {{ %h{1}[0, j] = i32(5); }} }}\n", m, s);
        body += fmt::format(
            "for i in (n) {{ for j in ({0}) {{ stage s{1}_step(scan i in (n) at (i), j in ({0}) at (j)) {{ %h{1}[i + "
            "1, "
            "j] = %h{1}[i, j] * i32(3) + %{2}[i, j]; }} }} for j in ({0}) {{ stage s{1}(i in (n) at (i), j in ({0}) at "
            "(j)) {{ %{3}[i, j] = %h{1}[i + 1, j] - %{4}[i, j]; }} }} }}\n",
            m, s, from, to, other);
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
  for (size_t s = 0; s + 1 < stages + states; ++s) text += "}\n";
  return text + "}\n";
}

std::vector<std::string> random_steps(TypeContext& context, const Function& function, Random& random) {
  struct StageNames {
    std::string stage;
    std::vector<std::string> loops, axes, buffers;
  };
  std::vector<StageNames> stages;
  std::vector<std::string> loops;
  const std::function<void(const Stmt&)> visit = [&](const Stmt& stmt) {
    const auto* loop = std::get_if<For>(&stmt.form);
    if (loop) loops.emplace_back(context.name(loop->var));
    if (const auto* stage = std::get_if<Stage>(&stmt.form)) {
      stages.push_back({std::string(context.name(stage->name)), loops, {"i"}, {"x"}});
      for (const Axis& axis : stage->axes) stages.back().axes.emplace_back(context.name(axis.var));
      for_each_access(*stage, [&](const Access& access) {
        stages.back().buffers.emplace_back(context.name(function.buffer(access.buffer).name));
      });
    }
    for_each_body(stmt, [&](const Body& body) { std::ranges::for_each(body, visit); });
    if (loop) loops.pop_back();
  };
  std::ranges::for_each(function.body, visit);
  const size_t drawn = random.below(stages.size());
  const StageNames &names = stages[drawn], &other = random.one_of(stages), &next = stages[(drawn + 1) % stages.size()];
  if (names.loops.empty() || next.loops.empty()) return {"inline(" + names.stage + ")"};
  const std::string &stage = names.stage, &loop = random.one_of(names.loops), &buffer = random.one_of(names.buffers);
  const std::string scope = random.one_of<std::string>({"heap", "stack", "registers"});
  switch (random.below(30)) {
    case 0:
      return {fmt::format("split({}, {}, {}{})", stage, loop, 1 + random.below(5),
                          random.below(3) == 0 ? ", overlap" : "")};
    case 1: return {fmt::format("fuse({}, {}, {})", stage, loop, random.one_of(names.loops))};
    case 21: return {fmt::format("skew({}, {}, {})", stage, loop, random.one_of(names.loops))};
    case 2:
    case 3: {
      std::vector<std::string> order = names.loops;
      std::string step = "reorder(" + stage;
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      order.resize(1 + random.below(order.size()));
      for (const std::string& reordered : order) step += ", " + reordered;
      return {step + ")"};
    }
    case 4:
      return {
          fmt::format("mark({}, {}, {})", stage, loop, random.one_of<std::string>({"parallel", "vector", "unroll"}))};
    case 5: return {fmt::format("inline({})", stage)};
    case 6: return {fmt::format("compute_at({}, {}, {})", other.stage, stage, loop)};
    case 7: return {fmt::format("split_init({}, {})", stage, loop)};
    case 8:
      if (random.below(2) == 0) return {fmt::format("cache_read({}, {})", stage, buffer)};
      return {fmt::format("cache_read({}, {}, {}, {})", stage, buffer, loop, scope)};
    case 9:
      if (random.below(2) == 0) return {fmt::format("cache_write({})", stage)};
      return {fmt::format("cache_write({}, {}, {})", stage, loop, scope)};
    case 10: return {fmt::format("store_at({}, {}, {}, {})", stage, buffer, loop, scope)};
    case 11:
    case 20: return {fmt::format("rfactor({}, {})", stage, loop)};
    case 12:
      return {fmt::format("pad({}, {}, {}{})", stage, random.one_of(names.axes), 2 + random.below(3),
                          random.below(3) == 0 ? ", 3" : "")};
    case 13:
      return {fmt::format("split({}, {}, {})", stage, loop, 2 + random.below(3)),
              fmt::format("partition({}, {}{})", stage, loop, random.below(2) == 0 ? "0" : "")};
    case 14: return {fmt::format("hfuse({}, {}, {}, {})", stage, names.loops[0], next.stage, next.loops[0])};
    case 15: return {fmt::format("fold_storage({}, {}, {}, {})", stage, buffer, loop, 1 + random.below(4))};
    case 22:
      return {fmt::format("align_storage({}, {}, {})", buffer, random.below(2), 2 + random.below(4)),
              fmt::format("swizzle({}, 1, 0, {})", buffer, 1 + random.below(3))};
    case 16:
      return {fmt::format("compute_at({}, {}, {})", stage, next.stage, next.loops[0]),
              fmt::format("pipeline({}, {})", stage, next.loops[0]), fmt::format("pipeline({}, {})", stage, loop)};
    case 17:
      return {fmt::format("split({}, {}, {}, {}{})", stage, loop, 3 + random.below(2), 2,
                          random.below(2) == 0 ? ", 1" : "")};
    case 18:
      return {fmt::format("clone({}, {})", stage, next.stage),
              fmt::format("compute_at({}, {}, {})", stage, next.stage, next.loops[0])};
    case 19: {
      const size_t factor = 2 + random.below(3);
      return {fmt::format("pad({}, {}, {})", stage, random.one_of(names.axes), factor),
              fmt::format("layout({}, i j -> {})", buffer,
                          fmt::format(fmt::runtime(random.one_of<std::string>({"j i", "i/{0} j i%{0}", "j/{0} i j%{0}",
                                                                               "i/{0} j i%{0}", "j i/{0} i%{0}", "i*j",
                                                                               "i%{0} i/{0}*j"})),
                                      factor))};
    }
    case 23: return {fmt::format("fuse_axes({}, i, j)", stage), fmt::format("fuse_axes({}, j, k)", stage)};
    // The rows of batches: loops and axes that are adjacent, by the names that random_ragged_program() has for them.
    case 25: {
      const size_t outer = random.below(names.loops.size());
      const std::string& inner = names.loops[std::min(outer + 1, names.loops.size() - 1)];
      return {fmt::format("fuse({}, {}, {})", stage, names.loops[outer], inner),
              fmt::format("split({}, {}_{}, {})", stage, names.loops[outer], inner, 2 + random.below(4))};
    }
    case 26:
      return {fmt::format("fuse_axes({}, b, s)", stage), fmt::format("pad({}, b_s_, {})", stage, 2 + random.below(4))};
    case 27: {
      const size_t multiple = 2 + random.below(3);
      return {fmt::format("align_storage({}, {}, {})", buffer, 1 + random.below(2), multiple * (1 + random.below(2))),
              fmt::format("pad({}, {}, {})", stage, random.one_of(names.axes), multiple)};
    }
    case 28: return {fmt::format("remap({}, {}, descending)", stage, loop)};
    case 24: {
      const size_t factor = 2 + random.below(3);
      return {fmt::format("pad({}, {}, {})", stage, random.one_of(names.axes), factor), fmt::format("fill({})", stage)};
    }
    default: {
      const std::string& rows = names.loops[names.loops.size() > 1 ? names.loops.size() - 2 : 0];
      return {fmt::format("split_init({}, {})", stage, rows), fmt::format("tensorize({}, {}, row)", stage, rows)};
    }
  }
}

}  // namespace tenon::compiler::loop
