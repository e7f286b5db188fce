// Steps: their text, and what every one of them is held to.
#include "compiler/loop/schedule/schedule.h"

#include <fmt/format.h>

#include <charconv>

#include "compiler/ir/try.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/verify.h"

namespace tenon::compiler::loop {
namespace {

std::string_view name(Mark mark) {
  switch (mark) {
    case Mark::kSerial: return "serial";
    case Mark::kParallel: return "parallel";
    case Mark::kVector: return "vector";
    case Mark::kUnroll: return "unroll";
  }
  return {};
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

}  // namespace

Status Schedule::finish(std::string step, Expected<Function> result) {
  if (!result) return error(result.error().what, step, result.error().help);
  TENON_TRY(verify(context_, *result));
  function_ = std::move(*result);
  steps_.push_back(std::move(step));
  return {};
}

Status Schedule::split(Symbol stage, Symbol loop, int64_t factor) {
  return finish(fmt::format("split({}, {}, {})", context_.name(stage), context_.name(loop), factor),
                loop::split(context_, function_, stage, loop, factor));
}
Status Schedule::fuse(Symbol stage, Symbol outer, Symbol inner) {
  return finish(fmt::format("fuse({}, {}, {})", context_.name(stage), context_.name(outer), context_.name(inner)),
                loop::fuse(context_, function_, stage, outer, inner));
}
Status Schedule::reorder(Symbol stage, std::span<const Symbol> loops) {
  std::string step = fmt::format("reorder({}", context_.name(stage));
  for (Symbol loop : loops) step += fmt::format(", {}", context_.name(loop));
  return finish(step + ")", loop::reorder(context_, function_, stage, loops));
}
Status Schedule::mark(Symbol stage, Symbol loop, Mark mark) {
  return finish(fmt::format("mark({}, {}, {})", context_.name(stage), context_.name(loop), name(mark)),
                loop::mark(context_, function_, stage, loop, mark));
}
Status Schedule::inlined(Symbol stage) {
  return finish(fmt::format("inline({})", context_.name(stage)), loop::inlined(context_, function_, stage));
}
Status Schedule::compute_at(Symbol stage, Symbol reader, Symbol loop) {
  return finish(fmt::format("compute_at({}, {}, {})", context_.name(stage), context_.name(reader), context_.name(loop)),
                loop::compute_at(context_, function_, stage, reader, loop));
}
Status Schedule::split_init(Symbol stage, Symbol loop) {
  return finish(fmt::format("split_init({}, {})", context_.name(stage), context_.name(loop)),
                loop::split_init(context_, function_, stage, loop));
}
Status Schedule::cache_read(Symbol stage, Symbol buffer) {
  return finish(fmt::format("cache_read({}, {})", context_.name(stage), context_.name(buffer)),
                loop::cache_read(context_, function_, stage, buffer));
}
Status Schedule::cache_write(Symbol stage) {
  return finish(fmt::format("cache_write({})", context_.name(stage)), loop::cache_write(context_, function_, stage));
}

Status Schedule::apply(std::string_view step) {
  const std::string_view text = trim(step);
  const size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')'))
    return error("a step is a name with arguments, as split(dot, i, 8)", std::string(text));
  const std::string_view primitive = trim(text.substr(0, open));
  std::vector<std::string_view> words;
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    words.push_back(trim(rest.substr(0, comma)));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  std::vector<Symbol> names;
  for (std::string_view word : words) names.push_back(context_.symbol(word));
  auto takes = [&](size_t count, std::string_view what) -> Status {
    if (words.size() == count) return {};
    return error(fmt::format("'{}' takes {}", primitive, what), std::string(text));
  };
  if (primitive == "split") {
    TENON_TRY(takes(3, "a stage, a loop and a factor"));
    int64_t factor = 0;
    const auto [end, problem] = std::from_chars(words[2].begin(), words[2].end(), factor);
    if (problem != std::errc{} || end != words[2].end())
      return error(fmt::format("'{}' is no factor", words[2]), std::string(text));
    return split(names[0], names[1], factor);
  }
  if (primitive == "fuse") {
    TENON_TRY(takes(3, "a stage and two loops"));
    return fuse(names[0], names[1], names[2]);
  }
  if (primitive == "reorder") {
    if (words.empty()) return takes(1, "a stage and loops");
    return reorder(names[0], std::span(names).subspan(1));
  }
  if (primitive == "mark") {
    TENON_TRY(takes(3, "a stage, a loop and a mark"));
    for (Mark kind : {Mark::kSerial, Mark::kParallel, Mark::kVector, Mark::kUnroll})
      if (words[2] == name(kind)) return mark(names[0], names[1], kind);
    return error(fmt::format("'{}' is no mark", words[2]), std::string(text), "serial, parallel, vector or unroll");
  }
  if (primitive == "inline") {
    TENON_TRY(takes(1, "a stage"));
    return inlined(names[0]);
  }
  if (primitive == "compute_at") {
    TENON_TRY(takes(3, "a stage, its reader and a loop of that"));
    return compute_at(names[0], names[1], names[2]);
  }
  if (primitive == "split_init") {
    TENON_TRY(takes(2, "a stage and a loop"));
    return split_init(names[0], names[1]);
  }
  if (primitive == "cache_read") {
    TENON_TRY(takes(2, "a stage and a buffer"));
    return cache_read(names[0], names[1]);
  }
  if (primitive == "cache_write") {
    TENON_TRY(takes(1, "a stage"));
    return cache_write(names[0]);
  }
  return error(fmt::format("there is no primitive '{}'", primitive), std::string(text),
               "split, fuse, reorder, mark, inline, compute_at, split_init, cache_read or cache_write");
}

}  // namespace tenon::compiler::loop
