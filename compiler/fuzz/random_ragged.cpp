// Random loop functions over batches whose instances have different numbers of rows.
#include <fmt/format.h>

#include "compiler/fuzz/random_loops.h"

namespace tenon::compiler::loop {
namespace {

using runtime::DType;
using runtime::Tensor;

// Writes the stages, each of which computes a value of the type of %x from earlier ones.
class RaggedWriter {
 public:
  explicit RaggedWriter(Random& random)
      : random_(random),
        m_(static_cast<int64_t>(1 + random.below(5))),
        var_(random.one_of<std::string>({"b", "b", "r"})) {}

  std::string run() {
    const std::string type = rows(fmt::format("lengths({}), {}", var_, m_));
    std::string text = fmt::format(
        "loop @p[n](%lengths: Tensor[(n,), i64], %x: {0}, %w: Tensor[({1}, {1}), i32]) -> (%y: {0}) {{\n", type, m_);
    const size_t stages = 1 + random_.below(3);
    for (size_t s = 0; s < stages; ++s) {
      const bool last = s + 1 == stages;
      to_ = last ? "y" : fmt::format("t{}", s);
      name_ = fmt::format("s{}", s);
      if (!last) alloc(to_, type);
      stage(random_.one_of(values_), random_.one_of(values_));
      values_.push_back(to_);
    }
    text += allocs_ + body_;
    for (size_t i = 0; i < opened_; ++i) text += "}\n";
    return text + "}\n";
  }
  int64_t columns() const { return m_; }

 private:
  std::string rows(const std::string& sizes) const { return fmt::format("Tensor[({}: n, {}), i32]", var_, sizes); }
  void alloc(const std::string& name, const std::string& type) {
    allocs_ += fmt::format("alloc %{}: {} {{\n", name, type);
    ++opened_;
  }
  // A stage in a nest of loops, one for each of the first `loops` axes in the order of the text.
  void nest(const std::vector<std::pair<std::string, std::string>>& axes, const std::string& name,
            const std::string& statements) {
    std::string stage = fmt::format("stage {}(", name), loops;
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto& [var, extent] = axes[i];
      const std::string_view plain = std::string_view(var).substr(var.rfind(' ') + 1);  // without "reduce" or "scan"
      loops += fmt::format("for {} in ({}) {{ ", plain, extent);
      stage += fmt::format("{}{} in ({}) at ({})", i == 0 ? "" : ", ", var, extent, plain);
    }
    body_ += fmt::format("{}{}) {{ {} }}{}\n", loops, stage, statements, std::string(axes.size(), '}'));
  }

  void stage(const std::string& from, const std::string& other) {
    const std::pair<std::string, std::string> b{"b", "n"}, s{"s", "lengths(b)"}, j{"j", std::to_string(m_)};
    const std::string k = fmt::format("{}", m_), to = fmt::format("%{}[b, s, j]", to_);
    switch (random_.below(8)) {
      case 0: return nest({b, s, j}, name_, fmt::format("{} = %{}[b, s, j] * i32(3) - %{}[b, s, j];", to, from, other));
      case 1: {  // neighbours in the instance
        const int64_t shift = random_.between(-2, 2);
        return nest(
            {b, s, j}, name_,
            fmt::format("{0} = select(index(0) <= index(s + {1}) and index(s + {1}) < index(lengths(b)), %{2}[b, s "
                        "+ {1}, j], i32(-1)) + %{3}[b, s, {4} - j];",
                        to, shift, from, other, m_ - 1));
      }
      case 2:  // a product with the weights
        return nest(
            {b, s, j, {"reduce k", k}}, name_,
            fmt::format("init {{ {0} = %{1}[b, s, j]; }} {0} = {0} + %{2}[b, s, k] * %w[k, j];", to, other, from));
      case 3: {  // the sums of each instance
        const std::string sums = fmt::format("r_{}", name_);
        alloc(sums, fmt::format("Tensor[(n, {}), i32]", m_));
        nest({b, j}, name_ + "_zero", fmt::format("%{}[b, j] = i32(1);", sums));
        nest({b, j, {"reduce s", "lengths(b)"}}, name_ + "_sum",
             fmt::format("%{0}[b, j] = %{0}[b, j] + %{1}[b, s, j];", sums, from));
        return nest({b, s, j}, name_, fmt::format("{} = %{}[b, s, j] - %{}[b, j];", to, other, sums));
      }
      case 4: {  // scores of all pairs of rows: two ragged axes
        const std::string scores = fmt::format("c_{}", name_);
        alloc(scores, rows(fmt::format("lengths({0}), lengths({0})", var_)));
        nest(
            {b, s, {"q", "lengths(b)"}, {"reduce k", k}}, name_ + "_dot",
            fmt::format("init {{ %{0}[b, s, q] = i32(0); }} %{0}[b, s, q] = %{0}[b, s, q] + %{1}[b, s, k] * %{2}[b, q, "
                        "k];",
                        scores, from, other));
        return nest(
            {b, s, j, {"reduce q", "lengths(b)"}}, name_,
            fmt::format("init {{ {0} = i32(0); }} {0} = {0} + %{1}[b, s, q] * %{2}[b, q, j];", to, scores, from));
      }
      case 5:  // running sums along the instance
        return nest({b, {"scan s", "lengths(b)"}, j}, name_,
                    fmt::format("if (index(s) < index(1)) {{ {0} = %{1}[b, s, j]; }} else {{ {0} = %{2}[b, s - 1, j] + "
                                "%{1}[b, s, j]; }}",
                                to, from, to_));
      case 6:  // the rows of each instance backwards
        return nest({b, s, j}, name_,
                    fmt::format("{} = %{}[b, lengths(b) - s - 1, j] + %{}[b, s, j];", to, from, other));
      default:  // a triangle: the sum of the rows up to this one
        return nest({b, s, j, {"reduce q", "s + 1"}}, name_,
                    fmt::format("init {{ {0} = %{1}[b, s, j]; }} {0} = {0} + %{2}[b, q, j];", to, other, from));
    }
  }

  Random& random_;
  int64_t m_;
  std::string var_;  // the name of the axis of instances in types, which need not be that of a stage's axis
  std::string to_, name_, allocs_, body_;
  std::vector<std::string> values_{"x"};
  size_t opened_ = 0;
};

}  // namespace

RaggedProgram random_ragged_program(Random& random) {
  RaggedWriter writer(random);
  RaggedProgram program{.text = writer.run(), .params = {}};
  const auto n = static_cast<int64_t>(random.below(6));
  const int64_t m = writer.columns();
  Tensor lengths(DType::kI64, {n});
  int64_t total = 0;
  for (int64_t& length : lengths.data<int64_t>())
    total += length = static_cast<int64_t>(random.chance(20) ? 0 : random.below(7));
  program.params = {lengths, Tensor(DType::kI32, {total, m}), Tensor(DType::kI32, {m, m})};
  for (Tensor& param : std::span(program.params).subspan(1))
    for (int32_t& value : param.data<int32_t>()) value = static_cast<int32_t>(random.below(2000)) - 1000;
  return program;
}

}  // namespace tenon::compiler::loop
