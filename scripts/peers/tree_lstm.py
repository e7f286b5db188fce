"""Trees for a TreeLSTM, and ONNX Runtime's results for them.

Usage: tree_lstm.py MODEL.onnx DATA.npz: the model takes x [n, 64], a row for each node, and parent [n], a larger index than
the node's own, n for the root; its result is the root's state. The first n rows of x are those of a tree of n nodes, for
each n up to 128, in which the parent of the node k is min(k + steps[k], n - 1).
"""
import sys

import numpy as np
import onnxruntime

NODES, WIDTH, MOST_STEPS = 128, 64, 6


def parents(steps, count):
    nodes = np.arange(count)
    return np.append(np.minimum(nodes + steps[:count], count - 1)[:-1], count)


def write(model_path, data_path):
    session = onnxruntime.InferenceSession(model_path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(17)
    x = random.standard_normal((NODES, WIDTH), dtype=np.float32)
    steps = random.integers(1, MOST_STEPS, NODES, endpoint=True)
    roots = [session.run(None, {"x": x[:count], "parent": parents(steps, count)})[0] for count in range(1, NODES + 1)]
    np.savez(data_path, x=x, steps=steps, roots=np.stack(roots))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(*sys.argv[1:])
