#include "compiler/loop/schedule/copies.h"

#include <fmt/format.h>

#include <set>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"

namespace tenon::compiler::loop {
namespace {

// Renames the buffers that a statement itself uses, without those of nested statements.
class Renaming {
 public:
  explicit Renaming(const BufferMap& buffers) : buffers_(buffers) {}

  void apply(Stmt& stmt) const {
    if (auto* store = std::get_if<Store>(&stmt.form)) rename(store->buffer), rename(store->value);
    if (auto* branch = std::get_if<If>(&stmt.form)) rename(branch->condition);
    if (auto* let = std::get_if<Let>(&stmt.form)) rename(let->value);
    if (auto* call = std::get_if<CallLibrary>(&stmt.form)) {
      for (auto* list : {&call->inputs, &call->outputs})
        for (BufferId& id : *list) rename(id);
    }
    if (auto* intrinsic = std::get_if<Intrinsic>(&stmt.form)) {
      for (auto* list : {&intrinsic->inputs, &intrinsic->outputs})
        for (Operand& operand : *list) rename(operand.buffer);
    }
  }

 private:
  void rename(BufferId& id) const {
    if (const auto found = buffers_.find(id); found != buffers_.end()) id = found->second;
  }
  void rename(Expr& expr) const {
    expr = rewrite(expr, [&](const ExprNode& node) -> Expr {
      const auto* load = std::get_if<Load>(&node.form);
      if (!load || !buffers_.contains(load->buffer)) return nullptr;
      ExprNode copy = node;
      rename(std::get<Load>(copy.form).buffer);
      return std::make_shared<const ExprNode>(std::move(copy));
    });
  }

  const BufferMap& buffers_;
};

}  // namespace

void replace_buffers(Body& body, const BufferMap& buffers) {
  const Renaming renaming(buffers);
  for_each_statement(body, [&](Stmt& stmt) { renaming.apply(stmt); });
}

Body copy_of(TypeContext& context, Function& function, const Body& original, std::string_view suffix) {
  const auto named = [&](Symbol name) {
    return fresh(context, function, fmt::format("{}_{}", context.name(name), suffix));
  };
  Body copies = original;
  BufferMap buffers;
  for_each_statement(copies, [&](Stmt& stmt) {
    if (auto* alloc = std::get_if<Alloc>(&stmt.form)) {
      const BufferId copy = add_buffer(function, named(function.buffer(alloc->buffer).name), alloc->buffer);
      buffers[alloc->buffer] = copy;
      alloc->buffer = copy;
    }
    if (auto* stage = std::get_if<Stage>(&stmt.form)) stage->name = named(stage->name);
  });
  replace_buffers(copies, buffers);
  return copies;
}

void redirect(Stage& stage, BufferId from, BufferId to) {
  for (Body* body : {&stage.init, &stage.body}) replace_buffers(*body, {{from, to}});
}

Expected<BufferId> only_result(const TypeContext& context, Function& function, Stage& stage) {
  std::set<BufferId> written;
  for_each_access(stage, [&](const Access& access) {
    if (access.writes) written.insert(access.buffer);
  });
  if (written.size() != 1)
    return error(fmt::format("the stage '{}' writes {} buffers, not one", context.name(stage.name), written.size()));
  const BufferId buffer = *written.begin();
  if (!find_alloc(function.body, buffer))
    return error(fmt::format("{} is a result of the function", local(context, function, buffer)));
  return buffer;
}

}  // namespace tenon::compiler::loop
