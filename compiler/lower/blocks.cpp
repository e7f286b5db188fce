// Blocks and their bindings: what becomes of a result, branches, tail calls, closures.
#include <fmt/format.h>

#include <utility>

#include "compiler/lower/function.h"
#include "support/try.h"

namespace tenon::compiler {

Status FunctionLowering::block(const Block& block, const Destination& to) {
  for (const Binding& binding : block.bindings) {
    if (&binding == &block.bindings.back() && block.result == Atom{binding.var}) {
      TENON_TRY_ASSIGN(done, tail(binding, to));
      if (*done) return {};
    }
    TENON_TRY(this->binding(binding));
  }
  const auto* var = std::get_if<VarId>(&block.result);
  return deliver(block.result, var ? function_->type(*var) : Type(), to);
}

Status FunctionLowering::deliver(const Atom& result, Type type, const Destination& to) {
  if (to.returns) return returns(result);
  TENON_TRY_ASSIGN(from, locate(result));
  move(*from, to.location, type);
  return {};
}

Status FunctionLowering::returns(const Atom& result) {
  TENON_TRY_ASSIGN(from, locate(result));
  if (role_ != Role::kEntry) {
    emit(runtime::Return{{word(*from)}});
    return {};
  }
  Registers values;
  const TupleType* tuple = function_->result.tuple();
  const bool first = code_.results.empty();
  const Atoms fields = result_fields();
  if (!tuple) {
    values.push_back(word(*from));
    if (first) add_result_port(function_->result, fields.front());
  }
  for (uint32_t i = 0; tuple && i < tuple->fields.size(); ++i) {
    values.push_back(word(field(*from, i)));
    if (first) add_result_port(tuple->fields[i], i < fields.size() ? fields[i] : result);
  }
  emit(runtime::Return{std::move(values)});
  return {};
}

// The last binding of a block whose value is the block's: control flow hands the destination on, and a call of the
// function's result ends the frame. Returns whether the block is done.
Expected<bool> FunctionLowering::tail(const Binding& binding, const Destination& to) {
  if (const auto* branch = std::get_if<If>(&binding.value)) {
    TENON_TRY(this->branch(*branch, to));
    return true;
  }
  if (const auto* match = std::get_if<Case>(&binding.value)) {
    TENON_TRY(this->match(*match, to));
    return true;
  }
  const auto* call = std::get_if<Call>(&binding.value);
  if (!call || !to.returns || role_ == Role::kEntry) return false;
  if (const auto* symbol = std::get_if<Symbol>(&call->callee)) {
    const Function* callee = program_.module.function(*symbol);
    if (!callee || !callee->target.empty() || !callee->composite.empty() || program_.is_unit(*symbol) ||
        program_.inlines(*symbol, *callee))
      return false;
    TENON_TRY_ASSIGN(args, arguments(*symbol, *callee, call->args));
    emit(runtime::TailCall{program_.callee(*symbol), std::move(*args)}, layer(binding.var));
    return true;
  }
  TENON_TRY_ASSIGN(closure, word(call->callee));
  TENON_TRY_ASSIGN(args, words(call->args));
  emit(runtime::TailCallClosure{*closure, std::move(*args)}, layer(binding.var));
  return true;
}

Status FunctionLowering::branch(const If& branch, const Destination& to) {
  TENON_TRY_ASSIGN(condition, word(branch.condition));
  const Label otherwise = label(), end = label();
  emit(runtime::Branch{*condition, otherwise});
  TENON_TRY(block(branch.arms[0], to));
  if (!to.returns) jump(end);
  bind(otherwise);
  TENON_TRY(block(branch.arms[1], to));
  bind(end);
  return {};
}

Status FunctionLowering::binding(const Binding& binding) {
  const Type type = function_->type(binding.var);
  struct Visitor {
    FunctionLowering& self;
    const Binding& binding;
    Type type;

    Status operator()(const Apply& x) const { return self.apply(binding, x); }
    Status operator()(const Call& x) const { return self.call(binding, x); }
    Status operator()(const Gradient&) const {
      return error("a gradient must be expanded before it is compiled",
                   self.program_.module.span(self.function_->info(binding.var).span).str(),
                   "run the pass differentiate first");
    }
    Status operator()(const Tuple& x) const {
      Location tuple{.reg = 0, .fields = std::vector<Location>()};
      for (const Atom& field : x.fields) {
        TENON_TRY_ASSIGN(location, self.locate(field));
        tuple.fields->push_back(std::move(*location));
      }
      self.define(binding.var, std::move(tuple));
      return {};
    }
    Status operator()(const DimValue& x) const {
      self.define(binding.var, {self.value_of(x.dim)});
      return {};
    }
    Status operator()(const Project& x) const {
      TENON_TRY_ASSIGN(tuple, self.locate(x.tuple));
      self.define(binding.var, self.field(*tuple, x.index));
      return {};
    }
    Status operator()(const Construct& x) const {
      TENON_TRY_ASSIGN(fields, self.words(x.fields));
      const auto decl = self.program_.module.constructor(x.constructor);
      self.emit(runtime::Construct{result(), self.program_.type(decl->name), static_cast<uint32_t>(decl->index),
                                   std::move(*fields)});
      return {};
    }
    Status operator()(const Lambda& x) const { return self.lambda(binding, x); }
    Status operator()(const If& x) const {
      const Location to = self.fresh_location(type);
      TENON_TRY(self.branch(x, {.returns = false, .location = to}));
      self.define(binding.var, to);
      return {};
    }
    Status operator()(const Case& x) const {
      const Location to = self.fresh_location(type);
      TENON_TRY(self.match(x, {.returns = false, .location = to}));
      self.define(binding.var, to);
      return {};
    }
    Status operator()(const Cast& x) const { return self.cast(binding, x); }
    Status operator()(const MakeReference& x) const {
      TENON_TRY_ASSIGN(value, self.word(x.value));
      self.emit(runtime::MakeReference{result(), *value});
      return {};
    }
    Status operator()(const ReadReference& x) const {
      TENON_TRY_ASSIGN(reference, self.word(x.reference));
      self.emit(runtime::ReadReference{result(), *reference});
      return {};
    }
    Status operator()(const WriteReference& x) const {
      TENON_TRY_ASSIGN(reference, self.word(x.reference));
      TENON_TRY_ASSIGN(value, self.word(x.value));
      self.emit(runtime::WriteReference{*reference, *value});
      self.define(binding.var, {.reg = 0, .fields = std::vector<Location>()});
      return {};
    }
    Register result() const {
      const Register to = self.fresh();
      self.define(binding.var, {to});
      return to;
    }
  };
  return std::visit(Visitor{*this, binding, type}, binding.value);
}

Status FunctionLowering::lambda(const Binding& binding, const Lambda& lambda) {
  FunctionLowering inner(*this, binding.var);
  for (const VarId param : lambda.params) {
    const Register reg = inner.fresh();
    inner.define(param, {reg});
    inner.params_.push_back(reg);
    inner.code_.params.push_back({.name = fmt::format("{}.{}", program_.context.name(function_->info(param).name), reg),
                                  .dtype = {},
                                  .shape = {},
                                  .symbols = {},
                                  .type = program_.context.str(function_->type(param))});
  }
  TENON_TRY(inner.block(lambda.body[0], {.returns = true}));
  const uint32_t index = program_.add_function();
  const Registers captured = inner.captured_;
  TENON_TRY(inner.finish(index));
  const Register to = fresh();
  emit(runtime::MakeClosure{to, index, captured}, layer(binding.var));
  define(binding.var, {to});
  return {};
}

}  // namespace tenon::compiler
