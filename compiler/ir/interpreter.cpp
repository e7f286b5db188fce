// The interpreter: a loop over steps, with explicit stacks of frames, blocks and values.
#include "compiler/ir/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "compiler/ir/code.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "compiler/loop/evaluate.h"
#include "runtime/computed_attr.h"
#include "runtime/native/functions.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr size_t kMaxFrames = 4'000'000;

using ObjectKind = RunObject::Kind;

class Interpreter {
 public:
  Interpreter(const Context& context, const Module& module, const Observer& observer, const Libraries& libraries,
              const Limits& limits)
      : context_(context), module_(module), observer_(observer), libraries_(libraries), limits_(limits) {}

  Expected<RunValue> run(Symbol name, std::span<const RunValue> inputs) {
    if (!module_.function(name)) return error(fmt::format("there is no function @{}", context_.name(name)));
    for (const RunValue& input : inputs) {
      if (!plain(input)) return error("an input holds a function or a reference");
    }
    Sizes sizes;
    TENON_TRY(check_call(name, inputs, sizes));
    TENON_TRY(push(code_of(name), {inputs.begin(), inputs.end()}, std::make_shared<Sizes>(std::move(sizes))));
    std::optional<RunValue> result;
    while (!result) {
      const Position at = control_.back();
      Expected<std::optional<RunValue>> done = steps_++ >= limits_.steps
                                                   ? error(fmt::format("more than {} steps", limits_.steps))
                                               : at.next == at.block->steps.size() ? leave(*at.block)
                                                                                   : advance(at.block->steps[at.next]);
      if (!done) {
        Diagnostic problem = std::move(done.error());
        if (problem.where.empty()) problem.where = location();
        frames_.clear(), values_.clear(), control_.clear();
        cut_cycles({});
        return std::unexpected(std::move(problem));
      }
      result = std::move(*done);
    }
    values_.clear();
    cut_cycles(*result);
    return *result;
  }

 private:
  struct Frame {
    const Code* code;
    size_t base;     // index of its first slot in values_
    size_t control;  // index of its first block in control_
    std::shared_ptr<const Sizes> sizes;
  };
  struct Position {
    const CodeBlock* block;
    size_t next;
  };
  using Progress = Expected<std::optional<RunValue>>;  // the result of the run, when the run has ended

  // The location of the failed binding: the current binding, or the nearest calling binding.
  std::string location() const {
    for (size_t i = control_.size(), frame = frames_.size(); i-- > 0;) {
      while (frame > 0 && frames_[frame - 1].control > i) --frame;
      const Position& at = control_[i];
      if (at.next >= at.block->steps.size() || frame == 0) continue;
      const Function& function = *frames_[frame - 1].code->function;
      return module_.span(function.info(at.block->steps[at.next].binding->var).span).str();
    }
    return "";
  }

  RunValue& slot(VarId var) {
    const Frame& frame = frames_.back();
    return values_[frame.base + frame.code->slot[index(var)]];
  }
  RunValue read(const Atom& atom) {
    if (auto* var = std::get_if<VarId>(&atom)) return slot(*var);
    if (auto* constant = std::get_if<ConstId>(&atom)) return module_.constant(*constant);
    const Symbol name = std::get<Symbol>(atom);  // a closure without captured values
    RunValue value = RunValue::tuple({});
    value.object->kind = ObjectKind::kClosure;
    value.object->constructor = name;
    return value;
  }
  std::vector<RunValue> read(const Atoms& atoms) {
    std::vector<RunValue> values;
    values.reserve(atoms.size());
    for (const Atom& atom : atoms) values.push_back(read(atom));
    return values;
  }

  const Code& code_of(Symbol name) {
    auto& code = codes_[name];
    if (!code) code = make_code(module_, *module_.function(name));
    return *code;
  }

  Status push(const Code& code, std::vector<RunValue> args, std::shared_ptr<const Sizes> sizes) {
    if (frames_.size() >= kMaxFrames) {
      return error(fmt::format("the recursion is deeper than {} calls", kMaxFrames), "",
                   "make the recursive call the result of the function, with an argument that accumulates the value");
    }
    frames_.push_back({&code, values_.size(), control_.size(), std::move(sizes)});
    values_.resize(values_.size() + code.slots);
    for (size_t i = 0; i < args.size(); ++i) {
      if (observer_) observer_(*code.function, code.params[i], args[i]);
      slot(code.params[i]) = std::move(args[i]);
    }
    control_.push_back({&code.body, 0});
    return {};
  }
  void pop() {
    values_.resize(frames_.back().base);
    control_.resize(frames_.back().control);
    frames_.pop_back();
  }

  // Checks the size of the variable's tensor, as far as its type determines it, against the limit.
  Status check_bytes(VarId var) const {
    if (limits_.bytes == INT64_MAX) return {};
    const TensorType* tensor = frames_.back().code->function->type(var).tensor();
    if (!tensor) return {};
    runtime::Shape shape;
    for (Dim dim : tensor->dims) shape.push_back(evaluate(dim, *frames_.back().sizes).value_or(1));
    const auto bytes = runtime::checked_bytes(tensor->dtype, shape);
    if (bytes && *bytes <= limits_.bytes) return {};
    return error(fmt::format("a tensor {} exceeds the limit of {} bytes", runtime::to_string(shape), limits_.bytes));
  }

  // Checks the sizes of a result that depend on data, and not on the types alone: by the operator's type rule over the
  // shapes of its arguments and the values of its computed attributes, or by the shape that is an argument.
  Status check_computed_bytes(const Apply& apply, const runtime::Attrs& attrs,
                              std::span<const runtime::Tensor> tensors) const {
    const bool by_argument = apply.op->is(ops::kBroadcastDynamic);
    if (limits_.bytes == INT64_MAX || (!by_argument && apply.computed.empty())) return {};
    Context sizes;
    std::vector<Type> args;
    for (const runtime::Tensor& tensor : tensors) {
      Dims dims;
      for (const int64_t size : tensor.shape()) dims.push_back(sizes.dim(size));
      args.push_back(sizes.tensor(std::move(dims), tensor.dtype()));
    }
    runtime::Shape shape;
    if (by_argument) {
      const auto wanted = tensors[1].data<int64_t>();
      shape.assign(wanted.begin(), wanted.end());
      const runtime::Shape& x = tensors[0].shape();
      while (shape.size() < x.size()) shape.insert(shape.begin(), 1);
      for (size_t i = 0; i < x.size(); ++i) {
        int64_t& size = shape[shape.size() - x.size() + i];
        size = x[i] == 1 ? size : x[i];
      }
    } else {
      const DimProver prover(sizes);
      const AttrDims computed;
      const auto type = apply.op->rule({sizes, attrs, args, prover, nullptr, apply.op->inputs, computed});
      const auto known = type && type->tensor() ? type->tensor()->shape() : std::nullopt;
      if (!known) return {};  // the kernel says what is wrong
      shape = *known;
    }
    if (std::ranges::any_of(shape, [](int64_t size) { return size < 0; })) return {};
    const auto bytes = runtime::checked_bytes(DType::kF64, shape);
    if (bytes && *bytes <= limits_.bytes) return {};
    return error(fmt::format("a tensor {} exceeds the limit of {} bytes", runtime::to_string(shape), limits_.bytes));
  }

  // Checks the arguments of a global function. `sizes`: the values of dims that the types of the arguments determine;
  // those of all other dims are added.
  Status check_call(Symbol name, std::span<const RunValue> args, Sizes& sizes) const {
    Status status = check_inputs(context_, module_, *module_.function(name), args, sizes);
    if (!status) status.error().what = fmt::format("@{}: {}", context_.name(name), status.error().what);
    return status;
  }

  Progress leave(const CodeBlock& block) {
    RunValue result = read(block.block->result);
    control_.pop_back();
    if (control_.size() == frames_.back().control) {
      pop();
      if (frames_.empty()) return result;
    }
    return deliver(std::move(result));
  }

  // Stores the value of the current step and advances to the next step.
  Progress deliver(RunValue value) {
    Position& at = control_.back();
    const CodeStep& step = at.block->steps[at.next];
    const Frame& frame = frames_.back();
    const Function& function = *frame.code->function;
    const Binding& binding = *step.binding;
    if (!matches(module_, function.type(binding.var), value, *frame.sizes)) {
      return error(fmt::format("{} returned {}, expected {}", print(context_, function, binding.value),
                               describe(context_, value), context_.str(function.type(binding.var))),
                   "", "", Fault::kInternal);
    }
    if (observer_) observer_(function, binding.var, value);
    slot(binding.var) = std::move(value);
    for (uint32_t unused : step.last_uses) values_[frame.base + unused] = {};
    ++at.next;
    return std::nullopt;
  }

  // The value of a dim, as a scalar.
  Expected<runtime::Tensor> size(Dim dim) const {
    const auto value = evaluate(dim, *frames_.back().sizes);
    if (value) return runtime::Tensor::of<int64_t>({}, std::array{*value});
    return error(fmt::format("no input determines the size {}", context_.str(dim)));
  }
  // The attributes with the values of the computed ones.
  Expected<Attrs> complete(const Apply& apply) {
    Attrs attrs = apply.attrs;
    for (const auto& [name, computed] : apply.computed) {
      std::vector<runtime::Tensor> parts;
      if (auto* dims = std::get_if<Dims>(&computed)) {
        for (const Dim dim : *dims) {
          TENON_TRY_ASSIGN(part, size(dim));
          parts.push_back(std::move(*part));
        }
      } else {
        parts.push_back(read(std::get<Atom>(computed)).tensor());
      }
      auto attr = runtime::computed_attr(name, computed_kind(apply, name), parts);
      if (!attr) return error(fmt::format("{}: {}", apply.op->name, attr.error().what));
      attrs.insert_or_assign(name, std::move(*attr));
    }
    return attrs;
  }

  Progress advance(const CodeStep& step) { return std::visit(Visitor{*this, step}, step.binding->value); }

  struct Visitor {
    Interpreter& self;
    const CodeStep& step;

    Progress operator()(const Apply& apply) const {
      if (!apply.op->reference) {
        return error(fmt::format("{} has no reference kernel", apply.op->name), "", "", Fault::kInternal);
      }
      TENON_TRY(self.check_bytes(step.binding->var));
      std::vector<runtime::Tensor> tensors;
      for (const Atom& arg : apply.args) tensors.push_back(self.read(arg).tensor());
      if (!apply.computed.empty()) {
        TENON_TRY_ASSIGN(attrs, self.complete(apply));
        TENON_TRY(self.check_computed_bytes(apply, *attrs, tensors));
        TENON_TRY_ASSIGN(results, apply.op->reference(*attrs, tensors));
        return self.deliver(joined(*results));
      }
      TENON_TRY(self.check_computed_bytes(apply, apply.attrs, tensors));
      TENON_TRY_ASSIGN(results, apply.op->reference(apply.attrs, tensors));
      return self.deliver(joined(*results));
    }
    Progress operator()(const DimValue& value) const {
      TENON_TRY_ASSIGN(size, self.size(value.dim));
      return self.deliver(*size);
    }
    Progress operator()(const Call& call) const {
      std::vector<RunValue> args = self.read(call.args);
      auto* symbol = std::get_if<Symbol>(&call.callee);
      const Frame& frame = self.frames_.back();
      if (symbol && !self.module_.function(*symbol)) return outside(*symbol, args);
      Sizes sizes;
      std::shared_ptr<RunObject> closure;
      if (symbol) {
        std::vector<std::pair<Dim, int64_t>> equations;
        for (const auto& [dim, found] : step.sizes) {
          if (const auto value = evaluate(found, *frame.sizes)) equations.emplace_back(dim, *value);
        }
        solve_sizes(equations, sizes);
      } else {
        closure = self.read(call.callee).object;
        if (!closure->code) {
          const Symbol name = closure->constructor;
          if (!self.module_.function(name)) return outside(name, args);
          symbol = &closure->constructor;
        }
      }
      // The frame of a tail call is removed after the check, whose error is located at the call.
      if (symbol) TENON_TRY(self.check_call(*symbol, args, sizes));
      if (step.tail && !self.observer_) self.pop();
      if (symbol) {
        TENON_TRY(self.push(self.code_of(*symbol), std::move(args), std::make_shared<Sizes>(std::move(sizes))));
        return std::nullopt;
      }
      const Code& code = *closure->code;
      TENON_TRY(self.push(code, std::move(args), closure->sizes));
      for (size_t i = 0; i < code.captures.size(); ++i) self.slot(code.captures[i]) = closure->fields[i];
      if (code.self) self.slot(*code.self).object = closure;
      return std::nullopt;
    }
    Progress operator()(const Gradient&) const {
      return error("a gradient has no value before it is expanded", "", "run the pass differentiate first",
                   Fault::kUsage);
    }
    // Calls a global that has no frame in the interpreter: a loop function or a library function.
    Progress outside(Symbol name, const std::vector<RunValue>& args) const {
      const loop::Function* loops = self.module_.loop_function(name);
      return loops ? run(*loops, args) : library(*self.module_.library(name), args);
    }
    Progress run(const loop::Function& function, const std::vector<RunValue>& args) const {
      std::vector<runtime::Tensor> tensors;
      for (const RunValue& arg : args) tensors.push_back(arg.tensor());
      loop::EvaluateOptions options;
      options.max_bytes = self.limits_.bytes;
      options.max_steps = std::min(options.max_steps, static_cast<uint64_t>(self.limits_.steps));
      for (const auto& [symbol, implementation] : self.libraries_)
        options.libraries[symbol] = filler(symbol, implementation);
      auto results = loop::evaluate(self.context_, function, tensors, options);
      if (!results) {
        Diagnostic problem = std::move(results.error());
        problem.what += fmt::format(" (in {})", std::exchange(problem.where, {}));
        return std::unexpected(std::move(problem));
      }
      return self.deliver(joined(*results));
    }
    // The results as a value of the step's type: the tensor itself, or a tuple.
    RunValue joined(std::span<const runtime::Tensor> parts) const {
      if (!type().tuple()) return parts.front();
      return RunValue::tuple({parts.begin(), parts.end()});
    }
    Type type() const { return self.frames_.back().code->function->type(step.binding->var); }
    static std::unexpected<Diagnostic> wrong_results(std::string_view symbol) {
      return error(fmt::format("the results of the library function \"{}\" do not have its declared type", symbol));
    }
    // Adapts a library function of values to a function that fills buffers.
    static loop::LibraryFunction filler(std::string_view symbol, const Libraries::mapped_type& implementation) {
      return [symbol, &implementation](std::span<const runtime::Tensor> inputs,
                                       std::span<runtime::Tensor> outputs) -> Status {
        TENON_TRY_ASSIGN(value, implementation(std::vector<RunValue>(inputs.begin(), inputs.end())));
        const std::span<const RunValue> results =
            *value && value->tensor() ? std::span<const RunValue>(&*value, 1) : value->fields();
        bool fit = results.size() == outputs.size();
        for (size_t i = 0; fit && i < results.size(); ++i) {
          const runtime::Tensor& tensor = results[i].tensor();
          fit = tensor && tensor.dtype() == outputs[i].dtype() && tensor.shape() == outputs[i].shape();
          if (fit) std::ranges::copy(tensor.bytes(), outputs[i].bytes().begin());
        }
        return fit ? Status() : wrong_results(symbol);
      };
    }
    Progress library(const Library& library, const std::vector<RunValue>& args) const {
      auto found = self.libraries_.find(library.symbol);
      if (found == self.libraries_.end()) return opened(library, args);
      TENON_TRY_ASSIGN(value, found->second(args));
      if (!matches(self.module_, type(), *value, *self.frames_.back().sizes)) return wrong_results(library.symbol);
      return self.deliver(std::move(*value));
    }
    // Calls a library function that the process has loaded, which fills preallocated tensors.
    Progress opened(const Library& library, const std::vector<RunValue>& args) const {
      auto function = runtime::find_function(library.symbol);
      if (!function) {
        return error(fmt::format("the interpreter has no library function \"{}\"", library.symbol), {},
                     function.error().help);
      }
      Sizes sizes;
      std::vector<runtime::Tensor> inputs, outputs;
      for (size_t i = 0; i < args.size(); ++i) {
        bind_sizes(library.params[i], args[i], sizes);
        inputs.push_back(args[i].tensor());
        if (!inputs.back()) return error(fmt::format("\"{}\" supports tensor arguments only", library.symbol));
      }
      for (const Type part : library.result.parts()) {
        const TensorType* tensor = part.tensor();
        runtime::Shape shape;
        for (size_t i = 0; tensor && i < tensor->dims.size(); ++i) {
          if (const auto size = evaluate(tensor->dims[i], sizes)) shape.push_back(*size);
        }
        if (!tensor || shape.size() != tensor->dims.size())
          return error(fmt::format("the arguments of \"{}\" do not determine the size of its result", library.symbol));
        const auto bytes = runtime::checked_bytes(tensor->dtype, shape);
        if (!bytes || *bytes > self.limits_.bytes)
          return error(fmt::format("a result of \"{}\" is too large", library.symbol));
        outputs.emplace_back(tensor->dtype, std::move(shape));
      }
      TENON_TRY(runtime::call_function(**function, inputs, outputs, runtime::ThreadPool::of_process()));
      return self.deliver(joined(outputs));
    }
    Progress operator()(const Tuple& tuple) const { return self.deliver(RunValue::tuple(self.read(tuple.fields))); }
    Progress operator()(const Project& project) const {
      const RunValue tuple = self.read(project.tuple);
      if (project.index >= tuple.fields().size()) return error(fmt::format("there is no field {}", project.index));
      return self.deliver(tuple.fields()[project.index]);
    }
    Progress operator()(const Construct& construct) const {
      return self.deliver(RunValue::data(construct.constructor, self.read(construct.fields)));
    }
    Progress operator()(const Lambda&) const {
      RunValue closure = RunValue::tuple({});
      closure.object->kind = ObjectKind::kClosure;
      closure.object->code = step.lambda.get();
      closure.object->sizes = self.frames_.back().sizes;
      for (VarId var : step.lambda->captures) closure.object->fields.push_back(self.slot(var));
      return self.deliver(std::move(closure));
    }
    Progress operator()(const If& branch) const {
      const RunValue condition = self.read(branch.condition);
      self.control_.push_back({&step.blocks[condition.tensor().data<bool>()[0] ? 0 : 1], 0});
      return std::nullopt;
    }
    Progress operator()(const Case& match) const {
      const RunValue subject = self.read(match.subject);
      for (size_t i = 0; i < match.arms.size(); ++i) {
        if (!self.fits(match.arms[i].pattern, subject)) continue;
        if (self.observer_) self.observe(match.arms[i].pattern);
        self.control_.push_back({&step.blocks[i], 0});
        return std::nullopt;
      }
      return error(fmt::format("no arm matches {}", describe(self.context_, subject)), "", "", Fault::kInternal);
    }
    Progress operator()(const Cast& cast) const {
      RunValue value = self.read(cast.value);
      Frame& frame = self.frames_.back();
      Sizes sizes = *frame.sizes;
      for (Symbol name : cast.fresh) sizes.erase(name);
      bind_sizes(cast.type, value, sizes);
      const bool open = std::ranges::any_of(cast.fresh, [&](Symbol name) { return !sizes.contains(name); });
      if (open || !matches(self.module_, cast.type, value, sizes)) {
        return error(fmt::format("match_cast: the value is {}, must be {}", describe(self.context_, value),
                                 self.context_.str(cast.type)),
                     "", describe_sizes(self.context_, cast.type, sizes));
      }
      if (!cast.fresh.empty()) frame.sizes = std::make_shared<Sizes>(std::move(sizes));
      return self.deliver(std::move(value));
    }
    Progress operator()(const MakeReference& make) const {
      RunValue cell = RunValue::tuple({self.read(make.value)});
      cell.object->kind = ObjectKind::kReference;
      self.remember(cell);
      return self.deliver(std::move(cell));
    }
    Progress operator()(const ReadReference& read) const {
      return self.deliver(self.read(read.reference).object->fields[0]);
    }
    Progress operator()(const WriteReference& write) const {
      self.read(write.reference).object->fields[0] = self.read(write.value);
      return self.deliver(RunValue::tuple({}));
    }
  };

  // Whether the pattern matches the value; binds the pattern's variables on the way.
  bool fits(const MatchPattern& pattern, const RunValue& value) {
    auto all_fit = [&](const std::vector<MatchPattern>& patterns) {
      const auto fields = value.fields();
      for (size_t i = 0; i < patterns.size(); ++i) {
        if (!fits(patterns[i], fields[i])) return false;
      }
      return true;
    };
    struct PatternVisitor {
      Interpreter& self;
      const RunValue& value;
      decltype(all_fit)& fields_fit;
      bool operator()(const AnyPattern&) const { return true; }
      bool operator()(const BindPattern& x) const {
        self.slot(x.var) = value;
        return true;
      }
      bool operator()(const ConstructPattern& x) const {
        return value.object->constructor == x.constructor && fields_fit(x.fields);
      }
      bool operator()(const TuplePattern& x) const { return fields_fit(x.fields); }
    };
    return std::visit(PatternVisitor{*this, value, all_fit}, pattern.form);
  }

  void observe(const MatchPattern& pattern) {
    const Function& function = *frames_.back().code->function;
    for_each_variable(pattern, [&](VarId var) { observer_(function, var, slot(var)); });
  }

  static bool plain(const RunValue& value) {
    std::vector<const RunObject*> open{value.object.get()};
    std::unordered_set<const RunObject*> seen;
    while (!open.empty()) {
      const RunObject* object = open.back();
      open.pop_back();
      if (!object || object->kind == ObjectKind::kClosure || object->kind == ObjectKind::kReference) return false;
      if (!seen.insert(object).second) continue;
      for (const RunValue& field : object->fields) open.push_back(field.object.get());
    }
    return true;
  }

  void remember(const RunValue& cell) {
    if (cells_.size() >= sweep_at_) {
      std::erase_if(cells_, [](const auto& weak) { return weak.expired(); });
      sweep_at_ = std::max<size_t>(1024, 2 * cells_.size());
    }
    cells_.push_back(cell.object);
  }
  // Empties the cells that are not reachable from the result, so that no cycle keeps itself alive.
  void cut_cycles(const RunValue& result) {
    std::unordered_set<const RunObject*> reachable;
    std::vector<const RunObject*> open{result.object.get()};
    while (!cells_.empty() && !open.empty()) {
      const RunObject* object = open.back();
      open.pop_back();
      if (!object || !reachable.insert(object).second) continue;
      for (const RunValue& field : object->fields) open.push_back(field.object.get());
    }
    for (const auto& weak : cells_) {
      const auto cell = weak.lock();
      if (cell && !reachable.contains(cell.get())) cell->fields.clear();
    }
    cells_.clear();
  }

  const Context& context_;
  const Module& module_;
  const Observer& observer_;
  const Libraries& libraries_;
  const Limits limits_;
  int64_t steps_ = 0;
  std::map<Symbol, std::unique_ptr<Code>> codes_;
  std::vector<Frame> frames_;
  std::vector<Position> control_;
  std::vector<RunValue> values_;
  std::vector<std::weak_ptr<RunObject>> cells_;
  size_t sweep_at_ = 1024;
};

}  // namespace

Status check_inputs(const Context& context, const Module& module, const Function& function,
                    std::span<const RunValue> inputs, Sizes& sizes) {
  if (inputs.size() != function.params.size()) {
    return error(fmt::format("needs {} inputs, found {}", function.params.size(), inputs.size()));
  }
  std::vector<std::pair<Dim, int64_t>> equations;
  for (size_t i = 0; i < inputs.size(); ++i) pair_sizes(function.type(function.params[i]), inputs[i], equations);
  solve_sizes(equations, sizes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const VarInfo& info = function.info(function.params[i]);
    auto fail = [&](const std::string& why) {
      return error(fmt::format("input '{}' must be {}, found {}{}", context.name(info.name), context.str(info.type),
                               describe(context, inputs[i]), why),
                   "", describe_sizes(context, info.type, sizes));
    };
    if (!matches(module, info.type, inputs[i], sizes)) return fail("");
    equations.clear();
    pair_sizes(info.type, inputs[i], equations);
    for (const auto& [dim, size] : equations) {
      if (evaluate(dim, sizes) != size) return fail(fmt::format(": no input determines {}", context.str(dim)));
    }
    for (const auto& [name, bounds] : function.bounds) {
      auto size = sizes.find(name);
      if (size == sizes.end() || !mentions(info.type, name) || bounds.contains(size->second)) continue;
      return fail(fmt::format(": {} must be in {}", context.name(name), str(bounds)));
    }
  }
  return {};
}

Expected<RunValue> interpret(const Context& context, const Module& module, Symbol function,
                             std::span<const RunValue> inputs, const Observer& observer, const Libraries& libraries,
                             const Limits& limits) {
  return Interpreter(context, module, observer, libraries, limits).run(function, inputs);
}

Expected<std::vector<runtime::Tensor>> interpret(const Context& context, const Module& module, Symbol function,
                                                 std::span<const runtime::Tensor> inputs, const Observer& observer) {
  const std::vector<RunValue> values(inputs.begin(), inputs.end());
  TENON_TRY_ASSIGN(result, interpret(context, module, function, values, observer));
  std::vector<runtime::Tensor> tensors;
  auto add = [&](const RunValue& value) {
    if (value.tensor()) tensors.push_back(value.tensor());
    return static_cast<bool>(value.tensor());
  };
  if (result->object->kind == ObjectKind::kTuple ? !std::ranges::all_of(result->fields(), add) : !add(*result)) {
    return error(fmt::format("the result is {}, expected tensors", describe(context, *result)));
  }
  return tensors;
}

}  // namespace tenon::compiler
