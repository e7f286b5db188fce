// Converters of attention with a state instead of a cache, and of attention that the model modifies.
#include <fmt/format.h>

#include <cmath>

#include "compiler/frontend/onnx/expression.h"

namespace tenon::compiler::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;

Node body_node(std::string op, Names inputs, std::string output) {
  return {std::move(op), "", output, std::move(inputs), {output}, {}};
}

// One step of the recurrence. A slice of the query has the heads that share a state as its rows, and those of key,
// value, decay and beta broadcast with the state [B, heads, D, D'].
Graph linear_attention_step(bool decays, bool is_delta) {
  Graph body;
  for (const char* name : {"state", "query", "row", "value"}) body.inputs.push_back({name, {}});
  std::string state = "state", written = "value";
  body.nodes.push_back({"Transpose", "", "column", {"row"}, {"column"}, {{"perm", Ints{0, 1, 3, 2}}}});
  if (decays) {
    body.inputs.push_back({"decay", {}});
    body.nodes.push_back(body_node("Exp", {"decay"}, "factor"));
    body.nodes.push_back(body_node("Mul", {"state", "factor"}, "decayed"));
    state = "decayed";
  }
  if (is_delta) {
    body.inputs.push_back({"beta", {}});
    body.nodes.push_back(body_node("MatMul", {"row", state}, "retrieved"));
    body.nodes.push_back(body_node("Sub", {"value", "retrieved"}, "missing"));
    body.nodes.push_back(body_node("Mul", {"beta", "missing"}, "delta"));
    written = "delta";
  }
  body.nodes.push_back(body_node("MatMul", {"column", written}, "outer"));
  body.nodes.push_back(body_node("Add", {state, "outer"}, "next"));
  body.nodes.push_back(body_node("MatMul", {"query", "next"}, "read"));
  body.outputs = {"next", "read"};
  return body;
}

// A Scan of the step over time: the last state and what each step has read.
Expected<Atoms> scan_steps(NodeImport& node, Graph step, const Atoms& values) {
  Graph graph;
  Node scan{"Scan", "", node.node().name + "/steps", {}, {"last", "reads"}, {}};
  for (const ValueInfo& input : step.inputs) {
    graph.inputs.push_back(input);
    scan.inputs.push_back(input.name);
  }
  scan.attrs["num_scan_inputs"] = static_cast<int64_t>(step.inputs.size()) - 1;
  scan.attrs["body"] = std::vector{std::move(step)};
  graph.nodes.push_back(std::move(scan));
  graph.outputs = {"last", "reads"};
  return node.import().graph(graph, values, node.scope());
}

// S' = exp(g) S + k (x) w and o = scale q S', where w is v, or beta (v - k exp(g) S) by the delta rule.
Status linear_attention(NodeImport& node) {
  TENON_TRY_ASSIGN(query_heads, node.integer("q_num_heads"));
  TENON_TRY_ASSIGN(heads, node.integer("kv_num_heads"));
  TENON_TRY_ASSIGN(given_scale, node.real("scale", 0.0));
  TENON_TRY_ASSIGN(rule, node.string("update_rule", "gated_delta"));
  TENON_TRY_ASSIGN(chunk, node.integer("chunk_size", 64));  // a hint
  const bool decays = *rule == "gated" || *rule == "gated_delta", is_delta = *rule == "delta" || *rule == "gated_delta";
  if (!decays && !is_delta && *rule != "linear")
    return node.fail(
        fmt::format("update_rule '{}' is not supported, only linear, gated, delta and gated_delta", *rule));
  if (*heads < 1 || *query_heads < 1 || *query_heads % *heads != 0)
    return node.fail(fmt::format("q_num_heads {} must be a multiple of kv_num_heads {}", *query_heads, *heads));
  for (const auto& [input, needed, name] : {std::tuple{size_t{4}, decays, "decay"}, {size_t{5}, is_delta, "beta"}}) {
    if (needed && !node.has_input(input)) return node.fail(fmt::format("update_rule '{}' requires {}", *rule, name));
  }
  NodeFormula f(node);
  const Term q = f.input(0), k = f.input(1), v = f.input(2);
  f.expect(q.rank() == 3 && k.rank() == 3 && v.rank() == 3, "query, key and value must have three dims");
  const auto over_time = [&](const Term& x, Ints shape) {
    return x.cast(DType::kF32).reshape(std::move(shape)).transpose({1, 0, 2, 3, 4});
  };
  const int64_t depth = f.known_size(q, 2, "the width of the query") / *query_heads;
  const int64_t width = f.known_size(v, 2, "the width of the value") / *heads;
  std::vector<Term> values{
      node.has_input(3) ? f.input(3).cast(DType::kF32)
                        : f.apply(ops::kFull, {},
                                  {{"shape", Ints{f.known_size(q, 0, "the size of the batch"), *heads, depth, width}},
                                   {"value", 0.0},
                                   {"dtype", std::string("f32")}}),
      over_time(q, {0, 0, *heads, *query_heads / *heads, -1}), over_time(k, {0, 0, *heads, 1, -1}),
      over_time(v, {0, 0, *heads, 1, -1})};
  if (decays) values.push_back(over_time(f.input(4), {0, 0, *heads, -1, 1}));
  if (is_delta) values.push_back(over_time(f.input(5), {0, 0, -1, 1, 1}));
  TENON_TRY(f.status());
  Atoms atoms;
  for (const Term& value : values) atoms.push_back(value.atom());
  TENON_TRY_ASSIGN(found, scan_steps(node, linear_attention_step(decays, is_delta), atoms));
  const double scale = *given_scale != 0 ? *given_scale : 1 / std::sqrt(static_cast<double>(depth));
  const Term reads = f.term((*found)[1]).transpose({1, 0, 2, 3, 4}).reshape({0, 0, *query_heads * width}) * scale;
  const DType state = node.has_input(3) ? f.input(3).dtype() : q.dtype();
  return f.results({reads.cast(q.dtype()), f.term((*found)[0]).cast(state)});
}

// The scores or probabilities after the graph of an attribute, which the model may have.
Term modified(NodeFormula& f, const std::string& attribute, const Term& x) {
  NodeImport& node = f.node();
  if (!f.ok() || !node.has(attribute)) return x;
  const auto graph = node.graph(attribute);
  if (!graph) return f.term(std::unexpected(graph.error()));
  f.expect((*graph)->inputs.size() == 1 && (*graph)->outputs.size() == 1,
           fmt::format("{} must have one input and one output", attribute));
  if (!f.ok()) return x;
  const auto results = node.import().graph(**graph, {x.atom()}, node.scope());
  if (!results) return f.term(std::unexpected(results.error()));
  const Term result = f.term((*results)[0]);
  f.expect(result.rank() == x.rank() && result.dtype() == x.dtype(),
           fmt::format("{} must keep the shape and the dtype of its input", attribute));
  return result;
}

Status flex_attention(NodeImport& node) {
  TENON_TRY_ASSIGN(scale, node.real("scale", 0.0));
  TENON_TRY_ASSIGN(number, node.integer("softmax_precision", 0));
  NodeFormula f(node);
  const Term q = f.input(0);
  Term k = f.input(1), v = f.input(2);
  f.expect(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "query, key and value must have four dims");
  auto precision =
      *number == 0 ? std::optional(q.dtype() == DType::kF64 ? DType::kF64 : DType::kF32) : dtype_of_id(*number);
  f.expect(precision && runtime::kReals.contains(*precision),
           fmt::format("the precision {} is not supported", *number));
  const int64_t heads = f.known_size(q, 1, "the number of heads"), shared = f.known_size(k, 1, "the number of heads");
  f.expect(shared > 0 && heads % shared == 0, fmt::format("{} heads cannot share {} heads of keys", heads, shared));
  TENON_TRY(f.status());
  const auto repeated = [&](const Term& x) {
    if (heads == shared) return x.cast(*precision);
    const int64_t size = f.known_size(x, 3, "the size of a head");
    return x.cast(*precision)
        .expand_dims({2})
        .broadcast({-1, -1, heads / shared, -1, -1})
        .reshape({0, heads, -1, size});
  };
  k = repeated(k), v = repeated(v);
  if (*scale == 0) *scale = 1 / std::sqrt(static_cast<double>(f.known_size(q, 3, "the size of a head")));
  const Term scores = modified(f, "score_mod", matmul(q.cast(*precision), k.swap_last_axes()) * *scale);
  return f.result(matmul(modified(f, "prob_mod", softmax(scores)), v).cast(q.dtype()));
}

}  // namespace

std::span<const Converter> attention_variant_converters() {
  static constexpr Converter kTable[] = {
      {"LinearAttention", 3, 6, linear_attention},
      {"ai.onnx.preview.FlexAttention", 3, 3, flex_attention},
  };
  return kTable;
}

}  // namespace tenon::compiler::onnx
