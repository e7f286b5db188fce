"""Steps of training, Tenon's compiled step and PyTorch's in eager mode, interleaved: CPU time of one thread, medians.

The losses of the first steps are compared before anything is timed: both begin with the weights of the model's file and
use Adam with the same settings on the same samples.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import models

RATE = 0.001
STEPS = 8  # of a round


def classes(random, x):
    return random.integers(0, 10, len(x))


def resnet8(random, steps):
    x = random.random((steps * 64, 1, 28, 28), np.float32)
    return onnx.load("tests/models/resnet8_digits.onnx"), x, classes(random, x), 64


def mlp(random, steps):
    g = models.Graph("mlp", 3)
    x = g.input("x", onnx.TensorProto.FLOAT, ["N", 784])
    sizes = [784, 512, 512, 10]
    for i, (before, after) in enumerate(zip(sizes, sizes[1:])):
        x = g.op("Gemm", x, g.weight(g.normal(after, before, scale=(2 / before) ** 0.5)),
                 g.weight(g.normal(after, scale=0.1)), transB=1)
        if i + 2 < len(sizes):
            x = g.op("Relu", x)
    g.output("logits", ["N", 10])
    x = random.random((steps * 128, 784), np.float32)
    return g.model(), x, classes(random, x), 128


def lstm_loop(random, steps):
    """A Scan of 100 cells, whose steps are what a batch has 100 of: they are equal, since the order is Tenon's."""
    rows = lambda row: np.repeat(row, steps * 100, 0)
    return (models.lstm_loop(128), rows(random.standard_normal((1, 1, 128), np.float32)),
            rows(random.standard_normal((1, 1, 128), np.float32)), 100)


NETWORKS = {"resnet8": resnet8, "mlp": mlp, "lstm_loop": lstm_loop}


def tenon(program, folder, model, samples, batch, epochs, loss):
    """The lines of the epochs, each of all samples in batches."""
    command = [program, "train", str(model), "--data", f"{samples}:x", "--labels", f"{samples}:y", "--batch", str(batch),
               "--loss", loss,
               "--epochs", str(epochs), "--rate", str(RATE), "--threads", "1", "--quiet", "--json", "-o",
               str(folder / "trained.tnb")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Torch:
    def __init__(self, model, x, y):
        import torch

        import torch_graph
        torch.set_num_threads(1)
        self.torch, self.graph = torch, torch_graph.Graph(model)
        self.input, self.output = model.graph.input[0].name, self.graph.outputs[0]
        cells = [call for call, *_ in self.graph.steps if isinstance(call, torch_graph.LstmCells)]
        # The cell's second bias is PyTorch's alone.
        trained = [w for cell in cells for name, w in cell.cell.named_parameters() if name != "bias_hh"]
        if not cells:
            trained = [w for w in self.graph.weights.values() if w.is_floating_point() and w.dim() > 0]
        for weight in trained:
            weight.requires_grad_(True)
        self.adam = torch.optim.Adam(trained, lr=RATE)
        self.x, self.y = torch.from_numpy(x), torch.from_numpy(y)

    def step(self, begin, batch):
        self.adam.zero_grad()
        logits = self.graph({self.input: self.x[begin:begin + batch]})[self.output]
        y = self.y[begin:begin + batch]
        functional = self.torch.nn.functional
        loss = functional.mse_loss(logits, y) if y.is_floating_point() else functional.cross_entropy(logits, y)
        loss.backward()
        self.adam.step()
        return loss

    def seconds(self, batch):
        begin = time.process_time()
        for i in range(STEPS):
            self.step(i * batch, batch).item()
        return (time.process_time() - begin) / STEPS


def measure(name, arguments, folder):
    model, x, y, batch = NETWORKS[name](np.random.default_rng(1), STEPS)
    loss = "mse" if y.dtype == np.float32 else "cross_entropy"
    path, samples, one = folder / f"{name}.onnx", folder / f"{name}.npz", folder / f"{name}_batch.npz"
    onnx.save(model, path)
    np.savez(samples, x=x, y=y)
    np.savez(one, x=x[:batch], y=y[:batch])
    ours = [line["loss"] for line in tenon(arguments.tenon, folder, path, one, batch, 3, loss)]
    row = {"name": name, "batch": batch}
    peer = None
    if arguments.peer:
        peer = Torch(model, x, y)
        theirs = [peer.step(0, batch).item() for _ in range(3)]
        if not np.allclose(ours, theirs, rtol=1e-3):
            sys.exit(f"error: {name}: the losses of three steps are {ours}, PyTorch's {theirs}")
    mine, others = [], []
    for _ in range(arguments.rounds):
        lines = tenon(arguments.tenon, folder, path, samples, batch, 3, loss)
        mine.append(min(line["cpu_seconds"] for line in lines) / STEPS)
        if peer:
            others.append(min(peer.seconds(batch) for _ in range(3)))
    row["tenon_ms"] = 1e3 * statistics.median(mine)
    if peer:
        row["torch_ms"] = 1e3 * statistics.median(others)
        row["ratio"] = row["tenon_ms"] / row["torch_ms"]
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tenon", required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--peer", action="store_true", help="measure PyTorch too")
    arguments = parser.parse_args()
    names = arguments.models.split(",") if arguments.models else list(NETWORKS)
    for name in names:
        if name not in NETWORKS:
            sys.exit(f"error: no network is called {name}; there are {', '.join(NETWORKS)}")
    rows = []
    print(f"{'network':<12}{'batch':>6}{'Tenon, ms':>12}{'PyTorch, ms':>13}{'Tenon / PyTorch':>17}")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            row = measure(name, arguments, pathlib.Path(folder))
            rows.append(row)
            peer = f"{row['torch_ms']:>13.2f}{row['ratio']:>17.2f}" if "ratio" in row else ""
            print(f"{name:<12}{row['batch']:>6}{row['tenon_ms']:>12.2f}{peer}", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
