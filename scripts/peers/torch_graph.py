"""An ONNX graph of the benchmark's operators as PyTorch calls, one after another: PyTorch in its eager mode."""
import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def convolution(x, w, b=None, *, strides, pads, group=1, **_):
    if pads[:2] != pads[2:]:
        x, pads = F.pad(x, (pads[1], pads[3], pads[0], pads[2])), [0, 0]
    return F.conv2d(x, w, b, strides, pads[:2], 1, group)


class Lstm:
    """PyTorch's own module; ONNX has the gates as input, output, forget, cell, PyTorch as input, forget, cell, output."""

    def __init__(self, w, r, b):
        hidden = r.shape[2]
        turn = lambda x: torch.cat([x[gate * hidden:(gate + 1) * hidden] for gate in (0, 2, 3, 1)])
        self.module = torch.nn.LSTM(w.shape[2], hidden)
        with torch.no_grad():
            for name, value in (("weight_ih_l0", w[0]), ("weight_hh_l0", r[0]), ("bias_ih_l0", b[0, :4 * hidden]),
                                ("bias_hh_l0", b[0, 4 * hidden:])):
                getattr(self.module, name).copy_(turn(value))

    def __call__(self, x):
        y, (h, c) = self.module(x)
        return y.unsqueeze(1), h, c


class LstmCells:
    """A Scan of LSTM cells, as models.lstm_loop() writes them: a loop in Python over PyTorch's own cell."""

    def __init__(self, body):
        w, r, b = (numpy_helper.to_array(weight) for weight in body.initializer)
        hidden = len(w)
        turn = lambda x: torch.from_numpy(np.concatenate([x[..., gate * hidden:(gate + 1) * hidden]
                                                          for gate in (0, 2, 3, 1)], -1).T.copy())
        self.cell = torch.nn.LSTMCell(hidden, hidden)
        with torch.no_grad():
            for name, value in (("weight_ih", turn(w)), ("weight_hh", turn(r)), ("bias_ih", turn(b)),
                                ("bias_hh", torch.zeros(4 * hidden))):
                getattr(self.cell, name).copy_(value)

    def __call__(self, h, c, xs):
        rows = []
        for x in xs:
            h, c = self.cell(x, (h, c))
            rows.append(h)
        return h, c, torch.stack(rows)


CALLS = {
    "Add": lambda x, y: x + y,
    "BatchNormalization": lambda x, s, b, m, v, epsilon: F.batch_norm(x, m, v, s, b, eps=epsilon),
    "Clip": lambda x, lo, hi: torch.clamp(x, lo, hi),
    "Conv": convolution,
    "Flatten": lambda x, axis=1: torch.flatten(x, axis),
    "Gather": lambda table, at: F.embedding(at, table),
    "Gemm": lambda x, w, b, transB, **_: F.linear(x, w, b),
    "GlobalAveragePool": lambda x: F.adaptive_avg_pool2d(x, 1),
    "MatMul": torch.matmul,
    "MaxPool": lambda x, kernel_shape, strides, pads: F.max_pool2d(x, kernel_shape, strides, pads[0]),
    "Relu": torch.relu,
    "Squeeze": lambda x, axes: torch.squeeze(x, tuple(axes.tolist())),
}


class Graph:
    def __init__(self, model, device="cpu"):
        self.weights = {w.name: torch.from_numpy(numpy_helper.to_array(w).copy()).to(device)
                        for w in model.graph.initializer}
        self.outputs = [value.name for value in model.graph.output]
        self.steps = []
        for node in model.graph.node:
            inputs, call, given = list(node.input), CALLS.get(node.op_type), attributes(node)
            if node.op_type == "LSTM":
                call, inputs, given = Lstm(*(self.weights[name] for name in inputs[1:4])), inputs[:1], {}
            if node.op_type == "Scan":
                call, given = LstmCells(given["body"]), {}
            if call is None:
                raise RuntimeError(f"{node.op_type} is not among the operators of the benchmark's models")
            self.steps.append((call, inputs, list(node.output), given))

    def __call__(self, inputs):
        values = {**self.weights, **inputs}
        for call, names, results, given in self.steps:
            found = call(*(values[name] for name in names), **given)
            values.update(zip(results, found if isinstance(found, tuple) else [found]))
        return {name: values[name] for name in self.outputs}
