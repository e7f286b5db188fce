// Recurrent layers over a sequence, with the weights as ONNX lays them out.
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

// One step of one sequence: h, and c of an LSTM, are replaced. wx and rh are W x + Wb and R h + Rb.
template <class T>
void step(Cell cell, bool reset_after, const std::vector<T>& wx, const std::vector<T>& rh, const T* r, const T* rb,
          T* h, T* c, int64_t n) {
  if (cell == Cell::kPlain) {
    for (int64_t i = 0; i < n; ++i) h[i] = std::tanh(wx[i] + rh[i]);
  } else if (cell == Cell::kLstm) {  // gates in, out, forget, cell
    for (int64_t i = 0; i < n; ++i) {
      const T in = sigmoid(wx[i] + rh[i]), out = sigmoid(wx[n + i] + rh[n + i]),
              forget = sigmoid(wx[2 * n + i] + rh[2 * n + i]), next = std::tanh(wx[3 * n + i] + rh[3 * n + i]);
      c[i] = forget * c[i] + in * next;
      h[i] = out * std::tanh(c[i]);
    }
  } else {  // gates update, reset, hidden
    std::vector<T> reset(n), candidate(n);
    for (int64_t i = 0; i < n; ++i) reset[i] = sigmoid(wx[n + i] + rh[n + i]);
    if (reset_after) {
      for (int64_t i = 0; i < n; ++i) candidate[i] = reset[i] * rh[2 * n + i];
    } else {
      std::vector<T> kept(n);
      for (int64_t i = 0; i < n; ++i) kept[i] = reset[i] * h[i];
      candidate = affine(r + 2 * n * n, kept.data(), rb + 2 * n, n, n);
    }
    for (int64_t i = 0; i < n; ++i) {
      const T update = sigmoid(wx[i] + rh[i]);
      h[i] = (1 - update) * std::tanh(wx[2 * n + i] + candidate[i]) + update * h[i];
    }
  }
}

template <Name op, Cell cell>
Result recurrent(const Attrs& attrs, std::span<const Tensor> inputs) {
  Call call(op.view(), attrs, inputs);
  constexpr bool kCell = cell == Cell::kLstm;
  constexpr int64_t kGates = gates_of(cell);
  call.expect_inputs(kCell ? 6 : 5);
  call.expect_dtype(0, kReals);
  call.expect_one_dtype();
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
  call.expect(call.input(3).shape() == Shape({s.directions, 2 * rows}), "b has a wrong shape");
  call.expect(call.input(4).shape() == state && (!kCell || call.input(5).shape() == state),
              "a state has a wrong shape");
  const Shape all{s.steps, s.directions, s.batch, n};
  call.expect_size(all);
  if (!call.ok()) return call.fail();
  Tensor y(inputs[0].dtype(), all), last = inputs[4].clone(),
                                    cells = kCell ? inputs[5].clone() : Tensor(inputs[0].dtype(), state);
  with_dtype<kReals>(y.dtype(), [&]<class T>(T) {
    for (int64_t d = 0; d < s.directions; ++d) {
      const T *w = inputs[1].data<T>().data() + d * rows * s.inputs, *r = inputs[2].data<T>().data() + d * rows * n,
              *wb = inputs[3].data<T>().data() + d * 2 * rows, *rb = wb + rows;
      for (int64_t b = 0; b < s.batch; ++b) {
        T* h = last.data<T>().data() + (d * s.batch + b) * n;
        T* c = cells.data<T>().data() + (d * s.batch + b) * n;
        for (int64_t i = 0; i < s.steps; ++i) {
          const int64_t t = backward || d == 1 ? s.steps - 1 - i : i;
          const T* x = inputs[0].data<T>().data() + (t * s.batch + b) * s.inputs;
          step<T>(cell, reset_after, affine(w, x, wb, rows, s.inputs), affine(r, h, rb, rows, n), r, rb, h, c, n);
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

std::span<const Entry> recurrent_kernels() {
  static constexpr Entry kEntries[] = {{"rnn", recurrent<"rnn", Cell::kPlain>},
                                       {"gru", recurrent<"gru", Cell::kGru>},
                                       {"lstm", recurrent<"lstm", Cell::kLstm>}};
  return kEntries;
}

}  // namespace tenon::runtime::reference
