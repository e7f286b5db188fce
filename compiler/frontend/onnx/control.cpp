// Converters of ONNX's control flow. If becomes `if`; Loop and Scan become closures that call themselves.
//
// A value that an arm or a body computes has one type around it: sizes that differ from one arm or iteration to the
// other are erased, so the body is imported again until the types of its results are those of its parameters.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/frontend/onnx/sequence.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;

// A block that is finished later: its results need types that are known after other blocks.
struct OpenBlock {
  Block block;
  Atoms results;
};

Expected<std::vector<Type>> types_of(Builder& builder, const Atoms& atoms) {
  std::vector<Type> types;
  for (const Atom& atom : atoms) {
    TENON_TRY_ASSIGN(type, builder.type_of(atom));
    types.push_back(*type);
  }
  return types;
}

// Ends the block with its results as values of `types`, in a tuple where they are several.
Expected<Block> finish(NodeImport& node, OpenBlock open, const std::vector<Type>& types) {
  Builder& builder = node.builder();
  Block& block = open.block;
  const auto append = [&](Value value, Type type) -> Expected<Atom> {
    const VarId var = builder.declare(type, "");
    block.bindings.push_back({var, std::move(value)});
    return var;
  };
  for (size_t i = 0; i < types.size(); ++i) {
    Atom& result = open.results[i];
    TENON_TRY_ASSIGN(found, builder.type_of(result));
    TENON_TRY_ASSIGN(as_wanted, as_type(node, result, *found, types[i], append));
    result = *as_wanted;
  }
  block.result = open.results.size() == 1 ? open.results[0] : Atom{};
  if (open.results.size() == 1) return std::move(block);
  const VarId tuple = builder.declare(builder.context().tuple(types), "");
  block.bindings.push_back({tuple, Tuple{std::move(open.results)}});
  block.result = tuple;
  return std::move(block);
}

// The type that a value has whether it is `a` or `b`: sizes that differ are erased, and so are sizes with a variable
// that is not among `visible`; sequences of different lengths are lists, and values of which one may be absent are
// optional. Nothing where ranks or dtypes differ.
std::optional<Type> joined(NodeImport& node, Type a, Type b, const std::set<Symbol>& visible) {
  Context& context = node.context();
  const auto kept = [&](Dim dim) {
    bool inside = false;
    for_each_variable(dim, [&](Symbol name) { inside |= !visible.contains(name); });
    return inside ? context.erased() : dim;
  };
  const TensorType *x = a.tensor(), *y = b.tensor();
  if (!x || !y) {
    if (a == b) return a;
    const auto optional = joined_optional(node, a, b);
    return optional ? optional : joined_list(node, a, b);
  }
  if (x->dtype != y->dtype || x->rank() != y->rank()) return std::nullopt;
  Dims dims;
  for (size_t i = 0; i < x->dims.size(); ++i) {
    dims.push_back(x->dims[i] == y->dims[i] ? kept(x->dims[i]) : context.erased());
  }
  return context.tensor(std::move(dims), x->dtype);
}

// The fields of what a block resulted in, named as the node's outputs, with names for erased sizes.
Expected<Atoms> fields_of(NodeImport& node, Atom value, size_t count) {
  Atoms fields;
  const std::vector<std::string>& names = node.node().outputs;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = i < names.size() ? names[i] : "";
    Expected<Atom> field = count == 1 ? value : node.builder().project(value, i, name);
    if (field) field = node.import().open_sizes(*field, name);
    if (!field) return std::unexpected(std::move(field.error()));
    fields.push_back(*field);
  }
  return fields;
}

// A tensor of one element as a scalar.
Expected<Atom> scalar_of(NodeImport& node, Atom value) {
  const TensorType* type = node.builder().tensor_type(value);
  if (!type) return node.fail("a tensor is required, found a sequence or an optional value");
  if (type->rank() == 0) return value;
  return node.apply(ops::kReshape, {value}, {{"shape", Ints{}}});
}

Expected<OpenBlock> import_block(NodeImport& node, const Graph& graph, const Atoms& inputs) {
  node.builder().open();
  TENON_TRY_ASSIGN(results, node.import().graph(graph, inputs, node.scope()));
  return OpenBlock{node.builder().close({}), std::move(*results)};
}

Status results(NodeImport& node, const Atoms& atoms) {
  for (size_t i = 0; i < atoms.size(); ++i) TENON_TRY(node.result(i, atoms[i]));
  return {};
}

Status convert_if(NodeImport& node) {
  TENON_TRY_ASSIGN(given, node.input(0));
  TENON_TRY_ASSIGN(then_graph, node.graph("then_branch"));
  TENON_TRY_ASSIGN(else_graph, node.graph("else_branch"));
  const size_t count = node.node().outputs.size();
  if ((*then_graph)->outputs.size() != count || (*else_graph)->outputs.size() != count) {
    return node.fail(fmt::format("{} outputs of branches with {} and {}", count, (*then_graph)->outputs.size(),
                                 (*else_graph)->outputs.size()));
  }
  TENON_TRY_ASSIGN(condition, scalar_of(node, *given));
  if (const runtime::Tensor* known = node.constant_tensor(*condition); known && known->dtype() == DType::kBool) {
    TENON_TRY_ASSIGN(atoms,
                     node.import().graph(known->data<bool>()[0] ? **then_graph : **else_graph, {}, node.scope()));
    return results(node, *atoms);
  }
  const std::set<Symbol> visible = node.import().dims();
  std::vector<OpenBlock> arms;
  for (const Graph* graph : {*then_graph, *else_graph}) {
    TENON_TRY_ASSIGN(arm, import_block(node, *graph, {}));
    arms.push_back(std::move(*arm));
  }
  TENON_TRY_ASSIGN(types, types_of(node.builder(), arms[0].results));
  TENON_TRY_ASSIGN(others, types_of(node.builder(), arms[1].results));
  for (size_t i = 0; i < count; ++i) {
    const auto type = joined(node, (*types)[i], (*others)[i], visible);
    if (!type) {
      return node.fail(fmt::format("output {} is {} in one branch and {} in the other", i,
                                   node.context().str((*types)[i]), node.context().str((*others)[i])));
    }
    (*types)[i] = *type;
  }
  If branch{*condition, {}};
  for (OpenBlock& arm : arms) {
    TENON_TRY_ASSIGN(block, finish(node, std::move(arm), *types));
    branch.arms.push_back(std::move(*block));
  }
  TENON_TRY_ASSIGN(value, node.builder().bind(std::move(branch), node.context().symbol(node.node().outputs[0])));
  TENON_TRY_ASSIGN(fields, fields_of(node, *value, count));
  return results(node, *fields);
}

// What Loop and Scan have in common: a closure over a counter, a condition, the values that are carried from one
// iteration to the next, and the results so far of the outputs that have an element of each iteration.
class Iteration {
 public:
  // Inputs of the body's graph in the iteration `i`.
  using Inputs = std::function<Expected<Atoms>(Atom i, Atom condition, const Atoms& carried)>;

  // `count`: a scalar i64, nothing where the condition alone ends the loop. `condition`: whether the body has one, as
  // its first output.
  Iteration(NodeImport& node, const Graph& body, std::optional<Atom> count, bool condition, Inputs inputs)
      : node_(node),
        builder_(node.builder()),
        body_(body),
        count_(count),
        condition_(condition),
        inputs_(std::move(inputs)) {}

  // Collects the elements of the iterations as lists.
  void collect_lists() { lists_ = true; }

  // The carried values after the last iteration, then the elements of all iterations along a new first axis, which
  // `backward` fills from its end.
  Expected<Atoms> run(Atom condition, const Atoms& initial, const std::vector<bool>& backward) {
    backward_ = backward;
    if (body_.outputs.size() != size_t{condition_} + initial.size() + backward.size()) {
      return node_.fail(fmt::format("its graph has {} outputs, must have {}", body_.outputs.size(),
                                    size_t{condition_} + initial.size() + backward.size()));
    }
    TENON_TRY_ASSIGN(carried, types_of(builder_, initial));
    carried_ = std::move(*carried);
    const std::set<Symbol> visible = node_.import().dims();
    TENON_TRY(find_types(visible));
    return close(condition, initial);
  }

 private:
  Type scalar(DType dtype) { return node_.context().tensor(Dims{}, dtype); }
  Atom integer(int64_t value) { return builder_.constant<int64_t>({}, {value}); }

  // The body as a block over the parameters, which are declared by the caller; erased sizes get names inside.
  Expected<OpenBlock> body(Atom i, Atom condition, const Atoms& carried) {
    builder_.open();
    Atoms open;
    for (const Atom& value : carried) {
      TENON_TRY_ASSIGN(named, node_.import().open_sizes(value));
      open.push_back(*named);
    }
    TENON_TRY_ASSIGN(inputs, inputs_(i, condition, open));
    TENON_TRY_ASSIGN(results, node_.import().graph(body_, *inputs, node_.scope()));
    if (!condition_) results->insert(results->begin(), condition);
    TENON_TRY_ASSIGN(next, scalar_of(node_, results->front()));
    results->front() = *next;
    return OpenBlock{{}, std::move(*results)};
  }

  Atoms declare(const std::vector<Type>& types) {
    Atoms atoms;
    for (Type type : types) atoms.emplace_back(builder_.declare(type, ""));
    return atoms;
  }

  // The types of the carried values and of the collected elements, by importing the body until they do not change.
  Status find_types(const std::set<Symbol>& visible) {
    for (bool changed = true; changed;) {
      changed = false;
      const size_t vars = builder_.function().vars.size(), constants = builder_.module().constants.size(),
                   globals = builder_.module().globals.size();
      const Atoms i = declare({scalar(DType::kI64), scalar(DType::kBool)});
      TENON_TRY_ASSIGN(trial, body(i[0], i[1], declare(carried_)));
      TENON_TRY_ASSIGN(types, types_of(builder_, trial->results));
      (void)builder_.close({});
      builder_.function().vars.resize(vars);
      node_.import().forget(vars);
      // Functions on lists that the trial has defined stay, with the constants of the trial.
      if (builder_.module().globals.size() == globals) builder_.module().constants.resize(constants);
      for (size_t k = 0; k < carried_.size(); ++k) {
        const auto type = joined(node_, carried_[k], (*types)[k + 1], visible);
        if (!type) {
          return node_.fail(fmt::format("the carried value {} is {} first and {} after an iteration", k,
                                        node_.context().str(carried_[k]), node_.context().str((*types)[k + 1])));
        }
        changed |= *type != carried_[k];
        carried_[k] = *type;
      }
      elements_.assign(types->begin() + 1 + static_cast<ptrdiff_t>(carried_.size()), types->end());
    }
    collected_.clear();
    for (Type element : elements_) {
      if (lists_) {
        TENON_TRY_ASSIGN(list, list_type(node_, element));
        collected_.push_back(*list);
        continue;
      }
      const TensorType* type = element.tensor();
      if (!type) return node_.fail("an output that collects sequences is not supported");
      Dims dims{node_.context().erased()};
      for (Dim dim : type->dims) dims.push_back(dim.constant() ? dim : node_.context().erased());
      collected_.push_back(node_.context().tensor(std::move(dims), type->dtype));
    }
    return {};
  }

  // No element yet; sizes that are not known are 0.
  Expected<Atom> nothing(Type collected) {
    if (lists_) return list_empty(node_, collected);
    runtime::Shape shape{0};
    const TensorType& type = *collected.tensor();
    for (size_t i = 1; i < type.dims.size(); ++i) shape.push_back(type.dims[i].constant().value_or(0));
    return builder_.constant(runtime::Tensor(type.dtype, std::move(shape)));
  }

  // `so_far` and one more element. The first element determines the sizes that are not known before.
  Expected<Atom> collect(Atom i, Atom so_far, Atom element, Type type, bool backward) {
    if (lists_) return list_append(node_, so_far, element);
    TENON_TRY_ASSIGN(row, node_.apply(ops::kExpandDims, {element}, {{"axes", Ints{0}}}));
    const bool open = std::ranges::any_of(type.tensor()->dims.begin() + 1, type.tensor()->dims.end(),
                                          [](Dim dim) { return dim.erased(); });
    const auto longer = [&]() -> Expected<Atom> {
      TENON_TRY_ASSIGN(named, node_.import().open_sizes(so_far));
      return node_.apply(ops::kConcat, backward ? Atoms{*row, *named} : Atoms{*named, *row}, {{"axis", int64_t{0}}});
    };
    if (!open) return longer();
    TENON_TRY_ASSIGN(first, node_.apply(ops::kEqual, {i, integer(0)}));
    If branch{*first, {}};
    builder_.open();
    TENON_TRY_ASSIGN(one, finish(node_, {builder_.close({}), {*row}}, {type}));
    builder_.open();
    TENON_TRY_ASSIGN(more, longer());
    TENON_TRY_ASSIGN(several, finish(node_, {builder_.close({}), {*more}}, {type}));
    branch.arms.push_back(std::move(*one));
    branch.arms.push_back(std::move(*several));
    return builder_.bind(std::move(branch), Symbol{});
  }

  Expected<Atoms> close(Atom condition, const Atoms& initial) {
    std::vector<Type> params{scalar(DType::kI64), scalar(DType::kBool)}, results = carried_;
    results.insert(results.end(), collected_.begin(), collected_.end());
    params.insert(params.end(), results.begin(), results.end());
    const Type result = results.size() == 1 ? results[0] : node_.context().tuple(results);
    const VarId self = builder_.declare(node_.context().function(params, result), "loop");
    Lambda lambda{{}, result, {}};
    const Atoms given = declare(params);
    for (const Atom& param : given) lambda.params.push_back(std::get<VarId>(param));
    const Atoms state(given.begin() + 2, given.end());
    builder_.open();
    TENON_TRY_ASSIGN(runs, continues(given[0], given[1]));
    If branch{*runs, {}};
    TENON_TRY_ASSIGN(step, this->step(self, given[0], given[1], state));
    branch.arms.push_back(std::move(*step));
    builder_.open();
    TENON_TRY_ASSIGN(last_state, finish(node_, {builder_.close({}), state}, results));
    branch.arms.push_back(std::move(*last_state));
    TENON_TRY_ASSIGN(value, builder_.bind(std::move(branch), Symbol{}));
    lambda.body.push_back(builder_.close(*value));
    TENON_TRY(builder_.bind_to(self, std::move(lambda)));
    Atoms args{integer(0), condition};
    TENON_TRY(append_carried(args, initial));
    for (Type type : collected_) {
      TENON_TRY_ASSIGN(none, nothing(type));
      args.push_back(*none);
    }
    TENON_TRY_ASSIGN(last, builder_.bind(Call{self, std::move(args)}, Symbol{}));
    return fields_of(node_, *last, results.size());
  }

  // The carried values as arguments; sequences as lists and optional values as such where they are carried so.
  Status append_carried(Atoms& args, std::span<const Atom> values) {
    for (size_t k = 0; k < carried_.size(); ++k) {
      TENON_TRY_ASSIGN(value,
                       carried_[k].tensor() ? Expected<Atom>(values[k]) : as_type(node_, values[k], carried_[k]));
      args.push_back(*value);
    }
    return {};
  }

  Expected<Atom> continues(Atom i, Atom condition) {
    if (!count_) return condition;
    TENON_TRY_ASSIGN(more, node_.apply(ops::kLess, {i, *count_}));
    return node_.apply(ops::kLogicalAnd, {condition, *more});
  }

  // One iteration and the call of the next.
  Expected<Block> step(VarId self, Atom i, Atom condition, const Atoms& state) {
    const size_t count = carried_.size();
    TENON_TRY_ASSIGN(body,
                     this->body(i, condition, Atoms(state.begin(), state.begin() + static_cast<ptrdiff_t>(count))));
    TENON_TRY_ASSIGN(next, node_.apply(ops::kAdd, {i, integer(1)}));
    Atoms args{*next, body->results[0]};
    TENON_TRY(append_carried(args, std::span(body->results).subspan(1, count)));
    for (size_t k = 0; k < collected_.size(); ++k) {
      TENON_TRY_ASSIGN(more, collect(i, state[count + k], body->results[1 + count + k], collected_[k], backward_[k]));
      args.push_back(*more);
    }
    TENON_TRY_ASSIGN(result, builder_.bind(Call{self, std::move(args)}, Symbol{}));
    return builder_.close(*result);
  }

  NodeImport& node_;
  Builder& builder_;
  const Graph& body_;
  std::optional<Atom> count_;
  bool condition_;
  Inputs inputs_;
  std::vector<bool> backward_;
  bool lists_ = false;
  std::vector<Type> carried_, elements_, collected_;
};

Status convert_loop(NodeImport& node) {
  TENON_TRY_ASSIGN(body, node.graph("body"));
  std::optional<Atom> count;
  if (node.has_input(0)) {
    TENON_TRY_ASSIGN(given, node.input(0));
    TENON_TRY_ASSIGN(scalar, scalar_of(node, *given));
    count = *scalar;
  }
  Atom condition = node.builder().constant(runtime::Tensor::of<bool>({}, std::array{true}));
  if (node.has_input(1)) {
    TENON_TRY_ASSIGN(given, node.input(1));
    TENON_TRY_ASSIGN(scalar, scalar_of(node, *given));
    condition = *scalar;
  }
  Atoms initial;
  for (size_t i = 2; i < node.inputs(); ++i) {
    TENON_TRY_ASSIGN(value, node.input(i));
    initial.push_back(*value);
  }
  if ((*body)->outputs.size() < 1 + initial.size()) {
    return node.fail(
        fmt::format("{} values are carried, and the body has {} outputs", initial.size(), (*body)->outputs.size()));
  }
  Iteration loop(node, **body, count, true, [](Atom i, Atom go, const Atoms& carried) -> Expected<Atoms> {
    Atoms inputs{i, go};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    return inputs;
  });
  TENON_TRY_ASSIGN(
      found, loop.run(condition, initial, std::vector<bool>((*body)->outputs.size() - 1 - initial.size(), false)));
  return results(node, *found);
}

// An axis that counts from the end where it is negative.
Expected<int64_t> normal_axis(NodeImport& node, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return node.fail(fmt::format("there is no axis {}", axis));
  return axis < 0 ? axis + rank : axis;
}

// The attribute, a list with one number for each of `count` values, or zeros.
Expected<Ints> per_value(NodeImport& node, const std::string& attr, size_t count) {
  TENON_TRY_ASSIGN(given, node.list(attr, Ints(count, 0)));
  if (given->size() == count) return *given;
  return node.fail(fmt::format("{} requires {} values, found {}", attr, count, given->size()));
}

// x with the axis `from` as its axis `to`.
Expected<Atom> move_axis(NodeImport& node, Atom x, int64_t from, int64_t to) {
  if (from == to) return x;
  Ints axes;
  for (int64_t i = 0; i < node.builder().tensor_type(x)->rank(); ++i) {
    if (i != from) axes.push_back(i);
  }
  axes.insert(axes.begin() + to, from);
  return node.apply(ops::kTranspose, {x}, {{"axes", axes}});
}

// A Scan over one sequence: the body over elements of the scanned inputs along their axes.
struct ScanOfSequence {
  const Graph* body = nullptr;
  Atoms initial, scanned;
  Ints input_axes, input_directions, output_axes, output_directions;  // of the scanned inputs, of the collected outputs
};

// The body, and how many inputs are states and how many outputs are collected, where `given` inputs are both states and
// scanned inputs.
struct ScanCounts {
  const Graph* body = nullptr;
  size_t states = 0, scanned = 0, collected = 0;
};
Expected<ScanCounts> scan_counts(NodeImport& node, size_t given) {
  TENON_TRY_ASSIGN(body, node.graph("body"));
  TENON_TRY_ASSIGN(count, node.integer("num_scan_inputs"));
  if (*count < 1 || *count > static_cast<int64_t>(given))
    return node.fail(fmt::format("num_scan_inputs is {}, of {} inputs", *count, given));
  ScanCounts counts{
      .body = *body, .states = given - static_cast<size_t>(*count), .scanned = static_cast<size_t>(*count)};
  if (counts.body->outputs.size() < counts.states) return node.fail("its graph has fewer outputs than states");
  counts.collected = counts.body->outputs.size() - counts.states;
  return counts;
}

// The size of the first scanned input along its axis; all axes become normal ones.
Expected<Atom> scan_length(NodeImport& node, ScanOfSequence& scan) {
  for (size_t k = 0; k < scan.scanned.size(); ++k) {
    const TensorType* type = node.builder().tensor_type(scan.scanned[k]);
    if (!type) return node.fail(fmt::format("the scanned input {} is not a tensor", k));
    TENON_TRY_ASSIGN(axis, normal_axis(node, scan.input_axes[k], type->rank()));
    scan.input_axes[k] = *axis;
  }
  const int64_t axis = scan.input_axes[0];
  const Dim size = node.builder().tensor_type(scan.scanned[0])->dims[static_cast<size_t>(axis)];
  if (const auto known = size.constant()) return node.builder().constant<int64_t>({}, {*known});
  TENON_TRY_ASSIGN(sizes, node.apply(ops::kShapeOf, {scan.scanned[0]}));
  return node.apply(ops::kGather, {*sizes, node.builder().constant<int64_t>({}, {axis})});
}

// The final states, then the collected outputs.
Expected<Atoms> scan_sequence(NodeImport& node, ScanOfSequence scan) {
  TENON_TRY_ASSIGN(length, scan_length(node, scan));
  const Atom always = node.builder().constant(runtime::Tensor::of<bool>({}, std::array{true}));
  Iteration iteration(node, *scan.body, *length, false, [&](Atom i, Atom, const Atoms& carried) -> Expected<Atoms> {
    Atoms values = carried;
    for (size_t k = 0; k < scan.scanned.size(); ++k) {
      Atom at = i;
      if (scan.input_directions[k] != 0) {
        TENON_TRY_ASSIGN(last, node.apply(ops::kSubtract, {*length, node.builder().constant<int64_t>({}, {1})}));
        TENON_TRY_ASSIGN(mirrored, node.apply(ops::kSubtract, {*last, i}));
        at = *mirrored;
      }
      TENON_TRY_ASSIGN(slice, node.apply(ops::kGather, {scan.scanned[k], at}, {{"axis", scan.input_axes[k]}}));
      values.push_back(*slice);
    }
    return values;
  });
  std::vector<bool> backward;
  for (int64_t direction : scan.output_directions) backward.push_back(direction != 0);
  TENON_TRY_ASSIGN(found, iteration.run(always, scan.initial, backward));
  for (size_t k = 0; k < backward.size(); ++k) {
    Atom& value = (*found)[scan.initial.size() + k];
    TENON_TRY_ASSIGN(axis, normal_axis(node, scan.output_axes[k], node.builder().tensor_type(value)->rank()));
    TENON_TRY_ASSIGN(moved, move_axis(node, value, 0, *axis));
    value = *moved;
  }
  return *found;
}

// The size of the batch, the first axis of all inputs of a Scan of opset 8.
Expected<int64_t> scan_batch(NodeImport& node, const Atoms& inputs) {
  std::optional<int64_t> batch;
  for (const Atom& input : inputs) {
    const TensorType* type = node.builder().tensor_type(input);
    if (!type || type->rank() < 1) return node.fail("the states and scanned inputs of opset 8 require a batch axis");
    const auto size = type->dims[0].constant();
    if (!size || *size < 1 || (batch && *batch != *size))
      return node.fail("the states and scanned inputs of opset 8 require the same constant batch",
                       "give the batch a size, or convert the model to opset 9 or later");
    batch = size;
  }
  return *batch;
}

// Opset 8 has a batch: each of its sequences is scanned, and the results are stacked.
Status convert_batched_scan(NodeImport& node) {
  if (node.has_input(0)) return node.fail("Scan with sequence_lens is not supported", "convert the model to opset 9");
  TENON_TRY_ASSIGN(counts, scan_counts(node, node.inputs() - 1));
  TENON_TRY_ASSIGN(directions, per_value(node, "directions", counts->scanned));
  Atoms inputs;
  for (size_t i = 1; i < node.inputs(); ++i) {
    TENON_TRY_ASSIGN(input, node.input(i));
    inputs.push_back(*input);
  }
  TENON_TRY_ASSIGN(batch, scan_batch(node, inputs));
  std::vector<Atoms> rows(counts->states + counts->collected);  // of each result
  for (int64_t sequence = 0; sequence < *batch; ++sequence) {
    Atoms own;
    for (const Atom& input : inputs) {
      TENON_TRY_ASSIGN(row, node.apply(ops::kGather, {input, node.builder().constant<int64_t>({}, {sequence})}));
      own.push_back(*row);
    }
    const auto first_scanned = own.begin() + static_cast<ptrdiff_t>(counts->states);
    TENON_TRY_ASSIGN(found, scan_sequence(node, {.body = counts->body,
                                                 .initial = Atoms(own.begin(), first_scanned),
                                                 .scanned = Atoms(first_scanned, own.end()),
                                                 .input_axes = Ints(counts->scanned, 0),
                                                 .input_directions = *directions,
                                                 .output_axes = Ints(counts->collected, 0),
                                                 .output_directions = Ints(counts->collected, 0)}));
    for (size_t k = 0; k < rows.size(); ++k) {
      TENON_TRY_ASSIGN(row, node.apply(ops::kExpandDims, {(*found)[k]}, {{"axes", Ints{0}}}));
      rows[k].push_back(*row);
    }
  }
  for (size_t k = 0; k < rows.size(); ++k) {
    TENON_TRY_ASSIGN(all, node.apply(ops::kConcat, rows[k], {{"axis", int64_t{0}}}));
    TENON_TRY(node.result(k, *all));
  }
  return {};
}

Status convert_scan(NodeImport& node) {
  if (node.opset() < 9) return convert_batched_scan(node);
  TENON_TRY_ASSIGN(counts, scan_counts(node, node.inputs()));
  TENON_TRY_ASSIGN(inputs, node.all_inputs());
  const auto first_scanned = inputs->begin() + static_cast<ptrdiff_t>(counts->states);
  TENON_TRY_ASSIGN(input_axes, per_value(node, "scan_input_axes", counts->scanned));
  TENON_TRY_ASSIGN(input_directions, per_value(node, "scan_input_directions", counts->scanned));
  TENON_TRY_ASSIGN(output_axes, per_value(node, "scan_output_axes", counts->collected));
  TENON_TRY_ASSIGN(output_directions, per_value(node, "scan_output_directions", counts->collected));
  TENON_TRY_ASSIGN(found, scan_sequence(node, {.body = counts->body,
                                               .initial = Atoms(inputs->begin(), first_scanned),
                                               .scanned = Atoms(first_scanned, inputs->end()),
                                               .input_axes = *input_axes,
                                               .input_directions = *input_directions,
                                               .output_axes = *output_axes,
                                               .output_directions = *output_directions}));
  return results(node, *found);
}

}  // namespace

Expected<Atoms> list_map(NodeImport& node, const Graph& body, Atom length, const ListInputs& inputs) {
  const Atom always = node.builder().constant(runtime::Tensor::of<bool>({}, std::array{true}));
  Iteration map(node, body, length, false, [&](Atom i, Atom, const Atoms&) { return inputs(i); });
  map.collect_lists();
  return map.run(always, {}, std::vector<bool>(body.outputs.size(), false));
}

std::span<const Converter> control_converters() {
  static constexpr Converter kTable[] = {
      {"If", 1, 1, convert_if},
      {"Loop", 2, 4096, convert_loop},
      {"Scan", 1, 4096, convert_scan},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
