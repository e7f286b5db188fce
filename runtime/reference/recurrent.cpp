// Recurrent layers over a sequence, with the weights as ONNX lays them out.
#include "runtime/reference/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {
namespace {

enum class Cell { kPlain, kGru, kLstm };
constexpr int64_t gates_of(Cell cell) { return cell == Cell::kPlain ? 1 : cell == Cell::kGru ? 3 : 4; }

struct Sizes {
  int64_t steps, batch, inputs, directions, hidden;
};

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// out[g] = sum of w[g][k] * x[k] + b[g] for the gates of one cell.
template <class T>
std::vector<T> affine(const T* w, const T* x, const T* b, int64_t rows, int64_t columns) {
  std::vector<T> out(b, b + rows);
  for (int64_t g = 0; g < rows; ++g) {
    for (int64_t k = 0; k < columns; ++k) out[g] += w[g * columns + k] * x[k];
  }
  return out;
}

template <class T>
T apply(const GateFunction& function, T x) {
  const T alpha = static_cast<T>(function.alpha), beta = static_cast<T>(function.beta);
  switch (function.kind) {
    case GateKind::kSigmoid: return sigmoid(x);
    case GateKind::kTanh: return std::tanh(x);
    case GateKind::kRelu: return std::max(x, T(0));
    case GateKind::kAffine: return alpha * x + beta;
    case GateKind::kLeakyRelu: return x < 0 ? alpha * x : x;
    case GateKind::kThresholdedRelu: return x > alpha ? x : T(0);
    case GateKind::kScaledTanh: return alpha * std::tanh(beta * x);
    case GateKind::kHardSigmoid: return std::max(std::min(alpha * x + beta, T(1)), T(0));
    case GateKind::kElu: return x < 0 ? alpha * std::expm1(x) : x;
    case GateKind::kSoftsign: return x / (1 + std::abs(x));
    case GateKind::kSoftplus: return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
  }
  return x;
}

// The parameters of a step of one direction, besides its products.
template <class T>
struct Gates {
  std::span<const GateFunction> functions;  // f, g, h
  T clip;                                   // 0: none
  bool reset_after, coupled;
  const T* peepholes;  // of input, output and forget gate; nullptr: none

  T operator()(size_t function, T x) const {
    return apply(functions[function], clip > 0 ? std::min(std::max(x, -clip), clip) : x);
  }
};

// Executes one step of one sequence: replaces h, and c of an LSTM. wx and rh are W x + Wb and R h + Rb.
template <class T>
void step(Cell cell, const Gates<T>& gate, const std::vector<T>& wx, const std::vector<T>& rh, const T* r, const T* rb,
          T* h, T* c, int64_t n) {
  if (cell == Cell::kPlain) {
    for (int64_t i = 0; i < n; ++i) h[i] = gate(0, wx[i] + rh[i]);
  } else if (cell == Cell::kLstm) {  // gates in, out, forget, cell
    const auto seen = [&](int64_t which, int64_t i) {
      return gate.peepholes ? gate.peepholes[which * n + i] * c[i] : T(0);
    };
    for (int64_t i = 0; i < n; ++i) {
      const T in = gate(0, wx[i] + rh[i] + seen(0, i)),
              forget = gate.coupled ? 1 - in : gate(0, wx[2 * n + i] + rh[2 * n + i] + seen(2, i)),
              next = gate(1, wx[3 * n + i] + rh[3 * n + i]);
      c[i] = forget * c[i] + in * next;
      const T out = gate(0, wx[n + i] + rh[n + i] + seen(1, i));
      h[i] = out * apply(gate.functions[2], c[i]);
    }
  } else {  // gates update, reset, hidden
    std::vector<T> reset(n), candidate(n);
    for (int64_t i = 0; i < n; ++i) reset[i] = gate(0, wx[n + i] + rh[n + i]);
    if (gate.reset_after) {
      for (int64_t i = 0; i < n; ++i) candidate[i] = reset[i] * rh[2 * n + i];
    } else {
      std::vector<T> kept(n);
      for (int64_t i = 0; i < n; ++i) kept[i] = reset[i] * h[i];
      candidate = affine(r + 2 * n * n, kept.data(), rb + 2 * n, n, n);
    }
    for (int64_t i = 0; i < n; ++i) {
      const T update = gate(0, wx[i] + rh[i]);
      h[i] = (1 - update) * gate(1, wx[2 * n + i] + candidate[i]) + update * h[i];
    }
  }
}

// An attribute that executables of older versions do not have.
int64_t newer(const Attrs& attrs, const std::string& name, int64_t otherwise) {
  const auto found = attrs.find(name);
  const auto* value = found == attrs.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : otherwise;
}
double newer(const Attrs& attrs, const std::string& name, double otherwise) {
  const auto found = attrs.find(name);
  const auto* value = found == attrs.end() ? nullptr : std::get_if<double>(&found->second);
  return value ? *value : otherwise;
}

// Each length is 0 to the number of steps.
void expect_lengths(Call& call, const Tensor& lengths, int64_t steps) {
  if (!call.ok()) return;
  for (int64_t n = 0; const int64_t length : lengths.data<int64_t>()) {
    if (length < 0 || length > steps)
      return call.expect(false, fmt::format("lengths[{}] is {}, must be 0 to {}", n, length, steps));
    ++n;
  }
}

template <Name op, Cell cell, bool ragged>
Result recurrent(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  constexpr bool kCell = cell == Cell::kLstm;
  constexpr int64_t kGates = gates_of(cell);
  constexpr size_t kInputs = kCell ? 6 : 5;
  call.expect_inputs(kInputs + ragged);
  call.expect_dtype(0, kReals);
  for (size_t i = 1; i < kInputs; ++i) call.expect(call.input(i).dtype() == call.input(0).dtype(), "types differ");
  if (ragged) call.expect_dtype(kInputs, {DType::kI64});
  const std::string direction = call.string("direction");
  const bool both = direction == "bidirectional", backward = direction == "reverse";
  call.expect(both || backward || direction == "forward", "direction must be forward, reverse or bidirectional");
  const bool reset_after = cell == Cell::kGru && call.integer("reset_after", 0, 1) == 1;
  call.expect_rank(0, 3);
  call.expect_rank(2, 3);
  const Sizes s{call.dim(0, 0), call.dim(0, 1), call.dim(0, 2), both ? 2 : 1, call.dim(2, 2)};
  const int64_t n = s.hidden, rows = kGates * n;
  const Shape state{s.directions, s.batch, n};
  call.expect(call.input(1).shape() == Shape({s.directions, rows, s.inputs}), "w has a wrong shape");
  call.expect(call.input(2).shape() == Shape({s.directions, rows, n}), "r has a wrong shape");
  const bool peepholes = kCell && call.input(3).shape() == Shape({s.directions, 2 * rows + 3 * n});
  call.expect(peepholes || call.input(3).shape() == Shape({s.directions, 2 * rows}), "b has a wrong shape");
  if (ragged) {
    call.expect(call.input(kInputs).shape() == Shape({s.batch}), "the lengths have a wrong shape");
    expect_lengths(call, call.input(kInputs), s.steps);
  }
  const auto functions = gate_functions(attrs, kGates, s.directions);
  if (!functions) call.expect(false, functions.error().what);
  const double clip = newer(attrs, "clip", 0.0);
  call.expect(clip >= 0, "clip must not be negative");
  call.expect(call.input(4).shape() == state && (!kCell || call.input(5).shape() == state),
              "a state has a wrong shape");
  const Shape y_shape{s.steps, s.directions, s.batch, n};
  call.expect_size(y_shape);
  if (!call.ok()) return call.fail();
  Tensor y(inputs[0].dtype(), y_shape), last = inputs[4].clone(),
                                        cells = kCell ? inputs[5].clone() : Tensor(inputs[0].dtype(), state);
  with_arithmetic<kReals>(y.dtype(), [&]<class T>(T) {
    for (int64_t d = 0; d < s.directions; ++d) {
      const T *w = inputs[1].data<T>().data() + d * rows * s.inputs, *r = inputs[2].data<T>().data() + d * rows * n,
              *wb = inputs[3].data<T>().data() + d * (2 * rows + (peepholes ? 3 * n : 0)), *rb = wb + rows;
      const auto of_direction = static_cast<size_t>(functions_of(kGates));
      const Gates<T> gates{std::span(*functions).subspan(static_cast<size_t>(d) * of_direction, of_direction),
                           static_cast<T>(clip), reset_after, kCell && newer(attrs, "input_forget", int64_t{0}) == 1,
                           peepholes ? rb + rows : nullptr};
      for (int64_t b = 0; b < s.batch; ++b) {
        T* h = last.data<T>().data() + (d * s.batch + b) * n;
        T* c = cells.data<T>().data() + (d * s.batch + b) * n;
        for (int64_t i = 0; i < s.steps; ++i) {
          const int64_t t = backward || d == 1 ? s.steps - 1 - i : i;
          if (ragged && t >= inputs[kInputs].data<int64_t>()[static_cast<size_t>(b)]) continue;
          const T* x = inputs[0].data<T>().data() + (t * s.batch + b) * s.inputs;
          step<T>(cell, gates, affine(w, x, wb, rows, s.inputs), affine(r, h, rb, rows, n), r, rb, h, c, n);
          std::copy_n(h, n, y.data<T>().data() + ((t * s.directions + d) * s.batch + b) * n);
        }
      }
    }
  });
  std::vector<Tensor> results{y, last};
  if (kCell) results.push_back(cells);
  return results;
}

}  // namespace

Expected<std::vector<GateFunction>> gate_functions(const Attrs& attrs, int64_t gates, int64_t directions) {
  const auto count = static_cast<size_t>(functions_of(gates) * directions);
  const auto get = [&]<class V>(const char* name, const V& otherwise) {
    const auto found = attrs.find(name);
    const V* value = found == attrs.end() ? nullptr : std::get_if<V>(&found->second);
    return value ? *value : otherwise;
  };
  std::string names = get("activations", std::string());
  const auto alpha = get("alpha", std::vector<double>()), beta = get("beta", std::vector<double>());
  if (names.empty()) {
    const std::string_view defaults = gates == 1 ? "tanh" : gates == 3 ? "sigmoid,tanh" : "sigmoid,tanh,tanh";
    names = directions == 2 ? fmt::format("{0},{0}", defaults) : std::string(defaults);
  }
  std::vector<GateFunction> functions;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view name = std::string_view(names).substr(begin, end - begin);
    const auto* entry = std::ranges::find(kGateNames, name, &GateName::name);
    if (entry == std::end(kGateNames)) return error(fmt::format("no function of gates is called '{}'", name));
    const size_t at = functions.size();
    if ((entry->alpha && at >= alpha.size()) || (entry->beta && at >= beta.size()))
      return error(fmt::format("{} needs {} for each of the activations", name,
                               entry->alpha && entry->beta ? "an alpha and a beta" : "an alpha"));
    functions.push_back({entry->kind, entry->alpha ? alpha[at] : 0, entry->beta ? beta[at] : 0});
    begin = end + 1;
  }
  if (functions.size() != count)
    return error(fmt::format("{} activations are needed, there are {}", count, functions.size()));
  return functions;
}

std::span<const Entry> recurrent_kernels() {
  static constexpr Entry kEntries[] = {{"rnn", recurrent<"rnn", Cell::kPlain, false>},
                                       {"gru", recurrent<"gru", Cell::kGru, false>},
                                       {"lstm", recurrent<"lstm", Cell::kLstm, false>},
                                       {"rnn_ragged", recurrent<"rnn_ragged", Cell::kPlain, true>},
                                       {"gru_ragged", recurrent<"gru_ragged", Cell::kGru, true>},
                                       {"lstm_ragged", recurrent<"lstm_ragged", Cell::kLstm, true>}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
