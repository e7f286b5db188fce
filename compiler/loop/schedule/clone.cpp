// Primitives on the stage that computes an operand: clone, at_load.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/access.h"
#include "compiler/loop/schedule/copies.h"
#include "compiler/loop/schedule/primitives.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// Whether the stage alone computes the buffer. The error states the reason.
Status computes_alone(const TypeContext& context, Function& function, const Stage& stage, BufferId buffer) {
  bool calls = false;
  const Stage* other = nullptr;
  for_each_statement(function.body, [&](Stmt& stmt) {
    if (const auto* call = std::get_if<CallLibrary>(&stmt.form))
      calls |= std::ranges::find(call->outputs, buffer) != call->outputs.end();
    const auto* writer = std::get_if<Stage>(&stmt.form);
    if (!writer || writer == &stage) return;
    for_each_access(*writer, [&](const Access& access) {
      if (access.writes && access.buffer == buffer) other = writer;
    });
  });
  const std::string shown = local(context, function, buffer);
  if (other) return error(fmt::format("the stage '{}' also writes {}", context.name(other->name), shown));
  if (calls) return error(fmt::format("{} is passed to a library", shown));
  return {};
}

// A function with the buffers that `body` uses: `inputs` as parameters, `result`.
Function function_of(const Function& from, Symbol name, const std::vector<BufferId>& inputs, BufferId result,
                     Body body) {
  Function function;
  function.name = name, function.intrinsics = from.intrinsics, function.body = std::move(body);
  BufferMap ids;
  for (const BufferId input : inputs) {
    ids[input] = static_cast<BufferId>(function.buffers.size());
    function.params.push_back(ids[input]);
    function.buffers.push_back(from.buffer(input));
  }
  ids[result] = static_cast<BufferId>(function.buffers.size());
  function.results.push_back(ids[result]);
  function.buffers.push_back(from.buffer(result));
  replace_buffers(function.body, ids);
  return function;
}

}  // namespace

Expected<Function> clone(TypeContext& context, Function function, Symbol stage, Symbol reader) {
  TENON_TRY_ASSIGN(from, find_stage(context, function, stage));
  TENON_TRY_ASSIGN(to, find_stage(context, function, reader));
  TENON_TRY_ASSIGN(buffer, only_result(context, function, from->stage()));
  TENON_TRY(computes_alone(context, function, from->stage(), *buffer));
  bool reads = false;
  for_each_access(to->stage(), [&](const Access& access) { reads |= !access.writes && access.buffer == *buffer; });
  if (!reads || stage == reader)
    return error(
        fmt::format("the stage '{}' does not read the result of '{}'", context.name(reader), context.name(stage)));
  const Symbol name = fresh(context, function, fmt::format("{}_{}", context.name(stage), context.name(reader)));
  const Path::Step root = from->steps[root_of(*from)];
  Body copy{root.stmt()};
  const BufferId own = add_buffer(function, name, *buffer);
  for_each_stage(copy.front(), [&](Stage& copied) { copied.name = name; });
  replace_buffers(copy, {{*buffer, own}});
  redirect(to->stage(), *buffer, own);
  root.body->insert(root.body->begin() + static_cast<ptrdiff_t>(root.index) + 1, std::move(copy.front()));
  // The new buffer lives as long as the old one.
  const auto outer = find_alloc(function.body, *buffer);
  Alloc alloc = std::get<Alloc>(outer->stmt().form);
  alloc.buffer = own;
  std::get<Alloc>(outer->stmt().form).body = Body();
  std::get<Alloc>(outer->stmt().form).body.push_back({std::move(alloc)});
  return function;
}

Expected<Function> at_load(TypeContext& context, Function function, Symbol stage, const std::set<BufferId>& constants,
                           LoadStep& load) {
  TENON_TRY_ASSIGN(path, find_stage(context, function, stage));
  const std::string name(context.name(stage));
  TENON_TRY_ASSIGN(buffer, only_result(context, function, path->stage()));
  TENON_TRY(computes_alone(context, function, path->stage(), *buffer));
  const size_t root = root_of(*path);
  for (size_t step = 0; step < root; ++step) {
    if (!std::holds_alternative<Alloc>(path->steps[step].stmt().form))
      return error(fmt::format("the stage '{}' is in a loop with other statements, or in an if or a let", name));
  }
  std::vector<BufferId> inputs;
  for (const BufferId input : buffers_read(path->steps[root].stmt())) {
    if (input == *buffer) continue;
    if (!constants.contains(input))
      return error(fmt::format("the stage '{}' reads {}, which is not a constant operand", name,
                               local(context, function, input)));
    inputs.push_back(input);
  }
  const auto depends_on_call = [&](Dim dim) {
    return std::ranges::any_of(function.dims, [&](Symbol size) { return mentions({&dim, 1}, size); });
  };
  bool varies = false;
  for (const BufferAxis& axis : function.buffer(*buffer).axes) varies |= !axis.extent.constant();
  for (const For* loop : all_loops(*path)) varies |= depends_on_call(loop->extent);
  if (varies) return error(fmt::format("the stage '{}' depends on sizes of the call", name));
  const Path::Step nest = path->steps[root];
  Body body;
  body.push_back(std::move(nest.stmt()));
  erase(nest);
  remove_alloc(function, *buffer);
  function.params.push_back(*buffer);
  load = {function_of(function, stage, inputs, *buffer, std::move(body)), inputs, *buffer};
  return function;
}

}  // namespace tenon::compiler::loop
