#include "compiler/partition/size_dispatch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/operator.h"
#include "compiler/ir/rewrite.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// Of expressions, in the order of the parameters.
using Names = std::vector<std::pair<Dim, Symbol>>;

void rename(Context& context, Dim& dim, const Names& names) {
  const auto found = std::ranges::find(names, dim, &Names::value_type::first);
  if (found != names.end()) dim = context.dim(found->second);
}

bool is_variable(const Context& context, Dim dim) {
  std::vector<Symbol> variables;
  for_each_variable(dim, [&](Symbol name) { variables.push_back(name); });
  return variables.size() == 1 && context.str(dim) == context.name(variables[0]);
}

// The type with variables instead of the expressions that are whole sizes.
Type renamed(Context& context, Type type, const Names& names) {
  if (const TensorType* tensor = type.tensor()) {
    Dims dims = tensor->dims;
    for (Dim& dim : dims) rename(context, dim, names);
    return context.tensor(std::move(dims), tensor->dtype);
  }
  const TupleType* tuple = type.tuple();
  if (!tuple) return type;
  std::vector<Type> fields;
  for (const Type field : tuple->fields) fields.push_back(renamed(context, field, names));
  return context.tuple(std::move(fields));
}

void for_each_dim_of(Function& function, FunctionRef<void(Dim)> visit) {
  for_each_type(function, [&](Type& type) {
    for (const Type part : type.parts()) {
      if (part.tensor()) std::ranges::for_each(part.tensor()->dims, visit);
    }
  });
  for_each_binding(function.body,
                   [&](Binding& binding) { for_each_dim(binding.value, [&](Dim& dim) { visit(dim); }); });
}

Expected<Atom> cast_to(Builder& builder, Atom atom, Type type) {
  TENON_TRY_ASSIGN(found, builder.type_of(atom));
  if (*found == type) return atom;
  return builder.bind(Cast{atom, type, {}}, Symbol{});
}

}  // namespace

SizeDispatch::SizeDispatch(Context& context, Module& module, Function& caller, Outlined part)
    : context_(context), module_(module), caller_(caller), part_(std::move(part)) {
  name_expressions();
}

void SizeDispatch::name_expressions() {
  Function& function = part_.function;
  for (const Symbol name : function.dims) sizes_.push_back({name, context_.dim(name)});
  Names names;
  for (const VarId param : function.params) {
    const TensorType* type = function.type(param).tensor();
    for (const Dim dim : type ? type->dims : Dims()) {
      const bool is_named = std::ranges::find(names, dim, &Names::value_type::first) != names.end();
      if (dim.constant() || is_named || is_variable(context_, dim)) continue;
      std::string name = "R";
      while (std::ranges::find(function.dims, context_.symbol(name)) != function.dims.end()) name += "R";
      names.emplace_back(dim, context_.symbol(name));
      function.dims.push_back(context_.symbol(name));
    }
  }
  if (names.empty()) return;
  Function named = function;
  for_each_type(named, [&](Type& type) { type = renamed(context_, type, names); });
  for_each_binding(named.body, [&](Binding& binding) {
    for_each_dim(binding.value, [&](Dim& dim) { rename(context_, dim, names); });
  });
  std::set<Symbol> used;
  for_each_dim_of(named, [&](Dim dim) { for_each_variable(dim, [&](Symbol name) { used.insert(name); }); });
  std::erase_if(named.dims, [&](Symbol name) { return !used.contains(name); });
  std::erase_if(named.bounds, [&](const auto& bound) { return !used.contains(bound.first); });
  // A variable that is still used has no size of an operand to be taken from: the expressions stay.
  const auto is_new = [&](const auto& name) { return std::ranges::find(named.dims, name.second) != named.dims.end(); };
  const bool clean = std::ranges::all_of(names, is_new) && std::ranges::all_of(names, [&](const auto& name) {
                       bool gone = true;
                       for_each_variable(name.first, [&](Symbol variable) { gone &= !used.contains(variable); });
                       return gone;
                     });
  if (!clean) {
    std::erase_if(function.dims, [&](Symbol dim) {
      return std::ranges::any_of(names, [&](const auto& name) { return name.second == dim; });
    });
    return;
  }
  function = std::move(named);
  std::erase_if(sizes_, [&](const Size& size) { return !used.contains(size.name); });
  for (const auto& [dim, name] : names) sizes_.push_back({name, dim});
}

// Whether the only unknown size is that of the outermost axis of every tensor.
bool SizeDispatch::are_rows() const {
  if (sizes_.size() != 1) return false;
  const Dim rows = context_.dim(sizes_[0].name);
  return std::ranges::all_of(part_.function.vars, [&](const VarInfo& info) {
    if (info.type.tuple()) return true;  // of the results, which are variables too
    const TensorType* type = info.type.tensor();
    return type && !type->dims.empty() && type->dims[0] == rows &&
           std::ranges::all_of(type->dims.begin() + 1, type->dims.end(),
                               [](Dim dim) { return dim.constant().has_value(); });
  });
}

bool SizeDispatch::add_copies(std::string_view target, std::span<const DimValues> buckets, bool rows) {
  name_ = fresh_global(context_, module_, fmt::format("{}_sizes", target));
  module_.globals.emplace(name_, part_.function);
  for (const DimValues& bucket : buckets) add_copy(bucket);
  if (copies_.empty()) module_.globals.erase(name_);
  pads_ = rows && are_rows();
  if (pads_) std::ranges::sort(copies_, {}, &Copy::sizes);
  return !copies_.empty();
}

void SizeDispatch::remove_copies() {
  module_.globals.erase(name_);
  for (const Copy& copy : copies_) module_.globals.erase(copy.name);
}

bool SizeDispatch::add_copy(const DimValues& bucket) {
  Copy copy;
  std::map<Symbol, Dim> values;
  for (const Size& size : sizes_) {
    const auto value = evaluate(size.value, bucket);
    if (!value || *value < 0) return false;
    copy.sizes.push_back(*value);
    values.emplace(size.name, context_.dim(*value));
  }
  if (std::ranges::find(copies_, copy.sizes, &Copy::sizes) != copies_.end()) return false;
  Function bound = part_.function;
  bound.dims.clear();
  bound.bounds.clear();
  substitute(context_, bound, values);
  auto typed = rewrite(context_, module_, bound, [](Builder&, Binding&) { return std::nullopt; });
  if (!typed) return false;
  copy.name = fresh_global(context_, module_, fmt::format("{}_{}", context_.name(name_), fmt::join(copy.sizes, "x")));
  module_.globals.emplace(copy.name, *std::move(typed));
  copies_.push_back(std::move(copy));
  return true;
}

std::vector<std::string> SizeDispatch::sizes() const {
  std::vector<std::string> texts;
  for (const Copy& copy : copies_) {
    std::string& text = texts.emplace_back();
    for (size_t i = 0; i < sizes_.size(); ++i)
      text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", context_.str(sizes_[i].value), copy.sizes[i]);
  }
  return texts;
}

Expected<std::vector<Binding>> SizeDispatch::bindings(bool any) {
  std::optional<Symbol> of_rows;
  if (any) {
    auto made = make_function_of_rows();
    if (!made) {
      remove_copies();
      return std::unexpected(std::move(made.error()));
    }
    of_rows = *made;
  }
  Builder builder(context_, module_, caller_);
  builder.at(caller_.info(part_.results.back()).span);
  builder.open();
  const auto made = [&]() -> Expected<std::vector<Binding>> {
    auto value = of_rows ? call_function(builder, *of_rows, in_caller()) : choose(builder, 0);
    TENON_TRY(value);
    std::map<VarId, VarId> renamed;
    for (size_t i = 0; i < part_.results.size(); ++i) {
      TENON_TRY_ASSIGN(field, packed_result(builder, *value, i, part_.results.size()));
      renamed.emplace(std::get<VarId>(*field), part_.results[i]);
    }
    // The values keep the variables that the caller uses.
    std::vector<Binding> bindings = builder.close(*value).bindings;
    for (Binding& binding : bindings) {
      if (const auto kept = renamed.find(binding.var); kept != renamed.end()) binding.var = kept->second;
    }
    return bindings;
  };
  auto bindings = made();
  if (bindings) return bindings;
  builder.abandon();
  if (of_rows) module_.globals.erase(*of_rows);
  remove_copies();
  return bindings;
}

SizeDispatch::Operands SizeDispatch::in_caller() const {
  Operands operands{{part_.args.begin(), part_.args.end()}, {}, {}};
  for (const VarId arg : part_.args) operands.types.push_back(caller_.type(arg));
  for (const VarId result : part_.results) operands.results.push_back(caller_.type(result));
  return operands;
}

Expected<Atom> SizeDispatch::choose(Builder& builder, size_t copy) {
  const Operands operands = in_caller();
  if (copy == copies_.size()) return call_function(builder, name_, operands);
  TENON_TRY_ASSIGN(fits, condition(builder, copies_[copy]));
  If branch{*fits, {}};
  builder.open();
  TENON_TRY_ASSIGN(bound, call(builder, copies_[copy], operands));
  branch.arms.push_back(builder.close(*bound));
  builder.open();
  TENON_TRY_ASSIGN(others, choose(builder, copy + 1));
  branch.arms.push_back(builder.close(*others));
  return builder.bind(std::move(branch), Symbol{});
}

Expected<Atom> SizeDispatch::condition(Builder& builder, const Copy& copy) {
  std::optional<Atom> all;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    TENON_TRY_ASSIGN(size, builder.dim_value(sizes_[i].value));
    const Atom limit = builder.constant<int64_t>({}, {copy.sizes[i]});
    TENON_TRY_ASSIGN(fits, builder.apply(pads_ ? ops::kLessEqual : ops::kEqual, {*size, limit}));
    if (!all) {
      all = *fits;
    } else {
      TENON_TRY_ASSIGN(both, builder.apply(ops::kLogicalAnd, {*all, *fits}));
      all = *both;
    }
  }
  return *all;
}

// The operands at the sizes of the copy, its call, and the results at the operands' sizes.
Expected<Atom> SizeDispatch::call(Builder& builder, const Copy& copy, const Operands& operands) {
  Atoms args;
  for (size_t i = 0; i < operands.args.size(); ++i) {
    const Function& callee = *module_.function(copy.name);
    const Type type = callee.type(callee.params[i]);
    TENON_TRY_ASSIGN(
        arg, pads_ ? padded(builder, operands.args[i], operands.types[i], copy) : Expected<Atom>(operands.args[i]));
    TENON_TRY_ASSIGN(sized, cast_to(builder, *arg, type));
    args.push_back(*sized);
  }
  TENON_TRY_ASSIGN(value, builder.call(copy.name, std::move(args)));
  Atoms results;
  for (size_t i = 0; i < operands.results.size(); ++i) {
    const Type type = operands.results[i];
    TENON_TRY_ASSIGN(field, packed_result(builder, *value, i, operands.results.size()));
    TENON_TRY_ASSIGN(
        cut, pads_ ? rows(builder, *field, type, context_.dim(0), type.tensor()->dims[0]) : Expected<Atom>(*field));
    TENON_TRY_ASSIGN(sized, cast_to(builder, *cut, type));
    results.push_back(*sized);
  }
  return packed_results(builder, std::move(results));
}

Expected<Atom> SizeDispatch::call_function(Builder& builder, Symbol function, const Operands& operands) {
  TENON_TRY_ASSIGN(value, builder.call(function, operands.args));
  Atoms results;
  for (size_t i = 0; i < operands.results.size(); ++i) {
    TENON_TRY_ASSIGN(field, packed_result(builder, *value, i, operands.results.size()));
    TENON_TRY_ASSIGN(sized, cast_to(builder, *field, operands.results[i]));
    results.push_back(*sized);
  }
  return packed_results(builder, std::move(results));
}

Expected<Symbol> SizeDispatch::make_function_of_rows() {
  const Symbol self = fresh_global(context_, module_, fmt::format("{}_rows", context_.name(name_)));
  const Function& part = part_.function;
  module_.globals.emplace(self, part);  // for the type of its calls of itself
  Function made;
  made.dims = part.dims;
  made.bounds = part.bounds;
  Builder builder(context_, module_, made);
  builder.at(caller_.info(part_.results.back()).span);
  Operands operands;
  for (const VarId param : part.params) {
    operands.types.push_back(part.type(param));
    operands.args.push_back(builder.param(part.type(param), context_.name(part.info(param).name)));
  }
  if (part.result.tuple()) operands.results = part.result.tuple()->fields;
  else operands.results = {part.result};
  auto result = split(builder, self, operands, copies_.size());
  if (!result) {
    builder.abandon();
    module_.globals.erase(self);
    return std::unexpected(std::move(result.error()));
  }
  builder.finish(*result);
  *module_.function(self) = std::move(made);
  return self;
}

// The first `num_copies` copies, which are ascending multiples of the first one, compute all rows.
Expected<Atom> SizeDispatch::split(Builder& builder, Symbol self, const Operands& operands, size_t num_copies) {
  if (num_copies == 0) return call_function(builder, name_, operands);  // of no rows
  const Copy& copy = copies_[num_copies - 1];
  const auto is_less = [&](int64_t size) -> Expected<Atom> {
    TENON_TRY_ASSIGN(count, builder.dim_value(context_.dim(sizes_[0].name)));
    return builder.apply(ops::kLess, {builder.constant<int64_t>({}, {size}), *count});
  };
  TENON_TRY_ASSIGN(fills, is_less(copy.sizes[0] - copies_[0].sizes[0]));
  If of_copy{*fills, {}};
  builder.open();
  TENON_TRY_ASSIGN(exceeds, is_less(copy.sizes[0]));
  If several{*exceeds, {}};
  builder.open();
  TENON_TRY_ASSIGN(parts, halves(builder, self, operands, copy));
  several.arms.push_back(builder.close(*parts));
  builder.open();
  TENON_TRY_ASSIGN(whole, call(builder, copy, operands));
  several.arms.push_back(builder.close(*whole));
  TENON_TRY_ASSIGN(made, builder.bind(std::move(several), Symbol{}));
  of_copy.arms.push_back(builder.close(*made));
  builder.open();
  TENON_TRY_ASSIGN(others, split(builder, self, operands, num_copies - 1));
  of_copy.arms.push_back(builder.close(*others));
  return builder.bind(std::move(of_copy), Symbol{});
}

// Both halves by the function itself, so that each row is copied as often as the number of rows can be halved, and
// calls are as deep. The first one is rounded up to a multiple of the copy's rows, and so needs no padding.
Expected<Atom> SizeDispatch::halves(Builder& builder, Symbol self, const Operands& operands, const Copy& copy) {
  const Dim size = context_.dim(copy.sizes[0]), count = context_.dim(sizes_[0].name);
  const Dim half = context_.multiply(size, context_.ceil_divide(count, 2 * copy.sizes[0]));
  Atoms heads, tails;
  for (size_t i = 0; i < operands.args.size(); ++i) {
    TENON_TRY_ASSIGN(head, rows(builder, operands.args[i], operands.types[i], context_.dim(0), half));
    heads.push_back(*head);
    TENON_TRY_ASSIGN(tail, rows(builder, operands.args[i], operands.types[i], half, count));
    tails.push_back(*tail);
  }
  TENON_TRY_ASSIGN(first, builder.call(self, std::move(heads)));
  TENON_TRY_ASSIGN(others, builder.call(self, std::move(tails)));
  Atoms results;
  for (size_t i = 0; i < operands.results.size(); ++i) {
    TENON_TRY_ASSIGN(head, packed_result(builder, *first, i, operands.results.size()));
    TENON_TRY_ASSIGN(tail, packed_result(builder, *others, i, operands.results.size()));
    TENON_TRY_ASSIGN(joined, builder.apply(ops::kConcat, {*head, *tail}, {{"axis", int64_t{0}}}));
    TENON_TRY_ASSIGN(sized, cast_to(builder, *joined, operands.results[i]));
    results.push_back(*sized);
  }
  return packed_results(builder, std::move(results));
}

Expected<Atom> SizeDispatch::padded(Builder& builder, Atom arg, Type type, const Copy& copy) {
  const Dims dims = type.tensor()->dims;
  Dims after(dims.size(), context_.dim(0));
  after[0] = context_.maximum({context_.subtract(context_.dim(copy.sizes[0]), dims[0]), context_.dim(0)});
  return builder.apply(context_.op(ops::kPad), {arg}, {{"before", std::vector<int64_t>(dims.size())}}, {},
                       {{"after", std::move(after)}});
}

// The rows begin .. end - 1 of a tensor, of which `type` has the sizes of the other axes.
Expected<Atom> SizeDispatch::rows(Builder& builder, Atom tensor, Type type, Dim begin, Dim end) {
  const auto rank = static_cast<size_t>(type.tensor()->rank());
  Attrs attrs{{"step", std::vector<int64_t>(rank, 1)}};
  ComputedAttrs computed;
  if (begin.constant()) {
    std::vector<int64_t> begins(rank, 0);
    begins[0] = *begin.constant();
    attrs.emplace("begin", std::move(begins));
  } else {
    Dims begins(rank, context_.dim(0));
    begins[0] = begin;
    computed.emplace("begin", std::move(begins));
  }
  Dims ends = type.tensor()->dims;
  ends[0] = end;
  computed.emplace("end", std::move(ends));
  return builder.apply(context_.op(ops::kSlice), {tensor}, std::move(attrs), {}, std::move(computed));
}

// Result `index` of `count` that a function returns.
}  // namespace tenon::compiler
