// Sequences of unknown length, and optional values of unknown presence: types of the module, whose operations are
// functions of the module, parsed from text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/frontend/onnx/sequence.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text/merge.h"

namespace tenon::compiler::onnx {
namespace {

// A list grows at its end, as a loop that collects elements needs it. An index is looked up in the numbers below the
// length, by an operator that refuses all others; so the functions that walk a list never come to its end.
constexpr std::string_view kLists = R"(
type Sequence[A] { Empty, Append(Sequence[A], A) }

def @sequence_count[A](%s: Sequence[A], %n: Tensor[(), i64]) -> Tensor[(), i64] {
  match %s { Empty => %n, Append(%front, _) => @sequence_count(%front, %n + 1i64) }
}
def @sequence_length[A](%s: Sequence[A]) -> Tensor[(), i64] { @sequence_count(%s, 0i64) }

def @sequence_index(%position: Tensor[(), i64], %length: Tensor[(), i64], %end: Tensor[(), i64]) -> Tensor[(), i64] {
  let %limit = %length + %end;
  let %from_begin = if (%position < 0i64) { %position + %length } else { %position };
  gather(arange(count=%limit), if (%from_begin < 0i64) { %limit } else { %from_begin }, axis=0)
}

def @sequence_nth_last[A](%s: Sequence[A], %k: Tensor[(), i64]) -> A {
  match %s {
    Append(%front, %x) => if (%k == 0i64) { %x } else { @sequence_nth_last(%front, %k - 1i64) },
    Empty => @sequence_nth_last(%s, %k)
  }
}
def @sequence_at[A](%s: Sequence[A], %position: Tensor[(), i64]) -> A {
  let %length = @sequence_length(%s);
  @sequence_nth_last(%s, %length - 1i64 - @sequence_index(%position, %length, 0i64))
}

def @sequence_without[A](%s: Sequence[A], %k: Tensor[(), i64]) -> Sequence[A] {
  match %s {
    Append(%front, %x) => if (%k == 0i64) { %front } else { Append(@sequence_without(%front, %k - 1i64), %x) },
    Empty => %s
  }
}
def @sequence_erase[A](%s: Sequence[A], %position: Tensor[(), i64]) -> Sequence[A] {
  let %length = @sequence_length(%s);
  @sequence_without(%s, %length - 1i64 - @sequence_index(%position, %length, 0i64))
}

def @sequence_with[A](%s: Sequence[A], %element: A, %k: Tensor[(), i64]) -> Sequence[A] {
  if (%k == 0i64) { Append(%s, %element) } else {
    match %s {
      Append(%front, %x) => Append(@sequence_with(%front, %element, %k - 1i64), %x),
      Empty => Append(%s, %element)
    }
  }
}
def @sequence_insert[A](%s: Sequence[A], %element: A, %position: Tensor[(), i64]) -> Sequence[A] {
  let %length = @sequence_length(%s);
  @sequence_with(%s, %element, %length - @sequence_index(%position, %length, 1i64))
}
)";

// Reading an absent value reads an index of an empty vector, which gather refuses: @optional_absent, whose body only
// completes the type A, is never entered.
constexpr std::string_view kOptionals = R"(
type Optional[A] { None, Some(A) }

def @optional_has_element[A](%o: Optional[A]) -> Tensor[(), bool] { match %o { Some(_) => true, None => false } }
def @optional_absent[A](%o: Optional[A], %missing: Tensor[(), i64]) -> A {
  match %o { Some(%x) => %x, None => @optional_absent(%o, %missing) }
}
def @optional_element[A](%o: Optional[A]) -> A {
  match %o { Some(%x) => %x, None => @optional_absent(%o, gather(arange(count=0i64), 0i64, axis=0)) }
}
)";

// Adds the definitions of a text, one of which is `function`, unless the module has them: a body is imported several
// times, and the text is parsed once.
Status define_text(NodeImport& node, std::string_view function, const std::string& text) {
  Context& context = node.context();
  if (node.builder().module().globals.contains(context.symbol(function))) return {};
  TENON_TRY_ASSIGN(parsed,
                   parse(context, "#[version = \"1\"]\n" + text, {}, "the operators on sequences and optional values"));
  const std::string conflict = merge(context, node.builder().module(), *parsed);
  if (conflict.empty()) return {};
  return node.fail(fmt::format("{} has another definition in the module", conflict));
}

Status define_lists(NodeImport& node) { return define_text(node, "sequence_length", std::string(kLists)); }

Status define_optionals(NodeImport& node) { return define_text(node, "optional_element", std::string(kOptionals)); }

Expected<Atom> call_function(NodeImport& node, std::string_view function, Atoms args) {
  TENON_TRY_ASSIGN(result, node.builder().call(node.context().symbol(function), std::move(args)));
  return node.import().open_sizes(*result);
}

Expected<Atom> list_call(NodeImport& node, std::string_view function, Atoms args) {
  TENON_TRY(define_lists(node));
  return call_function(node, function, std::move(args));
}

// The argument of the type `name`[T].
std::optional<Type> argument_of(const Context& context, Type type, std::string_view name) {
  const auto* adt = std::get_if<AdtType>(&type.node->alternatives());
  return adt && context.name(adt->name) == name ? std::optional(adt->args[0]) : std::nullopt;
}

// The tensor type with all sizes erased.
std::optional<Type> any_sizes(Context& context, Type type) {
  const TensorType* tensor = type.tensor();
  if (!tensor) return std::nullopt;
  return context.tensor(Dims(tensor->dims.size(), context.erased()), tensor->dtype);
}

Expected<Atom> without_sizes(NodeImport& node, Atom element, Type wanted) {
  TENON_TRY_ASSIGN(type, node.builder().type_of(element));
  if (*type == wanted) return element;
  return node.builder().bind(Cast{element, wanted, {}}, Symbol{});
}

// "Tensor[(?, ?), f32]"
std::string tensor_text(int64_t rank, DType dtype) {
  std::string dims;
  for (int64_t i = 0; i < rank; ++i) dims += "?, ";
  return fmt::format("Tensor[({}), {}]", dims, runtime::name(dtype));
}

// The type that values of an ONNX type have inside of Optional and Sequence.
Expected<Type> contained_type(NodeImport& node, const ValueType& type) {
  if (type.kind == ValueType::Kind::kTensor) {
    if (!type.dims) return node.fail("the rank of an absent optional value is not known", "export with shapes");
    return node.context().tensor(Dims(type.dims->size(), node.context().erased()), type.dtype);
  }
  TENON_TRY_ASSIGN(element, contained_type(node, type.element[0]));
  return type.kind == ValueType::Kind::kSequence ? list_type(node, *element) : element;
}

}  // namespace

std::optional<Type> list_element(const Context& context, Type type) { return argument_of(context, type, "Sequence"); }

Expected<Type> list_type(NodeImport& node, Type element) {
  TENON_TRY(define_lists(node));
  const auto open = any_sizes(node.context(), element);
  if (!open) return node.fail("a sequence of sequences is not supported where its length is not known");
  return node.context().adt(node.context().symbol("Sequence"), {*open});
}

std::optional<Type> joined_list(NodeImport& node, Type a, Type b) {
  Context& context = node.context();
  std::optional<Type> element;
  for (const Type type : {a, b}) {
    std::vector<Type> elements;
    if (const auto list = list_element(context, type)) elements = {*list};
    else if (type.tuple()) elements = type.tuple()->fields;
    else return std::nullopt;
    for (const Type next : elements) {
      const auto open = any_sizes(context, next);
      if (!open || (element && *open != *element)) return std::nullopt;
      element = open;
    }
  }
  if (!element) return std::nullopt;
  const auto list = list_type(node, *element);
  return list ? std::optional(*list) : std::nullopt;
}

Expected<Atom> as_type(NodeImport& node, Atom value, Type from, Type to, const BindValue& bind) {
  if (from == to) return value;
  Context& context = node.context();
  if (to.tensor()) return bind(Cast{value, to, {}}, to);
  if (const auto element = optional_element(context, to)) {
    TENON_TRY_ASSIGN(open, as_type(node, value, from, *element, bind));
    return bind(Construct{context.symbol("Some"), {*element}, {*open}}, to);
  }
  if (!from.tuple()) return value;
  const Type element = *list_element(context, to);
  TENON_TRY_ASSIGN(list, bind(Construct{context.symbol("Empty"), {element}, {}}, to));
  for (uint32_t i = 0; i < from.tuple()->fields.size(); ++i) {
    const Type type = from.tuple()->fields[i];
    TENON_TRY_ASSIGN(field, bind(Project{value, i}, type));
    TENON_TRY_ASSIGN(open, as_type(node, *field, type, element, bind));
    TENON_TRY_ASSIGN(longer, bind(Construct{context.symbol("Append"), {element}, {*list, *open}}, to));
    list = *longer;
  }
  return *list;
}

Expected<Atom> as_type(NodeImport& node, Atom value, Type to) {
  TENON_TRY_ASSIGN(from, node.builder().type_of(value));
  return as_type(node, value, *from, to,
                 [&](Value bound, Type) { return node.builder().bind(std::move(bound), Symbol{}); });
}

std::optional<Type> optional_element(const Context& context, Type type) {
  return argument_of(context, type, "Optional");
}

std::optional<Type> joined_optional(NodeImport& node, Type a, Type b) {
  Context& context = node.context();
  const auto x = optional_element(context, a), y = optional_element(context, b);
  if (!x && !y) return std::nullopt;
  const Type element = x ? *x : *y, other = x ? y.value_or(b) : a;
  const auto joined = element.tensor() ? any_sizes(context, other) : joined_list(node, element, other);
  return joined == element ? std::optional(x ? a : b) : std::nullopt;
}

Expected<Atom> optional_absent(NodeImport& node, const ValueType& type) {
  TENON_TRY(define_optionals(node));
  TENON_TRY_ASSIGN(element, contained_type(node, type));
  return node.builder().bind(Construct{node.context().symbol("None"), {*element}, {}}, Symbol{});
}

Expected<Atom> optional_has_element(NodeImport& node, Atom optional) {
  return call_function(node, "optional_has_element", {optional});
}

Expected<Atom> optional_get_element(NodeImport& node, Atom optional) {
  return call_function(node, "optional_element", {optional});
}

Expected<Atom> list_empty(NodeImport& node, Type list) {
  return node.builder().bind(Construct{node.context().symbol("Empty"), {*list_element(node.context(), list)}, {}},
                             Symbol{});
}

Expected<Atom> list_append(NodeImport& node, Atom list, Atom element) {
  TENON_TRY_ASSIGN(type, node.builder().type_of(list));
  const Type wanted = *list_element(node.context(), *type);
  TENON_TRY_ASSIGN(open, without_sizes(node, element, wanted));
  return node.builder().bind(Construct{node.context().symbol("Append"), {wanted}, {list, *open}}, Symbol{});
}

Expected<Atom> list_length(NodeImport& node, Atom list) { return list_call(node, "sequence_length", {list}); }

Expected<Atom> list_at(NodeImport& node, Atom list, Atom position) {
  return list_call(node, "sequence_at", {list, position});
}

Expected<Atom> list_erase(NodeImport& node, Atom list, Atom position) {
  return list_call(node, "sequence_erase", {list, position});
}

Expected<Atom> list_insert(NodeImport& node, Atom list, Atom element, Atom position) {
  TENON_TRY_ASSIGN(type, node.builder().type_of(list));
  TENON_TRY_ASSIGN(open, without_sizes(node, element, *list_element(node.context(), *type)));
  return list_call(node, "sequence_insert", {list, *open, position});
}

Expected<Atom> list_concat(NodeImport& node, Atom list, int64_t axis, bool is_new) {
  TENON_TRY_ASSIGN(type, node.builder().type_of(list));
  const TensorType element = *list_element(node.context(), *type)->tensor();
  const int64_t rank = element.rank() + (is_new ? 1 : 0), along = axis < 0 ? axis + rank : axis;
  if (along < 0 || along >= rank) return node.fail(fmt::format("there is no axis {}", axis));
  const std::string_view dtype = runtime::name(element.dtype);
  const std::string name = fmt::format("sequence_concat_{}_{}_{}{}", dtype, rank, along, is_new ? "_new" : "");
  const std::string elements = fmt::format("Sequence[{}]", tensor_text(element.rank(), element.dtype));
  const std::string result = tensor_text(rank, element.dtype);
  const std::string part = is_new ? fmt::format("expand_dims(%x, axes=[{}])", along) : std::string("%x");
  const std::vector<int64_t> none(static_cast<size_t>(rank), 0);
  TENON_TRY(define_text(node, name,
                        fmt::format(R"({lists}
def @{name}_more(%s: {elements}, %so_far: {result}) -> {result} {{
  match %s {{ Empty => %so_far, Append(%front, %x) => @{name}_more(%front, concat({part}, %so_far, axis={axis})) }}
}}
def @{name}(%s: {elements}) -> {result} {{
  match %s {{
    Append(%front, %x) => @{name}_more(%front, {part}),
    Empty => broadcast_to(cast(@sequence_index(0i64, 0i64, 0i64), dtype="{dtype}"), shape=[{none}])
  }}
}}
)",
                                    fmt::arg("lists", kLists), fmt::arg("name", name), fmt::arg("elements", elements),
                                    fmt::arg("result", result), fmt::arg("part", part), fmt::arg("axis", along),
                                    fmt::arg("dtype", dtype), fmt::arg("none", fmt::join(none, ", ")))));
  return list_call(node, name, {list});
}

Expected<Atom> list_split(NodeImport& node, Atom x, Atom sizes, int64_t axis, bool keep) {
  const TensorType type = *node.builder().tensor_type(x);
  const int64_t rank = type.rank();
  const std::string name =
      fmt::format("sequence_split_{}_{}_{}{}", runtime::name(type.dtype), rank, axis, keep ? "" : "_squeezed");
  std::vector<int64_t> mask(static_cast<size_t>(rank), 0), ends(static_cast<size_t>(rank), INT64_MAX),
      steps(static_cast<size_t>(rank), 1);
  mask[static_cast<size_t>(axis)] = 1, ends[static_cast<size_t>(axis)] = 0;
  TENON_TRY(define_text(
      node, name,
      fmt::format(R"({lists}
const ${name}_mask: Tensor[({rank},), i64] = [{mask}];
const ${name}_ends: Tensor[({rank},), i64] = [{ends}];
def @{name}_more(%x: {tensor}, %sizes: Tensor[(?,), i64], %i: Tensor[(), i64], %begin: Tensor[(), i64],
                 %parts: Sequence[{element}]) -> Sequence[{element}] {{
  if (%i < gather(shape_of(%sizes), 0i64, axis=0)) {{
    let %end = %begin + gather(%sizes, %i, axis=0);
    let %part = slice(%x, begin=%begin * ${name}_mask, end=%end * ${name}_mask + ${name}_ends, step=[{steps}]);
    @{name}_more(%x, %sizes, %i + 1i64, %end, Append(%parts, {part}))
  }} else {{ %parts }}
}}
def @{name}(%x: {tensor}, %sizes: Tensor[(?,), i64]) -> Sequence[{element}] {{
  let %missing = gather(shape_of(%x), {axis}i64, axis=0) - sum(%sizes, axes=[0]);
  @{name}_more(%x, %sizes, 0i64, @sequence_index(if (%missing < 0i64) {{ -%missing }} else {{ %missing }}, 1i64, 0i64),
               Empty)
}}
)",
                  fmt::arg("lists", kLists), fmt::arg("name", name), fmt::arg("tensor", tensor_text(rank, type.dtype)),
                  fmt::arg("element", tensor_text(keep ? rank : rank - 1, type.dtype)),
                  fmt::arg("part", keep ? "%part" : fmt::format("squeeze(%part, axes=[{}])", axis)),
                  fmt::arg("rank", rank), fmt::arg("axis", axis), fmt::arg("mask", fmt::join(mask, ", ")),
                  fmt::arg("ends", fmt::join(ends, ", ")), fmt::arg("steps", fmt::join(steps, ", ")))));
  return list_call(node, name, {x, sizes});
}

}  // namespace tenon::compiler::onnx
