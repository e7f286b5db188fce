"""MiniLM-L6 (Wang et al. 2020), an encoder of sentences, as an ONNX graph of any batch N and any number of tokens T.

Usage: minilm.py WEIGHTS.safetensors MODEL.onnx: writes the graph with the weights of sentence-transformers'
all-MiniLM-L6-v2. minilm.py --tiny MODEL.onnx DATA.npz: a small one of random weights, and sentences of every length with
ONNX Runtime's results, for tests. From Python: build(load(path)) and build(random_weights(seed)).
"""
import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HIDDEN, HEADS, INNER, VOCABULARY, POSITIONS = 6, 384, 12, 1536, 30522, 512


def load(path):
    """The tensors of a safetensors file by name: 8 bytes of the header's length, a header in JSON, the data."""
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    types = {"F32": "<f4", "I64": "<i8"}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[8 + size + begin:8 + size + end], types[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def random_weights(seed):
    """Weights of the shapes of MiniLM, scaled so that values neither vanish nor grow from layer to layer."""
    random, weights = np.random.default_rng(seed), {}

    def normal(name, *shape, scale):
        weights[name] = random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def dense(name, outputs, inputs):
        normal(f"{name}.weight", outputs, inputs, scale=inputs ** -0.5)
        normal(f"{name}.bias", outputs, scale=0.1)

    def norm(name):
        weights[f"{name}.LayerNorm.weight"] = random.uniform(0.8, 1.2, HIDDEN).astype(np.float32)
        normal(f"{name}.LayerNorm.bias", HIDDEN, scale=0.1)

    for name, rows in (("word", VOCABULARY), ("position", POSITIONS), ("token_type", 2)):
        normal(f"embeddings.{name}_embeddings.weight", rows, HIDDEN, scale=1)
    norm("embeddings")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        for name in ("query", "key", "value"):
            dense(f"{prefix}.attention.self.{name}", HIDDEN, HIDDEN)
        dense(f"{prefix}.attention.output.dense", HIDDEN, HIDDEN)
        norm(f"{prefix}.attention.output")
        dense(f"{prefix}.intermediate.dense", INNER, HIDDEN)
        dense(f"{prefix}.output.dense", HIDDEN, INNER)
        norm(f"{prefix}.output")
    return weights


class Builder:
    """Nodes one after another; a value is its name."""

    def __init__(self, weights):
        self.weights, self.nodes, self.initializers, self.scope = weights, [], {}, ""

    def constant(self, name, value):
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def weight(self, name, transposed=False):
        value = self.weights[name]
        return self.constant(name, value.T if transposed else value)

    def integers(self, *values):
        return self.constant("i" + "_".join(map(str, values)), np.array(values, np.int64))

    def scalar(self, value):
        return self.constant(f"f{value}", np.float32(value))

    def op(self, kind, *inputs, **attributes):
        name = f"{self.scope}{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def dense(self, x, name):
        product = self.op("MatMul", x, self.weight(f"{name}.weight", transposed=True))
        return self.op("Add", product, self.weight(f"{name}.bias"))

    def norm(self, x, name):
        return self.op("LayerNormalization", x, self.weight(f"{name}.LayerNorm.weight"),
                       self.weight(f"{name}.LayerNorm.bias"), epsilon=1e-12)

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.scalar(2 ** 0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.scalar(1.0))), self.scalar(0.5))

    def embeddings(self, tokens):
        words = self.op("Gather", self.weight("embeddings.word_embeddings.weight"), tokens)
        count = self.op("Slice", self.op("Shape", tokens), self.integers(1), self.integers(2))
        positions = self.op("Slice", self.weight("embeddings.position_embeddings.weight"), self.integers(0), count,
                            self.integers(0))
        kind = self.constant("sentence", self.weights["embeddings.token_type_embeddings.weight"][0])
        return self.norm(self.op("Add", self.op("Add", words, kind), positions), "embeddings")

    def heads(self, x, *axes):
        split = self.op("Reshape", x, self.integers(0, 0, HEADS, HIDDEN // HEADS))
        return self.op("Transpose", split, perm=axes)

    def attention(self, x, bias, name):
        query = self.heads(self.dense(x, f"{name}.self.query"), 0, 2, 1, 3)
        key = self.heads(self.dense(x, f"{name}.self.key"), 0, 2, 3, 1)
        value = self.heads(self.dense(x, f"{name}.self.value"), 0, 2, 1, 3)
        scores = self.op("Div", self.op("MatMul", query, key), self.scalar((HIDDEN // HEADS) ** 0.5))
        shares = self.op("Softmax", self.op("Add", scores, bias), axis=-1)
        joined = self.op("Transpose", self.op("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self.dense(self.op("Reshape", joined, self.integers(0, 0, HIDDEN)), f"{name}.output.dense")

    def layer(self, x, bias, index):
        self.scope, name = f"layer{index}/", f"encoder.layer.{index}"
        x = self.norm(self.op("Add", x, self.attention(x, bias, f"{name}.attention")), f"{name}.attention.output")
        inner = self.gelu(self.dense(x, f"{name}.intermediate.dense"))
        return self.norm(self.op("Add", x, self.dense(inner, f"{name}.output.dense")), f"{name}.output")

    def sentence(self, x, mask):
        """The mean over the tokens that the mask keeps, of length 1."""
        self.scope = "pool/"
        kept = self.op("Unsqueeze", mask, self.integers(2))
        total = self.op("ReduceSum", self.op("Mul", x, kept), self.integers(1), keepdims=0)
        mean = self.op("Div", total, self.op("ReduceSum", mask, self.integers(1), keepdims=1))
        return self.op("Div", mean, self.op("ReduceL2", mean, axes=[1], keepdims=1))


def build(weights):
    """Inputs: tokens [N, T] and mask [N, T], both int64, the mask 1 where there is a token; result: embedding [N, 384]."""
    b = Builder(weights)
    mask = b.op("Cast", "mask", to=TensorProto.FLOAT)
    bias = b.op("Unsqueeze", b.op("Mul", b.op("Sub", b.scalar(1.0), mask), b.scalar(-1e4)), b.integers(1, 2))
    x = b.embeddings("tokens")
    for index in range(LAYERS):
        x = b.layer(x, bias, index)
    b.sentence(x, mask)
    b.nodes[-1].output[0] = "embedding"
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["N", "T"]) for name in ("tokens", "mask")]
    output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["N", HIDDEN])
    graph = helper.make_graph(b.nodes, "minilm", inputs, [output], list(b.initializers.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def write_tiny(model_path, data_path):
    """The first T tokens of one sentence, for each T, and three sentences of different lengths in one batch."""
    import onnxruntime

    global LAYERS, HIDDEN, HEADS, INNER, VOCABULARY, POSITIONS
    LAYERS, HIDDEN, HEADS, INNER, VOCABULARY, POSITIONS = 2, 32, 4, 64, 50, 128
    onnx.save(build(random_weights(7)), model_path)
    session = onnxruntime.InferenceSession(model_path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(8)
    tokens = random.integers(0, VOCABULARY, POSITIONS)
    rows = []
    for count in range(1, POSITIONS + 1):
        feed = {"tokens": tokens[None, :count], "mask": np.ones((1, count), np.int64)}
        rows.append(session.run(None, feed)[0][0])
    batch = {"tokens": random.integers(0, VOCABULARY, (3, 17)),
             "mask": (np.arange(17) < np.array([[17], [5], [9]])).astype(np.int64)}
    np.savez(data_path, tokens=tokens, embeddings=np.stack(rows), batch_tokens=batch["tokens"],
             batch_mask=batch["mask"], batch_embeddings=session.run(None, batch)[0])


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--tiny":
        write_tiny(*sys.argv[2:])
        sys.exit()
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    onnx.save(build(load(sys.argv[1])), sys.argv[2])
