"""The networks that Tenon and its peers are measured on, written from their definitions with seeded random weights.

Weights are scaled so that values neither vanish nor grow from layer to layer; batch norms are as training leaves them.
Usage: models.py DIRECTORY [NAME...]: writes NAME.onnx and NAME.npz, its inputs.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import minilm


class Graph:
    """Nodes one after another; a value is its name."""

    def __init__(self, name, seed, prefix=""):
        self.name, self.random, self.prefix = name, np.random.default_rng(seed), prefix
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.channels = {}

    def weight(self, value):
        name = f"{self.prefix}w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def normal(self, *shape, scale):
        return self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        if len(shape) == 4:
            self.channels[name] = shape[1]
        return name

    def output(self, name, shape):
        """What the last node gives."""
        self.nodes[-1].output[0] = name
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{self.prefix}v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        if inputs[0] in self.channels:
            self.channels[names[0]] = self.channels[inputs[0]]
        return names[0] if outputs == 1 else names

    def conv(self, x, out, kernel, stride=1, groups=1, pads=None):
        """A convolution and its batch norm."""
        per_group = self.channels[x] // groups
        pads = pads or [kernel // 2] * 4
        w = self.weight(self.normal(out, per_group, kernel, kernel, scale=(2 / (per_group * kernel * kernel)) ** 0.5))
        y = self.op("Conv", x, w, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, group=groups)
        self.channels[y] = out
        spread = lambda lo, hi: self.weight(self.random.uniform(lo, hi, out).astype(np.float32))
        return self.op("BatchNormalization", y, spread(0.8, 1.2), spread(-0.1, 0.1), spread(-0.1, 0.1),
                       spread(0.8, 1.2), epsilon=1e-5)

    def relu6(self, x):
        return self.op("Clip", x, self.weight(np.float32(0)), self.weight(np.float32(6)))

    def classifier(self, x, classes=1000):
        features = self.channels[x]
        flat = self.op("Flatten", self.op("GlobalAveragePool", x))
        w, b = self.weight(self.normal(classes, features, scale=features ** -0.5)), self.weight(
            self.normal(classes, scale=0.1))
        self.op("Gemm", flat, w, b, transB=1)
        self.output("logits", [1, classes])

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        return model


def image(graph):
    return graph.input("image", TensorProto.FLOAT, [1, 3, 224, 224])


def resnet18():
    """He et al. 2015: four stages of two blocks of two 3x3 convolutions."""
    g = Graph("resnet18", 18)
    x = g.op("MaxPool", g.op("Relu", g.conv(image(g), 64, 7, 2)), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage in range(4):
        for block in range(2):
            width, stride = 64 << stage, 2 if stage > 0 and block == 0 else 1
            y = g.conv(g.op("Relu", g.conv(x, width, 3, stride)), width, 3)
            skip = x if stride == 1 else g.conv(x, width, 1, stride)
            x = g.op("Relu", g.op("Add", y, skip))
    g.classifier(x)
    return g.model()


def mobilenetv1():
    """Howard et al. 2017, table 1, width 1."""
    g = Graph("mobilenetv1", 1)
    x = g.op("Relu", g.conv(image(g), 32, 3, 2))
    for out, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        x = g.op("Relu", g.conv(x, g.channels[x], 3, stride, g.channels[x]))
        x = g.op("Relu", g.conv(x, out, 1))
    g.classifier(x)
    return g.model()


def inverted_residual(g, x, out, kernel, stride, expand, same):
    """1x1 up, depthwise, 1x1 down, and around it where the shape stays; `same` pads as TensorFlow does."""
    inputs, y = g.channels[x], x
    if expand > 1:
        y = g.relu6(g.conv(y, inputs * expand, 1))
    odd = kernel // 2 - (1 if same and stride == 2 else 0)
    y = g.relu6(g.conv(y, inputs * expand, kernel, stride, inputs * expand, [odd, odd, kernel // 2, kernel // 2]))
    y = g.conv(y, out, 1)
    return g.op("Add", x, y) if stride == 1 and inputs == out else y


def mobilenetv2():
    """Sandler et al. 2018, table 2, width 1."""
    g = Graph("mobilenetv2", 2)
    x = g.relu6(g.conv(image(g), 32, 3, 2))
    for expand, out, repeat, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                        (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeat):
            x = inverted_residual(g, x, out, 3, stride if i == 0 else 1, expand, same=False)
    g.classifier(g.relu6(g.conv(x, 1280, 1)))
    return g.model()


def efficientnet_lite0():
    """EfficientNet-B0 (Tan and Le 2019) without squeeze and excitation, with ReLU6, as its authors published it."""
    g = Graph("efficientnet_lite0", 0)
    x = g.relu6(g.conv(image(g), 32, 3, 2, pads=[0, 0, 1, 1]))
    for expand, out, kernel, repeat, stride in ((1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 40, 5, 2, 2), (6, 80, 3, 3, 2),
                                                (6, 112, 5, 3, 1), (6, 192, 5, 4, 2), (6, 320, 3, 1, 1)):
        for i in range(repeat):
            x = inverted_residual(g, x, out, kernel, stride if i == 0 else 1, expand, same=True)
    g.classifier(g.relu6(g.conv(x, 1280, 1)))
    return g.model()


def trained(model, arrays, epsilon):
    """The model with trained weights in place of the random ones, in the order of its layers: those of each convolution
    and its batch norm, as PyTorch's modules have them."""
    arrays = (array for array in arrays.values() if array.ndim > 0)
    for weight in model.graph.initializer:
        if list(weight.dims) != [1]:  # the limits of ReLU6
            array = next(arrays)
            assert list(weight.dims) == list(array.shape), f"{weight.name}: {weight.dims} and {array.shape}"
            weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    assert next(arrays, None) is None, "the model has fewer weights"
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            node.attribute[0].f = epsilon
    return model


def char_lstm(steps=64, hidden=256, embedded=64, alphabet=128):
    """Characters, embedded, through two LSTMs, to the next one's logits."""
    g = Graph("char_lstm", 3)
    tokens = g.input("tokens", TensorProto.INT64, [steps, 1])
    x = g.op("Gather", g.weight(g.normal(alphabet, embedded, scale=1)), tokens)
    for inputs in (embedded, hidden):
        w, r = (g.weight(g.normal(1, 4 * hidden, size, scale=hidden ** -0.5)) for size in (inputs, hidden))
        y, _, _ = g.op("LSTM", x, w, r, g.weight(g.normal(1, 8 * hidden, scale=0.1)), outputs=3, hidden_size=hidden)
        x = g.op("Squeeze", y, g.weight(np.array([1])))
    g.op("Add", g.op("MatMul", x, g.weight(g.normal(hidden, alphabet, scale=hidden ** -0.5))),
         g.weight(g.normal(alphabet, scale=0.1)))
    g.output("logits", [steps, 1, alphabet])
    return g.model()


def sentence_encoder():
    return minilm.build(minilm.random_weights(6))


def lstm_cell(g, hidden, x, h, c):
    """One step of Hochreiter and Schmidhuber's cell by its equations; gates in ONNX's order: input, output, forget, cell."""
    product = lambda value: g.op("MatMul", value, g.weight(g.normal(hidden, 4 * hidden, scale=hidden ** -0.5)))
    sums = g.op("Add", g.op("Add", product(x), product(h)), g.weight(g.normal(4 * hidden, scale=0.1)))
    i, o, f, new = g.op("Split", sums, outputs=4, axis=1)
    new = g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", new))
    c = g.op("Add", g.op("Mul", g.op("Sigmoid", f), c), new)
    return g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c)), c


def lstm_loop(hidden, steps=100):
    """A loop over the cells of a sequence, and the same sequence as one LSTM for a peer that has no fast loop."""
    def value(name, *shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    body = Graph("cell", hidden, "cell_")
    inputs = ["cell_h", "cell_c", "cell_x"]
    h, c = lstm_cell(body, hidden, "cell_x", "cell_h", "cell_c")
    y = body.op("Identity", h)
    step = helper.make_graph(body.nodes, "cell", [value(name, 1, hidden) for name in inputs],
                             [value(name, 1, hidden) for name in (h, c, y)], body.weights)
    g = Graph(f"lstm_loop_{hidden}", hidden)
    x = g.input("x", TensorProto.FLOAT, [steps, 1, hidden])
    zeros = g.weight(np.zeros((1, hidden), np.float32))
    g.nodes.append(helper.make_node("Scan", [zeros, zeros, x], ["h", "c", "y"], body=step, num_scan_inputs=1))
    g.outputs.append(value("y", steps, 1, hidden))
    return g.model()


def as_sequence(model):
    """The LSTM operator with the weights of a model of lstm_loop()."""
    scan = model.graph.node[0]
    w, r, b = (numpy_helper.to_array(weight) for weight in helper.get_node_attr_value(scan, "body").initializer)
    hidden = len(w)
    g = Graph(model.graph.name, hidden)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = g.input("x", TensorProto.FLOAT, shape)
    bias = np.concatenate([b, np.zeros_like(b)])
    y, _, _ = g.op("LSTM", x, g.weight(w.T[None]), g.weight(r.T[None]), g.weight(bias[None]), outputs=3, hidden_size=hidden)
    g.op("Squeeze", y, g.weight(np.array([1])))
    g.output("y", shape)
    return g.model()


MODELS = {"resnet18": resnet18, "mobilenetv1": mobilenetv1, "mobilenetv2": mobilenetv2,
          "efficientnet_lite0": efficientnet_lite0,
          "char_lstm": char_lstm, "minilm": sentence_encoder, "lstm_loop_128": lambda: lstm_loop(128),
          "lstm_loop_256": lambda: lstm_loop(256)}
SIZES = {"N": 1, "T": 64}  # of unknown sizes
INT8 = "_int8"  # the ending of a model's name: quantized
MODELS |= {name + INT8: None for name in ("resnet18", "mobilenetv2", "efficientnet_lite0", "minilm")}


def make_inputs(model, seed=7):
    random, inputs = np.random.default_rng(seed), {}
    for value in model.graph.input:
        shape = [dim.dim_value or SIZES[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        whole = value.type.tensor_type.elem_type == TensorProto.INT64
        inputs[value.name] = (np.ones(shape, np.int64) if value.name == "mask" else random.integers(0, 128, shape)
                              if whole else random.standard_normal(shape, np.float32))
    return inputs


def quantized(name, directory):
    """The model as ONNX Runtime's quantizer writes it: bytes between QuantizeLinear and DequantizeLinear, weights by channel."""
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    float_model = MODELS[name.removesuffix(INT8)]()
    plain, folded, target = (directory / f"{name}.{step}.onnx" for step in ("float", "folded", "qdq"))
    onnx.save(float_model, plain)
    options = onnxruntime.SessionOptions()  # folds batch norms into convolutions
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folded)
    onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])

    class Samples(CalibrationDataReader):
        samples = iter([make_inputs(float_model, seed) for seed in range(7, 11)])

        def get_next(self):
            return next(self.samples, None)

    quantize_static(folded, target, Samples(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return onnx.load(target)


def write(name, directory):
    model = quantized(name, directory) if name.endswith(INT8) else MODELS[name]()
    onnx.save(model, directory / f"{name}.onnx")
    if model.graph.node[0].op_type == "Scan":
        onnx.save(as_sequence(model), directory / f"{name}.sequence.onnx")
    np.savez(directory / f"{name}.npz", **make_inputs(model))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[2:] or MODELS:
        if each not in MODELS:
            sys.exit(f"error: no model is called {each}; there are {', '.join(MODELS)}")
        write(each, target)
