// Steps: their text, and what every one of them is held to.
#include "compiler/loop/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

std::string_view mark_name(Mark mark) {
  switch (mark) {
    case Mark::kSerial: return "serial";
    case Mark::kParallel: return "parallel";
    case Mark::kVector: return "vector";
    case Mark::kUnroll: return "unroll";
  }
  return {};
}

// The arguments of a step.
struct Words {
  TypeContext& context;
  std::vector<std::string_view> text;

  size_t size() const { return text.size(); }
  Symbol name(size_t at) const { return context.symbol(text[at]); }
  std::vector<Symbol> names_from(size_t at) const {
    std::vector<Symbol> names;
    for (; at < text.size(); ++at) names.push_back(name(at));
    return names;
  }
  Expected<int64_t> number(size_t at, std::string_view what) const {
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(text[at].begin(), text[at].end(), value);
    if (problem != std::errc{} || end != text[at].end()) return error(fmt::format("'{}' is no {}", text[at], what));
    if (value < 1) return error(fmt::format("the {} is {}, not 1 or more", what, value));
    // Sizes that are not known are rounded up to it, within 64 bits.
    if (value > INT32_MAX) return error(fmt::format("the {} is {}, more than {}", what, value, INT32_MAX));
    return value;
  }
  Expected<Mark> mark(size_t at) const {
    for (Mark one : {Mark::kSerial, Mark::kParallel, Mark::kVector, Mark::kUnroll})
      if (text[at] == mark_name(one)) return one;
    return error(fmt::format("'{}' is no mark", text[at]), {}, "serial, parallel, vector or unroll");
  }
  // A loop, and where what is made there lies.
  Expected<CachePlace> place(size_t at) const {
    CachePlace place{.loop = name(at), .scope = Scope::kHeap};
    if (text[at + 1] == "stack") place.scope = Scope::kStack;
    else if (text[at + 1] == "registers") place.scope = Scope::kRegisters;
    else if (text[at + 1] != "heap")
      return error(fmt::format("nothing lies in '{}'", text[at + 1]), {}, "heap, stack or registers");
    return place;
  }
};

struct Primitive {
  std::string_view name, takes;
  size_t least, most;
  Expected<Function> (*apply)(const Words& words, Function function);
};

constexpr Primitive kPrimitives[] = {
    {"split", "a stage, a loop and a factor", 3, 3,
     [](const Words& words, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(factor, words.number(2, "factor"));
       return split(words.context, std::move(function), words.name(0), words.name(1), *factor);
     }},
    {"fuse", "a stage and two loops", 3, 3,
     [](const Words& words, Function function) {
       return fuse(words.context, std::move(function), words.name(0), words.name(1), words.name(2));
     }},
    {"reorder", "a stage and loops", 1, 64,
     [](const Words& words, Function function) {
       return reorder(words.context, std::move(function), words.name(0), words.names_from(1));
     }},
    {"mark", "a stage, a loop and a mark", 3, 3,
     [](const Words& words, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(kind, words.mark(2));
       return mark(words.context, std::move(function), words.name(0), words.name(1), *kind);
     }},
    {"inline", "a stage", 1, 1,
     [](const Words& words, Function function) { return inlined(words.context, std::move(function), words.name(0)); }},
    {"compute_at", "a stage, its reader and a loop of that", 3, 3,
     [](const Words& words, Function function) {
       return compute_at(words.context, std::move(function), words.name(0), words.name(1), words.name(2));
     }},
    {"split_init", "a stage and a loop", 2, 2,
     [](const Words& words, Function function) {
       return split_init(words.context, std::move(function), words.name(0), words.name(1));
     }},
    {"cache_read", "a stage and a buffer, and maybe a loop and heap, stack or registers", 2, 4,
     [](const Words& words, Function function) -> Expected<Function> {
       std::optional<CachePlace> at;
       if (words.size() == 4) {
         TENON_TRY_ASSIGN(place, words.place(2));
         at = *place;
       }
       return cache_read(words.context, std::move(function), words.name(0), words.name(1), at);
     }},
    {"cache_write", "a stage, and maybe a loop and heap, stack or registers", 1, 3,
     [](const Words& words, Function function) -> Expected<Function> {
       std::optional<CachePlace> at;
       if (words.size() == 3) {
         TENON_TRY_ASSIGN(place, words.place(1));
         at = *place;
       }
       return cache_write(words.context, std::move(function), words.name(0), at);
     }},
    {"store_at", "a stage, a buffer, a loop and heap, stack or registers", 4, 4,
     [](const Words& words, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(place, words.place(2));
       return store_at(words.context, std::move(function), words.name(0), words.name(1), *place);
     }},
    {"rfactor", "a stage and a loop", 2, 2,
     [](const Words& words, Function function) {
       return rfactor(words.context, std::move(function), words.name(0), words.name(1));
     }},
    {"pad", "a stage, an axis of it and a number", 3, 3,
     [](const Words& words, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(multiple, words.number(2, "number"));
       return pad(words.context, std::move(function), words.name(0), words.name(1), *multiple);
     }},
    {"partition", "a stage and a loop", 2, 2,
     [](const Words& words, Function function) {
       return partition(words.context, std::move(function), words.name(0), words.name(1));
     }},
    {"hfuse", "a stage and a loop, twice", 4, 4,
     [](const Words& words, Function function) {
       return hfuse(words.context, std::move(function), words.name(0), words.name(1), words.name(2), words.name(3));
     }},
    {"fold_storage", "a stage, a buffer, a loop and a number", 4, 4,
     [](const Words& words, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(elements, words.number(3, "number"));
       return fold_storage(words.context, std::move(function), words.name(0), words.name(1), words.name(2), *elements);
     }},
    {"pipeline", "a stage and a loop", 2, 2,
     [](const Words& words, Function function) {
       return pipeline(words.context, std::move(function), words.name(0), words.name(1));
     }},
    {"tensorize", "a stage, a loop and an instruction", 3, 3,
     [](const Words& words, Function function) {
       return tensorize(words.context, std::move(function), words.name(0), words.name(1), words.name(2));
     }},
};

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

Expected<Function> rewritten(TypeContext& context, const Function& function, std::string_view primitive,
                             const Words& words) {
  const auto* found = std::ranges::find(kPrimitives, primitive, &Primitive::name);
  if (found == std::end(kPrimitives)) {
    std::string names;
    for (const Primitive& one : kPrimitives) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
    return error(fmt::format("there is no primitive '{}'", primitive), {}, names);
  }
  const bool pairs = found->least + 2 == found->most;  // a loop comes with where
  if (words.size() < found->least || words.size() > found->most || (pairs && words.size() == found->least + 1))
    return error(fmt::format("'{}' takes {}", primitive, found->takes));
  TENON_TRY_ASSIGN(result, found->apply(words, function));
  TENON_TRY(verify(context, *result));
  return result;
}

}  // namespace

Status Schedule::apply(std::string_view step) {
  const std::string_view text = trim(step);
  const size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')'))
    return error("a step is a name with arguments, as split(dot, i, 8)", std::string(text));
  const std::string_view primitive = trim(text.substr(0, open));
  Words words{.context = context_, .text = {}};
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  std::string written(primitive);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    words.text.push_back(trim(rest.substr(0, comma)));
    written += fmt::format("{}{}", words.size() == 1 ? "(" : ", ", words.text.back());
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  auto result = rewritten(context_, function_, primitive, words);
  if (!result) return error(result.error().what, std::string(text), result.error().help);
  function_ = std::move(*result);
  steps_.push_back(written + ")");
  return {};
}

std::string_view Schedule::name(Mark mark) { return mark_name(mark); }

Status Schedule::step(std::string_view primitive, const std::vector<Symbol>& names, std::string_view last) {
  std::string text = fmt::format("{}(", primitive);
  for (size_t i = 0; i < names.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", context_.name(names[i]));
  if (!last.empty()) text += fmt::format(", {}", last);
  return apply(text + ")");
}

Status Schedule::apply(const std::vector<std::string>& steps) {
  for (const std::string& step : steps) TENON_TRY(apply(step));
  return {};
}

}  // namespace tenon::compiler::loop
