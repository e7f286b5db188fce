// Parsing and application of steps.
#include "compiler/loop/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "compiler/loop/safety.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// The arguments of a step.
struct Arguments {
  TypeContext& context;
  std::vector<std::string_view> tokens;
  const std::set<BufferId>& constants;
  std::vector<LoadStep>& loads;

  size_t size() const { return tokens.size(); }
  Symbol name(size_t i) const { return context.symbol(tokens[i]); }
  std::vector<Symbol> names_from(size_t i) const {
    std::vector<Symbol> names;
    for (; i < tokens.size(); ++i) names.push_back(name(i));
    return names;
  }
  // A positive integer; `role` names it in messages.
  Expected<int64_t> integer(size_t i, std::string_view role, int64_t least = 1) const {
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(tokens[i].begin(), tokens[i].end(), value);
    if (problem != std::errc{} || end != tokens[i].end())
      return error(fmt::format("the {} must be an integer, got '{}'", role, tokens[i]));
    if (value < least) return error(fmt::format("the {} is {}, must be at least {}", role, value, least));
    // Unknown sizes are rounded up to multiples of it, within 64 bits.
    if (value > INT32_MAX) return error(fmt::format("the {} is {}, must be at most {}", role, value, INT32_MAX));
    return value;
  }
  Expected<LoopKind> loop_kind(size_t i) const {
    if (const auto kind = find_loop_kind(tokens[i])) return *kind;
    return error(fmt::format("'{}' is not a loop kind", tokens[i]), {},
                 "the loop kinds are serial, parallel, vector, unroll, block_x to block_z and thread_x to thread_z");
  }
  // A loop, and the storage of the buffer that is placed there.
  Expected<CachePlacement> placement(size_t i) const {
    CachePlacement placement{.loop = name(i), .scope = Scope::kHeap};
    const auto scope = find_scope(tokens[i + 1]);
    if (!scope)
      return error(fmt::format("a buffer cannot be placed in '{}'", tokens[i + 1]), {},
                   "expected heap, stack, registers or shared");
    placement.scope = *scope;
    return placement;
  }
};

struct Primitive {
  std::string_view name, arguments;
  size_t least, most;  // number of arguments
  Expected<Function> (*apply)(const Arguments& arguments, Function function);
};

constexpr Primitive kPrimitives[] = {
    {"split", "a stage, a loop and factors", 3, 16,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       std::vector<int64_t> factors;
       const SplitEnd end = arguments.tokens.back() == "overlap" ? SplitEnd::kOverlap
                            : arguments.tokens.back() == "round" ? SplitEnd::kRound
                                                                 : SplitEnd::kFit;
       for (size_t i = 2; i < arguments.size() - (end != SplitEnd::kFit ? 1 : 0); ++i) {
         TENON_TRY_ASSIGN(factor, arguments.integer(i, "factor"));
         factors.push_back(*factor);
       }
       return split(arguments.context, std::move(function), arguments.name(0), arguments.name(1), factors, end);
     }},
    {"fuse", "a stage and two loops", 3, 3,
     [](const Arguments& arguments, Function function) {
       return fuse(arguments.context, std::move(function), arguments.name(0), arguments.name(1), arguments.name(2));
     }},
    {"reorder", "a stage and loops", 1, 64,
     [](const Arguments& arguments, Function function) {
       return reorder(arguments.context, std::move(function), arguments.name(0), arguments.names_from(1));
     }},
    {"remap", "a stage, a loop and an order", 3, 3,
     [](const Arguments& arguments, Function function) {
       return remap(arguments.context, std::move(function), arguments.name(0), arguments.name(1), arguments.tokens[2]);
     }},
    {"skew", "a stage and two loops", 3, 3,
     [](const Arguments& arguments, Function function) {
       return skew(arguments.context, std::move(function), arguments.name(0), arguments.name(1), arguments.name(2));
     }},
    {"mark", "a stage, a loop and a loop kind", 3, 3,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(kind, arguments.loop_kind(2));
       return annotate(arguments.context, std::move(function), arguments.name(0), arguments.name(1), *kind);
     }},
    {"inline", "a stage", 1, 1,
     [](const Arguments& arguments, Function function) {
       return inlined(arguments.context, std::move(function), arguments.name(0));
     }},
    {"compute_at", "a stage, its reader and a loop around the reader", 3, 3,
     [](const Arguments& arguments, Function function) {
       return compute_at(arguments.context, std::move(function), arguments.name(0), arguments.name(1),
                         arguments.name(2));
     }},
    {"split_init", "a stage and a loop", 2, 2,
     [](const Arguments& arguments, Function function) {
       return split_init(arguments.context, std::move(function), arguments.name(0), arguments.name(1));
     }},
    {"cache_read", "a stage and a buffer, optionally a loop and heap, stack, registers or shared", 2, 4,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       std::optional<CachePlacement> placement;
       if (arguments.size() == 4) {
         TENON_TRY_ASSIGN(parsed, arguments.placement(2));
         placement = *parsed;
       }
       return cache_read(arguments.context, std::move(function), arguments.name(0), arguments.name(1), placement);
     }},
    {"cache_write", "a stage, optionally a loop and heap, stack, registers or shared", 1, 3,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       std::optional<CachePlacement> placement;
       if (arguments.size() == 3) {
         TENON_TRY_ASSIGN(parsed, arguments.placement(1));
         placement = *parsed;
       }
       return cache_write(arguments.context, std::move(function), arguments.name(0), placement);
     }},
    {"store_at", "a stage, a buffer, a loop and heap, stack, registers or shared", 4, 4,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(placement, arguments.placement(2));
       return store_at(arguments.context, std::move(function), arguments.name(0), arguments.name(1), *placement);
     }},
    {"rfactor", "a stage and a loop", 2, 2,
     [](const Arguments& arguments, Function function) {
       return rfactor(arguments.context, std::move(function), arguments.name(0), arguments.name(1));
     }},
    {"pad", "a stage, an axis of it and a multiple, optionally a number of elements", 3, 4,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(multiple, arguments.integer(2, "multiple"));
       int64_t more = 0;
       if (arguments.size() == 4) {
         TENON_TRY_ASSIGN(elements, arguments.integer(3, "number of elements"));
         more = *elements;
       }
       return pad(arguments.context, std::move(function), arguments.name(0), arguments.name(1), *multiple, more);
     }},
    {"partition", "a stage and a loop", 2, 2,
     [](const Arguments& arguments, Function function) {
       return partition(arguments.context, std::move(function), arguments.name(0), arguments.name(1));
     }},
    {"fill", "a stage", 1, 1,
     [](const Arguments& arguments, Function function) {
       return fill(arguments.context, std::move(function), arguments.name(0));
     }},
    {"hfuse", "a stage and a loop, twice", 4, 4,
     [](const Arguments& arguments, Function function) {
       return hfuse(arguments.context, std::move(function), arguments.name(0), arguments.name(1), arguments.name(2),
                    arguments.name(3));
     }},
    {"fold_storage", "a stage, a buffer, a loop and a number of elements", 4, 4,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(elements, arguments.integer(3, "number of elements"));
       return fold_storage(arguments.context, std::move(function), arguments.name(0), arguments.name(1),
                           arguments.name(2), *elements);
     }},
    {"align_storage", "a buffer, the number of one of its axes and a number of elements", 3, 3,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(axis, arguments.integer(1, "number of the axis", 0));
       TENON_TRY_ASSIGN(multiple, arguments.integer(2, "number of elements"));
       return align_storage(arguments.context, std::move(function), arguments.name(0), *axis, *multiple);
     }},
    {"swizzle", "a buffer, the numbers of two of its axes and a divisor", 4, 4,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       TENON_TRY_ASSIGN(axis, arguments.integer(1, "number of the axis", 0));
       TENON_TRY_ASSIGN(by, arguments.integer(2, "number of the axis", 0));
       TENON_TRY_ASSIGN(divisor, arguments.integer(3, "divisor"));
       return swizzle(arguments.context, std::move(function), arguments.name(0),
                      {static_cast<size_t>(*axis), static_cast<size_t>(*by), *divisor});
     }},
    {"pipeline", "a stage and a loop, optionally a number of buffers and async", 2, 4,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       if (arguments.size() == 2)
         return pipeline(arguments.context, std::move(function), arguments.name(0), arguments.name(1));
       TENON_TRY_ASSIGN(buffers, arguments.integer(2, "number of buffers"));
       if (arguments.tokens[3] != "async")
         return error(fmt::format("'{}' is not an argument of pipeline", arguments.tokens[3]), {},
                      "the only one after the number of buffers is async");
       return pipeline_async(arguments.context, std::move(function), arguments.name(0), arguments.name(1), *buffers);
     }},
    {"clone", "a stage and its reader", 2, 2,
     [](const Arguments& arguments, Function function) {
       return clone(arguments.context, std::move(function), arguments.name(0), arguments.name(1));
     }},
    {"fuse_axes", "a stage and two axes of it", 3, 3,
     [](const Arguments& arguments, Function function) {
       return fuse_axes(arguments.context, std::move(function), arguments.name(0), arguments.name(1),
                        arguments.name(2));
     }},
    {"layout", "a buffer and the order of its elements, as j k -> j/16 k j%16", 2, 2,
     [](const Arguments& arguments, Function function) {
       return layout(arguments.context, std::move(function), arguments.name(0), arguments.tokens[1]);
     }},
    {"at_load", "a stage", 1, 1,
     [](const Arguments& arguments, Function function) {
       return at_load(arguments.context, std::move(function), arguments.name(0), arguments.constants,
                      arguments.loads.emplace_back());
     }},
    {"tensorize", "a stage, a loop and an instruction, optionally inexact", 3, 4,
     [](const Arguments& arguments, Function function) -> Expected<Function> {
       const bool allows_inexact = arguments.size() == 4;
       if (allows_inexact && arguments.tokens[3] != "inexact")
         return error(fmt::format("'{}' is not an argument of tensorize", arguments.tokens[3]), {},
                      "the only one after the instruction is inexact");
       return tensorize(arguments.context, std::move(function), arguments.name(0), arguments.name(1), arguments.name(2),
                        allows_inexact);
     }},
};

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

Expected<Function> rewritten(TypeContext& context, const Function& function, std::string_view primitive,
                             const Arguments& arguments) {
  const auto* found = std::ranges::find(kPrimitives, primitive, &Primitive::name);
  if (found == std::end(kPrimitives)) {
    std::string names;
    for (const Primitive& other : kPrimitives) names += fmt::format("{}{}", names.empty() ? "" : ", ", other.name);
    return error(fmt::format("there is no primitive '{}'", primitive), {}, fmt::format("the primitives are {}", names));
  }
  const bool pairs = found->least + 2 == found->most;  // of two further arguments each requires the other
  if (arguments.size() < found->least || arguments.size() > found->most ||
      (pairs && arguments.size() == found->least + 1))
    return error(fmt::format("'{}' requires {}", primitive, found->arguments));
  TENON_TRY_ASSIGN(result, found->apply(arguments, function));
  TENON_TRY(verify(context, *result));
  TENON_TRY(sizes_are_inside(context, *result));
  return result;
}

}  // namespace

Status Schedule::apply(std::string_view step) {
  const std::string_view text = trim(step);
  const size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')'))
    return error("a step must be a name with arguments, as split(dot, i, 8)", std::string(text));
  const std::string_view primitive = trim(text.substr(0, open));
  std::vector<LoadStep> loads;
  Arguments arguments{.context = context_, .tokens = {}, .constants = constants_, .loads = loads};
  std::string_view remaining = text.substr(open + 1, text.size() - open - 2);
  std::string normalized(primitive);
  while (!remaining.empty()) {
    const size_t comma = remaining.find(',');
    arguments.tokens.push_back(trim(remaining.substr(0, comma)));
    normalized += fmt::format("{}{}", arguments.size() == 1 ? "(" : ", ", arguments.tokens.back());
    remaining = comma == std::string_view::npos ? std::string_view{} : remaining.substr(comma + 1);
  }
  auto result = rewritten(context_, function_, primitive, arguments);
  if (!result) return error(result.error().what, std::string(text), result.error().help);
  function_ = std::move(*result);
  for (LoadStep& load : loads) {
    constants_.insert(load.operand);
    loads_.push_back(std::move(load));
  }
  steps_.push_back(normalized + ")");
  return {};
}

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
